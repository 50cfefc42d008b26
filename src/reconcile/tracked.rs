//! What is remembered of each object between plans.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::time::Time;

use super::drift_backoff::Pace;
use super::retry;
use super::summarize::{StepState, Steps};
use crate::load::{DriftAction, Instance};
use crate::model::{Action, Address, Change, Reason, Step};
use crate::plan::{EffectiveLifecycle, Held};

/// One object.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    /// The Resource as it was planned last.
    pub(super) instance: Option<Arc<Instance>>,
    /// The plan for its current object, and for its leftovers.
    pub(super) change: Option<Change>,
    pub(super) leftovers: Vec<Change>,
    pub(super) lifecycle: Option<EffectiveLifecycle>,
    pub(super) wants: Arc<[Address]>,
    /// Its steps in the plan under way, or in the last one.
    pub(super) steps: Steps<StepState>,
    /// Steps under way that the plan has once more: what they end with is not the end.
    again: Steps<()>,
    /// Steps that were under way when the plan was made.
    fixed: Steps<()>,
    /// One of them has ended, and the plan that knows what it came to is still to be made.
    is_outdated: bool,
    /// The wish that the last plan was made for.
    pub(super) wish: u64,
    /// Steps that are under way.
    pub(super) started: Steps<Begun>,
    /// The warnings of its last plan, which are told when they are new.
    pub(super) warned: BTreeSet<String>,
    /// What its provider has warned of since the Resource was changed last, with the generation of that. A provider
    /// says it each time it is asked, and it is not asked each time.
    pub(super) advised: (i64, BTreeSet<String>),
    /// The fingerprint at which it was found as it should be.
    pub(super) settled: Option<u64>,
    /// Failures in a row.
    pub(super) failures: u32,
    pub(super) hold: Option<Hold>,
    /// When to plan it again though nothing happens.
    pub(super) retry_at: Option<Time>,
    /// When to read it again, and the interval that was drawn from.
    pub(super) read_at: Option<Time>,
    pub(super) read_interval: Duration,
    /// When to look at what somebody else has done to it.
    pub(super) noticed_at: Option<Time>,
    /// How soon that is, since it may happen again and again.
    pub(super) pace: Pace,
    /// By the driver of which type its object is watched.
    pub(super) watched: Option<Arc<str>>,
    /// It must be read before it is compared: it may not be as it is recorded, or its last reading has found that.
    pub(super) unread: bool,
    /// The request to look at it that was planned last.
    pub(super) requested: Arc<str>,
}

/// When a step was begun, for which wish, and what was known of all that its object depends on: its shared fingerprint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) at: Time,
    pub(super) wish: u64,
    pub(super) situation: u64,
}

/// Why it is left alone, until when, and what it must be like for that.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) held: Held,
    /// `None`: until something changes.
    pub(super) until: Option<Time>,
    /// The hold is about this situation; another one deserves another attempt.
    pub(super) fingerprint: u64,
}

impl Tracked {
    /// Sets the time of the next reading, when there is a new one: after a reading, and when the interval has changed.
    /// The first one falls anywhere in the interval, so that what started together is not read together.
    pub(super) fn read_again(&mut self, was_read: bool, now: Time, random: u64) -> bool {
        let wanted = self.instance.as_ref().filter(|instance| instance.is_wanted());
        // What it publishes is looked at in any case.
        let looks = |i: &&Arc<Instance>| i.drift.action != DriftAction::Ignore || !i.publish.is_empty();
        let Some(drift) = wanted.filter(looks).map(|instance| instance.drift) else {
            self.read_at = None;
            self.unread = false;
            return false;
        };
        let wait = if was_read && self.read_interval == drift.interval {
            retry::spread(drift.interval, random)
        } else if self.read_at.is_none() || self.read_interval != drift.interval {
            retry::within(drift.interval, random)
        } else {
            return false;
        };
        self.read_interval = drift.interval;
        self.read_at = Some(now + wait);
        true
    }

