//! `purlin validate`: checks manifests without records, a cluster or credentials.

use crate::cli::args::{Format, ValidateArgs};
use crate::cli::failure::Exit;
use crate::cli::inputs::has_errors;
use crate::cli::json::{Diagnostics, FORMAT_VERSION};
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::cli::{json, local};
use crate::execute::Limits;

/// With `-o json`, the diagnostics are printed to standard output, because they are the result.
pub async fn run(args: ValidateArgs, console: Console) -> anyhow::Result<Exit> {
    let files = Files::new(args.files, None);
    files.require_sources("validate")?;
    let checked = local::validate(&files, Limits::default()).await?;
    let problems = &checked.diagnostics;
    let failed = has_errors(problems);
    match args.output {
        Format::Json => {
            let diagnostics = Diagnostics(problems);
            let report =
                serde_json::json!({"formatVersion": FORMAT_VERSION, "valid": !failed, "diagnostics": diagnostics});
            console.result(|out| json::write_line(out, &report))?;
        }
        Format::Text => {
            console.diagnostics(problems);
            let count = checked.resources;
            let noun = if count == 1 { "Resource" } else { "Resources" };
            if !failed {
                console.result(|out| writeln!(out, "{count} {noun} checked, no errors."))?;
            }
        }
    }
    Ok(Exit::of(failed, false, false))
}
