//! `purlin version`.

use crate::cli::VERSION;
use crate::cli::args::{Format, VersionArgs};
use crate::cli::failure::Exit;
use crate::cli::json;
use crate::cli::output::Console;

pub fn run(args: &VersionArgs, console: Console) -> anyhow::Result<Exit> {
    console.result(|out| match args.output {
        Format::Text => writeln!(out, "purlin {VERSION}"),
        Format::Json => json::write_line(
            out,
            &serde_json::json!({"version": VERSION, "formatVersion": json::FORMAT_VERSION, "apiVersion": api::API_VERSION}),
        ),
    })?;
    Ok(Exit::Success)
}
