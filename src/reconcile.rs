//! One reconciler for one namespace, as a value. Events go in with the time, commands come out; it does nothing itself.
//!
//! ```text
//!  watches --observe--> Index --names--> Debounce --due--> Command::Plan
//!                         ^                                     |  (computed elsewhere)
//!        own writes ------+                                     v
//!            |                                         Happened::Planned
//!            |                                                  |  is it still about the situation as it is?
//!  Command::WriteStatus <--- Resources <--- Objects <-- follow -+-- adopt --> Schedule --> Command::Execute
//!                                              ^                                 ^               |
//!                                              +--------- what happened to steps +-- Happened::Worker
//! ```
//!
//! [`Reconciler::react`] is one turn: it takes in what has happened, then decides all that can be decided now. Whoever
//! owns it carries the commands out, and comes back with what they came to, or when the time that it asked for has come.
//! The same events at the same times give the same commands: a test or a simulation can play any history.
//!
//! - [`index`]: what is wanted and recorded, as the watches and our own writes say;
//! - `debounce`, `scope`, `plan_request`, `planning`, `stale`: what is planned next, and which plans still count;
//! - `tracked`, `objects`, `progress`, `drift`, `recovery`, `moving`: what is remembered of each object;
//! - `resources`, [`summarize`]: what the status of each Resource says;
//! - `provider_configs`: whether providers accept their configurations, and who uses them.

mod around;
mod debounce;
mod drift;
mod drift_backoff;
pub mod index;
mod missing;
mod moving;
mod objects;
mod other_components;
mod plan_request;
mod planning;
mod progress;
mod provider_configs;
mod provider_status;
mod recovery;
mod resources;
pub mod retry;
mod scope;
mod stale;
pub mod summarize;
pub mod time;
mod tracked;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::{ProviderConfigStatus, ResourceStatus};
use crate::execute::{Order, Places, ProgressKind, Schedule, WorkerEvent, Workers};
use crate::load::Instance;
use crate::model::{Address, ProviderUse, Reason, Recorded, RecordedObject, Step, Stored, of_name};
use crate::plan::Plan;

use self::index::{Event, Index, InputKey, SettingsView};
use self::objects::Objects;
use self::planning::Planning;
use self::provider_configs::ProviderConfigs;
use self::resources::Resources;
use self::time::{Moment, Time};

pub use self::moving::{MoveRequest, Moved};
pub use self::plan_request::{PlanRequest, Planned};
pub use self::provider_status::Trial;
pub use self::recovery::Recovered;
pub use self::summarize::{Note, ObjectState};

/// The reconciler of one namespace.
#[derive(Default)]
pub struct Reconciler {
    policy: Policy,
    state: State,
    /// When the present turn is.
    now: Moment,
    /// For jitter and for what plans draw.
    draws: Draws,
    index: Index,
    planning: Planning,
    schedule: Schedule,
    objects: Objects,
    resources: Resources,
    /// Objects whose open intent is being settled.
    recovering: BTreeSet<Address>,
    /// The names of components in which records are being moved: nothing else is planned there.
    moving: BTreeSet<Arc<str>>,
    provider_configs: ProviderConfigs,
    commands: Vec<Command>,
}

/// What differs between a cluster and files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy {
    /// How many steps may run at once.
    pub steps_at_once: usize,
    /// How many names one plan covers at most; a component is never split. Planning many components together costs less
    /// than each alone, and a slow driver should not keep all the others waiting.
    pub planned_together: usize,
    /// Whether an object is destroyed whose Resource is gone though its deletion was not requested. In a cluster that is
    /// what finalizers are for, and a record without a Resource is abandoned.
    pub destroys_orphans: bool,
}

/// What it may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Plans and starts steps.
    #[default]
    Working,
    /// Another replica leads, or this is not known: nothing new starts. What runs is awaited; should this replica lead
    /// again before that has ended, it goes on.
    StandingDown,
    /// The process ends.
    Stopping,
}

/// Something that happened, besides what watches deliver.
#[derive(Debug)]
pub enum Happened {
    /// The time that was asked for has come, or [`Reconciler::observe`] took something in.
    Nothing,
    /// This replica leads, perhaps once more; or a turn panicked. Everything is looked at. What runs goes on.
    Begun,
    /// This replica does not lead any more.
    StoodDown,
    /// The process ends.
    Stopping,
    /// These objects are to be read by their next plan, which is made now.
    Due(BTreeSet<Address>),
    /// What failed, and waits or was given up, is to be tried again now.
    Retry,
    /// A [`Command::Plan`] was carried out.
    Planned(Box<Planned>),
    /// A [`Command::Plan`] for these names panicked.
    PlanLost(BTreeSet<Arc<str>>),
    /// Something about a [`Command::Execute`].
    Worker(WorkerEvent),
    /// A [`Command::Recover`] was carried out.
    Recovered(Box<Recovered>),
    /// A [`Command::Move`] was carried out.
    Moved(Box<Moved>),
    /// The marks of the Resource with this name and UID could not be taken off.
    NotReleased(Arc<str>, Arc<str>),
    /// What the provider says to the configuration of a `ProviderConfig`.
    ProviderTried(Arc<str>, Arc<ProviderUse>, Trial),
    /// A `ProviderConfig` was written, or could not be.
    ProviderConfigWritten(Arc<str>, bool),
}

