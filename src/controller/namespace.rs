//! The task of one namespace: the only one that plans and executes there.
//!
//! ```text
//! index --woken names--> settle window --due--> planning (in the background) --> Run::adopt --> steps
//!   ^                        ^                                                                 |
//!   |                        +-- retry, drift and patch timers                                 |
//!   +------------------------- own writes <--- progress --------------------------------------+
//! ```
//!
//! Each turn of the loop decides, without waiting, whatever can be decided; then it waits for the next thing to
//! happen. Nothing here blocks on a driver or on the API server: plans, recoveries and small chores run in tasks that
//! this one owns, and the running calls belong to the `Run`.

mod beyond;
mod drift;
mod elsewhere;
mod moving;
mod objects;
mod pace;
mod outdated;
mod planning;
mod progress;
mod recovery;
mod resources;
mod scope;
mod settings;
mod tracked;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use self::moving::Moved;
use self::planning::{Deferred, Made};
use self::progress::Adopted;
use self::recovery::Recovered;
use self::resources::Followed;
use self::settings::{Settings, SettingsDone};
use self::tracked::Tracked;
use super::context::Context;
use super::inputs::InputWatches;
use super::settle::Settle;
use super::world::Shared;
use crate::execute::{Progress, Run};
use crate::load::Interner;
use crate::model::{Address, of_name};
use crate::plan::Memo;

/// How many things that happened are taken in before the world is looked at again: enough to keep up with fast steps,
/// few enough to notice a wake-up within a millisecond.
const BATCH: usize = 256;
/// The pause after a decision that panicked: likely enough it panics again.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// The task of one namespace.
pub struct NamespaceTask {
    context: Arc<Context>,
    shared: Arc<Shared>,
    run: Run,
    /// `run` has nothing to wait for until something is adopted.
    run_is_idle: bool,
    settle: Settle,
    /// How many names of it the gauge counts.
    queued: usize,
    /// In boxes, since the nodes of the map are half empty.
    tracked: BTreeMap<Address, Box<Tracked>>,
    /// The Resources that these are instances of.
    followed: BTreeMap<Arc<str>, Box<Followed>>,
    /// What conditions say, which most Resources share.
    texts: Interner,
    /// Resources whose status may have changed in this turn.
    changed: BTreeSet<Arc<str>>,
    /// When to look at an object though nothing happens.
    timers: BTreeSet<(Instant, Address)>,
    plannings: JoinSet<Made>,
    /// The names that plannings under way cover. They are disjoint.
    in_planning: BTreeSet<Arc<str>>,
    /// Names that have joined a component that is being planned, or whose records are being moved: their turn comes after
    /// that.
    joining: BTreeSet<Arc<str>>,
    /// Names whose last plan was outdated when it was there, since steps had gone on meanwhile.
    overtaken: BTreeSet<Arc<str>>,
    /// Names for which the run stands still while they are planned, and until when at the latest.
    pauses: Vec<(Instant, BTreeSet<Arc<str>>)>,
    /// Plans that destroy something and wait until their component is quiet.
    deferred: Vec<Deferred>,
    /// Plans whose steps are not all over.
    adopted: Vec<Adopted>,
    recoveries: JoinSet<Recovered>,
    recovering: BTreeSet<Address>,
    moves: JoinSet<Moved>,
    /// The names of components in which records are being moved: nothing else is planned there.
    moving: BTreeSet<Arc<str>>,
    /// The ConfigMaps and Secrets that Resources read.
    inputs: InputWatches,
    /// What is remembered of the `ProviderConfigs`.
    settings: Settings,
    /// Small requests to the API server whose result comes back through the watches.
    chores: JoinSet<Chore>,
    /// Resources whose marks were, or are being, taken off, by UID, so that it is asked for once.
    released: BTreeSet<Arc<str>>,
    /// What providers said to plans about objects that wait to be made or changed.
    memo: Memo,
    /// Objects that went missing lately.
    missing: drift::Missing,
    /// Records without a Resource.
    abandoned: BTreeSet<Address>,
    state: State,
}

