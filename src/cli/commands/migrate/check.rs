//! Plans a migration before it is written, and changes its manifests until the plan has no changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::as_recorded::AsRecorded;
use crate::cli::view::planning_engine;
use drivers::kubernetes_object::OwnerScope;
use drivers::{KubernetesObject, Providers, Registry};
use engine::load;
use engine::plan::{Plan, PlanOptions, Refresh, ResponseCache};
use migrate::{Adjustments, Gathered, MigrationResult, Problem};
use model::{
    Action, Address, Change, Diagnostic, Path, Reason, Recorded, Segment, Severity, Stored, Value, Version, visible,
};
use process::SystemClock;
use runtime::execute::Limits;
use runtime::pipeline;

/// Each round changes an argument. A resource with more wrong arguments is reported.
const MAX_ROUNDS: usize = 12;

/// A migration and what its next plan changes.
pub struct Checked {
    pub result: MigrationResult,
    /// One problem for each object that the next plan changes.
    pub differences: Vec<Problem>,
    /// The provider configurations that could not be used, so that only the schema was compared.
    pub unchecked: BTreeSet<String>,
}

/// Something that the plan would change.
struct Fault {
    address: Address,
    /// The attributes or fields, such as `spec.config.size`.
    paths: Vec<Path>,
    what: String,
    action: Action,
}

pub struct Check<'a> {
    pub gathered: &'a Gathered,
    /// The manifests of `-f`.
    pub given: &'a [(String, String)],
    /// Configures providers.
    pub configured: &'a Arc<Providers>,
    /// Plans with the schema alone.
    pub unconfigured: &'a Arc<Providers>,
}

impl Check<'_> {
    pub async fn run(&self) -> Result<Checked, Problem> {
        let mut adjustments = Adjustments::default();
        let mut unchecked = BTreeSet::new();
        let mut providers = self.configured;
        let mut rounds = 0;
        loop {
            let marked = |provider: &_, value: &Value| self.unconfigured.mark_configuration(provider, value);
            let mut result = self.gathered.write(&adjustments, marked)?;
            let plan = self.plan(&result, providers).await;
            let failed = unusable(&plan);
            if !failed.is_empty() && Arc::ptr_eq(providers, self.configured) {
                unchecked = failed;
                providers = self.unconfigured;
                continue;
            }
            rounds += 1;
            let faults = self.faults(&plan, &result);
            if faults.is_empty() || rounds == MAX_ROUNDS || !self.adjust(&mut adjustments, &faults) {
                take_records(&mut result, &plan);
                let changes = faults.into_iter().filter(|fault| fault.action != Action::Record);
                let differences = changes.map(|fault| self.problem(fault)).collect();
                return Ok(Checked { result, differences, unchecked });
            }
        }
    }

    async fn plan(&self, result: &MigrationResult, providers: &Arc<Providers>) -> Plan {
        let written = result.files.iter().map(|file| (file.name, file.text.as_str()));
        let given = self.given.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let loaded = load::source::read_strings(&given.chain(written).collect::<Vec<_>>());
        let readings = self.gathered.readings();
        let kubernetes = KubernetesObject::local(OwnerScope::Fixed("migrate".into()), Arc::new(SystemClock));
        let drivers = Registry::built_in(kubernetes).with_providers(Arc::clone(providers));
        let readings = Arc::new(readings);
        let drivers = drivers.map_drivers(|driver| Arc::new(AsRecorded::new(driver, Arc::clone(&readings))));
        let engine = planning_engine(drivers, Limits::default());
        let stored = |record: &model::Record| {
            let stored = Stored { record: Arc::new(record.clone()), version: Version(1) };
            (record.address.clone(), stored)
        };
        let recorded: Recorded = result.records.iter().map(stored).collect();
        let options = PlanOptions {
            refresh: Refresh::None,
            namespace_value: loaded.namespace,
            destroy_orphans: true,
            ..PlanOptions::default()
        };
        pipeline::plan(&engine, &Arc::new(loaded.config), &recorded, &options, &mut ResponseCache::default()).await.plan
    }

    /// What the plan changes, except what Terraform would change too: tainted and deposed objects.
    fn faults(&self, plan: &Plan, result: &MigrationResult) -> Vec<Fault> {
        let tainted = |address: &Address| {
            let record = result.records.iter().find(|record| record.address == *address);
            let current = record.and_then(|record| record.current.as_ref());
            current.is_some_and(|object| object.status != model::ObjectStatus::Ready)
        };
        let is_fault = |change: &&Change| {
            change.deposed.is_none()
                && !matches!(change.action, Action::NoOp | Action::Record | Action::Wait)
                && self.gathered.resource(&change.address.name).is_some()
                && !tainted(&change.address)
        };
        let changed = plan.changes.iter().filter(is_fault).map(|change| fault(change, plan));
        let marked = plan.changes.iter().filter_map(|change| marks(change, plan, result));
        let faults: Vec<Fault> = changed.chain(marked).collect();
        // Objects that wait for others have no fault of their own.
        let is_cause = |fault: &Fault| !matches!(fault.action, Action::Read) && !fault.what.is_empty();
        let (causes, others): (Vec<Fault>, Vec<Fault>) = faults.into_iter().partition(is_cause);
        if causes.is_empty() { others } else { causes }
    }

    /// Changes the manifests of the faults. `false`: nothing is left to change.
    fn adjust(&self, adjustments: &mut Adjustments, faults: &[Fault]) -> bool {
        let mut any = false;
        for fault in faults {
            any |= self.adjust_one(adjustments, fault);
        }
        any
    }

    fn adjust_one(&self, adjustments: &mut Adjustments, fault: &Fault) -> bool {
        let name = &fault.address.name;
        let top = |path: &Path, at: usize| match path.0.get(at) {
            Some(Segment::Name(name)) => Some(Arc::clone(name)),
            _ => None,
        };
        if matches!(fault.action, Action::Create | Action::Destroy | Action::Forget) {
            return adjustments.instances.insert(Arc::clone(name));
        }
        let mut arguments: BTreeSet<Arc<str>> = BTreeSet::new();
        for path in &fault.paths {
            match (top(path, 0).as_deref(), top(path, 1).as_deref()) {
                (Some("spec"), Some("config")) => arguments.extend(top(path, 2)),
                (Some("spec"), Some("count" | "forEach" | "enabled")) => {
                    return adjustments.instances.insert(Arc::clone(name));
                }
                (Some("spec"), _) => return adjustments.settings.insert(Arc::clone(name)),
                _ => arguments.extend(top(path, 0)),
            }
        }
        let (known, settable) = self.gathered.arguments(&fault.address);
        let why = format!("with its expression, {}", fault.what);
        let mut any = false;
        if fault.action == Action::Record {
            for argument in &arguments {
                if adjustments.argument(name, argument).is_none() {
                    any |= adjustments.adjust(name, argument, &why);
                }
            }
            return any;
        }
        for argument in arguments.iter().filter(|argument| settable.contains(*argument)) {
            any |= adjustments.adjust(name, argument, &why);
        }
        if any {
            return true;
        }
        // The cause is another argument.
        for argument in &known {
            if adjustments.argument(name, argument).is_none() {
                any |= adjustments.adjust(name, argument, &why);
            }
        }
        any
    }

    fn problem(&self, fault: Fault) -> Problem {
        let name = self.gathered.resource(&fault.address.name).unwrap_or_else(|| fault.address.to_string());
        let key = &fault.address.key;
        let word = match fault.action {
            Action::Create => "creates it",
            Action::Destroy | Action::Forget => "destroys it",
            Action::Replace => "replaces it",
            Action::Blocked => "cannot change it",
            _ => "updates it",
        };
        let named: Vec<String> = fault.paths.iter().map(|path| format!("`{path}`")).collect();
        let place = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        let is_known = matches!(fault.action, Action::Blocked) && !fault.what.is_empty();
        let why = if is_known { format!(": {}", fault.what) } else { String::new() };
        let hint = "`--allow-changes` writes the manifests anyway, so that you can correct them";
        Problem::hinted(format!("`{name}{key}`: the next plan {word}{place}{why}"), hint)
    }
}

