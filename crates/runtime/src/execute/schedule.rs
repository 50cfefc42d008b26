//! The schedule of one namespace: which steps wait, which run, and which become ready when a step ends. It starts
//! nothing itself: [`Schedule::commands`] returns the steps to start, and [`Schedule::step_ended`] receives their
//! results.

mod batch;
mod batches;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use petgraph::graph::NodeIndex;

use self::batch::Batch;
use self::batches::Batches;
use super::failure::Failure;
use super::in_flight::{Delay, StepUpdate};
use super::permits::{Permit, Permits};
use super::step::{RecordEffect, StepEnd};
use super::workers::WorkerCommand;
use crate::execute::ProgressKind;
use engine::graph::{ActionGraph, Outcome};
use engine::load::Config;
use engine::plan::{Plan, RunningStep};
use model::{
    Address, Diagnostic, Drift, Name, Operation, ReadResult, Reason, Recorded, RecordedObject, Severity, Step, Stored,
    Value,
};

/// Walks action graphs. Graphs of separate components run at the same time.
#[derive(Default)]
pub struct Schedule {
    /// The maximum number of running steps.
    limit: usize,
    /// The last readings of data sources.
    readings: BTreeMap<Address, Arc<ReadResult>>,
    batches: Batches,
    /// Steps whose dependencies have ended, waiting for a permit or for another step of their object.
    ready: VecDeque<(u64, NodeIndex)>,
    running: BTreeMap<Step, Running>,
    /// The identities that objects take, by hash, each with the last object whose step has begun to take it. The plans of
    /// separate components know nothing of each other, and each finds the identity free.
    taken: BTreeMap<u64, Address>,
    delays: Delays,
    events: VecDeque<StepEvent>,
    /// Names of objects that are being planned: none of their steps starts.
    paused: BTreeSet<Name>,
    /// Ended steps of paused objects, to be handled on resume.
    paused_ends: Vec<StepEnd>,
    stopped: bool,
}

/// A new plan to execute. All fields were computed from the same state.
#[derive(Debug)]
pub struct Adoption {
    pub scope: BTreeSet<Address>,
    pub config: Arc<Config>,
    pub plan: Plan,
    pub graph: Arc<ActionGraph>,
    pub namespace: Value,
    /// The steps that were running at the time of planning.
    pub running: Vec<RunningStep>,
    /// The desired states that were planned, by name, if they can change during execution.
    pub desired_digests: Arc<BTreeMap<Name, u64>>,
    /// The first name of each name's component, which identifies the component in the log.
    pub components: Arc<BTreeMap<Name, Name>>,
}

/// What a step, a recovery or a move has done to the record of its object.
#[derive(Debug, Default)]
pub enum Written {
    /// The record is as it was.
    #[default]
    Nothing,
    Record(Stored),
    Erased,
    /// Another client has removed it.
    Missing,
}

impl Written {
    /// The record after it, from the one before it.
    pub fn record<'a>(&'a self, before: Option<&'a Stored>) -> Option<&'a Stored> {
        match self {
            Self::Nothing => before,
            Self::Record(stored) => Some(stored),
            Self::Erased | Self::Missing => None,
        }
    }
}

/// Progress of a step, and what it has written if it has ended.
#[derive(Debug)]
pub struct StepEvent {
    pub step: Step,
    pub kind: ProgressKind,
    pub written: Written,
}

/// The set of running steps has changed since planning: plan again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StalePlan;

/// The limit that a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepLimit {
    /// The number of steps in a minute.
    Rate,
    /// The size of all records.
    RecordBytes,
}

/// Ready steps that are delayed, each with the cause, as reported.
#[derive(Default)]
struct Delays(BTreeMap<Step, DelayCause>);

/// Why a ready step does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DelayCause {
    Limit(StepLimit),
    /// This object is about to have the identity that the object of the step takes.
    Taken(Address),
}

/// The limits of a namespace at one moment, which delay creates, updates and replacements. Destroys, recoveries and the
/// recording of results never wait for them.
pub trait StepQuota {
    /// The limit because of which a limited step must not start now. `before`: how many limited steps start before it.
    /// It is asked for every waiting step in every turn, so it must be cheap.
    fn limit(&self, before: usize) -> Option<StepLimit>;

    /// Why the step waits for that limit, and until when.
    fn delay(&self, limit: StepLimit, before: usize) -> Delay;

    /// A limited step starts.
    fn started(&mut self);
}

/// There is no limit.
impl StepQuota for () {
    fn limit(&self, _before: usize) -> Option<StepLimit> {
        None
    }

