//! What one namespace wants and remembers, as of now. Synchronous: events go in, the names to look at come out.
//!
//! ```text
//! [ Resource watch ] --\                        /--> names whose component must be planned
//! [ record watch   ] ----> Index::apply ---->  <
//! [ own writes     ] --/   (links, overlay)     \--> records that somebody else has changed
//! ```
//!
//! **Read your writes.** What this process has written is newer than what a watch may still deliver. Records are known
//! at the version last written; older events are ignored, and while a step of an object runs (it is *busy*) its
//! events are parked until the step's own result is known. Our finalizer and annotation on a Resource are assumed as
//! written until the watch confirms them.

mod families;
mod fingerprint;
mod former;
mod inputs;
mod known_status;
mod links;
mod listing;
mod overlay;
mod parked;
mod providers;
mod published;
mod waking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::load::{Config, Data, Instance};
use crate::model::{Address, Diagnostics, Stored, Value, Version, of_name};
use crate::plan::Held;
use crate::store::ResourceMeta;
use crate::store::secrets::Family;

pub use self::inputs::InputKey;
pub use self::providers::{ObservedSettings, Providers, SettingsMeta, SettingsView};
pub use self::published::Published;

use self::families::KnownFamilies;
use self::former::Former;
use self::inputs::KnownInputs;
use self::known_status::KnownStatus;
use self::links::{Links, used_names};
use self::overlay::{Overlay, is_news};
use self::parked::Parked;
use self::providers::KnownProviders;

/// A Resource as watched, in compact form.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What it wants.
    pub instance: Arc<Instance>,
    /// What its status says.
    pub published: Published,
    /// The version of all this.
    pub version: Version,
    /// What patches of our marks build on.
    pub meta: Arc<ResourceMeta>,
}

/// Something that happened outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// A Resource or a `DataSource` exists in this form.
    ResourceApplied(Observed),
    /// The status with the digest was written, for the Resource with the UID, which has the version since; `None`: it
    /// will not be written.
    StatusWritten {
        /// The name in its address.
        name: Arc<str>,
        /// The UID.
        uid: Arc<str>,
        /// The digest of the status.
        digest: u64,
        /// The version.
        version: Option<Version>,
    },
    /// One of them is gone, by the name in its address.
    ResourceDeleted(Arc<str>),
    /// A record exists in this form.
    RecordApplied(Stored),
    /// A record was read by itself, beside the watch, in this form. The watch may be ahead of it: it says nothing of a record
    /// that is not known.
    RecordRead(Stored),
    /// A record is gone since the version.
    RecordDeleted(Address, Version),
    /// A record exists and cannot be read, for the reason given.
    RecordUnreadable(Address, Held),
    /// The index of a family exists in this form.
    FamilyApplied(Family),
    /// The index of a family is gone since the version.
    FamilyDeleted(Arc<str>, Version),
    /// The index of a family exists and cannot be read, for the reason given.
    FamilyUnreadable(Arc<str>, String),
    /// All Resources are about to be listed anew.
    ResourcesRelisting,
    /// What was not listed since `ResourcesRelisting` is gone.
    ResourcesListed,
    /// All `DataSources` are about to be listed anew.
    DataSourcesRelisting,
    /// What was not listed since `DataSourcesRelisting` is gone.
    DataSourcesListed,
    /// All records are about to be listed anew.
    RecordsRelisting,
    /// What was not listed since `RecordsRelisting` is gone.
    RecordsListed,
    /// What a `ConfigMap` or Secret holds, as a service account sees it.
    Input(InputKey, Data),
    /// The Providers of the cluster are these.
    Providers(Providers),
    /// A `ProviderConfig` exists in this form.
    ProviderConfigApplied(ObservedSettings),
    /// A `ProviderConfig` is gone.
    ProviderConfigDeleted(Arc<str>),
    /// Somebody else has changed the object of an instance, or destroyed it.
    ObjectNoticed(Address, bool),
    /// What is wanted is known in part only, for these reasons: what is missing may be there. Empty: it is known as a whole.
    Incomplete(Diagnostics),
    /// Name, labels and annotations of the namespace, and whether it is terminating.
    Namespace {
        /// `ns` of expressions.
        value: Value,
        /// When it is being deleted: the version of it, which tells more and more of what is left in it.
        terminating: Option<Version>,
    },
}

#[derive(Debug)]
struct Entry {
    instance: Arc<Instance>,
    status: KnownStatus,
    meta: Arc<ResourceMeta>,
    overlay: Overlay,
}

