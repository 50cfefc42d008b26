//! The limits of a namespace, so that one tenant cannot exhaust the memory of the controller, the storage of the API server
//! or the services behind the providers. They only delay creates, updates and replacements.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Reconciler;
use super::objects::TrackedObject;
use super::summarize::StepState;
use super::time::{Moment, Time};
use crate::execute::{Delay, StepLimit, StepQuota};
use api::QUOTA;
use engine::plan::ObjectQuota;
use model::{Name, Operation, Quota, Reason};

/// How often limited steps start at most: a turn looks at all that wait, and there can be ten thousands of them.
const LIMITED_INTERVAL: Duration = Duration::from_millis(100);

const MINUTE: Duration = Duration::from_mins(1);

/// The names whose objects the limit holds back.
#[derive(Debug, Default)]
pub struct OverQuota(BTreeSet<Name>);

impl OverQuota {
    pub fn set(&mut self, name: &Name, is_over: bool) {
        if is_over {
            self.0.insert(name.clone());
        } else {
            self.0.remove(name);
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes and returns a name, which may have an object now.
    fn take_next(&mut self) -> Option<Name> {
        self.0.pop_first()
    }
}

/// The limits of steps at one moment.
pub struct NamespaceQuota {
    pub budget: StepBudget,
    per_minute: Option<u32>,
    /// The size of the records, and its limit.
    record_bytes: (u64, Option<u64>),
    now: Moment,
}

impl StepQuota for NamespaceQuota {
    fn limit(&self, before: usize) -> Option<StepLimit> {
        let (used, limit) = self.record_bytes;
        if limit.is_some_and(|limit| used >= limit) {
            return Some(StepLimit::RecordBytes);
        }
        let at = self.budget.next(self.per_minute?, before, self.now.time);
        (at > self.now.time).then_some(StepLimit::Rate)
    }

    fn delay(&self, limit: StepLimit, before: usize) -> Delay {
        let message = match limit {
            StepLimit::RecordBytes => {
                let (used, limit) =
                    (self.record_bytes.0.div_ceil(1024), self.record_bytes.1.unwrap_or(0).div_ceil(1024));
                format!(
                    "the records of the namespace have {used} KiB of at most {limit} KiB, so nothing is created or changed \
                     until objects are destroyed (hint: delete other objects, or ask an administrator to set \
                     `record-bytes` in the annotation `{QUOTA}` of the Namespace)"
                )
            }
            StepLimit::Rate => {
                let per_minute = self.per_minute.unwrap_or(0);
                let at = self.now.wall_time_of(self.budget.next(per_minute, before, self.now.time));
                format!(
                    "the namespace has started its {per_minute} steps per minute; this step starts at {at:.0} (hint: an \
                     administrator can set `steps-per-minute` in the annotation `{QUOTA}` of the Namespace)"
                )
            }
        };
        Delay::new(Reason::QuotaExceeded, message)
    }

    fn started(&mut self) {
        if let Some(per_minute) = self.per_minute {
            self.budget.spend(per_minute, self.now.time);
        }
    }
}

impl Reconciler {
    /// How many objects the next plan of these names may create. `None`: there is no limit.
    pub fn object_quota(&self, names: &BTreeSet<Name>) -> Option<ObjectQuota> {
        let limit = self.quota().objects?;
        let known = self.objects.count();
        // Only near the limit is the exact number worth its cost.
        let used = if known < limit / 2 { known } else { self.used_objects(names) };
        Some(ObjectQuota { limit, left: limit.saturating_sub(used) })
    }

    /// The records, and the objects without a record that are being created or planned, or that are not valid. An object
    /// that is not valid also takes memory, so it counts until one of these names makes it valid.
    fn used_objects(&self, names: &BTreeSet<Name>) -> usize {
        let records = self.index.records();
        let others = self.objects.all().filter(|(address, tracked)| {
            (is_being_created(tracked) || (is_invalid(tracked) && !names.contains(address.name())))
                && !records.contains_key(*address)
        });
        let planned = self.planning.in_progress.iter().filter(|name| self.recorded(name).next().is_none()).count();
        records.len() + others.count() + planned
    }

    /// The annotation of the Namespace takes precedence, because only administrators can set it. One that is not valid sets
    /// nothing.
    fn quota(&self) -> Quota {
        let annotation = self.index.namespace_annotation(QUOTA);
        let quota: Quota = annotation.and_then(|text| text.parse().ok()).unwrap_or_default();
        quota.or(self.policy.quota)
    }

    pub fn namespace_quota(&self) -> NamespaceQuota {
        let quota = self.quota();
        NamespaceQuota {
            budget: self.step_budget,
            per_minute: quota.steps_per_minute,
            record_bytes: (self.index.records().size(), quota.record_bytes),
            now: self.now,
        }
    }

    /// When the next step may start that the limit of steps in a minute delays.
    pub fn next_limited_step(&self) -> Option<Time> {
        if self.schedule.delayed_steps(StepLimit::Rate) == 0 {
            return None;
        }
        let now = self.now.time;
        // A step that may start now waits for something else.
        let next = Some(self.step_budget.next(self.quota().steps_per_minute?, 0, now)).filter(|at| *at > now)?;
        Some(next.max(now + LIMITED_INTERVAL))
    }

    /// Plans an object that the limit has held back, because another one was removed.
    pub fn object_removed(&mut self) {
        if let Some(name) = self.objects.over_quota.take_next() {
            self.touch(&name);
        }
    }
}

fn is_being_created(tracked: &TrackedObject) -> bool {
    tracked.steps.iter().any(|(step, state)| step.operation == Operation::Create && StepState::is_open(state))
}

fn is_invalid(tracked: &TrackedObject) -> bool {
    matches!(
        tracked.held_for(),
        Some(
            Reason::InvalidManifest
                | Reason::InvalidExpression
                | Reason::InvalidRepetition
                | Reason::InvalidConfig
                | Reason::UnknownType
        )
    )
}

/// The steps that a namespace may start in a minute: a token bucket that holds the steps of one minute. Its state is one time: when it will be full again.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepBudget {
    full_at: Time,
}

impl StepBudget {
    /// When the next step may start, if `before` others start first. It may start now if that is not later than `now`.
    pub fn next(self, per_minute: u32, before: usize, now: Time) -> Time {
        let needed = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
        let spent = self.full_at.max(now) + interval(per_minute).saturating_mul(needed);
        Time(spent.0.saturating_sub(MINUTE))
    }

