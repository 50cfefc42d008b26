//! The objects of a namespace: the state of each between plans, their timers, and their removal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::drift::DriftBackoff;
use super::missing::MissingObjects;
use super::quota::OverQuota;
use super::summarize::{KnownHealth, Note, StepState, Steps};
use super::time::Time;
use super::{Command, Environment, Reconciler, ReportSubject, retry};
use engine::load::{DriftAction, Instance};
use engine::plan::{EffectiveLifecycle, ObjectBlock};
use model::{Action, Address, Change, Health, Name, Reason, Step, TypeName, Uid, in_family, with_namespace};

#[derive(Debug, Default)]
pub struct Objects {
    /// Boxed, because the nodes of the map are half empty.
    tracked: BTreeMap<Address, Box<TrackedObject>>,
    made: MadeChanges,
    /// When to check an object or the status of a Resource.
    timers: BTreeSet<(Time, Address)>,
    /// Objects that went missing recently.
    pub missing: MissingObjects,
    pub abandoned: BTreeSet<Address>,
    pub over_quota: OverQuota,
    /// Objects that cannot be created because another object has their identity, with their type.
    pub taken: BTreeMap<Address, TypeName>,
    /// Objects whose watch may have to start, change or end.
    to_watch: BTreeSet<Address>,
}

impl Objects {
    pub fn get(&self, address: &Address) -> Option<&TrackedObject> {
        self.tracked.get(address).map(AsRef::as_ref)
    }

    pub fn get_mut(&mut self, address: &Address) -> Option<&mut TrackedObject> {
        self.tracked.get_mut(address).map(AsMut::as_mut)
    }

    /// The object, and the changes that were made, to share them.
    pub fn with_made_changes(&mut self, address: &Address) -> Option<(&mut TrackedObject, &mut MadeChanges)> {
        Some((self.tracked.get_mut(address)?, &mut self.made))
    }

    pub fn entry(&mut self, address: &Address) -> &mut TrackedObject {
        self.tracked.entry(address.clone()).or_default()
    }

    pub fn of<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = (&'a Address, &'a TrackedObject)> {
        in_family(&self.tracked, name).map(|(address, tracked)| (address, &**tracked))
    }

    pub fn count(&self) -> usize {
        self.tracked.len()
    }

    pub fn all(&self) -> impl Iterator<Item = (&Address, &TrackedObject)> {
        self.tracked.iter().map(|(address, tracked)| (address, &**tracked))
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = (&Address, &mut TrackedObject)> {
        self.tracked.iter_mut().map(|(address, tracked)| (address, &mut **tracked))
    }

    /// Schedules a check of an object.
    pub fn wake_at(&mut self, address: &Address, at: Time) {
        self.timers.insert((at, address.clone()));
    }

    /// Schedules a plan of an object.
    pub fn retry_at(&mut self, address: &Address, at: Time) {
        self.entry(address).retry_at = Some(at);
        self.wake_at(address, at);
    }

    pub fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn due_timer(&mut self, now: Time) -> Option<Address> {
        let is_due = self.next_timer().is_some_and(|at| at <= now);
        is_due.then(|| self.timers.pop_first().map(|(_, address)| address))?
    }

    pub fn stop_timers(&mut self) {
        self.timers.clear();
    }

    /// Updates the watch of an object at the end of the turn.
    pub fn watch(&mut self, address: &Address) {
        self.to_watch.insert(address.clone());
    }

    pub fn take_to_watch(&mut self) -> BTreeSet<Address> {
        std::mem::take(&mut self.to_watch)
    }
}

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
    pub watched: Option<TypeName>,
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
        let as_read = !resource.is_family() && resource.inputs.declared.is_empty();
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

impl Reconciler {
    /// Checks all objects whose timer is due.
    pub fn handle_timers(&mut self, environment: &dyn Environment) {
        while let Some(address) = self.objects.due_timer(self.now.time) {
            self.check_object(&address, environment);
        }
    }

    fn check_object(&mut self, address: &Address, environment: &dyn Environment) {
        self.publish_if_due(address.name());
        self.postpone_reading(address, environment);
        let now = self.now.time;
        let Some(tracked) = self.objects.get_mut(address) else { return };
        // The timers are cleared even if no reading happens now: the next plan reads the object, not every timer.
        let is_to_be_read = end_timer(&mut tracked.check_at, now) | end_timer(&mut tracked.read_at, now);
        tracked.unread |= is_to_be_read;
        let is_retry = end_timer(&mut tracked.retry_at, now);
        self.counts.retries += u64::from(is_retry && tracked.failures > 0);
        if is_retry | is_to_be_read {
            self.touch(address.name());
        }
    }

    /// Plans these objects now, with a reading.
    pub fn read_now(&mut self, objects: BTreeSet<Address>) {
        for address in objects {
            self.objects.entry(&address).unread = true;
            self.touch(address.name());
        }
    }

    /// Retries the objects that wait after a failure and for which `which` returns `true`.
    pub fn retry(&mut self, which: impl Fn(&TrackedObject) -> bool) {
        let mut names = BTreeSet::new();
        for (address, tracked) in self.objects.all_mut().filter(|(_, tracked)| which(tracked)) {
            if tracked.hold.take().is_some() || tracked.failures > 0 {
                tracked.failures = 0;
                names.insert(address.name().clone());
            }
        }
        names.iter().for_each(|name| self.touch(name));
    }

