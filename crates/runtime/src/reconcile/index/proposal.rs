//! Proposed manifests, applied to a copy of the index: for previews.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Event, Index, InputKey, ObservedResource, PublishedStatus};
use engine::load::{DataLookup, Instance};
use model::{Name, Version};

/// The UID of a proposed object that does not exist.
const NO_UID: &str = "proposed";

impl Index {
    /// Returns a copy in which nothing waits to be planned.
    #[must_use]
    pub fn copy(&self) -> Self {
        let mut copy = self.clone();
        copy.take_changes();
        copy
    }

    /// Applies the manifest of a Resource or a `DataSource`. What the manifest does not contain remains: its identity,
    /// Purlin's marks, and requests in annotations.
    pub fn propose_resource(&mut self, mut proposed: Instance) {
        let name = proposed.address.name().clone();
        let Some(entry) = self.entries.get(&name) else {
            proposed.uid = NO_UID.into();
            return self.apply_proposed(proposed);
        };
        let known = &entry.instance;
        proposed.uid = known.uid.clone();
        proposed.record_annotation = known.record_annotation.clone();
        proposed.has_finalizer = known.has_finalizer;
        proposed.deleting = known.deleting;
        for (request, known) in [
            (&mut proposed.replace_requested, &known.replace_requested),
            (&mut proposed.reconcile_requested, &known.reconcile_requested),
        ] {
            if request.is_empty() {
                *request = Arc::clone(known);
            }
        }
        self.apply_proposed(proposed);
    }

    /// Treats a Resource or a `DataSource` as deleted.
    pub fn propose_deletion(&mut self, name: &str) {
        if let Some(known) = self.entries.get(name).map(|entry| Arc::clone(&entry.instance)) {
            self.apply_proposed(Instance { deleting: true, ..Instance::clone(&known) });
        }
    }

    fn apply_proposed(&mut self, instance: Instance) {
        let entry = self.entries.get(instance.address.name());
        let meta = entry.map(|entry| Arc::clone(&entry.meta)).unwrap_or_default();
        let published = entry.map_or_else(PublishedStatus::empty, |entry| entry.status.published().clone());
        let instance = Arc::new(instance);
        self.apply(Event::ResourceApplied(ObservedResource { instance, published, version: Version(0), meta }));
    }

    /// The names of all Resources and `DataSources`.
    pub fn all_names(&self) -> impl Iterator<Item = &Name> {
        self.entries.keys()
    }

    /// The ConfigMaps and Secrets that Resources and `ProviderConfigs` read.
    pub fn inputs(&self) -> impl Iterator<Item = &InputKey> {
        self.inputs.keys()
    }

    /// Those whose data is not known.
    pub fn unread_inputs(&self) -> BTreeSet<InputKey> {
        let unread = self.inputs.keys().filter(|key| matches!(self.inputs.data(key), Some(DataLookup::Unread)));
        unread.cloned().collect()
    }
}
