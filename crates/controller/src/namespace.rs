//! The task of one namespace: executes the commands of its reconciler and returns their results to it.
//!
//! It makes no decisions and never blocks on a driver or on the API server: plans, recoveries, moves and small requests
//! run in their own tasks, and steps in its workers.

mod provider_configs;
mod recovery;
mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use super::approvals;
use super::backlog::Membership;
use super::context::Context;
use super::inputs::{InputSource, InputWatches};
use super::metrics::PlanOutcome;
use super::namespaces::NamespaceHandle;
use drivers::{ObjectWatcher, WatchedInstance};
use model::{Address, ProviderUse, Step, TypeName};
use process::ProcessorShare;
use runtime::execute::{DesiredDigests, Engine, Permit, Permits, ProgressKind, WorkerCommand, WorkerEvent, Workers};
use runtime::pipeline;
use runtime::reconcile::index::Event;
use runtime::reconcile::{Command, Counts, Environment, Gauges, PlanRequest, PlanResult, Signal, Turn};

/// How many signals one turn processes: enough to keep up with fast steps, few enough to react to an event within a
/// millisecond.
const BATCH: usize = 256;
/// The delay after a turn that panicked, since it is likely to panic again.
const AFTER_PANIC: Duration = Duration::from_secs(10);

pub struct NamespaceTask {
    context: Arc<Context>,
    shared: Arc<NamespaceHandle>,
    workers: Workers,
    /// The running steps, with their start and the type of their object.
    running: BTreeMap<Step, (Instant, TypeName)>,
    plannings: JoinSet<Signal>,
    /// The processors that the plannings may use at the same time.
    processors: ProcessorShare,
    /// Recoveries and moves, which are always awaited.
    recoveries: JoinSet<Signal>,
    /// Small requests to the API server and to providers.
    requests: JoinSet<Signal>,
    /// The watches of ConfigMaps and Secrets that Resources read.
    inputs: InputWatches,
    /// The gauges of this namespace that the metrics include.
    counted: Gauges,
    /// Counts this namespace while changes wait in it.
    backlog: Membership,
    /// Whether the leadership counts this namespace as one with running calls.
    is_busy: bool,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Leading,
    StandingBy,
    ShuttingDown,
}

/// The result of a task. Tasks that may panic catch it; an aborted one has no result.
fn ended(result: Result<Signal, JoinError>) -> Signal {
    result.unwrap_or_else(|error| {
        if error.is_panic() {
            tracing::error!("a task panicked because of a bug in Purlin");
        }
        Signal::Wake
    })
}

impl NamespaceTask {
    /// Creates a task that first checks everything in the namespace.
    pub fn new(context: Arc<Context>, shared: Arc<NamespaceHandle>) -> Self {
        let newest = shared.clone();
        let desired = DesiredDigests::live(move |name| newest.lock().index().desired_digest(name));
        let reader = shared.clone();
        let inputs = InputSource {
            client: context.client.clone(),
            namespace: shared.name().clone(),
            random: context.engine.random.clone(),
            metrics: context.metrics.watches.clone(),
            sink: Arc::new(move |key, data| reader.apply(Event::Input(key.clone(), data))),
        };
        Self {
            workers: Workers::new(context.engine.clone(), shared.name().clone(), desired),
            backlog: context.namespaces.backlog.membership(),
            context,
            shared,
            running: BTreeMap::new(),
            plannings: JoinSet::new(),
            processors: ProcessorShare::half(),
            recoveries: JoinSet::new(),
            requests: JoinSet::new(),
            inputs: InputWatches::new(inputs),
            counted: Gauges::default(),
            is_busy: false,
            mode: Mode::Leading,
        }
    }