/// What the task may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Plans and starts steps.
    Working,
    /// Another replica leads, or nobody knows: nothing new starts. What runs is awaited; should this replica lead again
    /// before that has ended, it goes on.
    StandingDown,
    /// The process ends.
    Stopping,
}

/// Something that the task waited for.
enum Happened {
    /// Its time has come, or the index has news.
    Nothing,
    Stop(State),
    /// This replica leads again, or a decision failed.
    Again,
    /// `None`: nothing runs and nothing can start.
    Progress(Option<Progress>),
    Made(Made),
    Recovered(Recovered),
    Moved(Moved),
    Chore(Chore),
}

/// What is next.
enum Decided {
    /// To wait, but not beyond the time given.
    Wait(Option<Instant>),
    /// There is nothing left to do.
    Over,
}

/// What a task of ours came to; `None` for one that we have ended. Those that may panic catch it themselves.
fn ended<T>(result: Result<T, JoinError>) -> Option<T> {
    let error = match result {
        Ok(outcome) => return Some(outcome),
        Err(error) => error,
    };
    if error.is_panic() {
        tracing::error!(%error, "a task was lost by a fault of Purlin");
    }
    None
}

/// How a chore ended.
enum Chore {
    Done,
    /// Something was done about this `ProviderConfig`.
    Settings(Arc<str>, SettingsDone),
    /// The marks of this Resource, with this UID, could not be taken off.
    NotReleased(Address, Arc<str>),
}

impl NamespaceTask {
    /// A task that looks at everything in the namespace first.
    pub fn new(context: Arc<Context>, shared: Arc<Shared>) -> Self {
        let run = Run::new(context.engine.clone(), shared.index().records().clone());
        let mut task = Self::over(context, shared, run, JoinSet::new(), BTreeSet::new());
        task.look_at_everything();
        task
    }

    /// A task that remembers nothing but what runs.
    fn over(
        context: Arc<Context>,
        shared: Arc<Shared>,
        run: Run,
        recoveries: JoinSet<Recovered>,
        recovering: BTreeSet<Address>,
    ) -> Self {
        Self {
            run,
            context,
            shared,
            run_is_idle: true,
            settle: Settle::default(),
            queued: 0,
            tracked: BTreeMap::new(),
            followed: BTreeMap::new(),
            texts: Interner::default(),
            changed: BTreeSet::new(),
            timers: BTreeSet::new(),
            plannings: JoinSet::new(),
            in_planning: BTreeSet::new(),
            joining: BTreeSet::new(),
            overtaken: BTreeSet::new(),
            pauses: Vec::new(),
            deferred: Vec::new(),
            adopted: Vec::new(),
            recoveries,
            recovering,
            moves: JoinSet::new(),
            moving: BTreeSet::new(),
            inputs: InputWatches::default(),
            settings: Settings::default(),
            chores: JoinSet::new(),
            released: BTreeSet::new(),
            memo: Memo::default(),
            missing: drift::Missing::default(),
            abandoned: BTreeSet::new(),
            state: State::Working,
        }
    }

    /// Forgets all plans and looks at everything in the namespace, as when it begins. What runs goes on, and so do
    /// recoveries.
    fn begin_again(&mut self) {
        let (context, shared) = (self.context.clone(), self.shared.clone());
        let mut idle = Run::new(context.engine.clone(), BTreeMap::new());
        std::mem::swap(&mut self.run, &mut idle);
        let run = idle;
        let recoveries = std::mem::take(&mut self.recoveries);
        let recovering = std::mem::take(&mut self.recovering);
        let moves = std::mem::take(&mut self.moves);
        let moving = std::mem::take(&mut self.moving);
        let chores = std::mem::take(&mut self.chores);
        let before = std::mem::replace(self, Self::over(context, shared, run, recoveries, recovering));
        before.close();
        (self.moves, self.moving, self.chores) = (moves, moving, chores);
        self.run.withdraw_all();
        self.run.go_on();
        self.run_is_idle = false;
        self.look_at_everything();
    }

