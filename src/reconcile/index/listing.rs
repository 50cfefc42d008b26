//! Lists that are read anew: what is not in them any more is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Index;
use super::families::KnownFamilies;

impl Index {
    /// All `DataSources`, or all Resources, are about to be listed.
    pub(super) fn relisting(&mut self, data: bool) {
        let names = self.names(data);
        *self.unlisted(data) = Some(names);
    }

    /// They were listed.
    pub(super) fn listed(&mut self, data: bool) {
        for name in self.unlisted(data).take().unwrap_or_default() {
            self.resource_deleted(&name);
        }
    }

    /// What is not listed again yet; `None` when they are not being listed.
    pub(super) fn unlisted(&mut self, data: bool) -> &mut Option<BTreeSet<Arc<str>>> {
        if data { &mut self.data_before } else { &mut self.resources_before }
    }

    /// The names of all `DataSources`, or of all Resources.
    fn names(&self, data: bool) -> BTreeSet<Arc<str>> {
        let entries = self.entries.iter().filter(|(_, entry)| entry.instance.address.is_data() == data);
        entries.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn records_relisting(&mut self) {
        // The list will be read after this moment, so it shows that these are gone.
        self.erased.clear();
        self.unreadable.clear();
        self.families.relisting();
        self.records_before = Some(self.records.iter().map(|(address, s)| (address.clone(), s.version)).collect());
    }

    pub(super) fn records_listed(&mut self) {
        self.wake_for_family(KnownFamilies::listed);
        for (address, version) in self.records_before.take().unwrap_or_default() {
            // One that we wrote since may have been written after the list was read.
            if self.version(&address) == Some(version) {
                self.record_deleted(&address, version);
            }
        }
    }
}
