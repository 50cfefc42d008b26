//! `purlin init`: installs the modules and providers of a configuration of Terraform, and locks the providers.

use crate::cli::args::{BackendArgs, InitArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::init::{self, providers};
use crate::cli::output::Console;
use crate::cli::root_module::{self, Variables};
use model::has_errors;
use modules::{Installer, ModuleError, Options, Progress};
use tfprovider::install::Credentials;

pub async fn run(args: InitArgs, console: Console) -> anyhow::Result<Exit> {
    let root = init::root(args.root.directory)?;
    if args.backend.any() {
        console
            .notice("note: options of backends are ignored: records are kept in the file of --state, or in a cluster");
    }
    let given = Variables { values: args.variables, files: args.variable_files };
    let (inputs, problems) = root_module::variables(&root, &given);
    console.diagnostics(&problems);
    if has_errors(&problems) {
        return Ok(Exit::Problems);
    }
    console.lines("Initializing modules...\n")?;
    let options = Options {
        root: root.clone(),
        upgrade: args.upgrade,
        inputs,
        credentials: Credentials::from_environment(),
        launcher: std::env::current_exe().ok(),
        ..Options::default()
    };
    let installation = Installer::new(options).install(&Lines(console)).await.map_err(failure)?;
    let sources = &installation.tree.sources;
    console.diagnostics(&terraform::diagnostics(&installation.diagnostics, sources, &root_module::prefix(&root)));
    if !installation.diagnostics.errors.is_empty() {
        return Ok(Exit::Problems);
    }
    let options = providers::Options {
        root: &root,
        plugin_dirs: args.plugin_dirs,
        upgrade: args.upgrade,
        lockfile: args.lockfile,
    };
    if !providers::install(&installation.tree, options, console).await? {
        return Ok(Exit::Problems);
    }
    let plan = root_module::command("plan", &root);
    console.lines(format_args!("\nPurlin has been successfully initialized. `{plan}` shows what would change.\n"))?;
    Ok(Exit::Success)
}

impl BackendArgs {
    fn any(&self) -> bool {
        self.backend.is_some()
            || !self.backend_config.is_empty()
            || self.reconfigure
            || self.migrate_state
            || self.force_copy
    }
}

fn failure(error: ModuleError) -> anyhow::Error {
    Failure { message: error.message, hint: error.hint }.into()
}

/// Prints a line for each module that is fetched or new.
struct Lines(Console);

impl Progress for Lines {
    fn fetching(&self, module: &str, source: &str, version: Option<&semver::Version>) {
        let version = version.map(|version| format!(" {version}")).unwrap_or_default();
        self.line(format_args!("Downloading {source}{version} for {module}...\n"));
    }

    fn installed(&self, module: &str, directory: &str) {
        self.line(format_args!("- {module} in {directory}\n"));
    }
}

impl Lines {
    fn line(&self, line: std::fmt::Arguments<'_>) {
        // The last line of the command reports that standard output cannot be written.
        let _ = self.0.lines(line);
    }
}
