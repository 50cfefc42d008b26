//! `purlin completion`.

use clap::CommandFactory as _;

use crate::cli::args::{CompletionArgs, PurlinArgs};
use crate::cli::failure::Exit;
use crate::cli::output::Console;

pub fn run(args: &CompletionArgs, console: Console) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut PurlinArgs::command(), "purlin", &mut script);
    console.result(|out| out.write_all(&script))?;
    Ok(Exit::Success)
}
