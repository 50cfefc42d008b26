//! Selects, installs and locks the providers of a configuration of Terraform.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::args::LockFileMode;
use crate::cli::failure::Failure;
use crate::cli::output::Console;
use crate::cli::root_module;
use crate::cli::terraform_settings::TerraformSettings;
use configuration::{ProviderRequirement, ProviderSource, Tree};
use model::{Diagnostic, Reason};
use tfprovider::install::{
    InstallError, InstallOptions, Installer, LockFile, LockedProvider, Requirement, TERRAFORM_LOCK_FILE,
};
use version::VersionConstraint;

/// What `purlin init` was asked for.
pub struct Options<'a> {
    /// The directory of the root module.
    pub root: &'a Path,
    /// Filesystem mirrors; if empty, those of the environment.
    pub plugin_dirs: Vec<PathBuf>,
    /// Ignore the locked versions.
    pub upgrade: bool,
    pub lockfile: LockFileMode,
}

/// A provider with the constraints of all modules.
pub struct Required {
    pub source: ProviderSource,
    pub version: VersionConstraint,
    /// Each constraint with the module that has it.
    pub by: Vec<(String, String)>,
}

/// The providers that have to be installed. Constraints that cannot be read are errors of the tree.
pub fn required(tree: &Tree) -> Vec<Required> {
    let required = tree.required_providers().into_iter().filter(|(source, _)| !source.is_built_in());
    required
        .map(|(source, requirements)| {
            let (mut version, mut by) = (VersionConstraint::default(), Vec::new());
            for ProviderRequirement { node, version: text, .. } in requirements {
                let Some(text) = text else { continue };
                version = text.parse().map(|added| version.clone().and(&added)).unwrap_or(version);
                by.push((module_name(&tree.nodes[node].path), text));
            }
            Required { source, version, by }
        })
        .collect()
}

/// The address of a module; `the root module` without calls.
fn module_name(path: &[Arc<str>]) -> String {
    if path.is_empty() { "the root module".to_owned() } else { format!("module.{}", path.join(".module.")) }
}

/// Installs the providers, and records what was selected. Returns whether there were no problems, which are printed.
///
/// # Errors
/// If the lock file cannot be read or written.
pub async fn install(
    tree: &Tree,
    options: Options<'_>,
    settings: &TerraformSettings,
    console: Console,
) -> anyhow::Result<bool> {
    console.lines("\nInitializing provider plugins...\n")?;
    let path = options.root.join(TERRAFORM_LOCK_FILE);
    let mut lock = LockFile::read(&path).map_err(failure)?;
    let before = lock.clone();
    let installed = Some(installed(options.root));
    let installer = Installer::new(InstallOptions { installed, ..settings.install_options(&options.plugin_dirs) });
    let mut complete = true;
    for required in required(tree) {
        let source = required.source.full();
        let locked = before.get(&source).filter(|_| !options.upgrade);
        match install_one(&installer, &required, locked, options.root, console).await? {
            Ok(selected) => {
                if let Some(selected) = selected {
                    lock.merge(&source, selected);
                }
            }
            Err(error) => {
                console.failure(&error);
                complete = false;
            }
        }
    }
    if !complete {
        return Ok(false);
    }
    record(&path, &before, &lock, options.lockfile, console)
}

/// Where other programs install the providers of a configuration.
pub fn installed(root: &Path) -> PathBuf {
    root.join(".terraform/providers")
}

/// Why the providers of a configuration have to be installed first; `None` if the lock file has all of them. `is_started` says
/// which of them the user has started, so that they are not installed.
pub fn not_locked(tree: &Tree, root: &Path, is_started: &dyn Fn(&ProviderSource) -> bool) -> Option<Diagnostic> {
    let lock = match LockFile::read(&root.join(TERRAFORM_LOCK_FILE)) {
        Ok(lock) => lock,
        Err(error) => return Some(not_ready(error.message, error.hint)),
    };
    let mut required = required(tree);
    required.retain(|provider| !is_started(&provider.source));
    let missing = missing(&required, &lock);
    if !missing.is_empty() {
        let (noun, are, they) =
            if missing.len() == 1 { ("provider", "is", "it is") } else { ("providers", "are", "they are") };
        let lock = format!("{}{TERRAFORM_LOCK_FILE}", root_module::prefix(root));
        let what = format!("the {noun} {} {are} not installed: {they} not in {lock}", missing.join(", "));
        let hint = format!("run `{}`", root_module::command("init", root));
        return Some(not_ready(what, Some(hint)));
    }
    required.iter().find_map(|provider| {
        let locked = lock.get(&provider.source.full()).filter(|locked| !provider.version.allows(&locked.version))?;
        let Failure { message, hint } = not_allowed(provider, locked, root);
        Some(not_ready(message, hint))
    })
}

