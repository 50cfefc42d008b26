//! Caches the ConfigMaps and Secrets that Resources read, as the service account of each Resource reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::load::{DataLookup, Instance, ProviderConfig};
use model::{DataRef, Name};

/// One `ConfigMap` or Secret of the namespace, read as one service account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputKey {
    pub service_account: Arc<str>,
    pub object: DataRef,
}

#[derive(Clone, Debug)]
struct CachedInput {
    data: DataLookup,
    /// Increases with every change of `data`.
    version: u64,
    readers: BTreeSet<Reader>,
}

/// What reads an input, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reader {
    Resource(Name),
    ProviderConfig(Arc<str>),
}

#[derive(Clone, Debug, Default)]
pub struct InputCache {
    known: BTreeMap<InputKey, CachedInput>,
    /// The set of objects to watch has changed.
    changed: bool,
    /// Counts all changes, so that versions are unique.
    versions: u64,
}

impl InputCache {
    /// Updates the inputs of a Resource; `None`: it does not exist.
    pub fn set(&mut self, name: &Name, old: Option<&Instance>, new: Option<&Instance>) {
        self.set_reader(&Reader::Resource(name.clone()), old.map(keys), new.map(keys));
    }

    /// Updates the inputs of a reader.
    pub fn set_reader(&mut self, reader: &Reader, old: Option<BTreeSet<InputKey>>, new: Option<BTreeSet<InputKey>>) {
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        for key in old.difference(&new) {
            let left = self.known.get_mut(key).is_some_and(|known| {
                known.readers.remove(reader);
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
                CachedInput { data: DataLookup::Unread, version, readers: BTreeSet::new() }
            });
            known.readers.insert(reader.clone());
        }
    }

    /// Updates the data of an object. If it has changed, returns the previous data and the readers.
    pub fn update(&mut self, key: &InputKey, data: DataLookup) -> Option<(DataLookup, impl Iterator<Item = &Reader>)> {
        let known = self.known.get_mut(key).filter(|known| known.data != data)?;
        self.versions += 1;
        known.version = self.versions;
        Some((std::mem::replace(&mut known.data, data), known.readers.iter()))
    }

    /// Marks all data as unread, because all watches have ended.
    pub fn mark_unread(&mut self) {
        for known in self.known.values_mut() {
            self.versions += 1;
            known.version = self.versions;
            known.data = DataLookup::Unread;
        }
        self.changed = true;
    }

    /// The objects that are read.
    pub fn keys(&self) -> impl Iterator<Item = &InputKey> {
        self.known.keys()
    }

    pub fn data(&self, key: &InputKey) -> Option<&DataLookup> {
        self.known.get(key).map(|known| &known.data)
    }

    /// The objects to watch, if they have changed since the last call.
    pub fn take_desired(&mut self) -> Option<BTreeSet<InputKey>> {
        std::mem::take(&mut self.changed).then(|| self.known.keys().cloned().collect())
    }

    pub fn resolved(&self, instance: Arc<Instance>) -> Arc<Instance> {
        if instance.inputs.declared.is_empty() {
            return instance;
        }
        let account = &instance.service_account;
        let inputs = instance.inputs.resolve(Some(&instance.address), &|object: &DataRef| self.lookup(account, object));
        Arc::new(Instance { inputs, ..Instance::clone(&instance) })
    }

    pub fn resolved_config(&self, config: &Arc<ProviderConfig>) -> Arc<ProviderConfig> {
        if config.inputs.declared.is_empty() {
            return config.clone();
        }
        let account = &config.service_account;
        let inputs = config.inputs.resolve(None, &|object: &DataRef| self.lookup(account, object));
        Arc::new(ProviderConfig { inputs, ..config.as_ref().clone() })
    }

    /// The versions of the inputs of an instance.
    pub fn versions(&self, instance: &Instance) -> impl Iterator<Item = Option<u64>> {
        let keys = instance.inputs.objects().map(|object| InputKey::new(&instance.service_account, object));
        keys.map(|key| self.known.get(&key).map(|known| known.version))
    }

    fn lookup(&self, service_account: &Arc<str>, object: &DataRef) -> DataLookup {
        let known = self.known.get(&InputKey::new(service_account, object));
        known.map_or(DataLookup::Unread, |known| known.data.clone())
    }
}

impl InputKey {
    fn new(service_account: &Arc<str>, object: &DataRef) -> Self {
        Self { service_account: service_account.clone(), object: object.clone() }
    }
}

pub fn config_keys(config: &ProviderConfig) -> BTreeSet<InputKey> {
    config.inputs.objects().map(|object| InputKey::new(&config.service_account, object)).collect()
}

fn keys(instance: &Instance) -> BTreeSet<InputKey> {
    // Of a Resource that is being deleted, only the protection is evaluated.
    let is_read = instance.is_desired() || instance.prevent_destroy_when.is_some();
    let read = instance.inputs.objects().filter(|_| is_read);
    read.map(|object| InputKey::new(&instance.service_account, object)).collect()
}