    /// Has every name planned, on the records as the watch has them, but for those that somebody here is writing.
    fn look_at_everything(&mut self) {
        let shared = self.shared.clone();
        let mut index = shared.index();
        let busy = |address: &Address| {
            self.run.is_running(address) || self.recovering.contains(address) || self.moving.contains(&address.name)
        };
        index.begin_anew(busy);
        let mut all: BTreeSet<Address> = index.records().keys().cloned().collect();
        all.extend(self.run.records().keys().cloned());
        drop(index);
        all.retain(|address| !self.moving.contains(&address.name));
        all.iter().for_each(|address| self.bring_in(address));
    }

    /// Works until the namespace is empty, or until the process ends or no longer leads. Then it returns only after
    /// every running call has ended and was recorded.
    ///
    /// Should a decision panic, by a fault of Purlin, what runs goes on: only the plans are forgotten, and after a pause
    /// everything is looked at again.
    pub async fn work(mut self) {
        tracing::debug!(namespace = &**self.shared.name(), "namespace opened");
        let mut happened = Happened::Nothing;
        loop {
            let decided = catch_unwind(AssertUnwindSafe(|| self.decide(happened)));
            let next = match decided {
                Ok(Decided::Wait(next)) => next,
                Ok(Decided::Over) => break,
                Err(_) => {
                    tracing::error!(
                        namespace = &**self.shared.name(),
                        "a decision failed by a fault of Purlin; it is made again in a moment, and running calls go on"
                    );
                    tokio::time::sleep(AFTER_PANIC).await;
                    happened = Happened::Again;
                    continue;
                }
            };
            happened = self.wait(next).await;
        }
        self.close();
    }

    /// Takes in what has happened, and decides whatever can be decided now.
    fn decide(&mut self, happened: Happened) -> Decided {
        match happened {
            Happened::Nothing => {}
            Happened::Stop(state) => self.stop(state),
            Happened::Again => self.begin_again(),
            Happened::Progress(Some(progress)) => self.take_progress(progress),
            Happened::Progress(None) => self.run_is_idle = true,
            Happened::Made(made) => self.take_made(made),
            Happened::Recovered(recovered) => self.take_recovery(recovered),
            Happened::Moved(moved) => self.take_moved(moved),
            Happened::Chore(chore) => self.take_chore(chore),
        }
        self.take_more_progress();
        let next = self.turn();
        self.count_queue();
        if self.is_over() { Decided::Over } else { Decided::Wait(next) }
    }

    /// Waits for the next thing to happen, but no longer than until `next`.
    async fn wait(&mut self, next: Option<Instant>) -> Happened {
        let context = self.context.clone();
        let mut leadership = context.leadership.clone();
        let leads = self.state == State::Working;
        tokio::select! {
            biased;
            () = context.shutdown.triggered(), if self.state != State::Stopping => Happened::Stop(State::Stopping),
            () = leadership.becomes(!leads), if self.state != State::Stopping => {
                if leads { Happened::Stop(State::StandingDown) } else { Happened::Again }
            }
            progress = self.run.next(), if !self.run_is_idle => Happened::Progress(progress),
            Some(made) = self.plannings.join_next() => ended(made).map_or(Happened::Nothing, Happened::Made),
            Some(recovered) = self.recoveries.join_next() => {
                ended(recovered).map_or(Happened::Nothing, Happened::Recovered)
            }
            Some(moved) = self.moves.join_next() => ended(moved).map_or(Happened::Nothing, Happened::Moved),
            Some(chore) = self.chores.join_next() => ended(chore).map_or(Happened::Nothing, Happened::Chore),
            () = self.shared.wake.notified(), if leads => Happened::Nothing,
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => Happened::Nothing,
        }
    }

    /// Takes in what has happened already, so that a wave of fast steps is not slowed down by a turn for each.
    fn take_more_progress(&mut self) {
        use futures::FutureExt as _;
        for _ in 0..BATCH {
            if self.run_is_idle {
                return;
            }
            match self.run.next().now_or_never() {
                Some(Some(progress)) => self.take_progress(progress),
                Some(None) => self.run_is_idle = true,
                None => return,
            }
        }
    }

