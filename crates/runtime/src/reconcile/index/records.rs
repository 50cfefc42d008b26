//! The one owner of what is recorded in a namespace: as the watch has delivered it, and as this process has written it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use super::families::FamilyCache;
use super::links::dependency_names;
use super::{Event, Index, Overlay};
use crate::execute::Written;
use crate::reconcile::time::Time;
use engine::plan::{ObjectBlock, ProviderConfigId, identity_hash};
use model::{Address, Name, Record, Recorded, RecordedObject, Step, Stored, Uid, Version, in_family};

/// What the index knows of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownRecord {
    Unknown,
    Exists(Version),
    /// This process removed it, but the watch has not delivered the deletion. The version is one that it had.
    Erased(Version),
}

/// What changes the record of an object.
#[derive(Clone, Debug)]
pub enum Work {
    Step(StepStart),
    /// The resolution of an open intent.
    Recovery,
    Move,
}

impl Work {
    fn start(&self) -> Option<&StepStart> {
        if let Self::Step(start) = self { Some(start) } else { None }
    }
}

/// When a step started, and for which desired digest and shared fingerprint.
#[derive(Clone, Debug)]
pub struct StepStart {
    /// The step as it started.
    pub step: Step,
    pub at: Time,
    pub desired_digest: u64,
    pub shared_fingerprint: u64,
}

/// The records of a namespace. While the object of a record is busy, it is what the work on the object started from.
#[derive(Clone, Debug, Default)]
pub struct Records {
    all: Recorded,
    /// The number of current objects of each provider configuration.
    objects: BTreeMap<ProviderConfigId, usize>,
    /// The current objects by the hash of their identity.
    identities: BTreeSet<(u64, Address)>,
    /// The size of each record in its store, in bytes, and of all of them.
    sizes: BTreeMap<Address, u64>,
    size: u64,
    /// Records that exist but cannot be read, with the reason.
    unreadable: BTreeMap<Address, ObjectBlock>,
    /// Records that this process removed and whose deletion the watch has not delivered yet, each with a version that
    /// it had: the watch may still deliver the deletion of an earlier record of the same object.
    erased: BTreeMap<Address, Version>,
    /// Records to read, because the watch does not show whether they exist.
    unconfirmed: BTreeSet<Address>,
    /// The work in progress, with the deferred events of the watch.
    busy: BTreeMap<Address, (Work, DeferredEvents)>,
    /// Records that were changed by anything but a step of this process.
    changed: BTreeSet<Address>,
    /// During a list: the records that it does not contain yet, with their version before the list.
    unlisted: Option<BTreeMap<Address, Version>>,
}

/// The last events of the watch about a record, while its object is busy. Only the result of the work shows which of
/// them it caused.
#[derive(Clone, Debug, Default)]
struct DeferredEvents {
    /// Whether the index of its family, if it has one, showed at the start which instances have a record.
    is_indexed: bool,
    deleted: Option<Version>,
    /// The newest form since `deleted`, or since the start.
    applied: Option<Stored>,
}

impl DeferredEvents {
    /// The events to apply, in order.
    fn into_events(self, address: &Address) -> impl Iterator<Item = Event> + use<> {
        let deleted = self.deleted.map(|version| Event::RecordDeleted(address.clone(), version));
        deleted.into_iter().chain(self.applied.map(Event::RecordApplied))
    }
}

impl Deref for Records {
    type Target = Recorded;

    fn deref(&self) -> &Recorded {
        &self.all
    }
}

impl Records {
    /// The size of all records in bytes, as the watch has delivered them.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Records that exist but cannot be read, with the reason.
    pub fn unreadable(&self) -> &BTreeMap<Address, ObjectBlock> {
        &self.unreadable
    }

    /// Whether nothing is known of any record. With the removed ones: a new index would take late events about them for
    /// existing records.
    pub fn is_unknown(&self) -> bool {
        self.all.is_empty() && self.unreadable.is_empty() && self.busy.is_empty() && self.erased.is_empty()
    }

