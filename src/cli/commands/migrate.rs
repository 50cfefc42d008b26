//! `purlin migrate`: writes records of the objects of a Terraform or OpenTofu state, so that its configuration goes on with
//! them. No object is read or changed. [`migrate`] makes the records, and one transaction writes them all.

mod convert;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::cli::args::MigrateArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::init;
use crate::cli::local::{self, DesiredState};
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::cli::outputs::{Readings, RecordedScope};
use crate::cli::root_module::{self, RootModule, STATE};
use drivers::provider::ConfigurationMode;
use migrate::state::{self, State};
use migrate::{Place, Problem};
use model::text::counted;
use model::{Record, Recorded, Stored, Version, has_errors};
use process::{Clock as _, SystemClock};
use runtime::store::{RecordedConfiguration, Snapshot, StateFile};

pub async fn run(args: MigrateArgs, console: Console) -> anyhow::Result<Exit> {
    let root = init::root(args.directory)?;
    let state = args.state.unwrap_or_else(|| root.join(STATE));
    let asks_for_values = args.variables.asks();
    let mut files = Files {
        sources: vec![root.clone()],
        prune: false,
        state: args.records,
        is_state_named: true,
        kubeconfig: None,
        plugin_dirs: args.plugin_dirs,
        variables: args.variables.given,
        asks_for_values,
        plan_time: SystemClock.now(),
    };
    if !init::prepare(&mut files, console).await? {
        return Ok(Exit::Problems);
    }
    let state = match state::parse(&state_text(&state)?) {
        Ok(state) => state,
        Err(problem) => return Ok(report_problems(&[problem], console)),
    };
    let mut desired = local::read(&files);
    console.diagnostics(&desired.problems);
    let module = desired.modules.take().filter(|_| !has_errors(&desired.problems));
    let Some(module) = module else { return Ok(report_problems(&[], console)) };
    let source = Arc::clone(module.source());
    let there = StateFile::read(&files.state)?;
    require_new(&files, &source, &state, there.as_ref())?;
    let namespace = there.and_then(|there| there.namespace);
    let desired = local::in_namespace(desired, namespace, &files)?;
    let records = match records(&state, module, desired, &files, console).await? {
        Ok(records) => records,
        Err(problems) => return Ok(report_problems(&problems, console)),
    };
    let known =
        RecordedConfiguration { outputs: state.outputs.clone(), lineage: state.lineage.clone(), serial: state.serial };
    let namespace = records.first().map_or_else(|| "default".into(), |record| record.namespace.clone());
    let occupied = StateFile::add(&files.state, &namespace, &local::holder(), &records, (&source, &known))?;
    if let Some(address) = occupied {
        let message = format!("`{address}` already has a record in `{}`", files.state.display());
        return Err(Failure::hinted(message, "write the records to another file with --records"));
    }
    report_result(&files, &root, &state, &records, console);
    Ok(Exit::Success)
}

/// The records of the objects of a state.
async fn records(
    state: &State,
    module: RootModule,
    desired: DesiredState,
    files: &Files,
    console: Console,
) -> anyhow::Result<Result<Vec<Record>, Vec<Problem>>> {
    let providers = Arc::new(local::providers(files, ConfigurationMode::Ignore)?);
    let source = Arc::clone(module.source());
    let mut config = desired.config;
    let result = async {
        let program = module.program(&providers).await.map_err(|problems| {
            console.diagnostics(&problems);
            Vec::new()
        })?;
        config.add(program.module());
        config.link();
        let objects = convert::convert_objects(state, &config, &providers).await?;
        // The configuration of a provider can depend on objects.
        let place = Place { config: &config, source: &source, providers: &|_| None };
        let records = migrate::records(state, &objects, &place).map_err(|problem| vec![problem])?;
        let recorded: Recorded = records.into_iter().map(stored).collect();
        let (readings, namespace) = (Readings::new(), desired.namespace);
        let scope = RecordedScope {
            config: &config,
            recorded: &recorded,
            readings: &readings,
            namespace: &namespace,
            planned: &BTreeMap::new(),
            is_final: false,
        };
        let place = Place {
            config: &config,
            source: &source,
            providers: &|named| {
                program.provider_use(named, &scope).or_else(|| convert::unconfigured(named, &config).map(Arc::new))
            },
        };
        migrate::records(state, &objects, &place).map_err(|problem| vec![problem])
    };
    let result = result.await;
    providers.close().await;
    Ok(result)
}

fn stored(record: Record) -> (model::Address, Stored) {
    (record.address.clone(), Stored { record: Arc::new(record), version: Version(0) })
}

fn report_problems(problems: &[Problem], console: Console) -> Exit {
    problems.iter().for_each(|problem| console.failure(&problem.clone().into()));
    console.notice("Nothing was taken over.");
    Exit::Problems
}

fn report_result(files: &Files, root: &Path, state: &State, records: &[Record], console: Console) {
    let objects = records.iter().map(|record| usize::from(record.current.is_some()) + record.deposed.len());
    let objects = counted(objects.sum(), "object");
    let resources = counted(state.resources.len(), "resource");
    let file = files.state.display();
    console.notice(&format!("Took over {objects} of {resources}: records in {file}."));
    console
        .notice("The state is unchanged. Keep it as a backup, and change these objects only with Purlin from now on.");
    let records = if files.state == Path::new("purlin.db") { String::new() } else { format!(" --state {file}") };
    console.notice(&format!("Next: {}{records}", root_module::command("plan", root)));
}

/// Existing records are never overwritten.
fn require_new(files: &Files, source: &Arc<str>, state: &State, there: Option<&Snapshot>) -> anyhow::Result<()> {
    if state.resources.iter().all(|resource| resource.objects.is_empty()) {
        return Err(Failure::hinted("the state has no objects", "there is nothing to take over: run `purlin plan`"));
    }
    let Some(there) = there else { return Ok(()) };
    let count = there.loaded.records.values().filter(|stored| stored.record.source.as_ref() == Some(source)).count();
    if count == 0 {
        return Ok(());
    }
    let file = files.state.display();
    let message = match there.loaded.configurations.get(source) {
        Some(known) if (&known.lineage, known.serial) == (&state.lineage, state.serial) => {
            format!("the objects of this state are taken over already: `{file}` has {}", counted(count, "record"))
        }
        _ => format!("`{file}` already has {} of this configuration", counted(count, "record")),
    };
    Err(Failure::hinted(message, "run `purlin plan`, or write the records to another file with --records"))
}

fn state_text(path: &Path) -> anyhow::Result<String> {
    let read =
        if path.as_os_str() == "-" { std::io::read_to_string(std::io::stdin()) } else { fs::read_to_string(path) };
    read.map_err(|error| {
        let hint = "name the state with --state; `tofu state pull` or `terraform state pull` writes that of a backend";
        Failure::hinted(format!("the state {} cannot be read: {error}", path.display()), hint)
    })
}
