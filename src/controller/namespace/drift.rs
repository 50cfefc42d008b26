//! Noticing what others do to objects: by a watch where that is possible, by reading at the interval where it is not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::NamespaceTask;
use super::tracked::Tracked;
use crate::controller::context::Context;
use crate::controller::summarize::Note;
use crate::controller::world::Shared;
use crate::driver::Watched;
use crate::load::DriftAction;
use crate::model::{Address, Drift, Recorded};
use crate::plan::{Configuration, Others, PlanOptions};

/// A plan that reads no more objects than these cannot find a mass disappearance by itself.
const FEW: usize = 5;

/// What part of its interval an object is read early, to be read together with others of its component.
const READ_TOGETHER: u32 = 20;

/// Before an object that was destroyed is made anew, others that go with it have this long to be noticed.
const GONE_TOGETHER: Duration = Duration::from_secs(1);

/// For so long an object that was made anew counts as one that went missing. Where nothing is watched, one refresh of
/// all objects takes as long as their interval, which usually is this.
const WINDOW: Duration = Duration::from_mins(30);

/// The objects that went missing lately. "One refresh" is spread over time here: a mass disappearance shows object by
/// object. Pure: the time comes in.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Since when; those made anew with the time of that.
    objects: BTreeMap<Address, (Instant, bool)>,
}

impl Missing {
    /// It was noticed, or found by reading, that an object is gone.
    pub(super) fn gone(&mut self, address: &Address, now: Instant) {
        let entry = self.objects.entry(address.clone()).or_insert((now, false));
        if entry.1 {
            *entry = (now, false);
        }
    }

    /// It was read and is there.
    pub(super) fn there(&mut self, address: &Address) {
        if self.objects.get(address).is_some_and(|(_, anew)| !anew) {
            self.objects.remove(address);
        }
    }

    /// It was made anew.
    pub(super) fn made_anew(&mut self, address: &Address, now: Instant) {
        if let Some(entry) = self.objects.get_mut(address) {
            *entry = (now, true);
        }
    }

    /// Nothing is remembered of it any more.
    pub(super) fn forget(&mut self, address: &Address) {
        self.objects.remove(address);
    }

    fn forget_old(&mut self, now: Instant) {
        self.objects.retain(|_, (since, anew)| !*anew || *since + WINDOW > now);
    }