    /// Runs until the namespace is empty, or until the process terminates or no longer leads here. Then it returns only
    /// after every running call has ended and is recorded.
    ///
    /// If a turn panics because of a bug in Purlin, running calls continue: only the plans are dropped, and after a
    /// delay everything is checked again, and the signals that the turn has not handled follow.
    pub async fn work(mut self) {
        tracing::debug!(namespace = &**self.shared.name(), "namespace opened");
        self.context.journal.forget(self.shared.name());
        let mut signals = self.initial_signals();
        loop {
            match self.turn(&mut signals) {
                Some(turn) if self.is_over(turn) => break,
                Some(turn) => signals = self.wait(turn).await,
                None => {
                    tracing::error!(
                        namespace = &**self.shared.name(),
                        "the reconciler panicked because of a bug in Purlin; it restarts after a delay"
                    );
                    tokio::time::sleep(AFTER_PANIC).await;
                    let left = std::mem::replace(&mut signals, self.initial_signals());
                    signals.extend(left);
                }
            }
        }
        let mut reconciler = self.shared.lock();
        reconciler.reset();
        let (commands, gauges, counts) = (reconciler.take_commands(), reconciler.gauges(), reconciler.take_counts());
        drop(reconciler);
        self.carry_out_all(commands, gauges, counts);
        self.requests.abort_all();
        self.report_busy(false);
        tracing::debug!(namespace = &**self.shared.name(), "namespace closed");
    }

    /// The first signals of a reconciler that has no state except its running calls.
    fn initial_signals(&self) -> VecDeque<Signal> {
        match self.mode {
            Mode::Leading => [Signal::Started].into(),
            Mode::StandingBy => [Signal::Started, Signal::LeadershipLost].into(),
            Mode::ShuttingDown => [Signal::Started, Signal::ShuttingDown].into(),
        }
    }

    /// Runs one turn of the reconciler and starts its commands; `None` if it panicked. Signals that it has not handled
    /// remain.
    fn turn(&mut self, signals: &mut VecDeque<Signal>) -> Option<Turn> {
        let now = self.context.moment();
        self.workers.clear_exhausted();
        let mut reconciler = self.shared.lock();
        let mut environment =
            TaskEnvironment { context: &self.context, shared: &self.shared, workers: &mut self.workers };
        let turn = catch_unwind(AssertUnwindSafe(|| reconciler.react(signals, now, &mut environment)));
        let (commands, gauges, counts) = (reconciler.take_commands(), reconciler.gauges(), reconciler.take_counts());
        drop(reconciler);
        self.carry_out_all(commands, gauges, counts);
        self.report_busy(!self.workers.is_idle() || !self.recoveries.is_empty());
        turn.ok()
    }

    fn report_busy(&mut self, is_busy: bool) {
        if std::mem::replace(&mut self.is_busy, is_busy) != is_busy {
            self.context.leadership.set_busy(self.shared.name(), is_busy);
        }
    }

    fn carry_out_all(&mut self, commands: Vec<Command>, gauges: Gauges, counts: Counts) {
        commands.into_iter().for_each(|command| self.carry_out(command));
        self.context.metrics.objects.update(&self.counted, &gauges);
        self.context.metrics.objects.add(counts);
        self.backlog.set(gauges.queued + gauges.waiting > 0);
        self.counted = gauges;
    }

    fn is_over(&self, turn: Turn) -> bool {
        let is_idle = turn.is_quiet && self.workers.is_idle() && self.recoveries.is_empty();
        match self.mode {
            Mode::Leading => {
                let nothing_waits = is_idle && self.plannings.is_empty() && self.requests.is_empty();
                nothing_waits && self.context.namespaces.close_if_empty(&self.shared)
            }
            Mode::StandingBy | Mode::ShuttingDown => is_idle,
        }
    }

    /// Waits for the next signals, at most until the requested time.
    async fn wait(&mut self, turn: Turn) -> VecDeque<Signal> {
        let context = self.context.clone();
        let leads = self.mode == Mode::Leading;
        let namespace = self.shared.name().clone();
        let next = turn.wake.map(|time| context.instant(time));
        let signal = tokio::select! {
            biased;
            () = context.shutdown.triggered(), if self.mode != Mode::ShuttingDown => {
                self.mode = Mode::ShuttingDown;
                Signal::ShuttingDown
            }
            () = context.leadership.becomes(&namespace, !leads), if self.mode != Mode::ShuttingDown => {
                self.mode = if leads { Mode::StandingBy } else { Mode::Leading };
                if leads {
                    Signal::LeadershipLost
                } else {
                    context.journal.forget(&namespace);
                    Signal::Started
                }
            }
            report = self.workers.next(), if !self.workers.is_idle() => Signal::Worker(report),
            Some(planned) = self.plannings.join_next() => ended(planned),
            Some(recovered) = self.recoveries.join_next() => ended(recovered),
            Some(answered) = self.requests.join_next() => ended(answered),
            () = self.shared.wake.notified(), if leads => Signal::Wake,
            () = self.shared.process_available.notified(), if leads => Signal::ProcessAvailable,
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => Signal::Wake,
        };
        let mut signals = VecDeque::from([signal]);
        // Signals that are already available go into the same turn, so that many fast steps are not slowed down. Nothing
        // follows a permit: the next call would release it before the turn can use it.
        while signals.len() < BATCH
            && !matches!(signals.back(), Some(Signal::Worker(WorkerEvent::PermitAvailable)))
            && !self.workers.is_idle()
            && let Some(report) = self.workers.next().now_or_never()
        {
            signals.push_back(Signal::Worker(report));
        }
        signals
    }