    pub fn spend(&mut self, per_minute: u32, now: Time) {
        self.full_at = self.full_at.max(now) + interval(per_minute);
    }
}

fn interval(per_minute: u32) -> Duration {
    MINUTE / per_minute.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time(Duration::from_secs(seconds))
    }

    /// Starts steps as long as it may.
    fn start_all(budget: &mut StepBudget, per_minute: u32, now: Time) -> usize {
        let mut started = 0;
        while budget.next(per_minute, 0, now) <= now {
            budget.spend(per_minute, now);
            started += 1;
        }
        started
    }

    #[test]
    fn the_steps_of_a_minute_may_start_at_once_and_then_one_after_another() {
        let mut budget = StepBudget::default();
        assert_eq!(start_all(&mut budget, 6, at(100)), 6);
        assert_eq!(budget.next(6, 0, at(100)), at(110));
        assert_eq!(budget.next(6, 2, at(100)), at(130), "two others start before it");
        assert_eq!(start_all(&mut budget, 6, at(109)), 0);
        assert_eq!(start_all(&mut budget, 6, at(125)), 2);
        assert_eq!(budget.next(6, 0, at(125)), at(130));
        assert_eq!(start_all(&mut budget, 6, at(1000)), 6, "what was not used for longer is lost");
    }

    #[test]
    fn another_limit_applies_to_the_steps_that_were_started_before() {
        let mut budget = StepBudget::default();
        assert_eq!(start_all(&mut budget, 6, at(100)), 6);
        assert_eq!(budget.next(60, 0, at(100)), at(101));
        assert_eq!(start_all(&mut budget, 60, at(130)), 30);
    }
}
