//! One history: a person edits what is wanted, again and again; a process plans and carries out, fails, crashes and
//! starts anew. In the end the trouble stops, and everything must come out as it is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use purlin::driver::{Registry, scripted};
use purlin::execute::{self, Adoption, Engine, HolderState, Limits, Progress, Recovery, Run};
use purlin::graph;
use purlin::load::{Config, Instance};
use purlin::model::{Action, Address, Holder, ImportRequest, Operation, Reason, Recorded, Stored};
use purlin::pipeline;
use purlin::plan::{Held, Memo, Mode, Plan, PlanOptions, Refresh, moves};
use purlin::process::Clock as _;
use purlin::store::memory::{Hook, MemoryJournal, Moment, Point, Verdict};

use super::saving::Filed;
use super::tape::Tape;
use super::view::View;
use super::wish::Wish;
use super::witness::Witness;
use super::world::{TYPE, World};
use crate::kit::{Crash, Dice, ManualClock};

pub(super) const NAMESPACE: &str = "default";

/// After so many runs without any trouble everything must be as it is wanted. Leftovers and their successors may need
/// a run each; a second chance for each is plenty.
const RUNS_TO_CONVERGE: usize = 8;

/// See the module.
pub(super) struct History {
    pub(super) dice: Arc<Dice>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) crash: Arc<Crash>,
    pub witness: Arc<Witness>,
    pub world: Arc<World>,
    journal: MemoryJournal,
    pub wish: Wish,
    /// Ids of things that somebody else destroyed.
    pub lost: BTreeSet<String>,
    /// What is not made anew before somebody says so.
    missing: BTreeSet<Address>,
    /// The plan that is carried out, when it comes from a file.
    pub(super) filed: Option<Filed>,
    processes: usize,
    pub(super) trouble: Trouble,
    /// What happened, for whoever has to find out why something went wrong.
    pub trail: Vec<String>,
}

/// How much goes wrong, in percent.
#[derive(Clone, Copy, Default)]
pub(super) struct Trouble {
    calls_fail: usize,
    writes_fail: usize,
    crashes: usize,
    edits: usize,
    stops: usize,
    /// Of a hundred new Resources so many describe what exists already.
    pub imports: usize,
    /// Of a hundred plans so many are saved before they are carried out.
    pub saved: usize,
}

/// What a plan is about, and where it leads.
#[derive(Default)]
struct Aim {
    targets: BTreeSet<Address>,
    towards_nothing: bool,
    only_reads: bool,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Crashed,
    /// The plan had something to do.
    Done,
    /// It had not.
    NothingToDo,
}

impl History {
    pub(super) fn new(seed: u64) -> Self {
        let dice = Arc::new(Dice::new(seed));
        let crash = Arc::<Crash>::default();
        let witness = Arc::<Witness>::default();
        let recovery = match dice.below(10) {
            0..=4 => scripted::Recovery::Repeat,
            5..=8 => scripted::Recovery::Find,
            _ => scripted::Recovery::Unknown,
        };
        let world = World::new(Arc::clone(&dice), Arc::clone(&crash), Arc::clone(&witness), recovery);
        let trouble = Trouble {
            calls_fail: [0, 10, 25][dice.below(3)],
            writes_fail: [0, 0, 2][dice.below(3)],
            crashes: [0, 30, 60][dice.below(3)],
            edits: [0, 0, 5][dice.below(3)],
            stops: [0, 0, 3][dice.below(3)],
            imports: [0, 0, 30][dice.below(3)],
            saved: [0, 0, 30][dice.below(3)],
        };
        Self {
            clock: Arc::new(ManualClock::new()),
            crash,
            witness,
            world: Arc::new(world),
            journal: MemoryJournal::default(),
            wish: Wish::new(&dice),
            lost: BTreeSet::new(),
            missing: BTreeSet::new(),
            filed: None,
            processes: 0,
            trouble,
            trail: vec![format!("creates are recovered by {recovery:?}")],
            dice,
        }
    }

