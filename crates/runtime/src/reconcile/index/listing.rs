//! Handles new lists of a watch: objects that they do not contain no longer exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Index;
use super::deferred_events::DeferredEvents;
use super::families::FamilyCache;
use model::{Address, Version};

impl Index {
    /// Starts a list of all `DataSources`, or of all Resources.
    pub(super) fn relisting(&mut self, data: bool) {
        let names = self.names(data);
        *self.unlisted(data) = Some(names);
    }

    /// Ends the list.
    pub(super) fn listed(&mut self, data: bool) {
        for name in self.unlisted(data).take().unwrap_or_default() {
            self.resource_deleted(&name);
        }
    }

    /// The names that the current list does not contain yet; `None` outside of a list.
    pub(super) fn unlisted(&mut self, data: bool) -> &mut Option<BTreeSet<Arc<str>>> {
        if data { &mut self.data_before } else { &mut self.resources_before }
    }

    fn names(&self, data: bool) -> BTreeSet<Arc<str>> {
        let entries = self.entries.iter().filter(|(_, entry)| entry.instance.address.is_data() == data);
        entries.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn records_relisting(&mut self) {
        // The list is read after this moment, so it shows these deletions.
        self.erased.clear();
        self.unreadable.clear();
        self.families.relisting();
        let all = self.records.keys().chain(self.busy.keys());
        let observed = all.filter_map(|address| Some((address.clone(), self.observed_version(address)?)));
        self.records_before = Some(observed.collect());
    }

    pub(super) fn records_listed(&mut self) {
        self.wake_for_family(FamilyCache::listed);
        for (address, version) in self.records_before.take().unwrap_or_default() {
            // A record with a newer version may have been written after the list was read.
            if self.observed_version(&address) == Some(version) {
                self.record_deleted(&address, version);
            }
        }
        let (records, busy) = (&self.records, &self.busy);
        self.record_sizes.retain(|address| records.contains_key(address) || busy.contains_key(address));
    }

    /// The version of a record, also from a deferred event.
    fn observed_version(&self, address: &Address) -> Option<Version> {
        let deferred = self.busy.get(address).and_then(DeferredEvents::applied_version);
        deferred.max(self.version(address))
    }
}
