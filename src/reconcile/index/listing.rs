//! Handles new lists of a watch: objects that they do not contain no longer exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Index;
use super::families::FamilyCache;

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
        self.records_before = Some(self.records.iter().map(|(address, s)| (address.clone(), s.version)).collect());
    }

    pub(super) fn records_listed(&mut self) {
        self.wake_for_family(FamilyCache::listed);
        for (address, version) in self.records_before.take().unwrap_or_default() {
            // A record with a newer version may have been written after the list was read.
            if self.version(&address) == Some(version) {
                self.record_deleted(&address, version);
            }
        }
    }
}
