//! `purlin migrate`: converts a Terraform or OpenTofu state to manifests and records for which the next plan has no
//! changes. No object is read or changed. [`migrate`] does the conversion.
//!
//! Records are written before the directory of the manifests appears. So no plan can treat an object as an orphan or as
//! not created yet.

mod as_recorded;
mod check;
mod convert;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::try_join_all;

use crate::cli::args::MigrateArgs;
use crate::cli::configuration;
use crate::cli::failure::{Exit, Failure};
use crate::cli::local;
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::cli::root_module::Variables;
use check::{Check, Checked};
use drivers::provider::ConfigurationMode;
use engine::load::{self, Config};
use migrate::{File, Migration, MigrationResult, Problem, RESOURCES};
use model::text::counted;
use model::{Record, Severity};
use process::private_file;
use runtime::store::StateFile;

pub async fn run(args: MigrateArgs, console: Console) -> anyhow::Result<Exit> {
    let files = Files {
        sources: args.filenames.clone(),
        prune: false,
        state: args.records.clone(),
        is_state_named: true,
        kubeconfig: None,
        plugin_dirs: args.plugin_dirs.clone(),
        variables: Variables::default(),
    };
    require_new(&args)?;
    let text = state_text(&args.state)?;
    let configuration = args.config.as_deref().map(|path| configuration::read(path, &args.var_files)).transpose()?;
    let names = args.names.iter().cloned().collect();
    let migration = match Migration::new(&text, configuration, provider_manifests(&files)?, &names) {
        Ok(migration) => migration,
        Err(problems) => return Ok(report_problems(&problems, console)),
    };
    let checked = match migrated(migration, &files).await? {
        Ok(checked) => checked,
        Err(problems) => return Ok(report_problems(&problems, console)),
    };
    report_notes(&checked, console);
    if !checked.differences.is_empty() && !args.allow_changes {
        return Ok(report_problems(&checked.differences, console));
    }
    checked.differences.iter().for_each(|one| console.notice(&format!("warning: {}", one.message)));
    let migrated = checked.result;
    let paths = local::source_paths(&files);
    let source = paths.source(&paths.absolute(&args.out.join(RESOURCES)));
    write(&args, &migrated.files, &migrated.records, &source).await?;
    report_result(&args, &migrated, console);
    Ok(Exit::Success)
}

/// Converts the objects, and checks the plan of the result.
async fn migrated(migration: Migration, files: &Files) -> anyhow::Result<Result<Checked, Vec<Problem>>> {
    let unconfigured = Arc::new(local::providers(files, ConfigurationMode::Ignore)?);
    let configured = Arc::new(local::providers(files, ConfigurationMode::Configure)?);
    let given = configuration::given_manifests(files)?;
    let result = async {
        let answers = convert::convert_objects(&migration, &unconfigured).await?;
        let gathered = migration.gather(answers)?;
        let (configured, unconfigured) = (&configured, &unconfigured);
        let check = Check { gathered: &gathered, given: &given, configured, unconfigured };
        check.run().await.map_err(|problem| vec![problem])
    };
    let result = result.await;
    configured.close().await;
    unconfigured.close().await;
    Ok(result)
}

fn report_notes(checked: &Checked, console: Console) {
    checked.result.notes.iter().for_each(|note| console.notice(&format!("note: {note}")));
    for why in &checked.unchecked {
        console.notice(&format!("note: only the schemas were compared, because a provider cannot plan: {why}"));
    }
}

fn report_problems(problems: &[Problem], console: Console) -> Exit {
    problems.iter().for_each(|problem| console.failure(&problem.clone().into()));
    console.notice("Nothing was migrated.");
    Exit::Problems
}

