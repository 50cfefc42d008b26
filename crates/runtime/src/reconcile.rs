//! The reconciler of one namespace, as a value. It receives events with the time, returns commands, and does no I/O.
//!
//! ```text
//!  watches --observe--> Index --names--> Debounce --due--> Command::Plan
//!                         ^                                     |  (executed by the caller)
//!        own writes ------+                                     v
//!            |                                         Signal::Planned
//!            |                                                  |  is it still up to date?
//!  Command::WriteStatus <--- Resources <--- Objects <-- follow -+-- adopt --> Schedule --> Command::Execute
//!                                              ^                                 ^               |
//!                                              +--------- progress of steps ------+-- Signal::Worker
//! ```
//!
//! [`Reconciler::react`] is one turn: it processes events and decides everything that can be decided now. The caller
//! executes the commands, and calls it again with their results or at the requested time. The same events at the same
//! times result in the same commands, so a test or a simulation can replay any history.
//!
//! - `interface`: what goes in and comes out;
//! - [`index`]: the desired and the recorded state, from the watches and from own writes;
//! - `debounce`: selects the components to plan;
//! - `planning`, `other_components`: the input of their plans, and which of the plans that come back are stale;
//! - `progress`: the plans with open steps, and the progress of these;
//! - `objects`, `drift`, `missing`, `recovery`, `moves`: the state of each object;
//! - `resources`, [`summarize`]: the status of each Resource;
//! - `held_plan`, `approvals`: the changes that wait for an approval, and the Plans in which users approve them;
//! - `preview`: the input of a plan as if proposed manifests had been applied;
//! - `provider_configs`, `provider_status`: the checks, the dependents and the status of `ProviderConfigs`;
//! - `quota`: the limits of the namespace;
//! - [`retry`], [`time`]: delays, and the time that the caller passes.

mod approvals;
mod debounce;
mod drift;
mod held_plan;
pub mod index;
mod interface;
mod missing;
mod moves;
mod objects;
mod other_components;
mod planning;
mod preview;
mod progress;
mod provider_configs;
mod provider_status;
mod quota;
mod recovery;
mod resources;
pub mod retry;
pub mod summarize;
pub mod time;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::execute::{Schedule, StepEvent, StepLimit, WorkerCommand, WorkerEvent};
use model::{Address, Name, Namespace, ReadResult, Reason, Recorded, Stored, in_family, with_namespace};

use self::approvals::ApprovalTracker;
use self::index::{Changes, Event, Index, KnownRecord, Work};
use self::objects::Objects;
use self::planning::Planning;
use self::provider_configs::ProviderConfigs;
use self::quota::StepBudget;
use self::resources::Resources;
use self::time::{Moment, Time};

pub use self::approvals::VALID as APPROVAL_VALID;
pub use self::held_plan::{HeldPlan, PlanOwner};
pub use self::interface::{
    ApprovalWrite, Command, Counts, Environment, Gauges, MoveRequest, MoveResult, Policy, RecoveryResult,
    ReportSubject, Signal, StatusTarget, StatusUpdate, Turn, Urgency,
};
pub use self::planning::{PlanRequest, PlanResult, RESOLVING};
pub use self::preview::{PreviewRequest, PreviewTime, ProposedState};
pub use self::provider_status::ConfigurationCheck;
pub use self::summarize::{Note, ObjectState};

#[derive(Default)]
pub struct Reconciler {
    policy: Policy,
    phase: Phase,
    now: Moment,
    /// For jitter and for the seeds of plans.
    random: RandomSource,
    index: Index,
    planning: Planning,
    schedule: Schedule,
    objects: Objects,
    resources: Resources,
    /// The names of components whose records are being moved. They are not planned.
    moving: BTreeSet<Name>,
    provider_configs: ProviderConfigs,
    approvals: ApprovalTracker,
    step_budget: StepBudget,
    counts: Counts,
    commands: Vec<Command>,
}

