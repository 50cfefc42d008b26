//! Local mode: the desired state is in files, the records are in one SQLite file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;

use super::cluster;
use super::failure::Failure;
use super::init;
use super::inputs::Inputs;
use super::options::{Files, source_paths};
use super::other_records;
use super::output::Console;
use super::root_module::{self, RootModule};
use super::terraform_settings;
use super::view::{self, View};
use drivers::hook::exec::ExecHooks;
use drivers::kubernetes_object::{KubernetesObject, OwnerScope};
use drivers::provider::ConfigurationMode;
use drivers::{ProviderOptions, Providers, PublishedFiles, Reattach, Registry};
use engine::load::{self, Config, Coverage, Expansion, GivenSource, Instance, STDIN, SourcePaths};
use engine::plan::{ObjectBlock, Plan, PlanOptions, ResponseCache, RunningStep};
use model::data::StringData;
use model::text::{counted, split_hint};
use model::{
    Address, DataRef, Diagnostic, Diagnostics, Holder, Intent, Operation, Reason, Record, Recorded, Step, Stored,
    Value, errors,
};
use programs::ReadFiles;
use sha2::{Digest as _, Sha256};
use terraform::Terraform;

use process::{Random as _, SystemClock, SystemRandom};
use runtime::execute::{self, Engine, HolderState, Limits, Recovery};
use runtime::pipeline;
use runtime::store::{LoadedRecords, Snapshot, StateError, StateFile, UnreadableRecord};
use tfprovider::install::{InstallOptions, Installer, LOCK_FILE, TERRAFORM_LOCK_FILE};
use tfprovider::plugin::CURRENT_EXE;

/// How many open intents are resolved concurrently.
const MAX_RECOVERIES: usize = 16;

/// The question before interrupted operations are resumed.
const RESUME: &str = "To keep an object that is being destroyed, configure it again instead. Resume? ";

/// What resolves an intent that no running process holds.
const INTERRUPTED: &str =
    "the run was interrupted; `purlin apply` resolves it, or `purlin state recover` if the provider cannot say";

/// The inputs with the state file open and locked, and an engine that writes to it.
pub struct Session {
    pub engine: Arc<Engine>,
    pub inputs: Inputs,
    pub state: Arc<StateFile>,
}

/// An open and locked state file with its records. No intent is resolved yet.
pub struct LockedState {
    pub engine: Arc<Engine>,
    pub desired: DesiredState,
    pub loaded: LoadedRecords,
    pub state: Arc<StateFile>,
}

pub struct Validation {
    pub resources: usize,
    /// The objects as new ones, of which blocked ones say what they wait for.
    pub plan: Plan,
    pub diagnostics: Diagnostics,
}

/// The desired state of the manifests. Empty without manifests.
#[derive(Debug, Default)]
pub struct DesiredState {
    pub config: Config,
    /// The variable `ns` of expressions.
    pub namespace: Value,
    /// Problems that are not about one Resource.
    pub problems: Diagnostics,
    /// The digest of the manifests' contents.
    pub digest: [u8; 32],
    /// The contents of ConfigMaps and Secrets.
    pub data: BTreeMap<DataRef, Arc<StringData>>,
    /// What the given sources cover.
    pub coverage: Coverage,
    /// The Terraform configuration, whose objects are added when its providers can be asked.
    pub modules: Option<RootModule>,
    /// The source of its objects.
    pub module: Option<Arc<str>>,
    /// The directories of its modules. Empty if it cannot be read.
    pub module_directories: Vec<PathBuf>,
    /// The files that its functions read.
    pub module_files: Arc<ReadFiles>,
    /// The same configuration, when its objects are added.
    pub terraform: Option<Arc<Terraform>>,
}

impl DesiredState {
    /// Adds problems of its sources. While there is an error, no object is destroyed because it is not configured.
    fn add_problems(&mut self, problems: Diagnostics) {
        self.config.incomplete.extend(errors(&problems).cloned());
        self.problems.extend(problems);
    }
}

/// The files and the records at a moment at which another process may be working on them.
pub struct Observation {
    desired: DesiredState,
    snapshot: Option<Snapshot>,
}

