//! The state of an object between plans.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::drift::DriftBackoff;
use super::retry;
use super::summarize::{KnownHealth, StepState, Steps};
use super::time::Time;
use engine::load::{DriftAction, Instance};
use engine::plan::{EffectiveLifecycle, ObjectBlock};
use model::{Action, Address, Change, Health, Reason, Step};

#[derive(Debug, Default)]
pub struct TrackedObject {
    /// The Resource as of the last plan.
    pub instance: Option<Arc<Instance>>,
    /// The planned change of its current object. Once it is made, an equal one without address and values, which many
    /// objects share.
    pub change: Option<Arc<Change>>,
    /// The planned changes of its deposed objects.
    pub deposed: Vec<Change>,
    pub lifecycle: Option<EffectiveLifecycle>,
    pub dependencies: Arc<[Address]>,
    /// Its steps in the current or the last plan.
    pub steps: Steps<StepState>,
    /// The running step, if the plan repeats it: the end of the first run is not the end of the step.
    repeated: Option<Step>,
    /// Its running step was running when the plan was computed, and its outcome may differ from the plan.
    pub in_flight: bool,
    /// That step has ended, or another client has changed the object during its step, and no plan covers this yet.
    needs_replan: bool,
    /// That step only concerns a deposed object.
    leaves_current: bool,
    /// The desired digest of the last plan.
    pub desired_digest: u64,
    /// What it was warned of. Most objects have no warnings.
    pub warnings: Option<Box<Warnings>>,
    /// The fingerprint at which the object was found up to date.
    pub up_to_date: Option<u64>,
    pub failures: u32,
    /// The message of its last failed step, until it is up to date or its Resource changes.
    pub last_failure: Option<Arc<str>>,
    pub hold: Option<Box<Hold>>,
    /// When to plan it again.
    pub retry_at: Option<Time>,
    /// When to read it again, and the interval that this was computed from.
    pub read_at: Option<Time>,
    pub read_interval: Duration,
    /// How many plans in a row have found it blocked, since its Resource has changed.
    blocked_plans: u8,
    /// When to read it after a change by another client.
    pub check_at: Option<Time>,
    /// Another client has changed it since its running step began.
    pub changed_meanwhile: bool,
    /// The back-off for repeated changes by other clients.
    pub drift_backoff: Option<Box<DriftBackoff>>,
    /// The type whose driver watches the object.
    pub watched: Option<Arc<str>>,
    /// Whether this replica has seen its object since it started.
    pub seen: bool,
    /// The health of its object, as last seen, if it is not ready.
    pub health: Option<Box<Health>>,
    /// Whether it was read or written since the start, or the next plan reads it. Until then, only its record is known.
    pub known: bool,
    /// It must be read before it is compared: it may differ from its record, or the last reading found that.
    pub unread: bool,
    /// The last planned value of the `reconcile-requested-at` annotation.
    pub requested: Arc<str>,
}

/// The warnings about an object that were reported.
#[derive(Debug, Default)]
pub struct Warnings {
    /// Those of the last plan. Only new ones are reported.
    pub of_plan: BTreeSet<String>,
    /// The generation of the Resource for which `of_provider` was reported.
    pub generation: i64,
    /// The warnings of its provider. A provider repeats a warning with each call, and not every plan calls it.
    pub of_provider: BTreeSet<String>,
    /// Those that the status shows while they hold: where the object deviates from its manifest.
    pub remarks: BTreeSet<String>,
}

/// The changes that were made, without what identifies an object.
#[derive(Debug, Default)]
pub struct MadeChanges(VecDeque<Arc<Change>>);

impl MadeChanges {
    /// Almost all objects of a namespace have one of a few: created, updated, nothing to do.
    const KEPT: usize = 8;

    /// Returns the change without its address and its values, shared with earlier ones if possible.
    fn share(&mut self, change: &Change) -> Arc<Change> {
        let change =
            Change { address: Address::single(""), type_name: "".into(), before: None, after: None, ..change.clone() };
        if let Some(known) = self.0.iter().find(|known| ***known == change) {
            return Arc::clone(known);
        }
        let change = Arc::new(change);
        self.0.push_front(Arc::clone(&change));
        self.0.truncate(Self::KEPT);
        change
    }
}

