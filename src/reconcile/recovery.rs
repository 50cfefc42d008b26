//! Recovery: settling the intents that a crash, or another process, has left open, one object at a time, while everything
//! else goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::tracked::Hold;
use super::{Command, Reconciler};
use crate::execute::Recovery;
use crate::model::{Address, Diagnostics};

/// What became of a recovery.
#[derive(Debug)]
pub struct Recovered {
    /// Whose intent it was.
    pub address: Address,
    /// What it came to.
    pub outcome: Recovery,
    /// What the driver has warned of.
    pub warnings: Diagnostics,
}

impl Reconciler {
    /// Starts the recovery of every object of these names that has an open intent which no step here is carrying out.
    pub(super) fn start_recoveries(&mut self, names: &BTreeSet<Arc<str>>) {
        let mut open = Vec::new();
        for name in names {
            let own = self.recorded(name).filter(|(_, stored)| stored.record.intent.is_some());
            open.extend(own.map(|(_, stored)| stored.clone()));
        }
        for stored in open {
            let address = &stored.record.address;
            let fingerprint = self.index.fingerprint(address);
            let held = self.objects.entry(address).held(fingerprint, self.now.time).is_some();
            if held || self.schedule.is_running(address) || !self.recovering.insert(address.clone()) {
                continue;
            }
            self.index.begin(address, Some(stored.version));
            self.commands.push(Command::Recover(stored));
        }
    }

    /// Takes in what a recovery came to; the object is planned again.
    pub(super) fn take_recovery(&mut self, recovered: Recovered) {
        let Recovered { address, outcome, warnings } = recovered;
        self.advise(&address, &warnings.iter().collect::<Vec<_>>());
        // What waits for it is connected with it by the record as it was, and perhaps by nothing else.
        let connected = self.index.component([address.name.clone()]);
        self.recovering.remove(&address);
        match &outcome {
            Recovery::Settled(stored) => {
                self.schedule.records_mut().insert(address.clone(), stored.clone());
            }
            Recovery::Erased => drop(self.schedule.records_mut().remove(&address)),
            Recovery::Held(..) => {}
        }
        // Of the situation that was judged: what the watch has delivered meanwhile ends a hold.
        let fingerprint = self.index.fingerprint(&address);
        self.index.end_recovery(&address, self.schedule.records().get(&address));
        self.bring_in(&address);
        match outcome {
            Recovery::Held(held, until) => {
                tracing::warn!(
                    namespace = &**self.namespace(), %address, reason = %held.reason,
                    "an open operation could not be settled yet: {}", held.message
                );
                let until = until.map(|at| self.now.time_of(at));
                let tracked = self.objects.entry(&address);
                tracked.hold = Some(Hold { held, until, fingerprint });
                tracked.retry_at = until;
                until.into_iter().for_each(|at| self.objects.wake_at(&address, at));
            }
            Recovery::Settled(_) | Recovery::Erased => {
                tracing::info!(namespace = &**self.namespace(), %address, "settled an open operation");
            }
        }
        connected.iter().for_each(|name| self.touch(name));
    }
}