/// Something to be done.
#[derive(Debug)]
pub enum Command {
    /// Make a plan; ends with [`Happened::Planned`] or [`Happened::PlanLost`].
    Plan(Box<PlanRequest>),
    /// Stop making plans: what they come to is of no use.
    CancelPlans,
    /// Nothing is to be done: a plan is being carried out from now on.
    Adopted {
        /// The names that it covers.
        names: BTreeSet<Arc<str>>,
        /// The plan.
        plan: Box<Plan>,
    },
    /// Nothing is to be done: this happened to a step.
    Progress(Step, ProgressKind),
    /// Carry out an order of the schedule; ends with [`Happened::Worker`].
    Execute(Order),
    /// Settle the open intent of a record; ends with [`Happened::Recovered`].
    Recover(Stored),
    /// Move records; ends with [`Happened::Moved`].
    Move(Box<MoveRequest>),
    /// Watch the object of an instance, as the driver of its type can.
    Watch {
        /// Whose object.
        address: Address,
        /// Its type.
        type_name: Arc<str>,
        /// As whom.
        service_account: Arc<str>,
        /// The object.
        object: Arc<RecordedObject>,
    },
    /// Watch the object no longer.
    Unwatch {
        /// Whose object.
        address: Address,
        /// By the driver of which type it is watched.
        type_name: Arc<str>,
    },
    /// Follow these ConfigMaps and Secrets, and no others.
    FollowInputs(BTreeSet<InputKey>),
    /// Write the status of a Resource, unless a newer one of it is to be written.
    WriteStatus {
        /// The name in its address.
        name: Arc<str>,
        /// Its UID.
        uid: Arc<str>,
        /// The status.
        status: Box<ResourceStatus>,
        /// Its digest.
        digest: u64,
        /// How soon it must be written.
        urgency: Urgency,
    },
    /// Report something to people.
    Report {
        /// What it concerns.
        about: About,
        /// What it is.
        note: Note,
        /// The namespace is terminating: nothing can be created in it.
        terminating: bool,
    },
    /// Take our marks off a Resource that is being deleted, if the store has no record of it.
    Release {
        /// Its name.
        name: Arc<str>,
        /// Its UID.
        uid: Arc<str>,
    },
    /// Read a record once more, which another process may have written; it comes back by [`Reconciler::observe`].
    ReadRecord(Address),
    /// Configure a provider; ends with [`Happened::ProviderTried`].
    TryProvider(Arc<str>, Arc<ProviderUse>),
    /// Write status and finalizers of a `ProviderConfig`; ends with [`Happened::ProviderConfigWritten`].
    WriteProviderConfig {
        /// As it is known.
        view: Box<SettingsView>,
        /// The status.
        status: Box<ProviderConfigStatus>,
        /// All finalizers, when they are to be others.
        finalizers: Option<Vec<String>>,
    },
}

/// How soon a status must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The object is on its way, and the status says how far it is: it gives way to what has come to rest.
    Interim,
    /// The object has come to rest.
    Settled,
}

/// What a note concerns.
#[derive(Clone, Debug)]
pub enum About {
    /// A Resource, or a `DataSource`.
    Resource(Arc<Instance>),
    /// A `ProviderConfig`.
    ProviderConfig {
        /// Its name.
        name: Arc<str>,
        /// Its UID.
        uid: Arc<str>,
    },
    /// A record without a Resource.
    Record(Address),
}

/// What the reconciler asks of its surroundings while it decides. Answers come at once, from memory.
pub trait Outside: Places {
    /// Whether objects of the type can be watched.
    fn can_watch(&self, type_name: &str) -> bool;

    /// Whether the object of an instance, of this type, is being watched: whatever happens to it is noticed.
    fn is_watching(&self, type_name: &str, address: &Address) -> bool;
}

/// Where objects are not watched, the workers are all that is asked.
impl Outside for Workers {
    fn can_watch(&self, _type_name: &str) -> bool {
        false
    }

    fn is_watching(&self, _type_name: &str, _address: &Address) -> bool {
        false
    }
}

