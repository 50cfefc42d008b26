//! The desired and the recorded state of one namespace. Synchronous: it receives events and returns the names to plan.
//!
//! ```text
//! [ Resource watch ] --\                        /--> names to plan
//! [ record watch   ] ----> Index::apply ---->  <
//! [ own writes     ] --/   (links, overlay)     \--> records that another process has changed
//! ```
//!
//! **Read your writes.** The watch may deliver events that are older than the last write of this process. The index has
//! each record at the version last written and ignores older events. While a step of an object runs (it is *busy*), its
//! events are deferred until the result of the step is known. The finalizer and the annotation on a Resource count as
//! written until the watch confirms them.

mod approvals;
mod families;
mod fingerprint;
mod renames;
mod inputs;
mod status_cache;
mod links;
mod proposal;
mod providers;
mod published_status;
mod records;
mod wake;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::store::ResourceMeta;
use crate::store::secrets::Family;
use engine::load::{Config, DataLookup, Instance};
use engine::plan::ObjectBlock;
use model::{Address, Diagnostics, Name, Namespace, Observed, Stored, Uid, Value, Version, in_family};

pub use self::approvals::{ApprovalPlan, PlanId};
pub use self::inputs::InputKey;
pub use self::providers::{ObservedProviderConfig, ProviderConfigMeta, ProviderConfigView, Providers};
pub use self::published_status::PublishedStatus;
pub use self::records::{KnownRecord, Records, StepStart, Work};
pub use self::status_cache::StatusOutcome;
pub use self::wake::Changes;

use self::approvals::ApprovalCache;
use self::families::FamilyCache;
use self::inputs::{InputCache, Reader};
use self::links::{Links, dependency_names};
use self::providers::ProviderCache;
use self::renames::RenameCandidates;
use self::status_cache::StatusCache;

/// A watched Resource in compact form.
#[derive(Clone, Debug)]
pub struct ObservedResource {
    /// The desired state.
    pub instance: Arc<Instance>,
    pub published: PublishedStatus,
    /// The resource version of all fields.
    pub version: Version,
    /// The metadata that patches of the finalizer and the annotation need.
    pub meta: Arc<ResourceMeta>,
}

/// A kind of objects of which a watch lists all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListedKind {
    Resources,
    DataSources,
    Modules,
    ProviderConfigs,
    Records,
}

/// An event of a watch, or the result of a request to the API server.
#[derive(Clone, Debug)]
pub enum Event {
    /// A Resource or a `DataSource` was created or changed.
    ResourceApplied(ObservedResource),
    /// The write of the status with this digest, of the Resource with this UID, has ended.
    StatusWritten { name: Name, uid: Uid, digest: u64, outcome: StatusOutcome },
    /// A Resource or a `DataSource` was deleted, by the name in its address.
    ResourceDeleted(Name),
    /// A record was created or changed.
    RecordApplied(Stored),
    /// The size of a record in its store, in bytes.
    RecordSized(Address, u64),
    /// A record was read outside of the watch, and was found or not. `known`: what the index knew of it when the read
    /// began. The event is ignored if the index knows something else by now.
    RecordRead { address: Address, known: KnownRecord, found: Option<Stored> },
    /// A record was deleted at this version.
    RecordDeleted(Address, Version),
    /// A record exists but cannot be read, for this reason.
    RecordUnreadable(Address, ObjectBlock),
    /// The index of a family was created or changed.
    FamilyApplied(Family),
    /// The index of a family was deleted at this version.
    FamilyDeleted(Name, Version),
    /// The index of a family exists but cannot be read, for this reason.
    FamilyUnreadable(Name, String),
    /// A new list of all objects of a kind starts.
    Relisting(ListedKind),
    /// The list is complete: objects that it does not contain no longer exist.
    Listed(ListedKind),
    /// The data of a `ConfigMap` or Secret, as a service account reads it.
    Input(InputKey, DataLookup),
    /// The Providers of the cluster have changed.
    Providers(Providers),
    /// A `ProviderConfig` was created or changed.
    ProviderConfigApplied(ObservedProviderConfig),
    /// A `ProviderConfig` was deleted.
    ProviderConfigDeleted(Arc<str>),
    /// A Plan with a digest was created, changed or written.
    ApprovalApplied(Arc<str>, Box<ApprovalPlan>),
    /// A Plan was deleted.
    ApprovalDeleted(Arc<str>),
    /// What was seen of the object of an instance.
    ObjectSeen(Address, Observed),
    /// The desired state is incomplete, for these reasons: missing Resources may exist. Empty: it is complete.
    Incomplete(Diagnostics),
    /// The namespace has changed.
    Namespace {
        value: Value,
        /// While it is being deleted, its version. It changes when the API server updates the list of remaining
        /// content.
        terminating: Option<Version>,
    },
}