    fn delay(&self, _limit: StepLimit, _before: usize) -> Delay {
        Delay::new(Reason::QuotaExceeded, String::new())
    }

    fn started(&mut self) {}
}

impl Delays {
    /// The report that a ready step does not start, unless its last report said so: every waiting step is looked at in every
    /// turn.
    fn report(&mut self, step: &Step, cause: DelayCause, delay: impl FnOnce() -> Delay) -> Option<StepEvent> {
        if self.0.get(step) == Some(&cause) {
            return None;
        }
        self.0.insert(step.clone(), cause);
        let delay = delay();
        let why = Diagnostic::warning(&step.address, delay.reason, delay.message);
        Some(StepEvent { step: step.clone(), kind: ProgressKind::Delayed(why), written: Written::Nothing })
    }
}

fn awaits_taker(other: &Address) -> Delay {
    let message = format!(
        "`{other}` is about to have the object of this name or ID, so this step waits (hint: one object cannot have two \
         Resources: give this one another name, or remove it)"
    );
    Delay::new(Reason::Waiting, message)
}

/// The known values of all objects and data sources.
#[derive(Clone, Copy)]
struct KnownValues<'a> {
    records: &'a Recorded,
    readings: &'a BTreeMap<Address, Arc<ReadResult>>,
}

impl KnownValues<'_> {
    fn value(&self, address: &Address) -> Option<Value> {
        if address.is_data() {
            return self.readings.get(address).map(|reading| reading.value.clone());
        }
        self.records.get(address)?.record.current.as_ref().map(|object| object.value.clone())
    }
}

struct Running {
    /// The step as a new plan identifies it: the object that a create-before-destroy replacement destroys is deposed by
    /// now.
    planning_step: Step,
    /// The step as the last adopted plan with this step identifies it, for events.
    known_as: Step,
    batch: Option<(u64, NodeIndex)>,
    planned: Option<Value>,
    recorded: Option<Arc<RecordedObject>>,
    /// The step only waits, without a permit.
    without_permit: bool,
    /// What the step has recorded, if it only waits until the object is ready.
    written: Option<Stored>,
    is_record_only: bool,
    reported_drift: Option<Drift>,
}

impl Schedule {
    /// Creates an idle schedule of one namespace. `limit` is the maximum number of running steps.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Leaks the schedule when the process exits, because freeing it would take long.
    pub fn abandon(self) {
        std::mem::forget(self);
    }

    /// The last readings of data sources that a plan may use. A data source that a plan must still read, or whose read
    /// failed, has none.
    pub fn readings(&self) -> &BTreeMap<Address, Arc<ReadResult>> {
        &self.readings
    }

    /// Drops the reading of a data source that no longer exists.
    pub fn forget_reading(&mut self, address: &Address) {
        self.readings.remove(address);
    }

    /// The record of an object was changed or removed, and not by a step of this schedule. What was planned for the
    /// earlier record does not start: the next plan replaces it.
    pub fn record_changed(&mut self, address: &Address) {
        if let Some(batch) = self.batches.of_mut(address) {
            batch.outdated.insert(address.clone());
        }
    }

    /// Returns all objects of every running graph that contains an object of these names. A new plan of the names must
    /// cover them all. Only the graph may know the instances of a Resource.
    pub fn touching(&self, names: &BTreeSet<Name>) -> impl Iterator<Item = &Address> {
        self.batches.of_names(names).flat_map(batch::Batch::scope)
    }

    /// Returns the running steps of the selected objects; a new plan treats them as fixed.
    pub fn running(&self, is_concerned: impl Fn(&Address) -> bool) -> Vec<RunningStep> {
        let in_scope = self.running.iter().filter(|(step, _)| is_concerned(&step.address));
        in_scope
            .map(|(_, running)| RunningStep {
                step: running.planning_step.clone(),
                planned: running.planned.clone(),
                recorded: running.recorded.clone(),
                record_only: running.is_record_only,
                reported_drift: running.reported_drift.clone(),
            })
            .collect()
    }

    /// The running steps, as they started.
    pub fn running_steps(&self) -> impl Iterator<Item = &Step> {
        self.running.keys()
    }

    pub fn is_running(&self, address: &Address) -> bool {
        self.running_of(address).is_some()
    }

    /// What the running step of an object has recorded, if it only waits until the object is ready.
    pub fn written(&self, address: &Address) -> Option<&Stored> {
        self.running_of(address)?.written.as_ref()
    }

    fn running_of(&self, address: &Address) -> Option<&Running> {
        // Steps are ordered by address first.
        let first = Step { address: address.clone(), deposed: None, operation: Operation::Create, replaces: false };
        self.running.range(first..).next().filter(|(step, _)| step.address == *address).map(|(_, running)| running)
    }

