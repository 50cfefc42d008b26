//! The task of one namespace: carries out what its reconciler asks for, and comes back with what that came to.
//!
//! Nothing here decides anything, and nothing blocks on a driver or on the API server: plans, recoveries, moves and small
//! requests run in tasks that this one owns, and steps in its workers.

mod planning;
mod provider_configs;
mod recovery;
mod requests;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::context::Context;
use super::inputs::InputWatches;
use super::status::Target;
use super::world::Shared;
use crate::driver::{ObjectWatcher, Watched};
use crate::execute::{Order, Place, Places, ProgressKind, Wishes, Workers};
use crate::model::{Address, ProviderUse, Step};
use crate::reconcile::{Command, Gauges, Happened, Outside, Turn};

/// How many things that happened are taken in by one turn: enough to keep up with fast steps, few enough to notice a
/// wake-up within a millisecond.
const BATCH: usize = 256;
/// The pause after a turn that panicked: likely enough it panics again.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// The task of one namespace.
pub struct NamespaceTask {
    context: Arc<Context>,
    shared: Arc<Shared>,
    workers: Workers,
    /// The steps that run: since when, and the type of their object.
    running: BTreeMap<Step, (Instant, Arc<str>)>,
    plannings: JoinSet<Happened>,
    /// Recoveries and moves, which are awaited whatever happens.
    settling: JoinSet<Happened>,
    /// Small requests to the API server and to providers.
    requests: JoinSet<Happened>,
    /// The ConfigMaps and Secrets that Resources read.
    inputs: InputWatches,
    /// What the gauges count already.
    counted: Gauges,
    mode: Mode,
}

/// What the task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Leading,
    StandingBy,
    Stopping,
}

/// What a task of ours came to. Those that may panic catch it themselves; one that was aborted has nothing to report.
fn ended(result: Result<Happened, JoinError>) -> Happened {
    result.unwrap_or_else(|error| {
        if error.is_panic() {
            tracing::error!(%error, "a task was lost by a fault of Purlin");
        }
        Happened::Nothing
    })
}

impl NamespaceTask {
    /// A task that looks at everything in the namespace first.
    pub fn new(context: Arc<Context>, shared: Arc<Shared>) -> Self {
        let newest = shared.clone();
        let wishes = Wishes::that_change(move |name| newest.lock().index().wish(name));
        Self {
            workers: Workers::new(context.engine.clone(), wishes),
            context,
            shared,
            running: BTreeMap::new(),
            plannings: JoinSet::new(),
            settling: JoinSet::new(),
            requests: JoinSet::new(),
            inputs: InputWatches::default(),
            counted: Gauges::default(),
            mode: Mode::Leading,
        }
    }

    /// Works until the namespace is empty, or until the process ends or no longer leads. Then it returns only after
    /// every running call has ended and was recorded.
    ///
    /// Should a turn panic, by a fault of Purlin, what runs goes on: only the plans are forgotten, and after a pause
    /// everything is looked at again.
    pub async fn work(mut self) {
        tracing::debug!(namespace = &**self.shared.name(), "namespace opened");
        let mut happened = self.beginning();
        loop {
            match self.turn(happened) {
                Some(turn) if self.is_over(turn) => break,
                Some(turn) => happened = self.wait(turn).await,
                None => {
                    tracing::error!(
                        namespace = &**self.shared.name(),
                        "a decision failed by a fault of Purlin; it is made again in a moment, and running calls go on"
                    );
                    tokio::time::sleep(AFTER_PANIC).await;
                    happened = self.beginning();
                }
            }
        }
        let mut reconciler = self.shared.lock();
        reconciler.rest();
        let (commands, gauges) = (reconciler.take_commands(), reconciler.gauges());
        drop(reconciler);
        self.carry_out_all(commands, gauges);
        self.requests.abort_all();
        tracing::debug!(namespace = &**self.shared.name(), "namespace closed");
    }

    /// What a reconciler begins with that remembers nothing but what runs.
    fn beginning(&self) -> Vec<Happened> {
        match self.mode {
            Mode::Leading => vec![Happened::Begun],
            Mode::StandingBy => vec![Happened::Begun, Happened::StoodDown],
            Mode::Stopping => vec![Happened::Begun, Happened::Stopping],
        }
    }

    /// One turn of the reconciler, and the start of all that it asks for; `None` when it has panicked.
    fn turn(&mut self, happened: Vec<Happened>) -> Option<Turn> {
        let now = self.context.moment();
        self.workers.forget_full();
        let mut reconciler = self.shared.lock();
        let mut outside = Around { context: &self.context, shared: &self.shared, workers: &mut self.workers };
        let turn = catch_unwind(AssertUnwindSafe(|| reconciler.react(happened, now, &mut outside)));
        let (commands, gauges) = (reconciler.take_commands(), reconciler.gauges());
        drop(reconciler);
        self.carry_out_all(commands, gauges);
        turn.ok()
    }

    fn carry_out_all(&mut self, commands: Vec<Command>, gauges: Gauges) {
        commands.into_iter().for_each(|command| self.carry_out(command));
        self.context.metrics.count(&self.counted, &gauges);
        self.counted = gauges;
    }

