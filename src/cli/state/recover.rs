//! `purlin state recover`: creates whose outcome is unknown after a crash.
//!
//! An import is written into the intent of the record, so that the next apply or the controller, which have the
//! provider and its configuration, import the object.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::confirm;
use super::edit::{self, RecordEdit};
use super::records::{self, Records};
use super::rows::Masked;
use crate::cli::args::{Format, StateRecoverArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::json::{self, FORMAT_VERSION};
use crate::cli::options::Target;
use crate::cli::output::Console;
use crate::cli::table::Table;
use model::text::counted;
use model::{Address, ImportRequest, Intent, Operation, Record, Recorded, Stored, Value};
use process::{Clock as _, SystemClock};

/// The attributes by which a user finds an object, in the order of the list.
const NAMES: [&str; 5] = ["id", "name", "namespace", "region", "location"];

pub async fn run(args: StateRecoverArgs, console: Console) -> anyhow::Result<Exit> {
    if args.imports.is_empty() && args.absent.is_empty() && !args.all_absent {
        return list(args, console).await;
    }
    let records = records::open(Target::from_args(args.target.clone()), console).await?;
    let resolutions = resolutions(&args, &records.recorded)?;
    if resolutions.is_empty() {
        console.notice("No create has an unknown outcome.");
        return Ok(Exit::Success);
    }
    for (stored, _) in &resolutions {
        require_ended(&records, &stored.record).await?;
    }
    if resolutions.iter().any(|(_, edited)| is_absent(edited)) {
        confirm(&question(&resolutions), args.yes, console)?;
    }
    write(&records, resolutions, console).await?;
    Ok(Exit::Success)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InterruptedCreate<'a> {
    address: &'a Address,
    #[serde(rename = "type")]
    type_name: &'a str,
    started: String,
    /// The import ID or identity that was given.
    import: Option<String>,
    planned: Masked<'a>,
}

async fn list(args: StateRecoverArgs, console: Console) -> anyhow::Result<Exit> {
    let records = records::read(Target::from_args(args.target), console).await?;
    let creates = records.recorded.values().filter_map(|stored| Some((&*stored.record, open_create(&stored.record)?)));
    let rows: Vec<_> = creates.map(|(record, intent)| row(record, intent)).collect();
    let exit = Exit::of(!records.diagnostics.is_empty(), false, false);
    if args.output == Format::Json {
        let document = serde_json::json!({"formatVersion": FORMAT_VERSION, "creates": rows});
        console.result(|out| json::write_line(out, &document))?;
        return Ok(exit);
    }
    console.diagnostics(&records.diagnostics);
    if rows.is_empty() {
        console.notice("No create has an unknown outcome.");
        return Ok(exit);
    }
    let mut table = Table::new(["ADDRESS", "TYPE", "STARTED", "IMPORT", "PLANNED"]);
    for row in rows {
        let import = row.import.unwrap_or_else(|| "-".to_owned());
        table.push([row.address.to_string(), row.type_name.to_owned(), row.started, import, names(row.planned.0)]);
    }
    console.table(&table)?;
    Ok(exit)
}

/// The intent of a create that has not returned.
fn open_create(record: &Record) -> Option<&Intent> {
    record.intent.as_deref().filter(|intent| intent.operation == Operation::Create && record.current.is_none())
}

fn row<'a>(record: &'a Record, intent: &'a Intent) -> InterruptedCreate<'a> {
    InterruptedCreate {
        address: &record.address,
        type_name: &record.type_name,
        started: format!("{:.0}", intent.started),
        import: intent.import.as_ref().map(ToString::to_string),
        planned: Masked(intent.planned.as_ref().map(|planned| &planned.planned)),
    }
}

/// What identifies the planned object: its names, also inside of a block `metadata`, or else its first strings.
fn names(planned: Option<&Value>) -> String {
    let Some(planned) = planned else { return String::new() };
    let metadata = ["metadata", "object"].into_iter().filter_map(|name| planned.get(name));
    let metadata = metadata.map(|value| value.get("metadata").unwrap_or(value)).filter_map(|value| match value {
        Value::List(items) => items.first(),
        value => Some(value),
    });
    let places: Vec<&Value> = [planned].into_iter().chain(metadata).collect();
    let named = places.iter().flat_map(|place| NAMES.iter().filter_map(|name| named_text(name, place.get(name)?)));
    let mut texts: Vec<String> = named.collect();
    if let (Value::Map(map), true) = (planned, texts.is_empty()) {
        texts.extend(map.iter().filter_map(|(name, value)| named_text(name, value)).take(3));
    }
    texts.join(", ")
}

fn named_text(name: &str, value: &Value) -> Option<String> {
    Some(format!("{name} = {}", value.as_str()?))
}

type Resolution<'r> = (&'r Stored, RecordEdit);

