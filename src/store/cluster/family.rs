//! What belongs together because it is of one Resource: its instances, their index, and the marks on it. Marks and
//! index are decided by one task at a time; records of instances are written side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{Address, InstanceKey, Version};
use crate::store::secrets::{Failure, Family, Patience, Secrets};

/// An index that somebody else changes all the time is not fought over for longer than this. Only one controller
/// leads, so a single conflict is rare.
const ATTEMPTS: usize = 5;

type Name = (Arc<str>, Arc<str>);

/// The Resources that something is being written for, or of which something is remembered.
#[derive(Debug, Default)]
pub(super) struct Households(Mutex<BTreeMap<Name, Arc<Household>>>);

impl Households {
    pub(super) fn of(&self, namespace: &Arc<str>, name: &Arc<str>) -> Arc<Household> {
        let name = (namespace.clone(), name.clone());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name).or_insert_with_key(|name| Arc::new(Household::new(name.clone()))).clone()
    }

    /// Forgets a Resource that has no instance any more, unless another task is at it. What the watch still shows of it
    /// (`recorded`) is remembered to be gone: its last instance must see that it is the last one.
    pub(super) fn tidy(&self, home: &Arc<Household>, recorded: &[Address]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One count is the map's and one is ours; nobody can get at another while the map is locked.
        let idle = Arc::strong_count(home) == 2 && home.state.try_lock().is_ok_and(|state| state.is_empty(recorded));
        if idle {
            all.remove(&home.name);
        }
    }
}

/// One Resource.
#[derive(Debug)]
pub(super) struct Household {
    name: Name,
    /// Instances that wait to enter (`true`) or leave the index: whoever writes next takes them all along.
    announced: Mutex<BTreeMap<Address, bool>>,
    state: tokio::sync::Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Instances that this process knows to have a record, in order. A list, since most Resources have one.
    live: Vec<Address>,
    /// Instances whose record this process has removed, in order: the watch may not have told yet.
    gone: Vec<Address>,
    /// The index, once it has been read or written.
    index: Option<Index>,
    /// The UID of the Resource that we have marked: the watch may not have told yet.
    marked: Option<Arc<str>>,
}

/// The index as the server has it.
#[derive(Clone, Debug, Default)]
struct Index {
    instances: BTreeSet<Address>,
    /// As in [`Family`].
    rebuilt: bool,
    /// Nothing while there is none.
    version: Option<Version>,
}

impl State {
    fn has_record(&mut self, address: &Address) {
        take_from(&mut self.gone, address);
        add_to(&mut self.live, address);
    }

    fn has_no_record(&mut self, address: &Address) {
        take_from(&mut self.live, address);
        add_to(&mut self.gone, address);
    }

    fn is_empty(&self, recorded: &[Address]) -> bool {
        self.live.is_empty()
            && self.index.as_ref().is_none_or(|index| index.instances.is_empty())
            && !self.gone.iter().any(|address| recorded.contains(address))
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

/// What the watches have shown of the instances of a Resource.
pub(super) struct Siblings {
    pub(super) recorded: Vec<Address>,
    pub(super) indexed: Vec<Address>,
    /// Whether the Resource has our marks.
    pub(super) marked: bool,
}

/// The right to decide.
pub(super) struct Members<'h> {
    home: &'h Household,
    state: tokio::sync::MutexGuard<'h, State>,
}

impl Household {
    fn new(name: Name) -> Self {
        Self { name, announced: Mutex::default(), state: tokio::sync::Mutex::default() }
    }

    /// Waits for the right to decide, with the wish that an instance be in the index or not.
    pub(super) async fn enter(&self, address: &Address, wanted: bool) -> Members<'_> {
        if address.key != InstanceKey::None {
            self.announced().insert(address.clone(), wanted);
        }
        Members { home: self, state: self.state.lock().await }
    }

