//! The reconcilers of all namespaces. Watches add events to them, and the task of each namespace processes these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use tokio::sync::{Notify, mpsc, watch};

use super::backlog::Backlog;
use super::leadership::Leadership;
use engine::load::ProviderSpec;
use model::{Address, Name, Namespace, Value, Version};
use process::{Random, lock};
use runtime::execute::Limits;
use runtime::reconcile::index::{Event, Index, Providers};
use runtime::reconcile::{Policy, Reconciler};
use runtime::store::{ResourceMeta, ResourceView};

/// The maximum number of names in one plan.
const MAX_NAMES_PER_PLAN: usize = 256;
/// How many steps may wait for each that may run: more than end while a plan is computed, so that steps never wait for
/// plans.
const WAITING_PER_RUNNING_STEP: usize = 4;

/// One namespace, shared between the watches and its task.
pub struct NamespaceHandle {
    name: Namespace,
    /// Since when its shard is watched. If that differs, the shard was dropped in the meantime, and changes were missed.
    since: u64,
    reconciler: Mutex<Reconciler>,
    /// Events that the reconciler has not received because it was in a turn: no watch waits for a turn.
    inbox: Mutex<Vec<Event>>,
    /// Notified after each event.
    pub wake: Notify,
    /// Notified when a provider process can start after one could not.
    pub process_available: Notify,
}

impl NamespaceHandle {
    fn new(reconciler: Reconciler, since: u64) -> Self {
        let name = reconciler.namespace().clone();
        Self {
            name,
            since,
            reconciler: Mutex::new(reconciler),
            inbox: Mutex::default(),
            wake: Notify::new(),
            process_available: Notify::new(),
        }
    }

    pub fn name(&self) -> &Namespace {
        &self.name
    }

    pub fn apply(&self, event: Event) {
        lock(&self.inbox).push(event);
        // If a turn holds the reconciler, the next turn empties the inbox.
        match self.reconciler.try_lock() {
            Ok(mut reconciler) => self.empty_inbox(&mut reconciler),
            Err(TryLockError::Poisoned(poisoned)) => self.empty_inbox(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        self.wake.notify_one();
    }

    /// The reconciler with all events applied. Hold the lock for a turn or a lookup, never across an await.
    pub fn lock(&self) -> MutexGuard<'_, Reconciler> {
        // A poisoned lock is fine: the turn after a panic starts from the desired and the recorded state.
        let mut reconciler = lock(&self.reconciler);
        self.empty_inbox(&mut reconciler);
        reconciler
    }

    fn empty_inbox(&self, reconciler: &mut Reconciler) {
        let delivered = std::mem::take(&mut *lock(&self.inbox));
        delivered.into_iter().for_each(|event| reconciler.observe(event));
    }
}

#[derive(Default)]
struct NamespaceMap {
    open: BTreeMap<Namespace, Arc<NamespaceHandle>>,
    /// Counts the opened namespaces.
    opened: u64,
    /// The variable `ns` of expressions, and the version of a namespace that is being deleted, also for namespaces
    /// without Resources.
    namespaces: BTreeMap<Namespace, (Value, Option<Version>)>,
    providers: Providers,
}

/// All namespaces of the watched shards that have a Resource, a record or a `ProviderConfig`.
pub struct Namespaces {
    leadership: Leadership,
    known: Mutex<NamespaceMap>,
    policy: Policy,
    random: Arc<dyn Random>,
    opened: mpsc::UnboundedSender<Arc<NamespaceHandle>>,
    /// The Providers of the cluster, for those who wait for their changes.
    installed: watch::Sender<Providers>,
    /// The namespaces in which changes wait.
    pub backlog: Backlog,
}

impl Namespaces {
    /// An empty set, and a receiver of the namespaces that become non-empty. `limits`: those of each namespace.
    pub fn new(
        limits: &Limits,
        random: Arc<dyn Random>,
        leadership: Leadership,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Arc<NamespaceHandle>>) {
        let (opened, receiver) = mpsc::unbounded_channel();
        let policy = Policy {
            max_running_steps: limits.per_namespace,
            max_names_per_plan: MAX_NAMES_PER_PLAN,
            max_waiting_steps: Some(limits.per_namespace.saturating_mul(WAITING_PER_RUNNING_STEP)),
            quota: limits.quota,
            destroy_orphans: false,
            requires_approval: true,
        };
        let (known, backlog, installed) = (Mutex::default(), Backlog::default(), watch::Sender::default());
        (Arc::new(Self { leadership, known, policy, random, opened, installed, backlog }), receiver)
    }