    /// Whether this process has removed the record and the watch has not delivered it yet.
    pub fn is_erased(&self, address: &Address) -> bool {
        self.erased.contains_key(address)
    }

    /// The work in progress on an object.
    pub fn work_on(&self, address: &Address) -> Option<&Work> {
        self.busy.get(address).map(|(work, _)| work)
    }

    /// The start of the running step of an object, which has at most one.
    pub fn started(&self, address: &Address) -> Option<&StepStart> {
        self.work_on(address).and_then(Work::start)
    }

    /// As [`Self::started`], of all objects of a name.
    pub fn started_of<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a StepStart> {
        in_family(&self.busy, name).filter_map(|(_, (work, _))| work.start())
    }

    /// Whether there is no work in progress.
    pub fn is_idle(&self) -> bool {
        self.busy.is_empty()
    }

    /// The records of these addresses.
    pub fn of(&self, addresses: &BTreeSet<Address>) -> Recorded {
        addresses.iter().filter_map(|address| Some((address.clone(), self.all.get(address)?.clone()))).collect()
    }

    /// Whether a current object is recorded at an address.
    pub fn has_current(&self, address: &Address) -> bool {
        self.all.get(address).is_some_and(|stored| stored.record.current.is_some())
    }

    /// Whether any object is recorded at an address.
    pub fn has_objects(&self, address: &Address) -> bool {
        self.all.get(address).is_some_and(|stored| stored.record.has_objects())
    }

    /// The provider configuration of the current object of a record.
    pub fn provider_config(&self, address: &Address) -> Option<ProviderConfigId> {
        ProviderConfigId::of_record(&self.all.get(address)?.record)
    }

    /// The number of current objects of each provider configuration.
    pub fn objects(&self) -> &BTreeMap<ProviderConfigId, usize> {
        &self.objects
    }

    /// The records, except this one, that may have the same object as this one.
    pub fn others_of_object(&self, record: &Record) -> impl Iterator<Item = &Stored> {
        identity(record)
            .into_iter()
            .flat_map(|hash| self.with_identity(hash))
            .filter(|address| **address != record.address)
            .filter_map(|address| self.all.get(address))
    }

    fn with_identity(&self, hash: u64) -> impl Iterator<Item = &Address> {
        // No address is smaller than one with an empty name.
        let from_hash = self.identities.range((hash, Address::single(""))..);
        from_hash.take_while(move |(known, _)| *known == hash).map(|(_, address)| address)
    }

    /// What is known of a record, for [`Event::RecordRead`].
    pub fn known(&self, address: &Address) -> KnownRecord {
        let erased = self.erased.get(address).map_or(KnownRecord::Unknown, |version| KnownRecord::Erased(*version));
        self.version(address).map_or(erased, KnownRecord::Exists)
    }

    pub(crate) fn version(&self, address: &Address) -> Option<Version> {
        self.all.get(address).map(|stored| stored.version)
    }