    fn is_over(&self, turn: Turn) -> bool {
        let is_idle = turn.is_quiet && self.workers.is_idle() && self.settling.is_empty();
        match self.mode {
            Mode::Leading => {
                let nothing_waits = is_idle && self.plannings.is_empty() && self.requests.is_empty();
                nothing_waits && self.context.world.close_if_empty(&self.shared)
            }
            Mode::StandingBy | Mode::Stopping => is_idle,
        }
    }

    /// Waits for the next thing to happen, but no longer than the reconciler wants to wait.
    async fn wait(&mut self, turn: Turn) -> Vec<Happened> {
        let context = self.context.clone();
        let mut leadership = context.leadership.clone();
        let leads = self.mode == Mode::Leading;
        let next = turn.wake.map(|time| context.instant(time));
        let happened = tokio::select! {
            biased;
            () = context.shutdown.triggered(), if self.mode != Mode::Stopping => {
                self.mode = Mode::Stopping;
                Happened::Stopping
            }
            () = leadership.becomes(!leads), if self.mode != Mode::Stopping => {
                self.mode = if leads { Mode::StandingBy } else { Mode::Leading };
                if leads { Happened::StoodDown } else { Happened::Begun }
            }
            report = self.workers.next(), if !self.workers.is_idle() => Happened::Worker(report),
            Some(made) = self.plannings.join_next() => ended(made),
            Some(settled) = self.settling.join_next() => ended(settled),
            Some(answered) = self.requests.join_next() => ended(answered),
            () = self.shared.wake.notified(), if leads => Happened::Nothing,
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => Happened::Nothing,
        };
        let mut all = vec![happened];
        // What has happened already is taken in by the same turn, so that a wave of fast steps is not slowed down.
        while all.len() < BATCH
            && !self.workers.is_idle()
            && let Some(report) = self.workers.next().now_or_never()
        {
            all.push(Happened::Worker(report));
        }
        all
    }

    /// Begins to do what the reconciler asks for.
    fn carry_out(&mut self, command: Command) {
        let (context, shared) = (self.context.clone(), self.shared.clone());
        match command {
            Command::Plan(request) => drop(self.plannings.spawn(planning::make(context, *request))),
            Command::Adopted { .. } => {}
            Command::Progress(step, kind) => self.count_end(&step, &kind),
            Command::CancelPlans => self.plannings = JoinSet::new(),
            Command::Execute(order) => {
                if let Order::Start(input, _) = &order {
                    self.running.insert(input.step().clone(), (Instant::now(), input.type_name().clone()));
                    context.metrics.step_started();
                }
                self.workers.carry_out(order);
            }
            Command::Recover(stored) => drop(self.settling.spawn(recovery::recover(context, shared, stored))),
            Command::Move(request) => drop(self.settling.spawn(recovery::carry_out_moves(context, *request))),
            Command::Watch { address, type_name, service_account, object } => {
                let whose = Watched { namespace: shared.name(), address: &address, service_account: &service_account };
                if let Some(watcher) = context.watcher(&type_name) {
                    watcher.watch(&whose, &object);
                }
            }
            Command::Unwatch { address, type_name } => {
                if let Some(watcher) = context.watcher(&type_name) {
                    watcher.unwatch(shared.name(), &address);
                }
            }
            Command::FollowInputs(wanted) => self.inputs.follow(&wanted, &context, &shared),
            Command::WriteStatus { name, uid, status, digest, urgency } => {
                let target = Target { namespace: shared.name().clone(), name, uid };
                context.status.write(target, *status, digest, urgency);
            }
            Command::Report { about, note, terminating } => {
                context.report(shared.name(), &about, note, terminating);
            }
            Command::Release { name, uid } => drop(self.requests.spawn(requests::release(context, shared, name, uid))),
            Command::ReadRecord(address) => {
                self.requests.spawn(requests::read_record(context, shared, address));
            }
            Command::TryProvider(name, used) => {
                self.requests.spawn(provider_configs::try_provider(context, name, used));
            }
            Command::WriteProviderConfig { view, status, finalizers } => {
                self.requests.spawn(provider_configs::write(context, shared, *view, *status, finalizers));
            }
        }
    }

    /// Counts a step that has ended.
    fn count_end(&mut self, step: &Step, kind: &ProgressKind) {
        let failed = match kind {
            ProgressKind::Finished | ProgressKind::Withdrawn | ProgressKind::LetGo => false,
            ProgressKind::Failed { .. } => true,
            _ => return,
        };
        let Some((began, type_name)) = self.running.remove(step) else { return };
        let metrics = &self.context.metrics;
        match kind {
            ProgressKind::Withdrawn | ProgressKind::LetGo => metrics.step_withdrawn(),
            _ => metrics.step_ended(step.operation, &type_name, failed, began.elapsed()),
        }
    }
}

/// What the reconciler sees of its surroundings.
struct Around<'a> {
    context: &'a Context,
    shared: &'a Shared,
    workers: &'a mut Workers,
}

impl Places for Around<'_> {
    fn take(&mut self, type_name: &str, provider: Option<&ProviderUse>) -> Option<Place> {
        self.workers.take(type_name, provider)
    }
}

impl Outside for Around<'_> {
    fn can_watch(&self, type_name: &str) -> bool {
        self.context.watcher(type_name).is_some()
    }

    fn is_watching(&self, type_name: &str, address: &Address) -> bool {
        let is_watching = |watcher: &dyn ObjectWatcher| watcher.is_watching(self.shared.name(), address);
        self.context.watcher(type_name).is_some_and(is_watching)
    }
}