    pub fn apply(&self, namespace: &Namespace, event: Event) {
        // Other events, such as status writes, do not open a namespace.
        let brings_something = matches!(
            event,
            Event::ResourceApplied(_)
                | Event::RecordApplied(_)
                | Event::RecordUnreadable(..)
                | Event::FamilyApplied(_)
                | Event::FamilyUnreadable(..)
                | Event::ProviderConfigApplied(_)
                | Event::ApprovalApplied(..)
        );
        let mut known = self.known();
        if let Event::Namespace { value, terminating } = &event {
            known.namespaces.insert(namespace.clone(), (value.clone(), *terminating));
        }
        // The lock is held, so that a namespace is not opened after it was forgotten.
        let Some(since) = self.leadership.watched_since(namespace) else { return };
        let shared = match known.open.get(namespace) {
            Some(shared) if shared.since == since => shared.clone(),
            _ if brings_something => self.open(&mut known, namespace, since),
            _ => return,
        };
        // The lock is still held, so that the namespace cannot be closed in between.
        shared.apply(event);
    }

    /// Adds an event to all open namespaces, or to the given one.
    pub fn apply_to_all(&self, namespace: Option<&str>, event: &Event) {
        for shared in self.open_namespaces() {
            if namespace.is_none_or(|only| *only == **shared.name()) {
                shared.apply(event.clone());
            }
        }
    }

    /// Reports that a provider process can start in the namespace after one could not. The empty name: a process for all
    /// namespaces.
    pub fn process_available(&self, namespace: &str) {
        let open = self.open_namespaces();
        let concerned = open.iter().filter(|shared| namespace.is_empty() || **shared.name() == *namespace);
        concerned.for_each(|shared| shared.process_available.notify_one());
    }

    /// Sets the Providers of the cluster.
    pub fn provide(&self, providers: BTreeMap<Arc<str>, Arc<ProviderSpec>>) {
        let providers = Arc::new(providers);
        self.known().providers = providers.clone();
        self.installed.send_if_modified(|known| {
            let is_same = known.len() == providers.len()
                && known.iter().zip(providers.iter()).all(|((_, old), (_, new))| old.provider == new.provider);
            known.clone_from(&providers);
            !is_same
        });
        self.apply_to_all(None, &Event::Providers(providers));
    }

    /// The Providers of the cluster, and their changes.
    pub fn installed_providers(&self) -> watch::Receiver<Providers> {
        self.installed.subscribe()
    }

    /// Removes a deleted namespace.
    pub fn forget_namespace(&self, namespace: &str) {
        self.known().namespaces.remove(namespace);
    }

    /// The non-empty namespaces.
    pub fn open_namespaces(&self) -> Vec<Arc<NamespaceHandle>> {
        self.known().open.values().cloned().collect()
    }

    /// Drops the namespaces of shards that this replica has given up. Their tasks have ended.
    pub fn forget_unwatched(&self) {
        self.known().open.retain(|_, shared| self.is_current(shared));
    }

    /// A namespace that is not empty.
    pub fn find(&self, namespace: &str) -> Option<Arc<NamespaceHandle>> {
        let shared = self.known().open.get(namespace).cloned();
        shared.filter(|shared| self.is_current(shared))
    }

    /// Whether this replica has kept the namespace in memory since it was opened.
    fn is_current(&self, shared: &NamespaceHandle) -> bool {
        self.leadership.watched_since(shared.name()) == Some(shared.since)
    }

    /// Looks at the reconciler of a namespace. That of a namespace that is not open is empty.
    pub fn look<T>(&self, namespace: &Namespace, look: impl FnOnce(&Reconciler) -> T) -> T {
        let known = self.known();
        if let Some(shared) = known.open.get(namespace).cloned() {
            drop(known);
            return look(&shared.lock());
        }
        let reconciler = self.empty_reconciler(&known, namespace, 0, 0);
        drop(known);
        look(&reconciler)
    }

    /// Closes a namespace if it is empty. A later event opens it again.
    pub fn close_if_empty(&self, shared: &NamespaceHandle) -> bool {
        let mut known = self.known();
        let empty = shared.lock().index().is_empty();
        if empty {
            known.open.remove(shared.name());
        }
        empty
    }

