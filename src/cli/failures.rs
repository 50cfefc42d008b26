//! The last failure of each object. The state file keeps it for `explain` and `get`; in a cluster, the status does.

use std::collections::BTreeMap;

use model::{Action, Address, Change, TypeName};
use runtime::execute::{Progress, ProgressKind};
use runtime::store::{LastFailure, StateFile};

/// The failures that the state file contains, with those of this run.
#[derive(Debug, Default)]
pub struct LastFailures {
    known: BTreeMap<Address, LastFailure>,
    is_stored: bool,
}

impl LastFailures {
    /// Starts from the content of the state file.
    pub fn new(stored: BTreeMap<Address, LastFailure>) -> Self {
        Self { known: stored, is_stored: true }
    }

    /// Takes an event of a run: a failed step sets the failure of its object, and a finished step removes it.
    pub fn event(&mut self, progress: &Progress, type_name: impl FnOnce() -> Option<TypeName>) {
        let address = &progress.step.address;
        match &progress.kind {
            ProgressKind::Failed { reason, message, .. } => {
                let failure = LastFailure {
                    at: progress.at,
                    type_name: type_name().unwrap_or_default(),
                    operation: progress.step.operation.as_str().to_owned(),
                    reason: reason.to_string(),
                    message: message.clone(),
                };
                self.known.insert(address.clone(), failure);
                self.is_stored = false;
            }
            ProgressKind::Finished if self.known.remove(address).is_some() => self.is_stored = false,
            _ => {}
        }
    }

    /// Removes the failures of objects for which a plan has nothing to do. `covers`: whether the plan is about an
    /// object, given whether the plan lists it.
    pub fn planned<'a>(
        &mut self,
        changes: impl IntoIterator<Item = &'a Change> + 'a,
        covers: impl Fn(&Address, bool) -> bool,
    ) {
        if self.known.is_empty() {
            return;
        }
        let mut is_pending: BTreeMap<&Address, bool> = BTreeMap::new();
        for change in changes {
            *is_pending.entry(&change.address).or_default() |= change.action != Action::NoOp;
        }
        let before = self.known.len();
        self.known.retain(|address, _| match is_pending.get(address) {
            Some(true) => true,
            listed => !covers(address, listed.is_some()),
        });
        self.is_stored &= self.known.len() == before;
    }

    /// Writes the failures to the state file if they have changed.
    pub fn store(&mut self, state: &StateFile) {
        if self.is_stored {
            return;
        }
        self.is_stored = true;
        if let Err(error) = state.record_failures(&self.known) {
            // The user has already seen the failures.
            tracing::debug!(%error, "the last failures could not be recorded");
        }
    }
}