/// The names of the provider configurations that cannot be used.
fn unusable(plan: &Plan) -> BTreeSet<String> {
    let is_error = |one: &&Diagnostic| one.severity == Severity::Error && one.reason == Reason::ProviderNotReady;
    plan.diagnostics.iter().filter(is_error).map(|one| one.summary.clone()).collect()
}

fn fault(change: &Change, plan: &Plan) -> Fault {
    let own = |one: &&Diagnostic| one.severity == Severity::Error && one.address.as_ref() == Some(&change.address);
    let errors: Vec<&Diagnostic> = plan.diagnostics.iter().filter(own).collect();
    let mut paths: Vec<Path> = errors.iter().filter_map(|one| one.path.clone()).collect();
    let mut what = match errors.first() {
        Some(first) => Diagnostic { path: None, ..(*first).clone() }.message(),
        None if change.waiting_for.is_empty() => change.message.clone(),
        None => String::new(),
    };
    if matches!(change.action, Action::Update | Action::Replace) {
        if let (Some(before), Some(after)) = (&change.before, &change.after) {
            paths.extend(visible::differences(before, after));
        }
        paths.extend(change.replace_paths.iter().cloned());
        paths.sort();
        paths.dedup();
        "the next plan updates it".clone_into(&mut what);
    }
    if matches!(change.action, Action::Create | Action::Destroy | Action::Forget) {
        "the instances are others".clone_into(&mut what);
    }
    Fault { address: change.address.clone(), paths, what, action: change.action }
}

/// An object whose values become sensitive, because an expression also reads a sensitive value, or the reverse.
fn marks(change: &Change, plan: &Plan, result: &MigrationResult) -> Option<Fault> {
    if change.action != Action::Record || change.deposed.is_some() {
        return None;
    }
    let record = result.records.iter().find(|record| record.address == change.address)?;
    let (before, after) = (&record.current.as_ref()?.value, &plan.prepared.get(&change.address)?.recorded.value);
    let Value::Map(entries) = after else { return None };
    let differs = |(name, value): &(&Arc<str>, &Value)| before.get(name) != Some(*value);
    let paths: Vec<Path> = entries.iter().filter(differs).map(|(name, _)| Path::default().name(name.clone())).collect();
    let (address, action) = (change.address.clone(), change.action);
    let what = "other values of the object are sensitive".to_owned();
    (!paths.is_empty()).then_some(Fault { address, paths, what, action })
}

/// Takes what the plan would only record into the records.
fn take_records(result: &mut MigrationResult, plan: &Plan) {
    let is_record = |change: &&Change| change.action == Action::Record && change.deposed.is_none();
    let recorded: BTreeMap<&Address, _> = plan
        .changes
        .iter()
        .filter(is_record)
        .filter_map(|change| Some((&change.address, plan.prepared.get(&change.address)?)))
        .collect();
    for record in &mut result.records {
        if let Some(step) = recorded.get(&record.address) {
            record.current = Some(Arc::new(step.recorded.clone()));
        }
    }
}