/// What a turn leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When to come back though nothing happens; `None`: not before something does.
    pub wake: Option<Time>,
    /// Nothing runs, and nothing waits but for time or for events.
    pub is_quiet: bool,
}

/// How much there is of what gauges count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Names that wait to be planned.
    pub queued: usize,
    /// Records without a Resource.
    pub abandoned: usize,
    /// Resources by state.
    pub objects: BTreeMap<ObjectState, usize>,
}

/// Numbers that a seed decides.
#[derive(Clone, Debug)]
struct Draws(fastrand::Rng);

impl Draws {
    fn number(&mut self) -> u64 {
        self.0.u64(..)
    }
}

impl Default for Draws {
    fn default() -> Self {
        Self(fastrand::Rng::with_seed(0))
    }
}

impl Reconciler {
    /// The reconciler of a namespace of which nothing is known yet. `seed` decides all that it draws; `versions` is for
    /// [`Index::new`].
    pub fn new(namespace: Arc<str>, policy: Policy, seed: u64, versions: u64) -> Self {
        Self {
            policy,
            index: Index::new(namespace, versions),
            schedule: Schedule::new(policy.steps_at_once, BTreeMap::new()),
            draws: Draws(fastrand::Rng::with_seed(seed)),
            ..Self::default()
        }
    }

    /// The namespace.
    pub fn namespace(&self) -> &Arc<str> {
        self.index.namespace()
    }

    /// What is known of the namespace.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The records as last read or written.
    pub fn records(&self) -> &Recorded {
        self.schedule.records()
    }

    /// Takes in what a watch has delivered. It is acted on by the next turn.
    pub fn observe(&mut self, event: Event) {
        self.index.apply(event);
    }

    /// One turn: takes in what has happened, in order, and decides all that can be decided. What is to be done is given by
    /// [`Self::take_commands`], also after a turn that panicked.
    pub fn react(
        &mut self,
        happened: impl IntoIterator<Item = Happened>,
        now: Moment,
        outside: &mut dyn Outside,
    ) -> Turn {
        self.now = now;
        for one in happened {
            self.take(one);
            self.take_events();
        }
        let wake = match self.state {
            State::Working => self.decide(outside),
            // The leader writes what the steps that end now come to.
            State::StandingDown => None,
            State::Stopping => {
                self.publish_changed();
                None
            }
        };
        Turn { wake, is_quiet: self.is_quiet() }
    }

