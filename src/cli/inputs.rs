//! The inputs of a plan, from files or a cluster: the desired state, the records, and held objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::args::RefreshChoice;
use super::failure::Failure;
use super::options::Planning;
use super::outputs::{OutputChanges, RecordedScope};
use engine::graph::ActionGraph;
use engine::load::{self, Config, Coverage, Drift};
use engine::plan::moves::{self, Move};
use engine::plan::render::moves::possible_moves;
use engine::plan::{Mode, ObjectBlock, Plan, PlanOptions, Refresh, ResponseCache, RunningStep, select};
use model::suggest::closest;
use model::{
    Action, Address, Change, ChangeCause, Diagnostic, Diagnostics, InstanceKey, Name, Reason, Recorded, Value, Words,
    has_errors,
};
use runtime::execute::{Adoption, Engine};
use runtime::pipeline;
use runtime::store::{LastFailure, RecordedConfiguration};
use terraform::Terraform;

/// The desired and recorded state of one namespace.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub config: Arc<Config>,
    /// The digest of the manifests' contents.
    pub digest: [u8; 32],
    pub recorded: Recorded,
    /// Instances that have a record according to the index of their family.
    pub indexed: BTreeSet<Address>,
    /// The Resources whose family index was lost and replaced.
    pub rebuilt_indexes: BTreeSet<Name>,
    /// The variable `ns` of expressions.
    pub namespace: Value,
    /// Problems that are not about one object, such as unreadable files.
    pub problems: Diagnostics,
    /// Objects that must not be changed for now.
    pub held: BTreeMap<Address, ObjectBlock>,
    /// When objects were last read, if known.
    pub reads: BTreeMap<Address, Timestamp>,
    /// The last failure of each object, if known.
    pub failures: BTreeMap<Address, LastFailure>,
    /// What the given sources cover.
    pub coverage: Coverage,
    /// What is known of Terraform configurations beside their objects, by source.
    pub configurations: BTreeMap<Arc<str>, RecordedConfiguration>,
    /// The source of the Terraform configuration.
    pub module: Option<Arc<str>>,
    /// The Terraform configuration itself.
    pub terraform: Option<Arc<Terraform>>,
    /// Whether records without a Resource are orphans to destroy (files) or are kept (cluster).
    pub destroy_orphans: bool,
}

/// A plan with its graph and diagnostics.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PlanResult {
    pub plan: Plan,
    /// The desired state, with the instances of every family. A saved plan does not contain it.
    #[serde(skip)]
    pub config: Arc<Config>,
    /// Records that move to another address before the steps run.
    pub moves: Vec<Move>,
    pub graph: ActionGraph,
    /// The diagnostics of reading, planning and ordering.
    pub diagnostics: Diagnostics,
    /// The objects of sources that are not given.
    pub other_sources: OtherSources,
    /// The recorded objects whose source has changed.
    pub new_sources: BTreeMap<Address, Arc<str>>,
    /// The outputs of the Terraform configuration.
    pub outputs: OutputChanges,
    /// Only records are changed, to match the objects that were read.
    pub refresh_only: bool,
    /// The objects are to be destroyed, as `purlin destroy` does.
    pub destroys: bool,
    /// From which generated names and identifiers come.
    pub seed: u64,
    /// Hints at moves that it may miss.
    pub possible_moves: Vec<String>,
    /// The plan is one of a Terraform configuration.
    pub is_terraform: bool,
}

/// The objects of sources that are not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherSources {
    /// How many are left unchanged.
    pub unchanged: usize,
    /// How many have a manifest in the given sources now, and belong to these from now on.
    pub taken_over: usize,
}

/// Parameters of a plan that are not flags of the command.
#[derive(Clone, Debug, Default)]
pub struct PlanParameters {
    pub mode: Mode,
    /// Steps in flight.
    pub running: Vec<RunningStep>,
    /// The maximum number of consecutive failed creations.
    pub max_failed_creates: Option<u32>,
    /// That of an earlier plan, so that the same values are generated. `None`: a new one.
    pub seed: Option<u64>,
}

impl PlanParameters {
    pub fn destroy() -> Self {
        Self { mode: Mode::Destroy, ..Self::default() }
    }
}

