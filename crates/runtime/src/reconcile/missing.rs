//! Tracks objects that went missing recently. The controller detects a mass disappearance object by object, so plans
//! count the objects that earlier plans found missing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::index::Records;
use super::time::Time;
use engine::plan::{MissingCount, ProviderConfigId};
use model::Address;

/// A plan that reads at most this many objects cannot detect a mass disappearance alone.
const FEW: usize = 5;

/// How long a recreated object still counts as missing. Without watches, one refresh of all objects takes as long as
/// their drift interval, which usually is this.
const WINDOW: Duration = Duration::from_mins(30);

#[derive(Debug, Default)]
pub struct MissingObjects {
    /// When each object went missing; for a recreated object (`true`), when it was recreated.
    objects: BTreeMap<Address, (Time, bool)>,
}

impl MissingObjects {
    /// An object is missing.
    pub fn mark_missing(&mut self, address: &Address, now: Time) {
        let entry = self.objects.entry(address.clone()).or_insert((now, false));
        if entry.1 {
            *entry = (now, false);
        }
    }

    /// A reading found the object.
    pub fn mark_found(&mut self, address: &Address) {
        if self.objects.get(address).is_some_and(|(_, recreated)| !recreated) {
            self.objects.remove(address);
        }
    }

    pub fn mark_recreated(&mut self, address: &Address, now: Time) {
        if let Some(entry) = self.objects.get_mut(address) {
            *entry = (now, true);
        }
    }

    /// Removes an object.
    pub fn forget(&mut self, address: &Address) {
        self.objects.remove(address);
    }

    fn forget_old(&mut self, now: Time) {
        self.objects.retain(|_, (since, recreated)| !*recreated || *since + WINDOW > now);
    }

    /// The counts of objects that a plan over `scope` that reads `due` does not see.
    pub fn others(
        &mut self,
        records: &Records,
        scope: &BTreeSet<Address>,
        due: &BTreeSet<Address>,
        now: Time,
    ) -> BTreeMap<ProviderConfigId, MissingCount> {
        self.forget_old(now);
        // A small number of missing objects is always allowed, so the others need not be counted.
        if self.objects.is_empty() && due.len() <= FEW {
            return BTreeMap::new();
        }
        let mut others: BTreeMap<ProviderConfigId, MissingCount> = records
            .objects()
            .iter()
            .map(|(id, objects)| (id.clone(), MissingCount { objects: *objects, missing: 0 }))
            .collect();
        for id in scope.iter().filter_map(|address| records.provider_config(address)) {
            others.entry(id).and_modify(|count| count.objects -= 1);
        }
        // The plan itself finds those that it reads.
        let unread = self.objects.keys().filter(|address| !due.contains(address));
        for id in unread.filter_map(|address| records.provider_config(address)) {
            others.entry(id).and_modify(|count| count.missing += 1);
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::reconcile::index::{Event, Index};
    use model::{Record, RecordedObject, Stored, Version};

    fn address(number: usize) -> Address {
        Address::single(format!("a{number}"))
    }

    fn index(count: usize) -> Index {
        let record = |number| {
            let mut record = Record::empty("shop".into(), address(number), "u".into(), "thing_x".into());
            record.current =
                Some(Arc::new(RecordedObject { provider_config: "one".into(), ..RecordedObject::default() }));
            Event::RecordApplied(Stored { record: Arc::new(record), version: Version(1) })
        };
        let mut index = Index::new("shop".into(), 0);
        (0..count).for_each(|number| index.apply(record(number)));
        index
    }

    fn counts(missing: &mut MissingObjects, scope: &[usize], due: &[usize], now: Time) -> (usize, usize) {
        let set = |numbers: &[usize]| numbers.iter().map(|number| address(*number)).collect();
        let key = ProviderConfigId { provider: "thing".into(), hash: "one".into() };
        let others = missing.others(index(10).records(), &set(scope), &set(due), now);
        others.get(&key).map_or((0, 0), |others| (others.objects, others.missing))
    }

    #[test]
    fn objects_that_go_missing_one_by_one_are_counted_together() {
        let (mut missing, now) = (MissingObjects::default(), Time::default());
        assert_eq!(counts(&mut missing, &[0], &[0], now), (0, 0), "nothing is counted while nothing is missing");
        for number in 0..4 {
            missing.mark_missing(&address(number), now);
        }
        assert_eq!(counts(&mut missing, &[0], &[0], now), (9, 3), "the plan itself finds the first");
        assert_eq!(
            counts(&mut missing, &[0, 1], &[0], now),
            (8, 3),
            "the plan covers the second one but does not read it"
        );
        missing.mark_found(&address(3));
        assert_eq!(counts(&mut missing, &[0], &[0], now), (9, 2), "a false alarm");
        missing.forget(&address(2));
        assert_eq!(counts(&mut missing, &[0], &[0], now), (9, 1));
    }

    #[test]
    fn a_recreated_object_counts_for_a_while_and_a_missing_one_until_it_is_found() {
        let (mut missing, now) = (MissingObjects::default(), Time::default());
        missing.mark_missing(&address(1), now);
        missing.mark_missing(&address(2), now);
        missing.mark_recreated(&address(1), now);
        missing.mark_found(&address(1));
        assert_eq!(counts(&mut missing, &[0], &[], now), (9, 2));
        assert_eq!(counts(&mut missing, &[0], &[], now + WINDOW), (9, 1));
    }
}