    /// Whether no step is running and none is waiting.
    pub fn is_idle(&self) -> bool {
        self.nothing_runs() && self.batches.is_empty() && self.events.is_empty() && self.paused_ends.is_empty()
    }

    /// The number of steps that wait for a permit, or for another step of their object.
    pub fn ready_steps(&self) -> usize {
        self.ready.len()
    }

    /// How many of [`Self::ready_steps`] destroy or forget an object.
    pub fn ready_removals(&self) -> usize {
        let steps = self.ready.iter().filter_map(|(id, node)| Some(self.batches.get(*id)?.step(*node)));
        steps.filter(|step| step.operation.removes()).count()
    }

    /// The number of steps that a limit delays.
    pub fn delayed_steps(&self, limit: StepLimit) -> usize {
        self.delays.0.values().filter(|cause| **cause == DelayCause::Limit(limit)).count()
    }

    pub fn nothing_runs(&self) -> bool {
        self.running.is_empty()
    }

    /// Pauses objects so that a plan for them can be adopted: none of their steps starts, and ended steps are handled
    /// on resume. Running calls continue and their results are recorded.
    pub fn pause(&mut self, names: &BTreeSet<Name>) {
        if !self.stopped {
            self.paused.extend(names.iter().cloned());
        }
    }

    fn resume_all(&mut self) {
        let paused = std::mem::take(&mut self.paused);
        self.resume(&paused);
    }

    /// Resumes these objects and handles the steps that have ended.
    pub fn resume(&mut self, names: &BTreeSet<Name>) {
        self.paused.retain(|name| !names.contains(name));
        for ended in std::mem::take(&mut self.paused_ends) {
            self.step_ended(ended);
        }
    }

    /// Adopts a new plan for the objects of a scope, which must include everything that `touching` returns. It replaces
    /// steps that have not started. Running steps continue as the fixed nodes that the new graph has for them. After
    /// `stop` its steps are skipped.
    ///
    /// # Errors
    /// `StalePlan` when a step has ended since planning; nothing changes then.
    pub fn adopt(&mut self, adoption: impl Into<Arc<Adoption>>) -> Result<(), StalePlan> {
        let adoption = adoption.into();
        let planned_around: BTreeSet<&Step> = adoption.running.iter().map(|running| &running.step).collect();
        let now = self.running.values().map(|running| &running.planning_step);
        let now: BTreeSet<&Step> = now.filter(|step| adoption.scope.contains(&step.address)).collect();
        if planned_around != now {
            return Err(StalePlan);
        }
        self.drop_batches(&adoption.scope);
        // A reading from before a change of a dependency is out of date after it.
        for address in adoption.scope.iter().filter(|address| address.is_data()) {
            self.readings.remove(address);
        }
        self.readings.extend(adoption.plan.readings());
        let (batch, ready) = Batch::start(adoption);
        let (id, batch) = self.batches.add(batch);
        for (step, running) in &mut self.running {
            if batch.scope().contains(&step.address) {
                running.batch = batch.running(&running.planning_step).map(|node| (id, node));
                if running.batch.is_some() {
                    running.known_as.clone_from(&running.planning_step);
                }
            }
        }
        self.enqueue(id, ready);
        self.close_if_over(id);
        if self.stopped {
            self.stop();
        }
        Ok(())
    }

    /// Returns the next event that was not taken yet.
    pub fn event(&mut self) -> Option<StepEvent> {
        self.events.pop_front()
    }

    /// Removes and returns what the steps have written whose events were not taken yet.
    pub fn take_written(&mut self) -> impl Iterator<Item = (&Address, Written)> {
        self.events.iter_mut().map(|event| (&event.step.address, std::mem::take(&mut event.written)))
    }