/// What is known about one namespace.
#[derive(Debug, Default)]
pub struct Index {
    namespace: Arc<str>,
    value: Value,
    terminating: Option<Version>,
    /// It is being deleted, and something of it is gone since the last look.
    is_emptied: bool,
    /// Why what is wanted is known in part only.
    incomplete: Diagnostics,
    /// Counts the changes of the namespace, which any expression may read.
    namespace_version: u64,
    entries: BTreeMap<Arc<str>, Entry>,
    records: BTreeMap<Address, Stored>,
    /// Records that exist and cannot be read, with the reason.
    unreadable: BTreeMap<Address, Held>,
    families: KnownFamilies,
    links: Links,
    former: Former,
    inputs: KnownInputs,
    providers: KnownProviders,
    /// Records that we removed and whose removal the watch has not delivered yet, with a version that they had: the watch may
    /// still deliver the end of an earlier record of the same object.
    erased: BTreeMap<Address, Version>,
    /// Objects with a running step, with what the watch said meanwhile.
    busy: BTreeMap<Address, Parked>,
    /// Objects that somebody else has changed, with whether they were destroyed.
    noticed: BTreeMap<Address, bool>,
    /// Names to be looked at.
    woken: BTreeSet<Arc<str>>,
    /// Names whose last trace has gone as it was meant to.
    gone: BTreeSet<Arc<str>>,
    /// Records that somebody else has changed.
    foreign: BTreeSet<Address>,
    /// Names whose status says what another process has written.
    restated: BTreeSet<Arc<str>>,
    /// The names of Resources that are not listed again yet.
    resources_before: Option<BTreeSet<Arc<str>>>,
    /// The same of `DataSources`.
    data_before: Option<BTreeSet<Arc<str>>>,
    /// The records that are not listed again yet, at the version they had before.
    records_before: Option<BTreeMap<Address, Version>>,
}

impl Index {
    /// An index of nothing. `versions`: greater than any version of provider configurations that an earlier index of the
    /// namespace has given out, since drivers remember them.
    pub fn new(namespace: Arc<str>, versions: u64) -> Self {
        let value = Value::map([("name", Value::String(namespace.clone()))]);
        Self { namespace, value, providers: KnownProviders::counting_from(versions), ..Self::default() }
    }

    /// The namespace.
    pub fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// `ns` of expressions.
    pub fn namespace_value(&self) -> &Value {
        &self.value
    }

