//! The event loop of `purlin dev`: executes the commands of the reconciler, and sends it events.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::files::DirectoryState;
use super::outputs::RecordedOutputs;
use super::report::DevReporter;
use super::sources::RecordedSources;
use super::watch::Watch;
use crate::cli::failure::Exit;
use crate::cli::failures::LastFailures;
use crate::cli::inputs::{OtherSources, due};
use crate::cli::local::{self, DesiredState, LockedState};
use crate::cli::options::{Files, Planning};
use crate::cli::output::Console;
use crate::cli::progress::Reporter;
use crate::cli::run;
use crate::cli::signals::{ShutdownMode, Signals};
use model::Quota;
use model::Stored;
use runtime::execute::{self, DesiredDigests, Engine, HolderState, Progress, Workers};
use runtime::pipeline;
use runtime::reconcile::index::Event;
use runtime::reconcile::time::{Moment, Time};
use runtime::reconcile::{
    Command, MoveRequest, MoveResult, PlanRequest, Policy, Reconciler, RecoveryResult, Signal, Turn,
};
use runtime::store::{LoadedRecords, StateFile};

/// The longest sleep when nothing is due.
const IDLE: Duration = Duration::from_secs(1);

/// A running `purlin dev`.
pub struct DevSession {
    files: Files,
    namespace: String,
    engine: Arc<Engine>,
    reconciler: Reconciler,
    workers: Workers,
    plans: JoinSet<Signal>,
    /// The files are being read. They are not looked at meanwhile.
    readings: JoinSet<DesiredState>,
    /// Running recoveries and moves. A shutdown waits for them.
    recoveries: JoinSet<Signal>,
    directory: DirectoryState,
    sources: RecordedSources,
    watch: Watch,
    /// The files changed a moment ago, so missing manifests may reappear.
    recently_changed: bool,
    reporter: DevReporter,
    console: Console,
    started: Instant,
    /// The events of the first turn.
    initial_events: Vec<Signal>,
    state: Arc<StateFile>,
    outputs: RecordedOutputs,
    failures: LastFailures,
}

impl DevSession {
    /// `watch` began before the files were read, so that no change is missed.
    pub fn new(
        locked: LockedState,
        files: Files,
        mut watch: Watch,
        planning: &Planning,
        reporter: Reporter,
        console: Console,
    ) -> Self {
        let LockedState { engine, mut desired, loaded, state } = locked;
        let policy = Policy {
            max_running_steps: engine.limits.per_namespace,
            // The user sees one plan for all changes.
            max_names_per_plan: usize::MAX,
            max_waiting_steps: None,
            quota: Quota::default(),
            destroy_orphans: true,
            requires_approval: false,
        };
        let namespace = desired.config.namespace.clone();
        let due = due(&desired.config, &loaded.records, &loaded.reads, planning.refresh, engine.clock.now());
        let mut reconciler = Reconciler::new(namespace.clone(), policy, engine.random.number(), 0);
        let mut reporter = DevReporter::new(console, reporter);
        let mut sources = RecordedSources::new(Arc::clone(&state));
        desired.coverage = desired.coverage.after(loaded.given);
        sources.complete(&mut desired, &loaded.records, &mut reporter);
        watch.follow(&desired);
        let mut outputs = RecordedOutputs::new(Arc::clone(&state), loaded.configurations);
        outputs.read(&desired);
        let mut directory = DirectoryState::new(loaded.unreadable.clone());
        directory.read(desired).into_iter().for_each(|event| reconciler.observe(event));
        let failures = LastFailures::new(loaded.failures);
        for stored in loaded.records.into_values() {
            reconciler.observe(Event::RecordApplied(stored));
        }
        for found in loaded.unreadable {
            let held = local::unreadable(&found);
            reconciler.observe(Event::RecordUnreadable(found.address, held));
        }
        Self {
            namespace: namespace.to_string(),
            watch,
            files,
            sources,
            workers: Workers::new(engine.clone(), namespace.clone(), DesiredDigests::default()),
            engine,
            reconciler,
            plans: JoinSet::new(),
            readings: JoinSet::new(),
            outputs,
            recoveries: JoinSet::new(),
            directory,
            recently_changed: true,
            reporter,
            console,
            started: Instant::now(),
            initial_events: vec![Signal::Started, Signal::ReadObjects(due)],
            state,
            failures,
        }
    }

