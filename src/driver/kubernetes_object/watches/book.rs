//! What is known of watched objects: which state of each nobody needs to be told of. Pure and synchronous: what
//! watches and calls saw goes in, what is to be told comes out.
//!
//! A call of ours is no news: the state that it left is the new base, and what a watch says while it is under way is
//! looked at when it has ended. Versions are compared as numbers, so that a watch that lags behind tells nothing.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::driver::Noticed;
use crate::model::{Address, Value};

/// The objects of one kind in one place, seen with the eyes of one service account: what one watch serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Scope {
    /// Namespace and name of the service account.
    pub(crate) account: (Arc<str>, Arc<str>),
    pub(crate) api_version: Arc<str>,
    pub(crate) kind: Arc<str>,
    /// Empty for objects of the cluster.
    pub(crate) namespace: Arc<str>,
}

/// A state of an object, as far as it tells one from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    uid: Arc<str>,
    /// The resourceVersion; 0 for what is only recorded.
    version: u64,
    /// Digest of generation, labels, annotations and the like, for kinds that count their generations: heartbeats in
    /// `status` do not change it. Of other kinds every version counts.
    mark: Option<u64>,
}

/// What a watch tells of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It is in this state.
    There(Look),
    /// It was deleted.
    Deleted,
}

/// One object.
#[derive(Debug, Default)]
struct Entry {
    /// Who wants to be told.
    whose: Option<(Arc<str>, Address)>,
    /// The state that nobody needs to be told of.
    base: Option<Look>,
    /// Calls of ours under way.
    calls: u32,
    /// What a watch saw last while a call was under way, or while nobody listened.
    seen: Option<Seen>,
    /// Whether the list that is being read had it, or it is newer than that list.
    listed: bool,
}

/// All watched objects.
#[derive(Debug, Default)]
pub(crate) struct Book {
    scopes: HashMap<Scope, BTreeMap<Arc<str>, Entry>>,
    homes: HashMap<(Arc<str>, Address), (Scope, Arc<str>)>,
}

/// What a new subscription needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Subscribed {
    /// Nothing but the record is known of the object, so its scope must be listed (again).
    pub(crate) list: bool,
    pub(crate) news: Option<Noticed>,
    /// A scope that nobody needs any more, since the object has moved.
    pub(crate) idle: Option<Scope>,
}

impl Look {
    /// The state with this `metadata`.
    pub(crate) fn of(metadata: &Json) -> Option<Self> {
        let uid = metadata["uid"].as_str()?.into();
        let version = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
        Some(Self { uid, version, mark: mark(metadata) })
    }

    /// The state on record, which has no version.
    pub(crate) fn recorded(object: &Value) -> Option<Self> {
        let look = Self::of(&object.get("metadata")?.to_json())?;
        Some(Self { version: 0, ..look })
    }

    fn differs(&self, other: &Self) -> bool {
        self.uid != other.uid
            || match (self.mark, other.mark) {
                (Some(mark), Some(other)) => mark != other,
                _ => self.version != other.version,
            }
    }
}