    /// Replaces the record of an object, or removes it. Returns the one before it.
    fn replace(&mut self, address: &Address, stored: Option<Stored>) -> Option<Stored> {
        let before = self.all.remove(address);
        if let Some(Stored { record, .. }) = &before {
            if let Some(id) = ProviderConfigId::of_record(record) {
                // Each change of a configuration has another hash, so what nothing uses must not stay.
                if let Entry::Occupied(mut count) = self.objects.entry(id) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
            identity(record).into_iter().for_each(|hash| _ = self.identities.remove(&(hash, address.clone())));
        }
        match stored {
            Some(stored) => {
                if let Some(id) = ProviderConfigId::of_record(&stored.record) {
                    *self.objects.entry(id).or_default() += 1;
                }
                self.identities.extend(identity(&stored.record).map(|hash| (hash, address.clone())));
                self.all.insert(address.clone(), stored);
            }
            None => self.resize(address, None),
        }
        before
    }

    fn resize(&mut self, address: &Address, bytes: Option<u64>) {
        let before = match bytes {
            Some(bytes) => self.sizes.insert(address.clone(), bytes),
            None => self.sizes.remove(address),
        };
        self.size = self.size.saturating_sub(before.unwrap_or_default()).saturating_add(bytes.unwrap_or_default());
    }

    /// The record of an event, if it changes what is known.
    fn accept(&mut self, stored: Stored) -> Option<Stored> {
        let address = &stored.record.address;
        if let Some((_, deferred)) = self.busy.get_mut(address) {
            deferred.applied = Some(stored);
            return None;
        }
        if self.version(address).is_some_and(|known| stored.version <= known) {
            return None;
        }
        if let Some(known) = self.erased.get(address) {
            // It is a late event of what was removed, or another client has restored the record. The deletion may never
            // be delivered: a list that began before the removal can lack the record.
            if stored.version > *known {
                self.unconfirmed.insert(address.clone());
            }
            return None;
        }
        Some(stored)
    }

    /// Whether an event about a deletion removes the known record.
    fn accept_deletion(&mut self, address: &Address, version: Version) -> bool {
        if let Some((_, deferred)) = self.busy.get_mut(address) {
            (deferred.deleted, deferred.applied) = (Some(version), None);
            return false;
        }
        if self.erased.get(address).is_some_and(|known| *known < version) {
            self.erased.remove(address);
        }
        self.version(address).is_some_and(|known| known <= version)
    }

    fn relisting(&mut self) {
        // The list is read after this moment, so it shows these deletions.
        self.erased.clear();
        self.unreadable.clear();
        let addresses = self.all.keys().chain(self.busy.keys());
        let observed = addresses.filter_map(|address| Some((address.clone(), self.observed_version(address)?)));
        self.unlisted = Some(observed.collect());
    }

    /// The version of a record, also from a deferred event.
    fn observed_version(&self, address: &Address) -> Option<Version> {
        let deferred = self.busy.get(address).and_then(|(_, deferred)| deferred.applied.as_ref());
        deferred.map(|stored| stored.version).max(self.version(address))
    }

    fn mark_listed(&mut self, address: &Address) {
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.remove(address);
        }
    }
}

impl Index {
    pub fn record_applied(&mut self, stored: Stored) {
        let address = stored.record.address.clone();
        self.records.mark_listed(&address);
        // It may be the version of the last own write.
        if self.records.unreadable.remove(&address).is_some() {
            self.wake_with_neighbours(address.name());
        }
        if let Some(stored) = self.records.accept(stored) {
            self.change_record(&address, Some(stored));
            self.wake_with_neighbours(address.name());
        }
    }

    pub fn record_sized(&mut self, address: &Address, bytes: u64) {
        self.records.resize(address, Some(bytes));
    }

    pub fn record_read(&mut self, address: &Address, known: KnownRecord, found: Option<Stored>) {
        if self.records.work_on(address).is_some() || self.records.known(address) != known {
            return;
        }
        // The list may be older or newer than the read.
        if self.records.unlisted.is_some() {
            self.records.unconfirmed.insert(address.clone());
            return;
        }
        match (known, found) {
            (KnownRecord::Exists(version), None) => self.record_deleted(address, version),
            (KnownRecord::Exists(_), Some(stored)) => self.record_applied(stored),
            // The read began after the removal, so another client has restored the record.
            (KnownRecord::Erased(_), Some(stored)) => {
                self.records.erased.remove(address);
                self.record_applied(stored);
            }
            // The watch may already have delivered the deletion of what was read.
            (KnownRecord::Erased(_) | KnownRecord::Unknown, _) => {}
        }
    }

    pub fn record_unreadable(&mut self, address: Address, held: ObjectBlock) {
        self.records.mark_listed(&address);
        self.wake_with_neighbours(address.name());
        self.records.unreadable.insert(address, held);
    }

