//! Stale plans: those that are not about the situation as it is when they are there, and how the schedule waits for the
//! next one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Reconciler;
use super::plan_request::{Kind, Part};
use super::time::Time;

/// For so long at most steps stand still for a plan: a provider that is asked may be slow.
const PAUSE: Duration = Duration::from_secs(1);

impl Reconciler {
    /// Whether a plan is stale; then its names are planned again. Newer wishes alone do not make it so: what it starts was
    /// right a moment ago, and they are planned next. But nothing is destroyed while a newer wish is known, unless wishes
    /// keep coming for too long.
    pub(super) fn is_stale(&mut self, part: &Part) -> bool {
        let records = self.schedule.records();
        let version = |address| records.get(address).map(|stored| stored.version);
        if part.addresses.iter().any(|address| version(address) != part.versions.get(address).copied()) {
            self.came_too_late(part);
            return true;
        }
        let debounce = &self.planning.debounce;
        let newer = part.names.iter().any(|name| debounce.is_newer(name));
        let destroys = matches!(part.kind, Kind::Destroys(_));
        let waits = destroys && newer && !debounce.out_of_patience(part.names.iter(), self.now.time);
        if waits {
            self.plan_again(part);
        }
        waits
    }

    /// Records have changed since the plan was begun, so it is of no use.
    pub(super) fn came_too_late(&mut self, part: &Part) {
        self.planning.overtaken.extend(part.names.iter().cloned());
        self.plan_again(part);
    }

    /// Has the names of a plan planned again.
    pub(super) fn plan_again(&mut self, part: &Part) {
        part.names.iter().for_each(|name| self.touch(name));
    }

    /// While steps follow one another quickly, each plan is stale when it is there. After the first such plan, when what
    /// was slow to answer has answered, they stand still for a moment.
    pub(super) fn pause_if_overtaken(&mut self, names: &BTreeSet<Arc<str>>) {
        if !self.planning.overtaken.is_disjoint(names) {
            self.planning.overtaken.retain(|name| !names.contains(name));
            self.schedule.pause(names);
            self.planning.pauses.push((self.now.time + PAUSE, names.clone()));
        }
    }

    /// Lets steps go on that stand still for too long; returns when to look again.
    pub(super) fn end_long_pauses(&mut self) -> Option<Time> {
        let now = self.now.time;
        self.resume_where(|until, _| until <= now);
        self.planning.pauses.iter().map(|(until, _)| *until).min()
    }

    /// Lets steps go on that stood still for a plan of any of these names.
    pub(super) fn resume(&mut self, names: &BTreeSet<Arc<str>>) {
        self.resume_where(|_, paused| !paused.is_disjoint(names));
    }

    fn resume_where(&mut self, is_over: impl Fn(Time, &BTreeSet<Arc<str>>) -> bool) {
        for (_, names) in self.planning.pauses.extract_if(.., |(until, names)| is_over(*until, names)) {
            self.schedule.resume(&names);
        }
        self.take_events();
    }
}