    fn open(&self, known: &mut NamespaceMap, namespace: &Namespace, since: u64) -> Arc<NamespaceHandle> {
        // Drivers cache provider configurations by version, also after a namespace is closed and opened again.
        known.opened += 1;
        let (seed, versions) = (self.random.number(), known.opened << 32);
        let reconciler = self.empty_reconciler(known, namespace, seed, versions);
        let shared = Arc::new(NamespaceHandle::new(reconciler, since));
        known.open.insert(namespace.clone(), shared.clone());
        // The receiver may be dropped during shutdown.
        let _ = self.opened.send(shared.clone());
        shared
    }

    /// A reconciler that knows the namespace and the Providers.
    fn empty_reconciler(&self, known: &NamespaceMap, namespace: &Namespace, seed: u64, versions: u64) -> Reconciler {
        let mut reconciler = Reconciler::new(namespace.clone(), self.policy, seed, versions);
        if let Some((value, terminating)) = known.namespaces.get(namespace).cloned() {
            reconciler.observe(Event::Namespace { value, terminating });
        }
        reconciler.observe(Event::Providers(known.providers.clone()));
        reconciler
    }

    fn known(&self) -> MutexGuard<'_, NamespaceMap> {
        lock(&self.known)
    }

    fn with<T>(&self, namespace: &str, look: impl FnOnce(&Index) -> T) -> Option<T> {
        let shared = self.find(namespace)?;
        let reconciler = shared.lock();
        Some(look(reconciler.index()))
    }
}

impl ResourceView for Namespaces {
    fn metadata(&self, namespace: &str, name: &Name) -> Option<ResourceMeta> {
        self.with(namespace, |index| index.metadata(name).cloned())?
    }

    fn recorded(&self, namespace: &str, name: &Name) -> Vec<Address> {
        self.with(namespace, |index| index.addresses(name).cloned().collect()).unwrap_or_default()
    }

    fn indexed(&self, namespace: &str, name: &Name) -> Vec<Address> {
        let names = BTreeSet::from([name.clone()]);
        self.with(namespace, |index| index.indexed(&names).cloned().collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::Division;
    use engine::plan::ObjectBlock;
    use model::Reason;
    use process::SystemRandom;

    #[test]
    fn a_namespace_opens_with_its_first_object_and_closes_when_it_is_empty() {
        let (namespaces, mut opened) =
            Namespaces::new(&Limits::default(), Arc::new(SystemRandom), Leadership::alone(Division::new(1)));
        let shop: Namespace = "shop".into();
        let value = Value::map([("name", Value::from("shop"))]);
        namespaces.apply(&shop, Event::Namespace { value, terminating: Some(Version(1)) });
        namespaces.apply(&shop, Event::ResourceDeleted("a".into()));
        assert!(opened.try_recv().is_err());
        let held = ObjectBlock { reason: Reason::RecordUnreadable, message: "damaged".into() };
        namespaces.apply(&shop, Event::RecordUnreadable(Address::single("a"), held));
        let shared = opened.try_recv().unwrap();
        assert!(shared.lock().index().is_terminating(), "the index receives the state of the namespace");
        assert!(!namespaces.close_if_empty(&shared));
        namespaces.apply(&shop, Event::RecordDeleted(Address::single("a"), Version(1)));
        assert!(namespaces.close_if_empty(&shared));
        assert!(namespaces.open_namespaces().is_empty());
    }

    #[test]
    fn a_namespace_that_is_not_open_is_looked_at_without_opening_it() {
        let (namespaces, mut opened) =
            Namespaces::new(&Limits::default(), Arc::new(SystemRandom), Leadership::alone(Division::new(1)));
        let shop: Namespace = "shop".into();
        namespaces.apply(&shop, Event::Namespace { value: Value::Null, terminating: Some(Version(1)) });
        let look = || namespaces.look(&shop, |found| (found.index().is_empty(), found.index().is_terminating()));
        assert_eq!(look(), (true, true));
        assert!(opened.try_recv().is_err());
        let held = ObjectBlock { reason: Reason::RecordUnreadable, message: "damaged".into() };
        namespaces.apply(&shop, Event::RecordUnreadable(Address::single("a"), held));
        assert_eq!(look(), (false, true), "an open one is looked at itself");
    }
}
