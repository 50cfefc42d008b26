//! `purlin state export --terraform`: exports records as a Terraform or OpenTofu state.

use std::io::Write as _;

use super::{edit, records};
use crate::cli::args::StateExportArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::Target;
use crate::cli::output::Console;
use crate::migrate;
use crate::process::{Random as _, SystemRandom, private_file};

pub async fn run(args: StateExportArgs, console: Console) -> anyhow::Result<Exit> {
    let records = records::read(Target::from_args(args.target), console).await?;
    if !records.diagnostics.is_empty() {
        console.diagnostics(&records.diagnostics);
        console.notice("Nothing was exported.");
        return Ok(Exit::Problems);
    }
    records.recorded.values().try_for_each(|stored| edit::require_no_intent(&stored.record))?;
    let lineage = args.lineage.unwrap_or_else(|| SystemRandom.uuid());
    let (text, notes) = migrate::export::state(&records.recorded, &lineage, args.serial)?;
    match &args.out {
        None => console.result(|out| out.write_all(text.as_bytes()))?,
        Some(path) => {
            let failed = |error: std::io::Error| {
                Failure::hinted(format!("`{}` cannot be written: {error}", path.display()), "specify another file")
            };
            let mut file = private_file::options().create_new(true).open(path).map_err(failed)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        }
    }
    notes.iter().for_each(|note| console.notice(&format!("note: {note}")));
    console.notice("The state contains sensitive values in plain text. Only one tool may manage the objects.");
    Ok(Exit::Success)
}
