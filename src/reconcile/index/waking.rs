//! What is to be looked at: names, records that another process has changed, status that another process has written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Index;
use super::families::KnownFamilies;
use crate::load::Instance;
use crate::model::{Address, Diagnostics};

impl Index {
    /// The names to look at, and the records that somebody else has changed, since the last call.
    pub fn take_woken(&mut self) -> (BTreeSet<Arc<str>>, BTreeSet<Address>) {
        (std::mem::take(&mut self.woken), std::mem::take(&mut self.foreign))
    }

    /// The names whose status another process has written since the last call.
    pub fn take_restated(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.restated)
    }

    /// The objects that somebody else has changed since the last call, with whether they were destroyed.
    pub fn take_noticed(&mut self) -> BTreeMap<Address, bool> {
        std::mem::take(&mut self.noticed)
    }

    /// The names that nothing is left of, as it was meant to be, since the last call.
    pub fn take_gone(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.gone)
    }

    /// Looks at every name again: after a start, or after leadership was lost for a while.
    pub fn wake_all(&mut self) {
        let records = self.records.keys().map(|address| address.name.clone());
        self.woken.extend(self.entries.keys().cloned().chain(records));
    }

    /// Wakes what may have to go, or may not go now.
    pub(super) fn incomplete(&mut self, why: Diagnostics) {
        if self.incomplete != why {
            self.incomplete = why;
            let records = self.records.keys().map(|address| &address.name);
            self.woken.extend(records.filter(|name| !self.entries.contains_key(*name)).cloned());
        }
    }

    pub(super) fn wake_for_family(&mut self, change: impl FnOnce(&mut KnownFamilies) -> Vec<Arc<str>>) {
        let woken = change(&mut self.families);
        self.woken.extend(woken);
    }

    /// Neighbours are looked at too, since the component may fall apart by what happens next.
    pub(super) fn wake_with_neighbours(&mut self, name: &Arc<str>) {
        self.woken.extend(self.links.neighbours(name).cloned());
        self.woken.insert(name.clone());
    }

    /// A Resource, and what it says that it was before, or may mean by that: a plan to destroy that, made a moment ago,
    /// counts no more.
    pub(super) fn wake_with_former(&mut self, instance: &Instance) {
        self.woken.insert(instance.address.name.clone());
        self.woken.extend(instance.moved_from.iter().map(|address| address.name.clone()));
        self.woken.extend(self.meant(instance));
    }
}