    /// What is to be done, in order.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// How much there is of what gauges count.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            queued: self.planning.debounce.len(),
            abandoned: self.objects.abandoned.len(),
            objects: self.resources.count(),
        }
    }

    /// Lets go of all but what is wanted and recorded: nothing runs, and what comes next begins with [`Happened::Begun`].
    pub fn rest(&mut self) {
        self.end_watches();
        *self = Self {
            policy: self.policy,
            index: std::mem::take(&mut self.index),
            schedule: Schedule::new(self.policy.steps_at_once, BTreeMap::new()),
            draws: self.draws.clone(),
            now: self.now,
            commands: std::mem::take(&mut self.commands),
            ..Self::default()
        };
    }

    fn take(&mut self, happened: Happened) {
        match happened {
            Happened::Nothing | Happened::Worker(WorkerEvent::PlaceFree) => {}
            Happened::Begun => self.begin(),
            Happened::StoodDown => self.stop(State::StandingDown),
            Happened::Stopping => self.stop(State::Stopping),
            Happened::Due(objects) => self.read_now(objects),
            Happened::Retry => self.retry(|_| true),
            Happened::Planned(planned) => self.take_plan(*planned),
            Happened::PlanLost(names) => self.lost_plan(&names),
            Happened::Worker(WorkerEvent::Ended(ended)) => self.schedule.ended(*ended),
            Happened::Worker(WorkerEvent::News(step, news)) => self.schedule.news(step, news),
            Happened::Recovered(recovered) => self.take_recovery(*recovered),
            Happened::Moved(moved) => self.take_moved(*moved),
            Happened::NotReleased(name, uid) => self.not_released(name, &uid),
            Happened::ProviderTried(name, used, trial) => self.provider_tried(&name, &used, trial),
            Happened::ProviderConfigWritten(name, done) => self.provider_config_written(&name, done),
        }
    }

    /// Decides what can be decided now; returns when to come back.
    fn decide(&mut self, outside: &mut dyn Outside) -> Option<Time> {
        self.take_woken();
        self.take_timers(outside);
        let deferred = self.adopt_deferred();
        let gathered = self.plan_due();
        let paused = self.end_long_pauses();
        self.start_steps(outside);
        self.update_watches(outside);
        self.publish_changed();
        let provider_configs = self.tend_provider_configs();
        let timer = self.objects.next_timer();
        [deferred, gathered, provider_configs, paused, timer].into_iter().flatten().min()
    }

    /// What happened to steps.
    fn take_events(&mut self) {
        while let Some((step, kind)) = self.schedule.event() {
            self.take_progress(&step, kind.clone());
            self.commands.push(Command::Progress(step, kind));
        }
    }

    /// Starts whatever can start. What gives something up starts only for the newest wish that is known.
    fn start_steps(&mut self, outside: &mut dyn Outside) {
        loop {
            let index = &self.index;
            let stands = |name: &str, planned: Option<u64>| planned == Some(index.wish(name));
            let orders = self.schedule.orders(outside, &stands);
            self.commands.extend(orders.into_iter().map(Command::Execute));
            if !self.schedule.has_events() {
                return;
            }
            self.take_events();
        }
    }

    /// What the index has found to be looked at.
    fn take_woken(&mut self) {
        self.resources.changed.extend(self.index.take_restated());
        if self.index.take_emptied() {
            // What was forbidden may be known to be gone by now.
            self.retry(|tracked| tracked.held_for() == Some(Reason::Forbidden));
        }
        let (names, foreign) = self.index.take_woken();
        for (address, gone) in self.index.take_noticed() {
            self.notice(&address, gone);
        }
        if let Some(wanted) = self.index.take_wanted_inputs() {
            self.commands.push(Command::FollowInputs(wanted));
        }
        for name in self.index.take_gone() {
            let left: Vec<Address> = self.objects.of(&name).map(|(address, _)| address.clone()).collect();
            left.iter().for_each(|address| self.tidy(address));
            self.forget_resource(&name);
        }
        foreign.iter().for_each(|address| self.bring_in(address));
        names.iter().for_each(|name| self.touch(name));
    }

    /// Something about a name has changed: it is planned soon.
    fn touch(&mut self, name: &Arc<str>) {
        self.planning.debounce.touch(name, self.now.time);
    }

    /// Brings a record that another process has changed into the schedule. Not while a step of the object is running or its
    /// intent is being settled: the end of that brings it in.
    fn bring_in(&mut self, address: &Address) {
        if self.schedule.is_running(address) || self.recovering.contains(address) {
            return;
        }
        match self.index.records().get(address).cloned() {
            Some(stored) => drop(self.schedule.records_mut().insert(address.clone(), stored)),
            None => drop(self.schedule.records_mut().remove(address)),
        }
    }

    /// Forgets all plans and looks at everything in the namespace. What runs goes on, and so do recoveries and moves.
    fn begin(&mut self) {
        let mut schedule = std::mem::take(&mut self.schedule);
        let recovering = std::mem::take(&mut self.recovering);
        let moving = std::mem::take(&mut self.moving);
        self.rest();
        schedule.withdraw_all();
        schedule.go_on();
        (self.schedule, self.recovering, self.moving) = (schedule, recovering, moving);
        self.commands.extend([Command::CancelPlans, Command::FollowInputs(BTreeSet::new())]);
        let (schedule, recovering, moving) = (&self.schedule, &self.recovering, &self.moving);
        self.index.begin_again(|address| {
            schedule.is_running(address) || recovering.contains(address) || moving.contains(&address.name)
        });
        let mut all: BTreeSet<Address> = self.index.records().keys().cloned().collect();
        all.extend(self.schedule.records().keys().cloned());
        all.retain(|address| !self.moving.contains(&address.name));
        all.iter().for_each(|address| self.bring_in(address));
    }

    /// Nothing new from now on. Plans are dropped; running calls and recoveries are awaited, readiness is not.
    fn stop(&mut self, state: State) {
        tracing::debug!(namespace = &**self.namespace(), ?state, "starting no more steps, awaiting running calls");
        self.state = state;
        self.commands.extend([Command::CancelPlans, Command::FollowInputs(BTreeSet::new())]);
        self.planning.stop();
        self.objects.stop_timers();
        self.schedule.stop();
        self.commands.push(Command::Execute(Order::EndWaits));
    }

    fn is_quiet(&self) -> bool {
        let nothing_runs = self.schedule.nothing_runs() && self.recovering.is_empty() && self.moving.is_empty();
        nothing_runs && (self.state != State::Working || self.planning.is_quiet())
    }

    /// Reports something about a Resource.
    fn report(&mut self, about: About, note: Note) {
        let terminating = self.index.is_terminating();
        self.commands.push(Command::Report { about, note, terminating });
    }

    /// The instances of a name that are recorded, as the schedule knows them.
    fn recorded<'a>(&'a self, name: &'a Arc<str>) -> impl Iterator<Item = (&'a Address, &'a Stored)> {
        of_name(self.schedule.records(), name)
    }
}