    /// Whether an event was not taken yet.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns the commands that can be executed now. `records`: after all events were taken. `quota` may delay creates, updates and replacements. `is_latest` says of a Resource, by name, whether the planned
    /// desired state is still the latest one; a step that destroys or replaces starts only then.
    pub fn commands(
        &mut self,
        records: &Recorded,
        permits: &mut dyn Permits,
        quota: &mut dyn StepQuota,
        is_latest: &dyn Fn(&str, Option<u64>) -> bool,
    ) -> Vec<WorkerCommand> {
        let mut commands = Vec::new();
        let mut waiting = VecDeque::new();
        let mut limited = 0;
        let mut busy = self.running.values().filter(|running| !running.without_permit).count();
        while busy < self.limit
            && !permits.is_exhausted()
            && let Some((id, node)) = self.ready.pop_front()
        {
            let Some(batch) = self.batches.get(id) else { continue };
            let step = batch.step(node);
            let is_latest_desired =
                !step.is_destructive() || is_latest(step.address.name(), batch.desired_digest(step));
            let is_outdated = !is_latest_desired || batch.outdated.contains(&step.address);
            if is_outdated || self.paused.contains(step.address.name()) || self.is_running(&step.address) {
                waiting.push_back((id, node));
                continue;
            }
            let identity = batch.identity(step);
            if let Some(other) = identity.and_then(|identity| self.taker(identity, &step.address)).cloned() {
                let cause = DelayCause::Taken(other.clone());
                self.events.extend(self.delays.report(step, cause, || awaits_taker(&other)));
                waiting.push_back((id, node));
                continue;
            }
            let is_limited = batch.is_limited(step, records);
            if is_limited && let Some(limit) = quota.limit(limited) {
                let cause = DelayCause::Limit(limit);
                self.events.extend(self.delays.report(step, cause, || quota.delay(limit, limited)));
                limited += 1;
                waiting.push_back((id, node));
                continue;
            }
            match permits.try_take(batch.type_name(step), batch.provider(step, records)) {
                Some(permit) => {
                    self.taken.extend(identity.map(|identity| (identity, step.address.clone())));
                    self.delays.0.remove(step);
                    if is_limited {
                        quota.started();
                    }
                    commands.extend(self.start(id, node, permit, records));
                    busy += 1;
                }
                None => {
                    limited += usize::from(is_limited);
                    waiting.push_back((id, node));
                }
            }
        }
        // Usually only few of a long queue were looked at.
        waiting.into_iter().rev().for_each(|waiting| self.ready.push_front(waiting));
        commands
    }

    /// Another object that is about to have an identity: its step runs, or it is replaced and its new object comes later. The
    /// driver finds the identity taken when that object has it, before anything is destroyed for it.
    fn taker(&self, identity: u64, address: &Address) -> Option<&Address> {
        let other = self.taken.get(&identity).filter(|other| *other != address)?;
        let takes = self.is_running(other) || self.batches.of(other).is_some_and(|batch| batch.takes(other, identity));
        takes.then_some(other)
    }

    /// Cancels the plans that touch these objects. Running steps continue.
    pub fn cancel(&mut self, scope: &BTreeSet<Address>) {
        self.drop_batches(scope);
    }

    /// Cancels all plans. Running steps continue.
    pub fn cancel_all(&mut self) {
        self.batches.clear();
        self.ready.clear();
        self.delays.0.clear();
        for running in self.running.values_mut() {
            running.batch = None;
        }
    }

    /// Returns the steps that the object's next step waits for.
    pub fn waiting_for(&self, address: &Address) -> Vec<Step> {
        self.batches.of(address).map(|batch| batch.waiting_for(address)).unwrap_or_default()
    }