    /// What a plan over `scope` that reads `due` does not see by itself.
    pub(super) fn others(
        &mut self,
        records: &Recorded,
        scope: &BTreeSet<Address>,
        due: &BTreeSet<Address>,
        now: Instant,
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

/// Ends the watch over the object of an instance, if there is one.
pub(super) fn end_watch(context: &Context, shared: &Shared, address: &Address, tracked: &mut Tracked) {
    let Some(type_name) = tracked.watched.take() else { return };
    if let Some(watcher) = context.engine.drivers.get(&type_name).and_then(|driver| driver.watcher()) {
        watcher.unwatch(shared.name(), address);
    }
}

impl NamespaceTask {
    /// Watches the object that an instance has now, as long as anybody cares what becomes of it.
    pub(super) fn keep_watch(&mut self, address: &Address) {
        let Some(tracked) = self.tracked.get_mut(address) else { return };
        let cares = |tracked: &Tracked| {
            let instance = tracked.instance.clone()?;
            let cares = instance.is_wanted() && !instance.suspended && instance.drift.action != DriftAction::Ignore;
            cares.then_some(instance)
        };
        let record = self.run.records().get(address).map(|stored| &stored.record);
        let object = record.and_then(|record| Some((&record.type_name, record.current.as_ref()?)));
        let (Some(instance), Some((type_name, object))) = (cares(tracked), object) else {
            return end_watch(&self.context, &self.shared, address, tracked);
        };
        if let Some(watcher) = self.context.engine.drivers.get(type_name).and_then(|driver| driver.watcher()) {
            let namespace = self.shared.name();
            let whose = Watched { namespace, address, service_account: &instance.service_account };
            tracked.watched = Some(type_name.clone());
            watcher.watch(&whose, object);
        }
    }

    /// Somebody else has changed an object, or destroyed it. It is read soon.
    pub(super) fn notice(&mut self, address: &Address, gone: bool, now: Instant) {
        let random = self.context.engine.random.number();
        let Some(tracked) = self.tracked.get_mut(address).filter(|tracked| tracked.watched.is_some()) else { return };
        if gone {
            self.missing.gone(address, now);
        }
        if tracked.noticed_at.is_some() && !gone {
            return;
        }
        let wait = tracked.pace.noticed(now, random);
        let at = now + if gone { wait.max(GONE_TOGETHER) } else { wait };
        tracing::debug!(namespace = &**self.shared.name(), %address, gone, ?wait, "changed by somebody else");
        tracked.noticed_at = Some(at);
        self.timers.insert((at, address.clone()));
    }

    /// Objects whose time to be read comes soon are read together with those whose time has come, since whatever is read
    /// has its whole component planned.
    pub(super) fn read_together(&self, now: Instant, options: &mut PlanOptions, due: &mut BTreeSet<Address>) {
        let is_unread = |address: &Address| self.tracked.get(address).is_some_and(|tracked| tracked.unread);
        if !due.iter().any(is_unread) {
            return;
        }
        let comes_soon = |address: &Address| {
            let tracked = self.tracked.get(address).filter(|tracked| tracked.watched.is_none())?;
            Some(tracked.read_at? <= now + tracked.read_interval / READ_TOGETHER)
        };
        due.extend(options.settled.extract_if(.., |address| comes_soon(address) == Some(true)));
    }

    /// An object whose changes are seen need not be read at its interval.
    pub(super) fn pass_over_reading(&mut self, address: &Address, now: Instant) {
        let random = self.context.engine.random.number();
        let namespace = self.shared.name();
        let Some(tracked) = self.tracked.get_mut(address) else { return };
        if tracked.read_at.is_none_or(|at| at > now) {
            return;
        }
        let type_name = tracked.watched.as_ref();
        let driver = type_name.and_then(|type_name| self.context.engine.drivers.get(type_name));
        let watcher = driver.and_then(|driver| driver.watcher());
        // Of what it publishes nobody tells.
        let publishes = tracked.instance.as_ref().is_some_and(|instance| !instance.publish.is_empty());
        let is_seen = !publishes && watcher.is_some_and(|watcher| watcher.is_watching(namespace, address));
        if is_seen
            && tracked.read_again(true, now, random)
            && let Some(at) = tracked.read_at
        {
            self.timers.insert((at, address.clone()));
        }
    }

    /// Tells what somebody else has done and is being set right. What stays is told by the plan itself.
    pub(super) fn tell_drift(&mut self, address: &Address, drift: &Drift, now: Instant) {
        let Some(tracked) = self.tracked.get_mut(address) else { return };
        let contested = tracked.pace.corrected(now);
        let reason = drift.reason().as_str();
        let mut notes =
            vec![Note { warning: false, reason, action: "Reconcile", note: format!("{drift}; it is set right") }];
        if contested {
            let note = format!(
                "{drift}, again and again; it is set right ever more slowly (hint: see who changes it, leave that \
                 field to them, or set `spec.drift.action: Report`)"
            );
            notes.push(Note { warning: true, reason: "DriftContested", action: "Reconcile", note });
        }
        for note in notes {
            self.tell(address, note);
        }
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

    fn told(missing: &mut Missing, scope: &[usize], due: &[usize], now: Instant) -> (usize, usize) {
        let set = |numbers: &[usize]| numbers.iter().map(|number| address(*number)).collect();
        let others = missing.others(&records(10), &set(scope), &set(due), now);
        let key = Configuration { provider: "thing".into(), hash: "one".into() };
        others.get(&key).map_or((0, 0), |others| (others.objects, others.gone))
    }

    #[test]
    fn what_went_missing_one_by_one_is_counted_together() {
        let (mut missing, now) = (Missing::default(), Instant::now());
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
    fn what_was_made_anew_counts_for_a_while_and_what_is_still_missing_for_ever() {
        let (mut missing, now) = (Missing::default(), Instant::now());
        missing.gone(&address(1), now);
        missing.gone(&address(2), now);
        missing.made_anew(&address(1), now);
        missing.there(&address(1));
        assert_eq!(told(&mut missing, &[0], &[], now), (9, 2));
        assert_eq!(told(&mut missing, &[0], &[], now + WINDOW), (9, 1));
    }
}
