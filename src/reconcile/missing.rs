//! Objects that went missing lately. "One refresh" is spread over time here: a mass disappearance shows object by object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::time::Time;
use crate::model::{Address, Recorded};
use crate::plan::{Configuration, Others};

/// A plan that reads no more objects than these cannot find a mass disappearance by itself.
const FEW: usize = 5;

/// For so long an object that was created again counts as one that went missing. Where nothing is watched, one refresh of
/// all objects takes as long as their interval, which usually is this.
const WINDOW: Duration = Duration::from_mins(30);

/// The objects that went missing lately.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Since when; those created again with the time of that.
    objects: BTreeMap<Address, (Time, bool)>,
}

impl Missing {
    /// It was noticed, or found by reading, that an object is gone.
    pub(super) fn gone(&mut self, address: &Address, now: Time) {
        let entry = self.objects.entry(address.clone()).or_insert((now, false));
        if entry.1 {
            *entry = (now, false);
        }
    }

    /// It was read and is there.
    pub(super) fn there(&mut self, address: &Address) {
        if self.objects.get(address).is_some_and(|(_, recreated)| !recreated) {
            self.objects.remove(address);
        }
    }

    /// It was created again.
    pub(super) fn recreated(&mut self, address: &Address, now: Time) {
        if let Some(entry) = self.objects.get_mut(address) {
            *entry = (now, true);
        }
    }

    /// Nothing is remembered of it any more.
    pub(super) fn forget(&mut self, address: &Address) {
        self.objects.remove(address);
    }

    fn forget_old(&mut self, now: Time) {
        self.objects.retain(|_, (since, recreated)| !*recreated || *since + WINDOW > now);
    }

    /// What a plan over `scope` that reads `due` does not see by itself.
    pub(super) fn others(
        &mut self,
        records: &Recorded,
        scope: &BTreeSet<Address>,
        due: &BTreeSet<Address>,
        now: Time,
    ) -> BTreeMap<Configuration, Others> {
        self.forget_old(now);
        let mut others: BTreeMap<Configuration, Others> = BTreeMap::new();
        // Few objects may be gone whatever their share is, so nobody needs to count all the others.
        if self.objects.is_empty() && due.len() <= FEW {
            return others;
        }
        for (address, stored) in records {
            let Some(object) = &stored.record.current else { continue };
            let found_by_plan = due.contains(address);
            let gone = self.objects.contains_key(address) && !found_by_plan;
            let outside = !scope.contains(address);
            if gone || outside {
                let count = others.entry(Configuration::of(&stored.record.type_name, object)).or_default();
                count.objects += usize::from(outside);
                count.gone += usize::from(gone);
            }
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Record, RecordedObject, Stored, Version};

    fn address(number: usize) -> Address {
        Address::single(format!("a{number}"))
    }

    fn records(count: usize) -> Recorded {
        let record = |number| {
            let mut record = Record::empty("shop".into(), address(number), "u".into(), "thing_x".into());
            record.current =
                Some(Arc::new(RecordedObject { provider_config: "one".into(), ..RecordedObject::default() }));
            (address(number), Stored { record: Arc::new(record), version: Version(1) })
        };
        (0..count).map(record).collect()
    }

    fn told(missing: &mut Missing, scope: &[usize], due: &[usize], now: Time) -> (usize, usize) {
        let set = |numbers: &[usize]| numbers.iter().map(|number| address(*number)).collect();
        let others = missing.others(&records(10), &set(scope), &set(due), now);
        let key = Configuration { provider: "thing".into(), hash: "one".into() };
        others.get(&key).map_or((0, 0), |others| (others.objects, others.gone))
    }

    #[test]
    fn what_went_missing_one_by_one_is_counted_together() {
        let (mut missing, now) = (Missing::default(), Time::default());
        assert_eq!(told(&mut missing, &[0], &[0], now), (0, 0), "nobody counts while nothing is missing");
        for number in 0..4 {
            missing.gone(&address(number), now);
        }
        assert_eq!(told(&mut missing, &[0], &[0], now), (9, 3), "the plan itself finds the first");
        assert_eq!(told(&mut missing, &[0, 1], &[0], now), (8, 3), "the second is of the plan, but not read by it");
        missing.there(&address(3));
        assert_eq!(told(&mut missing, &[0], &[0], now), (9, 2), "a false alarm");
        missing.forget(&address(2));
        assert_eq!(told(&mut missing, &[0], &[0], now), (9, 1));
    }

    #[test]
    fn what_was_recreated_counts_for_a_while_and_what_is_still_missing_for_ever() {
        let (mut missing, now) = (Missing::default(), Time::default());
        missing.gone(&address(1), now);
        missing.gone(&address(2), now);
        missing.recreated(&address(1), now);
        missing.there(&address(1));
        assert_eq!(told(&mut missing, &[0], &[], now), (9, 2));
        assert_eq!(told(&mut missing, &[0], &[], now + WINDOW), (9, 1));
    }
}