    pub fn record_deleted(&mut self, address: &Address, version: Version) {
        self.records.resize(address, None);
        if self.records.unreadable.remove(address).is_some() {
            self.changes.names.insert(address.name().clone());
        }
        if self.records.accept_deletion(address, version) {
            self.wake_with_neighbours(address.name());
            self.change_record(address, None);
        }
    }

    pub fn records_relisting(&mut self) {
        self.records.relisting();
        self.families.relisting();
    }

    pub fn records_listed(&mut self) {
        self.wake_for_family(FamilyCache::listed);
        for (address, version) in self.records.unlisted.take().unwrap_or_default() {
            // A record with a newer version may have been written after the list was read.
            if self.records.observed_version(&address) == Some(version) {
                self.record_deleted(&address, version);
            }
        }
        let families: BTreeSet<Name> =
            self.records.keys().filter(|address| address.is_instance()).map(|address| address.name().clone()).collect();
        families.iter().for_each(|name| self.require_family(name));
        let Records { all, busy, sizes, size, .. } = &mut self.records;
        sizes.retain(|address, _| all.contains_key(address) || busy.contains_key(address));
        *size = sizes.values().sum();
    }

    /// The records that must be read since the last call. Not during a list, which may answer the question.
    pub fn take_unconfirmed(&mut self) -> BTreeSet<Address> {
        let is_listing = self.records.unlisted.is_some();
        if is_listing { BTreeSet::new() } else { std::mem::take(&mut self.records.unconfirmed) }
    }

    /// The records that were changed since the last call, by anything but a step of this process.
    pub fn take_changed_records(&mut self) -> BTreeSet<Address> {
        std::mem::take(&mut self.records.changed)
    }

    /// Work on the object starts: events about its record are deferred from now on.
    pub fn begin(&mut self, address: &Address, work: Work) {
        let is_indexed = address.is_single() || self.families.is_complete(address.name());
        self.records.busy.insert(address.clone(), (work, DeferredEvents { is_indexed, ..DeferredEvents::default() }));
    }

    /// The work on the object has ended. A step or a move sets the finalizer and the annotation before it writes the
    /// record. A recovery does not: an earlier process may have removed them before it was interrupted.
    pub fn end(&mut self, address: &Address, written: Written) {
        self.providers.touch();
        let (work, deferred) = self.records.busy.remove(address).unzip();
        let known = self.records.version(address);
        match written {
            Written::Record(stored) if known < Some(stored.version) => {
                self.records.erased.remove(address);
                if matches!(work, Some(Work::Recovery)) {
                    self.records.changed.insert(address.clone());
                } else {
                    self.set_overlay(address, Overlay::Marked(stored.record.uid.clone()));
                }
                self.set_record(address, Some(stored));
            }
            Written::Erased => {
                // Without deferred events, the work was given up, and the watch delivers the deletion.
                if let Some((known, deferred)) = known.zip(deferred.as_ref()) {
                    self.erased(address, known, deferred);
                }
            }
            // The marks of the Resource still say that there was one, so the object is not created again.
            Written::Missing => self.change_record(address, None),
            Written::Record(_) | Written::Nothing => {}
        }
        for event in deferred.unwrap_or_default().into_events(address) {
            self.apply(event);
        }
    }

    /// This process has removed the record of this version.
    fn erased(&mut self, address: &Address, known: Version, deferred: &DeferredEvents) {
        let was_for = self.marked_for(address);
        self.set_record(address, None);
        // A family keeps its finalizer and annotation until its last record is removed, and also then if its index was
        // lost, or lists an instance whose record was lost.
        if let Some(uid) = was_for.filter(|_| !self.is_recorded(address.name())) {
            let has_lost = self.listed_without_record(address.name()).any(|listed| listed != address);
            let is_unmarked = deferred.is_indexed && !has_lost;
            self.set_overlay(address, if is_unmarked { Overlay::Unmarked(uid) } else { Overlay::None });
        }
        // A list without the record has that version itself, the deletion a greater one.
        if deferred.deleted.is_none_or(|deleted| deleted < known) {
            self.records.erased.insert(address.clone(), known);
        }
    }

