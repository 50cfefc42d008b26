//! Handles the events of records.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Index;
use super::links::dependency_names;
use engine::plan::ObjectBlock;
use model::{Address, RecordedObject, Stored, Version};

/// What the index knows of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownRecord {
    Unknown,
    Exists(Version),
    /// This process removed it, but the watch has not delivered the deletion. The version is one that it had.
    Erased(Version),
}

impl Index {
    /// What the index knows of a record, for [`Event::RecordRead`].
    pub fn known_record(&self, address: &Address) -> KnownRecord {
        let erased = self.erased.get(address).map_or(KnownRecord::Unknown, |version| KnownRecord::Erased(*version));
        self.version(address).map_or(erased, KnownRecord::Exists)
    }

    pub(super) fn record_applied(&mut self, stored: Stored) {
        let address = stored.record.address.clone();
        if let Some(before) = &mut self.records_before {
            before.remove(&address);
        }
        // It may be the version of the last own write.
        if self.unreadable.remove(&address).is_some() {
            self.wake_with_neighbours(&address.name);
        }
        if let Some(parked) = self.busy.get_mut(&address) {
            return parked.applied(stored);
        }
        if self.version(&address).is_some_and(|known| stored.version <= known) {
            return;
        }
        if let Some(known) = self.erased.get(&address) {
            // It is a late event of what was removed, or another client has restored the record. The deletion may never
            // be delivered: a list that began before the removal can lack the record.
            if stored.version > *known {
                self.unconfirmed.insert(address);
            }
            return;
        }
        self.changed_records.insert(address.clone());
        self.insert_record(stored);
        self.wake_with_neighbours(&address.name);
    }

    pub(super) fn record_read(&mut self, address: &Address, known: KnownRecord, found: Option<Stored>) {
        if self.busy.contains_key(address) || self.known_record(address) != known {
            return;
        }
        // The list may be older or newer than the read.
        if self.records_before.is_some() {
            self.unconfirmed.insert(address.clone());
            return;
        }
        match (known, found) {
            (KnownRecord::Exists(version), None) => self.record_deleted(address, version),
            (KnownRecord::Exists(_), Some(stored)) => self.record_applied(stored),
            // The read began after the removal, so another client has restored the record.
            (KnownRecord::Erased(_), Some(stored)) => {
                self.erased.remove(address);
                self.record_applied(stored);
            }
            // The watch may already have delivered the deletion of what was read.
            (KnownRecord::Erased(_) | KnownRecord::Unknown, _) => {}
        }
    }

    pub(super) fn record_unreadable(&mut self, address: Address, held: ObjectBlock) {
        if let Some(before) = &mut self.records_before {
            before.remove(&address);
        }
        self.wake_with_neighbours(&address.name);
        self.unreadable.insert(address, held);
    }

    pub(super) fn record_deleted(&mut self, address: &Address, version: Version) {
        self.record_sizes.remove(address);
        if self.unreadable.remove(address).is_some() {
            self.to_plan.insert(address.name.clone());
        }
        if let Some(parked) = self.busy.get_mut(address) {
            return parked.deleted(version);
        }
        if self.erased.get(address).is_some_and(|known| *known < version) {
            self.erased.remove(address);
        }
        if self.version(address).is_some_and(|known| known <= version) {
            self.changed_records.insert(address.clone());
            self.wake_with_neighbours(&address.name);
            self.remove_record(address);
        }
    }

    pub(super) fn insert_record(&mut self, stored: Stored) {
        let name = stored.record.address.name.clone();
        let (used, forced) = (dependency_names(&stored), forced_names(&stored));
        let forces = has_create_before_destroy(&stored);
        let before = self.records.insert(stored.record.address.clone(), stored);
        if let Some(before) = &before {
            // They were create-before-destroy because of it.
            self.to_plan.extend(forced_names(before).difference(&forced).cloned());
        }
        // A record that only adds links does not cost a visit of the other records of its family.
        match before.as_ref().map(dependency_names) {
            Some(was_used) if !was_used.is_subset(&used) => {
                // The step that ended this dependency may also be the one that made it create-before-destroy.
                if forces {
                    self.to_plan.extend(was_used.difference(&used).cloned());
                }
                self.relink(&name);
            }
            _ => self.links.add(&name, used),
        }
        self.update_renames(&name);
    }

    pub(super) fn remove_record(&mut self, address: &Address) {
        self.record_sizes.remove(address);
        let Some(before) = self.records.remove(address) else { return };
        let entry = self.entries.get(&address.name);
        let is_referenced =
            |name: &Arc<str>| entry.is_some_and(|e| e.instance.references.iter().any(|r| r.target.name == *name));
        if !dependency_names(&before).iter().all(is_referenced) {
            self.relink(&address.name);
        }
        // Its dependencies may have been create-before-destroy only because of it.
        self.to_plan.extend(forced_names(&before));
        self.update_renames(&address.name);
    }
}

fn has_create_before_destroy(stored: &Stored) -> bool {
    create_before_destroy_objects(stored).next().is_some()
}

/// The names that a record makes create-before-destroy: the dependencies of its create-before-destroy objects. A deposed
/// object counts until it is destroyed.
fn forced_names(stored: &Stored) -> BTreeSet<Arc<str>> {
    let names = create_before_destroy_objects(stored).flat_map(|object| object.dependencies.iter());
    names.map(|address| &address.name).filter(|name| **name != stored.record.address.name).cloned().collect()
}

fn create_before_destroy_objects(stored: &Stored) -> impl Iterator<Item = &Arc<RecordedObject>> {
    let objects = stored.record.current.iter().chain(stored.record.deposed.values());
    objects.filter(|object| object.create_before_destroy)
}
