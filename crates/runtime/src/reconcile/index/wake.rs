//! Collects the names to plan, the records that another process has changed, and the statuses that another process has
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Index;
use super::families::FamilyCache;
use engine::load::Instance;
use model::{Address, Diagnostics, Observed};

impl Index {
    /// The names to plan, and the records that another process has changed, since the last call.
    pub fn take_changes(&mut self) -> (BTreeSet<Arc<str>>, BTreeSet<Address>) {
        (std::mem::take(&mut self.to_plan), std::mem::take(&mut self.changed_records))
    }

    /// The records that must be read since the last call. Not during a list, which may answer the question.
    pub fn take_unconfirmed(&mut self) -> BTreeSet<Address> {
        if self.records_before.is_some() { BTreeSet::new() } else { std::mem::take(&mut self.unconfirmed) }
    }

    pub fn take_overwritten(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.overwritten)
    }

    /// What was seen of objects since the last call.
    pub fn take_seen_objects(&mut self) -> BTreeMap<Address, Observed> {
        std::mem::take(&mut self.seen_objects)
    }

    /// The names that were removed as planned since the last call.
    pub fn take_removed(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.removed)
    }

    /// Plans every name again: after a start, or after leadership was lost.
    pub fn wake_all(&mut self) {
        let records = self.records.keys().map(|address| address.name.clone());
        self.to_plan.extend(self.entries.keys().cloned().chain(records));
    }

    /// Plans the records without a Resource, which may or may not be destroyed now.
    pub(super) fn incomplete(&mut self, why: Diagnostics) {
        if self.incomplete != why {
            self.incomplete = why;
            let records = self.records.keys().map(|address| &address.name);
            self.to_plan.extend(records.filter(|name| !self.entries.contains_key(*name)).cloned());
        }
    }

    pub(super) fn wake_for_family(&mut self, change: impl FnOnce(&mut FamilyCache) -> Vec<Arc<str>>) {
        let names = change(&mut self.families);
        self.to_plan.extend(names);
    }

    /// Plans those of the names that exist.
    pub(super) fn wake_known(&mut self, names: BTreeSet<Arc<str>>) {
        let known: Vec<Arc<str>> = names.into_iter().filter(|name| self.knows(name)).collect();
        self.to_plan.extend(known);
    }

    /// Neighbors are planned too, because the component may split.
    pub(super) fn wake_with_neighbours(&mut self, name: &Arc<str>) {
        self.to_plan.extend(self.links.neighbours(name).cloned());
        self.to_plan.insert(name.clone());
    }

    /// Plans a Resource and the names that it was, or may have been, renamed from: an earlier plan to destroy these is
    /// stale.
    pub(super) fn wake_with_renames(&mut self, instance: &Instance) {
        self.to_plan.insert(instance.address.name.clone());
        self.to_plan.extend(instance.moved_from.iter().map(|moved| moved.from.name.clone()));
        self.to_plan.extend(self.rename_candidates(instance));
    }
}
