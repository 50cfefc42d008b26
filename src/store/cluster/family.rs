//! The state of one Resource that its instances share: the family index and the marks. One task at a time changes index
//! and marks; records of instances are written concurrently.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{Address, InstanceKey, Version};
use crate::store::secrets::{Family, RequestError, RetryPolicy, Secrets};

/// The maximum number of attempts to write an index. Only one controller is the leader, so a single conflict is rare.
const ATTEMPTS: usize = 5;

type Name = (Arc<str>, Arc<str>);

/// The Resources with writes in progress or with cached state.
#[derive(Debug, Default)]
pub(super) struct FamilyIndexes(Mutex<BTreeMap<Name, Arc<FamilyIndex>>>);

impl FamilyIndexes {
    pub(super) fn of(&self, namespace: &Arc<str>, name: &Arc<str>) -> Arc<FamilyIndex> {
        let name = (namespace.clone(), name.clone());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name).or_insert_with_key(|name| Arc::new(FamilyIndex::new(name.clone()))).clone()
    }

    /// Removes a Resource without instances, unless another task uses it. If the watch still shows instances
    /// (`recorded`), the entry stays, so that the removal of the last instance is detected.
    pub(super) fn prune(&self, home: &Arc<FamilyIndex>, recorded: &[Address]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One reference is the map's and one is the caller's; no other can be taken while the map is locked.
        let idle = Arc::strong_count(home) == 2 && home.state.try_lock().is_ok_and(|state| state.is_empty(recorded));
        if idle {
            all.remove(&home.name);
        }
    }
}

/// The shared state of one Resource.
#[derive(Debug)]
pub(super) struct FamilyIndex {
    name: Name,
    /// Instances that wait to be added to the index (`true`) or removed from it. The next writer includes all of them.
    announced: Mutex<BTreeMap<Address, bool>>,
    state: tokio::sync::Mutex<FamilyState>,
}

#[derive(Debug, Default)]
struct FamilyState {
    /// Instances that have a record, as far as this process knows, in order. A list, because most Resources have one.
    recorded: Vec<Address>,
    /// Instances whose record this process has removed, in order. The watch may still show them.
    removed: Vec<Address>,
    /// The index, after it has been read or written.
    index: Option<StoredIndex>,
    /// The UID of the Resource that this process has marked. The watch may not show it yet.
    marked: Option<Arc<str>>,
}

/// The index on the API server.
#[derive(Clone, Debug, Default)]
struct StoredIndex {
    instances: BTreeSet<Address>,
    /// See [`Family::rebuilt`].
    rebuilt: bool,
    /// `None` while the index does not exist.
    version: Option<Version>,
}

impl FamilyState {
    fn has_record(&mut self, address: &Address) {
        take_from(&mut self.removed, address);
        add_to(&mut self.recorded, address);
    }

    fn has_no_record(&mut self, address: &Address) {
        take_from(&mut self.recorded, address);
        add_to(&mut self.removed, address);
    }

    fn is_empty(&self, recorded: &[Address]) -> bool {
        self.recorded.is_empty()
            && self.index.as_ref().is_none_or(|index| index.instances.is_empty())
            && !self.removed.iter().any(|address| recorded.contains(address))
    }
}

fn add_to(ordered: &mut Vec<Address>, address: &Address) {
    if let Err(at) = ordered.binary_search(address) {
        if ordered.is_empty() {
            ordered.reserve_exact(1);
        }
        ordered.insert(at, address.clone());
    }
}

fn take_from(ordered: &mut Vec<Address>, address: &Address) {
    if let Ok(at) = ordered.binary_search(address) {
        ordered.remove(at);
    }
}

/// The instances of a Resource, as the watches show them.
pub(super) struct Siblings {
    pub(super) recorded: Vec<Address>,
    pub(super) indexed: Vec<Address>,
    /// Whether the Resource has our marks.
    pub(super) marked: bool,
}

/// Exclusive access to the index and marks of a Resource.
pub(super) struct FamilyGuard<'h> {
    family: &'h FamilyIndex,
    state: tokio::sync::MutexGuard<'h, FamilyState>,
}

impl FamilyIndex {
    fn new(name: Name) -> Self {
        Self { name, announced: Mutex::default(), state: tokio::sync::Mutex::default() }
    }

    /// Waits for exclusive access, with a pending change of the index.
    pub(super) async fn lock(&self, address: &Address, wanted: bool) -> FamilyGuard<'_> {
        if address.key != InstanceKey::None {
            self.pending().insert(address.clone(), wanted);
        }
        FamilyGuard { family: self, state: self.state.lock().await }
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<Address, bool>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FamilyGuard<'_> {
    pub(super) fn marked(&self, uid: &str) -> bool {
        self.state.marked.as_deref() == Some(uid)
    }

    pub(super) fn set_marked(&mut self, uid: Option<Arc<str>>) {
        self.state.marked = uid;
    }

    /// Whether the Resource has a record for another address.
    pub(super) fn has_others(&self, address: &Address, siblings: &Siblings) -> bool {
        let indexed = self.state.index.iter().flat_map(|index| &index.instances);
        self.state.recorded.iter().chain(indexed).any(|other| other != address)
            || siblings.recorded.iter().any(|other| other != address && !self.is_removed(other))
    }

    fn is_removed(&self, address: &Address) -> bool {
        self.state.removed.binary_search(address).is_ok()
    }

    fn has_record(&self, address: &Address, siblings: &Siblings) -> bool {
        self.state.recorded.binary_search(address).is_ok()
            || (siblings.recorded.contains(address) && !self.is_removed(address))
    }