impl Observation {
    pub fn of(files: &Files) -> anyhow::Result<Self> {
        let (desired, snapshot) = read_with_records(files);
        Ok(Self { desired, snapshot: snapshot? })
    }

    /// The name that objects are marked with.
    pub fn owner(&self) -> &str {
        self.snapshot.as_ref().map_or("state:none", |snapshot| &snapshot.owner)
    }

    pub fn desired(&self) -> &DesiredState {
        &self.desired
    }

    /// What is planned with these drivers, and the steps of the other process.
    pub async fn inputs(self, files: &Files, drivers: &Registry) -> anyhow::Result<(Inputs, Vec<RunningStep>)> {
        let Some(snapshot) = self.snapshot else {
            let loaded = LoadedRecords::default();
            return Ok((merge_inputs(with_modules(self.desired, drivers, &loaded).await, loaded), Vec::new()));
        };
        let desired = with_modules(self.desired, drivers, &snapshot.loaded).await;
        let desired = in_namespace(desired, snapshot.namespace, files)?;
        let mut inputs = merge_inputs(desired, snapshot.loaded);
        let running = if snapshot.in_use { open_steps(&inputs.recorded) } else { Vec::new() };
        if running.is_empty() {
            inputs.hold_open_intents(INTERRUPTED);
        }
        Ok((inputs, running))
    }
}

/// Reads the files and the records, and changes nothing: a missing state file is not created.
pub async fn inspect(files: &Files, limits: Limits, console: Console) -> anyhow::Result<View> {
    console.notice(&target_line(files));
    let (desired, snapshot) = read_with_records(files);
    let snapshot = snapshot?;
    if files.sources.is_empty() && snapshot.is_none() {
        return Err(no_state_file(files));
    }
    other_records::refuse(files, snapshot.as_ref().map(|snapshot| &snapshot.loaded.records))?;
    // Without a state file, no object has its owner mark.
    let owner = snapshot.as_ref().map_or("state:none", |snapshot| snapshot.owner.as_str());
    let drivers = drivers(files, owner).await?;
    let none = LoadedRecords::default();
    let loaded = snapshot.as_ref().map_or(&none, |snapshot| &snapshot.loaded);
    let desired = with_modules(desired, &drivers, loaded).await;
    let engine = view::planning_engine(drivers, limits);
    let Some(snapshot) = snapshot else {
        return Ok(View { engine, inputs: merge_inputs(desired, LoadedRecords::default()) });
    };
    let desired = in_namespace(desired, snapshot.namespace, files)?;
    let mut inputs = merge_inputs(desired, snapshot.loaded);
    // A read-only command cannot resolve intents.
    let resolution = if snapshot.in_use { "another process is using the state file" } else { INTERRUPTED };
    inputs.hold_open_intents(resolution);
    Ok(View { engine, inputs })
}

/// The steps that the open intents of a running process belong to.
fn open_steps(recorded: &Recorded) -> Vec<RunningStep> {
    recorded.values().filter_map(|stored| open_step(&stored.record)).collect()
}

fn open_step(record: &Record) -> Option<RunningStep> {
    let intent = record.intent.as_deref()?;
    let planned = intent.planned.as_ref();
    let step = Step {
        address: record.address.clone(),
        deposed: intent.deposed.filter(|_| intent.operation == Operation::Destroy),
        operation: intent.operation,
        replaces: intent.cause.replaces,
    };
    Some(RunningStep {
        step,
        planned: planned.map(|planned| planned.planned.clone()),
        recorded: planned.map(|planned| Arc::new((*planned.recorded).clone())),
        record_only: false,
        reported_drift: None,
    })
}

/// Reads the files, and locks and reads the records. Objects with an operation that a crash interrupted are held.
pub async fn open(files: &Files, limits: Limits, console: Console) -> anyhow::Result<Session> {
    let LockedState { engine, desired, loaded, state } = lock(files, limits, console).await?;
    let mut inputs = merge_inputs(desired, loaded);
    inputs.hold_open_intents(INTERRUPTED);
    Ok(Session { engine, inputs, state })
}

