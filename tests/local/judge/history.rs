//! One history: a user edits the desired state repeatedly, while a process plans, applies, fails, crashes and restarts.
//! In the end, the faults stop, and all objects must match the desired state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use purlin::driver::Registry;
use purlin::execute::{self, Adoption, Engine, HolderState, Limits, Progress, Recovery, Run};
use purlin::graph;
use purlin::load::{Config, Instance};
use purlin::model::{Action, Address, Holder, ImportRequest, Operation, Reason, Recorded, Stored};
use purlin::pipeline;
use purlin::plan::{Mode, ObjectBlock, Plan, PlanOptions, Refresh, ResponseCache, moves};
use purlin::process::Clock as _;
use purlin::store::memory::{FaultAction, FaultHook, FaultPoint, MemoryJournal, Moment};
use testkit::scripted;

use super::desired_state::DesiredState;
use super::fake_driver::{FakeDriver, TYPE};
use super::plan_check::PlanCheck;
use super::saved_plans::FiledPlan;
use super::tape::Tape;
use super::witness::Witness;
use crate::kit::{Crash, Dice, ManualClock};

pub(super) const NAMESPACE: &str = "default";

/// The number of runs without faults after which all objects must be up to date. Deposed objects and their successors
/// can need a run each, and a retry.
const RUNS_TO_CONVERGE: usize = 8;

pub(super) struct History {
    pub(super) dice: Arc<Dice>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) crash: Arc<Crash>,
    pub witness: Arc<Witness>,
    pub driver: Arc<FakeDriver>,
    journal: MemoryJournal,
    pub desired: DesiredState,
    /// IDs of objects that another client destroyed.
    pub lost: BTreeSet<String>,
    /// Missing objects that are not created again without a confirmation.
    missing: BTreeSet<Address>,
    /// The applied plan, if it is a saved one.
    pub(super) saved_plan: Option<FiledPlan>,
    processes: usize,
    pub(super) fault_rates: FaultRates,
    /// The events, for the analysis of failures.
    pub events: Vec<String>,
}

/// The probabilities of faults, in percent.
#[derive(Clone, Copy, Default)]
pub(super) struct FaultRates {
    calls_fail: usize,
    writes_fail: usize,
    crashes: usize,
    edits: usize,
    stops: usize,
    /// New Resources with an import.
    pub imports: usize,
    /// Plans that are saved before they are applied.
    pub saved: usize,
}

/// The mode and targets of a plan.
#[derive(Default)]
struct PlanSelection {
    targets: BTreeSet<Address>,
    destroys_all: bool,
    refresh_only: bool,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunOutcome {
    Crashed,
    /// The plan had changes.
    Done,
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
        let world = FakeDriver::new(Arc::clone(&dice), Arc::clone(&crash), Arc::clone(&witness), recovery);
        let fault_rates = FaultRates {
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
            driver: Arc::new(world),
            journal: MemoryJournal::default(),
            desired: DesiredState::new(&dice),
            lost: BTreeSet::new(),
            missing: BTreeSet::new(),
            saved_plan: None,
            processes: 0,
            fault_rates,
            events: vec![format!("creates are recovered by {recovery:?}")],
            dice,
        }
    }