    /// Whether the object without a key has sibling instances; the index then lists it as well.
    fn is_one_of_several(&self, siblings: &Siblings) -> bool {
        let known = self.state.index.iter().flat_map(|index| &index.instances).chain(&self.state.recorded);
        let seen = siblings.recorded.iter().chain(&siblings.indexed).filter(|other| !self.is_removed(other));
        known.chain(seen).any(|other| other.key != InstanceKey::None)
            || siblings.indexed.iter().any(|other| other.key == InstanceKey::None)
            || self.state.index.as_ref().is_some_and(|index| !index.instances.is_empty())
    }

    /// Adds an instance with a record to the index.
    pub(super) async fn add(
        &mut self,
        secrets: &Secrets,
        address: &Address,
        uid: &Arc<str>,
        siblings: &Siblings,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        self.state.has_record(address);
        self.update(secrets, (address, true), uid, siblings, policy).await
    }

    /// Removes an instance from the index, before its record is removed.
    pub(super) async fn remove(
        &mut self,
        secrets: &Secrets,
        address: &Address,
        uid: &Arc<str>,
        siblings: &Siblings,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        self.update(secrets, (address, false), uid, siblings, policy).await?;
        self.state.has_no_record(address);
        Ok(())
    }

    /// Reads the index from the server.
    pub(super) async fn indexed(
        &mut self,
        secrets: &Secrets,
        policy: RetryPolicy,
    ) -> Result<BTreeSet<Address>, RequestError> {
        self.state.index = None;
        let index = self.index(secrets, policy).await?;
        let instances = index.instances.clone();
        self.state.index = Some(index);
        Ok(instances)
    }

    /// Deletes the index of a Resource without instances.
    pub(super) async fn clear(
        &mut self,
        secrets: &Secrets,
        uid: &Arc<str>,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        let before = self.index(secrets, policy).await?;
        if before.version.is_some() {
            self.write(secrets, StoredIndex { instances: BTreeSet::new(), ..before }, uid, policy).await?;
        }
        self.state.recorded.clear();
        self.state.index = Some(StoredIndex::default());
        Ok(())
    }

    /// Applies all pending changes to the index in at most one write. If that fails, each waiting task tries its own
    /// change.
    async fn update(
        &mut self,
        secrets: &Secrets,
        (address, wanted): (&Address, bool),
        uid: &Arc<str>,
        siblings: &Siblings,
        policy: RetryPolicy,
    ) -> Result<(), RequestError> {
        if address.key == InstanceKey::None && !self.is_one_of_several(siblings) {
            return Ok(());
        }
        let single = Address::single(address.name.clone());
        let mut pending = std::mem::take(&mut *self.family.pending());
        pending.insert(address.clone(), wanted);
        let single_has_record = pending.get(&single) != Some(&false) && self.has_record(&single, siblings);
        if single_has_record {
            pending.insert(single.clone(), true);
        }
        for _ in 0..ATTEMPTS {
            let before = self.index(secrets, policy).await?;
            let mut instances = before.instances.clone();
            for (address, wanted) in &pending {
                if *wanted {
                    instances.insert(address.clone())
                } else {
                    instances.remove(address)
                };
            }
            // For an object without siblings, the marks of the Resource suffice.
            if single_has_record && instances.iter().all(|instance| *instance == single) {
                instances.clear();
            }
            if instances == before.instances {
                self.state.index = Some(before);
                return Ok(());
            }
            // Marks are added after the index, and a single object has no index. So a marked Resource had one before.
            let is_lost = before.version.is_none() && siblings.marked && !single_has_record;
            let rebuilt = before.rebuilt || is_lost;
            match self.write(secrets, StoredIndex { instances, rebuilt, ..before }, uid, policy).await {
                Ok(written) => {
                    self.state.index = Some(written);
                    return Ok(());
                }
                // The cached index is out of date: read it again.
                Err(RequestError::Conflict) => {}
                Err(other) => return Err(other),
            }
        }
        Err(RequestError::Unavailable(format!("the index of {} keeps changing", address.name)))
    }

    /// Takes the cached index. It counts as unknown until a write has succeeded.
    async fn index(&mut self, secrets: &Secrets, policy: RetryPolicy) -> Result<StoredIndex, RequestError> {
        if let Some(known) = self.state.index.take() {
            return Ok(known);
        }
        let (namespace, name) = &self.family.name;
        let family = secrets.get_family(namespace, name, policy).await?;
        let index = |Family { instances, rebuilt, version, .. }| StoredIndex { instances, rebuilt, version };
        Ok(family.map(index).unwrap_or_default())
    }

    /// Replaces the stored version of the index; deletes an index without instances.
    async fn write(
        &self,
        secrets: &Secrets,
        index: StoredIndex,
        uid: &Arc<str>,
        policy: RetryPolicy,
    ) -> Result<StoredIndex, RequestError> {
        let (namespace, name) = &self.family.name;
        let StoredIndex { instances, rebuilt, version: base } = index;
        if let Some(base) = base
            && instances.is_empty()
        {
            return secrets.delete_family(namespace, name, base, policy).await.map(|()| StoredIndex::default());
        }
        let (namespace, name, uid) = (namespace.clone(), name.clone(), uid.clone());
        let family = Family { namespace, name, uid, instances, rebuilt, version: base };
        let version = Some(secrets.put_family(&family, base, policy).await?);
        Ok(StoredIndex { instances: family.instances, rebuilt, version })
    }
}