    /// Starts a command.
    fn carry_out(&mut self, command: Command) {
        let (context, shared) = (self.context.clone(), self.shared.clone());
        match command {
            Command::Plan(request) => {
                self.plannings.spawn(compute_plan(context, self.processors.clone(), *request));
            }
            Command::Adopted { .. } => {}
            Command::Progress(step, kind) => self.count_end(&step, &kind),
            Command::CancelPlans => self.plannings = JoinSet::new(),
            Command::Execute(order) => {
                if let WorkerCommand::Start(input, _) = &order {
                    self.running.insert(input.step().clone(), (Instant::now(), input.type_name().clone()));
                    context.metrics.steps.started();
                }
                self.workers.execute(order);
            }
            Command::Recover(stored) => drop(self.recoveries.spawn(recovery::recover(context, shared, stored))),
            Command::Move(request) => drop(self.recoveries.spawn(recovery::carry_out_moves(context, *request))),
            Command::Watch { address, type_name, service_account, object } => {
                let instance =
                    WatchedInstance { namespace: shared.name(), address: &address, service_account: &service_account };
                if let Some(watcher) = context.watcher(&type_name) {
                    watcher.watch(&instance, &object);
                }
            }
            Command::Unwatch { address, type_name } => {
                if let Some(watcher) = context.watcher(&type_name) {
                    watcher.unwatch(shared.name(), &address);
                }
            }
            Command::WatchInputs(desired) => self.inputs.set(&desired),
            Command::WriteStatus(target, update) => context.status.write(target, *update),
            Command::Report { about, note, terminating } => {
                context.report(shared.name(), &about, note, terminating);
            }
            Command::Release { name, uid } => drop(self.requests.spawn(requests::release(context, shared, name, uid))),
            Command::Claim { uid, address } => {
                self.requests.spawn(requests::claim(context, shared, address, uid));
            }
            Command::ReadRecord(address, known) => {
                self.requests.spawn(requests::read_record(context, shared, address, known));
            }
            Command::ConfigureProvider { name, used, keep } => {
                self.requests.spawn(provider_configs::try_provider(context, shared, name, used, keep));
            }
            Command::WriteApproval(write) => drop(self.requests.spawn(approvals::write(context, shared, *write))),
            Command::WriteProviderConfig { view, status, finalizers } => {
                self.requests.spawn(provider_configs::write(context, shared, *view, *status, finalizers));
            }
        }
    }

    fn count_end(&mut self, step: &Step, kind: &ProgressKind) {
        let failed = match kind {
            ProgressKind::Finished | ProgressKind::Superseded | ProgressKind::WaitInterrupted => false,
            ProgressKind::Failed { .. } => true,
            _ => return,
        };
        let Some((began, type_name)) = self.running.remove(step) else { return };
        let metrics = &self.context.metrics.steps;
        match kind {
            ProgressKind::Superseded | ProgressKind::WaitInterrupted => metrics.withdrawn(),
            _ => metrics.ended(step.operation, &type_name, failed, began.elapsed()),
        }
    }
}

/// The environment of the reconciler.
struct TaskEnvironment<'a> {
    context: &'a Context,
    shared: &'a NamespaceHandle,
    workers: &'a mut Workers,
}

