//! The sizes of the records of a namespace, as the watch delivers them.

use std::collections::BTreeMap;

use model::Address;

#[derive(Clone, Debug, Default)]
pub(super) struct RecordSizes {
    sizes: BTreeMap<Address, u64>,
    total: u64,
}

impl RecordSizes {
    /// The size of all records in bytes.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn set(&mut self, address: Address, bytes: u64) {
        let before = self.sizes.insert(address, bytes).unwrap_or_default();
        self.total = self.total.saturating_sub(before).saturating_add(bytes);
    }

    pub(super) fn remove(&mut self, address: &Address) {
        let before = self.sizes.remove(address).unwrap_or_default();
        self.total = self.total.saturating_sub(before);
    }

    /// Removes the records that do not exist.
    pub(super) fn retain(&mut self, exists: impl Fn(&Address) -> bool) {
        self.sizes.retain(|address, _| exists(address));
        self.total = self.sizes.values().sum();
    }
}
