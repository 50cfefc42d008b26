//! The known states of watched objects. Pure: takes the states that watches and calls observe, and returns the changes
//! to report.
//!
//! Changes by calls of this driver are not reported: the state after a call is the new baseline, and events during the
//! call are processed when it ends. Versions are compared as numbers, so that a lagging watch reports no changes. The
//! health of an object is reported whichever client changed it, with the first state that is seen.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::ObjectChange;
use model::{Address, Health, Namespace, Observed, Uid, Value};

/// The scope of one watch: the objects of a kind in a namespace, as visible to a service account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Scope {
    /// Namespace and name of the service account.
    pub(crate) account: (Namespace, Arc<str>),
    pub(crate) api_version: Arc<str>,
    pub(crate) kind: Arc<str>,
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: Namespace,
}

/// The version of an object, for comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    uid: Uid,
    /// The resourceVersion; 0 for a recorded object.
    version: u64,
    /// A digest of the metadata for kinds with a generation, so that changes of `status` are ignored. For other kinds,
    /// every resourceVersion counts as a change.
    mark: Option<u64>,
}

/// The state of an object in a watch event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObservedState {
    Present(ObjectVersion, Health),
    Deleted,
}

#[derive(Debug, Default)]
struct Entry {
    /// The instance that manages the object.
    subscriber: Option<(Namespace, Address)>,
    /// The last known state. Changes from it are reported.
    baseline: Option<ObjectVersion>,
    /// The last known health; `None` if the object was not seen yet.
    health: Option<Health>,
    /// The number of calls of this driver in flight.
    calls: u32,
    /// The last event during a call, or without a subscriber.
    pending: Option<ObservedState>,
    /// Whether the current list contains the object, or the object is newer than the list.
    listed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct WatchIndex {
    scopes: HashMap<Scope, BTreeMap<Arc<str>, Entry>>,
    subscribers: HashMap<(Namespace, Address), (Scope, Arc<str>)>,
}

/// The result of a subscription.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Subscription {
    /// The scope must be listed, since only the recorded state of the object is known.
    pub(crate) needs_list: bool,
    pub(crate) change: Option<ObjectChange>,
    /// The previous scope of the subscriber, if it has no more subscriptions.
    pub(crate) idle_scope: Option<Scope>,
}

impl ObjectVersion {
    /// The version in this `metadata`.
    pub(crate) fn of(metadata: &Json) -> Option<Self> {
        let uid = metadata["uid"].as_str()?.into();
        let version = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
        Some(Self { uid, version, mark: metadata_digest(metadata) })
    }

    /// The version of a recorded object, without a resourceVersion.
    pub(crate) fn recorded(object: &Value) -> Option<Self> {
        let version = Self::of(&object.get("metadata")?.to_json())?;
        Some(Self { version: 0, ..version })
    }

    fn differs(&self, other: &Self) -> bool {
        self.uid != other.uid
            || match (self.mark, other.mark) {
                (Some(mark), Some(other)) => mark != other,
                _ => self.version != other.version,
            }
    }
}

fn metadata_digest(metadata: &Json) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    metadata["generation"].as_u64().filter(|generation| *generation > 0)?.hash(&mut hasher);
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        match &metadata[field] {
            Json::Object(map) => {
                let sorted: BTreeMap<_, _> =
                    map.iter().filter(|(key, _)| *key != crate::kubernetes_object::LAST_APPLIED).collect();
                for (key, value) in sorted {
                    (key, value.to_string()).hash(&mut hasher);
                }
            }
            Json::Null => {}
            other => other.to_string().hash(&mut hasher),
        }
    }
    Some(hasher.finish())
}

impl Entry {
    /// Processes a state and returns what to report.
    fn observe(&mut self, state: ObservedState) -> Option<ObjectChange> {
        if self.calls > 0 || self.subscriber.is_none() {
            self.pending = Some(state);
            return None;
        }
        let mut seen = Observed::default();
        match (&mut self.baseline, state) {
            (Some(base), ObservedState::Present(version, _))
                if base.uid == version.uid && version.version <= base.version =>
            {
                return None;
            }
            (Some(base), ObservedState::Present(version, health)) if !base.differs(&version) => {
                *base = version;
                seen.health = self.replace_health(health);
            }
            (base, ObservedState::Present(version, health)) => {
                seen.changed = true;
                seen.deleted = base.as_ref().is_some_and(|base| base.uid != version.uid);
                *base = Some(version);
                seen.health = self.replace_health(health);
            }
            (base, ObservedState::Deleted) => {
                // A deletion is reported once.
                base.take()?;
                self.health = None;
                (seen.changed, seen.deleted) = (true, true);
            }
        }
        self.report(seen)
    }

