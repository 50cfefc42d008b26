//! The loop: carries out what the reconciler asks for, and brings it what happens.

use std::sync::Arc;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::files::Folder;
use super::narrator::Narrator;
use super::watch::Watch;
use crate::cli::drive::{self, REDRAW};
use crate::cli::failure::Exit;
use crate::cli::local::{self, Locked};
use crate::cli::options::{Files, Planning};
use crate::cli::output::Console;
use crate::cli::progress::Reporter;
use crate::cli::signals::{Signals, Stop};
use crate::cli::situation::due;
use crate::execute::{self, Engine, HolderState, Progress, Wishes, Workers};
use crate::model::Reason;
use crate::model::Stored;
use crate::pipeline;
use crate::plan::Held;
use crate::reconcile::index::Event;
use crate::reconcile::time::{Moment, Time};
use crate::reconcile::{Command, Happened, MoveRequest, Moved, PlanRequest, Policy, Reconciler, Recovered, Turn};

/// A folder that is kept up.
pub struct Dev {
    files: Files,
    namespace: String,
    engine: Arc<Engine>,
    reconciler: Reconciler,
    workers: Workers,
    plannings: JoinSet<Happened>,
    /// Recoveries and moves, which are awaited whatever happens.
    settling: JoinSet<Happened>,
    folder: Folder,
    watch: Watch,
    /// The files have changed a moment ago: what is missing may come back.
    is_noisy: bool,
    narrator: Narrator,
    console: Console,
    started: Instant,
    /// What the first turn takes in.
    first: Vec<Happened>,
}

impl Dev {
    /// Over an open state file.
    pub fn new(locked: Locked, files: Files, planning: &Planning, reporter: Reporter, console: Console) -> Self {
        let Locked { engine, wanted, loaded, .. } = locked;
        let policy = Policy {
            steps_at_once: engine.limits.per_namespace,
            // One plan that a person can read.
            planned_together: usize::MAX,
            destroys_orphans: true,
        };
        let namespace = wanted.config.namespace.clone();
        let due = due(&wanted.config, &loaded.records, &loaded.reads, planning.refresh, engine.clock.now());
        let mut reconciler = Reconciler::new(namespace.clone(), policy, engine.random.number(), 0);
        let mut narrator = Narrator::new(console, reporter);
        narrator.problems(&wanted.problems);
        let mut folder = Folder::default();
        folder.read(wanted).into_iter().for_each(|event| reconciler.observe(event));
        for stored in loaded.records.into_values() {
            reconciler.observe(Event::RecordApplied(stored));
        }
        for found in loaded.unreadable {
            let held = Held { reason: Reason::RecordUnreadable, message: found.message };
            reconciler.observe(Event::RecordUnreadable(found.address, held));
        }
        Self {
            namespace: namespace.to_string(),
            watch: Watch::new(files.sources.clone(), std::time::Instant::now()),
            files,
            workers: Workers::new(engine.clone(), Wishes::default()),
            engine,
            reconciler,
            plannings: JoinSet::new(),
            settling: JoinSet::new(),
            folder,
            is_noisy: true,
            narrator,
            console,
            started: Instant::now(),
            first: vec![Happened::Begun, Happened::Due(due)],
        }
    }

    /// Goes on until a signal comes.
    pub async fn run(mut self) -> anyhow::Result<Exit> {
        let mut signals = Signals::listen()?;
        let mut redraw = tokio::time::interval(REDRAW);
        let mut happened = std::mem::take(&mut self.first);
        let mut stopping = false;
        loop {
            let turn = self.turn(happened)?;
            let is_idle = turn.is_quiet && self.workers.is_idle() && self.settling.is_empty();
            if is_idle && stopping {
                self.narrator.reporter.close("Stopped.");
                return Ok(Exit::Success);
            }
            if is_idle && self.reconciler.gauges().queued == 0 {
                self.narrator.rest(self.folder.is_readable());
            }
            self.narrator.reporter.flush();
            let wake = self.wake(turn);
            happened = vec![tokio::select! {
                biased;
                report = self.workers.next(), if !self.workers.is_idle() => Happened::Worker(report),
                Some(made) = self.plannings.join_next() => made_of(made),
                Some(settled) = self.settling.join_next() => made_of(settled),
                stop = signals.received() => match self.obey(stop).await {
                    Some(one) => {
                        stopping = true;
                        one
                    }
                    None => return Ok(Exit::Aborted),
                },
                _ = redraw.tick(), if self.narrator.reporter.is_live() => {
                    self.narrator.reporter.tick();
                    Happened::Nothing
                }
                () = tokio::time::sleep_until(wake), if !stopping => self.look(),
            }];
        }
    }

