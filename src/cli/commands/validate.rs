//! `purlin validate`: checks manifests without records, a cluster or credentials.

use crate::cli::args::{Format, ValidateArgs};
use crate::cli::failure::Exit;
use crate::cli::json::{Diagnostics, FORMAT_VERSION};
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::cli::{json, local};
use engine::plan::render::problems;
use model::has_errors;
use runtime::execute::Limits;

/// With `-o json`, the diagnostics are printed to standard output, because they are the result.
pub async fn run(args: ValidateArgs, console: Console) -> anyhow::Result<Exit> {
    let files = Files::new(args.files, None);
    files.require_sources("validate")?;
    let checked = local::validate(&files, Limits::default()).await?;
    let diagnostics = &checked.diagnostics;
    let failed = has_errors(diagnostics);
    match args.output {
        Format::Json => {
            let diagnostics = Diagnostics(diagnostics);
            let report =
                serde_json::json!({"formatVersion": FORMAT_VERSION, "valid": !failed, "diagnostics": diagnostics});
            console.result(|out| json::write_line(out, &report))?;
        }
        Format::Text => {
            console.problems(&problems::collect(&checked.changes, diagnostics));
            let count = checked.resources;
            let noun = if count == 1 { "Resource" } else { "Resources" };
            if !failed {
                console.lines(format_args!("{count} {noun} checked, no errors.\n"))?;
            }
        }
    }
    Ok(Exit::of(failed, false, false))
}
