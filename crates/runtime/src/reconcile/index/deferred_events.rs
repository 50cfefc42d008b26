//! Watch events about a record that arrive while a step of its object is running.

use super::Event;
use model::{Address, Stored, Version};

/// The last events of the watch. Only the result of the step shows which of them it caused.
#[derive(Clone, Debug, Default)]
pub(super) struct DeferredEvents {
    /// The version of the record that the step started from. `None`: it knew no record.
    base: Option<Version>,
    /// Whether the index of its family, if it has one, showed then which instances have a record.
    is_indexed: bool,
    deleted: Option<Version>,
    /// The newest form since `deleted`, or since the start.
    applied: Option<Stored>,
}

impl DeferredEvents {
    pub(super) fn on(base: Option<Version>, is_indexed: bool) -> Self {
        Self { base, is_indexed, ..Self::default() }
    }

    pub(super) fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// Whether a step that ended without a record has removed the one of this version. A record that another process
    /// wrote without the step's knowledge still exists.
    pub(super) fn removed(&self, version: Version) -> bool {
        self.base.is_some_and(|base| version <= base)
    }

    pub(super) fn applied(&mut self, stored: Stored) {
        self.applied = Some(stored);
    }

    /// The version of the newest form.
    pub(super) fn applied_version(&self) -> Option<Version> {
        self.applied.as_ref().map(|stored| stored.version)
    }

    pub(super) fn deleted(&mut self, version: Version) {
        self.deleted = Some(version);
        self.applied = None;
    }

    /// Whether the watch has delivered the deletion of the record that had this version. A list without the record has
    /// that version itself, the deletion a greater one.
    pub(super) fn saw_deletion_of(&self, version: Version) -> bool {
        self.deleted.is_some_and(|deleted| deleted >= version)
    }

    /// The events to apply, in order.
    pub(super) fn into_events(self, address: &Address) -> impl Iterator<Item = Event> + use<> {
        let deleted = self.deleted.map(|version| Event::RecordDeleted(address.clone(), version));
        deleted.into_iter().chain(self.applied.map(Event::RecordApplied))
    }
}