/// Which work is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Plan and start steps.
    Active,
    /// Another replica may be the leader, or this one has not begun: nothing new starts. Running calls are awaited, and
    /// continue if this replica becomes the leader again.
    #[default]
    Standby,
    ShuttingDown,
}

/// Deterministic random numbers.
#[derive(Clone, Debug)]
struct RandomSource(fastrand::Rng);

impl RandomSource {
    fn number(&mut self) -> u64 {
        self.0.u64(..)
    }
}

impl Default for RandomSource {
    fn default() -> Self {
        Self(fastrand::Rng::with_seed(0))
    }
}

impl Reconciler {
    /// A reconciler without any state. `seed` determines all random numbers; see [`Index::new`] for `versions`.
    pub fn new(namespace: Namespace, policy: Policy, seed: u64, versions: u64) -> Self {
        Self {
            policy,
            index: Index::new(namespace, versions),
            schedule: Schedule::new(policy.max_running_steps),
            random: RandomSource(fastrand::Rng::with_seed(seed)),
            ..Self::default()
        }
    }

    pub fn namespace(&self) -> &Namespace {
        self.index.namespace()
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The records, as last read or written.
    pub fn records(&self) -> &Recorded {
        self.index.records()
    }

    /// The last readings of data sources.
    pub fn readings(&self) -> &BTreeMap<Address, Arc<ReadResult>> {
        self.schedule.readings()
    }

    /// Records an event of a watch. The next turn processes it.
    pub fn observe(&mut self, event: Event) {
        self.index.apply(event);
    }

    /// One turn: processes events in order and decides everything that can be decided. [`Self::take_commands`] returns
    /// the resulting commands, also after a turn that panicked. What such a turn has not handled remains in `signals`:
    /// the result of a step comes only once.
    pub fn react(&mut self, signals: &mut VecDeque<Signal>, now: Moment, environment: &mut dyn Environment) -> Turn {
        self.now = now;
        while let Some(signal) = signals.pop_front() {
            self.handle(signal);
            self.handle_progress();
        }
        let wake = match self.phase {
            Phase::Active => self.decide(environment),
            // The leader writes the status of steps that end now.
            Phase::Standby => None,
            Phase::ShuttingDown => {
                self.publish_changed();
                None
            }
        };
        Turn { wake, is_quiet: self.is_idle() }
    }

    /// Removes and returns the pending commands, in order.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    pub fn gauges(&self) -> Gauges {
        Gauges {
            queued: self.planning.debounce.len(),
            abandoned: self.objects.abandoned.len(),
            over_quota: self.objects.over_quota.len(),
            waiting: self.schedule.ready_steps(),
            over_rate: self.schedule.delayed_steps(StepLimit::Rate),
            over_record_bytes: self.schedule.delayed_steps(StepLimit::RecordBytes),
            record_bytes: usize::try_from(self.index.records().size()).unwrap_or(usize::MAX),
            objects: self.resources.count(),
        }
    }

    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Drops everything but the desired and the recorded state. Call it only when nothing is running; the next signal
    /// must be [`Signal::Started`].
    pub fn reset(&mut self) {
        self.end_watches();
        *self = Self {
            policy: self.policy,
            index: std::mem::take(&mut self.index),
            schedule: Schedule::new(self.policy.max_running_steps),
            random: self.random.clone(),
            now: self.now,
            step_budget: self.step_budget,
            counts: self.counts,
            commands: std::mem::take(&mut self.commands),
            ..Self::default()
        };
    }