/// As [`open`], and resolves the intents that a crash left open. Without `consent`, it asks first if that changes objects;
/// `None` if the user declines.
pub async fn open_and_recover(
    files: &Files,
    limits: Limits,
    consent: bool,
    console: Console,
) -> anyhow::Result<Option<Session>> {
    let LockedState { engine, desired, loaded, state } = lock(files, limits, console).await?;
    let mut inputs = merge_inputs(desired, loaded);
    let open = open_intents(&inputs);
    if !may_resume(&engine, &open, consent, console)? {
        return Ok(None);
    }
    resolve(&engine, open, &mut inputs, console).await;
    Ok(Some(Session { engine, inputs, state }))
}

/// Reads the files, and locks and reads the records.
pub async fn lock(files: &Files, limits: Limits, console: Console) -> anyhow::Result<LockedState> {
    console.notice(&target_line(files));
    let desired = read(files);
    let desired = if desired.config.is_empty() {
        // Without manifests, the namespace is that of the records.
        in_namespace(desired, StateFile::read(&files.state)?.and_then(|found| found.namespace), files)?
    } else {
        desired
    };
    let holder = holder();
    let exists = StateFile::exists(&files.state);
    if !exists {
        other_records::refuse(files, None)?;
    }
    let state = StateFile::open(&files.state, &desired.config.namespace, holder.clone())?;
    let loaded = state.load_all()?;
    if exists {
        other_records::refuse(files, Some(&loaded.records))?;
    }
    let state = Arc::new(state);
    let drivers = drivers(files, state.owner()).await?;
    let directory = hook_directory(files, &loaded.given);
    let engine = Arc::new(engine(drivers, Arc::clone(&state), limits, holder, directory));
    let desired = with_modules(desired, &engine.drivers, &loaded).await;
    Ok(LockedState { engine, desired, loaded, state })
}

/// The same for a saved plan. No intents are resolved, because none were when the plan was made. `check` runs before
/// the state file is created or locked, and again under the lock.
pub async fn open_for_saved_plan(
    files: &Files,
    limits: Limits,
    console: Console,
    check: impl Fn(&Inputs) -> anyhow::Result<()>,
) -> anyhow::Result<Session> {
    let View { inputs, .. } = inspect(files, limits, console).await?;
    check(&inputs)?;
    let holder = holder();
    let state = StateFile::open(&files.state, &inputs.config.namespace, holder.clone())?;
    let desired = in_namespace(read(files), Some(inputs.config.namespace.to_string()), files)?;
    let loaded = state.load_all()?;
    let directory = hook_directory(files, &loaded.given);
    let state = Arc::new(state);
    let drivers = drivers(files, state.owner()).await?;
    let mut inputs = self::merge_inputs(with_modules(desired, &drivers, &loaded).await, loaded);
    check(&inputs)?;
    inputs.hold_open_intents(INTERRUPTED);
    let engine = Arc::new(engine(drivers, Arc::clone(&state), limits, holder, directory));
    Ok(Session { engine, inputs, state })
}

/// Checks manifests as far as possible without records, a cluster or credentials. All objects count as new, so a
/// reported problem does not depend on existing objects. Providers are installed and started, but not configured.
pub async fn validate(files: &Files, limits: Limits) -> anyhow::Result<Validation> {
    let desired = read(files);
    let kubernetes = KubernetesObject::local(OwnerScope::Fixed("validate".into()), Arc::new(SystemClock));
    let drivers =
        Registry::built_in(kubernetes).with_providers(Arc::new(providers(files, ConfigurationMode::Check)?)).offline();
    let engine = view::planning_engine(drivers, limits);
    let mut config = desired.config;
    let resources = config.stems().count();
    let families: Vec<Arc<Instance>> = config.families.values().map(|family| family.shared.clone()).collect();
    for shared in families.into_iter().filter(|shared| !shared.inputs.declared.is_empty()) {
        config.remove(&shared.address.stem);
        config.add(Arc::new(Instance { inputs: shared.inputs.with_unknown_values(), ..shared.as_ref().clone() }));
    }
    for instance in config.instances.values_mut() {
        if instance.suspended || !instance.inputs.declared.is_empty() {
            // Existing objects and suspension do not affect whether the manifest is valid.
            let inputs = instance.inputs.with_unknown_values();
            *instance = Arc::new(Instance { suspended: false, inputs, ..instance.as_ref().clone() });
        }
    }
    let options = PlanOptions { namespace_value: desired.namespace, offline: true, ..PlanOptions::default() };
    let mut plan =
        pipeline::plan(&engine, &Arc::new(config), &Recorded::default(), &options, &mut ResponseCache::default())
            .await
            .plan;
    if let Some(providers) = engine.drivers.providers() {
        providers.close().await;
    }
    let mut diagnostics = desired.problems;
    diagnostics.append(&mut plan.diagnostics);
    Ok(Validation { resources, plan, diagnostics })
}

