//! `purlin version`, `purlin crds` and `purlin completion`: print what the program says about itself.

use clap::CommandFactory as _;

use crate::cli::VERSION;
use crate::cli::args::{CompletionArgs, Format, PurlinArgs, VersionArgs};
use crate::cli::failure::Exit;
use crate::cli::json;
use crate::cli::output::Console;

pub fn version(args: &VersionArgs, console: Console) -> anyhow::Result<Exit> {
    console.result(|out| match args.output {
        Format::Text => writeln!(out, "purlin {VERSION}"),
        Format::Json => json::write_line(
            out,
            &serde_json::json!({"version": VERSION, "formatVersion": json::FORMAT_VERSION, "apiVersion": api::API_VERSION}),
        ),
    })?;
    Ok(Exit::Success)
}

/// Prints all definitions as one YAML stream.
pub fn crds(console: Console) -> anyhow::Result<Exit> {
    console.result(|out| {
        api::crds().iter().try_for_each(|(_, text)| {
            let separator = if text.starts_with("---") { "" } else { "---\n" };
            write!(out, "{separator}{text}")
        })
    })?;
    Ok(Exit::Success)
}

pub fn completion(args: &CompletionArgs, console: Console) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut PurlinArgs::command(), "purlin", &mut script);
    console.result(|out| out.write_all(&script))?;
    Ok(Exit::Success)
}