    /// Feeds the gauge of names that wait to be planned.
    fn count_queue(&mut self) {
        let queued = self.settle.len();
        let difference = i64::try_from(queued).unwrap_or(i64::MAX) - i64::try_from(self.queued).unwrap_or(i64::MAX);
        if difference != 0 {
            self.context.metrics.queued(difference);
            self.queued = queued;
        }
    }

    /// Decides what can be decided now; gives the time of the next turn if nothing happens before.
    fn turn(&mut self) -> Option<Instant> {
        let now = Instant::now();
        match self.state {
            State::Working => {}
            // What its steps have come to is said by whoever leads now.
            State::StandingDown => return None,
            State::Stopping => {
                self.publish_changed(now);
                return None;
            }
        }
        self.take_woken(now);
        self.take_timers(now);
        let deferred = self.adopt_deferred(now);
        let gathered = self.plan_due(now);
        self.publish_changed(now);
        let settings = self.tend_settings(now);
        let paused = self.end_long_pauses(now);
        let timer = self.timers.first().map(|(at, _)| *at);
        [deferred, gathered, settings, paused, timer].into_iter().flatten().min()
    }

    /// What the index has to say.
    fn take_woken(&mut self, now: Instant) {
        let ((names, foreign), gone, inputs, noticed) = {
            let mut index = self.shared.index();
            self.changed.extend(index.take_restated());
            (index.take_woken(), index.take_gone(), index.take_wanted_inputs(), index.take_noticed())
        };
        for (address, gone) in noticed {
            self.notice(&address, gone, now);
        }
        if let Some(wanted) = inputs {
            self.inputs.follow(&wanted, &self.context, &self.shared);
        }
        for name in gone {
            let left: Vec<Address> = of_name(&self.tracked, &name).map(|(address, _)| address.clone()).collect();
            left.iter().for_each(|address| self.tidy(address));
            self.forget_resource(&name);
        }
        for address in foreign {
            self.bring_in(&address);
        }
        for name in names {
            self.settle.touch(&name, now);
        }
    }

    /// Brings a record that somebody else has changed into the run. Not while a step of the object is running or its
    /// intent is being settled: the end of that brings it in.
    fn bring_in(&mut self, address: &Address) {
        if self.run.is_running(address) || self.recovering.contains(address) {
            return;
        }
        let known = self.shared.index().records().get(address).cloned();
        match known {
            Some(stored) => drop(self.run.records_mut().insert(address.clone(), stored)),
            None => drop(self.run.records_mut().remove(address)),
        }
    }

    fn take_timers(&mut self, now: Instant) {
        while let Some((at, address)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            self.look_at(&address, now);
        }
    }

    /// Nothing new from now on. Plans are dropped; running calls and recoveries are awaited.
    fn stop(&mut self, state: State) {
        tracing::debug!(namespace = &**self.shared.name(), ?state, "starting no more steps, awaiting running calls");
        self.state = state;
        self.plannings.abort_all();
        self.inputs.stop();
        self.deferred.clear();
        self.pauses.clear();
        self.timers.clear();
        self.run.stop();
        self.run_is_idle = false;
    }

    fn is_over(&self) -> bool {
        let nothing_runs = self.run_is_idle && self.recoveries.is_empty() && self.moves.is_empty();
        if self.state != State::Working {
            return nothing_runs;
        }
        let nothing_waits = self.plannings.is_empty() && self.deferred.is_empty() && self.chores.is_empty();
        nothing_runs && nothing_waits && self.context.world.close_if_empty(&self.shared)
    }

    fn close(mut self) {
        self.settle = Settle::default();
        self.count_queue();
        let metrics = &self.context.metrics;
        for (address, tracked) in &mut self.tracked {
            drift::end_watch(&self.context, &self.shared, address, tracked);
        }
        for followed in self.followed.values() {
            metrics.object_moved(followed.state, None);
        }
        metrics.abandoned(-i64::try_from(self.abandoned.len()).unwrap_or(0));
        self.chores.abort_all();
        tracing::debug!(namespace = &**self.shared.name(), "namespace closed");
    }
}