#[derive(Clone, Debug)]
struct Entry {
    instance: Arc<Instance>,
    status: StatusCache,
    meta: Arc<ResourceMeta>,
    overlay: Overlay,
}

/// The finalizer and the annotation on a Resource as this process wrote them last, until the watch confirms them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Overlay {
    /// Nothing to confirm.
    None,
    /// Added, for the Resource of this UID.
    Marked(Uid),
    /// Removed, from the Resource of this UID.
    Unmarked(Uid),
}

#[derive(Clone, Debug, Default)]
pub struct Index {
    namespace: Namespace,
    value: Value,
    terminating: Option<Version>,
    /// Why the desired state is incomplete.
    incomplete: Diagnostics,
    /// Counts the changes of the namespace, which any expression may read.
    namespace_version: u64,
    entries: BTreeMap<Name, Entry>,
    records: Records,
    families: FamilyCache,
    links: Links,
    renames: RenameCandidates,
    inputs: InputCache,
    providers: ProviderCache,
    approvals: ApprovalCache,
    changes: Changes,
    /// During a list: the names that it does not contain yet. `records` has those of records.
    unlisted: BTreeMap<ListedKind, BTreeSet<Arc<str>>>,
}

impl Index {
    /// An empty index. `versions` must be greater than any version of provider configurations of an earlier index of
    /// the namespace: drivers cache by version.
    pub fn new(namespace: Namespace, versions: u64) -> Self {
        let value = Value::map([("name", Value::String(namespace.text().clone()))]);
        Self { namespace, value, providers: ProviderCache::counting_from(versions), ..Self::default() }
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    pub fn namespace_value(&self) -> &Value {
        &self.value
    }

    pub fn namespace_annotation(&self, name: &str) -> Option<&str> {
        self.value.get("annotations")?.get(name)?.as_str()
    }

    pub fn is_terminating(&self) -> bool {
        self.terminating.is_some()
    }

    /// Whether the namespace has no Resource, no record and no `ProviderConfig`.
    pub fn is_empty(&self) -> bool {
        self.records.is_unknown()
            && self.entries.is_empty()
            && self.families.is_empty()
            && self.providers.is_empty()
            && self.approvals.is_empty()
    }

    /// The Plans that approve changes, or wait for an approval.
    pub fn approvals(&self) -> &ApprovalCache {
        &self.approvals
    }

    pub fn approvals_mut(&mut self) -> &mut ApprovalCache {
        &mut self.approvals
    }

    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The Resource of that name with the finalizer and the annotation as last written, and with its inputs.
    pub fn instance(&self, name: &str) -> Option<Arc<Instance>> {
        self.entries.get(name).map(|entry| self.inputs.resolved(entry.overlay.over(&entry.instance)))
    }

    /// The UID of a Resource that lacks its finalizer or its annotation, although it is not being deleted and has, or had,
    /// a record; with the address of such a record, if its object is recorded. What this process has just removed itself
    /// is not lacking.
    pub fn unclaimed(&self, name: &Name) -> Option<(Address, Uid)> {
        let entry = self.entries.get(name)?;
        let instance = entry.overlay.over(&entry.instance);
        let may_lack = !instance.uid.is_empty() && !instance.deleting && !matches!(entry.overlay, Overlay::Unmarked(_));
        if !may_lack || instance.is_marked() {
            return None;
        }
        let mut records = in_family(&self.records, name).map(|(_, stored)| &stored.record);
        let record = records.find(|record| record.uid == instance.uid && record.has_objects());
        let address = record
            .map(|record| record.address.clone())
            .or_else(|| instance.has_record_annotation().then(|| Address::single(name.clone())))?;
        Some((address, instance.uid.clone()))
    }

    /// Whether the Resource of that name exists and is not being deleted.
    pub fn is_desired(&self, name: &str) -> bool {
        self.instance(name).is_some_and(|instance| instance.is_desired())
    }

    /// All Resources.
    pub fn instances(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.entries.values().map(|entry| &entry.instance)
    }

    /// The Resources with an import.
    pub fn importing(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.entries.values().map(|entry| &entry.instance).filter(|instance| instance.has_import())
    }

    /// The ConfigMaps and Secrets to watch, if they have changed since the last call.
    pub fn take_desired_inputs(&mut self) -> Option<BTreeSet<InputKey>> {
        self.inputs.take_desired()
    }

    /// The metadata of the Resource from its last watch event.
    pub fn metadata(&self, name: &str) -> Option<&ResourceMeta> {
        self.entries.get(name).map(|entry| &*entry.meta)
    }

    pub fn published(&self, name: &str) -> Option<&PublishedStatus> {
        self.entries.get(name).map(|entry| entry.status.published())
    }

    /// Whether a status with this digest, computed from this generation, need not be written.
    pub fn is_published(&self, name: &str, digest: u64, generation: i64) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.status.is_published(digest, generation))
    }

    /// Records a status that is being written, and the generation that it was computed from.
    pub fn publish(&mut self, name: &str, published: PublishedStatus, generation: i64) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.status.publish(published, generation);
        }
    }

    pub fn knows(&self, name: &Name) -> bool {
        self.entries.contains_key(name) || self.is_recorded(name)
    }

    /// Whether any address of that name has a record.
    fn is_recorded(&self, name: &Name) -> bool {
        self.addresses(name).next().is_some()
    }

    pub fn addresses<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Address> {
        in_family(&self.records, name).map(|(address, _)| address)
    }

    pub fn apply(&mut self, event: Event) {
        self.providers.touch();
        match event {
            Event::ResourceApplied(observed) => self.resource_applied(observed),
            Event::StatusWritten { name, uid, digest, outcome } => {
                let entry = self.entries.get_mut(&name).filter(|entry| entry.instance.uid == uid);
                if entry.is_some_and(|entry| entry.status.written(digest, outcome)) {
                    self.changes.overwritten.insert(name);
                }
            }
            Event::ResourceDeleted(name) => self.resource_deleted(&name),
            Event::RecordApplied(stored) => self.record_applied(stored),
            Event::RecordSized(address, bytes) => self.record_sized(&address, bytes),
            Event::RecordRead { address, known, found } => self.record_read(&address, known, found),
            Event::RecordDeleted(address, version) => self.record_deleted(&address, version),
            Event::RecordUnreadable(address, held) => self.record_unreadable(address, held),
            Event::FamilyApplied(family) => self.wake_for_family(|families| families.applied(family)),
            Event::FamilyDeleted(name, version) => {
                self.wake_for_family(|families| families.deleted(name.clone(), version));
                self.require_family(&name);
            }
            Event::FamilyUnreadable(name, why) => self.wake_for_family(|families| families.unreadable(name, why)),
            Event::Relisting(kind) => self.relisting(kind),
            Event::Listed(kind) => self.listed(kind),
            Event::Input(key, data) => self.input_changed(&key, data),
            Event::Providers(providers) => {
                if self.providers.providers(providers) {
                    self.wake_dependents(|_| true);
                }
            }
            Event::ProviderConfigApplied(observed) => {
                self.provider_config_applied(observed);
                self.providers.touch();
            }
            Event::ProviderConfigDeleted(name) => self.provider_config_deleted(&name),
            Event::ApprovalApplied(name, plan) => {
                let names = self.approvals.applied(name, *plan);
                self.wake_known(names);
            }
            Event::ApprovalDeleted(name) => {
                let names = self.approvals.deleted(&name);
                self.wake_known(names);
            }
            Event::ObjectSeen(address, seen) => self.changes.seen.entry(address).or_default().add(seen),
            Event::Incomplete(why) => self.incomplete(why),
            Event::Namespace { value, terminating } => self.namespace_changed(value, terminating),
        }
    }

    /// The names that are connected with any of these, by configuration or by records. The cost is proportional to the
    /// result.
    pub fn component(&self, names: impl IntoIterator<Item = Name>) -> BTreeSet<Name> {
        self.with_rename_candidates(self.links.component(names))
    }

    /// Whether a list of Resources is in progress: Resources that it does not contain yet may have changed.
    pub fn is_relisting(&self) -> bool {
        [ListedKind::Resources, ListedKind::DataSources, ListedKind::Modules]
            .iter()
            .any(|kind| self.unlisted.contains_key(kind))
    }

    /// The configuration of these names.
    pub fn config(&self, names: &BTreeSet<Name>) -> Config {
        let mut config = Config { namespace: self.namespace.clone(), ..Config::default() };
        self.providers.fill(&mut config, |provider_config| self.inputs.resolved_config(provider_config));
        let resources = names.iter().filter_map(|name| self.instance(name));
        resources.for_each(|resource| config.add(self.families.checked(resource)));
        config.incomplete.clone_from(&self.incomplete);
        config.add_removed(names.iter().flat_map(|name| in_family(&self.records, name)).map(|(_, stored)| stored));
        config.link();
        config
    }

    /// Instances in the family indexes of these names, including those whose record is lost.
    pub fn indexed<'a>(&'a self, names: &'a BTreeSet<Name>) -> impl Iterator<Item = &'a Address> {
        let indexed = names.iter().flat_map(|name| self.families.instances(name));
        // The watch has not delivered all changes of instances that this process removed.
        indexed.filter(|address| !self.records.is_erased(address))
    }

    /// Those of these names whose index replaces one that was lost.
    pub fn rebuilt_indexes(&self, names: &BTreeSet<Name>) -> BTreeSet<Name> {
        names.iter().filter(|name| self.families.is_rebuilt(name)).cloned().collect()
    }

    fn relisting(&mut self, kind: ListedKind) {
        let names = match kind {
            ListedKind::Resources | ListedKind::DataSources | ListedKind::Modules => self
                .entries
                .iter()
                .filter(|(_, entry)| listed_kind(&entry.instance) == kind)
                .map(|(name, _)| name.text().clone())
                .collect(),
            ListedKind::ProviderConfigs => self.providers.names().cloned().collect(),
            ListedKind::Records => return self.records_relisting(),
        };
        self.unlisted.insert(kind, names);
    }

    fn listed(&mut self, kind: ListedKind) {
        if kind == ListedKind::Records {
            return self.records_listed();
        }
        for name in self.unlisted.remove(&kind).unwrap_or_default() {
            match kind {
                ListedKind::ProviderConfigs => self.provider_config_deleted(&name),
                _ => self.resource_deleted(&name.into()),
            }
        }
    }

    fn mark_listed(&mut self, kind: ListedKind, name: &str) {
        if let Some(unlisted) = self.unlisted.get_mut(&kind) {
            unlisted.remove(name);
        }
    }

    fn resource_applied(&mut self, observed: ObservedResource) {
        let ObservedResource { instance, published, version, meta } = observed;
        let name = instance.address.name().clone();
        self.mark_listed(listed_kind(&instance), &name);
        let has_record = self.is_recorded(&name);
        let known = self.entries.get(&name).map(|entry| &entry.instance);
        let instance = match known {
            Some(known) => instance.share_with(known),
            None => instance,
        };
        self.inputs.set(&name, known.map(AsRef::as_ref), Some(&instance));
        let entry = match self.entries.remove(&name) {
            Some(old) if old.instance.uid == instance.uid => {
                // `state rm` without a record removes the annotation. Removals by this process are known.
                let forgotten = old.overlay == Overlay::None
                    && !has_record
                    && old.instance.record_annotation == instance.uid
                    && instance.record_annotation != instance.uid;
                if forgotten || is_relevant_change(&old.instance, &instance, has_record) {
                    self.wake_with_renames(&instance);
                    self.wake_with_renames(&old.instance);
                }
                let mut status = old.status;
                if status.observed(version, published) {
                    self.changes.overwritten.insert(name.clone());
                }
                Entry { overlay: old.overlay.confirmed_by(&instance), instance, status, meta }
            }
            replaced => {
                self.wake_with_renames(&instance);
                if let Some(old) = replaced {
                    self.wake_with_renames(&old.instance);
                }
                Entry { instance, status: StatusCache::new(published), meta, overlay: Overlay::None }
            }
        };
        self.entries.insert(name.clone(), entry);
        self.relink(&name);
        self.update_renames(&name);
    }

    fn resource_deleted(&mut self, name: &Name) {
        let Some(entry) = self.entries.remove(name) else { return };
        self.changes.names.extend(self.rename_candidates(&entry.instance));
        // A Plan that waits until the Resource is planned would wait for ever.
        self.approvals.touch_names([name]);
        self.inputs.set(name, Some(&entry.instance), None);
        // The Resource is deleted just before the step that destroyed its object ends.
        let expected =
            entry.instance.deleting && self.addresses(name).all(|address| self.records.work_on(address).is_some());
        if expected {
            // The deletion was planned. Only neighbors that remain must be planned; otherwise a component of a thousand
            // objects would be planned a thousand times during its deletion.
            self.changes.removed.insert(name.clone());
            let remaining = self
                .links
                .neighbours(name)
                .filter(|neighbour| self.entries.get(*neighbour).is_some_and(|entry| !entry.instance.deleting));
            self.changes.names.extend(remaining.cloned());
        } else {
            self.wake_with_neighbours(name);
        }
        self.relink(name);
        self.update_renames(name);
    }

    /// Plans the Resources that read a value that has changed.
    fn input_changed(&mut self, key: &InputKey, data: DataLookup) {
        let Some((before, readers)) = self.inputs.update(key, data.clone()) else { return };
        let mut settings = Vec::new();
        for reader in readers {
            match reader {
                Reader::Resource(name) => {
                    let reader = self.entries.get(name);
                    if reader.is_some_and(|entry| entry.instance.inputs.differ(&key.object, &before, &data)) {
                        self.changes.names.insert(name.clone());
                    }
                }
                Reader::ProviderConfig(name) => settings.push(name.clone()),
            }
        }
        for name in settings {
            // A different provider configuration affects every object.
            self.provider_config_changed(&name);
        }
    }

    fn namespace_changed(&mut self, value: Value, terminating: Option<Version>) {
        let before = std::mem::replace(&mut self.terminating, terminating);
        if (&self.value, before.is_some()) == (&value, terminating.is_some()) {
            self.changes.has_shrunk |= before != terminating;
            return;
        }
        if before.is_some() && terminating.is_none() {
            // It was removed by force and created again. Objects of the earlier one exist, and can be written again.
            self.entries.values_mut().for_each(|entry| entry.status.write_again());
        }
        self.value = value;
        self.namespace_version += 1;
        self.wake_all();
    }

    fn relink(&mut self, name: &Name) {
        let entry = self.entries.get(name);
        let desired = entry.into_iter().flat_map(|entry| {
            let instance = &entry.instance;
            let before = instance.moved_from.iter().map(|moved| moved.from.name());
            let settings = self.providers.config_of(instance).into_iter().flat_map(|config| config.references.iter());
            instance.references.iter().chain(settings).map(|r| r.target.name()).chain(before)
        });
        let records = in_family(&self.records, name);
        let mut targets: BTreeSet<Name> = desired.filter(|target| *target != name).cloned().collect();
        targets.extend(records.flat_map(|(_, stored)| dependency_names(stored)));
        self.links.set(name, targets);
    }
}