impl Inputs {
    pub async fn plan(
        &self,
        engine: &Engine,
        planning: &Planning,
        purpose: PlanParameters,
    ) -> anyhow::Result<PlanResult> {
        let destroys = purpose.mode == Mode::Destroy;
        let others = self.coverage.others(&self.recorded, destroys);
        let config = self.whole_config(destroys);
        let seed = purpose.seed.unwrap_or_else(|| engine.random.number());
        let options = PlanOptions {
            mode: if planning.refresh_only { Mode::RefreshOnly } else { purpose.mode },
            refresh: self.refresh(planning.refresh, engine.clock.now()),
            targets: planning.targets.clone(),
            replace: planning.replace.clone(),
            blocked: self.held.clone(),
            indexed: self.indexed.clone(),
            rebuilt_indexes: self.rebuilt_indexes.clone(),
            running: purpose.running,
            seed,
            namespace_value: self.namespace.clone(),
            destroy_orphans: self.destroy_orphans,
            max_failed_creates: purpose.max_failed_creates,
            ..PlanOptions::default()
        };
        let planned = pipeline::plan(engine, &config, &self.recorded, &options, &mut ResponseCache::default()).await;
        let pipeline::OrderedPlan { plan, graph, config, moves } = planned;
        require_known(&plan, planning, &moves)?;
        let mut diagnostics = self.all_diagnostics(&plan, destroys);
        let refresh_only = planning.refresh_only;
        let new_sources = match options.mode {
            Mode::Normal => self.new_sources(&plan, &config, &moves),
            Mode::Destroy | Mode::RefreshOnly => BTreeMap::new(),
        };
        let other_sources = self.count_other_sources(&plan, &others, &new_sources);
        diagnostics.extend(self.other_manifests(&others, &new_sources));
        let possible_moves = possible_moves(plan.current_changes(), |address| config.resource(address).is_some());
        let outputs = match options.mode {
            // Those of objects that are not selected stay.
            Mode::Destroy if !planning.targets.is_empty() => OutputChanges::default(),
            Mode::Destroy => OutputChanges::removal(self.stored_outputs()),
            Mode::Normal | Mode::RefreshOnly => self.output_changes(&plan, &config),
        };
        Ok(PlanResult {
            possible_moves,
            is_terraform: !config.modules.is_empty(),
            plan,
            config,
            moves,
            graph,
            diagnostics,
            other_sources,
            new_sources,
            outputs,
            refresh_only,
            destroys,
            seed,
        })
    }

    /// The outputs of the Terraform configuration that the last apply has recorded.
    fn stored_outputs(&self) -> &str {
        let stored = self.module.as_ref().and_then(|source| self.configurations.get(source));
        stored.map(|known| known.outputs.as_str()).unwrap_or_default()
    }

    fn output_changes(&self, plan: &Plan, config: &Config) -> OutputChanges {
        let (recorded, readings, namespace) = (&self.recorded, &plan.readings().collect(), &self.namespace);
        OutputChanges::new(
            self.stored_outputs(),
            plan,
            RecordedScope { config, recorded, readings, namespace, planned: &BTreeMap::new(), is_final: false },
        )
    }

    /// Returns the configuration together with the recorded objects of sources that are not given.
    pub fn whole_config(&self, destroys: bool) -> Arc<Config> {
        let others = self.coverage.others(&self.recorded, destroys);
        match others.is_empty() {
            true => Arc::clone(&self.config),
            false => Arc::new(self.coverage.complete(&self.config, &self.recorded, &others, destroys)),
        }
    }

    /// Returns the new sources of the selected objects.
    fn new_sources(&self, plan: &Plan, config: &Config, moves: &[Move]) -> BTreeMap<Address, Arc<str>> {
        let mut sources = match moves.is_empty() {
            true => config.new_sources(&self.recorded),
            false => config.new_sources(&moves::apply_moves(&self.recorded, moves)),
        };
        let unselected = plan.changes().filter(|change| change.because == Some(ChangeCause::NotSelected));
        unselected.for_each(|change| drop(sources.remove(&change.address)));
        sources
    }

    fn count_other_sources(
        &self,
        plan: &Plan,
        others: &BTreeSet<Address>,
        new_sources: &BTreeMap<Address, Arc<str>>,
    ) -> OtherSources {
        let current = plan.current_changes().filter(|change| change.before.is_some());
        let of_others = new_sources.keys().filter(|address| others.contains(*address));
        let records = of_others.filter_map(|address| self.recorded.get(address));
        OtherSources {
            unchanged: current.filter(|change| change.because == Some(ChangeCause::OtherSource)).count(),
            taken_over: records.filter(|stored| stored.record.source.is_some()).count(),
        }
    }