    pub(super) async fn live(&mut self) -> Result<(), String> {
        for _ in 0..2 + self.dice.below(4) {
            for _ in 0..=self.dice.below(3) {
                self.run(self.fault_rates).await?;
                self.change_outside();
            }
            self.desired.edit(&self.dice);
            self.add_imports();
        }
        self.desired.make_reachable();
        self.drop_conflicting_imports();
        for _ in 0..RUNS_TO_CONVERGE {
            self.unprotect();
            self.drop_completed_moves();
            if self.run(FaultRates::default()).await? == RunOutcome::NothingToDo {
                return self.has_converged();
            }
        }
        Err(format!("not converged after {RUNS_TO_CONVERGE} runs without faults"))
    }

    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.events.push(what.into());
    }

    /// Changes and destroys objects like another client: one or, rarely, nearly all.
    fn change_outside(&mut self) {
        let things = self.driver.objects();
        if self.dice.chance(10)
            && let Some(thing) = self.dice.pick(&things)
        {
            let argument = ["label", "shape"][self.dice.below(2)];
            self.note(format!("another client changes {argument} of {}", thing.id));
            self.driver.change(&thing.id, argument);
        }
        let many = self.dice.chance(1);
        if !many && !self.dice.chance(10) {
            return;
        }
        let one = self.dice.below(things.len());
        let all = things.iter().enumerate().filter(|(at, _)| *at == one || (many && self.dice.chance(80)));
        let all: Vec<_> = all.map(|(_, thing)| thing.clone()).collect();
        for thing in &all {
            self.note(format!("another client destroys {}", thing.id));
            self.driver.lose(&thing.id);
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
        self.witness.record_edited(record);
    }

    pub(super) fn records(&self) -> Recorded {
        self.journal.load(NAMESPACE).records
    }

    fn config(&self) -> Config {
        if self.desired.resources.is_empty() {
            // An empty directory is not a desired state, so this configuration is explicitly empty.
            return Config { namespace: NAMESPACE.into(), ..Config::default() };
        }
        let mut config = crate::kit::load(&self.desired.yaml()).config;
        assert!(config.incomplete.is_empty(), "{:?}", config.incomplete);
        for (address, instance) in &mut config.instances {
            let instance = Arc::make_mut(instance);
            assert!(instance.problems.is_empty(), "{:?}", instance.problems);
            instance.generation = self.desired.generation();
            instance.deleting = self.desired.resources[&**address.name()].deleting;
        }
        for (name, family) in &mut config.families {
            let shared = Arc::make_mut(&mut Arc::make_mut(family).shared);
            assert!(shared.problems.is_empty(), "{:?}", shared.problems);
            shared.generation = self.desired.generation();
            shared.deleting = self.desired.resources[&*name.name].deleting;
        }
        // A family that is being deleted has no desired instances.
        let Config { instances, families, .. } = &mut config;
        instances.retain(|address, instance| !(families.contains_key(&address.stem) && instance.deleting));
        config
    }

    /// Starts a process with the stored records.
    fn start_process(&mut self, trouble: FaultRates) -> Arc<Engine> {
        self.processes += 1;
        let countdown = self.dice.chance(trouble.crashes).then(|| self.dice.below(60));
        self.crash.arm(countdown);
        self.journal = self.journal.restarted(self.hook(trouble));
        self.driver.set_failures(trouble.calls_fail);
        let total = [1, 3, 256][self.dice.below(3)];
        let engine = Engine::new(
            Registry::default().with(TYPE, Arc::clone(&self.driver) as _),
            Arc::new(self.journal.clone()),
            Arc::clone(&self.clock) as _,
            Arc::clone(&self.dice) as _,
            Limits { total, ..Limits::default() },
            Holder { pod: "".into(), process: format!("process-{}", self.processes).into() },
        );
        Arc::new(engine.with_hooks(Arc::clone(&self.driver) as _))
    }

    fn hook(&self, trouble: FaultRates) -> FaultHook {
        let (crash, dice) = (Arc::clone(&self.crash), Arc::clone(&self.dice));
        let (witness, world) = (Arc::clone(&self.witness), Arc::clone(&self.driver));
        Arc::new(move |point: &FaultPoint| {
            if point.moment == Moment::After {
                let (ids, address) = witness.moved_by(point.operation, &point.record);
                world.relocate(&ids, &address);
                let adopted = witness.adopted_by(&point.record, &world.objects());
                world.relocate(&adopted, &point.record.address.to_string());
                witness.check_write(point.operation, &point.record, &world.objects());
            }
            if crash.tick() {
                FaultAction::Crash
            } else if dice.chance(trouble.writes_fail) {
                FaultAction::Fail
            } else {
                FaultAction::Proceed
            }
        })
    }

    /// Runs one process until it ends or crashes.
    async fn run(&mut self, trouble: FaultRates) -> Result<RunOutcome, String> {
        let engine = self.start_process(trouble);
        self.note(format!("process {} starts; desired state:\n{}", self.processes, self.desired.yaml()));
        let ended = self.run_process(&engine, trouble).await?;
        if ended == RunOutcome::Crashed {
            self.note("the process crashes");
            self.driver.resolve_in_flight();
        }
        self.witness.check_inventory(&self.driver.objects(), &self.lost);
        self.check_objections()?;
        Ok(ended)
    }

    fn check_objections(&self) -> Result<(), String> {
        let objections = self.witness.objections();
        if objections.is_empty() { Ok(()) } else { Err(objections.join("\n")) }
    }

    async fn run_process(&mut self, engine: &Arc<Engine>, trouble: FaultRates) -> Result<RunOutcome, String> {
        let Some(held) = self.recover_all(engine).await else { return Ok(RunOutcome::Crashed) };
        self.check_objections()?;
        let recorded = self.records();
        let mut run = Run::new(Arc::clone(engine), "default".into(), recorded);
        let Some(mut tape) = self.adopt_new_plan(engine, &mut run, &held, trouble).await? else {
            return Ok(RunOutcome::Crashed);
        };
        let idle = tape.has_nothing_to_do();
        let mut is_stopped = false;
        loop {
            let Some(next) = self.crash.clone().survive(run.next()).await else { return Ok(RunOutcome::Crashed) };
            let Some(progress) = next else { break };
            self.follow(&mut tape, &progress)?;
            if !is_stopped && self.dice.chance(trouble.edits) {
                self.desired.edit(&self.dice);
                self.note(format!("new desired state during the run:\n{}", self.desired.yaml()));
                match self.adopt_new_plan(engine, &mut run, &held, trouble).await? {
                    Some(new) => tape = new,
                    None => return Ok(RunOutcome::Crashed),
                }
            }
            if self.dice.chance(trouble.stops) {
                self.note("a shutdown is requested");
                run.schedule.stop();
                is_stopped = true;
            }
        }
        self.check_objections()?;
        if !is_stopped {
            tape.check_complete()?;
        }
        self.check_stale_rejection()?;
        Ok(if idle { RunOutcome::NothingToDo } else { RunOutcome::Done })
    }

    fn follow(&mut self, tape: &mut Tape, progress: &Progress) -> Result<(), String> {
        self.note(format!("  {}: {:?}", progress.step.id(), progress.kind));
        self.check_objections()?;
        tape.follow(progress, &self.records())
    }

    /// Resolves open intents, and returns the blocked objects. `None`: crashed.
    async fn recover_all(&mut self, engine: &Engine) -> Option<BTreeMap<Address, ObjectBlock>> {
        let config = self.config();
        let mut held = BTreeMap::new();
        let open: Vec<Address> =
            self.records().values().filter(|s| s.record.intent.is_some()).map(|s| s.record.address.clone()).collect();
        for address in open {
            // Recovery can fail too. A few attempts are usually sufficient.
            for _ in 0..4 {
                let Some(stored) = self.records().remove(&address) else { break };
                let instance = config.resource(&address).map(|instance| self.with_import(instance, &stored));
                let recovered = execute::recover(engine, &stored, instance.as_ref(), HolderState::Ended);
                let (recovered, _) = self.crash.clone().survive(recovered).await?;
                self.note(format!("  recover {address}: {}", describe_recovery(&recovered)));
                match recovered {
                    Recovery::Resolved(_) | Recovery::Erased | Recovery::Missing => {
                        held.remove(&address);
                        break;
                    }
                    Recovery::Blocked(why, _) if why.reason == Reason::CreateOutcomeUnknown => {
                        self.remove_unknown_create(&stored);
                    }
                    Recovery::Blocked(why, again) => {
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
                let why =
                    ObjectBlock { reason: Reason::OperationInProgress, message: "recovery is in progress".into() };
                held.insert(address, why);
            }
        }
        Some(held)
    }

    /// For a create with an unknown outcome, the user imports the created object if it exists.
    fn with_import(&self, instance: &Instance, stored: &Stored) -> Instance {
        let mut instance = instance.clone();
        let intent = stored.record.intent.as_deref().filter(|intent| intent.operation == Operation::Create);
        if let (scripted::Recovery::Unknown, Some(intent)) = (self.driver.recovery, intent) {
            let made = self.driver.objects().into_iter().find(|thing| *thing.created_by == *intent.operation_id);
            instance.import = made.map(|thing| ImportRequest::Id(thing.id.into()));
        }
        instance
    }

    /// The user destroys the created object, if it exists, and edits the record.
    fn remove_unknown_create(&mut self, stored: &Stored) {
        let mut record = stored.record.as_ref().clone();
        let Some(intent) = record.intent.take() else { return };
        let made = self.driver.objects().into_iter().find(|thing| *thing.created_by == *intent.operation_id);
        if let Some(thing) = made {
            self.driver.lose(&thing.id);
        }
        if let Some(old) = intent.deposed.and_then(|key| record.deposed.remove(&key)) {
            record.current = Some(old);
        }
        self.note(format!("  the user removes the intent to create {}", record.address));
        self.correct(&record);
    }

    /// Plans, checks the plan, and adopts it in the run. `None`: crashed.
    async fn adopt_new_plan(
        &mut self,
        engine: &Engine,
        run: &mut Run,
        held: &BTreeMap<Address, ObjectBlock>,
        trouble: FaultRates,
    ) -> Result<Option<Tape>, String> {
        let memo = &mut ResponseCache::default();
        let config = Arc::new(self.config());
        let is_troubled = trouble.calls_fail + trouble.crashes > 0;
        let refresh = if is_troubled && self.dice.chance(20) { Refresh::None } else { Refresh::All };
        let addresses: Vec<Address> = config.instances.keys().cloned().collect();
        let replace = self.dice.pick(&addresses).filter(|_| is_troubled && self.dice.chance(5));
        let mut replace: BTreeSet<Address> = replace.into_iter().cloned().collect();
        // The user confirms that these objects are created again.
        replace.extend(std::mem::take(&mut self.missing));
        let aim = self.aim(&config, run, is_troubled);
        loop {
            let families = config.families.values().map(|family| &family.shared.address);
            let known = config.instances.keys().chain(run.records.keys()).chain(families);
            let mut scope: BTreeSet<Address> = known.cloned().collect();
            let names = scope.iter().map(|address| address.name().clone()).collect();
            scope.extend(run.schedule.touching(&names).cloned());
            let running = run.schedule.running(|address| scope.contains(address));
            let recorded = run.records.clone();
            let options = PlanOptions {
                mode: match (aim.destroys_all, aim.refresh_only) {
                    (true, _) => Mode::Destroy,
                    (_, true) => Mode::RefreshOnly,
                    _ => Mode::Normal,
                },
                targets: aim.targets.clone(),
                refresh: refresh.clone(),
                replace: replace.clone(),
                blocked: held.clone(),
                running: running.clone(),
                seed: engine.random.number(),
                destroy_orphans: true,
                ..PlanOptions::default()
            };
            let is_alone = running.is_empty() && run.schedule.is_idle();
            let is_saved = is_alone && self.dice.chance(trouble.saved);
            let planned = pipeline::plan(engine, &config, &recorded, &options, memo);
            let Some(mut planned) = self.crash.clone().survive(planned).await else { return Ok(None) };
            if is_saved {
                planned = self.through_a_file(engine, &config, &recorded, planned).await?;
            }
            let pipeline::OrderedPlan { plan, graph, config, moves } = planned;
            let recorded = if moves.is_empty() { recorded } else { moves::apply_moves(&recorded, &moves) };
            // The plan contains these warnings among others.
            let (_, warnings) = graph::build(&plan, &config, &recorded, &running);
            for one in &moves {
                self.note(format!("  move {} to {}", one.from, one.to));
            }
            self.note_plan(&plan);
            let view = PlanCheck {
                desired: &self.desired,
                records: &recorded,
                plan: &plan,
                graph: &graph,
                warnings: &warnings,
                running: &running,
                requested: &replace,
                targets: &aim.targets,
                destroys_all: aim.destroys_all,
                refresh_only: aim.refresh_only,
                driver: &self.driver,
            };
            let ruled = view.apply_rules();
            let (permits, forgets) = view.judge(&ruled)?;
            let tape = Tape::new(&view, ruled, is_alone);
            if is_saved {
                // Between saving and applying.
                self.change_outside();
            }
            let missing = plan.changes().filter(|change| change.blocked == Some(Reason::ManyObjectsMissing));
            self.missing.extend(missing.map(|change| change.address.clone()));
            let going = running.iter().filter(|running| running.step.operation.removes());
            let going: BTreeSet<String> = going.map(|running| running.step.address.to_string()).collect();
            let carried = execute::apply_moves(engine.journal.as_ref(), &mut run.records, &moves);
            match self.crash.clone().survive(carried).await {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    self.note(format!("  the moves could not be written: {error}"));
                    return Ok(None);
                }
                None => return Ok(None),
            }
            let adoption = Adoption {
                scope: scope.into_iter().chain(config.instances.keys().cloned()).collect(),
                config: Arc::clone(&config),
                plan,
                graph: Arc::new(graph),
                namespace: options.namespace_value,
                running,
                desired_digests: Arc::default(),
                components: Arc::default(),
            };
            if run.schedule.adopt(adoption).is_ok() {
                self.witness.permits(permits, forgets, &going);
                self.update_witness(run);
                return Ok(Some(tape));
            }
            self.note("  a step ended during planning: plan again");
            self.clock.advance(Duration::from_millis(1));
        }
    }

    /// Passes the triggers and hooks of the current manifests to the witness.
    fn update_witness(&self, run: &Run) {
        let wanted = self.desired.instances().into_iter();
        let triggers = wanted.map(|x| (x.to_string(), self.desired.triggers(&x))).collect();
        self.witness.triggers(triggers, &self.driver.objects());
        let all = self.desired.instances().into_iter().chain(run.records.keys().cloned());
        let drains =
            all.filter_map(|x| Some((x.to_string(), self.desired.resources.get(&**x.name())?.drain == Some(false))));
        self.witness.drains(drains.collect());
    }

    /// Sometimes selects targets, destroys everything, or only refreshes.
    fn aim(&mut self, config: &Config, run: &Run, is_troubled: bool) -> PlanSelection {
        let mut aim = PlanSelection::default();
        let fresh = run.schedule.running(|_| true).is_empty() && run.schedule.is_idle();
        if !is_troubled || !fresh {
            return aim;
        }
        let known: BTreeSet<&Address> = config.instances.keys().chain(run.records.keys()).collect();
        let known: Vec<&Address> = known.into_iter().collect();
        if self.dice.chance(10) {
            for _ in 0..=self.dice.below(2) {
                let target = self.dice.pick(&known).map(|address| (*address).clone());
                let whole = self.dice.chance(20);
                aim.targets.extend(target.map(|x| if whole { Address::single(x.stem) } else { x }));
            }
        }
        aim.destroys_all = self.dice.chance(4);
        aim.refresh_only = !aim.destroys_all && self.dice.chance(4);
        if !aim.targets.is_empty() || aim.destroys_all || aim.refresh_only {
            let mode = match (aim.destroys_all, aim.refresh_only) {
                (true, _) => "destroy",
                (_, true) => "refresh only",
                _ => "selected",
            };
            self.note(format!("  {mode}: {:?}", aim.targets.iter().map(ToString::to_string).collect::<Vec<_>>()));
        }
        aim
    }

    fn note_plan(&mut self, plan: &Plan) {
        for change in plan.changes().filter(|change| change.action != Action::NoOp) {
            let deposed = change.deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default();
            let order = change.order.map(|order| format!(" {order:?}")).unwrap_or_default();
            let blocked = change.blocked.map(|reason| format!(" {reason}: {}", change.message)).unwrap_or_default();
            let because = change.because.as_ref().map(ToString::to_string).unwrap_or_default();
            self.note(format!("  plan {}{deposed}: {:?}{order}{blocked} {because}", change.address, change.action));
        }
        for diagnostic in &plan.diagnostics {
            self.note(format!("  {:?}: {diagnostic}", diagnostic.severity));
        }
        let now = self.clock.now();
        self.note(format!("  (time {now})"));
    }
}

fn describe_recovery(recovery: &Recovery) -> String {
    match recovery {
        Recovery::Resolved(stored) => format!("resolved: current {:?}", stored.record.current.as_ref().map(|o| o.id())),
        Recovery::Erased => "erased".into(),
        Recovery::Missing => "missing".into(),
        Recovery::Blocked(held, again) => format!("blocked {}: {} until {again:?}", held.reason, held.message),
    }
}