/// Why an object is held, until when, and for which fingerprint.
#[derive(Clone, Debug)]
pub struct Hold {
    pub held: ObjectBlock,
    /// `None`: until the fingerprint changes.
    pub until: Option<Time>,
    /// The hold applies to this fingerprint only.
    pub fingerprint: u64,
}

impl TrackedObject {
    /// Schedules the next reading after a reading or a change of the interval. Returns whether the time has changed.
    /// The first reading happens at a random point of the interval, so that objects that were created together are not
    /// read together.
    pub fn read_again(&mut self, was_read: bool, now: Time, random: u64) -> bool {
        let desired = self.instance.as_ref().filter(|instance| instance.is_desired());
        // Published objects are always checked.
        let checked =
            desired.filter(|instance| instance.drift.action != DriftAction::Ignore || !instance.publish.is_empty());
        let Some(drift) = checked.map(|instance| instance.drift) else {
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

    /// Counts the plans in a row that find the object blocked. When it is free again, it is read at its interval.
    pub fn set_blocked(&mut self, is_blocked: bool) {
        if !is_blocked && self.blocked_plans > 0 {
            self.read_at = None;
        }
        self.blocked_plans = if is_blocked { self.blocked_plans.saturating_add(1) } else { 0 };
    }

    /// Postpones the next reading of an object that is blocked for this reason, as a failed call is: the reading causes a
    /// plan, which most likely fails again. The next attempt reads it too.
    pub fn back_off_reading(&mut self, reason: Reason, now: Time, random: u64) {
        let pause = now + retry::delay_after(reason, self.blocked_plans.into(), random);
        let earliest = self.retry_at.map_or(pause, |retry| retry.max(pause));
        self.read_at = self.read_at.map(|at| at.max(earliest));
    }

    /// Sets the steps of a new plan, each with whether it is already running. A running step that is delayed stays so:
    /// the reason is not reported again at once.
    pub fn set_steps(&mut self, nodes: Vec<(Step, bool)>) {
        let earlier = std::mem::take(&mut self.steps);
        self.repeated = None;
        self.in_flight = nodes.iter().any(|(_, is_running)| *is_running);
        self.leaves_current = !nodes.iter().any(|(step, is_running)| *is_running && step.deposed.is_none());
        self.needs_replan = false;
        for (step, is_running) in nodes {
            let delayed = earlier.get(&step).filter(|state| matches!(state, StepState::Delayed { .. }));
            let running = delayed.cloned().unwrap_or(StepState::Running);
            if self.steps.get(&step).is_some() {
                self.steps.insert(step.clone(), running);
                self.repeated = Some(step);
            } else {
                self.steps.insert(step, if is_running { running } else { StepState::Waiting });
            }
        }
    }

    pub fn set(&mut self, step: &Step, state: StepState) {
        let ended = !state.is_open();
        let failed = matches!(state, StepState::Failed { .. });
        let comes_again = ended && self.repeated.take_if(|repeated| repeated == step).is_some() && !failed;
        self.steps.insert(step.clone(), if comes_again { StepState::Waiting } else { state });
    }

    /// The running step has ended. Returns whether it was running when the last plan was computed.
    pub fn end_in_flight(&mut self) -> bool {
        let was_fixed = std::mem::take(&mut self.in_flight);
        self.needs_replan |= was_fixed;
        was_fixed
    }

    /// A step has ended, after which the object must be read, or need not be read, before its status is known.
    pub fn require_reading(&mut self, is_required: bool) {
        self.unread = is_required;
        self.needs_replan |= is_required;
        self.leaves_current &= !is_required;
    }

    /// Whether the last plan is incomplete for this object: steps of an earlier plan were running when it was computed, or
    /// another client has changed the object since.
    pub fn awaits_plan(&self) -> bool {
        self.needs_replan || self.in_flight
    }

    /// The same for its current object.
    pub fn current_awaits_plan(&self) -> bool {
        self.awaits_plan() && !self.leaves_current
    }

    /// Whether a step is waiting or running.
    pub fn is_open(&self) -> bool {
        self.steps.values().any(StepState::is_open)
    }

    /// Whether a plan has covered the object.
    pub fn is_planned(&self) -> bool {
        self.instance.is_some() || self.change.is_some() || !self.deposed.is_empty() || !self.steps.is_empty()
    }

    /// Whether the object is not desired, has no open steps, and is not the blocked entry of a family whose instances
    /// are unknown.
    pub fn is_unused(&self) -> bool {
        self.instance.is_none() && !self.is_blocked() && !self.is_open()
    }

    /// Whether the planned change of its current object is blocked.
    pub fn is_blocked(&self) -> bool {
        self.change.as_ref().is_some_and(|change| change.action == Action::Blocked)
    }

    pub fn has_trouble(&self) -> bool {
        self.steps.values().any(|state| matches!(state, StepState::Failed { .. } | StepState::Skipped(_)))
    }

    /// The health of the object, as far as the status shows it.
    pub fn known_health(&self) -> KnownHealth<'_> {
        match &self.health {
            Some(health) => KnownHealth::NotReady(health),
            None if self.watched.is_some() && !self.seen => KnownHealth::Unseen,
            None => KnownHealth::Ready,
        }
    }

    /// Sets what was seen of the object. Returns the health before; `None` if it was not seen.
    pub fn set_health(&mut self, health: Health) -> Option<Health> {
        let was_seen = std::mem::replace(&mut self.seen, true);
        let current = health.is_current();
        let before = std::mem::replace(&mut self.health, (!current).then(|| Box::new(health)));
        was_seen.then(|| before.map_or(Health::Current, |before| *before))
    }

    /// Whether one of its preconditions or postconditions failed at the last check.
    pub fn has_failed_condition(&self) -> bool {
        matches!(self.held_for(), Some(Reason::PreconditionFailed | Reason::PostconditionFailed))
    }

    /// The reason why the object is held or blocked.
    pub fn held_for(&self) -> Option<Reason> {
        let blocked = self.change.as_ref().and_then(|change| change.blocked);
        self.hold.as_ref().map(|hold| hold.held.reason).or(blocked)
    }

    /// Replaces the warnings of the last plan, and returns them.
    pub fn replace_warnings(&mut self, texts: BTreeSet<String>) -> BTreeSet<String> {
        if texts.is_empty() && self.warnings.is_none() {
            return texts;
        }
        std::mem::replace(&mut self.warnings.get_or_insert_default().of_plan, texts)
    }

    /// Replaces the remarks of the status.
    pub fn replace_remarks(&mut self, remarks: BTreeSet<String>) {
        if !remarks.is_empty() || self.warnings.is_some() {
            self.warnings.get_or_insert_default().remarks = remarks;
        }
    }

    /// Drops the values of an executed plan: the record has the result.
    pub fn drop_values(&mut self, made: &mut MadeChanges) {
        for change in &mut self.deposed {
            (change.before, change.after) = (None, None);
        }
        self.change = self.change.take().map(|change| made.share(&change));
    }

    /// Whether it was planned as exactly this Resource: no family, no inputs and no provider configuration to fill in.
    pub fn is_planned_as(&self, resource: &Instance) -> bool {
        let as_read = resource.repetition.is_none() && resource.inputs.declared.is_empty();
        as_read && self.instance.as_ref().is_some_and(|i| i.provider.is_none() && i.is_equivalent(resource))
    }

    /// The current hold. Drops a hold that is over.
    pub fn held(&mut self, fingerprint: u64, now: Time) -> Option<ObjectBlock> {
        let hold = self.hold.as_ref()?;
        if hold.fingerprint != fingerprint {
            self.hold = None;
            self.failures = 0;
            self.last_failure = None;
            return None;
        }
        if hold.until.is_some_and(|until| until <= now) {
            self.hold = None;
            return None;
        }
        Some(hold.held.clone())
    }
}

/// Why a change is blocked. `None` if it is not.
pub fn blocked_for(change: &Change) -> Option<Reason> {
    (change.action == Action::Blocked).then(|| change.blocked.unwrap_or(Reason::Waiting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Reason;

    fn held(until: Option<Time>) -> TrackedObject {
        let held = ObjectBlock { reason: Reason::OperationFailed, message: "no".into() };
        TrackedObject {
            hold: Some(Box::new(Hold { held, until, fingerprint: 7 })),
            failures: 3,
            ..TrackedObject::default()
        }
    }

    #[test]
    fn a_running_step_that_the_plan_repeats_is_not_over_when_it_ends() {
        let operation = model::Operation::Update;
        let step = Step { address: Address::single("a"), deposed: None, operation, replaces: false };
        let mut tracked = TrackedObject::default();
        tracked.set_steps(vec![(step.clone(), false), (step.clone(), true)]);
        assert_eq!(tracked.steps.get(&step), Some(&StepState::Running));
        tracked.set(&step, StepState::Finished);
        assert!(tracked.is_open());
        tracked.set(&step, StepState::Running);
        tracked.set(&step, StepState::Finished);
        assert!(!tracked.is_open());
    }

    #[test]
    fn the_destroy_of_a_deposed_object_leaves_the_plan_of_the_current_one_complete() {
        let deposed = model::DeposedKey(1);
        let operation = model::Operation::Destroy;
        let step = Step { address: Address::single("a"), deposed: Some(deposed), operation, replaces: false };
        let mut tracked = TrackedObject::default();
        tracked.set_steps(vec![(step.clone(), true)]);
        assert!(tracked.awaits_plan() && !tracked.current_awaits_plan());
        assert!(tracked.end_in_flight() && tracked.awaits_plan() && !tracked.current_awaits_plan());
        tracked.require_reading(true);
        assert!(tracked.current_awaits_plan(), "another client has changed the current object");
        tracked.set_steps(vec![(Step { deposed: None, ..step.clone() }, true), (step, true)]);
        assert!(tracked.current_awaits_plan());
    }

    #[test]
    fn a_delayed_step_keeps_its_reason_in_a_new_plan() {
        let operation = model::Operation::Create;
        let step = Step { address: Address::single("a"), deposed: None, operation, replaces: false };
        let delayed = StepState::Delayed {
            reason: Reason::Progressing,
            message: "0 of 1 Pods are available".into(),
            is_stalled: false,
        };
        let mut tracked = TrackedObject::default();
        tracked.set_steps(vec![(step.clone(), false)]);
        tracked.set(&step, delayed.clone());
        tracked.set_steps(vec![(step.clone(), true)]);
        assert_eq!(tracked.steps.get(&step), Some(&delayed));
        tracked.set(&step, StepState::Finished);
        tracked.set_steps(vec![(step.clone(), true)]);
        assert_eq!(tracked.steps.get(&step), Some(&StepState::Running));
    }

    fn reading(action: DriftAction, interval: Duration) -> Arc<Instance> {
        let drift = engine::load::Drift { interval, action };
        Arc::new(Instance { drift, ..Instance::plain(Address::single("a"), "terraform_data") })
    }

    #[test]
    fn an_object_is_read_once_per_interval() {
        let (now, hour, minute) = (Time::default(), Duration::from_hours(1), Duration::from_mins(1));
        let mut tracked =
            TrackedObject { instance: Some(reading(DriftAction::Correct, hour)), ..TrackedObject::default() };
        assert!(tracked.read_again(false, now, 5_000));
        assert_eq!(tracked.read_at, Some(now + hour / 2), "the first reading is at a random point of the interval");
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
    fn a_hold_expires_and_keeps_the_failure_count() {
        let now = Time::default();
        let mut tracked = held(Some(now + Duration::from_secs(4)));
        assert!(tracked.held(7, now).is_some());
        assert!(tracked.held(7, now + Duration::from_secs(4)).is_none());
        assert_eq!(tracked.failures, 3, "the next wait is longer");
    }

    #[test]
    fn a_change_ends_a_hold_and_resets_the_failure_count() {
        let mut tracked = held(None);
        assert!(tracked.held(7, Time::default()).is_some(), "a terminal error waits for a change");
        assert!(tracked.held(8, Time::default()).is_none());
        assert_eq!(tracked.failures, 0);
    }
}