    pub async fn run(mut self) -> anyhow::Result<Exit> {
        let mut signals = Signals::listen()?;
        let mut redraw = run::redraw_timer(&self.reporter.progress);
        let mut happened = std::mem::take(&mut self.initial_events);
        let (mut stopping, mut was_idle) = (false, true);
        loop {
            let turn = self.turn(happened);
            let is_idle = turn.is_quiet && self.workers.is_idle() && self.recoveries.is_empty();
            if is_idle {
                self.failures.store(&self.state);
            }
            if is_idle && !was_idle {
                self.sources.record(self.reconciler.records());
                let (records, readings) = (self.reconciler.records(), self.reconciler.readings());
                self.outputs.record(records, readings, &mut self.reporter);
            }
            was_idle = is_idle;
            if is_idle && stopping {
                self.reporter.progress.close("Stopped.", OtherSources::default());
                return Ok(Exit::Success);
            }
            if is_idle && self.reconciler.gauges().queued == 0 {
                self.reporter.report_idle(self.directory.has_no_errors());
            }
            self.reporter.progress.flush();
            let wake = self.wake(turn);
            happened = vec![tokio::select! {
                biased;
                report = self.workers.next(), if !self.workers.is_idle() => Signal::Worker(report),
                Some(planned) = self.plans.join_next() => task_result(planned),
                Some(result) = self.recoveries.join_next() => self.resolved(task_result(result)),
                Some(read) = self.readings.join_next() => self.files_read(ended(read)),
                stop = signals.received() => match self.handle_signal(stop).await {
                    Some(signal) => {
                        stopping = true;
                        signal
                    }
                    None => return Ok(Exit::Aborted),
                },
                _ = redraw.tick() => {
                    self.reporter.progress.tick(self.engine.clock.now());
                    Signal::Wake
                }
                () = tokio::time::sleep_until(wake), if !stopping => self.check_files(),
            }];
        }
    }

    /// Runs one turn of the reconciler, and starts its commands.
    fn turn(&mut self, happened: Vec<Signal>) -> Turn {
        self.workers.clear_exhausted();
        let now = Moment { time: Time(self.started.elapsed()), wall: self.engine.clock.now() };
        let turn = self.reconciler.react(&mut happened.into(), now, &mut self.workers);
        for command in self.reconciler.take_commands() {
            self.carry_out(command);
        }
        turn
    }

    fn wake(&self, turn: Turn) -> Instant {
        let quiet = (self.recently_changed && self.is_planned()).then(|| self.watch.quiet_at().into());
        let timer = turn.wake.map(|time| self.started + time.0);
        let poll = self.readings.is_empty().then(|| self.watch.next_poll().into());
        let next = [quiet, timer, poll].into_iter().flatten().min();
        next.unwrap_or_else(|| Instant::now() + IDLE)
    }

    /// Whether every change of the files is planned. Only then are the errors of all manifests known.
    fn is_planned(&self) -> bool {
        self.plans.is_empty() && self.readings.is_empty() && self.reconciler.gauges().queued == 0
    }

    /// Checks whether the files have changed, or have been unchanged for long enough to treat missing manifests as
    /// removed.
    fn check_files(&mut self) -> Signal {
        let now = std::time::Instant::now();
        if self.readings.is_empty() && now >= self.watch.next_poll() && self.watch.poll() {
            self.read_files();
            return Signal::Wake;
        }
        if self.recently_changed && self.watch.is_quiet(now) && self.is_planned() {
            self.recently_changed = false;
            self.reconciler.observe(Event::Incomplete(self.directory.incomplete(false)));
        }
        Signal::Wake
    }

    /// Begins to read the files. A Terraform configuration asks its providers, which may take long.
    fn read_files(&mut self) {
        let (files, engine) = (self.files.clone(), self.engine.clone());
        let records = self.reconciler.records().clone();
        let loaded =
            LoadedRecords { records, configurations: self.outputs.configurations.clone(), ..LoadedRecords::default() };
        self.readings.spawn(async move { local::with_modules(local::read(&files), &engine.drivers, &loaded).await });
    }

    fn files_read(&mut self, desired: DesiredState) -> Signal {
        self.watch.follow(&desired);
        let mut desired = match local::in_namespace(desired, Some(self.namespace.clone()), &self.files) {
            Ok(desired) => desired,
            Err(error) => {
                self.console.failure(&error);
                return Signal::Wake;
            }
        };
        self.recently_changed = true;
        self.reporter.files_changed();
        self.outputs.read(&desired);
        self.sources.complete(&mut desired, self.reconciler.records(), &mut self.reporter);
        self.directory.read(desired).into_iter().for_each(|event| self.reconciler.observe(event));
        // The user may have fixed an external problem, and saves a file to trigger a retry.
        Signal::Retry
    }

