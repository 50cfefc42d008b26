//! Runs a scenario deterministically: the objects, the journal and the process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use purlin::driver::Registry;
use purlin::execute::{self, Adoption, Engine, HolderState, Limits, Run};
use purlin::load::{Instance, LoadedSource};
use purlin::model::{Address, Holder, ObjectStatus, Recorded, Value};
use purlin::pipeline;
use purlin::plan::{Mode, ObjectBlock, PlanOptions, Refresh, ResponseCache};
use purlin::process::Random as _;
use purlin::store::memory::{FaultAction, FaultPoint, MemoryJournal};
use testkit::scripted::Scripted;
use testkit::scripted::{Script, ScriptedOutcome, World};

use super::file::{Cue, Fault, Options, Round, Scenario, Start};
use super::render;
use super::taped::{Copies, Tape, TapedDriver, TapedHooks, TapedJournal, TapedPublisher};
use crate::kit::{Dice, ManualClock};

const NAMESPACE: &str = "default";

/// After this number of turns without progress, the script holds all running calls.
const IDLE_TURNS: usize = 200;

struct Runner {
    world: Arc<World>,
    journal: MemoryJournal,
    copies: Arc<Copies>,
    clock: Arc<ManualClock>,
    dice: Arc<Dice>,
    tape: Tape,
    marks: Arc<Mutex<BTreeSet<String>>>,
    names: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    /// The gates that hold calls.
    gates: BTreeSet<String>,
    /// The manifests of the last round.
    yaml: String,
    processes: usize,
}

/// The process that continues in the next part of a round.
struct Process {
    engine: Arc<Engine>,
    run: Run,
    held: BTreeMap<Address, ObjectBlock>,
}

pub(super) async fn play(scenario: &Scenario) -> Result<String, String> {
    let mut stage = Runner::new(scenario)?;
    let mut process: Option<Process> = None;
    let mut text = format!("{}\n\n{}\n", scenario.title, scenario.trap);
    for (number, round) in scenario.rounds.iter().enumerate() {
        let goes_on = scenario.rounds.get(number + 1).is_some_and(|next| next.start.is_meanwhile());
        text.push_str(&render_input(round));
        let sections =
            stage.play(round, &mut process, goes_on).await.map_err(|e| format!("round {}: {e}", number + 1))?;
        for (name, lines) in sections.iter().filter(|(_, lines)| !lines.is_empty()) {
            write!(text, "\n== {name}\n{}\n", lines.join("\n")).unwrap();
        }
    }
    let unused = stage.world.unused();
    if !unused.is_empty() {
        return Err(format!("the script contains unused responses: {unused:?}"));
    }
    Ok(stage.named(text))
}

/// Returns the input of a round, as the file contains it.
fn render_input(round: &Round) -> String {
    let mut text = match &round.start {
        Start::Applied(yaml) => format!("\n== applied\n{yaml}\n"),
        Start::Desired(yaml) => format!("\n== desired\n{yaml}\n"),
        Start::Again => "\n== again\n".to_owned(),
        Start::MeanwhileDesired(yaml) => format!("\n== meanwhile desired\n{yaml}\n"),
        Start::MeanwhileStop => "\n== meanwhile stop\n".to_owned(),
    };
    for (name, lines) in [("options", &round.options), ("script", &round.script)] {
        if !lines.is_empty() {
            write!(text, "\n== {name}\n{lines}\n").unwrap();
        }
    }
    text
}

impl Start {
    fn is_meanwhile(&self) -> bool {
        matches!(self, Self::MeanwhileDesired(_) | Self::MeanwhileStop)
    }
}

