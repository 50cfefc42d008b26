//! `purlin init`: installs the modules and providers of a configuration of Terraform, and locks the providers.

use crate::cli::args::{BackendArgs, InitArgs};
use crate::cli::failure::Exit;
use crate::cli::init::{self, providers};
use crate::cli::output::Console;
use crate::cli::root_module;
use model::has_errors;

pub async fn run(args: InitArgs, console: Console) -> anyhow::Result<Exit> {
    let root = init::root(args.root.directory)?;
    if args.backend.any() {
        console
            .notice("note: options of backends are ignored: records are kept in the file of --state, or in a cluster");
    }
    let given = args.variables.given;
    let (inputs, problems) = root_module::variables(&root, &given);
    console.diagnostics(&problems);
    if has_errors(&problems) {
        return Ok(Exit::Problems);
    }
    let options = providers::Options {
        root: &root,
        plugin_dirs: args.plugin_dirs,
        upgrade: args.upgrade,
        lockfile: args.lockfile,
    };
    if !init::install(inputs, options, console).await? {
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