    /// Sets the health. Returns it if it has changed.
    fn replace_health(&mut self, health: Health) -> Option<Health> {
        let is_new = self.health.as_ref() != Some(&health);
        self.health = Some(health);
        if is_new { self.health.clone() } else { None }
    }

    fn report(&self, seen: Observed) -> Option<ObjectChange> {
        let (namespace, address) = self.subscriber.clone().filter(|_| seen != Observed::default())?;
        Some(ObjectChange { namespace, address, seen })
    }

    /// Processes the pending event.
    fn observe_pending(&mut self) -> Option<ObjectChange> {
        let state = self.pending.take()?;
        self.observe(state)
    }
}

/// Both reports as one.
fn joined(first: Option<ObjectChange>, later: Option<ObjectChange>) -> Option<ObjectChange> {
    match (first, later) {
        (Some(mut first), Some(later)) => {
            first.seen.add(later.seen);
            Some(first)
        }
        (first, later) => first.or(later),
    }
}

impl WatchIndex {
    /// Subscribes to an object. `recorded` is the baseline, unless a call of this driver set a newer one.
    pub(crate) fn subscribe(
        &mut self,
        subscriber: (Namespace, Address),
        scope: Scope,
        name: Arc<str>,
        recorded: Option<ObjectVersion>,
    ) -> Subscription {
        let entry_key = (scope.clone(), name.clone());
        let mut subscription = Subscription::default();
        if self.subscribers.get(&subscriber).is_some_and(|before| *before != entry_key) {
            subscription.idle_scope = self.unsubscribe(&subscriber).filter(|idle| *idle != scope);
        }
        let entry = self.scopes.entry(scope).or_default().entry(name).or_default();
        let is_new = entry.subscriber.as_ref() != Some(&subscriber);
        entry.subscriber = Some(subscriber.clone());
        if entry.baseline.is_none() && is_new {
            entry.baseline = recorded;
            subscription.needs_list = true;
        }
        let known = entry.health.clone().filter(|_| is_new);
        let known = entry.report(Observed { health: known, ..Observed::default() });
        subscription.change = joined(known, entry.observe_pending());
        self.subscribers.insert(subscriber, entry_key);
        subscription
    }

    /// Removes a subscription. Returns its scope if it has no more subscriptions.
    pub(crate) fn unsubscribe(&mut self, subscriber: &(Namespace, Address)) -> Option<Scope> {
        let (scope, name) = self.subscribers.remove(subscriber)?;
        self.drop_entry(&scope, &name);
        (!self.scopes.contains_key(&scope)).then_some(scope)
    }

    /// The scope of a subscription.
    pub(crate) fn scope_of(&self, subscriber: &(Namespace, Address)) -> Option<&Scope> {
        self.subscribers.get(subscriber).map(|(scope, _)| scope)
    }

    /// Whether the scope has subscriptions or calls.
    pub(crate) fn is_used(&self, scope: &Scope) -> bool {
        self.scopes.contains_key(scope)
    }

    /// Starts a call that may change the object.
    pub(crate) fn begin(&mut self, scope: &Scope, name: &Arc<str>) {
        let members = self.scopes.entry(scope.clone()).or_default();
        members.entry(name.clone()).or_default().calls += 1;
    }

    /// Ends a call. `left` is the object after it, or `None` if it is unknown.
    pub(crate) fn end(
        &mut self,
        scope: &Scope,
        name: &Arc<str>,
        left: Option<(ObjectVersion, Health)>,
    ) -> Option<ObjectChange> {
        let entry = self.scopes.get_mut(scope)?.get_mut(name)?;
        entry.calls = entry.calls.saturating_sub(1);
        entry.listed = true;
        let known = left.is_some();
        let mut health = None;
        if let Some((version, left)) = left {
            entry.baseline = Some(version);
            health = entry.replace_health(left);
        }
        if entry.subscriber.is_none() && !known && entry.calls == 0 {
            self.drop_entry(scope, name);
            return None;
        }
        let health = entry.report(Observed { health, ..Observed::default() });
        joined(health, if entry.calls == 0 { entry.observe_pending() } else { None })
    }

    /// Updates the known state after a read by this driver.
    pub(crate) fn record_read(
        &mut self,
        scope: &Scope,
        name: &Arc<str>,
        version: ObjectVersion,
        health: Health,
    ) -> Option<ObjectChange> {
        let entry = self.scopes.get_mut(scope)?.get_mut(name)?;
        let older =
            entry.baseline.as_ref().is_some_and(|base| base.uid == version.uid && base.version > version.version);
        if entry.calls > 0 || older {
            return None;
        }
        entry.baseline = Some(version);
        let health = entry.replace_health(health);
        entry.report(Observed { health, ..Observed::default() })
    }