type Sections = Vec<(&'static str, Vec<String>)>;

impl Runner {
    fn new(scenario: &Scenario) -> Result<Self, String> {
        let mut script = Script::default();
        for round in &scenario.rounds {
            for cue in round.cues()? {
                if let Cue::Recovery(given) = cue {
                    script = *given;
                }
            }
        }
        Ok(Self {
            world: World::new(script),
            journal: MemoryJournal::default(),
            copies: Arc::default(),
            clock: Arc::new(ManualClock::new()),
            dice: Arc::new(Dice::new(1)),
            tape: Tape::default(),
            marks: Arc::default(),
            names: Arc::default(),
            gates: BTreeSet::new(),
            yaml: String::new(),
            processes: 0,
        })
    }

    async fn play(&mut self, round: &Round, process: &mut Option<Process>, goes_on: bool) -> Result<Sections, String> {
        let options = round.options()?;
        let faults = self.prepare(round)?;
        match &round.start {
            Start::Applied(yaml) | Start::Desired(yaml) | Start::MeanwhileDesired(yaml) => self.yaml.clone_from(yaml),
            Start::Again | Start::MeanwhileStop => {}
        }
        let mut sections = Sections::new();
        if round.start.is_meanwhile() {
            let Some(going) = process.as_mut() else { return Err("nothing is under way".into()) };
            let gates = std::mem::take(&mut self.gates);
            if options.paused {
                let running = going.run.schedule.running(|_| true);
                let names = running.into_iter().map(|running| running.step.address.name().clone()).collect();
                going.run.schedule.pause(&names);
                self.release(&gates).await;
                self.run(going).await;
                self.tape.note("a new plan is computed");
                self.plan(going, &options, &mut sections).await?;
                going.run.schedule.resume(&names);
            } else if round.start == Start::MeanwhileStop {
                going.run.stop();
                self.run(going).await;
            } else {
                self.plan(going, &options, &mut sections).await?;
            }
            self.release(&gates).await;
        } else {
            *process = self.start_process(&options, faults, &mut sections).await?;
            if let Some(going) = process.as_mut() {
                self.plan(going, &options, &mut sections).await?;
            }
        }
        if let Some(going) = process.as_mut() {
            let crashed = self.run(going).await;
            if crashed || !goes_on {
                *process = None;
            }
        }
        sections.push(("tape", self.tape.take()));
        self.record_names();
        if matches!(round.start, Start::Applied(_)) {
            return check_untroubled(&sections).map(|()| Sections::new());
        }
        if !goes_on {
            sections.push(("records", render::records(&self.records())));
            sections.push(("world", self.world_lines()));
        }
        Ok(sections)
    }

    /// Releases held calls one after another, so that they always end in the same order.
    async fn release(&self, gates: &BTreeSet<String>) {
        for (number, gate) in gates.iter().enumerate() {
            if number > 0 {
                wait_until_idle().await;
            }
            self.world.release(gate);
        }
    }

    /// Applies the changes before the round, and returns the faults of the journal.
    fn prepare(&mut self, round: &Round) -> Result<Vec<Fault>, String> {
        let mut faults = Vec::new();
        for cue in round.cues()? {
            match cue {
                Cue::Driver(line) => {
                    let held = line.answers.iter().filter_map(|answer| match answer {
                        ScriptedOutcome::Hold(gate) => Some(gate.clone()),
                        _ => None,
                    });
                    self.gates.extend(held);
                    self.world.script(line);
                }
                Cue::Journal(fault) => faults.push(fault),
                Cue::Lose(address) => self.world.remove(&self.id_of(&address, false)?),
                Cue::LoseDeposed(address) => self.world.remove(&self.id_of(&address, true)?),
                Cue::Put(id, json) => self.world.put(&id, &Value::from_json(json)),
                Cue::Change(address, attribute, json) => {
                    self.world.change(&self.id_of(&address, false)?, &attribute, Value::from_json(json));
                }
                Cue::Copy(target, edit) => self.copies.edit(&target, &edit)?,
                Cue::Record(address, edit) => self.edit(&address, &edit)?,
                Cue::Configure(configuration) => self.world.configure(&configuration),
                Cue::Recovery(_) => {}
                Cue::Clock(seconds) => self.clock.advance(Duration::from_secs(seconds)),
            }
        }
        Ok(faults)
    }

    fn id_of(&self, address: &Address, deposed: bool) -> Result<String, String> {
        let missing = || format!("{address} has no such object");
        let record = self.records().remove(address).ok_or_else(missing)?.record;
        let object = if deposed { record.deposed.values().next() } else { record.current.as_ref() };
        object.and_then(|object| object.id()).map(str::to_owned).ok_or_else(missing)
    }

    fn edit(&self, address: &Address, edit: &str) -> Result<(), String> {
        let stored = self.records().remove(address).ok_or_else(|| format!("{address} has no record"))?;
        let mut record = stored.record.as_ref().clone();
        for object in record.current.iter_mut().chain(record.deposed.values_mut()) {
            let object = Arc::make_mut(object);
            match edit {
                "tainted" => object.status = ObjectStatus::Tainted,
                "interrupted" => object.status = ObjectStatus::Interrupted,
                "unprotected" => object.prevent_destroy = false,
                _ => return Err(format!("unknown edit `{edit}`")),
            }
        }
        self.journal.put(&record).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn records(&self) -> Recorded {
        self.journal.load(NAMESPACE).records
    }

    fn load(&self, options: &Options) -> LoadedSource {
        let mut loaded = crate::kit::load(&self.yaml);
        let is_deleted = |shared: &&Arc<Instance>| options.deleting.contains(&shared.address);
        let families = loaded.config.families.values().map(|family| &family.shared);
        for shared in families.filter(is_deleted).cloned().collect::<Vec<_>>() {
            loaded.config.remove(&shared.address.stem);
            loaded.config.add(Arc::new(Instance { deleting: true, ..Instance::clone(&shared) }));
            loaded.config.link();
        }
        let marks = self.marks.lock().unwrap();
        for (address, instance) in &mut loaded.config.instances {
            let instance = Arc::make_mut(instance);
            instance.deleting = options.deleting.contains(address);
            if options.cluster {
                instance.uid = format!("uid-of-{address}").into();
                if marks.contains(&address.to_string()) {
                    instance.has_finalizer = true;
                    instance.record_annotation = instance.uid.clone();
                }
            }
        }
        loaded
    }

    fn engine(&mut self, options: &Options, faults: Vec<Fault>) -> Arc<Engine> {
        self.processes += 1;
        let faults = Mutex::new(faults);
        let hook = move |point: &FaultPoint| {
            let mut faults = faults.lock().unwrap();
            let here = faults.iter().position(|fault| {
                fault.operation == point.operation
                    && fault.moment == point.moment
                    && fault.address == point.record.address
            });
            here.map_or(FaultAction::Proceed, |here| faults.remove(here).verdict)
        };
        self.journal = self.journal.restarted(Arc::new(hook));
        let driver = TapedDriver {
            inner: Scripted::new(Arc::clone(&self.world)),
            tape: self.tape.clone(),
            names: Arc::clone(&self.names),
        };
        let publisher = TapedPublisher { copies: Arc::clone(&self.copies), tape: self.tape.clone() };
        let journal =
            TapedJournal { inner: self.journal.clone(), tape: self.tape.clone(), marks: Arc::clone(&self.marks) };
        let hooks = TapedHooks { inner: Scripted::new(Arc::clone(&self.world)), tape: self.tape.clone() };
        let engine = Engine::new(
            Registry::default().with_family("scripted", Arc::new(driver)).with_publisher(Arc::new(publisher)),
            Arc::new(journal),
            Arc::clone(&self.clock) as _,
            Arc::clone(&self.dice) as _,
            Limits { total: options.parallel.unwrap_or(256), ..Limits::default() },
            Holder { pod: "".into(), process: format!("process-{}", self.processes).into() },
        );
        Arc::new(engine.with_hooks(Arc::new(hooks)))
    }

    /// Starts a process and recovers all open intents. `None`: it has crashed.
    async fn start_process(
        &mut self,
        options: &Options,
        faults: Vec<Fault>,
        sections: &mut Sections,
    ) -> Result<Option<Process>, String> {
        let engine = self.engine(options, faults);
        let config = self.load(options).config;
        let mut held = BTreeMap::new();
        let mut lines = Vec::new();
        for (address, stored) in self.records() {
            let Some(intent) = &stored.record.intent else { continue };
            let instance = config.resource(&address).map(|instance| &**instance);
            let holder = match options.holder_unknown && engine.clock.now() <= intent.deadline {
                true => HolderState::MayRun { until: intent.deadline },
                false => HolderState::Ended,
            };
            let Some((recovery, warnings)) = self.survive(execute::recover(&engine, &stored, instance, holder)).await
            else {
                lines.push(format!("{address}: the process crashes"));
                sections.push(("recovered", lines));
                return Ok(None);
            };
            lines.extend(self.tape.take());
            lines.extend(warnings.iter().map(render::diagnostic));
            lines.push(format!("{address}: {}", render::recovery(&recovery)));
            if let execute::Recovery::Blocked(why, _) = recovery {
                held.insert(address, why);
            }
        }
        sections.push(("recovered", lines));
        let run = Run::new(Arc::clone(&engine), "default".into(), self.records());
        Ok(Some(Process { engine, run, held }))
    }

    /// Plans, and adopts the plan in the run.
    async fn plan(&self, process: &mut Process, options: &Options, sections: &mut Sections) -> Result<(), String> {
        let LoadedSource { config, namespace, diagnostics, .. } = self.load(options);
        let run = &mut process.run;
        let recorded = &run.records;
        let is_other = |address: &&Address| options.other_sources.iter().any(|name| **name == **address.name());
        let others = recorded.keys().filter(is_other).cloned().collect();
        let config = Arc::new(config.with_other_sources(recorded, &others, &BTreeSet::new(), options.destroy));
        let mut scope: BTreeSet<Address> = config.instances.keys().chain(run.records.keys()).cloned().collect();
        let names = scope.iter().map(|address| address.name().clone()).collect();
        scope.extend(run.schedule.touching(&names).cloned());
        let running = run.schedule.running(|_| true);
        scope.extend(running.iter().map(|running| running.step.address.clone()));
        let planning = plan_options(options, &process.held, running.clone(), namespace.clone(), self.dice.number());
        let mut memo = ResponseCache::default();
        let planned = pipeline::plan(&process.engine, &config, &run.records, &planning, &mut memo);
        let Some(made) = self.survive(planned).await else {
            return Err("the process crashed during planning".into());
        };
        let pipeline::OrderedPlan { plan, graph, config, moves } = made;
        sections.push(("moves", moves.iter().map(render::move_of).collect()));
        sections.push(("plan", render::plan(&plan, options.show_values)));
        sections.push(("graph", render::graph(&graph)));
        let shown = diagnostics.iter().chain(config.source_problems()).chain(&plan.diagnostics);
        sections.push(("diagnostics", shown.map(render::diagnostic).collect()));
        let journal = process.engine.journal.clone();
        match self.survive(execute::apply_moves(journal.as_ref(), &mut run.records, &moves)).await {
            Some(Ok(())) => {}
            // The next round continues.
            Some(Err(error)) => {
                self.tape.note(error.to_string());
                return Ok(());
            }
            None => return Ok(()),
        }
        scope.extend(config.instances.keys().cloned());
        let adoption = Adoption {
            scope,
            config,
            plan,
            graph: Arc::new(graph),
            namespace,
            running,
            desired_digests: Arc::default(),
            components: Arc::default(),
        };
        run.schedule.adopt(adoption).map_err(|_| "a step ended during planning".to_owned())
    }

    /// Runs until no call makes progress. Returns whether the process has crashed.
    async fn run(&self, process: &mut Process) -> bool {
        loop {
            let next = async {
                tokio::select! {
                    biased;
                    progress = process.run.next() => progress,
                    () = wait_until_idle() => None,
                }
            };
            match self.survive(next).await {
                None => {
                    self.tape.note("the process crashes");
                    return true;
                }
                Some(None) => return false,
                Some(Some(progress)) => self.tape.note(render::progress(&progress)),
            }
        }
    }

    /// Returns the result of `work`, or `None` if the process crashes first.
    async fn survive<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.world.until_crash() => None,
            () = self.journal.crashed() => None,
            () = self.copies.crashed() => None,
            done = work => Some(done),
        }
    }

    /// Records the names of objects whose create call returned no response.
    fn record_names(&self) {
        let mut names = self.names.lock().unwrap();
        for (id, (address, _)) in self.world.objects() {
            if !names.values().flatten().any(|known| *known == id) {
                names.entry(address.to_string()).or_default().push(id);
            }
        }
    }

    /// Returns a line for each existing object and copy, sorted.
    fn world_lines(&self) -> Vec<String> {
        let objects = self.world.objects();
        let mut lines: Vec<String> = objects
            .iter()
            .map(|(id, (_, value))| self.with_names(format!("{id} {}", render::arguments(value))))
            .collect();
        lines.extend(self.copies.lines());
        lines.sort();
        lines
    }

    /// Replaces generated IDs and keys by readable names.
    fn named(&self, text: String) -> String {
        render::name_keys(&self.with_names(text))
    }

    fn with_names(&self, mut text: String) -> String {
        for (address, ids) in self.names.lock().unwrap().iter() {
            for (number, id) in ids.iter().enumerate().filter(|(_, id)| id.starts_with("obj-")) {
                text = text.replace(id, &format!("{address}.{}", number + 1));
            }
        }
        text
    }
}