fn is_absent(edited: &RecordEdit) -> bool {
    !matches!(edited, RecordEdit::Write(record) if record.intent.is_some())
}

/// What to write for each create that the arguments name.
fn resolutions<'r>(args: &StateRecoverArgs, recorded: &'r Recorded) -> anyhow::Result<Vec<Resolution<'r>>> {
    let imported: BTreeSet<&Address> = args.imports.iter().map(|(address, _)| address).collect();
    if let Some(both) = args.absent.iter().find(|address| imported.contains(address)) {
        return Err(Failure::hinted(format!("`{both}` is in both --import and --absent"), "name it once"));
    }
    let mut resolutions = Vec::new();
    for (address, id) in &args.imports {
        let stored = interrupted(recorded, address)?;
        resolutions.push((stored, import(&stored.record, id)));
    }
    let absent = args.absent.iter().map(|address| interrupted(recorded, address));
    let others = recorded
        .values()
        .filter(|_| args.all_absent)
        .filter(|stored| open_create(&stored.record).is_some() && !imported.contains(&stored.record.address));
    for stored in absent.chain(others.map(Ok)) {
        let stored = stored?;
        resolutions.push((stored, edit::remove(&stored.record, true)?));
    }
    Ok(resolutions)
}

fn interrupted<'r>(recorded: &'r Recorded, address: &Address) -> anyhow::Result<&'r Stored> {
    let stored = recorded.get(address).filter(|stored| open_create(&stored.record).is_some());
    stored.ok_or_else(|| {
        let hint = "`purlin state recover` lists the creates whose outcome is unknown";
        Failure::hinted(format!("`{address}` has no interrupted create"), hint)
    })
}

async fn require_ended(records: &Records, record: &Record) -> anyhow::Result<()> {
    if records.editor.create_has_ended(record, SystemClock.now()).await? {
        return Ok(());
    }
    let deadline = record.intent.as_ref().map(|intent| intent.deadline).unwrap_or_default();
    let what = format!("the create of `{}` may still be running until {deadline:.0}", record.address);
    Err(Failure::hinted(what, "wait until then; the controller records the result of a create that returns"))
}

fn import(record: &Record, id: &str) -> RecordEdit {
    let mut edited = record.clone();
    if let Some(intent) = &mut edited.intent {
        intent.import = Some(ImportRequest::Id(Arc::from(id)));
    }
    RecordEdit::Write(Box::new(edited))
}

fn question(resolutions: &[Resolution<'_>]) -> String {
    let absent = resolutions.iter().filter(|(_, edited)| is_absent(edited));
    let names: Vec<String> = absent.map(|(stored, _)| format!("`{}`", stored.record.address)).collect();
    let count = counted(names.len(), "object");
    format!("{count} will count as not created: {}. If one exists, Purlin no longer knows about it.", names.join(", "))
}

async fn write(records: &Records, resolutions: Vec<Resolution<'_>>, console: Console) -> anyhow::Result<()> {
    for (stored, edited) in resolutions {
        let done = match is_absent(&edited) {
            true => "counts as not created",
            false => "is imported by the next apply or the controller",
        };
        records.editor.write(stored, edited).await?;
        console.notice(&format!("`{}` {done}.", stored.record.address));
    }
    Ok(())
}
