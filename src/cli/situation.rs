//! What a command starts from, wherever it was read: the desired state, the records, and what stands in the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::args::RefreshChoice;
use super::failure::Failure;
use super::options::Planning;
use crate::execute::{Adoption, Engine};
use crate::graph::ActionGraph;
use crate::load::{self, Config, Drift};
use crate::model::{Action, Address, Change, Diagnostic, Diagnostics, InstanceKey, Reason, Recorded, Severity, Value};
use crate::pipeline;
use crate::plan::moves::Move;
use crate::plan::{Held, Memo, Mode, Plan, PlanOptions, Refresh, RunningStep, select};

/// Desired and recorded state of one namespace.
#[derive(Clone, Debug, Default)]
pub struct Situation {
    /// What is wanted.
    pub config: Arc<Config>,
    /// Of the texts that it was read from.
    pub digest: [u8; 32],
    /// What is recorded.
    pub recorded: Recorded,
    /// Instances that had a record, as the index of their family says.
    pub indexed: BTreeSet<Address>,
    /// `ns` of expressions.
    pub namespace: Value,
    /// Problems that concern no object of the plan, such as files that could not be read.
    pub problems: Diagnostics,
    /// Objects that must be left alone for now.
    pub held: BTreeMap<Address, Held>,
    /// When objects were last looked at, as far as that is known.
    pub reads: BTreeMap<Address, Timestamp>,
    /// A record without a Resource is an orphan (files), or abandoned (cluster).
    pub destroy_orphans: bool,
}

/// A plan with its graph, and everything there is to say about it.
#[derive(Debug, Default)]
pub struct Planned {
    /// What will be done.
    pub plan: Plan,
    /// What is wanted, with the instances of every family that the plan has made out.
    pub config: Arc<Config>,
    /// Records that get another address first.
    pub moves: Vec<Move>,
    /// In which order.
    pub graph: ActionGraph,
    /// All problems: of reading, planning and ordering.
    pub diagnostics: Diagnostics,
    /// No object is changed; the records follow what was read.
    pub refresh_only: bool,
    /// With what it was made, to make it once more.
    pub basis: Basis,
}

/// What a plan takes besides configuration, records and flags: with the same it is the same.
#[derive(Clone, Debug, Default)]
pub struct Basis {
    /// The seed of everything drawn.
    pub seed: u64,
    /// What is read.
    pub refresh: Refresh,
}

/// What a plan is for, besides the flags of the command.
#[derive(Clone, Debug, Default)]
pub struct Purpose {
    /// Towards the configuration, or towards nothing.
    pub mode: Mode,
    /// Steps under way.
    pub running: Vec<RunningStep>,
    /// Cap on failed creations in a row.
    pub max_failed_creates: Option<u32>,
    /// To make the same plan as before.
    pub basis: Option<Basis>,
}

impl Purpose {
    /// Towards nothing.
    pub fn destroy() -> Self {
        Self { mode: Mode::Destroy, ..Self::default() }
    }
}

impl Situation {
    /// Plans, and orders the steps.
    pub async fn plan(&self, engine: &Engine, planning: &Planning, purpose: Purpose) -> anyhow::Result<Planned> {
        let now = engine.clock.now();
        let drawn = || Basis { seed: engine.random.number(), refresh: self.refresh(planning.refresh, now) };
        let basis = purpose.basis.unwrap_or_else(drawn);
        let options = PlanOptions {
            mode: if planning.refresh_only { Mode::RefreshOnly } else { purpose.mode },
            refresh: basis.refresh.clone(),
            targets: planning.targets.clone(),
            replace: planning.replace.clone(),
            held: self.held.clone(),
            indexed: self.indexed.clone(),
            running: purpose.running,
            seed: basis.seed,
            namespace_value: self.namespace.clone(),
            destroy_orphans: self.destroy_orphans,
            max_failed_creates: purpose.max_failed_creates,
            ..PlanOptions::default()
        };
        let made = pipeline::plan(engine, &self.config, &self.recorded, &options, &mut Memo::default()).await;
        let pipeline::Planned { plan, graph, config, moves } = made;
        require_known(&plan, planning, &moves)?;
        let diagnostics = self.all_diagnostics(&plan);
        Ok(Planned { plan, config, moves, graph, diagnostics, refresh_only: planning.refresh_only, basis })
    }

