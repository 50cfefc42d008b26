//! Local mode: the desired state is in files, the records are in one SQLite file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;

use super::cluster;
use super::failure::Failure;
use super::options::Files;
use super::output::Console;
use super::situation::Situation;
use super::view::{self, View};
use crate::driver::hook::exec::ExecHooks;
use crate::driver::kubernetes_object::{KubernetesObject, OwnerScope};
use crate::driver::provider::SettingsUse;
use crate::driver::{ProviderOptions, Providers, PublishedFiles, Reattach, Registry};
use crate::execute::{self, Engine, HolderState, Limits, Recovery};
use crate::install::{InstallOptions, Installer, LOCK_FILE};
use crate::load::{self, Config, Instance};
use crate::model::data::Texts;
use crate::model::{DataRef, Diagnostics, Holder, Reason, Recorded, Stored, Value};
use crate::pipeline;
use crate::plan::{Held, Memo, PlanOptions};
use crate::process::{Random as _, SystemClock, SystemRandom};
use crate::store::{Loaded, Snapshot, StateError, StateFile};

/// How many open intents are settled at once.
const RECOVERIES: usize = 16;

/// Who closes an operation that no process is about to end.
const CUT: &str = "a run was cut; `purlin apply` settles it";

/// A situation with the state file open and locked, and an engine that writes to it.
pub struct Session {
    /// Everything that steps need.
    pub engine: Arc<Engine>,
    /// What was found, with every open intent settled that can be.
    pub situation: Situation,
    /// The state file.
    pub state: Arc<StateFile>,
}

/// A state file that is open and locked, with all that was found. Nothing is settled yet.
pub struct Locked {
    /// Everything that steps need.
    pub engine: Arc<Engine>,
    /// What the files say.
    pub wanted: Wanted,
    /// What is recorded.
    pub loaded: Loaded,
    /// The state file.
    pub state: Arc<StateFile>,
}

/// What `validate` found.
pub struct Checked {
    /// How many Resources there are.
    pub resources: usize,
    /// All problems.
    pub diagnostics: Diagnostics,
}

/// What the files say; without any, that nothing is wanted.
#[derive(Debug, Default)]
pub struct Wanted {
    /// What is wanted, and what could not be read.
    pub config: Config,
    /// `ns` of expressions.
    pub namespace: Value,
    /// Problems that concern no Resource.
    pub problems: Diagnostics,
    /// Of the texts that were read.
    pub digest: [u8; 32],
    /// What ConfigMaps and Secrets hold.
    pub data: BTreeMap<DataRef, Arc<Texts>>,
}

/// Reads the files and the records, and changes nothing: not even the state file is made.
pub async fn look(files: &Files, limits: Limits, console: Console) -> anyhow::Result<View> {
    console.notice(&target_line(files));
    let (wanted, snapshot) = read_with_records(files);
    let snapshot = snapshot?;
    // No object is marked with the name of a file that does not exist.
    let owner = snapshot.as_ref().map_or("state:none", |snapshot| snapshot.owner.as_str());
    let engine = view::planning_engine(drivers(files, owner).await?, limits);
    let Some(snapshot) = snapshot else {
        return Ok(View { engine, situation: situation(wanted, Loaded::default()) });
    };
    let wanted = in_namespace(wanted, snapshot.namespace, files)?;
    let mut situation = situation(wanted, snapshot.loaded);
    // A command that only looks cannot settle anything.
    let way_out = if snapshot.in_use { "another process is at work" } else { CUT };
    situation.hold_open_intents(way_out);
    Ok(View { engine, situation })
}

/// Reads the files, locks and reads the records, and settles what a crash left open.
pub async fn open(files: &Files, limits: Limits, console: Console) -> anyhow::Result<Session> {
    let Locked { engine, wanted, loaded, state } = lock(files, limits, console).await?;
    let mut situation = situation(wanted, loaded);
    settle_open_intents(&engine, &mut situation).await;
    Ok(Session { engine, situation, state })
}

/// Reads the files, and locks and reads the records.
pub async fn lock(files: &Files, limits: Limits, console: Console) -> anyhow::Result<Locked> {
    console.notice(&target_line(files));
    let wanted = read(&files.sources);
    let wanted = if wanted.config.is_empty() {
        // Nothing is wanted of any namespace, so it is the one whose records are there.
        in_namespace(wanted, StateFile::read(&files.state)?.and_then(|found| found.namespace), files)?
    } else {
        wanted
    };
    let holder = holder();
    let state = StateFile::open(&files.state, &wanted.config.namespace, holder.clone())?;
    let loaded = state.load_all()?;
    let state = Arc::new(state);
    let drivers = drivers(files, state.owner()).await?;
    let hooks = ExecHooks::new(folder(&files.sources), Arc::new(SystemClock));
    let engine = Arc::new(engine(drivers, Arc::clone(&state), limits, holder).with_hooks(Arc::new(hooks)));
    Ok(Locked { engine, wanted, loaded, state })
}

