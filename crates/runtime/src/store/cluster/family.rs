//! The state of one Resource that its instances share: the family index and the marks. One task at a time changes index
//! and marks; records of instances are written concurrently.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ResourceView;
use super::marks::{Marks, ResourceMeta};
use crate::execute::Loss;
use crate::store::secrets::{Family, RequestError, RetryPolicy, Secrets};
use model::{Address, Name, Namespace, Uid, Version};

/// The maximum number of attempts to write an index. Only one controller leads in a namespace, so a single conflict is
/// rare.
const ATTEMPTS: usize = 5;

/// Namespace and name of a Resource.
pub type FamilyName = (Namespace, Name);

/// The number of Resources below which those that are not used are not looked for.
const SWEEP_FROM: usize = 256;

/// The Resources with writes in progress or with cached state.
#[derive(Debug, Default)]
pub struct FamilyIndexes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    all: BTreeMap<FamilyName, Arc<FamilyIndex>>,
    /// How many remained after the last sweep.
    swept: usize,
}

impl FamilyIndexes {
    pub fn of(&self, namespace: &Namespace, name: &Name) -> Arc<FamilyIndex> {
        let name = (namespace.clone(), name.clone());
        self.known().all.entry(name).or_insert_with_key(|name| Arc::new(FamilyIndex::new(name.clone()))).clone()
    }

    /// Removes a Resource if the watches show everything that this process has written about it, unless another task
    /// uses it. If they still show instances that were removed, the entry stays, so that the removal of the last one is
    /// detected.
    pub fn prune(&self, family: &Arc<FamilyIndex>, shown: &Siblings) {
        let mut known = self.known();
        // One reference is the map's and one is the caller's; no other can be taken while the map is locked.
        let idle = Arc::strong_count(family) == 2 && family.state.try_lock().is_ok_and(|state| state.is_shown(shown));
        if idle {
            known.all.remove(&family.name);
        }
    }

    /// Forgets what is known about the Resources of a namespace.
    pub fn forget(&self, namespace: &Namespace) {
        let mut known = self.known();
        let from: FamilyName = (namespace.clone(), "".into());
        let names: Vec<FamilyName> =
            known.all.range(from..).map(|(name, _)| name.clone()).take_while(|(of, _)| of == namespace).collect();
        for name in names {
            known.all.remove(&name);
        }
    }

    /// Removes the Resources that [`Self::prune`] would remove, if their number has doubled since the last time.
    pub fn sweep(&self, shown: impl Fn(&FamilyName) -> Siblings) {
        let unused: Vec<_> = {
            let known = self.known();
            if known.all.len() < SWEEP_FROM.max(2 * known.swept) {
                return;
            }
            known.all.values().filter(|family| Arc::strong_count(family) == 1).cloned().collect()
        };
        unused.iter().for_each(|family| self.prune(family, &shown(&family.name)));
        let mut known = self.known();
        known.swept = known.all.len();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shared state of one Resource.
#[derive(Debug)]
pub struct FamilyIndex {
    name: FamilyName,
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
    /// Instances that another task has removed from the index, in order. Their own task has nothing left to do.
    detached: Vec<Address>,
    /// The index, after it has been read or written.
    index: Option<StoredIndex>,
    /// The UID of the Resource that this process has marked. The watch may not show it yet.
    marked: Option<Uid>,
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
        take_from(&mut self.detached, address);
        add_to(&mut self.recorded, address);
    }

    fn has_no_record(&mut self, address: &Address) {
        take_from(&mut self.recorded, address);
        add_to(&mut self.removed, address);
    }

    fn is_shown(&self, shown: &Siblings) -> bool {
        self.index.as_ref().is_none_or(|index| index.instances.is_empty())
            && !self.removed.iter().any(|address| shown.recorded.contains(address))
            && (self.recorded.is_empty()
                || (shown.annotated && self.recorded.iter().all(|address| shown.recorded.contains(address))))
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

fn take_from(ordered: &mut Vec<Address>, address: &Address) -> bool {
    let at = ordered.binary_search(address);
    at.is_ok_and(|at| ordered.remove(at) == *address)
}

/// The instances of a Resource, as the watches show them.
#[derive(Default)]
pub struct Siblings {
    pub recorded: Vec<Address>,
    pub indexed: Vec<Address>,
    /// Whether the Resource has our annotation.
    pub annotated: bool,
}

/// The API server, as a guard uses it.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub secrets: &'a Secrets,
    pub marks: &'a Marks,
    pub view: &'a dyn ResourceView,
    pub policy: RetryPolicy,
}

/// Exclusive access to the index and marks of a Resource.
pub struct FamilyGuard<'h> {
    family: &'h FamilyIndex,
    access: Access<'h>,
    state: tokio::sync::MutexGuard<'h, FamilyState>,
    /// The changes of the index to write: that of this task, and those that other tasks have announced.
    pending: BTreeMap<Address, bool>,
}

impl FamilyIndex {
    fn new(name: FamilyName) -> Self {
        Self { name, announced: Mutex::default(), state: tokio::sync::Mutex::default() }
    }

