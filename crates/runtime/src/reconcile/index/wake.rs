//! Collects what has changed: above all, the names to plan.

use std::collections::{BTreeMap, BTreeSet};

use super::Index;
use super::families::FamilyCache;
use engine::load::Instance;
use model::{Address, Diagnostics, Name, Observed};

/// What has changed since it was last taken.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Names to plan.
    pub names: BTreeSet<Name>,
    /// Names that were removed as planned.
    pub removed: BTreeSet<Name>,
    /// Names whose status another process has overwritten.
    pub overwritten: BTreeSet<Name>,
    /// What was seen of objects.
    pub seen: BTreeMap<Address, Observed>,
    /// The namespace is being deleted, and has changed.
    pub has_shrunk: bool,
}

impl Index {
    /// What has changed since the last call.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Plans every name again: after a start, or after leadership was lost.
    pub fn wake_all(&mut self) {
        let records = self.records.keys().map(|address| address.name().clone());
        self.changes.names.extend(self.entries.keys().cloned().chain(records));
    }

    /// Plans the records without a Resource, which may or may not be destroyed now, and those of Modules, whose configurations may
    /// have lost some.
    pub fn incomplete(&mut self, why: Diagnostics) {
        if self.incomplete != why {
            self.incomplete = why;
            let may_lack = |name: &Name| self.entries.get(name).is_none_or(|entry| entry.instance.program.is_some());
            let names = self.records.keys().map(Address::name).filter(|name| may_lack(name));
            self.changes.names.extend(names.cloned());
        }
    }

    pub fn wake_for_family(&mut self, change: impl FnOnce(&mut FamilyCache) -> Vec<Name>) {
        let names = change(&mut self.families);
        self.changes.names.extend(names);
    }

    /// Plans those of the names that exist.
    pub fn wake_known(&mut self, names: BTreeSet<Name>) {
        let known: Vec<Name> = names.into_iter().filter(|name| self.knows(name)).collect();
        self.changes.names.extend(known);
    }

    /// Neighbors are planned too, because the component may split.
    pub fn wake_with_neighbours(&mut self, name: &Name) {
        self.changes.names.extend(self.links.neighbours(name).cloned());
        self.changes.names.insert(name.clone());
    }

    /// Plans a Resource and the names that it was, or may have been, renamed from: an earlier plan to destroy these is
    /// stale.
    pub fn wake_with_renames(&mut self, instance: &Instance) {
        self.changes.names.insert(instance.address.name().clone());
        self.changes.names.extend(instance.moved_from.iter().map(|moved| moved.from.name().clone()));
        self.changes.names.extend(self.rename_candidates(instance));
    }
}
