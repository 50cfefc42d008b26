//! Resolves intents that a crash or another process left open, one object at a time, while everything else continues.

use std::collections::BTreeSet;

use super::index::Work;
use super::objects::Hold;
use super::{Command, Reconciler, RecoveryResult};
use crate::execute::{Recovery, Written};
use model::{Name, Stored};

impl Reconciler {
    /// Starts the recovery of every object of these names whose record has an open intent that no step of this process
    /// is executing.
    pub fn start_recoveries(&mut self, names: &BTreeSet<Name>) {
        let mut open = Vec::new();
        for name in names {
            let records = self.recorded(name).map(|(_, stored)| stored);
            open.extend(records.filter(|stored| stored.record.intent.is_some()).cloned());
        }
        for stored in open {
            let address = &stored.record.address;
            let fingerprint = self.index.fingerprint(address);
            let held = self.objects.entry(address).held(fingerprint, self.now.time).is_some();
            if held || self.index.records().work_on(address).is_some() {
                continue;
            }
            self.index.begin(address, Work::Recovery);
            self.commands.push(Command::Recover(stored));
        }
    }

    /// Handles the result of a recovery; the object is planned again.
    pub fn handle_recovery(&mut self, recovered: RecoveryResult) {
        let RecoveryResult { address, outcome, warnings } = recovered;
        self.report_provider_warnings(&address, &warnings.iter().collect::<Vec<_>>());
        // Computed before the record changes: dependents may be connected through the old record only.
        let connected = self.index.component([address.name().clone()]);
        // Computed from the state that was judged: anything that the watch has delivered since ends the hold.
        let fingerprint = self.index.fingerprint(&address);
        let written = match &outcome {
            Recovery::Missing => Written::Missing,
            Recovery::Resolved(stored) => Written::Record(stored.clone()),
            Recovery::Erased => Written::Erased,
            Recovery::Blocked(..) => Written::Nothing,
        };
        self.index.end(&address, written);
        match outcome {
            Recovery::Blocked(held, until) => {
                tracing::warn!(
                    namespace = &**self.namespace(), object = %address, reason = %held.reason,
                    "could not resolve an interrupted operation yet: {}", held.message
                );
                let until = until.map(|at| self.now.time_of(at));
                let tracked = self.objects.entry(&address);
                tracked.hold = Some(Box::new(Hold { held, until, fingerprint }));
                tracked.retry_at = until;
                until.into_iter().for_each(|at| self.objects.wake_at(&address, at));
            }
            Recovery::Missing => {
                tracing::warn!(namespace = &**self.namespace(), object = %address, "the record of an interrupted operation is gone");
            }
            // It is unknown whether the object still exists and what it should be compared with.
            Recovery::Resolved(stored) if is_in_doubt(&stored) => self.objects.entry(&address).unread = true,
            Recovery::Resolved(_) | Recovery::Erased => {}
        }
        connected.iter().for_each(|name| self.touch(name));
    }
}

/// Whether recovery has left it to the next plan to find out what the object is now.
fn is_in_doubt(stored: &Stored) -> bool {
    stored.record.current.as_ref().is_some_and(|object| object.matching_config.is_none())
}
