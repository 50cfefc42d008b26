//! `purlin provider install|list|lock|schema|docs`.

use std::path::Path;

use serde_json::json;

use super::{install_error, markdown, required_providers, schemas, terraform_json};
use crate::cli::args::{FileArgs, Format, ProviderCommand, ProviderDocsArgs, ProviderLockArgs, ProviderNameArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::json::{self, FORMAT_VERSION};
use crate::cli::local;
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::cli::table::Table;
use drivers::provider::requirement;
use model::Provider;
use tfprovider::install::{InstalledProvider, Installer, LockFile, LockedProvider, Platform};

pub async fn run(command: ProviderCommand, console: Console) -> anyhow::Result<Exit> {
    match command {
        ProviderCommand::Install(args) => install(args.files, args.upgrade, args.output, console).await,
        ProviderCommand::List(args) => list(args.files, args.output, console),
        ProviderCommand::Lock(args) => lock(args, console).await,
        ProviderCommand::Schema(args) => print_schema(args, console).await,
        ProviderCommand::Docs(args) => docs(args, console).await,
    }
}

fn files(args: FileArgs, command: &str) -> anyhow::Result<Files> {
    let files = Files::new(args, None);
    files.require_sources(&format!("provider {command}"))?;
    Ok(files)
}

fn read_lock_file(files: &Files) -> anyhow::Result<LockFile> {
    LockFile::read(&local::lock_path(files)).map_err(|error| hinted(error.message, error.hint))
}

fn hinted(message: String, hint: Option<String>) -> anyhow::Error {
    Failure { message, hint }.into()
}

/// Installs all providers. An error of one does not prevent the others.
async fn install(args: FileArgs, upgrade: bool, output: Format, console: Console) -> anyhow::Result<Exit> {
    let files = files(args, "install")?;
    let providers = required_providers(&files)?;
    if upgrade {
        let mut lock = read_lock_file(&files)?;
        let removed = providers.iter().filter(|provider| lock.remove(&provider.source)).count();
        if removed > 0 {
            lock.write().map_err(|error| hinted(error.message, error.hint))?;
        }
    }
    let installer = Installer::new(local::install_options(&files)?);
    let mut exit = Exit::Success;
    let mut rows = Vec::new();
    for provider in &providers {
        match installer.install_and_lock(&requirement(provider)).await {
            Ok(installed) => {
                installed.warnings.iter().for_each(|warning| console.notice(&format!("warning: {warning}")));
                rows.push((provider, installed));
            }
            Err(error) => {
                console.failure(&install_error(provider, error));
                exit = Exit::Problems;
            }
        }
    }
    match output {
        Format::Json => {
            let rows: Vec<_> = rows.iter().map(|(provider, installed)| json_row(provider, installed)).collect();
            console
                .result(|out| json::write_line(out, &json!({"formatVersion": FORMAT_VERSION, "providers": rows})))?;
        }
        Format::Text => {
            let mut table = Table::new(["NAME", "SOURCE", "VERSION", "FROM"]);
            for (provider, installed) in &rows {
                let version = installed.version.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
                let source = installed.source.clone();
                table.push([provider.name.to_string(), source, version, installed.origin.clone()]);
            }
            console.table(&table)?;
        }
    }
    Ok(exit)
}

fn json_row(provider: &Provider, installed: &InstalledProvider) -> serde_json::Value {
    let mut row = json!(installed);
    row["name"] = json!(provider.name);
    row
}

/// Lists providers with their locked versions, without network access.
fn list(args: FileArgs, output: Format, console: Console) -> anyhow::Result<Exit> {
    let files = files(args, "list")?;
    let providers = required_providers(&files)?;
    let lock = read_lock_file(&files)?;
    match output {
        Format::Json => {
            let rows = providers.iter().map(|provider| {
                let locked = lock.get(&provider.source);
                json!({
                    "name": provider.name, "source": provider.source, "constraint": provider.version,
                    "package": provider.package, "version": locked.map(|locked| locked.version.to_string()),
                    "hashes": locked.map(|locked| &locked.hashes),
                })
            });
            let list = json!({"formatVersion": FORMAT_VERSION, "providers": rows.collect::<Vec<_>>()});
            console.result(|out| json::write_line(out, &list))?;
        }
        Format::Text => {
            let mut table = Table::new(["NAME", "SOURCE", "CONSTRAINT", "LOCKED"]);
            for provider in &providers {
                let locked = lock.get(&provider.source);
                let locked = locked.map_or_else(|| "-".to_owned(), |locked| locked.version.to_string());
                let constraint = if provider.version.is_empty() { "any" } else { &provider.version };
                table.push([provider.name.to_string(), provider.source.to_string(), constraint.to_owned(), locked]);
            }
            console.table(&table)?;
        }
    }
    Ok(Exit::Success)
}

/// Locks packages for several platforms. Checksums of the current packages are added to those in the lock file.
async fn lock(args: ProviderLockArgs, console: Console) -> anyhow::Result<Exit> {
    let files = files(args.files, "lock")?;
    let platforms = if args.platforms.is_empty() { vec![Platform::current()] } else { args.platforms };
    let installer = Installer::new(local::install_options(&files)?);
    let mut lock = read_lock_file(&files)?;
    let mut exit = Exit::Success;
    let mut table = Table::new(["NAME", "VERSION", "CHECKSUMS", "PLATFORMS"]);
    let names: Vec<String> = platforms.iter().map(ToString::to_string).collect();
    for provider in required_providers(&files)? {
        match installer.lock(&requirement(&provider), lock.get(&provider.source), &platforms).await {
            Ok(Some(locked)) => {
                let LockedProvider { version, .. } = &locked;
                let version = version.to_string();
                lock.merge(&provider.source, locked);
                let count = lock.get(&provider.source).map_or(0, |locked| locked.hashes.len());
                table.push([provider.name.to_string(), version, count.to_string(), names.join(", ")]);
            }
            Ok(None) => {
                table.push([provider.name.to_string(), "-".into(), "0".into(), "local paths are not locked".into()]);
            }
            Err(error) => {
                console.failure(&install_error(&provider, error));
                exit = Exit::Problems;
            }
        }
    }
    lock.write().map_err(|error| hinted(error.message, error.hint))?;
    if !table.is_empty() {
        console.table(&table)?;
    }
    Ok(exit)
}

fn find_provider(files: &Files, name: &str) -> anyhow::Result<std::sync::Arc<Provider>> {
    let providers = required_providers(files)?;
    providers.iter().find(|provider| *provider.name == *name).cloned().ok_or_else(|| {
        let names: Vec<String> = providers.iter().map(|provider| provider.name.to_string()).collect();
        let hint = format!("the manifests define: {}", names.join(", "));
        Failure::hinted(format!("there is no Provider `{name}`"), hint)
    })
}

async fn print_schema(args: ProviderNameArgs, console: Console) -> anyhow::Result<Exit> {
    let files = files(args.files, "schema NAME")?;
    let provider = find_provider(&files, &args.name)?;
    let (_, schemas) = schemas(&Installer::new(local::install_options(&files)?), &provider).await?;
    let document = terraform_json::document(&provider.source, &schemas)?;
    console.result(|out| json::write_line(out, &document))?;
    Ok(Exit::Success)
}

async fn docs(args: ProviderDocsArgs, console: Console) -> anyhow::Result<Exit> {
    let files = files(args.files, "docs NAME")?;
    let provider = find_provider(&files, &args.name)?;
    let (installed, schemas) = schemas(&Installer::new(local::install_options(&files)?), &provider).await?;
    let pages = markdown::pages(&provider, &installed, &schemas.provider)?;
    match args.out {
        None => pages.iter().try_for_each(|page| console.lines(format_args!("{}\n", page.text)))?,
        Some(directory) => {
            for page in &pages {
                write_page(&directory, &page.name, &page.text)?;
            }
            console.notice(&format!("{} pages in {}", pages.len(), directory.display()));
        }
    }
    Ok(Exit::Success)
}

fn write_page(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    let parent = path.parent().unwrap_or(directory);
    let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
    written.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}