    /// Takes the steps of a new plan, each with whether it is under way already.
    pub(super) fn expect(&mut self, nodes: Vec<(Step, bool)>) {
        self.steps.clear();
        self.again.clear();
        self.fixed.clear();
        self.is_outdated = false;
        for (step, is_running) in nodes {
            let state = if is_running { StepState::Running } else { StepState::Waiting };
            if is_running {
                self.fixed.insert(step.clone(), ());
            }
            if let Some(other) = self.steps.get_mut(&step) {
                *other = StepState::Running;
                self.again.insert(step, ());
            } else {
                self.steps.insert(step, state);
            }
        }
    }

    /// Notes how far a step is.
    pub(super) fn set(&mut self, step: &Step, state: StepState) {
        let ended = !state.is_open();
        let failed = matches!(state, StepState::Failed { .. });
        let comes_again = ended && self.again.remove(step).is_some() && !failed;
        self.steps.insert(step.clone(), if comes_again { StepState::Waiting } else { state });
    }

    /// Whether the last plan was made around steps of it, which may come to something else than the plan wants.
    pub(super) fn is_planned_around(&self) -> bool {
        self.fixed.values().next().is_some()
    }

    /// The steps that are under way come to what the last plan wants.
    pub(super) fn is_done_by_its_steps(&mut self) {
        self.fixed.clear();
    }

    /// Whether the last plan was made around this step, which has ended now.
    pub(super) fn was_planned_around(&mut self, step: &Step) -> bool {
        let was_fixed = self.fixed.remove(step).is_some();
        self.is_outdated |= was_fixed;
        was_fixed
    }

    /// Whether the last plan does not say yet what is to become of it: steps were under way when it was made, and each
    /// was begun for an earlier plan.
    pub(super) fn awaits_plan(&self) -> bool {
        self.is_outdated || self.is_planned_around()
    }

    /// Whether nothing more will be heard of a step.
    pub(super) fn is_over(&self, step: &Step) -> bool {
        !self.steps.get(step).is_some_and(StepState::is_open)
    }

    /// Whether a step waits or runs.
    pub(super) fn is_open(&self) -> bool {
        self.steps.values().any(StepState::is_open)
    }

    /// Whether there is anything to tell of it: it was planned, or its record stands for it.
    pub(super) fn is_planned(&self) -> bool {
        self.instance.is_some() || self.change.is_some() || !self.leftovers.is_empty() || !self.steps.is_empty()
    }

    /// Whether nobody wants it, nothing is being done about it, and it is not the entry of a family whose instances are
    /// not known.
    pub(super) fn stands_for_nothing(&self) -> bool {
        let is_blocked = self.change.as_ref().is_some_and(|change| change.action == Action::Blocked);
        self.instance.is_none() && !is_blocked && !self.is_open()
    }

    /// Whether a step failed or was skipped.
    pub(super) fn has_trouble(&self) -> bool {
        self.steps.values().any(|state| matches!(state, StepState::Failed { .. } | StepState::Skipped(_)))
    }

    /// Whether one of its conditions did not hold when it was last looked at.
    pub(super) fn is_doubted(&self) -> bool {
        matches!(self.held_for(), Some(Reason::PreconditionFailed | Reason::PostconditionFailed))
    }

    /// Why nothing is done about it, if something keeps it back.
    pub(super) fn held_for(&self) -> Option<Reason> {
        let blocked = self.change.as_ref().and_then(|change| change.blocked);
        self.hold.as_ref().map(|hold| hold.held.reason).or(blocked)
    }

    /// Lets go of the values of a plan that is carried out: what they became is in the record.
    pub(super) fn forget_values(&mut self) {
        for change in self.change.iter_mut().chain(&mut self.leftovers) {
            change.before = None;
            change.after = None;
        }
    }