    /// Lives through it.
    pub(super) async fn live(&mut self) -> Result<(), String> {
        for _ in 0..2 + self.dice.below(4) {
            for _ in 0..=self.dice.below(3) {
                self.run(self.trouble).await?;
                self.meddle();
            }
            self.wish.edit(&self.dice);
            self.describe_what_exists();
        }
        self.wish.calm_down();
        self.describe_what_is_free();
        for _ in 0..RUNS_TO_CONVERGE {
            self.unprotect();
            self.say_what_was_followed();
            if self.run(Trouble::default()).await? == Ended::NothingToDo {
                return self.has_converged();
            }
        }
        Err(format!("not settled after {RUNS_TO_CONVERGE} runs without trouble"))
    }

    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.trail.push(what.into());
    }

    /// Others change and destroy things by hand, one or, seldom, nearly all.
    fn meddle(&mut self) {
        let things = self.world.things();
        if self.dice.chance(10)
            && let Some(thing) = self.dice.pick(&things)
        {
            let argument = ["label", "shape"][self.dice.below(2)];
            self.note(format!("somebody else changes {argument} of {}", thing.id));
            self.world.change(&thing.id, argument);
        }
        let many = self.dice.chance(1);
        if !many && !self.dice.chance(10) {
            return;
        }
        let one = self.dice.below(things.len());
        let all = things.iter().enumerate().filter(|(at, _)| *at == one || (many && self.dice.chance(80)));
        let all: Vec<_> = all.map(|(_, thing)| thing.clone()).collect();
        for thing in &all {
            self.note(format!("somebody else destroys {}", thing.id));
            self.world.lose(&thing.id);
            self.lost.insert(thing.id.clone());
        }
    }

    /// `purlin state unprotect` for everything.
    fn unprotect(&mut self) {
        for stored in self.records().values() {
            let mut record = stored.record.as_ref().clone();
            for object in record.current.iter_mut().chain(record.deposed.values_mut()) {
                Arc::make_mut(object).prevent_destroy = false;
            }
            if record != *stored.record {
                self.correct(&record);
            }
        }
    }

    fn correct(&mut self, record: &purlin::model::Record) {
        self.journal.put(record).unwrap();
        self.witness.corrected(record);
    }

    pub(super) fn records(&self) -> Recorded {
        self.journal.load(NAMESPACE).records
    }

    fn config(&self) -> Config {
        if self.wish.wants.is_empty() {
            // An empty folder is no desired state, so here somebody says it in so many words.
            return Config { namespace: NAMESPACE.into(), ..Config::default() };
        }
        let mut config = crate::kit::load(&self.wish.yaml()).config;
        assert!(config.incomplete.is_empty(), "{:?}", config.incomplete);
        for (address, instance) in &mut config.instances {
            let instance = Arc::make_mut(instance);
            assert!(instance.problems.is_empty(), "{:?}", instance.problems);
            instance.generation = self.wish.generation();
            instance.deleting = self.wish.wants[&*address.name].deleting;
        }
        for (name, family) in &mut config.families {
            let shared = Arc::make_mut(&mut Arc::make_mut(family).shared);
            assert!(shared.problems.is_empty(), "{:?}", shared.problems);
            shared.generation = self.wish.generation();
            shared.deleting = self.wish.wants[&**name].deleting;
        }
        // A family that is being deleted asks for no instance.
        let Config { instances, families, .. } = &mut config;
        instances.retain(|address, instance| !(families.contains_key(&address.name) && instance.deleting));
        config
    }

    /// A new process over what is durable.
    fn start_process(&mut self, trouble: Trouble) -> Arc<Engine> {
        self.processes += 1;
        let countdown = self.dice.chance(trouble.crashes).then(|| self.dice.below(60));
        self.crash.arm(countdown);
        self.journal = self.journal.restarted(self.hook(trouble));
        self.world.set_failures(trouble.calls_fail);
        let total = [1, 3, 256][self.dice.below(3)];
        let engine = Engine::new(
            Registry::default().with(TYPE, Arc::clone(&self.world) as _),
            Arc::new(self.journal.clone()),
            Arc::clone(&self.clock) as _,
            Arc::clone(&self.dice) as _,
            Limits { total, ..Limits::default() },
            Holder { pod: "".into(), process: format!("process-{}", self.processes).into() },
        );
        Arc::new(engine.with_hooks(Arc::clone(&self.world) as _))
    }

    fn hook(&self, trouble: Trouble) -> Hook {
        let (crash, dice) = (Arc::clone(&self.crash), Arc::clone(&self.dice));
        let (witness, world) = (Arc::clone(&self.witness), Arc::clone(&self.world));
        Arc::new(move |point: &Point| {
            if point.moment == Moment::After {
                let (ids, address) = witness.moved_by(point.operation, &point.record);
                world.relocate(&ids, &address);
                let adopted = witness.adopted_by(&point.record, &world.things());
                world.relocate(&adopted, &point.record.address.to_string());
                witness.sees_write(point.operation, &point.record, &world.things());
            }
            if crash.tick() {
                Verdict::Crash
            } else if dice.chance(trouble.writes_fail) {
                Verdict::Fail
            } else {
                Verdict::Proceed
            }
        })
    }

    /// One process from its start to its end, or to its crash.
    async fn run(&mut self, trouble: Trouble) -> Result<Ended, String> {
        let engine = self.start_process(trouble);
        self.note(format!("process {} starts; wanted:\n{}", self.processes, self.wish.yaml()));
        let ended = self.run_process(&engine, trouble).await?;
        if ended == Ended::Crashed {
            self.note("the process crashes");
            self.world.settle_in_flight();
        }
        self.witness.takes_stock(&self.world.things(), &self.lost);
        self.object()?;
        Ok(ended)
    }

    fn object(&self) -> Result<(), String> {
        let objections = self.witness.objections();
        if objections.is_empty() { Ok(()) } else { Err(objections.join("\n")) }
    }

    async fn run_process(&mut self, engine: &Arc<Engine>, trouble: Trouble) -> Result<Ended, String> {
        let Some(held) = self.recover_all(engine).await else { return Ok(Ended::Crashed) };
        self.object()?;
        let recorded = self.records();
        let mut run = Run::new(Arc::clone(engine), recorded);
        let Some(mut tape) = self.adopt_new_plan(engine, &mut run, &held, trouble).await? else {
            return Ok(Ended::Crashed);
        };
        let idle = tape.has_nothing_to_do();
        let mut is_stopped = false;
        loop {
            let Some(next) = self.crash.clone().survive(run.next()).await else { return Ok(Ended::Crashed) };
            let Some(progress) = next else { break };
            self.follow(&mut tape, &progress)?;
            if !is_stopped && self.dice.chance(trouble.edits) {
                self.wish.edit(&self.dice);
                self.note(format!("in the middle of it, wanted from now on:\n{}", self.wish.yaml()));
                match self.adopt_new_plan(engine, &mut run, &held, trouble).await? {
                    Some(new) => tape = new,
                    None => return Ok(Ended::Crashed),
                }
            }
            if self.dice.chance(trouble.stops) {
                self.note("it is told to stop");
                run.schedule.stop();
                is_stopped = true;
            }
        }
        self.object()?;
        if !is_stopped {
            tape.is_told_whole()?;
        }
        self.refuses_what_is_out_of_date()?;
        Ok(if idle { Ended::NothingToDo } else { Ended::Done })
    }

    fn follow(&mut self, tape: &mut Tape, progress: &Progress) -> Result<(), String> {
        self.note(format!("  {}: {:?}", progress.step.id(), progress.kind));
        self.object()?;
        tape.follow(progress, &self.records())
    }

    /// Settles every open intent; gives the objects that have to wait. `None`: crashed.
    async fn recover_all(&mut self, engine: &Engine) -> Option<BTreeMap<Address, Held>> {
        let config = self.config();
        let mut held = BTreeMap::new();
        let open: Vec<Address> =
            self.records().values().filter(|s| s.record.intent.is_some()).map(|s| s.record.address.clone()).collect();
        for address in open {
            // A call of recovery may fail as well; a few attempts are enough for most.
            for _ in 0..4 {
                let Some(stored) = self.records().remove(&address) else { break };
                let instance = config.resource(&address).map(|instance| self.with_import(instance, &stored));
                let recovered = execute::recover(engine, &stored, instance.as_ref(), HolderState::Gone);
                let (recovered, _) = self.crash.clone().survive(recovered).await?;
                self.note(format!("  recover {address}: {}", told(&recovered)));
                match recovered {
                    Recovery::Settled(_) | Recovery::Erased => {
                        held.remove(&address);
                        break;
                    }
                    Recovery::Held(why, _) if why.reason == Reason::CreateOutcomeUnknown => self.decide(&stored),
                    Recovery::Held(why, again) => {
                        held.insert(address.clone(), why);
                        match again {
                            Some(time) => self.clock.advance_to(time),
                            None => break,
                        }
                    }
                }
            }
            let still_open = self.records().get(&address).is_some_and(|stored| stored.record.intent.is_some());
            if still_open && !held.contains_key(&address) {
                let why = Held { reason: Reason::OperationInProgress, message: "recovery is under way".into() };
                held.insert(address, why);
            }
        }
        Some(held)
    }

    /// Nobody but a person can tell what a create came to. If something is there, it is named for adoption.
    fn with_import(&self, instance: &Instance, stored: &Stored) -> Instance {
        let mut instance = instance.clone();
        let intent = stored.record.intent.as_deref().filter(|intent| intent.operation == Operation::Create);
        if let (scripted::Recovery::Unknown, Some(intent)) = (self.world.recovery, intent) {
            let made = self.world.things().into_iter().find(|thing| *thing.made_by == *intent.operation_id);
            instance.import = made.map(|thing| ImportRequest::Id(thing.id.into()));
        }
        instance
    }

    /// The person says that the create never happened, and sees to it that this is so.
    fn decide(&mut self, stored: &Stored) {
        let mut record = stored.record.as_ref().clone();
        let Some(intent) = record.intent.take() else { return };
        let made = self.world.things().into_iter().find(|thing| *thing.made_by == *intent.operation_id);
        if let Some(thing) = made {
            self.world.lose(&thing.id);
        }
        if let Some(old) = intent.deposed.and_then(|key| record.deposed.remove(&key)) {
            record.current = Some(old);
        }
        self.note(format!("  a person says that the create of {} never happened", record.address));
        self.correct(&record);
    }

    /// Plans, judges the plan, and gives it to the run. `None`: crashed.
    async fn adopt_new_plan(
        &mut self,
        engine: &Engine,
        run: &mut Run,
        held: &BTreeMap<Address, Held>,
        trouble: Trouble,
    ) -> Result<Option<Tape>, String> {
        let memo = &mut Memo::default();
        let config = Arc::new(self.config());
        let is_troubled = trouble.calls_fail + trouble.crashes > 0;
        let refresh = if is_troubled && self.dice.chance(20) { Refresh::None } else { Refresh::All };
        let addresses: Vec<Address> = config.instances.keys().cloned().collect();
        let replace = self.dice.pick(&addresses).filter(|_| is_troubled && self.dice.chance(5));
        let mut replace: BTreeSet<Address> = replace.into_iter().cloned().collect();
        // Somebody has looked at it, and says that these are to be made anew.
        replace.extend(std::mem::take(&mut self.missing));
        let aim = self.aim(&config, run, is_troubled);
        loop {
            let families = config.families.values().map(|family| &family.shared.address);
            let scope = config.instances.keys().chain(run.schedule.records().keys()).chain(families).cloned().collect();
            let scope = run.schedule.touching(&scope);
            let running = run.schedule.running(|address| scope.contains(address));
            let recorded = run.schedule.records().clone();
            let options = PlanOptions {
                mode: match (aim.towards_nothing, aim.only_reads) {
                    (true, _) => Mode::Destroy,
                    (_, true) => Mode::RefreshOnly,
                    _ => Mode::Normal,
                },
                targets: aim.targets.clone(),
                refresh: refresh.clone(),
                replace: replace.clone(),
                held: held.clone(),
                running: running.clone(),
                seed: engine.random.number(),
                destroy_orphans: true,
                ..PlanOptions::default()
            };
            let is_alone = running.is_empty() && run.schedule.is_idle();
            // The command line does not take what is to be replaced and is not selected.
            // Nor what is moved away by the same plan, under its old name.
            let may_move = aim.targets.iter().any(|address| moves_away(&config, address));
            let can_be_saved = is_alone && !may_move && (replace.is_empty() || aim.targets.is_empty());
            let is_saved = can_be_saved && self.dice.chance(trouble.saved);
            let made = match is_saved {
                true => self.plan_through_a_file(&config, &recorded, &options).await?,
                false => self.crash.clone().survive(pipeline::plan(engine, &config, &recorded, &options, memo)).await,
            };
            let Some(made) = made else { return Ok(None) };
            let pipeline::Planned { plan, graph, config, moves } = made;
            let recorded = if moves.is_empty() { recorded } else { moves::carried(&recorded, &moves) };
            // The plan has them among all others.
            let (_, warnings) = graph::build(&plan, &config, &recorded, &running);
            for one in &moves {
                self.note(format!("  move {} to {}", one.from, one.to));
            }
            self.tell_plan(&plan);
            let view = View {
                wish: &self.wish,
                records: &recorded,
                plan: &plan,
                graph: &graph,
                warnings: &warnings,
                running: &running,
                requested: &replace,
                targets: &aim.targets,
                towards_nothing: aim.towards_nothing,
                only_reads: aim.only_reads,
                world: &self.world,
            };
            let ruled = view.ruled();
            let (permits, forgets) = view.judge(&ruled)?;
            let tape = Tape::new(&view, ruled, is_alone);
            if is_saved {
                // Until somebody carries it out.
                self.meddle();
            }
            let missing = plan.changes.iter().filter(|change| change.blocked == Some(Reason::MassDisappearance));
            self.missing.extend(missing.map(|change| change.address.clone()));
            let going = running.iter().filter(|running| running.step.operation.removes());
            let going: BTreeSet<String> = going.map(|running| running.step.address.to_string()).collect();
            let carried = execute::carry_out(engine.journal.as_ref(), run.schedule.records_mut(), &moves);
            match self.crash.clone().survive(carried).await {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    self.note(format!("  the moves could not be written: {error}"));
                    return Ok(None);
                }
                None => return Ok(None),
            }
            let scope = scope.into_iter().chain(config.instances.keys().cloned()).collect();
            let adoption = Adoption {
                scope,
                config: Arc::clone(&config),
                plan,
                graph,
                namespace: options.namespace_value,
                running,
                wishes: Arc::default(),
            };
            if run.schedule.adopt(adoption).is_ok() {
                self.witness.permits(permits, forgets, &going);
                self.is_watched_from_now_on(run);
                return Ok(Some(tape));
            }
            self.note("  a step ended meanwhile: planned again");
            self.clock.advance(Duration::from_millis(1));
        }
    }

    /// The witness knows what the present manifests say of triggers and hooks.
    fn is_watched_from_now_on(&self, run: &Run) {
        let wanted = self.wish.instances().into_iter();
        let triggers = wanted.map(|x| (x.to_string(), self.wish.triggers(&x))).collect();
        self.witness.triggers(triggers, &self.world.things());
        let all = self.wish.instances().into_iter().chain(run.schedule.records().keys().cloned());
        let drains = all.filter_map(|x| Some((x.to_string(), self.wish.wants.get(&*x.name)?.drain == Some(false))));
        self.witness.drains(drains.collect());
    }

    /// Now and then a person wants only a part, or has enough of it. What is under way is planned around as it is.
    fn aim(&mut self, config: &Config, run: &Run, is_troubled: bool) -> Aim {
        let mut aim = Aim::default();
        let fresh = run.schedule.running(|_| true).is_empty() && run.schedule.is_idle();
        if !is_troubled || !fresh {
            return aim;
        }
        let known: BTreeSet<&Address> = config.instances.keys().chain(run.schedule.records().keys()).collect();
        let known: Vec<&Address> = known.into_iter().collect();
        if self.dice.chance(10) {
            for _ in 0..=self.dice.below(2) {
                let target = self.dice.pick(&known).map(|address| (*address).clone());
                let whole = self.dice.chance(20);
                aim.targets.extend(target.map(|x| if whole { Address::single(x.name) } else { x }));
            }
        }
        aim.towards_nothing = self.dice.chance(4);
        aim.only_reads = !aim.towards_nothing && self.dice.chance(4);
        if !aim.targets.is_empty() || aim.towards_nothing || aim.only_reads {
            let mode = match (aim.towards_nothing, aim.only_reads) {
                (true, _) => "to be destroyed",
                (_, true) => "only read",
                _ => "selected",
            };
            self.note(format!("  {mode}: {:?}", aim.targets.iter().map(ToString::to_string).collect::<Vec<_>>()));
        }
        aim
    }

    fn tell_plan(&mut self, plan: &Plan) {
        for change in plan.changes.iter().filter(|change| change.action != Action::NoOp) {
            let deposed = change.deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default();
            let order = change.order.map(|order| format!(" {order:?}")).unwrap_or_default();
            let blocked = change.blocked.map(|reason| format!(" {reason}: {}", change.message)).unwrap_or_default();
            let because = change.because.clone().unwrap_or_default();
            self.note(format!("  plan {}{deposed}: {:?}{order}{blocked} {because}", change.address, change.action));
        }
        for diagnostic in &plan.diagnostics {
            self.note(format!("  {:?}: {diagnostic}", diagnostic.severity));
        }
        let now = self.clock.now();
        self.note(format!("  (time {now})"));
    }
}

fn told(recovery: &Recovery) -> String {
    match recovery {
        Recovery::Settled(stored) => format!("settled: current {:?}", stored.record.current.as_ref().map(|o| o.id())),
        Recovery::Erased => "erased".into(),
        Recovery::Held(held, again) => format!("held {}: {} until {again:?}", held.reason, held.message),
    }
}

/// Whether an object that is recorded at this address may be moved to another one by the next plan.
fn moves_away(config: &Config, address: &Address) -> bool {
    let names_it = |instance: &Arc<Instance>| instance.moved_from.iter().any(|one| one.name == address.name);
    let is_named = || config.instances.values().any(names_it);
    let has_other_keys = || address.is_instance() && config.instances.keys().any(|other| other.name == address.name);
    !config.instances.contains_key(address) && (is_named() || has_other_keys())
}