/// The same for a saved plan: nothing is settled, since the plan was made without. `check` looks at what was found
/// before anything is locked or made, and again under the lock.
pub async fn open_as_planned(
    files: &Files,
    limits: Limits,
    console: Console,
    check: impl Fn(&Situation) -> anyhow::Result<()>,
) -> anyhow::Result<Session> {
    let View { situation, .. } = look(files, limits, console).await?;
    check(&situation)?;
    let holder = holder();
    let state = StateFile::open(&files.state, &situation.config.namespace, holder.clone())?;
    let wanted = in_namespace(read(&files.sources), Some(situation.config.namespace.to_string()), files)?;
    let mut situation = self::situation(wanted, state.load_all()?);
    check(&situation)?;
    situation.hold_open_intents(CUT);
    let state = Arc::new(state);
    let drivers = drivers(files, state.owner()).await?;
    let engine = Arc::new(engine(drivers, Arc::clone(&state), limits, holder));
    Ok(Session { engine, situation, state })
}

/// Checks files for `validate`: all that can be said without records, a cluster or an account. Everything counts as
/// new, so what is told is wrong whatever exists. Providers are installed and started to be asked, but never configured.
pub async fn check(files: &Files, limits: Limits) -> anyhow::Result<Checked> {
    let wanted = read(&files.sources);
    let kubernetes = KubernetesObject::local(OwnerScope::Fixed("validate".into()), Arc::new(SystemClock));
    let drivers =
        Registry::built_in(kubernetes).with_providers(Arc::new(providers(files, SettingsUse::Check)?)).offline();
    let engine = view::planning_engine(drivers, limits);
    let mut config = wanted.config;
    let resources = config.names().count();
    let families: Vec<Arc<Instance>> = config.families.values().map(|family| family.shared.clone()).collect();
    for shared in families.into_iter().filter(|shared| !shared.inputs.declared.is_empty()) {
        config.remove(&shared.address.name);
        config.add(Arc::new(Instance { inputs: shared.inputs.assumed(), ..shared.as_ref().clone() }));
    }
    let depends_on_the_world = |i: &Instance| i.import.is_some() || i.suspended || !i.inputs.declared.is_empty();
    for instance in config.instances.values_mut().filter(|instance| depends_on_the_world(instance)) {
        // Whether something exists, or is to be left alone for now, says nothing about the manifest.
        let inputs = instance.inputs.assumed();
        *instance = Arc::new(Instance { import: None, suspended: false, inputs, ..instance.as_ref().clone() });
    }
    let options = PlanOptions { namespace_value: wanted.namespace, ..PlanOptions::default() };
    let plan =
        pipeline::plan(&engine, &Arc::new(config), &Recorded::default(), &options, &mut Memo::default()).await.plan;
    if let Some(providers) = engine.drivers.providers() {
        providers.close().await;
    }
    let mut diagnostics = wanted.problems;
    diagnostics.extend(plan.diagnostics);
    Ok(Checked { resources, diagnostics })
}

/// Reads the desired state. What could not be read is told, whatever else is planned.
pub fn read(sources: &[PathBuf]) -> Wanted {
    if sources.is_empty() {
        return Wanted::default();
    }
    let load::Loaded { config, namespace, diagnostics, digest, data } = load::read(sources);
    let problems = config.unread().cloned().chain(diagnostics).collect();
    Wanted { config, namespace, problems, digest, data }
}

