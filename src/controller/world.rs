//! All namespaces: the index of each, where watches put events in and where the namespace's task takes them out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use tokio::sync::{Notify, mpsc};

use crate::load::ProviderSpec;
use crate::model::{InstanceKey, Value, Version};
use crate::process::{Random, lock};
use crate::reconcile::index::{Event, Index, Providers};
use crate::reconcile::{Policy, Reconciler};
use crate::store::{ResourceMeta, ResourceView};

/// How many names one plan covers.
const PLANNED_TOGETHER: usize = 256;

/// One namespace, shared between the watches and its task.
pub struct Shared {
    name: Arc<str>,
    reconciler: Mutex<Reconciler>,
    /// What watches have delivered and the reconciler has not taken in yet, since it was in a turn: no watch waits for the
    /// turn of a namespace.
    inbox: Mutex<Vec<Event>>,
    /// Notified when there is something to look at.
    pub wake: Notify,
}

impl Shared {
    fn new(reconciler: Reconciler) -> Self {
        let name = reconciler.namespace().clone();
        Self { name, reconciler: Mutex::new(reconciler), inbox: Mutex::default(), wake: Notify::new() }
    }

    /// The namespace.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Takes an event in.
    pub fn apply(&self, event: Event) {
        lock(&self.inbox).push(event);
        // A turn that holds the reconciler is followed by another one, which empties the inbox.
        match self.reconciler.try_lock() {
            Ok(mut reconciler) => self.empty_inbox(&mut reconciler),
            Err(TryLockError::Poisoned(poisoned)) => self.empty_inbox(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        self.wake.notify_one();
    }

    /// The reconciler, which knows all that was delivered. Hold it for a turn, or to look something up, and never across
    /// an await.
    pub fn lock(&self) -> MutexGuard<'_, Reconciler> {
        // A turn that panics is followed by one that begins from what is wanted and recorded.
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
struct Known {
    open: BTreeMap<Arc<str>, Arc<Shared>>,
    /// How many were opened so far.
    opened: u64,
    /// `ns` of expressions and whether it is being deleted, at which version, also of namespaces without any Resource.
    namespaces: BTreeMap<Arc<str>, (Value, Option<Version>)>,
    /// All Providers of the cluster.
    providers: Providers,
}

/// All namespaces that have a Resource, a record or a `ProviderConfig`.
pub struct World {
    known: Mutex<Known>,
    policy: Policy,
    random: Arc<dyn Random>,
    opened: mpsc::UnboundedSender<Arc<Shared>>,
}

impl World {
    /// An empty world, and where it announces namespaces that begin to have something.
    /// `steps_at_once`: how many steps of one namespace may run at once.
    pub fn new(steps_at_once: usize, random: Arc<dyn Random>) -> (Arc<Self>, mpsc::UnboundedReceiver<Arc<Shared>>) {
        let (opened, receiver) = mpsc::unbounded_channel();
        let policy = Policy { steps_at_once, planned_together: PLANNED_TOGETHER, destroys_orphans: false };
        (Arc::new(Self { known: Mutex::default(), policy, random, opened }), receiver)
    }

    /// Takes an event of a namespace.
    pub fn apply(&self, namespace: &Arc<str>, event: Event) {
        // The index of a family alone is nothing to work on: its records or its Resource come by themselves.
        let brings_something = matches!(
            event,
            Event::ResourceApplied(_)
                | Event::RecordApplied(_)
                | Event::RecordUnreadable(..)
                | Event::FamilyApplied(_)
                | Event::FamilyUnreadable(..)
                | Event::ProviderConfigApplied(_)
        );
        let mut known = self.known();
        if let Event::Namespace { value, terminating } = &event {
            known.namespaces.insert(namespace.clone(), (value.clone(), *terminating));
        }
        let shared = match known.open.get(namespace) {
            Some(shared) => shared.clone(),
            None if brings_something => self.open(&mut known, namespace),
            None => return,
        };
        // Still under the lock of the world, so that the namespace cannot be closed in between.
        shared.apply(event);
    }

    /// Takes an event of all namespaces, or of the one given.
    pub fn apply_to_all(&self, namespace: Option<&str>, event: &Event) {
        for shared in self.open_namespaces() {
            if namespace.is_none_or(|only| *only == **shared.name()) {
                shared.apply(event.clone());
            }
        }
    }

    /// The Providers of the cluster are these from now on.
    pub fn provide(&self, providers: BTreeMap<Arc<str>, Arc<ProviderSpec>>) {
        let providers = Arc::new(providers);
        self.known().providers = providers.clone();
        self.apply_to_all(None, &Event::Providers(providers));
    }

    /// A namespace is gone.
    pub fn forget_namespace(&self, namespace: &str) {
        self.known().namespaces.remove(namespace);
    }

    /// The namespaces that have something.
    pub fn open_namespaces(&self) -> Vec<Arc<Shared>> {
        self.known().open.values().cloned().collect()
    }

    /// Closes a namespace if it has nothing any more. An event after it opens the namespace anew.
    pub fn close_if_empty(&self, shared: &Shared) -> bool {
        let mut known = self.known();
        let empty = shared.lock().index().is_empty();
        if empty {
            known.open.remove(shared.name());
        }
        empty
    }

    fn open(&self, known: &mut Known, namespace: &Arc<str>) -> Arc<Shared> {
        // Namespaces come and go, and with them what is known of them; drivers keep the versions that they were given.
        known.opened += 1;
        let (seed, versions) = (self.random.number(), known.opened << 32);
        let mut reconciler = Reconciler::new(namespace.clone(), self.policy, seed, versions);
        if let Some((value, terminating)) = known.namespaces.get(namespace).cloned() {
            reconciler.observe(Event::Namespace { value, terminating });
        }
        reconciler.observe(Event::Providers(known.providers.clone()));
        let shared = Arc::new(Shared::new(reconciler));
        known.open.insert(namespace.clone(), shared.clone());
        // Nobody listens while the process ends, and then nothing is to be done either.
        let _ = self.opened.send(shared.clone());
        shared
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    fn with<T>(&self, namespace: &str, look: impl FnOnce(&Index) -> T) -> Option<T> {
        let shared = self.known().open.get(namespace).cloned()?;
        let reconciler = shared.lock();
        Some(look(reconciler.index()))
    }
}

impl ResourceView for World {
    fn metadata(&self, namespace: &str, name: &str) -> Option<ResourceMeta> {
        self.with(namespace, |index| index.metadata(name).cloned())?
    }

    fn recorded(&self, namespace: &str, name: &str) -> Vec<InstanceKey> {
        let keys = |index: &Index| index.addresses(name).map(|address| address.key.clone()).collect();
        self.with(namespace, keys).unwrap_or_default()
    }

    fn indexed(&self, namespace: &str, name: &str) -> Vec<InstanceKey> {
        let names = BTreeSet::from([name.into()]);
        let keys = |index: &Index| index.indexed(&names).map(|address| address.key.clone()).collect();
        self.with(namespace, keys).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, Reason};
    use crate::plan::Held;
    use crate::process::SystemRandom;

    #[test]
    fn a_namespace_opens_with_its_first_object_and_closes_when_it_is_empty() {
        let (world, mut opened) = World::new(1, Arc::new(SystemRandom));
        let shop: Arc<str> = "shop".into();
        let value = Value::map([("name", Value::from("shop"))]);
        world.apply(&shop, Event::Namespace { value, terminating: Some(Version(1)) });
        world.apply(&shop, Event::ResourceDeleted("a".into()));
        assert!(opened.try_recv().is_err());
        let held = Held { reason: Reason::RecordUnreadable, message: "damaged".into() };
        world.apply(&shop, Event::RecordUnreadable(Address::single("a"), held));
        let shared = opened.try_recv().unwrap();
        assert!(shared.lock().index().is_terminating(), "what was known of the namespace is known to its index");
        assert!(!world.close_if_empty(&shared));
        world.apply(&shop, Event::RecordDeleted(Address::single("a"), Version(1)));
        assert!(world.close_if_empty(&shared));
        assert!(world.open_namespaces().is_empty());
    }
}