fn report_result(args: &MigrateArgs, migrated: &MigrationResult, console: Console) {
    let (directory, file) = (args.out.display(), args.records.display());
    if let Some(secret) = migrated.files.iter().find(|file| file.is_secret) {
        let name = secret.name;
        console.notice(&format!(
            "warning: {directory}/{name} contains sensitive values in plain text and is readable only by you"
        ));
    }
    let data_sources = match migrated.data {
        0 => String::new(),
        some => format!(", {}", counted(some, "data source")),
    };
    let objects = |record: &Record| usize::from(record.current.is_some()) + record.deposed.len();
    let resources = counted(migrated.resources, "resource");
    let objects = counted(migrated.records.iter().map(objects).sum(), "object");
    console.notice(&format!(
        "Migrated {resources} with {objects}{data_sources}: manifests in {directory}, records in {file}."
    ));
    let sources: String = args.filenames.iter().map(|source| format!(" -f {}", source.display())).collect();
    let records = if args.records == Path::new("purlin.db") { String::new() } else { format!(" --state {file}") };
    console.notice(&format!("Next: purlin plan{sources} -f {directory}{records}"));
}

/// Existing files are never overwritten.
fn require_new(args: &MigrateArgs) -> anyhow::Result<()> {
    if let Some(there) = StateFile::read(&args.records)?
        && (!there.loaded.records.is_empty() || !there.loaded.unreadable.is_empty())
    {
        let message = format!("`{}` already contains records", args.records.display());
        let hint = "specify another file with --records, or delete the file if an interrupted migration left it";
        return Err(Failure::hinted(message, hint));
    }
    let is_empty = match fs::read_dir(&args.out) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !is_empty {
        let message = format!("`{}` already exists", args.out.display());
        return Err(Failure::hinted(message, "specify a new or an empty directory with --out"));
    }
    Ok(())
}

fn state_text(path: &Path) -> anyhow::Result<String> {
    let read =
        if path.as_os_str() == "-" { std::io::read_to_string(std::io::stdin()) } else { fs::read_to_string(path) };
    read.map_err(|error| {
        let hint = "specify a state file, or `-` for the output of `terraform state pull`";
        Failure::hinted(format!("--state: {}: {error}", path.display()), hint)
    })
}

/// Loads the manifests of providers.
fn provider_manifests(files: &Files) -> anyhow::Result<Config> {
    let config = if files.sources.is_empty() {
        Config::default()
    } else {
        load::read(&files.sources, &local::source_paths(files)).config
    };
    let of_providers = config.providers.values().flat_map(|spec| spec.problems.iter());
    let all = of_providers.chain(config.provider_configs.values().flat_map(|one| one.problems.iter()));
    match all.into_iter().find(|problem| problem.severity == Severity::Error) {
        None => Ok(config),
        Some(problem) => Err(Failure { message: problem.to_string(), hint: problem.hint.clone() }.into()),
    }
}

/// Writes the manifests to a temporary directory, then the records, then renames the directory.
/// `source` is the file of the records' manifests.
async fn write(args: &MigrateArgs, files: &[File], records: &[Record], source: &Arc<str>) -> anyhow::Result<()> {
    let with_source = |record: &Record| Record { source: Some(Arc::clone(source)), ..record.clone() };
    let records: Vec<Record> = records.iter().map(with_source).collect();
    let failed = |path: &Path, error: std::io::Error| {
        Failure::hinted(format!("`{}` cannot be written: {error}", path.display()), "fix the cause and try again")
    };
    let temporary = temporary_path(&args.out);
    if temporary.exists() {
        fs::remove_dir_all(&temporary).map_err(|error| failed(&temporary, error))?;
    }
    let written = files.iter().try_for_each(|manifest| {
        fs::create_dir_all(&temporary)?;
        let mut options = match manifest.is_secret {
            true => private_file::options(),
            false => fs::File::options().write(true).to_owned(),
        };
        let mut file = options.create_new(true).open(temporary.join(manifest.name))?;
        file.write_all(manifest.text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| failed(&temporary, error))?;
    let namespace = records.first().map_or_else(|| Arc::from("default"), |record| record.namespace.clone());
    let state = StateFile::open(&args.records, &namespace, local::holder())?;
    try_join_all(records.iter().map(|record| state.write(record, None))).await?;
    drop(state);
    fs::rename(&temporary, &args.out).map_err(|error| {
        let hint = format!("all records are written: move `{}` there yourself", temporary.display());
        Failure::hinted(format!("`{}` cannot be written: {error}", args.out.display()), hint)
    })
}

/// The temporary path of the directory before it is renamed.
fn temporary_path(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    directory.with_file_name(name)
}