fn not_ready(message: String, hint: Option<String>) -> Diagnostic {
    Diagnostic { hint, ..Diagnostic::general(Reason::ProviderNotReady, message) }
}

/// Whether the lock file lacks a provider.
pub fn are_missing(tree: &Tree, root: &Path, is_started: &dyn Fn(&ProviderSource) -> bool) -> bool {
    let mut required = required(tree);
    required.retain(|provider| !is_started(&provider.source));
    LockFile::read(&root.join(TERRAFORM_LOCK_FILE)).is_ok_and(|lock| !missing(&required, &lock).is_empty())
}

/// The providers that a lock file lacks.
fn missing(required: &[Required], lock: &LockFile) -> Vec<String> {
    let missing = required.iter().filter(|provider| lock.get(&provider.source.full()).is_none());
    missing.map(|provider| provider.source.to_string()).collect()
}

/// Installs one provider. The inner error is its own, and does not prevent others.
async fn install_one(
    installer: &Installer,
    required: &Required,
    locked: Option<&LockedProvider>,
    root: &Path,
    console: Console,
) -> anyhow::Result<anyhow::Result<Option<LockedProvider>>> {
    let Required { source, version, .. } = required;
    let constraint = version.clone().canonical().to_string();
    if let Some(locked) = locked.filter(|locked| !version.allows(&locked.version)) {
        return Ok(Err(not_allowed(required, locked, root).into()));
    }
    let finding = match (locked, constraint.as_str()) {
        (Some(locked), _) => format!("Reusing version {} of {source} from the lock file", locked.version),
        (None, "") => format!("Finding the newest version of {source}"),
        (None, constraint) => format!("Finding versions of {source} that match `{constraint}`"),
    };
    console.lines(format_args!("- {finding}...\n"))?;
    let requirement = Requirement {
        name: Arc::clone(&source.name),
        source: source.full().into(),
        version: constraint.as_str().into(),
        ..Requirement::default()
    };
    let installed = match installer.install(&requirement, locked).await {
        Ok(installed) => installed,
        Err(error) => return Ok(Err(not_installed(required, error))),
    };
    installed.warnings.iter().for_each(|warning| console.notice(&format!("warning: {warning}")));
    let shown = installed.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    console.lines(format_args!("- Installed {source}{shown} ({})\n", installed.origin))?;
    Ok(Ok(installed.locked(&constraint)))
}

/// As upstream, a locked version stays until the user asks for another one.
fn not_allowed(required: &Required, locked: &LockedProvider, root: &Path) -> Failure {
    let Required { source, version: constraint, .. } = required;
    let constraint = constraint.clone().canonical();
    let version = &locked.version;
    let message = format!("the lock file has {source} {version}, which does not match `{constraint}`{}", by(required));
    let upgrade = root_module::command("init", root);
    Failure { message, hint: Some(format!("`{upgrade} -upgrade` selects versions again")) }
}

fn not_installed(required: &Required, error: InstallError) -> anyhow::Error {
    let message = format!("the provider {} cannot be installed: {}{}", required.source, error.message, by(required));
    let hint = match error.field {
        Some("spec.source") => {
            Some("correct `source` in `required_providers`, or use a mirror (--plugin-dir)".to_owned())
        }
        _ => error.hint,
    };
    Failure { message, hint }.into()
}

/// Which modules ask for what, if more than one does.
fn by(required: &Required) -> String {
    if required.by.len() < 2 {
        return String::new();
    }
    let each: Vec<String> = required.by.iter().map(|(module, version)| format!("{module}: `{version}`")).collect();
    format!(" ({})", each.join(", "))
}

fn failure(error: InstallError) -> anyhow::Error {
    Failure { message: error.message, hint: error.hint }.into()
}

fn versions(file: &LockFile) -> impl Iterator<Item = (&String, &semver::Version)> {
    file.providers().iter().map(|(source, locked)| (source, &locked.version))
}

/// Writes the lock file, or checks that it need not be written.
fn record(
    path: &Path,
    before: &LockFile,
    lock: &LockFile,
    mode: LockFileMode,
    console: Console,
) -> anyhow::Result<bool> {
    if lock.providers() == before.providers() {
        return Ok(true);
    }
    if mode == LockFileMode::Write {
        lock.write().map_err(failure)?;
        console.lines(format_args!(
            "\nThe selected versions are recorded in {}. Keep this file in version control.\n",
            path.display()
        ))?;
        return Ok(true);
    }
    if versions(lock).eq(versions(before)) {
        console
            .notice("warning: the lock file lacks checksums or constraints, and is not changed (-lockfile=readonly)");
        return Ok(true);
    }
    let message = format!("{} does not have the providers of the configuration, and is read-only", path.display());
    console.failure(&Failure::hinted(message, "run `purlin init` without -lockfile=readonly, and commit the file"));
    Ok(false)
}