    fn refresh(&self, choice: RefreshChoice, now: Timestamp) -> Refresh {
        match choice {
            RefreshChoice::All => Refresh::All,
            RefreshChoice::None => Refresh::None,
            RefreshChoice::Due => Refresh::Due(due(&self.config, &self.recorded, &self.reads, choice, now)),
        }
    }

    /// Every object that is wanted or recorded, and the Resources of which only a plan tells which objects there are.
    pub fn addresses(&self) -> BTreeSet<Address> {
        let families = self.config.families.values().map(|family| &family.shared.address);
        self.config.instances.keys().chain(self.recorded.keys()).chain(families).cloned().collect()
    }

    /// Leaves objects with an open operation alone. `way_out` says who closes it.
    pub fn hold_open_intents(&mut self, way_out: &str) {
        for (address, stored) in &self.recorded {
            if let Some(intent) = &stored.record.intent {
                let (operation, started) = (intent.operation.as_str(), intent.started);
                let message = format!("the {operation} that began at {started:.0} is running or was cut; {way_out}");
                self.held.insert(address.clone(), Held { reason: Reason::OperationInProgress, message });
            }
        }
    }

    /// What reading found may have been repeated by the plan, as the reason for which it holds something.
    fn all_diagnostics(&self, plan: &Plan) -> Diagnostics {
        let general: Vec<&Diagnostic> = plan.diagnostics.iter().filter(|found| found.address.is_none()).collect();
        let mut all: Diagnostics = self.problems.iter().filter(|problem| !general.contains(problem)).cloned().collect();
        all.extend(plan.diagnostics.iter().cloned());
        all
    }
}

/// The recorded objects that are to be read. `reads`: when they were read last, as far as that is known.
pub fn due(
    config: &Config,
    recorded: &Recorded,
    reads: &BTreeMap<Address, Timestamp>,
    choice: RefreshChoice,
    now: Timestamp,
) -> BTreeSet<Address> {
    let due_at = |address: &Address| {
        let interval = config.instances.get(address).map_or(Drift::default(), |instance| instance.drift).interval;
        reads.get(address)?.checked_add(SignedDuration::try_from(interval).ok()?).ok()
    };
    let is_due = |address: &&Address| match choice {
        RefreshChoice::All => true,
        RefreshChoice::None => false,
        RefreshChoice::Due => due_at(address).is_none_or(|at| at <= now),
    };
    recorded.keys().filter(is_due).cloned().collect()
}