    /// Warns of each file that is not given and still contains the manifest of an object that is taken over.
    fn other_manifests(
        &self,
        others: &BTreeSet<Address>,
        new_sources: &BTreeMap<Address, Arc<str>>,
    ) -> impl Iterator<Item = Diagnostic> {
        let mut taken: BTreeMap<&str, Vec<&Address>> = BTreeMap::new();
        for address in new_sources.keys().filter(|address| others.contains(*address)) {
            let source = self.recorded.get(address).and_then(|stored| stored.record.source.as_deref());
            let source = source.filter(|source| *source != load::STDIN);
            source.into_iter().for_each(|source| taken.entry(source).or_default().push(address));
        }
        let paths = self.coverage.paths();
        taken.into_iter().filter_map(move |(source, addresses)| {
            let path = paths.file(source);
            let config = path.is_file().then(|| load::read(&[path], paths).config)?;
            let standing = addresses.into_iter().find(|address| config.resource(address).is_some())?;
            let what = format!("takes over the object of `{source}`, which is not given and still contains its manifest");
            let hint = "if this is another environment, use a state file for each, and select it with --state; otherwise, \
                        remove the other manifest";
            Some(Diagnostic::warning(standing, Reason::OtherEnvironment, what).hint(hint))
        })
    }

    fn refresh(&self, choice: RefreshChoice, now: Timestamp) -> Refresh {
        match choice {
            RefreshChoice::All => Refresh::All,
            RefreshChoice::None => Refresh::None,
            RefreshChoice::Due => Refresh::Due(due(&self.config, &self.recorded, &self.reads, choice, now)),
        }
    }

    /// All configured and recorded objects, and families, whose instances are known only to a plan.
    pub fn addresses(&self) -> BTreeSet<Address> {
        let families = self.config.families.values().map(|family| &family.shared.address);
        self.config.instances.keys().chain(self.recorded.keys()).chain(families).cloned().collect()
    }

    /// Holds objects with an open intent. `resolution` explains how the intent is resolved.
    pub fn hold_open_intents(&mut self, resolution: &str) {
        for (address, stored) in &self.recorded {
            if let Some(intent) = &stored.record.intent {
                let (operation, started) = (intent.operation.as_str(), intent.started);
                let message =
                    format!("the {operation} that started at {started:.0} is running or was interrupted; {resolution}");
                self.held.insert(address.clone(), ObjectBlock { reason: Reason::OperationInProgress, message });
            }
        }
    }

    /// Omits problems of reading that the plan repeats as the reason for holding an object.
    fn all_diagnostics(&self, plan: &Plan, destroys: bool) -> Diagnostics {
        let general: Vec<&Diagnostic> = plan.diagnostics.iter().filter(|problem| problem.address.is_none()).collect();
        let mut problems = self.coverage.problems(&self.problems, &self.recorded, destroys);
        problems.retain(|problem| !general.contains(&problem));
        problems.extend(plan.diagnostics.iter().cloned());
        problems
    }
}

/// Returns the recorded objects to read. `reads` holds the times of their last reads, if known.
pub fn due(
    config: &Config,
    recorded: &Recorded,
    reads: &BTreeMap<Address, Timestamp>,
    choice: RefreshChoice,
    now: Timestamp,
) -> BTreeSet<Address> {
    match choice {
        RefreshChoice::All => recorded.keys().cloned().collect(),
        RefreshChoice::None => BTreeSet::new(),
        RefreshChoice::Due => recorded
            .keys()
            .filter(|address| next_read(config, reads, address).is_none_or(|at| at <= now))
            .cloned()
            .collect(),
    }
}

fn next_read(config: &Config, reads: &BTreeMap<Address, Timestamp>, address: &Address) -> Option<Timestamp> {
    let interval = config.instances.get(address).map_or(Drift::default(), |instance| instance.drift).interval;
    reads.get(address)?.checked_add(SignedDuration::try_from(interval).ok()?).ok()
}