    /// Whether it was planned as this very Resource, which stands for nothing else and needed nothing to be filled in.
    pub(super) fn was_planned_as(&self, resource: &Instance) -> bool {
        let as_read = resource.repetition.is_none() && resource.inputs.declared.is_empty();
        as_read && self.instance.as_ref().is_some_and(|i| i.provider.is_none() && i.asks_the_same(resource))
    }

    /// Why it must be left alone now; lets go of a hold that is over.
    pub(super) fn held(&mut self, fingerprint: u64, now: Time) -> Option<Held> {
        let hold = self.hold.as_ref()?;
        if hold.fingerprint != fingerprint {
            self.hold = None;
            self.failures = 0;
            return None;
        }
        if hold.until.is_some_and(|until| until <= now) {
            self.hold = None;
            return None;
        }
        Some(hold.held.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reason;

    fn held(until: Option<Time>) -> Tracked {
        let held = Held { reason: Reason::OperationFailed, message: "no".into() };
        Tracked { hold: Some(Hold { held, until, fingerprint: 7 }), failures: 3, ..Tracked::default() }
    }

    #[test]
    fn a_running_step_that_comes_once_more_is_not_over_when_it_ends() {
        let operation = crate::model::Operation::Update;
        let step = Step { address: Address::single("a"), deposed: None, operation, replaces: false };
        let mut tracked = Tracked::default();
        tracked.expect(vec![(step.clone(), false), (step.clone(), true)]);
        assert_eq!(tracked.steps.get(&step), Some(&StepState::Running));
        tracked.set(&step, StepState::Finished);
        assert!(tracked.is_open() && !tracked.is_over(&step));
        tracked.set(&step, StepState::Running);
        tracked.set(&step, StepState::Finished);
        assert!(tracked.is_over(&step));
    }

    fn reading(action: DriftAction, interval: Duration) -> Arc<Instance> {
        let resource = crate::api::Resource::default();
        let interner = &mut crate::load::intern::Interner::default();
        let instance = crate::load::from_api(&resource, &"default".into(), interner);
        Arc::new(Instance { drift: crate::load::Drift { interval, action }, ..instance })
    }

    #[test]
    fn readings_come_once_an_interval_and_follow_a_new_one() {
        let (now, hour, minute) = (Time::default(), Duration::from_hours(1), Duration::from_mins(1));
        let mut tracked = Tracked { instance: Some(reading(DriftAction::Correct, hour)), ..Tracked::default() };
        assert!(tracked.read_again(false, now, 5_000));
        assert_eq!(tracked.read_at, Some(now + hour / 2), "the first one anywhere in the interval");
        assert!(!tracked.read_again(false, now, 7), "a plan without a reading changes nothing");
        assert!(tracked.read_again(true, now, 1_000));
        assert_eq!(tracked.read_at, Some(now + hour));
        tracked.instance = Some(reading(DriftAction::Report, minute));
        assert!(tracked.read_again(false, now, 5_000));
        assert_eq!(tracked.read_at, Some(now + minute / 2));
        tracked.instance = Some(reading(DriftAction::Ignore, minute));
        assert!(!tracked.read_again(false, now, 0) && tracked.read_at.is_none());
    }

    #[test]
    fn a_hold_ends_by_time_and_keeps_count() {
        let now = Time::default();
        let mut tracked = held(Some(now + Duration::from_secs(4)));
        assert!(tracked.held(7, now).is_some());
        assert!(tracked.held(7, now + Duration::from_secs(4)).is_none());
        assert_eq!(tracked.failures, 3, "the next wait is longer");
    }

    #[test]
    fn a_change_ends_a_hold_and_starts_the_count_anew() {
        let mut tracked = held(None);
        assert!(tracked.held(7, Time::default()).is_some(), "a terminal error waits for a change");
        assert!(tracked.held(8, Time::default()).is_none());
        assert_eq!(tracked.failures, 0);
    }
}