    fn handle(&mut self, signal: Signal) {
        match signal {
            Signal::Wake | Signal::Worker(WorkerEvent::PermitAvailable) => {}
            Signal::Started => self.begin(),
            Signal::LeadershipLost => self.stop(Phase::Standby),
            Signal::ShuttingDown => self.stop(Phase::ShuttingDown),
            Signal::ReadObjects(objects) => self.read_now(objects),
            Signal::Retry => self.retry(|_| true),
            Signal::ProcessAvailable => {
                self.retry(|tracked| tracked.held_for() == Some(Reason::ProviderNotReady));
                self.provider_configs.retry_rejected(self.now.time);
            }
            Signal::Planned(planned) => self.handle_plan(*planned),
            Signal::PlanningPanicked(names) => self.planning_panicked(&names),
            Signal::Worker(WorkerEvent::StepEnded(ended)) => self.schedule.step_ended(*ended),
            Signal::Worker(WorkerEvent::StepUpdated(step, update)) => {
                // The status shows what the step has recorded.
                self.resources.changed.insert(step.address.name().clone());
                self.schedule.step_updated(step, update);
            }
            Signal::Recovered(recovered) => self.handle_recovery(*recovered),
            Signal::Moved(moved) => self.handle_moves(*moved),
            Signal::ReleaseFailed(name, uid) => self.release_failed(name, &uid),
            Signal::Claimed(name, done) => self.claimed(name, done),
            Signal::ProviderConfigured(name, used, trial) => self.provider_configured(&name, &used, trial),
            Signal::ApprovalWritten(write, written) => self.approval_written(*write, written),
            Signal::ProviderConfigWritten(name, done) => self.provider_config_written(&name, done),
        }
    }

    /// Makes all decisions. Returns when to call it again.
    fn decide(&mut self, environment: &mut dyn Environment) -> Option<Time> {
        self.handle_changes();
        self.review_offers();
        self.handle_timers(environment);
        let deferred = self.adopt_deferred();
        let gathered = self.plan_due(environment);
        let paused = self.end_long_pauses();
        self.start_steps(environment);
        let quota = self.next_limited_step();
        self.update_watches(environment);
        self.publish_changed();
        let provider_configs = self.reconcile_provider_configs();
        let approvals = self.reconcile_approvals();
        let timer = self.objects.next_timer();
        [approvals, deferred, gathered, provider_configs, paused, quota, timer].into_iter().flatten().min()
    }

    /// Handles the progress of steps.
    fn handle_progress(&mut self) {
        while let Some(StepEvent { step, kind, written }) = self.schedule.event() {
            self.handle_step_progress(&step, kind.clone(), written);
            self.commands.push(Command::Progress(step, kind));
        }
    }

    /// Starts all steps that can start. A destructive step starts only for the newest known desired state.
    fn start_steps(&mut self, environment: &mut dyn Environment) {
        self.index.take_changed_records().iter().for_each(|address| self.schedule.record_changed(address));
        loop {
            let mut quota = self.namespace_quota();
            let index = &self.index;
            let orders = self.schedule.commands(index.records(), environment, &mut quota, &|name, planned| {
                planned == Some(index.desired_digest(name))
            });
            self.step_budget = quota.budget;
            self.commands.extend(orders.into_iter().map(Command::Execute));
            if !self.schedule.has_events() {
                return;
            }
            self.handle_progress();
        }
    }

    /// Reads a record again. The index ignores what is read of a record that it does not know.
    fn read_record(&mut self, address: &Address) {
        let known = self.index.records().known(address);
        if known != KnownRecord::Unknown {
            self.commands.push(Command::ReadRecord(address.clone(), known));
        }
    }

    /// Handles the changes that the index has found.
    fn handle_changes(&mut self) {
        for address in self.index.take_unconfirmed() {
            self.read_record(&address);
        }
        let Changes { names, removed, overwritten, seen, has_shrunk } = self.index.take_changes();
        self.resources.changed.extend(overwritten);
        if has_shrunk {
            // Objects in the terminating namespace that were forbidden may no longer exist.
            self.retry(|tracked| tracked.held_for() == Some(Reason::Forbidden));
        }
        for (address, seen) in seen {
            self.object_seen(&address, seen);
        }
        if let Some(inputs) = self.index.take_desired_inputs() {
            self.commands.push(Command::WatchInputs(inputs));
        }
        for name in removed {
            let left: Vec<Address> = self.objects.of(&name).map(|(address, _)| address.clone()).collect();
            left.iter().for_each(|address| self.clean_up(address));
            self.untrack_resource(&name);
        }
        for name in &names {
            self.touch(name);
            self.claim(name);
            self.end_outdated_waits(name);
        }
    }