/// Checks that the objects of `--target` and `--replace` exist in the plan, and that replaced objects are selected.
fn require_known(plan: &Plan, planning: &Planning, moves: &[Move]) -> anyhow::Result<()> {
    let targets = planning.targets.iter().map(|address| ("--target", address));
    let mut flags = targets.chain(planning.replace.iter().map(|address| ("--replace", address)));
    if let Some((flag, address)) = flags.find(|(_, address)| is_of_other_source(address, plan)) {
        let source = Words::of(address).source();
        let message = format!("{flag} names `{address}`, whose {source} is not in the given sources");
        return Err(Failure::hinted(message, format!("specify its {source} too, with another -f")));
    }
    for target in &planning.targets {
        if !plan.changes().any(|change| select::matches(target, &change.address)) {
            return Err(moved("--target", target, moves).unwrap_or_else(|| unknown("--target", target, plan)));
        }
    }
    for address in &planning.replace {
        match plan.change(address) {
            None if moves.iter().any(|one| one.from == *address) => {
                return Err(moved("--replace", address, moves).unwrap_or_else(|| unknown("--replace", address, plan)));
            }
            None => return Err(whole_family(address, plan).unwrap_or_else(|| unknown("--replace", address, plan))),
            Some(change) if change.because == Some(ChangeCause::NotSelected) => {
                let message = format!("--replace names `{address}`, which --target excludes");
                return Err(Failure::hinted(message, format!("add `--target {address}`")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Whether all objects of the address belong to manifests that are not in the given sources.
fn is_of_other_source(address: &Address, plan: &Plan) -> bool {
    let mut changes = plan.changes().filter(|change| select::matches(address, &change.address)).peekable();
    changes.peek().is_some() && changes.all(|change| change.because == Some(ChangeCause::OtherSource))
}

fn moved(flag: &str, address: &Address, moves: &[Move]) -> Option<anyhow::Error> {
    let to = &moves.iter().find(|one| select::matches(address, &one.from))?.to;
    let message = format!("{flag} names `{address}`, which moves to `{to}`");
    Some(Failure::hinted(message, format!("use `{flag} {to}`")))
}

/// A whole family cannot be replaced with one flag; the hint lists the flags for its instances.
fn whole_family(address: &Address, plan: &Plan) -> Option<anyhow::Error> {
    const MAX_FLAGS: usize = 5;
    let instances =
        plan.current_changes().filter(|change| address.key == InstanceKey::None && change.address.stem == address.stem);
    let count = instances.clone().count();
    let mut flags: Vec<String> =
        instances.take(MAX_FLAGS).map(|change| format!("--replace '{}'", change.address)).collect();
    if count > MAX_FLAGS {
        flags.push("...".to_owned());
    }
    let message = format!("--replace names `{address}`, which is a family of {count} objects");
    (count > 0).then(|| Failure::hinted(message, format!("specify the instances to replace: {}", flags.join(" "))))
}

fn unknown(flag: &str, address: &Address, plan: &Plan) -> anyhow::Error {
    let message = format!("{flag} names `{address}`, which is neither configured nor recorded");
    let instances: Vec<&Address> =
        plan.changes().map(|change| &change.address).filter(|other| other.stem == address.stem).collect();
    let text = address.to_string();
    let names: Vec<String> = plan.changes().map(|change| change.address.to_string()).collect();
    let hint = match (instances.as_slice(), closest(&text, names.iter().map(String::as_str))) {
        ([first, ..], _) => format!("did you mean `{first}`?"),
        ([], Some(meant)) => format!("did you mean `{meant}`?"),
        ([], None) => "`purlin get` lists the objects".to_owned(),
    };
    Failure::hinted(message, hint)
}

impl PlanResult {
    /// A plan of which only the changes and problems are known. What it keeps counts as configured.
    pub fn of_changes(changes: impl IntoIterator<Item = Change>, diagnostics: Diagnostics) -> Self {
        let plan: Plan = changes.into_iter().collect();
        let possible_moves = possible_moves(plan.current_changes(), |_| true);
        Self { plan, diagnostics, possible_moves, ..Self::default() }
    }

    pub fn adoption(self, mut scope: BTreeSet<Address>, namespace: Value, running: Vec<RunningStep>) -> Adoption {
        scope.extend(self.config.instances.keys().cloned());
        Adoption {
            scope,
            config: self.config,
            plan: self.plan,
            graph: Arc::new(self.graph),
            namespace,
            running,
            desired_digests: Arc::default(),
            components: Arc::default(),
        }
    }

    /// Returns the objects that were read: those that are up to date, and the others, which stay due for another read.
    pub fn read_objects(&self) -> (BTreeSet<Address>, BTreeSet<Address>) {
        let read = self.plan.objects.iter().filter(|(address, object)| object.is_read && !address.is_data());
        read.map(|(address, _)| address.clone()).partition(|address| {
            self.plan
                .change(address)
                .is_some_and(|change| matches!(change.action, Action::NoOp | Action::Record) && change.drift.is_none())
        })
    }

    /// If true, the exit code is 1.
    pub fn has_errors(&self) -> bool {
        has_errors(&self.diagnostics)
    }

    /// Whether nothing of the plan is applied because of its errors. A plan that only updates records evaluates no
    /// manifest.
    pub fn stops_at_errors(&self) -> bool {
        self.has_errors() && !self.refresh_only
    }

    /// Whether the plan changes anything other than the records of managed objects.
    pub fn has_changes(&self) -> bool {
        self.plan.changes().any(Change::is_change)
    }

    /// Whether an apply would change anything that Terraform counts: objects, and the outputs of a configuration.
    pub fn has_changes_with_outputs(&self) -> bool {
        self.has_changes() || !self.outputs.is_empty()
    }

    /// Whether the user must confirm the plan. For `--refresh-only`, changes of records need a confirmation too.
    pub fn needs_confirmation(&self) -> bool {
        self.has_changes() || (self.refresh_only && self.has_steps())
    }

    /// Whether there are any steps, including those that only write a record.
    pub fn has_steps(&self) -> bool {
        !self.graph.is_empty() || !self.moves.is_empty()
    }
}