/// Reads the desired state. Read errors are reported with every plan.
pub fn read(files: &Files) -> DesiredState {
    if files.sources.is_empty() {
        return DesiredState::default();
    }
    let paths = source_paths(&files.state);
    let (modules, sources): (Vec<PathBuf>, Vec<PathBuf>) =
        files.sources.iter().cloned().partition(|path| root_module::is_in(path));
    let load::LoadedSource { mut config, namespace, diagnostics, digest, given, data } = load::read(&sources, &paths);
    let problems = config.source_problems().chain(&diagnostics).cloned().collect();
    // While there is an error, no object is destroyed because its manifest is missing.
    config.incomplete.extend(errors(&diagnostics).cloned());
    let mut desired = DesiredState { config, namespace, problems, digest, data, ..DesiredState::default() };
    let given = given.into_iter().chain(modules.iter().map(|path| given_module(path, &paths))).collect();
    add_modules(&mut desired, &modules, files, &paths);
    desired.coverage = Coverage::new(paths, given).pruning(files.prune);
    desired
}

/// A directory with a Terraform configuration. If it has no objects any more, they are to be destroyed.
fn given_module(path: &Path, paths: &SourcePaths) -> GivenSource {
    let name = path.to_string_lossy().into_owned();
    GivenSource {
        name,
        absolute: root_module::source_path(path, paths),
        missing: None,
        is_empty: false,
        has_files: true,
    }
}

/// Reads the Terraform configuration, if there is one.
fn add_modules(desired: &mut DesiredState, modules: &[PathBuf], files: &Files, paths: &SourcePaths) {
    let [directory] = modules else {
        if let [first, second, ..] = modules {
            let what = format!("`{}` and `{}` are both Terraform configurations", first.display(), second.display());
            let problem = Diagnostic::general(Reason::SourceIncomplete, what);
            let problem = problem.hint("use a command and a state file for each, or call both as modules of a third");
            desired.add_problems(vec![problem]);
        }
        return;
    };
    let root_module::Read { module, problems } = root_module::read(directory, files, paths);
    desired.add_problems(problems);
    desired.module_directories = module.as_ref().map(RootModule::directories).unwrap_or_default();
    desired.module_files = module.as_ref().map(|module| module.files().clone()).unwrap_or_default();
    if let Some(module) = &module {
        desired.digest = Sha256::digest([desired.digest, module.digest].concat()).into();
    }
    desired.module = module.as_ref().map(|module| module.source().clone());
    desired.modules = module;
}

/// Adds the objects of the Terraform configuration to the desired state.
pub async fn with_modules(mut desired: DesiredState, drivers: &Registry, loaded: &LoadedRecords) -> DesiredState {
    if let (Some(module), Some(providers)) = (desired.modules.take(), drivers.providers()) {
        let unusable = match module.in_state(loaded) {
            Some(problem) => vec![problem],
            None => match module.program(providers).await {
                Ok(program) => {
                    desired.config.add(program.module());
                    desired.config.link();
                    desired.terraform = Some(program);
                    Vec::new()
                }
                Err(problems) => problems,
            },
        };
        desired.config.add_removed(loaded.records.values());
        desired.add_problems(unusable);
    }
    desired
}