    /// Waits for exclusive access.
    pub async fn lock<'h>(&'h self, access: Access<'h>) -> FamilyGuard<'h> {
        FamilyGuard { family: self, access, state: self.state.lock().await, pending: BTreeMap::new() }
    }

    /// Waits for exclusive access, to add an instance to the index (`true`) or to remove it.
    pub async fn lock_to_change<'h>(&'h self, access: Access<'h>, address: &Address, wanted: bool) -> FamilyGuard<'h> {
        if !address.is_single() {
            self.announced().insert(address.clone(), wanted);
        }
        let mut guard = self.lock(access).await;
        guard.pending = std::mem::take(&mut *self.announced());
        guard
    }

    fn announced(&self) -> MutexGuard<'_, BTreeMap<Address, bool>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FamilyGuard<'_> {
    pub fn marked(&self, uid: &str) -> bool {
        self.state.marked.as_deref() == Some(uid)
    }

    pub fn set_marked(&mut self, uid: Option<Uid>) {
        self.state.marked = uid;
    }

    /// Whether no object remains after the pending removals and the one of `address`. The server confirms it: if this
    /// replica has lost its Lease, another one may have added an instance since the index was read. `completes`: see
    /// [`Self::release`].
    async fn is_last(
        &mut self,
        address: &Address,
        uid: &Uid,
        siblings: &Siblings,
        completes: bool,
    ) -> Result<bool, RequestError> {
        if !self.is_in_family(address, siblings) {
            return Ok(true);
        }
        let was_cached = self.state.index.is_some();
        let mut is_last = self.is_last_indexed(address, uid, siblings, completes).await?;
        if is_last && was_cached {
            self.state.index = None;
            is_last = self.is_last_indexed(address, uid, siblings, completes).await?;
        }
        Ok(is_last)
    }

    async fn is_last_indexed(
        &mut self,
        address: &Address,
        uid: &Uid,
        siblings: &Siblings,
        completes: bool,
    ) -> Result<bool, RequestError> {
        let index = self.index().await?;
        let indexed = index.instances.clone();
        let is_complete = index.version.is_some() && !index.rebuilt;
        let is_lost = !completes && (index.rebuilt || self.is_lost(&index, uid, siblings).await?);
        self.state.index = Some(index);
        if is_lost {
            // Objects whose records were lost may exist, and the marks show that.
            return Ok(false);
        }
        let added = self.pending.iter().filter(|(_, wanted)| **wanted).map(|(other, _)| other.clone());
        // What this process knows may be out of date, so it does not add to a complete index.
        let recorded = if is_complete { BTreeSet::new() } else { self.recorded(siblings) };
        let mut others = indexed.into_iter().chain(recorded).chain(added);
        Ok(!others.any(|other| other != *address && self.pending.get(&other) != Some(&false)))
    }

    /// The instances that have a record, as far as is known.
    fn recorded(&self, siblings: &Siblings) -> BTreeSet<Address> {
        let seen = siblings.recorded.iter().filter(|other| !self.is_removed(other));
        self.state.recorded.iter().chain(seen).cloned().collect()
    }

    fn is_removed(&self, address: &Address) -> bool {
        self.state.removed.binary_search(address).is_ok()
    }

    /// Whether the index lists the address. It lists the object without a key only if it has sibling instances.
    pub fn is_in_family(&self, address: &Address, siblings: &Siblings) -> bool {
        let known = self.state.index.iter().flat_map(|index| &index.instances).chain(&self.state.recorded);
        let seen = siblings.recorded.iter().chain(&siblings.indexed).filter(|other| !self.is_removed(other));
        !address.is_single()
            || known.chain(seen).any(|other| !other.is_single())
            || siblings.indexed.iter().any(Address::is_single)
            || self.state.index.as_ref().is_some_and(|index| !index.instances.is_empty())
    }

    /// Why an instance without a record may have had one. `None`: the index proves that it never had one. Sends no
    /// request if the cached index proves it.
    pub async fn loss(
        &mut self,
        address: &Address,
        uid: &Uid,
        siblings: &Siblings,
    ) -> Result<Option<Loss>, RequestError> {
        if !self.is_in_family(address, siblings) {
            return Ok(None);
        }
        let was_cached = self.state.index.is_some();
        self.update(uid, siblings, false, None).await?;
        if was_cached && self.cached_loss(address).is_some() {
            self.state.index = None;
            self.update(uid, siblings, false, None).await?;
        }
        let loss = self.cached_loss(address);
        if loss == Some(Loss::Index)
            && self.state.index.as_ref().is_some_and(|index| index.rebuilt && index.version.is_some())
            && !self.is_annotated(uid).await?
        {
            // The marks were removed with the last instance, so this is about earlier objects.
            if let Some(index) = &mut self.state.index {
                index.rebuilt = false;
            }
            return Ok(None);
        }
        Ok(loss)
    }

    fn cached_loss(&self, address: &Address) -> Option<Loss> {
        let index = self.state.index.as_ref()?;
        match index.instances.contains(address) {
            true => Some(Loss::Record),
            false => index.rebuilt.then_some(Loss::Index),
        }
    }

    /// Adds an instance with a record to the index. Returns whether the index is complete.
    pub async fn add(&mut self, address: &Address, uid: &Uid, siblings: &Siblings) -> Result<bool, RequestError> {
        self.state.has_record(address);
        if !self.is_in_family(address, siblings) {
            return Ok(true);
        }
        self.pending.insert(address.clone(), true);
        self.update(uid, siblings, false, None).await?;
        Ok(self.state.index.as_ref().is_some_and(|index| !index.rebuilt))
    }

    /// Removes an instance from the index, before its record is removed. The marks stay.
    pub async fn remove(&mut self, address: &Address, uid: &Uid, siblings: &Siblings) -> Result<(), RequestError> {
        if self.is_in_family(address, siblings) {
            self.pending.insert(address.clone(), false);
            self.update(uid, siblings, false, None).await?;
            take_from(&mut self.state.detached, address);
        }
        self.state.has_no_record(address);
        Ok(())
    }

    /// Removes the marks if this is the last instance of a family that has not lost its index, and then does the same as
    /// [`Self::remove`], unless another task has done both. With `completes`, a user has verified that the index and the
    /// known records are complete.
    pub async fn release(
        &mut self,
        address: &Address,
        uid: &Uid,
        siblings: &Siblings,
        completes: bool,
    ) -> Result<(), RequestError> {
        if take_from(&mut self.state.detached, address) {
            return Ok(());
        }
        if self.is_in_family(address, siblings) {
            self.pending.insert(address.clone(), false);
            self.update(uid, siblings, completes, Some(address)).await?;
            take_from(&mut self.state.detached, address);
        } else {
            self.remove_marks(uid).await?;
        }
        self.state.has_no_record(address);
        Ok(())
    }

    /// The record may still have the UID of an earlier Resource with the same name. The marks are those of the present
    /// one, and that record, or another one that is removed with it, is what they are for. Returns the UID of the present
    /// Resource.
    async fn remove_marks(&mut self, uid: &Uid) -> Result<Uid, RequestError> {
        let Access { marks, view, policy, .. } = self.access;
        let (namespace, name) = &self.family.name;
        // The view may lack marks that were added a moment ago.
        let known = view.metadata(namespace, name).filter(ResourceMeta::is_marked);
        let present = known.as_ref().map_or_else(|| uid.clone(), |meta| meta.uid.clone());
        marks.remove(namespace, name, &present, known, policy).await?;
        self.state.marked = None;
        Ok(present)
    }

    /// Adds the marks again for an instance of another replica, which found them before they were removed.
    async fn restore_marks(&self, uid: &Uid) -> Result<(), RequestError> {
        let Access { marks, policy, .. } = self.access;
        let (namespace, name) = &self.family.name;
        marks.add(namespace, name, uid, None, policy).await.map(drop)
    }

    /// Reads the index from the server.
    pub async fn indexed(&mut self) -> Result<BTreeSet<Address>, RequestError> {
        self.state.index = None;
        let index = self.index().await?;
        let instances = index.instances.clone();
        self.state.index = Some(index);
        Ok(instances)
    }

    /// Deletes the index of a Resource without instances.
    pub async fn clear(&mut self, uid: &Uid) -> Result<(), RequestError> {
        let before = self.index().await?;
        if before.version.is_some() {
            self.write(StoredIndex { instances: BTreeSet::new(), ..before }, uid).await?;
        }
        self.state.recorded.clear();
        self.state.index = Some(StoredIndex::default());
        Ok(())
    }

    /// Does the same as [`Self::try_update`], and repeats it after a conflict, which means that the cached index was out of
    /// date. Before each attempt, removes the marks if `released` is the last instance, or adds them again if it is not
    /// anymore.
    async fn update(
        &mut self,
        uid: &Uid,
        siblings: &Siblings,
        completes: bool,
        released: Option<&Address>,
    ) -> Result<(), RequestError> {
        let mut unmarked = None;
        for _ in 0..ATTEMPTS {
            if let Some(released) = released {
                match (self.is_last(released, uid, siblings, completes).await?, unmarked.take()) {
                    (true, _) => unmarked = Some(self.remove_marks(uid).await?),
                    (false, Some(present)) => self.restore_marks(&present).await?,
                    (false, None) => {}
                }
            }
            match self.try_update(uid, siblings, completes).await {
                Err(RequestError::Conflict) => {}
                done => return done,
            }
        }
        Err(RequestError::Unavailable(format!("the index of {} keeps changing", self.family.name.1)))
    }

    /// Applies all pending changes to the index in at most one write, and replaces an index that was lost. If that
    /// fails, each waiting task tries its own change; after a conflict, the next attempt reads the index again.
    async fn try_update(&mut self, uid: &Uid, siblings: &Siblings, completes: bool) -> Result<(), RequestError> {
        let single = Address::single(self.family.name.1.clone());
        let mut pending = std::mem::take(&mut self.pending);
        let recorded = self.recorded(siblings);
        let single_has_record = pending.get(&single) != Some(&false) && recorded.contains(&single);
        if single_has_record {
            pending.insert(single.clone(), true);
        }
        let before = self.index().await?;
        let is_lost = !completes && !single_has_record && self.is_lost(&before, uid, siblings).await?;
        let mut instances = before.instances.clone();
        if is_lost || completes {
            instances.extend(recorded);
        }
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
        let rebuilt = !completes && (before.rebuilt || is_lost);
        let is_unchanged = instances == before.instances && rebuilt == before.rebuilt;
        let after = StoredIndex { instances, rebuilt, ..before };
        let written = match is_unchanged || (after.version.is_none() && after.instances.is_empty()) {
            true => Ok(after),
            false => self.write(after, uid).await,
        };
        match written {
            Ok(index) => self.state.index = Some(index),
            Err(RequestError::Conflict) => {
                self.pending = pending;
                return Err(RequestError::Conflict);
            }
            Err(other) => return Err(other),
        }
        for (address, _) in pending.into_iter().filter(|(_, wanted)| !wanted) {
            self.state.has_no_record(&address);
            add_to(&mut self.state.detached, &address);
        }
        Ok(())
    }

    /// Whether the index is missing although it existed. It is written before the marks and removed after them, and an
    /// object without siblings has none. The annotation alone is proof: a user can have removed the finalizer. The server
    /// decides, because annotation and record in the view may be out of date.
    async fn is_lost(&self, index: &StoredIndex, uid: &Uid, siblings: &Siblings) -> Result<bool, RequestError> {
        if index.version.is_some() || !(siblings.annotated || self.marked(uid)) || !self.is_annotated(uid).await? {
            return Ok(false);
        }
        let (namespace, name) = &self.family.name;
        let single = Address::single(name.clone());
        Ok(self.access.secrets.get(namespace, &single, self.access.policy).await?.is_none())
    }

    /// Whether the Resource has our annotation on the server.
    async fn is_annotated(&self, uid: &Uid) -> Result<bool, RequestError> {
        let (namespace, name) = &self.family.name;
        let meta = self.access.marks.read(namespace, name, self.access.policy).await?;
        Ok(meta.is_some_and(|meta| meta.is_annotated() && meta.uid == *uid))
    }

    /// Takes the cached index. It counts as unknown until a write has succeeded.
    async fn index(&mut self) -> Result<StoredIndex, RequestError> {
        if let Some(known) = self.state.index.take() {
            return Ok(known);
        }
        let (namespace, name) = &self.family.name;
        let family = self.access.secrets.get_family(namespace, name, self.access.policy).await?;
        Ok(match family {
            Some(Family { instances, rebuilt, version, .. }) => StoredIndex { instances, rebuilt, version },
            None => StoredIndex::default(),
        })
    }

    /// Replaces the stored version of the index; deletes an index without instances.
    async fn write(&self, index: StoredIndex, uid: &Uid) -> Result<StoredIndex, RequestError> {
        let Access { secrets, policy, .. } = self.access;
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