    /// Ends the readiness waits of steps that started for an older desired state: the object may never become ready,
    /// and the change may be a deletion. Also when a user requests to read the objects: the next plan does so, and waits
    /// again.
    fn end_outdated_waits(&mut self, name: &Name) {
        let latest = self.index.desired_digest(name);
        let requested = self.index.instance(name).map(|instance| instance.reconcile_requested.clone());
        let outdated = self.index.records().started_of(name).filter(|start| {
            let planned = self.objects.get(&start.step.address).map(|tracked| &tracked.requested);
            let is_to_be_read = requested.as_ref().is_some_and(|at| planned.is_some_and(|planned| at != planned));
            // Only a shutdown ends the wait for the end of a destroyed object.
            (start.desired_digest != latest || is_to_be_read) && !start.step.operation.removes()
        });
        let ends = outdated.map(|start| Command::Execute(WorkerCommand::EndWait(start.step.clone())));
        self.commands.extend(ends);
    }

    /// Schedules a plan of a name.
    fn touch(&mut self, name: &Name) {
        self.planning.debounce.touch(name, self.now.time);
    }

    /// Drops all plans and checks everything in the namespace. Running steps, recoveries and moves continue.
    fn begin(&mut self) {
        let mut schedule = std::mem::take(&mut self.schedule);
        let moving = std::mem::take(&mut self.moving);
        self.reset();
        schedule.cancel_all();
        (self.schedule, self.moving) = (schedule, moving);
        self.commands.extend([Command::CancelPlans, Command::WatchInputs(BTreeSet::new())]);
        let (schedule, moving) = (&self.schedule, &self.moving);
        self.index.restart(|address, work| match work {
            Work::Step(_) => schedule.is_running(address),
            Work::Recovery => true,
            Work::Move => moving.contains(address.name()),
        });
        // Only now do steps end that have ended during a pause: the index must still defer the events of their records.
        self.schedule.restart();
        self.phase = Phase::Active;
    }

    /// Starts nothing new. Plans are dropped, running calls and recoveries are awaited, and waits for readiness end.
    fn stop(&mut self, state: Phase) {
        tracing::debug!(namespace = &**self.namespace(), ?state, "no more steps start; waiting for running calls");
        self.phase = state;
        self.commands.extend([Command::CancelPlans, Command::WatchInputs(BTreeSet::new())]);
        self.planning.stop();
        self.objects.stop_timers();
        self.schedule.stop();
        let running = self.schedule.running_steps().cloned();
        self.commands.extend(running.map(|step| Command::Execute(WorkerCommand::EndWait(step))));
    }

    fn is_idle(&self) -> bool {
        let nothing_runs = self.schedule.nothing_runs() && self.index.records().is_idle();
        nothing_runs && (self.phase != Phase::Active || self.planning.is_quiet())
    }

    /// The namespace that commands in hints name: none on files.
    fn command_namespace(&self) -> &str {
        if self.policy.destroy_orphans { "" } else { self.namespace() }
    }

    fn report(&mut self, about: ReportSubject, note: Note) {
        let note = Note { note: with_namespace(&note.note, self.command_namespace()), ..note };
        let terminating = self.index.is_terminating();
        self.commands.push(Command::Report { about, note, terminating });
    }

    /// The recorded instances of a name.
    fn recorded<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = (&'a Address, &'a Stored)> {
        in_family(self.index.records(), name)
    }
}