/// Reads the desired state and the records concurrently.
fn read_with_records(files: &Files) -> (DesiredState, Result<Option<Snapshot>, StateError>) {
    std::thread::scope(|scope| {
        let records = scope.spawn(|| StateFile::read(&files.state));
        let desired = read(files);
        (desired, records.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

pub fn merge_inputs(desired: DesiredState, loaded: LoadedRecords) -> Inputs {
    let DesiredState { mut config, namespace, mut problems, digest, coverage, module, terraform, .. } = desired;
    let uncovered = uncovered_records(&config, &loaded.unreadable);
    config.incomplete.extend(uncovered.iter().cloned());
    problems.extend(uncovered);
    let held = loaded.unreadable.iter().map(|record| (record.address.clone(), unreadable(record))).collect();
    let config = Arc::new(config);
    let (recorded, reads, failures) = (loaded.records, loaded.reads, loaded.failures);
    let coverage = coverage.after(loaded.given);
    let destroy_orphans = true;
    Inputs {
        config,
        digest,
        recorded,
        namespace,
        problems,
        held,
        reads,
        failures,
        coverage,
        destroy_orphans,
        configurations: loaded.configurations,
        module,
        terraform,
        ..Inputs::default()
    }
}

/// Whether a manifest has the address, as far as this is known.
fn may_have(config: &Config, address: &Address) -> bool {
    let family = config.families.get(&address.stem);
    config.instances.contains_key(address)
        || family.is_some_and(|family| !matches!(family.expansion, Expansion::Known(_)))
}

/// The errors of records that cannot be read and that no manifest has: their objects may use any other one, so nothing is
/// destroyed.
pub fn uncovered_records(config: &Config, unreadable: &[UnreadableRecord]) -> Diagnostics {
    let uncovered = unreadable.iter().filter(|record| !may_have(config, &record.address));
    uncovered.map(uncovered_record).collect()
}

fn uncovered_record(record: &UnreadableRecord) -> Diagnostic {
    let what = "the record cannot be read, and no manifest has this object, so nothing is destroyed";
    let message = with_way_out(record);
    let (why, hint) = split_hint(&message);
    let problem = Diagnostic::error(&record.address, Reason::RecordUnreadable, what).because(why);
    Diagnostic { hint: hint.map(str::to_owned), ..problem }
}

/// What holds the object of a record that cannot be read.
pub fn unreadable(record: &UnreadableRecord) -> ObjectBlock {
    ObjectBlock { reason: Reason::RecordUnreadable, message: with_way_out(record) }
}

/// Why a record cannot be read, with a hint that names what helps on files.
fn with_way_out(record: &UnreadableRecord) -> String {
    let forget = format!("forget the object with `purlin state rm {}`", record.address.shell_word());
    let way_out = format!("restore the state file from its `.backup`, or {forget}");
    record.message.replace("restore it from a backup", &way_out)
}

/// A state file holds one namespace. Manifests without a Resource take the namespace of the state file.
pub fn in_namespace(
    mut desired: DesiredState,
    recorded: Option<String>,
    files: &Files,
) -> anyhow::Result<DesiredState> {
    match recorded {
        Some(held) if desired.config.is_empty() => desired.config.namespace = held.into(),
        Some(held) if *held != *desired.config.namespace => {
            let (path, wanted) = (files.state.clone(), desired.config.namespace.to_string());
            return Err(StateError::OtherNamespace { path, held, wanted }.into());
        }
        _ => {}
    }
    Ok(desired)
}

/// The directory in which hooks run: that of the first source. Without sources, it is that of the last apply, so that
/// `purlin destroy` finds the same programs. `given`: the sources of the last apply, relative to the state file.
fn hook_directory(files: &Files, given: &[String]) -> PathBuf {
    if !files.sources.is_empty() {
        return working_directory(&files.sources);
    }
    let directory = files.state.parent().unwrap_or(Path::new(""));
    let sources =
        given.iter().map(|source| if source == STDIN { PathBuf::from(source) } else { directory.join(source) });
    working_directory(&sources.collect::<Vec<PathBuf>>())
}

/// The directory of the first source, or the current directory.
fn working_directory(sources: &[PathBuf]) -> PathBuf {
    let source = sources.first().filter(|source| source.as_os_str() != STDIN);
    let directory = source.and_then(|source| if source.is_dir() { Some(source.as_path()) } else { source.parent() });
    directory.filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

pub fn holder() -> Holder {
    Holder { pod: "".into(), process: SystemRandom.uuid().into() }
}

fn engine(drivers: Registry, state: Arc<StateFile>, limits: Limits, holder: Holder, hook_directory: PathBuf) -> Engine {
    let hooks = ExecHooks::new(hook_directory, CURRENT_EXE.into(), Arc::new(SystemClock));
    let engine = Engine::new(drivers, state, Arc::new(SystemClock), Arc::new(SystemRandom), limits, holder);
    engine.with_hooks(Arc::new(hooks))
}

/// A Kubernetes client is created only with `--kubeconfig`; otherwise the driver creates one when it needs one.
pub async fn drivers(files: &Files, owner: &str) -> anyhow::Result<Registry> {
    let scope = OwnerScope::Fixed(owner.into());
    let clock = Arc::new(SystemClock);
    let kubernetes = match &files.kubeconfig {
        None => KubernetesObject::local(scope, clock),
        Some(path) => KubernetesObject::as_client(cluster::client_of(path).await?, scope, clock),
    };
    let published = PublishedFiles::new(files.published(), owner);
    let providers = Arc::new(providers(files, ConfigurationMode::Configure)?);
    Ok(Registry::built_in(kubernetes).with_publisher(Arc::new(published)).with_providers(providers))
}

///
/// # Errors
/// If the environment variable with the providers to reattach to is invalid.
pub fn providers(files: &Files, mode: ConfigurationMode) -> anyhow::Result<Providers> {
    let installer = Arc::new(Installer::new(install_options(files)?));
    // Relative paths in a configuration begin at its root module.
    let working_folder = files.root_module().map_or_else(std::env::current_dir, std::path::absolute).ok();
    let reattach = Reattach::from_environment()?;
    let options = ProviderOptions {
        working_directory: working_folder,
        inherits_environment: files.root_module().is_some(),
        configuration: mode,
        reattach,
        ..ProviderOptions::new(installer)
    };
    Ok(Providers::new(options, Arc::new(SystemClock)))
}

/// The lock file is next to the state file, and that of `purlin init` in the directory of a Terraform configuration.
pub fn lock_path(files: &Files) -> PathBuf {
    files.root_module().map_or_else(|| files.state.with_file_name(LOCK_FILE), |root| root.join(TERRAFORM_LOCK_FILE))
}

/// The options of installations for commands on files.
///
/// # Errors
/// If the settings of Terraform's command line cannot be read.
pub fn install_options(files: &Files) -> anyhow::Result<InstallOptions> {
    Ok(InstallOptions {
        lock_file: Some(lock_path(files)),
        installed: files.root_module().map(init::providers::installed),
        ..terraform_settings::of_user()?.install_options(&files.plugin_dirs)
    })
}

/// A record with an open intent, and its manifest.
type OpenIntent = (Stored, Option<Arc<Instance>>);

fn open_intents(inputs: &Inputs) -> Vec<OpenIntent> {
    let open = inputs.recorded.iter().filter(|(_, stored)| stored.record.intent.is_some());
    open.map(|(address, stored)| (stored.clone(), inputs.config.resource(address).cloned())).collect()
}

/// Says what recovery will do, and asks if it changes objects, such as a destroy that is completed with its hooks.
fn may_resume(engine: &Engine, open: &[OpenIntent], consent: bool, console: Console) -> anyhow::Result<bool> {
    if open.is_empty() {
        return Ok(true);
    }
    console.notice(&format!("Recovering {} of an interrupted run.", counted(open.len(), "operation")));
    let mut resumes = false;
    for (stored, instance) in open {
        if let Some(operation) = execute::resumed(engine, stored, instance.as_deref()) {
            resumes = true;
            console.notice(&format!(
                "{}: its interrupted {} is to be resumed",
                stored.record.address,
                operation.as_str()
            ));
        }
    }
    if consent || !resumes || console.confirms(RESUME)? {
        return Ok(true);
    }
    console.notice("Nothing was changed.");
    Ok(false)
}

/// Resolves open intents concurrently, as far as possible now. This process holds the lock of the state file, so the
/// processes that wrote the intents have exited.
async fn resolve(engine: &Engine, open: Vec<OpenIntent>, inputs: &mut Inputs, console: Console) {
    let recoveries = stream::iter(open).map(|(stored, instance)| async move {
        let recovered = execute::recover(engine, &stored, instance.as_deref(), HolderState::Ended).await;
        (stored, recovered)
    });
    let mut recovered: Vec<_> = recoveries.buffer_unordered(MAX_RECOVERIES).collect().await;
    recovered.sort_by(|(a, _), (b, _)| a.record.address.cmp(&b.record.address));
    for (before, (recovery, warnings)) in recovered {
        let address = before.record.address.clone();
        if let Some(outcome) = before.record.intent.as_deref().and_then(|intent| outcome(intent, &recovery)) {
            console.notice(&format!("{address}: {outcome}"));
        }
        inputs.problems.extend(warnings);
        match recovery {
            Recovery::Resolved(stored) => drop(inputs.recorded.insert(address, stored)),
            Recovery::Erased | Recovery::Missing => drop(inputs.recorded.remove(&address)),
            Recovery::Blocked(held, _) => drop(inputs.held.insert(address, held)),
        }
    }
}

/// Whether an interrupted create or destroy took effect, or recovery completed it, in words.
fn outcome(intent: &Intent, recovery: &Recovery) -> Option<&'static str> {
    let after = match recovery {
        Recovery::Resolved(stored) => Some(&stored.record),
        Recovery::Erased => None,
        Recovery::Missing | Recovery::Blocked(..) => return None,
    };
    let is_left = after.is_some_and(|record| match intent.deposed {
        Some(key) => record.deposed.contains_key(&key),
        None => record.current.is_some(),
    });
    match (intent.operation, after) {
        (Operation::Destroy, _) if !is_left => Some("its interrupted destroy is complete"),
        (Operation::Destroy, _) => Some("its interrupted destroy had no effect"),
        (Operation::Create, Some(record)) if record.current.is_some() => Some("its interrupted create took effect"),
        (Operation::Create, _) => Some("its interrupted create had no effect"),
        _ => None,
    }
}

fn target_line(files: &Files) -> String {
    let sources: Vec<String> = files.sources.iter().map(|source| source.display().to_string()).collect();
    let state = files.state.display();
    let new = if StateFile::exists(&files.state) { "" } else { " (new)" };
    match sources.as_slice() {
        [] => format!("Working on the records in {state}"),
        sources => format!("Working on files in {}, records in {state}{new}", sources.join(", ")),
    }
}

/// Reads the records of a state file without locking it.
pub fn read_records(files: &Files, console: Console) -> anyhow::Result<LoadedRecords> {
    console.notice(&target_line(files));
    Ok(StateFile::read(&files.state)?.ok_or_else(|| no_state_file(files))?.loaded)
}

/// Returns an error if the state file does not exist.
pub fn require_state_file(files: &Files) -> anyhow::Result<()> {
    if StateFile::exists(&files.state) { Ok(()) } else { Err(no_state_file(files)) }
}

fn no_state_file(files: &Files) -> anyhow::Error {
    if let Err(error) = other_records::refuse_backup(files) {
        return error;
    }
    let message = format!("there is no state file `{}`", files.state.display());
    Failure::hinted(message, "specify the state file with --state; `purlin apply` creates it")
}

/// Reads the records of a state file, and locks the file for editing. A missing file is an error.
pub fn open_records(files: &Files, console: Console) -> anyhow::Result<(LoadedRecords, StateFile)> {
    console.notice(&target_line(files));
    let snapshot = StateFile::read(&files.state)?.ok_or_else(|| no_state_file(files))?;
    let namespace = snapshot.namespace.unwrap_or_default();
    let state = StateFile::open(&files.state, &namespace, holder())?;
    Ok((state.load_all()?, state))
}
