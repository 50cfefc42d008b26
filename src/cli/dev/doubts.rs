//! Objects that cannot be planned now, and may be later though no file changes: somebody else has a part in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use crate::model::{Action, Address};
use crate::plan::{Held, Plan};
use crate::reconcile::retry;

/// When they are looked at again, ever later.
#[derive(Debug, Default)]
pub struct Doubts {
    open: BTreeMap<Address, Doubt>,
}

#[derive(Debug)]
struct Doubt {
    count: u32,
    at: Instant,
    /// What it reads, which is read anew as well.
    wants: Arc<[Address]>,
}

impl Doubts {
    /// Takes in a plan. What is `held` has its own time.
    pub fn note(&mut self, plan: &Plan, held: &BTreeMap<Address, Held>, now: Instant, random: u64) {
        let mut known = std::mem::take(&mut self.open);
        for change in plan.changes.iter().filter(|change| change.deposed.is_none() && change.action == Action::Blocked)
        {
            let address = &change.address;
            let Some(reason) = change.blocked.filter(|reason| retry::may_pass(*reason)) else { continue };
            if held.contains_key(address) {
                continue;
            }
            let doubt = match known.remove(address) {
                Some(doubt) if doubt.at > now => doubt,
                before => {
                    let count = before.map_or(0, |doubt| doubt.count) + 1;
                    let wants = plan.wants.get(address).cloned().unwrap_or_default();
                    Doubt { count, at: now + retry::delay_after(reason, count, random), wants }
                }
            };
            self.open.insert(address.clone(), doubt);
        }
    }

    /// The files changed: everything begins anew.
    pub fn forget_all(&mut self) {
        self.open.clear();
    }

    /// When the next one is looked at.
    pub fn next(&self) -> Option<Instant> {
        self.open.values().map(|doubt| doubt.at).min()
    }

    /// What is to be read anew now.
    pub fn due(&self, now: Instant) -> BTreeSet<Address> {
        let due = self.open.iter().filter(|(_, doubt)| doubt.at <= now);
        due.flat_map(|(address, doubt)| doubt.wants.iter().chain([address])).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Change, Reason};

    fn plan(reason: Reason) -> Plan {
        let blocked = Some(reason);
        let change = Change { blocked, ..Change::plain(Address::single("b"), "thing", Action::Blocked) };
        let wants = BTreeMap::from([(Address::single("b"), Arc::from([Address::single("a")]))]);
        Plan { changes: vec![change], wants, ..Plan::default() }
    }

    #[test]
    fn what_may_pass_is_looked_at_again_ever_later_with_what_it_reads() {
        let (mut doubts, now) = (Doubts::default(), Instant::now());
        doubts.note(&plan(Reason::PreconditionFailed), &BTreeMap::new(), now, 1000);
        assert_eq!(doubts.next(), Some(now + Duration::from_secs(1)));
        assert!(doubts.due(now).is_empty());
        doubts.note(&plan(Reason::PreconditionFailed), &BTreeMap::new(), now, 1000);
        let at = now + Duration::from_secs(1);
        assert_eq!(doubts.next(), Some(at), "another plan before that changes nothing");
        assert_eq!(doubts.due(at), BTreeSet::from([Address::single("a"), Address::single("b")]));
        doubts.note(&plan(Reason::PreconditionFailed), &BTreeMap::new(), at, 1000);
        assert_eq!(doubts.next(), Some(at + Duration::from_secs(2)));
        doubts.note(&plan(Reason::InvalidConfig), &BTreeMap::new(), at, 1000);
        assert_eq!(doubts.next(), None, "that waits for the files");
    }
}