    /// Cleans up an object after a plan or a step: reports an abandoned record, drops an object that no longer exists,
    /// or releases its Resource.
    pub fn clean_up(&mut self, address: &Address) {
        let recorded = self.index.records().contains_key(address);
        let busy = self.index.records().work_on(address).is_some() || self.moving.contains(address.name());
        if self.index.instance(address.name()).is_none() {
            return match recorded {
                true if self.policy.destroy_orphans => {}
                true => self.report_abandoned(address, busy),
                false => self.forget(address),
            };
        }
        self.objects.abandoned.remove(address);
        if !self.release_if_empty(address.name())
            && !recorded
            && !busy
            && self.objects.get(address).is_some_and(TrackedObject::is_unused)
        {
            // An instance that is no longer desired and has no record.
            self.forget(address);
        }
    }

    /// Releases a Resource that is being deleted once it has no objects; a family may never have had any. Returns
    /// whether that is so.
    pub fn release_if_empty(&mut self, name: &Name) -> bool {
        let resource = self.index.instance(name);
        let Some(resource) = resource.filter(|resource| resource.deleting && resource.has_finalizer) else {
            return false;
        };
        // A Resource that claims a record but has none has lost it: its object may exist, so only `state rm` releases
        // it.
        let is_empty = !self.has_traces(name) && !resource.has_record_annotation();
        if is_empty && self.resources.released.insert(resource.uid.clone()) {
            self.commands.push(Command::Release { name: name.clone(), uid: resource.uid.clone() });
        }
        is_empty
    }

    /// Whether any instance of a Resource has a record or work in progress.
    fn has_traces(&self, name: &Name) -> bool {
        let records = self.index.records();
        self.moving.contains(name)
            || self.recorded(name).next().is_some()
            || self.objects.of(name).any(|(address, tracked)| tracked.is_open() || records.work_on(address).is_some())
    }

    /// Retries a failed release with back-off.
    pub fn release_failed(&mut self, name: Name, uid: &Uid) {
        self.resources.released.remove(uid);
        let address = Address::single(name);
        let wait = self.wait_after_failure(&address, Reason::OperationFailed);
        self.objects.retry_at(&address, self.now.time + wait);
    }

    /// Gives a Resource its finalizer and annotation back, whatever its state: without them, its deletion would leave its
    /// object behind.
    pub fn claim(&mut self, name: &Name) {
        if self.moving.contains(name) || self.resources.claiming.contains(name) {
            return;
        }
        if let Some((address, uid)) = self.index.unclaimed(name) {
            self.resources.claiming.insert(name.clone());
            self.commands.push(Command::Claim { uid, address });
        }
    }

    /// Retries a failed claim with back-off.
    pub fn claimed(&mut self, name: Name, done: bool) {
        if self.resources.claiming.remove(&name) && !done {
            let address = Address::single(name);
            let wait = self.wait_after_failure(&address, Reason::OperationFailed);
            self.objects.retry_at(&address, self.now.time + wait);
        }
    }

    /// Counts a failure of an object. Returns the delay before the next attempt.
    pub fn wait_after_failure(&mut self, address: &Address, reason: Reason) -> Duration {
        let draw = self.random.number();
        let tracked = self.objects.entry(address);
        tracked.failures += 1;
        retry::delay_after(reason, tracked.failures, draw)
    }

    /// Reports a record without a Resource. Its object stays unchanged until a Resource of its name and type exists.
    fn report_abandoned(&mut self, address: &Address, busy: bool) {
        let open = self.objects.get(address).is_some_and(TrackedObject::is_open);
        let hold = self.objects.get(address).and_then(|tracked| tracked.hold.clone());
        // An operation that is resolved later reports the result then.
        let is_resolved_later = hold.as_ref().is_some_and(|hold| hold.until.is_some());
        if busy || open || is_resolved_later || !self.objects.abandoned.insert(address.clone()) {
            return;
        }
        let namespace = self.namespace();
        let note = match hold {
            Some(hold) => format!("{namespace}/{address} has a record but no Resource: {}", hold.held.message),
            None => format!(
                "{namespace}/{address} has a record but no Resource; Purlin does not change its object (hint: apply \
                 the Resource again to adopt it, or remove the record with `purlin state rm {}`)",
                address.shell_word()
            ),
        };
        let note = with_namespace(&note, self.command_namespace());
        let note = Note { warning: true, reason: "Abandoned", action: "Plan", note };
        // The event belongs to the record, whose namespace is not the terminating one.
        self.commands.push(Command::Report { about: ReportSubject::Record(address.clone()), note, terminating: false });
    }

    /// An object of this type was destroyed: plans those that cannot be created because another one has their identity.
    pub fn identity_freed(&mut self, type_name: &TypeName) {
        let waiting = self.objects.taken.iter().filter(|(_, of)| *of == type_name);
        let names: BTreeSet<Name> = waiting.map(|(address, _)| address.name().clone()).collect();
        names.iter().for_each(|name| self.touch(name));
    }

    /// Drops an object that has neither a Resource nor a record.
    fn forget(&mut self, address: &Address) {
        self.objects.abandoned.remove(address);
        if self.objects.get(address).is_some_and(TrackedObject::is_open) {
            return;
        }
        self.objects.missing.forget(address);
        self.objects.taken.remove(address);
        self.planning.memo.remove(address);
        self.schedule.forget_reading(address);
        if let Some(type_name) = self.objects.tracked.remove(address).and_then(|tracked| tracked.watched) {
            self.commands.push(Command::Unwatch { address: address.clone(), type_name });
        }
        self.untrack_resource(address.name());
        // Only now does its absence show that an approved destroy was made.
        self.index.approvals_mut().touch_names([address.name()]);
    }
}

/// Clears a timer if it is due. Returns whether it was.
fn end_timer(timer: &mut Option<Time>, now: Time) -> bool {
    timer.take_if(|at| *at <= now).is_some()
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
