//! What the watch said about a record while a step of its object was running.

use super::Event;
use crate::model::{Address, Stored, Version};

/// The last word of the watch. Which of it is our own doing can be told only once the step's result is known.
#[derive(Debug, Default)]
pub(super) struct Parked {
    /// The version of the record that the step builds on; `None`: it knew of none.
    base: Option<Version>,
    deleted: Option<Version>,
    /// The newest form since `deleted`, or since the beginning.
    applied: Option<Stored>,
}

impl Parked {
    pub(super) fn on(base: Option<Version>) -> Self {
        Self { base, ..Self::default() }
    }

    /// Whether a step without a record at its end has removed this one: what others had written before it began, and it
    /// knew nothing of, is still there.
    pub(super) fn removed(&self, version: Version) -> bool {
        self.base.is_some_and(|base| version <= base)
    }

    pub(super) fn applied(&mut self, stored: Stored) {
        self.applied = Some(stored);
    }

    pub(super) fn deleted(&mut self, version: Version) {
        self.deleted = Some(version);
        self.applied = None;
    }

    /// Whether the watch has delivered the end of the record that had this version.
    pub(super) fn saw_deletion_after(&self, version: Version) -> bool {
        self.deleted.is_some_and(|deleted| deleted > version)
    }

    /// What is to be taken in again, in order.
    pub(super) fn into_events(self, address: &Address) -> impl Iterator<Item = Event> + use<> {
        let deleted = self.deleted.map(|version| Event::RecordDeleted(address.clone(), version));
        deleted.into_iter().chain(self.applied.map(Event::RecordApplied))
    }
}