    /// Reports the moves that are done.
    fn resolved(&mut self, signal: Signal) -> Signal {
        if let Signal::Moved(result) = &signal
            && result.outcome.is_ok()
        {
            self.reporter.moved(&result.request.moves);
        }
        signal
    }

    /// Returns `None` if the command must end without waiting for running steps.
    async fn handle_signal(&mut self, stop: ShutdownMode) -> Option<Signal> {
        match stop {
            ShutdownMode::Graceful => {
                self.console.notice(run::STOPPING);
                Some(Signal::ShuttingDown)
            }
            ShutdownMode::Interrupt => {
                run::interrupt_providers(&self.workers, self.console).await.then_some(Signal::Wake)
            }
            ShutdownMode::Immediate => None,
        }
    }

    fn carry_out(&mut self, command: Command) {
        let engine = self.engine.clone();
        match command {
            Command::Plan(request) => drop(self.plans.spawn(plan(engine, *request))),
            Command::CancelPlans => self.plans = JoinSet::new(),
            Command::Adopted { names, adoption } => {
                self.outputs.adopted(&adoption);
                let plan = &adoption.plan;
                self.failures.planned(plan.changes(), |address, _| names.contains(address.name()));
                let faulty = plan.objects.iter().filter(|(_, object)| object.is_faulty);
                if self.directory.planned(&names, faulty.map(|(address, _)| address)) {
                    let incomplete = self.directory.incomplete(self.recently_changed);
                    self.reconciler.observe(Event::Incomplete(incomplete));
                }
                self.reporter.adopted(&names, plan, self.directory.has_no_errors());
            }
            Command::Progress(step, kind) => {
                let progress = Progress { step, at: engine.clock.now(), kind };
                let address = &progress.step.address;
                let directory = &self.directory;
                self.failures.event(&progress, || {
                    let recorded = self.reconciler.records().get(address).map(|stored| &stored.record.type_name);
                    recorded.or_else(|| directory.resource(address).map(|instance| &instance.type_name)).cloned()
                });
                self.reporter.progress(&progress, self.reconciler.records());
            }
            Command::Execute(order) => self.workers.execute(order),
            Command::Recover(stored) => {
                let instance = self.directory.resource(&stored.record.address).cloned();
                self.recoveries.spawn(recover(engine, stored, instance));
            }
            Command::Move(request) => drop(self.recoveries.spawn(carry_out_moves(engine, *request))),
            Command::WatchInputs(inputs) => {
                self.directory.watch_inputs(inputs).into_iter().for_each(|event| self.reconciler.observe(event));
            }
            // Only clusters have a status, events, finalizers and records of other processes. `dev` does not watch
            // objects, and configures providers with their first call.
            Command::WriteStatus(..)
            | Command::Report { .. }
            | Command::Release { .. }
            | Command::Claim { .. }
            | Command::ReadRecord(..)
            | Command::Watch { .. }
            | Command::Unwatch { .. }
            | Command::ConfigureProvider { .. }
            | Command::WriteApproval(_)
            | Command::WriteProviderConfig { .. } => {}
        }
    }
}

/// Returns the result of a task that may be aborted.
fn task_result(result: Result<Signal, JoinError>) -> Signal {
    if result.as_ref().is_err_and(JoinError::is_cancelled) { Signal::Wake } else { ended(result) }
}

/// Returns the result of a task that is never aborted. A panic of the task is propagated.
fn ended<T>(result: Result<T, JoinError>) -> T {
    result.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

async fn plan(engine: Arc<Engine>, mut request: PlanRequest) -> Signal {
    let PlanRequest { config, recorded, options, memo, .. } = &mut request;
    let planned = pipeline::plan(&engine, config, recorded, options, memo).await;
    Signal::Planned(Box::new(request.into_result(planned)))
}

/// This process holds the lock of the state file, so the process that wrote the intent has exited.
async fn recover(engine: Arc<Engine>, stored: Stored, instance: Option<Arc<engine::load::Instance>>) -> Signal {
    let (outcome, warnings) = execute::recover(&engine, &stored, instance.as_deref(), HolderState::Ended).await;
    Signal::Recovered(Box::new(RecoveryResult { address: stored.record.address.clone(), outcome, warnings }))
}

async fn carry_out_moves(engine: Arc<Engine>, mut request: MoveRequest) -> Signal {
    let outcome = execute::apply_moves(engine.journal.as_ref(), &mut request.records, &request.moves).await;
    Signal::Moved(Box::new(MoveResult { request, outcome }))
}
