//! `purlin history NAME`: the last changes of an object, from its record.

use std::io;

use serde::Serialize;

use crate::cli::args::{Format, HistoryArgs};
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::json::{self, Diagnostics, FORMAT_VERSION};
use crate::cli::options::{Target, address, matches_name};
use crate::cli::output::Console;
use crate::cli::state::records;
use crate::cli::table::Table;
use model::history_list::{self, ListedChange};
use model::{Address, Diagnostic, Record, Recorded, suggest};

pub async fn run(args: HistoryArgs, console: Console) -> anyhow::Result<Exit> {
    let address = address(&args.address)?;
    let target = Target::from_args(args.target);
    let records = records::read(target.clone(), console).await?;
    let selected = records.recorded.values().map(|stored| stored.record.as_ref());
    let selected: Vec<&Record> = selected.filter(|record| matches_name(&args.address, &record.address)).collect();
    let mut diagnostics = records.diagnostics;
    diagnostics
        .retain(|unreadable| unreadable.address.as_ref().is_some_and(|address| matches_name(&args.address, address)));
    if selected.is_empty() && diagnostics.is_empty() {
        if let Target::Cluster(target) = &target {
            // The error of a Resource that does not exist says more.
            cluster::require(target, &args.address).await?;
        }
        return Err(not_recorded(&address, &records.recorded));
    }
    let changes = history_list::listed(selected.iter().copied());
    let exit = Exit::of(!diagnostics.is_empty(), false, false);
    if args.output == Format::Json {
        console.result(|out| write_json(out, &changes, &diagnostics))?;
        return Ok(exit);
    }
    console.diagnostics(&diagnostics);
    if changes.is_empty() {
        console.notice("No changes are recorded.");
        return Ok(exit);
    }
    if selected.len() == 1 {
        let mut table = Table::new(["WHEN", "ACTION", "DURATION", "RESULT", "WHY"]);
        changes.iter().for_each(|change| table.push(change.cells()));
        console.table(&table)?;
    } else {
        let mut table = Table::new(["ADDRESS", "WHEN", "ACTION", "DURATION", "RESULT", "WHY"]);
        for change in &changes {
            let [when, action, duration, result, why] = change.cells();
            table.push([change.address.to_string(), when, action, duration, result, why]);
        }
        console.table(&table)?;
    }
    Ok(exit)
}

fn write_json(out: &mut dyn io::Write, changes: &[ListedChange<'_>], diagnostics: &[Diagnostic]) -> io::Result<()> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Document<'a> {
        format_version: &'a str,
        changes: &'a [ListedChange<'a>],
        diagnostics: Diagnostics<'a>,
    }
    json::write_line(out, &Document { format_version: FORMAT_VERSION, changes, diagnostics: Diagnostics(diagnostics) })
}

fn not_recorded(address: &Address, recorded: &Recorded) -> anyhow::Error {
    let names = recorded.keys().map(|other| &**other.stem.text()).filter(|name| *name != &**address.stem.text());
    let instance = recorded.keys().find(|other| other.stem == address.stem);
    let hint = match (instance, suggest::closest(address.stem.text(), names)) {
        (Some(instance), _) => {
            format!("specify an instance with a record, such as `{instance}` (quoted for your shell)")
        }
        (None, Some(similar)) => format!("did you mean `{similar}`?"),
        (None, None) => {
            "`purlin state list` lists the records; the history of an object ends with its record".to_owned()
        }
    };
    Failure::hinted(format!("`{address}` has no record"), hint)
}