impl Permits for TaskEnvironment<'_> {
    fn try_take(&mut self, type_name: &str, provider: Option<&ProviderUse>) -> Option<Permit> {
        self.workers.try_take(type_name, provider)
    }

    fn is_exhausted(&self) -> bool {
        self.workers.is_exhausted()
    }
}

impl Environment for TaskEnvironment<'_> {
    fn can_watch(&self, type_name: &str) -> bool {
        self.context.watcher(type_name).is_some()
    }

    fn reports_health(&self, type_name: &str) -> bool {
        self.context.watcher(type_name).is_some_and(ObjectWatcher::reports_health)
    }

    fn is_watching(&self, type_name: &str, address: &Address) -> bool {
        self.context.watcher(type_name).is_some_and(|watcher| watcher.is_watching(self.shared.name(), address))
    }

    fn sharing_namespaces(&self) -> usize {
        self.context.namespaces.backlog.namespaces()
    }
}

/// Computes a plan on its own thread: it may take long, and must not block the threads of streams and calls. The number
/// of concurrent plannings is limited, and namespaces share it. `share`: the processors that the namespace may use.
async fn compute_plan(context: Arc<Context>, share: ProcessorShare, request: PlanRequest) -> Signal {
    let names = request.names().clone();
    let pool = if request.calls_providers() { &context.provider_plannings } else { &context.plannings };
    let _permit = pool.acquire(&request.config.namespace).await;
    let (span, surroundings, began) = (plan_span(&request), context.clone(), Instant::now());
    let making = async move {
        tokio::select! {
            biased;
            planned = plan(&surroundings, request) => Signal::Planned(Box::new(planned)),
            () = surroundings.shutdown.triggered() => Signal::Wake,
        }
    };
    let making = making.instrument(span.clone());
    let computed = context.threads.compute(Box::pin(async move { share.run(making).await }));
    let result = AssertUnwindSafe(computed).catch_unwind().await;
    let (outcome, took) = (plan_outcome(&result), began.elapsed());
    context.metrics.steps.planned(outcome, took);
    span.in_scope(|| tracing::debug!(?outcome, seconds = took.as_secs_f64(), "planning ended"));
    match result {
        Ok(signal) => signal.unwrap_or(Signal::Wake),
        Err(_) => Signal::PlanningPanicked(names),
    }
}

/// Calls about one object have their own span. `component`: the first name of the only component.
fn plan_span(request: &PlanRequest) -> Span {
    let mut components = request.components();
    let component = components.next().filter(|_| components.next().is_none());
    // A span of the highest level, because its fields belong to lines of all levels.
    tracing::error_span!("plan", namespace = &*request.config.namespace, component = component.map(|name| &**name))
}

fn plan_outcome(result: &std::thread::Result<Option<Signal>>) -> PlanOutcome {
    match result {
        Err(_) => PlanOutcome::Panicked,
        Ok(Some(Signal::Planned(planned))) if planned.has_errors() => PlanOutcome::Errors,
        Ok(Some(Signal::Planned(_))) => PlanOutcome::Planned,
        Ok(_) => PlanOutcome::Cancelled,
    }
}

/// Plans, and plans again without the changes that wait for an approval, and without destroys if a CRD may be missing.
/// Every plan is checked: one that is made again can have changes that an error has prevented before.
async fn plan(context: &Context, mut request: PlanRequest) -> PlanResult {
    loop {
        let planned = run_planner(&context.engine, &mut request).await;
        let again = request.may_need_approval() && request.hold_unapproved(&approvals::salt(context).await, &planned);
        if !again && !hold_destroys(context, &mut request, &planned).await {
            return request.into_result(planned);
        }
    }
}

/// Holds the destroys of a destructive plan if the CRD guard says so. Returns whether it must be planned again.
async fn hold_destroys(context: &Context, request: &mut PlanRequest, planned: &pipeline::OrderedPlan) -> bool {
    if request.options.hold_destroys.is_some() || !request.is_destructive(&planned.plan) {
        return false;
    }
    request.options.hold_destroys = context.guard.hold().await;
    request.options.hold_destroys.is_some()
}

async fn run_planner(engine: &Engine, request: &mut PlanRequest) -> pipeline::OrderedPlan {
    let PlanRequest { config, recorded, options, memo, .. } = request;
    pipeline::plan(engine, config, recorded, options, memo).await
}