    /// One turn, and the start of all that the reconciler asks for.
    fn turn(&mut self, happened: Vec<Happened>) -> anyhow::Result<Turn> {
        self.workers.forget_full();
        let now = Moment { time: Time(self.started.elapsed()), wall: self.engine.clock.now() };
        let turn = self.reconciler.react(happened, now, &mut self.workers);
        for command in self.reconciler.take_commands() {
            self.carry_out(command)?;
        }
        Ok(turn)
    }

    fn wake(&self, turn: Turn) -> Instant {
        let quiet = self.is_noisy.then(|| self.watch.quiet_at().into());
        let timer = turn.wake.map(|time| self.started + time.0);
        [quiet, timer].into_iter().flatten().fold(self.watch.next_look().into(), Instant::min)
    }

    /// Looks whether the files have changed, or have not for long enough to believe that what is missing was removed.
    fn look(&mut self) -> Happened {
        let now = std::time::Instant::now();
        if now >= self.watch.next_look() && self.watch.look() {
            return self.read_files();
        }
        if self.is_noisy && self.watch.is_quiet(now) {
            self.is_noisy = false;
            self.reconciler.observe(Event::Incomplete(self.folder.incomplete(false)));
        }
        Happened::Nothing
    }

    fn read_files(&mut self) -> Happened {
        let wanted = local::read(&self.files.sources);
        let wanted = match local::in_namespace(wanted, Some(self.namespace.clone()), &self.files) {
            Ok(wanted) => wanted,
            Err(error) => {
                self.console.failure(&error);
                return Happened::Nothing;
            }
        };
        self.is_noisy = true;
        self.narrator.files_changed();
        self.narrator.problems(&wanted.problems);
        self.folder.read(wanted).into_iter().for_each(|event| self.reconciler.observe(event));
        // The user may have mended elsewhere what stood in the way, and saves a file to say so.
        Happened::Retry
    }

    /// Does what a signal asks for; `None` when nothing is to be awaited any more.
    async fn obey(&mut self, stop: Stop) -> Option<Happened> {
        match stop {
            Stop::InOrder => {
                self.console.notice(drive::STOPPING);
                Some(Happened::Stopping)
            }
            Stop::Hurry => drive::hurry(&self.workers, self.console).await.then_some(Happened::Nothing),
            Stop::AtOnce => None,
        }
    }

    fn carry_out(&mut self, command: Command) -> anyhow::Result<()> {
        let engine = self.engine.clone();
        match command {
            Command::Plan(request) => drop(self.plannings.spawn(plan(engine, *request))),
            Command::CancelPlans => self.plannings = JoinSet::new(),
            Command::Adopted { names, plan } => {
                self.narrator.adopted(&names, *plan, self.folder.is_readable())?;
            }
            Command::Progress(step, kind) => {
                let progress = Progress { step, at: engine.clock.now(), kind };
                self.narrator.progress(&progress, self.reconciler.records());
            }
            Command::Execute(order) => self.workers.carry_out(order),
            Command::Recover(stored) => {
                let instance = self.folder.resource(&stored.record.address.name).cloned();
                self.settling.spawn(recover(engine, stored, instance));
            }
            Command::Move(request) => drop(self.settling.spawn(carry_out_moves(engine, *request))),
            Command::FollowInputs(wanted) => {
                self.folder.follow(wanted).into_iter().for_each(|event| self.reconciler.observe(event));
            }
            // Status and events are for clusters; so are marks, and records that other processes write. Objects are not
            // watched here, and providers are configured when they are asked.
            Command::WriteStatus { .. }
            | Command::Report { .. }
            | Command::Release { .. }
            | Command::ReadRecord(_)
            | Command::Watch { .. }
            | Command::Unwatch { .. }
            | Command::TryProvider(..)
            | Command::WriteProviderConfig { .. } => {}
        }
        Ok(())
    }
}

/// What a task of ours came to. A panic is one of the whole command.
fn made_of(ended: Result<Happened, JoinError>) -> Happened {
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Happened::Nothing,
    })
}

async fn plan(engine: Arc<Engine>, mut request: PlanRequest) -> Happened {
    let PlanRequest { config, recorded, options, memo, .. } = &mut request;
    let made = pipeline::plan(&engine, config, recorded, options, memo).await;
    Happened::Planned(Box::new(request.planned(made)))
}

/// We hold the lock of the state file, so whichever process wrote the intent is gone.
async fn recover(engine: Arc<Engine>, stored: Stored, instance: Option<Arc<crate::load::Instance>>) -> Happened {
    let (outcome, warnings) = execute::recover(&engine, &stored, instance.as_deref(), HolderState::Gone).await;
    Happened::Recovered(Box::new(Recovered { address: stored.record.address.clone(), outcome, warnings }))
}

async fn carry_out_moves(engine: Arc<Engine>, mut request: MoveRequest) -> Happened {
    let outcome = execute::carry_out(engine.journal.as_ref(), &mut request.records, &request.moves).await;
    Happened::Moved(Box::new(Moved { request, outcome }))
}
