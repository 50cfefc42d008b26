//! `purlin migrate`: from a state of Terraform or OpenTofu to manifests and records, such that the next plan says that
//! there is nothing to do. No object is read or changed.
//!
//! Records are written before the folder of the manifests is there: as long as it is not, nobody can take an object for
//! one that is not wanted any more, nor for one that is still to be made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::Value as Json;

use super::configuration::Configuration;
use super::documents::{self, Written};
use super::gather::{self, Found, Gathered};
use super::names;
use super::providers::{self, Chosen};
use super::references::Index;
use super::secrets;
use super::state::{self, ProviderAddress, State};
use crate::cli::args::MigrateArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::local;
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::driver::Driver as _;
use crate::driver::{provider::SettingsUse, terraform_data};
use crate::load::{self, Config};
use crate::model::{Address, ProviderUse, Reason, Record, RecordedObject, Severity};
use crate::plan::Through;
use crate::process::private_file;
use crate::store::StateFile;

/// Who reads them without being told.
const SECRETS: &str = "secrets.yaml";

/// Runs the command.
pub async fn run(args: MigrateArgs, console: Console) -> anyhow::Result<Exit> {
    let files = Files {
        sources: args.filenames.clone(),
        state: args.records.clone(),
        kubeconfig: None,
        plugin_dirs: args.plugin_dirs.clone(),
    };
    require_new(&args)?;
    let text = read(&args.state)?;
    let mut state = state::parse(&text)?;
    let configuration = args.config.as_deref().map(Configuration::read).transpose()?;
    let left_out = take_data(&mut state, configuration.as_ref());
    let given = given(&files)?;
    let addresses: Vec<_> = state.resources.iter().map(|resource| &resource.address).collect();
    let named = match names::names(&addresses, &args.names.iter().cloned().collect()) {
        Ok(names) => names,
        Err(problems) => return Ok(told(console, &problems)),
    };
    let choose = |resources: &mut dyn Iterator<Item = &ProviderAddress>| {
        providers::choose(resources, &given, configuration.as_ref())
    };
    let chosen = choose(&mut state.resources.iter().map(|resource| &resource.provider))?;
    let outputs = std::mem::take(&mut state.outputs);
    let drivers = local::providers(&files, SettingsUse::Ignore)?;
    let gathered = gather::gather(state, named, &chosen, &drivers, configuration.as_ref()).await;
    let (gathered, unreadable) = match gathered {
        Ok(gathered) => gathered,
        Err(problems) => {
            drivers.close().await;
            return Ok(told(console, &problems));
        }
    };
    // What is left out needs no provider.
    let mut chosen =
        if unreadable.is_empty() { chosen } else { choose(&mut gathered.iter().map(|one| &one.provider))? };
    let secrets = secrets::take(&mut chosen, |provider, settings| drivers.marked_settings(provider, settings));
    drivers.close().await;
    let mut notes = chosen.notes.clone();
    notes.extend(left_out.into_iter().chain(unreadable));
    notes.extend(outputs.iter().map(|name| format!("the output `{name}` is left out; `spec.publish` has its place")));
    let manifests = manifests(&gathered, &chosen, configuration.as_ref(), secrets, &mut notes)?;
    let records = records(&gathered, &chosen, &manifests, &given)?;
    let secrets = manifests.iter().any(|(name, _)| *name == SECRETS);
    write(&args, &manifests, &records).await?;
    notes.iter().for_each(|note| console.notice(&format!("note: {note}")));
    let (folder, file) = (args.out.display(), args.records.display());
    if secrets {
        console.notice(&format!("warning: {folder}/{SECRETS} holds sensitive values in clear; only you may read it"));
    }
    let (data, resources): (Vec<_>, Vec<_>) = gathered.iter().partition(|one| one.address.is_data);
    let besides = match data.len() {
        0 => String::new(),
        1 => ", 1 data source".to_owned(),
        several => format!(", {several} data sources"),
    };
    let (resources, objects) = (resources.len(), records.iter().map(objects).sum::<usize>());
    console.notice(&format!(
        "{resources} resources with {objects} objects{besides}: manifests in {folder}, records in {file}."
    ));
    let sources: String = args.filenames.iter().map(|source| format!(" -f {}", source.display())).collect();
    let records = if args.records == Path::new("purlin.db") { String::new() } else { format!(" --state {file}") };
    console.notice(&format!("Next: purlin plan{sources} -f {folder}{records}"));
    Ok(Exit::Success)
}

