//! Caches the indexes of families: which instances have, or had, a record.
//!
//! An instance is added before anything is created for it, and removed before its record is. So an instance that is in
//! the index but has no record has lost it, and an unknown object may exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Index;
use crate::store::secrets::Family;
use engine::load::Instance;
use engine::plan::Loss;
use model::{Address, Diagnostic, InstanceKey, Name, Reason, Stem, Version, in_family};

#[derive(Clone, Debug, Default)]
pub struct FamilyCache {
    known: BTreeMap<Name, Family>,
    /// Indexes that exist but cannot be read, with the reason.
    unreadable: BTreeMap<Name, String>,
    /// The Resources that have instances with objects, but no index.
    lost: BTreeSet<Name>,
    /// During a list: the names that it does not contain yet.
    unlisted: Option<BTreeSet<Name>>,
}

/// Each change returns the names to plan.
impl FamilyCache {
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.unreadable.is_empty()
    }

    /// The instances in the index of a Resource.
    pub fn instances(&self, name: &str) -> impl Iterator<Item = &Address> {
        self.known.get(name).into_iter().flat_map(|family| &family.instances)
    }

    /// Whether a Resource has an index that lists all instances with a record.
    pub fn is_complete(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|family| !family.rebuilt)
    }

    /// Whether the index of a Resource replaces one that was lost.
    pub fn is_rebuilt(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|family| family.rebuilt)
    }

    /// Whether the index of a Resource was lost, even if another one replaces it.
    fn is_lost(&self, name: &str) -> bool {
        self.lost.contains(name) || self.is_rebuilt(name)
    }

    /// Records that a Resource needs an index. Returns whether it is found to be lost now.
    fn require(&mut self, name: &Name) -> bool {
        let exists = self.known.contains_key(name) || self.unreadable.contains_key(name);
        !exists && self.lost.insert(name.clone())
    }

    /// The Resource, with an error if its index cannot be read.
    pub fn checked(&self, resource: Arc<Instance>) -> Arc<Instance> {
        let Some(why) = self.unreadable.get(resource.address.name()) else { return resource };
        let what = "the index of the family cannot be read, so Purlin does not know which instances exist";
        let problem = Diagnostic::error(&resource.address, Reason::RecordUnreadable, what).because(why.clone());
        let mut resource = Instance::clone(&resource);
        resource.problems.push(problem);
        Arc::new(resource)
    }

    pub fn applied(&mut self, family: Family) -> Vec<Name> {
        let name = family.name.clone();
        self.mark_listed(&name);
        let readable_again = self.unreadable.remove(&name).is_some();
        let restored = self.lost.remove(&name) && !family.rebuilt;
        // Only a removed instance, or one that the index did not prove to be new, may be created now. An added instance
        // is being created by this process, or nothing waits for it.
        let is_changed = readable_again
            || restored
            || self.known.get(&name).is_some_and(|old| {
                let is_complete = old.rebuilt && !family.rebuilt;
                is_complete || !old.instances.is_subset(&family.instances)
            });
        self.known.insert(name.clone(), family);
        if is_changed { vec![name] } else { Vec::new() }
    }

    pub fn deleted(&mut self, name: Name, version: Version) -> Vec<Name> {
        let newer = self.known.get(&name).is_some_and(|family| family.version > Some(version));
        if newer {
            return Vec::new();
        }
        let was_there = self.known.remove(&name).is_some() | self.unreadable.remove(&name).is_some();
        if was_there { vec![name] } else { Vec::new() }
    }

    pub fn unreadable(&mut self, name: Name, why: String) -> Vec<Name> {
        self.mark_listed(&name);
        self.unreadable.insert(name.clone(), why);
        vec![name]
    }

    pub fn relisting(&mut self) {
        self.unlisted = Some(self.known.keys().chain(self.unreadable.keys()).cloned().collect());
        self.lost.clear();
    }

    pub fn listed(&mut self) -> Vec<Name> {
        let removed = self.unlisted.take().unwrap_or_default();
        removed.into_iter().flat_map(|name| self.deleted(name, Version(u64::MAX))).collect()
    }

    fn mark_listed(&mut self, name: &str) {
        if let Some(before) = &mut self.unlisted {
            before.remove(name);
        }
    }
}

impl Index {
    /// Notes that a Resource has lost its index, if the watch shows none although instances have objects: it is written
    /// before the first of them is created, and removed with the last one.
    pub fn require_family(&mut self, name: &Name) {
        let has_objects = in_family(&self.records, name).any(|(address, stored)| {
            address.is_instance() && self.records.work_on(address).is_none() && stored.record.has_objects()
        });
        if has_objects && self.families.require(name) {
            self.changes.names.insert(name.clone());
        }
    }

    /// What a family has lost while it has all desired instances: the record of another instance, or its index. The
    /// address is that of this instance, or of one that has no record.
    pub fn family_loss(&self, name: &Name) -> Option<(Loss, Address)> {
        let records = &self.records;
        if let Some(listed) = self.listed_without_record(name).next() {
            return Some((Loss::Record, listed.clone()));
        }
        let key = match in_family(records, name).last().map(|(address, _)| &address.key) {
            Some(InstanceKey::Key(last)) => InstanceKey::Key(format!("{last}-other").into()),
            Some(InstanceKey::Index(last)) => InstanceKey::Index(last + 1),
            _ => InstanceKey::Index(0),
        };
        self.families.is_lost(name).then(|| (Loss::Index, Stem::from(name.clone()).instance(key)))
    }

    /// The instances in the index of a family whose records are missing, but were not removed by this process.
    pub fn listed_without_record(&self, name: &Name) -> impl Iterator<Item = &Address> {
        let records = &self.records;
        self.families.instances(name).filter(move |address| {
            let exists = records.contains_key(*address) || records.unreadable().contains_key(*address);
            !exists && records.work_on(address).is_none() && !records.is_erased(address)
        })
    }
}
