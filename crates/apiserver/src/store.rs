//! Storage: the objects by type and key, and the log of all changes, from which watches and lists of old versions are
//! served.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use super::fields::Owners;
use super::kinds::Type;

/// An object at one version. Immutable.
#[derive(Debug)]
pub struct Object {
    /// The whole object, with its resourceVersion.
    pub value: Value,
    pub version: u64,
    pub owners: Arc<Owners>,
    json: OnceLock<Bytes>,
}

impl Object {
    pub fn new(mut value: Value, version: u64, owners: Arc<Owners>) -> Arc<Self> {
        value["metadata"]["resourceVersion"] = version.to_string().into();
        Arc::new(Self { value, version, owners, json: OnceLock::new() })
    }

    /// An object that is not stored: the result of a dry run.
    pub fn unstored(value: Value, owners: Arc<Owners>) -> Arc<Self> {
        Arc::new(Self { value, version: 0, owners, json: OnceLock::new() })
    }

    /// The JSON text, which is cached.
    pub fn json(&self) -> Bytes {
        self.json.get_or_init(|| Bytes::from(self.value.to_string())).clone()
    }

    pub fn meta(&self, name: &str) -> &str {
        self.value["metadata"][name].as_str().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.meta("name")
    }

    pub fn namespace(&self) -> &str {
        self.meta("namespace")
    }

    pub fn uid(&self) -> &str {
        self.meta("uid")
    }

    pub fn is_deleting(&self) -> bool {
        !self.value["metadata"]["deletionTimestamp"].is_null()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

#[derive(Clone, Debug)]
pub struct Change {
    pub version: u64,
    pub at: Timestamp,
    pub what: Type,
    pub key: Arc<str>,
    pub happened: ChangeKind,
    /// The object before the change.
    pub before: Option<Arc<Object>>,
    /// The object after the change. For a deletion, its last state at the version of the deletion.
    pub object: Arc<Object>,
}

/// The objects of one type.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub objects: BTreeMap<Arc<str>, Arc<Object>>,
    pub log: VecDeque<Arc<Change>>,
    /// The version of the last change that is no longer in the log.
    pub forgotten: u64,
}

impl Table {
    /// The objects at `version`, by undoing the later changes.
    pub fn at(&self, version: u64) -> BTreeMap<Arc<str>, Arc<Object>> {
        let mut objects = self.objects.clone();
        for change in self.log.iter().rev().take_while(|change| change.version > version) {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        objects
    }

    /// The changes after `version`.
    pub fn since(&self, version: u64) -> impl Iterator<Item = &Arc<Change>> {
        let start = self.log.partition_point(|change| change.version <= version);
        self.log.range(start..)
    }

    pub fn last(&self) -> u64 {
        self.log.back().map_or(0, |change| change.version)
    }
}

/// The first version. It is large, so that versions are easy to distinguish from other numbers.
const FIRST: u64 = 100_000;

#[derive(Clone, Debug)]
pub struct Store {
    tables: BTreeMap<Type, Table>,
    log: VecDeque<Arc<Change>>,
    version: u64,
    /// The version up to which the log is compacted.
    compacted: u64,
}

impl Default for Store {
    fn default() -> Self {
        Self { tables: BTreeMap::new(), log: VecDeque::new(), version: FIRST, compacted: FIRST }
    }
}

/// The key of an object, which sorts like in etcd.
pub fn key(namespace: &str, name: &str) -> Arc<str> {
    if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() }
}

impl Store {
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    pub fn table(&self, what: &Type) -> Option<&Table> {
        self.tables.get(what)
    }

    pub fn tables(&self) -> impl Iterator<Item = (&Type, &Table)> {
        self.tables.iter()
    }

    pub fn get(&self, what: &Type, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.tables.get(what)?.objects.get(&key(namespace, name))
    }

    /// All changes after `version`, of all types.
    pub fn since(&self, version: u64) -> impl Iterator<Item = &Arc<Change>> {
        let start = self.log.partition_point(|change| change.version <= version);
        self.log.range(start..)
    }

    /// Writes an object at the next version.
    pub fn put(&mut self, now: Timestamp, what: &Type, value: Value, owners: Arc<Owners>) -> Arc<Object> {
        self.version += 1;
        let object = Object::new(value, self.version, owners);
        let key = key(object.namespace(), object.name());
        let table = self.tables.entry(what.clone()).or_default();
        let before = table.objects.insert(key.clone(), object.clone());
        let happened = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.note(now, what, key, happened, before, object.clone());
        object
    }

    /// Removes an object, and returns its last state.
    pub fn remove(&mut self, now: Timestamp, what: &Type, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let key = key(namespace, name);
        let before = self.tables.get_mut(what)?.objects.remove(&key)?;
        self.version += 1;
        let object = Object::new(before.value.clone(), self.version, before.owners.clone());
        self.note(now, what, key, ChangeKind::Deleted, Some(before), object.clone());
        Some(object)
    }

    fn note(
        &mut self,
        at: Timestamp,
        what: &Type,
        key: Arc<str>,
        happened: ChangeKind,
        before: Option<Arc<Object>>,
        object: Arc<Object>,
    ) {
        let what = what.clone();
        let change = Arc::new(Change { version: self.version, at, what: what.clone(), key, happened, before, object });
        self.log.push_back(change.clone());
        self.tables.entry(what).or_default().log.push_back(change);
    }

    /// Drops the changes up to `version`.
    pub fn compact(&mut self, version: u64) {
        self.compacted = self.compacted.max(version.min(self.version));
        compact_log(&mut self.log, self.compacted);
        for table in self.tables.values_mut() {
            table.forgotten = compact_log(&mut table.log, self.compacted).unwrap_or(table.forgotten);
        }
    }
}

/// Drops the changes up to `version`. Returns the version of the last one.
fn compact_log(log: &mut VecDeque<Arc<Change>>, version: u64) -> Option<u64> {
    let end = log.partition_point(|change| change.version <= version);
    log.drain(..end).next_back().map(|change| change.version)
}