/// Reads the desired state and the records, both at once.
fn read_with_records(files: &Files) -> (Wanted, Result<Option<Snapshot>, StateError>) {
    std::thread::scope(|scope| {
        let records = scope.spawn(|| StateFile::read(&files.state));
        let wanted = read(&files.sources);
        (wanted, records.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Puts files and records together.
pub fn situation(wanted: Wanted, loaded: Loaded) -> Situation {
    let Wanted { config, namespace, problems, digest, .. } = wanted;
    let held = loaded.unreadable.into_iter().map(|found| (found.address, unreadable(found.message))).collect();
    let config = Arc::new(config);
    let (recorded, reads) = (loaded.records, loaded.reads);
    let indexed = BTreeSet::new();
    Situation { config, digest, recorded, indexed, namespace, problems, held, reads, destroy_orphans: true }
}

fn unreadable(message: String) -> Held {
    Held { reason: Reason::RecordUnreadable, message }
}

/// A state file serves one namespace. Files without any Resource are of whichever it is.
pub fn in_namespace(mut wanted: Wanted, recorded: Option<String>, files: &Files) -> anyhow::Result<Wanted> {
    match recorded {
        Some(held) if wanted.config.is_empty() => wanted.config.namespace = held.into(),
        Some(held) if *held != *wanted.config.namespace => {
            let (path, wanted) = (files.state.clone(), wanted.config.namespace.to_string());
            return Err(StateError::OtherNamespace { path, held, wanted }.into());
        }
        _ => {}
    }
    Ok(wanted)
}

/// Where hooks run: the folder that `-f` names, or that of the file that it names; without any, where we are.
fn folder(sources: &[PathBuf]) -> PathBuf {
    let here = || PathBuf::from(".");
    match sources.first() {
        None => here(),
        Some(source) if source.as_os_str() == "-" => here(),
        Some(source) if source.is_dir() => source.clone(),
        Some(source) => {
            source.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or_else(here, PathBuf::from)
        }
    }
}

/// This process, as the holder of intents.
pub fn holder() -> Holder {
    Holder { pod: "".into(), process: SystemRandom.uuid().into() }
}

fn engine(drivers: Registry, state: Arc<StateFile>, limits: Limits, holder: Holder) -> Engine {
    Engine::new(drivers, state, Arc::new(SystemClock), Arc::new(SystemRandom), limits, holder)
}

/// The built-in drivers. No client is made here: most sets of files need none.
async fn drivers(files: &Files, owner: &str) -> anyhow::Result<Registry> {
    let scope = OwnerScope::Fixed(owner.into());
    let clock = Arc::new(SystemClock);
    let kubernetes = match &files.kubeconfig {
        None => KubernetesObject::local(scope, clock),
        Some(path) => KubernetesObject::as_client(cluster::client_of(path).await?, scope, clock),
    };
    let published = PublishedFiles::beside(&files.state, owner);
    let providers = Arc::new(providers(files, SettingsUse::Configure)?);
    Ok(Registry::built_in(kubernetes).publishing_to(Arc::new(published)).with_providers(providers))
}

/// The providers of files.
///
/// # Errors
/// When the environment names providers to reattach to in a way that cannot be read.
pub fn providers(files: &Files, settings: SettingsUse) -> anyhow::Result<Providers> {
    let installer = Arc::new(Installer::new(installing(files)));
    let working_folder = std::env::current_dir().ok();
    let reattach = Reattach::from_environment()?;
    let options = ProviderOptions { working_folder, settings, reattach, ..ProviderOptions::new(installer) };
    Ok(Providers::new(options, Arc::new(SystemClock)))
}

/// How providers are installed for files: the lock stands beside the records.
pub fn installing(files: &Files) -> InstallOptions {
    let mut options = InstallOptions::from_environment();
    if !files.plugin_dirs.is_empty() {
        options.plugin_dirs.clone_from(&files.plugin_dirs);
    }
    options.lock_file = Some(files.state.with_file_name(LOCK_FILE));
    options
}

/// Settles what a crash left open, several at once, as far as that can be done now. We hold the lock of the state file, so
/// the processes that wrote it are gone.
pub async fn settle_open_intents(engine: &Engine, situation: &mut Situation) {
    let open = situation.recorded.iter().filter(|(_, stored)| stored.record.intent.is_some());
    let open: Vec<(Stored, Option<Arc<Instance>>)> =
        open.map(|(address, stored)| (stored.clone(), situation.config.resource(address).cloned())).collect();
    let recoveries = stream::iter(open).map(|(stored, instance)| async move {
        let recovered = execute::recover(engine, &stored, instance.as_deref(), HolderState::Gone).await;
        (stored.record.address.clone(), recovered)
    });
    let recovered: Vec<_> = recoveries.buffer_unordered(RECOVERIES).collect().await;
    for (address, (recovery, warnings)) in recovered {
        situation.problems.extend(warnings);
        match recovery {
            Recovery::Settled(stored) => drop(situation.recorded.insert(address, stored)),
            Recovery::Erased => drop(situation.recorded.remove(&address)),
            Recovery::Held(held, _) => drop(situation.held.insert(address, held)),
        }
    }
}

fn target_line(files: &Files) -> String {
    let sources: Vec<String> = files.sources.iter().map(|source| source.display().to_string()).collect();
    let state = files.state.display();
    match sources.as_slice() {
        [] => format!("Working on the records in {state}"),
        sources => format!("Working on files in {}, records in {state}", sources.join(", ")),
    }
}

/// The records of a state file, to look at.
pub fn records(files: &Files, console: Console) -> anyhow::Result<Loaded> {
    console.notice(&target_line(files));
    Ok(StateFile::read(&files.state)?.map(|snapshot| snapshot.loaded).unwrap_or_default())
}

/// The records of a state file, and the file, locked for editing. A file that is not there is not made.
pub fn open_records(files: &Files, console: Console) -> anyhow::Result<(Loaded, StateFile)> {
    console.notice(&target_line(files));
    let namespace = StateFile::read(&files.state)?.and_then(|snapshot| snapshot.namespace).ok_or_else(|| {
        let message = format!("nothing is recorded in `{}`", files.state.display());
        Failure::hinted(message, "name the state file with --state; `purlin apply` makes it")
    })?;
    let state = StateFile::open(&files.state, &namespace, holder())?;
    Ok((state.load_all()?, state))
}