impl Overlay {
    /// The overlay after the watch has delivered this form of the Resource.
    fn confirmed_by(self, observed: &Instance) -> Self {
        let marked = observed.is_marked();
        let unmarked = !observed.has_finalizer && observed.record_annotation != observed.uid;
        match self {
            // A record of an earlier Resource of the name says nothing about the finalizer and the annotation of this
            // one.
            Self::Marked(uid) | Self::Unmarked(uid) if uid != observed.uid => Self::None,
            Self::Marked(_) if marked => Self::None,
            Self::Unmarked(_) if unmarked => Self::None,
            unconfirmed => unconfirmed,
        }
    }

    /// The Resource with the finalizer and the annotation as last written.
    fn over(&self, observed: &Arc<Instance>) -> Arc<Instance> {
        let (has_finalizer, record_annotation) = match self {
            Self::None => return observed.clone(),
            Self::Marked(uid) => (true, uid.clone()),
            Self::Unmarked(_) => (false, Uid::default()),
        };
        Arc::new(Instance { record_annotation, has_finalizer, ..Instance::clone(observed) })
    }
}

fn listed_kind(instance: &Instance) -> ListedKind {
    match instance.address.kind() {
        api::MODULE_KIND => ListedKind::Modules,
        api::DATA_SOURCE_KIND => ListedKind::DataSources,
        _ => ListedKind::Resources,
    }
}

/// Whether a change of a Resource requires a plan. A change of the finalizer or the annotation does not, unless another
/// client removed them from a Resource that has, or had, a record.
fn is_relevant_change(old: &Instance, new: &Instance, has_record: bool) -> bool {
    let finalizer_lost = old.has_finalizer && !new.has_finalizer;
    let annotation_lost = old.record_annotation != new.record_annotation && new.record_annotation != new.uid;
    let is_held = has_record || new.has_record_annotation();
    !old.is_equivalent(new) || (is_held && (finalizer_lost || annotation_lost))
}

#[cfg(test)]
pub(crate) mod tests;