    /// The objects of a scope that cannot be watched and were not seen yet.
    pub(crate) fn unseen(&self, scope: &Scope) -> Vec<ObjectChange> {
        let entries = self.scopes.get(scope).into_iter().flat_map(BTreeMap::values);
        let unseen = entries.filter(|entry| entry.health.is_none());
        unseen.filter_map(|entry| entry.report(Observed { unwatched: true, ..Observed::default() })).collect()
    }

    /// Removes an object that this driver destroys, so that its deletion is not reported.
    pub(crate) fn forget(&mut self, scope: &Scope, name: &Arc<str>) {
        let subscriber = self.scopes.get(scope).and_then(|members| members.get(name)?.subscriber.clone());
        match subscriber {
            Some(subscriber) => {
                self.subscribers.remove(&subscriber);
                self.drop_entry(scope, name);
            }
            None => self.drop_entry(scope, name),
        }
    }

    /// Whether an object is subscribed or being changed, so that events about it matter.
    pub(crate) fn knows(&self, scope: &Scope, name: &str) -> bool {
        self.scopes.get(scope).is_some_and(|members| members.contains_key(name))
    }

    /// Processes a watch event or an item of a list.
    pub(crate) fn observe(&mut self, scope: &Scope, name: &str, state: ObservedState) -> Option<ObjectChange> {
        let entry = self.scopes.get_mut(scope)?.get_mut(name)?;
        entry.listed = true;
        entry.observe(state)
    }

    /// Starts a list of the scope.
    pub(crate) fn begin_list(&mut self, scope: &Scope) {
        for entry in self.scopes.get_mut(scope).into_iter().flat_map(BTreeMap::values_mut) {
            entry.listed = entry.calls > 0;
        }
    }

    /// Ends a list: objects that it does not contain are deleted.
    pub(crate) fn end_list(&mut self, scope: &Scope) -> Vec<ObjectChange> {
        let members = self.scopes.get_mut(scope).into_iter().flat_map(BTreeMap::values_mut);
        members.filter(|entry| !entry.listed).filter_map(|entry| entry.observe(ObservedState::Deleted)).collect()
    }

