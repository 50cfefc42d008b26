//! Plans that are no longer about the situation as it is when they are there, and how the run waits for the next one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::NamespaceTask;
use super::planning::Part;

/// For so long at most steps stand still for a plan: whoever is asked may be slow.
const PAUSE: Duration = Duration::from_secs(1);

impl NamespaceTask {
    /// Whether a plan is outdated; then its names are planned again. Newer wishes alone do not make it so: what it starts
    /// was right a moment ago, and they are planned next. But nothing is destroyed while a newer wish is known, unless
    /// wishes keep coming for too long.
    pub(super) fn is_put_aside(&mut self, part: &Part, now: Instant) -> bool {
        let version = |address| self.run.records().get(address).map(|stored| stored.version);
        if part.addresses.iter().any(|address| version(address) != part.versions.get(address).copied()) {
            self.came_too_late(part, now);
            return true;
        }
        let newer = part.names.iter().any(|name| self.settle.touched_after(name, part.began));
        let waits = part.destroys && newer && !self.settle.out_of_patience(part.names.iter(), now);
        if waits {
            self.plan_again(part, now);
        }
        waits
    }

    /// Records have changed since the plan was begun, so it is of no use.
    pub(super) fn came_too_late(&mut self, part: &Part, now: Instant) {
        self.overtaken.extend(part.names.iter().cloned());
        self.plan_again(part, now);
    }

    pub(super) fn plan_again(&mut self, part: &Part, now: Instant) {
        part.names.iter().for_each(|name| self.settle.touch(name, now));
    }

    /// While steps follow one another quickly, each plan is outdated when it is there. After the first such plan, when
    /// whoever was slow to answer has answered, they stand still for a moment.
    pub(super) fn pause_if_overtaken(&mut self, names: &BTreeSet<Arc<str>>, now: Instant) {
        if !self.overtaken.is_disjoint(names) {
            self.overtaken.retain(|name| !names.contains(name));
            self.run.pause(names);
            self.pauses.push((now + PAUSE, names.clone()));
        }
    }

    /// Lets steps go on that stand still for too long; gives when to look again.
    pub(super) fn end_long_pauses(&mut self, now: Instant) -> Option<Instant> {
        self.resume_where(|until, _| until <= now);
        self.pauses.iter().map(|(until, _)| *until).min()
    }

    /// Lets steps go on that stood still for a plan of any of these names.
    pub(super) fn resume(&mut self, names: &BTreeSet<Arc<str>>) {
        self.resume_where(|_, paused| !paused.is_disjoint(names));
    }

    fn resume_where(&mut self, is_over: impl Fn(Instant, &BTreeSet<Arc<str>>) -> bool) {
        for (_, names) in self.pauses.extract_if(.., |(until, names)| is_over(*until, names)) {
            self.run.resume(&names);
            self.run_is_idle = false;
        }
    }
}