    fn announced(&self) -> MutexGuard<'_, BTreeMap<Address, bool>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Members<'_> {
    pub(super) fn marked(&self, uid: &str) -> bool {
        self.state.marked.as_deref() == Some(uid)
    }

    pub(super) fn set_marked(&mut self, uid: Option<Arc<str>>) {
        self.state.marked = uid;
    }

    /// Whether the Resource has a record besides that of `address`.
    pub(super) fn others(&self, address: &Address, siblings: &Siblings) -> bool {
        let indexed = self.state.index.iter().flat_map(|index| &index.instances);
        self.state.live.iter().chain(indexed).any(|other| other != address)
            || siblings.recorded.iter().any(|other| other != address && !self.is_gone(other))
    }

    fn is_gone(&self, address: &Address) -> bool {
        self.state.gone.binary_search(address).is_ok()
    }

    fn has_record(&self, address: &Address, siblings: &Siblings) -> bool {
        self.state.live.binary_search(address).is_ok()
            || (siblings.recorded.contains(address) && !self.is_gone(address))
    }

    /// Whether the object without a key is one of several: then the index names it, too.
    fn is_one_of_several(&self, siblings: &Siblings) -> bool {
        let known = self.state.index.iter().flat_map(|index| &index.instances).chain(&self.state.live);
        let seen = siblings.recorded.iter().chain(&siblings.indexed).filter(|other| !self.is_gone(other));
        known.chain(seen).any(|other| other.key != InstanceKey::None)
            || siblings.indexed.iter().any(|other| other.key == InstanceKey::None)
            || self.state.index.as_ref().is_some_and(|index| !index.instances.is_empty())
    }

    /// The instance has a record, and is to be in the index.
    pub(super) async fn join(
        &mut self,
        secrets: &Secrets,
        address: &Address,
        uid: &Arc<str>,
        siblings: &Siblings,
        patience: Patience,
    ) -> Result<(), Failure> {
        self.state.has_record(address);
        self.settle(secrets, (address, true), uid, siblings, patience).await
    }

    /// The record of the instance is about to go.
    pub(super) async fn leave(
        &mut self,
        secrets: &Secrets,
        address: &Address,
        uid: &Arc<str>,
        siblings: &Siblings,
        patience: Patience,
    ) -> Result<(), Failure> {
        self.settle(secrets, (address, false), uid, siblings, patience).await?;
        self.state.has_no_record(address);
        Ok(())
    }

    /// The instances that the index names on the server, whatever was known of it.
    pub(super) async fn indexed(
        &mut self,
        secrets: &Secrets,
        patience: Patience,
    ) -> Result<BTreeSet<Address>, Failure> {
        self.state.index = None;
        let index = self.index(secrets, patience).await?;
        let instances = index.instances.clone();
        self.state.index = Some(index);
        Ok(instances)
    }

    /// Nothing is left of the Resource: its index goes.
    pub(super) async fn leave_all(
        &mut self,
        secrets: &Secrets,
        uid: &Arc<str>,
        patience: Patience,
    ) -> Result<(), Failure> {
        let before = self.index(secrets, patience).await?;
        if before.version.is_some() {
            self.write(secrets, Index { instances: BTreeSet::new(), ..before }, uid, patience).await?;
        }
        self.state.live.clear();
        self.state.index = Some(Index::default());
        Ok(())
    }

    /// Brings the index to what all who wait wish; one write, or none. If it fails they find their wish unfulfilled
    /// and try for themselves.
    async fn settle(
        &mut self,
        secrets: &Secrets,
        (address, wanted): (&Address, bool),
        uid: &Arc<str>,
        siblings: &Siblings,
        patience: Patience,
    ) -> Result<(), Failure> {
        if address.key == InstanceKey::None && !self.is_one_of_several(siblings) {
            return Ok(());
        }
        let single = Address::single(address.name.clone());
        let mut wishes = std::mem::take(&mut *self.home.announced());
        wishes.insert(address.clone(), wanted);
        let single_has_record = wishes.get(&single) != Some(&false) && self.has_record(&single, siblings);
        if single_has_record {
            wishes.insert(single.clone(), true);
        }
        for _ in 0..ATTEMPTS {
            let before = self.index(secrets, patience).await?;
            let mut instances = before.instances.clone();
            for (address, wanted) in &wishes {
                if *wanted {
                    instances.insert(address.clone())
                } else {
                    instances.remove(address)
                };
            }
            // Alone, the marks of the Resource say all there is to say of it.
            if single_has_record && instances.iter().all(|instance| *instance == single) {
                instances.clear();
            }
            if instances == before.instances {
                self.state.index = Some(before);
                return Ok(());
            }
            // The marks come after the index, and those of a single object have none: otherwise there was one.
            let is_lost = before.version.is_none() && siblings.marked && !single_has_record;
            let rebuilt = before.rebuilt || is_lost;
            match self.write(secrets, Index { instances, rebuilt, ..before }, uid, patience).await {
                Ok(written) => {
                    self.state.index = Some(written);
                    return Ok(());
                }
                // What we thought to know is not so any more: it is read anew.
                Err(Failure::Conflict) => {}
                Err(other) => return Err(other),
            }
        }
        Err(Failure::Unavailable(format!("the index of {} changes all the time", address.name)))
    }

    /// The index as known, taken out: it counts as unknown until a write has succeeded.
    async fn index(&mut self, secrets: &Secrets, patience: Patience) -> Result<Index, Failure> {
        if let Some(known) = self.state.index.take() {
            return Ok(known);
        }
        let (namespace, name) = &self.home.name;
        let family = secrets.get_family(namespace, name, patience).await?;
        let index = |Family { instances, rebuilt, version, .. }| Index { instances, rebuilt, version };
        Ok(family.map(index).unwrap_or_default())
    }

    /// Writes the index in place of the version that it has; one without instances is removed.
    async fn write(
        &self,
        secrets: &Secrets,
        index: Index,
        uid: &Arc<str>,
        patience: Patience,
    ) -> Result<Index, Failure> {
        let (namespace, name) = &self.home.name;
        let Index { instances, rebuilt, version: base } = index;
        if let Some(base) = base
            && instances.is_empty()
        {
            return secrets.delete_family(namespace, name, base, patience).await.map(|()| Index::default());
        }
        let (namespace, name, uid) = (namespace.clone(), name.clone(), uid.clone());
        let family = Family { namespace, name, uid, instances, rebuilt, version: base };
        let version = Some(secrets.put_family(&family, base, patience).await?);
        Ok(Index { instances: family.instances, rebuilt, version })
    }
}
