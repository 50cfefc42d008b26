//! What is known of the ConfigMaps and Secrets that Resources read, as the service account of each sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::load::{Data, Instance, ProviderConfig};
use crate::model::{Address, DataRef};

/// One `ConfigMap` or Secret of the namespace, as one service account sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputKey {
    /// Who reads it.
    pub service_account: Arc<str>,
    /// What is read.
    pub object: DataRef,
}

#[derive(Debug)]
struct Known {
    data: Data,
    /// A new number with every change of `data`.
    version: u64,
    /// The names of the Resources that read it.
    readers: BTreeSet<Arc<str>>,
}

#[derive(Debug, Default)]
pub(super) struct KnownInputs {
    known: BTreeMap<InputKey, Known>,
    /// Other objects are to be read than before.
    changed: bool,
    /// Counts all changes, so that no version comes twice.
    versions: u64,
}

impl KnownInputs {
    /// What a Resource reads from now on; `None` when there is none any more.
    pub(super) fn set(&mut self, name: &Arc<str>, old: Option<&Instance>, new: Option<&Instance>) {
        self.follow(name, old.map(keys), new.map(keys));
    }

    /// What a reader reads from now on, and what it read before.
    pub(super) fn follow(&mut self, name: &Arc<str>, old: Option<BTreeSet<InputKey>>, new: Option<BTreeSet<InputKey>>) {
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        for key in old.difference(&new) {
            let left = self.known.get_mut(key).is_some_and(|known| {
                known.readers.remove(name);
                known.readers.is_empty()
            });
            if left {
                self.known.remove(key);
                self.changed = true;
            }
        }
        for key in new {
            self.versions += 1;
            let version = self.versions;
            let known = self.known.entry(key).or_insert_with(|| {
                self.changed = true;
                Known { data: Data::Unread, version, readers: BTreeSet::new() }
            });
            known.readers.insert(name.clone());
        }
    }

    /// Takes what was read; gives the names of those that read it, when it is something else than before.
    pub(super) fn take(&mut self, key: &InputKey, data: Data) -> Option<(Data, impl Iterator<Item = &Arc<str>>)> {
        let known = self.known.get_mut(key).filter(|known| known.data != data)?;
        self.versions += 1;
        known.version = self.versions;
        Some((std::mem::replace(&mut known.data, data), known.readers.iter()))
    }

    /// Nobody reads anything any more, so nothing is known; all must be read again.
    pub(super) fn forget(&mut self) {
        for known in self.known.values_mut() {
            self.versions += 1;
            known.version = self.versions;
            known.data = Data::Unread;
        }
        self.changed = true;
    }

    /// What is to be read, when that has changed since the last call.
    pub(super) fn take_wanted(&mut self) -> Option<BTreeSet<InputKey>> {
        std::mem::take(&mut self.changed).then(|| self.known.keys().cloned().collect())
    }

    /// The instance with the values of its inputs.
    pub(super) fn resolved(&self, instance: Arc<Instance>) -> Arc<Instance> {
        if instance.inputs.declared.is_empty() {
            return instance;
        }
        let find = |object: &DataRef| self.get(&instance, object).map_or(Data::Unread, |known| known.data.clone());
        let inputs = instance.inputs.resolve(&instance.address, &find);
        Arc::new(Instance { inputs, ..Instance::clone(&instance) })
    }

    /// The settings of a provider with the values of their inputs.
    pub(super) fn resolved_config(&self, config: &Arc<ProviderConfig>) -> Arc<ProviderConfig> {
        if config.inputs.declared.is_empty() {
            return config.clone();
        }
        let find = |object: &DataRef| {
            let key = InputKey { service_account: config.service_account.clone(), object: object.clone() };
            self.known.get(&key).map_or(Data::Unread, |known| known.data.clone())
        };
        let inputs = config.inputs.resolve(&Address::single(config.name.clone()), &find);
        Arc::new(ProviderConfig { inputs, ..config.as_ref().clone() })
    }

    /// The versions of what an instance reads.
    pub(super) fn versions(&self, instance: &Instance) -> impl Iterator<Item = Option<u64>> {
        instance.inputs.objects().map(|object| self.get(instance, object).map(|known| known.version))
    }

    fn get(&self, instance: &Instance, object: &DataRef) -> Option<&Known> {
        self.known.get(&key(instance, object))
    }
}

fn key(instance: &Instance, object: &DataRef) -> InputKey {
    InputKey { service_account: instance.service_account.clone(), object: object.clone() }
}

/// What the settings of a provider are read from.
pub(super) fn config_keys(config: &ProviderConfig) -> BTreeSet<InputKey> {
    let key = |object: &DataRef| InputKey { service_account: config.service_account.clone(), object: object.clone() };
    config.inputs.objects().map(key).collect()
}

fn keys(instance: &Instance) -> BTreeSet<InputKey> {
    // A Resource that is being deleted needs no values: nothing of it is evaluated any more.
    let read = instance.inputs.objects().filter(|_| instance.is_wanted());
    read.map(|object| key(instance, object)).collect()
}
