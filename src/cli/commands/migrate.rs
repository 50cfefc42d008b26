//! `purlin migrate`: from a state of Terraform or OpenTofu to manifests and records, such that the next plan says that
//! there is nothing to do. No object is read or changed. What becomes of the state is decided in [`crate::migrate`].
//!
//! Records are written before the folder of the manifests is there: as long as it is not, no object can be taken for one
//! that is not wanted any more, nor for one that is still to be made.

mod ask;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::try_join_all;

use crate::cli::args::MigrateArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::local;
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::driver::provider::SettingsUse;
use crate::load::{self, Config};
use crate::migrate::{Configuration, File, Migrated, Migration, Problem};
use crate::model::{Record, Severity};
use crate::process::private_file;
use crate::store::StateFile;

/// Runs the command.
pub async fn run(args: MigrateArgs, console: Console) -> anyhow::Result<Exit> {
    let files = Files {
        sources: args.filenames.clone(),
        state: args.records.clone(),
        kubeconfig: None,
        plugin_dirs: args.plugin_dirs.clone(),
    };
    require_new(&args)?;
    let text = state_text(&args.state)?;
    let configuration = args.config.as_deref().map(configuration).transpose()?;
    let names = args.names.iter().cloned().collect();
    let migration = match Migration::new(&text, configuration, given(&files)?, &names) {
        Ok(migration) => migration,
        Err(problems) => return Ok(refused(&problems, console)),
    };
    let drivers = local::providers(&files, SettingsUse::Ignore)?;
    let migrated = match ask::answers(&migration, &drivers).await {
        Ok(answers) => migration.finish(answers, |provider, settings| drivers.marked_settings(provider, settings)),
        Err(problems) => Err(problems),
    };
    drivers.close().await;
    let migrated = match migrated {
        Ok(migrated) => migrated,
        Err(problems) => return Ok(refused(&problems, console)),
    };
    write(&args, &migrated.files, &migrated.records).await?;
    report(&args, &migrated, console);
    Ok(Exit::Success)
}

fn refused(problems: &[Problem], console: Console) -> Exit {
    problems.iter().for_each(|problem| console.failure(&problem.clone().into()));
    console.notice("Nothing was migrated.");
    Exit::Problems
}

fn report(args: &MigrateArgs, migrated: &Migrated, console: Console) {
    migrated.notes.iter().for_each(|note| console.notice(&format!("note: {note}")));
    let (folder, file) = (args.out.display(), args.records.display());
    if let Some(secret) = migrated.files.iter().find(|file| file.is_secret) {
        let name = secret.name;
        console.notice(&format!("warning: {folder}/{name} holds sensitive values in clear; only you may read it"));
    }
    let besides = match migrated.data {
        0 => String::new(),
        1 => ", 1 data source".to_owned(),
        several => format!(", {several} data sources"),
    };
    let objects = |record: &Record| usize::from(record.current.is_some()) + record.deposed.len();
    let (resources, objects) = (migrated.resources, migrated.records.iter().map(objects).sum::<usize>());
    console.notice(&format!(
        "{resources} resources with {objects} objects{besides}: manifests in {folder}, records in {file}."
    ));
    let sources: String = args.filenames.iter().map(|source| format!(" -f {}", source.display())).collect();
    let records = if args.records == Path::new("purlin.db") { String::new() } else { format!(" --state {file}") };
    console.notice(&format!("Next: purlin plan{sources} -f {folder}{records}"));
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

fn state_text(path: &Path) -> anyhow::Result<String> {
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

/// The configuration of a plan as JSON; of a folder that of the one that is there.
fn configuration(path: &Path) -> anyhow::Result<Configuration> {
    let failed = |what: String, hint| Failure { message: format!("--config: {}: {what}", path.display()), hint };
    let parsed = json_files(path).map_err(|error| failed(error.to_string(), Some(Configuration::HINT.to_owned())))?;
    Ok(Configuration::parse(&parsed).map_err(|problem| failed(problem.message, problem.hint))?)
}

/// The texts of a file, or of the JSON files of a folder.
fn json_files(path: &Path) -> std::io::Result<Vec<String>> {
    if !path.is_dir() {
        return Ok(vec![fs::read_to_string(path)?]);
    }
    let files = fs::read_dir(path)?.filter_map(|entry| Some(entry.ok()?.path()));
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.map(fs::read_to_string).collect()
}

/// Writes the manifests aside, then the records, and then lets the manifests be seen.
async fn write(args: &MigrateArgs, files: &[File], records: &[Record]) -> anyhow::Result<()> {
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
    let written = files.iter().try_for_each(|manifest| {
        fs::create_dir_all(&aside)?;
        let mut options = match manifest.is_secret {
            true => private_file::options(),
            false => fs::File::options().write(true).to_owned(),
        };
        let mut file = options.create_new(true).open(aside.join(manifest.name))?;
        file.write_all(manifest.text.as_bytes())?;
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