/// What the flags name must be there, and what is to be replaced must be selected. The plan has every object.
fn require_known(plan: &Plan, planning: &Planning, moves: &[Move]) -> anyhow::Result<()> {
    let known = |target: &Address| plan.changes.iter().any(|change| select::means(target, &change.address));
    let moved = |flag: &str, address: &Address| {
        let to = &moves.iter().find(|one| select::means(address, &one.from))?.to;
        let message = format!("{flag} names `{address}`, which is moved to `{to}`");
        Some(Failure::hinted(message, format!("write `{flag} {to}`")))
    };
    if let Some(target) = planning.targets.iter().find(|target| !known(target)) {
        return Err(moved("--target", target).unwrap_or_else(|| unknown("--target", target, plan)));
    }
    for address in &planning.replace {
        let change = plan.changes.iter().find(|change| change.address == *address && change.deposed.is_none());
        match change {
            None if moves.iter().any(|one| one.from == *address) => {
                return Err(moved("--replace", address).unwrap_or_else(|| unknown("--replace", address, plan)));
            }
            None => return Err(whole_family(address, plan).unwrap_or_else(|| unknown("--replace", address, plan))),
            Some(change) if change.because.as_deref() == Some(select::NOT_SELECTED) => {
                let message = format!("--replace names `{address}`, which --target leaves out");
                return Err(Failure::hinted(message, format!("add `--target {address}`")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A family is replaced instance by instance: which ones are meant is to be said.
fn whole_family(address: &Address, plan: &Plan) -> Option<anyhow::Error> {
    const MOST_TOLD: usize = 5;
    let current = plan.changes.iter().filter(|change| change.deposed.is_none());
    let instances = current.filter(|change| address.key == InstanceKey::None && change.address.name == address.name);
    let count = instances.clone().count();
    let mut flags: Vec<String> =
        instances.take(MOST_TOLD).map(|change| format!("--replace '{}'", change.address)).collect();
    if count > MOST_TOLD {
        flags.push("...".to_owned());
    }
    let message = format!("--replace names `{address}`, which stands for {count} objects");
    (count > 0).then(|| Failure::hinted(message, format!("name those that are meant: {}", flags.join(" "))))
}

fn unknown(flag: &str, address: &Address, plan: &Plan) -> anyhow::Error {
    let message = format!("{flag} names `{address}`, which is neither wanted nor recorded");
    let instances: Vec<&Address> =
        plan.changes.iter().map(|change| &change.address).filter(|other| other.name == address.name).collect();
    let text = address.to_string();
    let names: Vec<String> = plan.changes.iter().map(|change| change.address.to_string()).collect();
    let hint = match (instances.as_slice(), load::closest(&text, names.iter().map(String::as_str))) {
        ([first, ..], _) => format!("there is `{first}`"),
        ([], Some(meant)) => format!("did you mean `{meant}`?"),
        ([], None) => "`purlin get` lists the objects".to_owned(),
    };
    Failure::hinted(message, hint)
}

impl Planned {
    /// The plan as a run takes it.
    pub fn adoption(self, mut scope: BTreeSet<Address>, namespace: Value, running: Vec<RunningStep>) -> Adoption {
        scope.extend(self.config.instances.keys().cloned());
        let wishes = Arc::default();
        Adoption { scope, config: self.config, plan: self.plan, graph: self.graph, namespace, running, wishes }
    }

    /// The objects that were looked at: those that are as they should be, and those that are not, which are due again
    /// until somebody has seen to it.
    pub fn looked_at(&self) -> (BTreeSet<Address>, BTreeSet<Address>) {
        let at_rest = |change: &Change| {
            matches!(change.action, Action::NoOp | Action::Record) && change.drift.is_none() && change.deposed.is_none()
        };
        let resting: BTreeSet<&Address> =
            self.plan.changes.iter().filter(|change| at_rest(change)).map(|change| &change.address).collect();
        let objects = self.plan.read.iter().filter(|address| !address.is_data());
        objects.cloned().partition(|address| resting.contains(address))
    }

    /// Whether something is wrong: the exit code is 1 then, whatever else is done.
    pub fn has_errors(&self) -> bool {
        has_errors(&self.diagnostics)
    }

    /// Whether anything outside of the records would change.
    pub fn has_changes(&self) -> bool {
        self.plan.changes.iter().any(is_change)
    }

    /// Whether a person is to say yes first. A record that goes, or follows somebody else's change, is what a refresh
    /// is about.
    pub fn needs_consent(&self) -> bool {
        self.has_changes() || (self.refresh_only && self.has_steps())
    }

    /// Whether there is any step, be it one that only writes a record.
    pub fn has_steps(&self) -> bool {
        !self.graph.is_empty() || !self.moves.is_empty()
    }
}

/// Whether a list of problems holds an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Whether a change is one in the eyes of a user.
pub fn is_change(change: &Change) -> bool {
    match change.action {
        Action::NoOp | Action::Record | Action::Wait | Action::Read | Action::Blocked => false,
        Action::Create | Action::Update | Action::Replace | Action::Destroy | Action::Forget => true,
    }
}
