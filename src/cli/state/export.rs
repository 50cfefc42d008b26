//! `purlin state export --terraform`: exports records as a Terraform or OpenTofu state.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::{edit, records};
use crate::cli::args::StateExportArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::local;
use crate::cli::options::{Files, Target};
use crate::cli::output::Console;
use crate::cli::outputs::{Readings, RecordedScope};
use drivers::provider::ConfigurationMode;
use drivers::{Preparation, Providers, terraform_data};
use migrate::export::{self, Base, Export};
use model::{Address, Provider, ProviderUse, Recorded, RecordedObject, Value};
use process::{Random as _, SystemRandom, private_file};
use terraform::Terraform;

pub async fn run(args: StateExportArgs, console: Console) -> anyhow::Result<Exit> {
    let target = Target::from_args(args.target);
    let base = args.base.as_deref().map(base).transpose()?;
    let mut records = records::read(target.clone(), console).await?;
    records.retain_sources(&target);
    if !records.diagnostics.is_empty() {
        console.diagnostics(&records.diagnostics);
        console.notice("Nothing was exported.");
        return Ok(Exit::Problems);
    }
    records.recorded.values().try_for_each(|stored| edit::require_no_intent(&stored.record))?;
    let known = records.configurations.values().next().filter(|_| records.configurations.len() == 1);
    let (lineage, serial) = match (&base, known) {
        (Some(base), _) => (base.lineage.clone(), base.serial + 1),
        (None, Some(known)) if !known.lineage.is_empty() => (known.lineage.clone(), known.serial + 1),
        _ => (SystemRandom.uuid(), 1),
    };
    let of_base = base.as_ref().map(|base| base.outputs.as_str());
    let outputs = known.map(|known| known.outputs.as_str()).filter(|outputs| !outputs.is_empty());
    let outputs = outputs.or(of_base).unwrap_or("{}");
    let lineage = args.lineage.unwrap_or(lineage);
    let (providers, program) = match target {
        Target::Files(files) => {
            let providers = Arc::new(schemas(&files, &records.recorded).await?);
            let program = program(&files, &records.recorded, &providers).await;
            (Some(providers), program)
        }
        // The packages of a cluster are not on this machine.
        Target::Cluster(_) => (None, None),
    };
    let export = Export {
        lineage: &lineage,
        serial: args.serial.unwrap_or(serial),
        outputs,
        base: base.as_ref(),
        types: &|used: &ProviderUse, type_name: &str| providers.as_ref()?.object_type(&used.provider, type_name),
        configured: &|address: &Address| program.as_ref()?.configured(address),
    };
    let exported = export::state(&records.recorded, &export);
    if let Some(providers) = &providers {
        providers.close().await;
    }
    let (text, notes) = exported?;
    match &args.out {
        None => console.result(|out| out.write_all(text.as_bytes()))?,
        Some(path) => write_new(path, &text)?,
    }
    notes.iter().for_each(|note| console.notice(&format!("note: {note}")));
    console.notice("The state contains sensitive values in plain text. Only one tool may manage the objects.");
    Ok(Exit::Success)
}

fn base(path: &Path) -> anyhow::Result<Base> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string());
    let base = text.and_then(|text| Base::parse(&text).map_err(|problem| problem.message));
    base.map_err(|what| Failure::hinted(format!("--base: {}: {what}", path.display()), "specify a state file"))
}

fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = private_file::options().create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| {
        Failure::hinted(format!("`{}` cannot be written: {error}", path.display()), "specify another file")
    })
}

/// The Terraform configuration, evaluated with the values of the records. `None`: there is none, or no object of
/// `terraform_data` that has values of other types than those of records.
async fn program(files: &Files, recorded: &Recorded, providers: &Arc<Providers>) -> Option<Arc<Terraform>> {
    let built_in = recorded.values().filter(|stored| *stored.record.type_name == *terraform_data::TYPE_NAME);
    if !built_in.filter_map(|stored| stored.record.current.as_deref()).any(has_collection) {
        return None;
    }
    let mut desired = local::read(files);
    let program = desired.modules.take()?.program(providers).await.ok()?;
    let mut config = desired.config;
    config.add(program.module());
    config.link();
    let (readings, namespace, planned) = (Readings::new(), desired.namespace, BTreeMap::new());
    let scope = RecordedScope {
        config: &config,
        recorded,
        readings: &readings,
        namespace: &namespace,
        planned: &planned,
        is_final: false,
    };
    for instance in config.instances.values() {
        // The configuration keeps the values that were used. An object with an error has none.
        let _ = instance.config.evaluate(&scope);
    }
    Some(program)
}

fn has_collection(object: &RecordedObject) -> bool {
    let Value::Map(entries) = &object.value else { return false };
    entries.values().any(|value| matches!(value.unmarked(), Value::List(_) | Value::Map(_)))
}

/// Starts the providers whose schemas the paths of sensitive values need. If one is not available, both forms of a path
/// are written.
async fn schemas(files: &Files, recorded: &Recorded) -> anyhow::Result<Providers> {
    let providers = local::providers(files, ConfigurationMode::Ignore)?;
    let records = recorded.values().map(|stored| &stored.record);
    let objects = records.flat_map(|record| record.current.iter().chain(record.deposed.values()));
    let mut needed: Vec<Arc<Provider>> = Vec::new();
    for used in objects.filter(|object| is_ambiguous(object)).filter_map(|object| object.provider.as_ref()) {
        if !needed.contains(&used.provider) {
            needed.push(Arc::clone(&used.provider));
        }
    }
    let preparation = Preparation { namespace: None, version: 0, needed: &needed, current: &[], configurations: &[] };
    providers.prepare(preparation).await;
    Ok(providers)
}

/// Whether only the schema says what a path into the object means.
fn is_ambiguous(object: &RecordedObject) -> bool {
    let Value::Map(entries) = &object.value else { return false };
    entries.values().any(|value| value.unmarked() == value && value.has_sensitive())
}