    fn drop_entry(&mut self, scope: &Scope, name: &Arc<str>) {
        if let Some(members) = self.scopes.get_mut(scope) {
            members.remove(name);
            if members.is_empty() {
                self.scopes.remove(scope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope() -> Scope {
        Scope {
            account: ("shop".into(), "default".into()),
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: "shop".into(),
        }
    }

    fn subscriber(name: &str) -> (Namespace, Address) {
        ("shop".into(), Address::single(name))
    }

    fn version(uid: &str, version: u64) -> ObjectVersion {
        ObjectVersion::of(&json!({"uid": uid, "resourceVersion": version.to_string()})).unwrap()
    }

    fn counted(version: u64, generation: u64) -> ObjectVersion {
        let metadata = json!({"uid": "u", "resourceVersion": version.to_string(), "generation": generation});
        ObjectVersion::of(&metadata).unwrap()
    }

    /// An index in which `a` manages the object `x` with this baseline.
    fn index_with(base: ObjectVersion) -> WatchIndex {
        let mut index = WatchIndex::default();
        index.begin(&scope(), &"x".into());
        index.end(&scope(), &"x".into(), Some((base, Health::Current)));
        let expected = Subscription { change: Some(healthy()), ..Subscription::default() };
        assert_eq!(index.subscribe(subscriber("a"), scope(), "x".into(), None), expected);
        index
    }

    fn report(seen: Observed) -> ObjectChange {
        ObjectChange { namespace: "shop".into(), address: Address::single("a"), seen }
    }

    fn change(deleted: bool) -> ObjectChange {
        report(Observed { changed: true, deleted, ..Observed::default() })
    }

    fn healthy() -> ObjectChange {
        report(Observed { health: Some(Health::Current), ..Observed::default() })
    }

    fn present(version: ObjectVersion) -> ObservedState {
        ObservedState::Present(version, Health::Current)
    }

    #[test]
    fn a_change_is_reported_once_and_an_older_state_is_ignored() {
        let mut index = index_with(version("u", 5));
        assert_eq!(index.observe(&scope(), "x", present(version("u", 4))), None);
        assert_eq!(index.observe(&scope(), "x", present(version("u", 5))), None);
        assert_eq!(index.observe(&scope(), "x", present(version("u", 6))), Some(change(false)));
        assert_eq!(index.observe(&scope(), "x", present(version("u", 6))), None);
        assert_eq!(index.observe(&scope(), "other", present(version("v", 9))), None, "an object without a subscriber");
        assert_eq!(index.observe(&scope(), "x", ObservedState::Deleted), Some(change(true)));
        assert_eq!(index.observe(&scope(), "x", ObservedState::Deleted), None);
    }

    #[test]
    fn status_updates_are_ignored_for_kinds_with_a_generation() {
        let mut index = index_with(counted(5, 1));
        assert_eq!(index.observe(&scope(), "x", present(counted(6, 1))), None);
        assert_eq!(index.observe(&scope(), "x", present(counted(7, 2))), Some(change(false)));
    }

    #[test]
    fn a_change_of_the_health_is_reported_whatever_causes_it() {
        let mut index = index_with(counted(5, 1));
        let failed = || Health::Failed("it has crashed".to_owned());
        let seen = |health| Some(report(Observed { health: Some(health), ..Observed::default() }));
        let observe = |index: &mut WatchIndex, version, health| {
            index.observe(&scope(), "x", ObservedState::Present(counted(version, 1), health))
        };
        assert_eq!(observe(&mut index, 6, failed()), seen(failed()));
        assert_eq!(observe(&mut index, 7, failed()), None);
        index.begin(&scope(), &"x".into());
        let after_call = Some((counted(8, 1), Health::Current));
        assert_eq!(index.end(&scope(), &"x".into(), after_call), seen(Health::Current));
        assert_eq!(index.record_read(&scope(), &"x".into(), counted(9, 1), failed()), seen(failed()));
        assert_eq!(observe(&mut index, 8, Health::Current), None, "an older state");
    }

    #[test]
    fn writes_of_this_driver_are_not_reported() {
        let mut index = index_with(version("u", 5));
        index.begin(&scope(), &"x".into());
        assert_eq!(
            index.observe(&scope(), "x", present(version("u", 6))),
            None,
            "the event may arrive before the response"
        );
        assert_eq!(index.end(&scope(), &"x".into(), Some((version("u", 6), Health::Current))), None);
        assert_eq!(index.observe(&scope(), "x", present(version("u", 6))), None, "or after it");
        index.begin(&scope(), &"x".into());
        assert_eq!(index.observe(&scope(), "x", present(version("u", 8))), None);
        assert_eq!(
            index.end(&scope(), &"x".into(), Some((version("u", 7), Health::Current))),
            Some(change(false)),
            "another client changed the object during the call"
        );
    }

    #[test]
    fn a_change_between_the_call_and_the_subscription_is_not_lost() {
        let mut index = WatchIndex::default();
        index.begin(&scope(), &"x".into());
        index.end(&scope(), &"x".into(), Some((version("u", 5), Health::Current)));
        assert_eq!(index.observe(&scope(), "x", present(version("u", 6))), None, "there is no subscriber yet");
        let subscription = index.subscribe(subscriber("a"), scope(), "x".into(), None);
        let both = Observed { changed: true, health: Some(Health::Current), ..Observed::default() };
        assert_eq!((subscription.needs_list, subscription.change), (false, Some(report(both))));
    }

    #[test]
    fn a_recorded_object_is_listed_and_compared_with_the_record() {
        let mut index = WatchIndex::default();
        let recorded = |generation: u64| {
            let object = json!({"metadata": {"uid": "u", "generation": generation}});
            ObjectVersion::recorded(&Value::from_json(object))
        };
        assert!(index.subscribe(subscriber("a"), scope(), "x".into(), recorded(1)).needs_list);
        index.begin_list(&scope());
        assert_eq!(index.unseen(&scope()), [report(Observed { unwatched: true, ..Observed::default() })]);
        assert_eq!(index.observe(&scope(), "x", present(counted(7, 1))), Some(healthy()));
        assert_eq!((index.end_list(&scope()), index.unseen(&scope())), (vec![], vec![]));
        index.begin_list(&scope());
        assert_eq!(index.end_list(&scope()), vec![change(true)], "it is not in the list");
        assert!(
            !index.subscribe(subscriber("a"), scope(), "x".into(), recorded(1)).needs_list,
            "the scope is listed once"
        );
    }

    #[test]
    fn reads_and_destroys_of_this_driver_are_not_reported() {
        let mut index = index_with(version("u", 5));
        assert_eq!(index.record_read(&scope(), &"x".into(), version("u", 8), Health::Current), None);
        assert_eq!(index.observe(&scope(), "x", present(version("u", 8))), None);
        index.forget(&scope(), &"x".into());
        assert_eq!(index.observe(&scope(), "x", ObservedState::Deleted), None);
        assert!(index.scopes.is_empty() && index.subscribers.is_empty());
    }

    #[test]
    fn a_moved_object_leaves_no_subscription_behind() {
        let mut index = index_with(version("u", 5));
        let other = Scope { kind: "Secret".into(), ..scope() };
        let subscription = index.subscribe(subscriber("a"), other.clone(), "y".into(), Some(version("v", 1)));
        assert_eq!(subscription.idle_scope, Some(scope()));
        assert_eq!(index.unsubscribe(&subscriber("a")), Some(other));
        assert!(index.scopes.is_empty() && index.subscribers.is_empty());
    }
}