fn mark(metadata: &Json) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    metadata["generation"].as_u64().filter(|generation| *generation > 0)?.hash(&mut hasher);
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        match &metadata[field] {
            Json::Object(map) => {
                let sorted: BTreeMap<_, _> =
                    map.iter().filter(|(key, _)| *key != crate::driver::kubernetes_object::LAST_APPLIED).collect();
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
    /// Takes in a state; gives what is to be told, if somebody listens.
    fn judge(&mut self, seen: Seen) -> Option<Noticed> {
        if self.calls > 0 || self.whose.is_none() {
            self.seen = Some(seen);
            return None;
        }
        let gone = match (&mut self.base, seen) {
            (Some(base), Seen::There(look)) if base.uid == look.uid && look.version <= base.version => return None,
            (Some(base), Seen::There(look)) if !base.differs(&look) => {
                *base = look;
                return None;
            }
            (base, Seen::There(look)) => {
                let gone = base.as_ref().is_some_and(|base| base.uid != look.uid);
                *base = Some(look);
                gone
            }
            (base, Seen::Deleted) => {
                // The same end is not told twice.
                base.take()?;
                true
            }
        };
        let (namespace, address) = self.whose.clone()?;
        Some(Noticed { namespace, address, gone })
    }

    /// Looks at what was put aside.
    fn judge_seen(&mut self) -> Option<Noticed> {
        let seen = self.seen.take()?;
        self.judge(seen)
    }
}

impl Book {
    /// From now on somebody wants to be told of an object. `recorded` is what is known of it, unless a call of ours
    /// knows better.
    pub(crate) fn subscribe(
        &mut self,
        whose: (Arc<str>, Address),
        scope: Scope,
        name: Arc<str>,
        recorded: Option<Look>,
    ) -> Subscribed {
        let home = (scope.clone(), name.clone());
        let mut subscribed = Subscribed::default();
        if self.homes.get(&whose).is_some_and(|before| *before != home) {
            subscribed.idle = self.unsubscribe(&whose).filter(|idle| *idle != scope);
        }
        let entry = self.scopes.entry(scope).or_default().entry(name).or_default();
        let is_new = entry.whose.as_ref() != Some(&whose);
        entry.whose = Some(whose.clone());
        if entry.base.is_none() && is_new {
            entry.base = recorded;
            subscribed.list = true;
        }
        subscribed.news = entry.judge_seen();
        self.homes.insert(whose, home);
        subscribed
    }

    /// Nobody wants to be told of it any more. Gives its scope when nothing is left of that.
    pub(crate) fn unsubscribe(&mut self, whose: &(Arc<str>, Address)) -> Option<Scope> {
        let (scope, name) = self.homes.remove(whose)?;
        self.drop_entry(&scope, &name);
        (!self.scopes.contains_key(&scope)).then_some(scope)
    }

    /// The scope in which somebody's object is watched.
    pub(crate) fn home(&self, whose: &(Arc<str>, Address)) -> Option<&Scope> {
        self.homes.get(whose).map(|(scope, _)| scope)
    }

    /// Whether anybody needs the scope.
    pub(crate) fn serves(&self, scope: &Scope) -> bool {
        self.scopes.contains_key(scope)
    }

    /// A call of ours begins that may change the object.
    pub(crate) fn begin(&mut self, scope: &Scope, name: &Arc<str>) {
        let members = self.scopes.entry(scope.clone()).or_default();
        members.entry(name.clone()).or_default().calls += 1;
    }

    /// It has ended, and left the object like this (`None`: not known).
    pub(crate) fn end(&mut self, scope: &Scope, name: &Arc<str>, left: Option<Look>) -> Option<Noticed> {
        let entry = self.scopes.get_mut(scope)?.get_mut(name)?;
        entry.calls = entry.calls.saturating_sub(1);
        entry.listed = true;
        let known = left.is_some();
        entry.base = left.or(entry.base.take());
        if entry.whose.is_none() && !known && entry.calls == 0 {
            self.drop_entry(scope, name);
            return None;
        }
        if entry.calls == 0 { entry.judge_seen() } else { None }
    }

    /// We have looked at it ourselves, and whoever wants to know does.
    pub(crate) fn looked(&mut self, scope: &Scope, name: &Arc<str>, look: Look) {
        let Some(entry) = self.scopes.get_mut(scope).and_then(|members| members.get_mut(name)) else { return };
        let older = entry.base.as_ref().is_some_and(|base| base.uid == look.uid && base.version > look.version);
        if entry.calls == 0 && !older {
            entry.base = Some(look);
        }
    }

    /// It is destroyed by us, so its end is no news.
    pub(crate) fn forget(&mut self, scope: &Scope, name: &Arc<str>) {
        let whose = self.scopes.get(scope).and_then(|members| members.get(name)?.whose.clone());
        match whose {
            Some(whose) => {
                self.homes.remove(&whose);
                self.drop_entry(scope, name);
            }
            None => self.drop_entry(scope, name),
        }
    }

    /// A watch saw this state of an object, or its end.
    pub(crate) fn saw(&mut self, scope: &Scope, name: &str, seen: Seen) -> Option<Noticed> {
        let entry = self.scopes.get_mut(scope)?.get_mut(name)?;
        entry.listed = true;
        entry.judge(seen)
    }

    /// The scope is about to be listed.
    pub(crate) fn begin_list(&mut self, scope: &Scope) {
        for entry in self.scopes.get_mut(scope).into_iter().flat_map(BTreeMap::values_mut) {
            entry.listed = entry.calls > 0;
        }
    }

    /// It was listed: what was not in it is gone.
    pub(crate) fn end_list(&mut self, scope: &Scope) -> Vec<Noticed> {
        let members = self.scopes.get_mut(scope).into_iter().flat_map(BTreeMap::values_mut);
        members.filter(|entry| !entry.listed).filter_map(|entry| entry.judge(Seen::Deleted)).collect()
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

    fn whose(name: &str) -> (Arc<str>, Address) {
        ("shop".into(), Address::single(name))
    }

    fn look(uid: &str, version: u64) -> Look {
        Look::of(&json!({"uid": uid, "resourceVersion": version.to_string()})).unwrap()
    }

    fn counted(version: u64, generation: u64) -> Look {
        let metadata = json!({"uid": "u", "resourceVersion": version.to_string(), "generation": generation});
        Look::of(&metadata).unwrap()
    }

    /// A book in which `a` manages the object `x`, known at this state.
    fn book(base: Look) -> Book {
        let mut book = Book::default();
        book.begin(&scope(), &"x".into());
        book.end(&scope(), &"x".into(), Some(base));
        assert_eq!(book.subscribe(whose("a"), scope(), "x".into(), None), Subscribed::default());
        book
    }

    fn news(gone: bool) -> Noticed {
        Noticed { namespace: "shop".into(), address: Address::single("a"), gone }
    }

    fn there(look: Look) -> Seen {
        Seen::There(look)
    }

    #[test]
    fn a_change_is_told_once_and_an_older_state_never() {
        let mut book = book(look("u", 5));
        assert_eq!(book.saw(&scope(), "x", there(look("u", 4))), None);
        assert_eq!(book.saw(&scope(), "x", there(look("u", 5))), None);
        assert_eq!(book.saw(&scope(), "x", there(look("u", 6))), Some(news(false)));
        assert_eq!(book.saw(&scope(), "x", there(look("u", 6))), None);
        assert_eq!(book.saw(&scope(), "other", there(look("v", 9))), None, "nobody's object");
        assert_eq!(book.saw(&scope(), "x", Seen::Deleted), Some(news(true)));
        assert_eq!(book.saw(&scope(), "x", Seen::Deleted), None);
    }

    #[test]
    fn heartbeats_are_no_change_where_generations_are_counted() {
        let mut book = book(counted(5, 1));
        assert_eq!(book.saw(&scope(), "x", there(counted(6, 1))), None);
        assert_eq!(book.saw(&scope(), "x", there(counted(7, 2))), Some(news(false)));
    }

    #[test]
    fn our_own_writes_are_no_news_however_they_come_in() {
        let mut book = book(look("u", 5));
        book.begin(&scope(), &"x".into());
        assert_eq!(book.saw(&scope(), "x", there(look("u", 6))), None, "the watch may be faster than the answer");
        assert_eq!(book.end(&scope(), &"x".into(), Some(look("u", 6))), None);
        assert_eq!(book.saw(&scope(), "x", there(look("u", 6))), None, "or slower");
        book.begin(&scope(), &"x".into());
        assert_eq!(book.saw(&scope(), "x", there(look("u", 8))), None);
        assert_eq!(
            book.end(&scope(), &"x".into(), Some(look("u", 7))),
            Some(news(false)),
            "somebody was faster than our end"
        );
    }

    #[test]
    fn a_change_between_the_call_and_the_subscription_is_not_lost() {
        let mut book = Book::default();
        book.begin(&scope(), &"x".into());
        book.end(&scope(), &"x".into(), Some(look("u", 5)));
        assert_eq!(book.saw(&scope(), "x", there(look("u", 6))), None, "nobody listens yet");
        let subscribed = book.subscribe(whose("a"), scope(), "x".into(), None);
        assert_eq!((subscribed.list, subscribed.news), (false, Some(news(false))));
    }

    #[test]
    fn what_is_only_on_record_is_listed_and_compared_as_far_as_the_record_tells() {
        let mut book = Book::default();
        let recorded = |generation: u64| {
            let object = json!({"metadata": {"uid": "u", "generation": generation}});
            Look::recorded(&Value::from_json(object))
        };
        assert!(book.subscribe(whose("a"), scope(), "x".into(), recorded(1)).list);
        book.begin_list(&scope());
        assert_eq!(book.saw(&scope(), "x", there(counted(7, 1))), None);
        assert_eq!(book.end_list(&scope()), []);
        book.begin_list(&scope());
        assert_eq!(book.end_list(&scope()), vec![news(true)], "it is not in the list");
        assert!(!book.subscribe(whose("a"), scope(), "x".into(), recorded(1)).list, "once is enough");
    }

    #[test]
    fn a_reading_of_ours_and_an_end_of_ours_are_no_news() {
        let mut book = book(look("u", 5));
        book.looked(&scope(), &"x".into(), look("u", 8));
        assert_eq!(book.saw(&scope(), "x", there(look("u", 8))), None);
        book.forget(&scope(), &"x".into());
        assert_eq!(book.saw(&scope(), "x", Seen::Deleted), None);
        assert!(book.scopes.is_empty() && book.homes.is_empty());
    }

    #[test]
    fn an_object_that_moved_leaves_nothing_behind() {
        let mut book = book(look("u", 5));
        let other = Scope { kind: "Secret".into(), ..scope() };
        let subscribed = book.subscribe(whose("a"), other.clone(), "y".into(), Some(look("v", 1)));
        assert_eq!(subscribed.idle, Some(scope()));
        assert_eq!(book.unsubscribe(&whose("a")), Some(other));
        assert!(book.scopes.is_empty() && book.homes.is_empty());
    }
}
