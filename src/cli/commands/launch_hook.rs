//! `purlin launch-hook`.

use crate::cli::args::LaunchHookArgs;
use crate::cli::failure::Exit;
use crate::cli::output::Console;
use process::supervisor;

/// The exit code, if the program of a hook cannot be started, as in shells.
const NOT_STARTED: u8 = 127;

/// Runs the program of a hook, and ends with its exit code.
pub fn run(args: LaunchHookArgs, console: Console) -> anyhow::Result<Exit> {
    let mut words = args.program.into_iter();
    // Clap requires at least one argument.
    let program = words.next().unwrap_or_default();
    let arguments: Vec<_> = words.collect();
    let code = supervisor::run(&program, &arguments).unwrap_or_else(|error| {
        console.notice(&format!("`{}` cannot be started: {error}", program.display()));
        NOT_STARTED
    });
    Ok(Exit::Program(code))
}