/// Checks that the `applied` section was applied without errors.
fn check_untroubled(sections: &Sections) -> Result<(), String> {
    let troubled = |line: &&String| line.contains(": failed") || line.contains("crashes") || line.starts_with("error");
    match sections.iter().flat_map(|(_, lines)| lines).find(troubled) {
        Some(line) => Err(format!("the `applied` section failed: {line}")),
        None => Ok(()),
    }
}

fn plan_options(
    options: &Options,
    held: &BTreeMap<Address, ObjectBlock>,
    running: Vec<purlin::plan::RunningStep>,
    namespace: Value,
    seed: u64,
) -> PlanOptions {
    let held = held.iter().filter(|(address, _)| !running.iter().any(|running| running.step.address == **address));
    PlanOptions {
        mode: match (options.destroy, options.refresh_only) {
            (true, _) => Mode::Destroy,
            (false, true) => Mode::RefreshOnly,
            (false, false) => Mode::Normal,
        },
        refresh: if options.refresh_none { Refresh::None } else { Refresh::All },
        replace: options.replace.iter().cloned().collect(),
        targets: options.target.iter().cloned().collect(),
        blocked: held.map(|(address, held)| (address.clone(), held.clone())).collect(),
        running: running.clone(),
        seed,
        namespace_value: namespace,
        destroy_orphans: !options.cluster,
        max_failed_creates: options.failed_creates,
        ..PlanOptions::default()
    }
}

/// Waits until all other tasks have had enough turns.
async fn wait_until_idle() {
    for _ in 0..IDLE_TURNS {
        tokio::task::yield_now().await;
    }
}
