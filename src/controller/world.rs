//! All namespaces: the index of each, where watches put events in and where the namespace's task takes them out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};

use super::index::{Event, Index, Providers};
use crate::load::ProviderSpec;
use crate::model::{InstanceKey, Value};
use crate::store::{ResourceMeta, ResourceView};

/// One namespace, shared between the watches and its task.
#[derive(Debug)]
pub struct Shared {
    name: Arc<str>,
    index: Mutex<Index>,
    /// Rings when there is something to look at.
    pub wake: Notify,
}

impl Shared {
    /// The namespace.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The index. Hold it for as long as it takes to look something up, and never across an await.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        // The index is changed by whole steps that do not panic half way; what a panicking reader left is whole.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Known {
    open: BTreeMap<Arc<str>, Arc<Shared>>,
    /// `ns` of expressions and whether it is terminating, also of namespaces without any Resource.
    namespaces: BTreeMap<Arc<str>, (Value, bool)>,
    /// All Providers of the cluster.
    providers: Providers,
}

/// All namespaces that have a Resource, a record or a `ProviderConfig`.
#[derive(Debug)]
pub struct World {
    known: Mutex<Known>,
    opened: mpsc::UnboundedSender<Arc<Shared>>,
}

impl World {
    /// An empty world, and where it announces namespaces that begin to have something.
    pub fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Arc<Shared>>) {
        let (opened, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { known: Mutex::default(), opened }), receiver)
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
        shared.index().apply(event);
        shared.wake.notify_one();
    }

    /// Takes an event of all namespaces, or of the one given.
    pub fn apply_to_all(&self, namespace: Option<&str>, event: &Event) {
        for shared in self.open_namespaces() {
            if namespace.is_none_or(|only| *only == **shared.name()) {
                shared.index().apply(event.clone());
                shared.wake.notify_one();
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
        let empty = shared.index().is_empty();
        if empty {
            known.open.remove(shared.name());
        }
        empty
    }

    fn open(&self, known: &mut Known, namespace: &Arc<str>) -> Arc<Shared> {
        let mut index = Index::new(namespace.clone());
        if let Some((value, terminating)) = known.namespaces.get(namespace).cloned() {
            index.apply(Event::Namespace { value, terminating });
        }
        index.apply(Event::Providers(known.providers.clone()));
        let shared = Arc::new(Shared { name: namespace.clone(), index: Mutex::new(index), wake: Notify::new() });
        known.open.insert(namespace.clone(), shared.clone());
        // Nobody listens while the process ends, and then nothing is to be done either.
        let _ = self.opened.send(shared.clone());
        shared
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, namespace: &str, look: impl FnOnce(&Index) -> T) -> Option<T> {
        let shared = self.known().open.get(namespace).cloned()?;
        let index = shared.index();
        Some(look(&index))
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
    use crate::model::{Address, Reason, Version};
    use crate::plan::Held;

    #[test]
    fn a_namespace_opens_with_its_first_object_and_closes_when_it_is_empty() {
        let (world, mut opened) = World::new();
        let shop: Arc<str> = "shop".into();
        let value = Value::map([("name", Value::from("shop"))]);
        world.apply(&shop, Event::Namespace { value, terminating: true });
        world.apply(&shop, Event::ResourceDeleted("a".into()));
        assert!(opened.try_recv().is_err());
        let held = Held { reason: Reason::RecordUnreadable, message: "damaged".into() };
        world.apply(&shop, Event::RecordUnreadable(Address::single("a"), held));
        let shared = opened.try_recv().unwrap();
        assert!(shared.index().is_terminating(), "what was known of the namespace is known to its index");
        assert!(!world.close_if_empty(&shared));
        world.apply(&shop, Event::RecordDeleted(Address::single("a"), Version(1)));
        assert!(world.close_if_empty(&shared));
        assert!(world.open_namespaces().is_empty());
    }
}