    /// Starts no more steps, also of plans that are adopted later, and skips the waiting ones. Running steps continue.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.resume_all();
        let turn_came = std::mem::take(&mut self.ready);
        self.delays.0.clear();
        let mut skipped: Vec<Step> =
            turn_came.into_iter().filter_map(|(id, node)| Some(self.batches.get(id)?.step(node).clone())).collect();
        skipped.extend(self.batches.values_mut().flat_map(Batch::skip_rest));
        for step in skipped {
            self.push(step, ProgressKind::Skipped { because_of: None });
        }
        self.batches.clear();
        for running in self.running.values_mut() {
            running.batch = None;
        }
    }

    /// Reverts `stop` and every `pause`: steps of plans that are adopted from now on start.
    pub fn restart(&mut self) {
        self.stopped = false;
        self.resume_all();
    }

    fn drop_batches(&mut self, scope: &BTreeSet<Address>) {
        if self.batches.drop_of(scope) {
            // A new plan reports the delay of its steps again.
            self.delays.0.retain(|step, _| !scope.contains(&step.address));
            let batches = &self.batches;
            self.ready.retain(|(id, _)| batches.get(*id).is_some());
        }
    }

    fn enqueue(&mut self, id: u64, nodes: Vec<NodeIndex>) {
        self.ready.extend(nodes.into_iter().map(|node| (id, node)));
    }

    fn start(&mut self, id: u64, node: NodeIndex, permit: Permit, records: &Recorded) -> Option<WorkerCommand> {
        let batch = self.batches.get_mut(id)?;
        let step = batch.step(node).clone();
        let input = batch.input(&step, &KnownValues { records, readings: &self.readings });
        let (planned, recorded) = batch.expected_result(&step);
        let (planning_step, is_record_only) = (batch.planning_step(&step), batch.is_record_only(&step));
        let running = Running {
            planning_step,
            known_as: step.clone(),
            batch: Some((id, node)),
            planned,
            recorded,
            without_permit: false,
            written: None,
            is_record_only,
            reported_drift: batch.reported_drift(&step).cloned(),
        };
        self.running.insert(step.clone(), running);
        self.push(step, ProgressKind::Started);
        Some(WorkerCommand::Start(Box::new(input), permit))
    }

    /// Handles the end of a step.
    pub fn step_ended(&mut self, end: StepEnd) {
        if self.paused.contains(end.step.address.name()) {
            return self.paused_ends.push(end);
        }
        self.finish(end);
    }

    /// Handles a report of a running step.
    pub fn step_updated(&mut self, step: Step, news: StepUpdate) {
        let Some(running) = self.running.get_mut(&step) else { return };
        match news {
            StepUpdate::PermitReleased => running.without_permit = true,
            StepUpdate::Recorded(stored) => (running.without_permit, running.written) = (true, Some(stored)),
            StepUpdate::Delayed(delay) => {
                let mut why = Diagnostic::warning(&step.address, delay.reason, delay.message);
                if delay.is_stalled {
                    why.severity = Severity::Error;
                }
                let step = running.known_as.clone();
                self.push(step, ProgressKind::Delayed(why));
            }
        }
    }

    fn finish(&mut self, end: StepEnd) {
        let StepEnd { step, effect, failure, notes, warnings } = end;
        let running = self.running.remove(&step);
        let step = running.as_ref().map_or(step, |running| running.known_as.clone());
        // After the destroy of a replacement, the new object is still to come.
        let is_destroyed = matches!(effect, RecordEffect::Written(_) | RecordEffect::Erased) && failure.is_none();
        if !(step.operation.removes() && is_destroyed) {
            self.taken.retain(|_, taker| *taker != step.address);
        }
        for note in notes {
            self.push(step.clone(), ProgressKind::Hook(note));
        }
        for warning in warnings {
            self.push(step.clone(), ProgressKind::Warning(warning));
        }
        let written = match effect {
            RecordEffect::WaitInterrupted(stored) => {
                return self.push_end(step, ProgressKind::WaitInterrupted, Written::Record(stored));
            }
            RecordEffect::Superseded(stored) => {
                return self.superseded(step, running, stored.map_or(Written::Nothing, Written::Record));
            }
            RecordEffect::Read(reading) => {
                self.readings.insert(step.address.clone(), reading);
                Written::Nothing
            }
            RecordEffect::Unchanged => Written::Nothing,
            RecordEffect::Written(stored) => Written::Record(stored),
            RecordEffect::Erased => Written::Erased,
        };
        let outcome = if failure.is_some() { Outcome::Failed } else { Outcome::Done };
        let kind = match failure {
            None => ProgressKind::Finished,
            Some(Failure { reason, message, retryable }) => ProgressKind::Failed { reason, message, retryable },
        };
        self.push_end(step, kind, written);
        if let Some((id, node)) = running.and_then(|running| running.batch) {
            self.advance(id, node, outcome);
        }
    }

    /// Returns the step to the queue until a newer plan replaces it. If that plan already exists and expects the step
    /// to run, the step counts as failed.
    fn superseded(&mut self, step: Step, running: Option<Running>, written: Written) {
        self.push_end(step, ProgressKind::Superseded, written);
        let Some((id, node)) = running.and_then(|running| running.batch) else { return };
        match self.batches.get(id).is_some_and(|batch| batch.was_running(node)) {
            true => self.advance(id, node, Outcome::Failed),
            false => self.ready.push_back((id, node)),
        }
    }

    fn advance(&mut self, id: u64, node: NodeIndex, outcome: Outcome) {
        let Some(batch) = self.batches.get_mut(id) else { return };
        let (ready, skipped) = batch.finish(node, outcome);
        for (step, cause) in skipped {
            self.taken.retain(|_, address| *address != step.address);
            self.push(step, ProgressKind::Skipped { because_of: Some(cause) });
        }
        self.enqueue(id, ready);
        self.close_if_over(id);
    }

    fn close_if_over(&mut self, id: u64) {
        if self.batches.get(id).is_some_and(Batch::is_over) {
            self.batches.remove(id);
        }
    }

    fn push(&mut self, step: Step, kind: ProgressKind) {
        self.push_end(step, kind, Written::Nothing);
    }

    fn push_end(&mut self, step: Step, kind: ProgressKind, written: Written) {
        self.events.push_back(StepEvent { step, kind, written });
    }
}
