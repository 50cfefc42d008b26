//! Detects stale plans, whose input changed during planning, and pauses the schedule for the next plan.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Reconciler;
use super::plan_request::{PartKind, PlanPart};
use super::time::Time;

/// The longest pause of steps for a plan: a provider may be slow.
const PAUSE: Duration = Duration::from_secs(1);

impl Reconciler {
    /// Whether a plan is stale; then its names are planned again. A plan is stale if a record has changed. A newer
    /// desired state alone does not make it stale: its steps were correct a moment ago, and the newer state is planned
    /// next. But nothing is destroyed while a newer desired state is known, unless changes continue for too long.
    pub fn is_stale(&mut self, part: &PlanPart) -> bool {
        let records = self.index.records();
        if part.adoption.scope.iter().any(|address| records.version(address) != part.versions.get(address).copied()) {
            self.discard_stale(part);
            return true;
        }
        let debounce = &self.planning.debounce;
        let newer = part.names.iter().any(|name| debounce.changed_since_planned(name));
        let waits = part.kind == PartKind::Destructive
            && newer
            && !debounce.has_waited_too_long(part.names.iter(), self.now.time);
        if waits {
            self.plan_again(part);
        }
        waits
    }

    /// Discards a plan whose records have changed since planning started.
    pub fn discard_stale(&mut self, part: &PlanPart) {
        self.planning.stale_names.extend(part.names.iter().cloned());
        self.plan_again(part);
    }

    pub fn plan_again(&mut self, part: &PlanPart) {
        part.names.iter().for_each(|name| self.touch(name));
    }

    /// Pauses steps for the plan that follows a stale one. While steps follow each other quickly, every plan would be
    /// stale when it is ready.
    pub fn pause_if_stale(&mut self, names: &BTreeSet<Arc<str>>) {
        if !self.planning.stale_names.is_disjoint(names) {
            self.planning.stale_names.retain(|name| !names.contains(name));
            self.schedule.pause(names);
            self.planning.pauses.push((self.now.time + PAUSE, names.clone()));
        }
    }

    /// Resumes steps that have paused for too long. Returns when to check again.
    pub fn end_long_pauses(&mut self) -> Option<Time> {
        let now = self.now.time;
        self.resume_where(|until, _| until <= now);
        self.planning.pauses.iter().map(|(until, _)| *until).min()
    }

    /// Resumes steps that paused for a plan of any of these names.
    pub fn resume(&mut self, names: &BTreeSet<Arc<str>>) {
        self.resume_where(|_, paused| !paused.is_disjoint(names));
    }

    fn resume_where(&mut self, is_over: impl Fn(Time, &BTreeSet<Arc<str>>) -> bool) {
        for (_, names) in self.planning.pauses.extract_if(.., |(until, names)| is_over(*until, names)) {
            self.schedule.resume(&names);
        }
        self.handle_progress();
    }
}