    /// Whether the namespace is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.terminating.is_some()
    }

    /// Whether the namespace is being deleted, and something of it has gone since the last call.
    pub fn take_emptied(&mut self) -> bool {
        std::mem::take(&mut self.is_emptied)
    }

    /// Whether there is neither a Resource nor a record, nor a `ProviderConfig`.
    pub fn is_empty(&self) -> bool {
        let records = self.records.is_empty() && self.unreadable.is_empty() && self.busy.is_empty();
        // What the watch still delivers of records that we have removed must not be taken for records that there are.
        records
            && self.erased.is_empty()
            && self.entries.is_empty()
            && self.families.is_empty()
            && self.providers.is_empty()
    }

    /// All records, as known.
    pub fn records(&self) -> &BTreeMap<Address, Stored> {
        &self.records
    }

    /// What the Resource of that name wants, our own marks on it as we wrote them last, its inputs as they are known.
    pub fn instance(&self, name: &str) -> Option<Arc<Instance>> {
        self.entries.get(name).map(|entry| self.inputs.resolved(entry.overlay.over(&entry.instance)))
    }

    /// The Resources that say what to import.
    pub fn importing(&self) -> impl Iterator<Item = &Instance> {
        self.entries.values().map(|entry| &*entry.instance).filter(|instance| instance.import.is_some())
    }

    /// The ConfigMaps and Secrets to follow, when these have changed since the last call.
    pub fn take_wanted_inputs(&mut self) -> Option<BTreeSet<InputKey>> {
        self.inputs.take_wanted()
    }

    /// Metadata of the Resource, as the watch had it last.
    pub fn metadata(&self, name: &str) -> Option<&ResourceMeta> {
        self.entries.get(name).map(|entry| &*entry.meta)
    }

    /// Records that exist and cannot be read, with the reason.
    pub fn unreadable(&self) -> &BTreeMap<Address, Held> {
        &self.unreadable
    }

    /// What the status of the Resource says.
    pub fn published(&self, name: &str) -> Option<&Published> {
        self.entries.get(name).map(|entry| entry.status.published())
    }

    /// Remembers a status that is being written.
    pub fn publish(&mut self, name: &str, published: Published) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.status.publish(published);
        }
    }

    /// Whether there is an instance or a record of the name.
    pub fn knows(&self, name: &str) -> bool {
        self.entries.contains_key(name) || self.addresses(name).next().is_some()
    }

    /// The records of a name.
    pub fn addresses<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Address> {
        self.records.range(Address::single(name)..).map(|(address, _)| address).take_while(move |a| *a.name == *name)
    }

    /// Takes an event.
    pub fn apply(&mut self, event: Event) {
        self.providers.touch();
        match event {
            Event::ResourceApplied(observed) => self.resource_applied(observed),
            Event::StatusWritten { name, uid, digest, version } => {
                let entry = self.entries.get_mut(&name).filter(|entry| entry.instance.uid == uid);
                if entry.is_some_and(|entry| entry.status.written(digest, version)) {
                    self.restated.insert(name);
                }
            }
            Event::ResourceDeleted(name) => self.resource_deleted(&name),
            Event::RecordApplied(stored) => self.record_applied(stored),
            Event::RecordRead(stored) => self.record_read(stored),
            Event::RecordDeleted(address, version) => self.record_deleted(&address, version),
            Event::RecordUnreadable(address, held) => self.record_unreadable(address, held),
            Event::FamilyApplied(family) => self.wake_for_family(|families| families.applied(family)),
            Event::FamilyDeleted(name, version) => self.wake_for_family(|families| families.deleted(name, version)),
            Event::FamilyUnreadable(name, why) => self.wake_for_family(|families| families.unreadable(name, why)),
            Event::ResourcesRelisting => self.relisting(false),
            Event::ResourcesListed => self.listed(false),
            Event::DataSourcesRelisting => self.relisting(true),
            Event::DataSourcesListed => self.listed(true),
            Event::RecordsRelisting => self.records_relisting(),
            Event::RecordsListed => self.records_listed(),
            Event::Input(key, data) => self.input_changed(&key, data),
            Event::Providers(all) => {
                if self.providers.providers(all) {
                    self.wake_served(|_| true);
                }
            }
            Event::ProviderConfigApplied(observed) => {
                self.provider_config_applied(observed);
                self.providers.touch();
            }
            Event::ProviderConfigDeleted(name) => self.provider_config_deleted(&name),
            Event::ObjectNoticed(address, gone) => *self.noticed.entry(address).or_default() |= gone,
            Event::Incomplete(why) => self.incomplete(why),
            Event::Namespace { value, terminating } => self.namespace_changed(value, terminating),
        }
    }

    /// The names that are connected with any of these, by configuration or by records. Costs as much as it finds.
    pub fn component(&self, names: impl IntoIterator<Item = Arc<str>>) -> BTreeSet<Arc<str>> {
        self.with_doubts(self.links.component(names))
    }

    /// Whether Resources are being listed anew: what was not listed yet may be different by now.
    pub fn is_relisting(&self) -> bool {
        self.resources_before.is_some() || self.data_before.is_some()
    }

    /// What these names want.
    pub fn config(&self, names: &BTreeSet<Arc<str>>) -> Config {
        let mut config = Config { namespace: self.namespace.clone(), ..Config::default() };
        let resources = names.iter().filter_map(|name| self.instance(name));
        resources.for_each(|resource| config.add(self.families.checked(resource)));
        self.providers.fill(&mut config, |one| self.inputs.resolved_config(one));
        config.incomplete.clone_from(&self.incomplete);
        config.link();
        config
    }

    /// Instances of these names that had a record, as the index of their family says: also those whose record is gone.
    pub fn indexed<'a>(&'a self, names: &'a BTreeSet<Arc<str>>) -> impl Iterator<Item = &'a Address> {
        let all = names.iter().flat_map(|name| self.families.instances(name));
        // Of those that we have removed ourselves the watch has not told everything yet.
        all.filter(|address| !self.erased.contains_key(*address))
    }

    /// A step of the object, or its recovery, begins: what the watch says about its record is parked from now on. `base`:
    /// the version of the record that it builds on, which may be older than what the watch has told.
    pub fn begin(&mut self, address: &Address, base: Option<Version>) {
        self.busy.entry(address.clone()).or_insert_with(|| Parked::on(base));
    }

    /// Whoever works on the namespace begins once more: nothing is running but what `is_busy` names. What was parked of
    /// all others counts, and every name is looked at.
    pub fn begin_again(&mut self, is_busy: impl Fn(&Address) -> bool) {
        let (busy, free) = std::mem::take(&mut self.busy).into_iter().partition(|(address, _)| is_busy(address));
        self.busy = busy;
        let free: BTreeMap<Address, Parked> = free;
        for (address, parked) in free {
            for event in parked.into_events(&address) {
                self.apply(event);
            }
        }
        self.entries.values_mut().for_each(|entry| entry.status.begin_again());
        self.providers.touch();
        // Whoever followed the inputs is gone as well.
        self.inputs.forget();
        self.wake_all();
    }

    /// What was begun has ended, and this is what we know the record to be (`None`: we know that there is none). Our marks
    /// were put on the Resource before the record was written.
    pub fn end(&mut self, address: &Address, own: Option<&Stored>) {
        self.ended(address, own, true);
    }

    /// The same of a recovery, which puts no marks on: an earlier process may have taken them off before it was cut.
    pub fn end_recovery(&mut self, address: &Address, own: Option<&Stored>) {
        self.ended(address, own, false);
    }

    fn ended(&mut self, address: &Address, own: Option<&Stored>, is_marked: bool) {
        self.providers.touch();
        let parked = self.busy.remove(address).unwrap_or_default();
        let removed = self.version(address).filter(|known| parked.removed(*known));
        if let Some(stored) = own {
            self.erased.remove(address);
            if self.version(address).is_none_or(|known| known < stored.version) {
                if is_marked {
                    self.own_marks(address, Overlay::Marked(stored.record.uid.clone()));
                }
                self.keep(stored.clone());
            }
        } else if let Some(known) = removed {
            self.drop_record(address);
            // The marks stay on a family until the last of its instances has none any more.
            if self.addresses(&address.name).next().is_none() {
                self.own_marks(address, Overlay::Unmarked);
            }
            if !parked.saw_deletion_after(known) {
                self.erased.insert(address.clone(), known);
            }
        }
        for event in parked.into_events(address) {
            self.apply(event);
        }
    }

    fn own_marks(&mut self, address: &Address, overlay: Overlay) {
        if let Some(entry) = self.entries.get_mut(&address.name) {
            entry.overlay = overlay.confirmed_by(&entry.instance);
        }
    }

    fn version(&self, address: &Address) -> Option<Version> {
        self.records.get(address).map(|stored| stored.version)
    }

    fn resource_applied(&mut self, observed: Observed) {
        let Observed { instance, published, version, meta } = observed;
        let name = instance.address.name.clone();
        if let Some(before) = self.unlisted(instance.address.is_data()) {
            before.remove(&name);
        }
        let has_record = self.addresses(&name).next().is_some();
        let known = self.entries.get(&name).map(|entry| &entry.instance);
        let instance = match known {
            Some(known) => instance.read_again(known),
            None => instance,
        };
        self.inputs.set(&name, known.map(AsRef::as_ref), Some(&instance));
        let entry = match self.entries.remove(&name) {
            Some(old) if old.instance.uid == instance.uid => {
                // `state rm` without a record says so by this. Of our own doing we know.
                let forgotten = old.overlay == Overlay::None
                    && !has_record
                    && old.instance.record_annotation == instance.uid
                    && instance.record_annotation != instance.uid;
                if forgotten || is_news(&old.instance, &instance, has_record) {
                    self.wake_with_former(&instance);
                    self.wake_with_former(&old.instance);
                }
                let mut status = old.status;
                if status.observed(version, published) {
                    self.restated.insert(name.clone());
                }
                Entry { overlay: old.overlay.confirmed_by(&instance), instance, status, meta }
            }
            _ => {
                self.wake_with_former(&instance);
                Entry { instance, status: KnownStatus::new(published), meta, overlay: Overlay::None }
            }
        };
        self.entries.insert(name.clone(), entry);
        self.relink(&name);
        self.sort_out(&name);
    }

    fn resource_deleted(&mut self, name: &Arc<str>) {
        let Some(entry) = self.entries.remove(name) else { return };
        self.woken.extend(self.meant(&entry.instance));
        self.inputs.set(name, Some(&entry.instance), None);
        // The Resource goes a moment before the step that destroyed the object has ended.
        let expected = entry.instance.deleting && self.addresses(name).all(|address| self.busy.contains_key(address));
        if expected {
            // We have destroyed it ourselves. Of its neighbours only those that stay have a reason to be looked at;
            // otherwise a component of a thousand would be planned a thousand times while it goes.
            self.gone.insert(name.clone());
            let stays = |other: &&Arc<str>| self.entries.get(*other).is_some_and(|entry| !entry.instance.deleting);
            self.woken.extend(self.links.neighbours(name).filter(stays).cloned());
        } else {
            self.wake_with_neighbours(name);
        }
        self.relink(name);
        self.sort_out(name);
    }

    fn record_applied(&mut self, stored: Stored) {
        let address = stored.record.address.clone();
        if let Some(before) = &mut self.records_before {
            before.remove(&address);
        }
        // It may be the very version that our own write left.
        if self.unreadable.remove(&address).is_some() {
            self.wake_with_neighbours(&address.name);
        }
        if let Some(parked) = self.busy.get_mut(&address) {
            return parked.applied(stored);
        }
        let old = self.version(&address).is_some_and(|known| stored.version <= known);
        if old || self.erased.contains_key(&address) {
            return;
        }
        self.foreign.insert(address.clone());
        self.keep(stored);
        self.wake_with_neighbours(&address.name);
    }

    fn record_read(&mut self, stored: Stored) {
        let address = &stored.record.address;
        if self.records.contains_key(address) && !self.busy.contains_key(address) {
            self.record_applied(stored);
        }
    }

    fn record_unreadable(&mut self, address: Address, held: Held) {
        if let Some(before) = &mut self.records_before {
            before.remove(&address);
        }
        self.wake_with_neighbours(&address.name);
        self.unreadable.insert(address, held);
    }

    fn record_deleted(&mut self, address: &Address, version: Version) {
        if self.unreadable.remove(address).is_some() {
            self.woken.insert(address.name.clone());
        }
        if let Some(parked) = self.busy.get_mut(address) {
            return parked.deleted(version);
        }
        if self.erased.get(address).is_some_and(|known| *known < version) {
            self.erased.remove(address);
        }
        if self.version(address).is_some_and(|known| known <= version) {
            self.foreign.insert(address.clone());
            self.wake_with_neighbours(&address.name);
            self.drop_record(address);
        }
    }

    /// Wakes those that read something of it which is another value now.
    fn input_changed(&mut self, key: &InputKey, data: Data) {
        let Some((before, readers)) = self.inputs.take(key, data.clone()) else { return };
        let mut settings = Vec::new();
        for name in readers {
            settings.extend(name.strip_prefix(providers::SETTINGS).map(Arc::<str>::from));
            let reader = self.entries.get(name);
            if reader.is_some_and(|entry| entry.instance.inputs.differ(&key.object, &before, &data)) {
                self.woken.insert(name.clone());
            }
        }
        for name in settings {
            // Under other settings every object is another one's.
            self.settings_changed(&name);
        }
    }

    fn namespace_changed(&mut self, value: Value, terminating: Option<Version>) {
        let before = std::mem::replace(&mut self.terminating, terminating);
        if (&self.value, before.is_some()) == (&value, terminating.is_some()) {
            self.is_emptied |= before != terminating;
            return;
        }
        self.value = value;
        self.namespace_version += 1;
        self.wake_all();
    }

    fn keep(&mut self, stored: Stored) {
        let name = stored.record.address.name.clone();
        let used = used_names(&stored);
        let before = self.records.insert(stored.record.address.clone(), stored);
        // One record of a thousand of a family costs no look at all the others, as long as it adds nothing but links.
        match before.as_ref().map(|before| (before, used_names(before))) {
            Some((before, was_used)) if !was_used.is_subset(&used) => {
                // What it used was create-before-destroy because of it.
                if before.record.current.as_ref().is_some_and(|object| object.create_before_destroy) {
                    self.woken.extend(was_used.difference(&used).cloned());
                }
                self.relink(&name);
            }
            _ => self.links.add(&name, used),
        }
        self.sort_out(&name);
    }

    fn drop_record(&mut self, address: &Address) {
        let Some(before) = self.records.remove(address) else { return };
        let entry = self.entries.get(&address.name);
        let wanted =
            |name: &Arc<str>| entry.is_some_and(|e| e.instance.references.iter().any(|r| r.target.name == *name));
        if !used_names(&before).iter().all(wanted) {
            self.relink(&address.name);
        }
        self.sort_out(&address.name);
    }

    fn relink(&mut self, name: &Arc<str>) {
        let entry = self.entries.get(name);
        let wanted = entry.into_iter().flat_map(|entry| {
            let instance = &entry.instance;
            let before = instance.moved_from.iter().map(|address| &address.name);
            let settings = self.providers.config_of(instance).into_iter().flat_map(|config| config.references.iter());
            instance.references.iter().chain(settings).map(|r| &r.target.name).chain(before)
        });
        let records = of_name(&self.records, name);
        let mut targets: BTreeSet<Arc<str>> = wanted.filter(|target| *target != name).cloned().collect();
        targets.extend(records.flat_map(|(_, stored)| used_names(stored)));
        self.links.set(name, targets);
    }
}

#[cfg(test)]
mod tests;
