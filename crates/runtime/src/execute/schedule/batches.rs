//! The graphs that are being executed. There can be one for each object of a large namespace, so they are found by the
//! objects that they cover.

use std::collections::{BTreeMap, BTreeSet};

use super::batch::Batch;
use model::{Address, Name, in_family};

#[derive(Default)]
pub struct Batches {
    all: BTreeMap<u64, Batch>,
    next: u64,
    /// The only batch that covers an object.
    of: BTreeMap<Address, u64>,
}

impl Batches {
    pub fn get(&self, id: u64) -> Option<&Batch> {
        self.all.get(&id)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Batch> {
        self.all.get_mut(&id)
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Batch> {
        self.all.values_mut()
    }

    pub fn of(&self, address: &Address) -> Option<&Batch> {
        self.all.get(self.of.get(address)?)
    }

    pub fn of_mut(&mut self, address: &Address) -> Option<&mut Batch> {
        self.all.get_mut(self.of.get(address)?)
    }

    /// The batches that cover an object of these names.
    pub fn of_names(&self, names: &BTreeSet<Name>) -> impl Iterator<Item = &Batch> {
        let ids: BTreeSet<u64> = names.iter().flat_map(|name| in_family(&self.of, name)).map(|(_, id)| *id).collect();
        ids.into_iter().filter_map(|id| self.all.get(&id))
    }

    /// Adds a batch after [`Self::drop_of`] its scope. Returns its number, and the batch.
    pub fn add(&mut self, batch: Batch) -> (u64, &Batch) {
        let id = self.next;
        self.next += 1;
        self.of.extend(batch.scope().iter().map(|address| (address.clone(), id)));
        (id, self.all.entry(id).or_insert(batch))
    }

    pub fn remove(&mut self, id: u64) {
        let Some(batch) = self.all.remove(&id) else { return };
        batch.scope().iter().for_each(|address| _ = self.of.remove(address));
    }

    /// Removes the batches that cover any of these objects. Returns whether there were any.
    pub fn drop_of(&mut self, scope: &BTreeSet<Address>) -> bool {
        let ids: BTreeSet<u64> = scope.iter().filter_map(|address| self.of.get(address).copied()).collect();
        ids.iter().for_each(|id| self.remove(*id));
        !ids.is_empty()
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.of.clear();
    }
}