/// Has those data sources taken over of which the configuration tells what they were read with; gives a line for each
/// other one.
fn take_data(state: &mut State, configuration: Option<&Configuration>) -> Vec<String> {
    let mut notes = Vec::new();
    for data in std::mem::take(&mut state.data) {
        let why = match configuration {
            None => "what it is read with is told by a configuration: name it with --config",
            Some(known) if known.written(&data.address).is_none() => "the configuration does not have it",
            _ if data.provider.source == terraform_data::PROVIDER => "there is no such data source here",
            _ if data.objects.is_empty() => "the state does not have what it gave",
            Some(_) => {
                state.resources.push(data);
                continue;
            }
        };
        notes.push(format!("`{}` is left out: {why}", data.address));
    }
    notes
}

fn objects(record: &Record) -> usize {
    usize::from(record.current.is_some()) + record.deposed.len()
}

fn told(console: Console, problems: &[anyhow::Error]) -> Exit {
    problems.iter().for_each(|problem| console.failure(problem));
    console.notice("Nothing was migrated.");
    Exit::Problems
}

/// Nothing is ever written over.
fn require_new(args: &MigrateArgs) -> anyhow::Result<()> {
    if let Some(there) = StateFile::read(&args.records)?
        && (!there.loaded.records.is_empty() || !there.loaded.unreadable.is_empty())
    {
        let message = format!("there are records in `{}` already", args.records.display());
        let hint = "name another file with --records; what a migration has left that was cut can be removed";
        return Err(Failure::hinted(message, hint));
    }
    let is_empty = match fs::read_dir(&args.out) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !is_empty {
        let message = format!("`{}` is there already", args.out.display());
        return Err(Failure::hinted(message, "name a folder with --out that is not there yet"));
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    let read =
        if path.as_os_str() == "-" { std::io::read_to_string(std::io::stdin()) } else { fs::read_to_string(path) };
    read.map_err(|error| {
        let hint = "name a state file, or `-` for what `terraform state pull` prints";
        Failure::hinted(format!("--state: {}: {error}", path.display()), hint)
    })
}

/// Documents that say where providers come from.
fn given(files: &Files) -> anyhow::Result<Config> {
    let config = if files.sources.is_empty() { Config::default() } else { load::read(&files.sources).config };
    let of_providers = config.providers.values().flat_map(|spec| spec.problems.iter());
    let all = of_providers.chain(config.provider_configs.values().flat_map(|one| one.problems.iter()));
    match all.into_iter().find(|problem| problem.severity == Severity::Error) {
        None => Ok(config),
        Some(problem) => Err(Failure { message: problem.to_string(), hint: problem.hint.clone() }.into()),
    }
}

/// The files of the folder, with their texts.
fn manifests(
    gathered: &[Gathered],
    chosen: &Chosen,
    configuration: Option<&Configuration>,
    mut secrets: Vec<Json>,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let index = Index::new(gathered);
    let mut resources = String::new();
    let mut written = Vec::new();
    for one in gathered {
        match documents::written(one, &index, configuration, chosen) {
            Some(made) => written.push((one, made)),
            None => {
                notes
                    .push(format!("nothing of `{}` is in use: the next plan destroys what is left of it", one.address));
            }
        }
    }
    documents::depend(&mut written, &index)?;
    for (one, Written { manifest, secret, notes: found }) in written {
        let text = documents::yaml(&[manifest])?;
        resources.push_str(&text.replacen("---\n", &format!("---\n# {}\n", one.address), 1));
        secrets.extend(secret);
        notes.extend(found);
    }
    let mut files = Vec::new();
    if !chosen.documents.is_empty() {
        files.push(("providers.yaml", documents::yaml(&chosen.documents)?));
    }
    files.push(("resources.yaml", resources));
    if !secrets.is_empty() {
        files.push((SECRETS, documents::yaml(&secrets)?));
    }
    Ok(files)
}

/// The records: objects as they were gathered, with the edges and flags that their manifests give them.
fn records(
    gathered: &[Gathered],
    chosen: &Chosen,
    manifests: &[(&str, String)],
    given: &Config,
) -> anyhow::Result<Vec<Record>> {
    let texts: Vec<(&str, &str)> = manifests.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let config = load::source::read_texts(&texts).config;
    // Documents of providers may be elsewhere, and a state may hold nothing.
    let expected = [Reason::ProviderNotFound, Reason::SourceIncomplete];
    let problems = config.instances.values().flat_map(|instance| instance.problems.iter()).chain(&config.incomplete);
    let mut faults = problems.filter(|one| one.severity == Severity::Error && !expected.contains(&one.reason));
    if let Some(problem) = faults.next() {
        anyhow::bail!("a manifest of the migration is not valid: {problem} (this is a fault of Purlin; report it)");
    }
    let settled: BTreeMap<Arc<str>, Arc<ProviderUse>> = settled(&config, given);
    let index = Index::new(gathered);
    let first = create_first(&config);
    let through = Through::new(&config);
    let mut records = Vec::new();
    for one in gathered.iter().filter(|one| !one.address.is_data) {
        let used = chosen.uses.get(&one.provider);
        let known = used.and_then(|used| settled.get(&used.name));
        let record = |found: &Found, dependencies: BTreeSet<Address>, create_before_destroy: bool| {
            Arc::new(RecordedObject {
                dependencies: dependencies.into_iter().collect(),
                create_before_destroy,
                provider: known.or(used).cloned(),
                // Nobody knows under which settings it was read when they are still to be written.
                provider_config: known.map_or_else(|| Arc::from(""), |used| used.digest.clone()),
                ..found.object.clone()
            })
        };
        let in_state = |found: &Found| -> BTreeSet<Address> {
            index.dependencies(one, &found.dependencies).iter().map(|other| other.dependency()).collect()
        };
        for instance in &one.instances {
            let address = Address { name: one.name.clone(), key: instance.key.clone() };
            let mut made =
                Record::empty(config.namespace.clone(), address.clone(), Arc::from(""), one.type_name.clone());
            made.current = instance.current.as_ref().map(|found| match config.instances.get(&address) {
                Some(wanted) => {
                    let direct = || wanted.references.iter().map(|reference| reference.target.clone()).collect();
                    let targets = through.targets(&config, wanted).unwrap_or_else(direct);
                    record(found, targets, first.contains(&address))
                }
                None => record(found, in_state(found), found.create_before_destroy),
            });
            let deposed = instance.deposed.iter();
            made.deposed = deposed
                .map(|(key, found)| (*key, record(found, in_state(found), found.create_before_destroy)))
                .collect();
            records.push(made);
        }
    }
    Ok(records)
}

/// The settings that are known, those that were given among them.
fn settled(config: &Config, given: &Config) -> BTreeMap<Arc<str>, Arc<ProviderUse>> {
    let mut all = Config {
        providers: config.providers.clone(),
        provider_configs: config.provider_configs.clone(),
        ..Config::default()
    };
    all.providers.extend(given.providers.clone());
    all.provider_configs.extend(given.provider_configs.clone());
    all.constant_providers().map(|used| (used.name.clone(), used)).collect()
}

/// Everything that is replaced by creating its successor first: what says so, and what that needs.
fn create_first(config: &Config) -> BTreeSet<Address> {
    let says = |(address, instance): (&Address, &Arc<load::Instance>)| {
        (instance.create_before_destroy == Some(true)).then(|| address.clone())
    };
    let mut open: Vec<Address> = config.instances.iter().filter_map(says).collect();
    let mut found = BTreeSet::new();
    while let Some(address) = open.pop() {
        let Some(instance) = config.instances.get(&address).filter(|_| found.insert(address)) else { continue };
        for reference in instance.references.iter() {
            let target = &reference.target;
            match config.instances.contains_key(target) {
                true => open.push(target.clone()),
                false => open.extend(config.instances.keys().filter(|other| other.name == target.name).cloned()),
            }
        }
    }
    found
}

/// Writes the manifests aside, then the records, and then lets the manifests be seen.
async fn write(args: &MigrateArgs, manifests: &[(&str, String)], records: &[Record]) -> anyhow::Result<()> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::hinted(
            format!("`{}` cannot be written: {error}", path.display()),
            "see to what it says, and try again",
        )
    };
    let aside = beside(&args.out);
    if aside.exists() {
        fs::remove_dir_all(&aside).map_err(|error| failed(&aside, error))?;
    }
    let written = manifests.iter().try_for_each(|(name, text)| {
        fs::create_dir_all(&aside)?;
        let mut options = match *name == SECRETS {
            true => private_file::options(),
            false => fs::File::options().write(true).to_owned(),
        };
        let mut file = options.create_new(true).open(aside.join(name))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| failed(&aside, error))?;
    let namespace = records.first().map_or_else(|| Arc::from("default"), |record| record.namespace.clone());
    let state = StateFile::open(&args.records, &namespace, local::holder())?;
    try_join_all(records.iter().map(|record| state.write(record, None))).await?;
    drop(state);
    fs::rename(&aside, &args.out).map_err(|error| {
        let hint = format!("everything is recorded: move `{}` there yourself", aside.display());
        Failure::hinted(format!("`{}` cannot be written: {error}", args.out.display()), hint)
    })
}

/// Where the folder is made before it gets its name.
fn beside(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    folder.with_file_name(name)
}