    /// Restarts the work on the namespace: that work continues for which `continues` returns `true`. The deferred events
    /// of all other objects are applied, and every name is planned.
    pub fn restart(&mut self, continues: impl Fn(&Address, &Work) -> bool) {
        let over: Vec<_> = self.records.busy.extract_if(.., |address, (work, _)| !continues(address, work)).collect();
        for (address, (_, deferred)) in over {
            deferred.into_events(&address).for_each(|event| self.apply(event));
        }
        self.entries.values_mut().for_each(|entry| entry.status.begin_again());
        self.providers.touch();
        self.approvals.touch_all();
        // The watches of inputs have ended too.
        self.inputs.mark_unread();
        self.wake_all();
    }

    /// The UID of the Resource that has the finalizer and the annotation because of a record. It can be newer than the
    /// record, which it then has adopted.
    fn marked_for(&self, address: &Address) -> Option<Uid> {
        let adopter = self.instance(address.name()).filter(|instance| instance.is_marked());
        let uid = adopter.map(|instance| instance.uid.clone());
        uid.or_else(|| Some(self.records.get(address)?.record.uid.clone()))
    }

    fn set_overlay(&mut self, address: &Address, overlay: Overlay) {
        if let Some(entry) = self.entries.get_mut(address.name()) {
            entry.overlay = overlay.confirmed_by(&entry.instance);
        }
    }

    /// Replaces or removes a record that no step of this process has changed.
    fn change_record(&mut self, address: &Address, stored: Option<Stored>) {
        let known = self.records.get(address).map(|stored| &stored.record);
        if known != stored.as_ref().map(|stored| &stored.record) {
            self.records.changed.insert(address.clone());
        }
        self.set_record(address, stored);
    }

    /// Replaces or removes a record, with the connections of its name.
    fn set_record(&mut self, address: &Address, stored: Option<Stored>) {
        let name = address.name();
        let (used, forced, forces) = links_of(stored.as_ref());
        let before = self.records.replace(address, stored);
        let (was_used, was_forced, _) = links_of(before.as_ref());
        // They were create-before-destroy because of it.
        self.changes.names.extend(was_forced.difference(&forced).cloned());
        let lost: Vec<Name> = was_used.difference(&used).cloned().collect();
        // The step that ended this dependency may also be the one that made it create-before-destroy.
        self.changes.names.extend(lost.iter().filter(|_| forces).cloned());
        let entry = self.entries.get(name);
        let are_referenced = lost.iter().all(|lost| {
            entry.is_some_and(|entry| entry.instance.references.iter().any(|used| used.target.name() == lost))
        });
        // A record whose other links stay does not cost a visit of the other records of its family.
        match are_referenced {
            true => self.links.add(name, used),
            false => self.relink(name),
        }
        self.update_renames(name);
    }
}

/// The names that a record depends on, those of them that it makes create-before-destroy, and whether it can.
fn links_of(stored: Option<&Stored>) -> (BTreeSet<Name>, BTreeSet<Name>, bool) {
    let Some(stored) = stored else { return Default::default() };
    let forces = create_before_destroy_objects(stored).next().is_some();
    (dependency_names(stored), forced_names(stored), forces)
}

/// The names that a record makes create-before-destroy: the dependencies of its create-before-destroy objects. A deposed
/// object counts until it is destroyed.
fn forced_names(stored: &Stored) -> BTreeSet<Name> {
    let names = create_before_destroy_objects(stored).flat_map(|object| object.dependencies.iter());
    names.map(Address::name).filter(|name| *name != stored.record.address.name()).cloned().collect()
}

fn create_before_destroy_objects(stored: &Stored) -> impl Iterator<Item = &Arc<RecordedObject>> {
    let objects = stored.record.current.iter().chain(stored.record.deposed.values());
    objects.filter(|object| object.create_before_destroy)
}

fn identity(record: &Record) -> Option<u64> {
    identity_hash(&record.type_name, record.current.as_ref()?)
}
