//! `purlin launch-plugin`.

use crate::cli::args::LaunchPluginArgs;
use crate::cli::failure::Exit;
use tfprovider::plugin::launcher::{LaunchOptions, launch};

/// Replaces the process with the plugin. Returns only on errors.
pub fn run(args: LaunchPluginArgs) -> anyhow::Result<Exit> {
    let mut words = args.program.into_iter();
    // Clap requires at least one argument.
    let program = words.next().unwrap_or_default().into();
    let launching = LaunchOptions {
        parent: args.parent,
        memory: args.memory,
        read: args.read,
        write: args.write,
        program,
        arguments: words.collect(),
    };
    let error = launch(&launching);
    Err(anyhow::anyhow!("{} cannot be executed: {error}", launching.program.display()))
}
