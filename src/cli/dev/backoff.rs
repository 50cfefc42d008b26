//! Which objects must wait because their last step failed, and for how long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::model::{Address, Reason};
use crate::plan::Held;
use crate::reconcile::retry;

/// Failures by object.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: BTreeMap<Address, Failure>,
}

#[derive(Debug)]
struct Failure {
    count: u32,
    held: Held,
    /// `None`: only a change of the files can help.
    until: Option<Instant>,
}

impl Backoff {
    /// A step of the object failed.
    pub fn failed(&mut self, address: &Address, held: Held, retryable: bool, now: Instant, random: u64) {
        let count = self.failures.get(address).map_or(0, |failure| failure.count) + 1;
        let until = retryable.then(|| now + retry::delay(count, random));
        self.failures.insert(address.clone(), Failure { count, held, until });
    }

    /// A step of the object did what it was to do.
    pub fn succeeded(&mut self, address: &Address) {
        self.failures.remove(address);
    }

    /// The files changed: whatever failed may work now.
    pub fn forget_all(&mut self) {
        self.failures.clear();
    }

    /// Those that must wait now.
    pub fn held(&self, now: Instant) -> BTreeMap<Address, Held> {
        let waits = |failure: &&Failure| failure.until.is_none_or(|until| until > now);
        let waiting = self.failures.iter().filter(|(_, failure)| waits(failure));
        waiting.map(|(address, failure)| (address.clone(), failure.held.clone())).collect()
    }

    /// When the next one may be tried again.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        self.failures.values().filter_map(|failure| failure.until).filter(|until| *until > now).min()
    }

    /// An object whose change was carried out and is planned once more will not come to rest: it must slow down.
    pub fn restless(&mut self, addresses: &BTreeSet<Address>, now: Instant, random: u64) {
        for address in addresses {
            let message = "it was changed as planned, and the plan is the same again".to_owned();
            self.failed(address, Held { reason: Reason::OperationFailed, message }, true, now, random);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn held() -> Held {
        Held { reason: Reason::OperationFailed, message: "no".to_owned() }
    }

    #[test]
    fn waits_grow_and_end_with_success() {
        let (address, now) = ("web".parse().unwrap(), Instant::now());
        let mut backoff = Backoff::default();
        backoff.failed(&address, held(), true, now, 0);
        let first = backoff.next(now).unwrap();
        assert_eq!(backoff.held(now).len(), 1);
        assert!(backoff.held(first).is_empty());
        backoff.failed(&address, held(), true, now, 0);
        assert!(backoff.next(now).unwrap() > first);
        backoff.succeeded(&address);
        assert!(backoff.held(now).is_empty());
    }

    #[test]
    fn a_refusal_waits_for_a_change() {
        let (address, now) = ("web".parse().unwrap(), Instant::now());
        let mut backoff = Backoff::default();
        backoff.failed(&address, held(), false, now, 0);
        assert_eq!(backoff.held(now + Duration::from_hours(24)).len(), 1);
        assert_eq!(backoff.next(now), None);
        backoff.forget_all();
        assert!(backoff.held(now).is_empty());
    }
}
