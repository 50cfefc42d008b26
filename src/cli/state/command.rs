//! The `purlin state` commands. Edits use compare-and-swap.

use super::confirm;
use super::edit::{self, RecordEdit};
use super::records::{self, Editor, Records};
use super::rows::Row;
use super::{export, push, recover, rows};
use crate::cli::args::{
    Format, StateCommand, StateEditArgs, StateListArgs, StateMoveArgs, StateReleaseArgs, StateRemoveArgs,
    StateRestoreArgs, StateShowArgs,
};
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Target, address, matches_name};
use crate::cli::output::Console;
use crate::cli::table::Table;
use engine::plan::moves::{Move, unfinished};
use engine::plan::render::{Detail, Sign, tree, whole_attributes};
use model::text::one_line;
use model::{Address, Record, Recorded, Stored, Text, Tone, Value};
use runtime::execute;

pub async fn run(command: StateCommand, console: Console) -> anyhow::Result<Exit> {
    match command {
        StateCommand::List(args) => return list(args, console).await,
        StateCommand::Export(args) => return export::run(args, console).await,
        StateCommand::Recover(args) => return recover::run(args, console).await,
        StateCommand::Show(args) => show(args, console).await?,
        StateCommand::Rm(args) => remove(args, console).await?,
        StateCommand::Mv(args) => move_records(args, console).await?,
        StateCommand::Taint(args) => taint(args, console).await?,
        StateCommand::Untaint(args) => {
            edit(args, edit::untaint, ("is no longer tainted", "is not tainted"), console).await?;
        }
        StateCommand::Unprotect(args) => {
            edit(args, edit::unprotect, ("is no longer protected", "is not protected"), console).await?;
        }
        StateCommand::Restore(args) => restore(args, console).await?,
        StateCommand::Push(args) => push::run(args, console).await?,
        StateCommand::Release(args) => release(args, console).await?,
    }
    Ok(Exit::Success)
}

async fn list(args: StateListArgs, console: Console) -> anyhow::Result<Exit> {
    let target = Target::from_args(args.target);
    let mut records = records::read(target.clone(), console).await?;
    records.retain_sources(&target);
    let mut rows = records.recorded.values().flat_map(|stored| rows::rows(&stored.record));
    let exit = Exit::of(!records.diagnostics.is_empty(), false, false);
    if args.output == Format::Json {
        console.result(|out| rows::write_json(out, &mut rows, &records.diagnostics))?;
        return Ok(exit);
    }
    console.diagnostics(&records.diagnostics);
    let mut table = Table::new(["ADDRESS", "TYPE", "STATUS", "DEPOSED", "ID"]);
    for row in rows {
        let id = row.values.0.and_then(|values| values.get("id")).filter(|id| !id.has_sensitive());
        let id = id.and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = row.deposed_key.map(|key| key.to_string()).unwrap_or_default();
        table.push([row.address.to_string(), row.type_name.to_owned(), row.status.to_owned(), key, id]);
    }
    if table.is_empty() {
        console.notice("No objects are recorded.");
        return Ok(exit);
    }
    console.table(&table)?;
    Ok(exit)
}

async fn show(args: StateShowArgs, console: Console) -> anyhow::Result<()> {
    let address = address(&args.address)?;
    let records = records::read(Target::from_args(args.target), console).await?;
    // The name of a family selects all of its instances.
    let selected: Vec<&Record> = records
        .recorded
        .values()
        .map(|stored| stored.record.as_ref())
        .filter(|record| matches_name(&args.address, &record.address))
        .collect();
    if selected.is_empty() {
        return Err(not_recorded(&address, &records.recorded));
    }
    let mut rows = selected.iter().flat_map(|record| rows::rows(record));
    if args.output == Format::Json {
        return console.result(|out| rows::write_json(out, &mut rows, &[]));
    }
    let mut text = console.text();
    for row in rows {
        write_row(&row, Detail { full: args.full }, &mut text);
    }
    for record in selected.iter().filter(|record| rows::rows(record).next().is_none()) {
        let status = if record.replacement_pending { REPLACED } else { "no object exists" };
        text.tone(Tone::Strong, &record.address).end_line();
        text.put(format_args!("  type:    {}\n  status:  {status}\n", record.type_name));
    }
    console.print(&text)
}

/// The status of a replacement that has not created the new object.
const REPLACED: &str = "the old object is destroyed, and the new one is not created yet";

/// Writes an object with its values.
pub fn write_row(row: &Row<'_>, detail: Detail, text: &mut Text) {
    let deposed = row.deposed_key.map(|key| format!(" (deposed {key})")).unwrap_or_default();
    text.tone(Tone::Strong, format_args!("{}{deposed}", row.address)).end_line();
    let order = if row.create_before_destroy { "create before destroy" } else { "destroy before create" };
    let facts = [("type", row.type_name), ("status", row.status), ("replace", order)];
    let dependencies = row.dependencies.join(", ");
    let depends = Some(("depends", dependencies.as_str())).filter(|_| !dependencies.is_empty());
    for (name, fact) in facts.into_iter().chain(depends) {
        text.put(format_args!("  {:<9}{}", format!("{name}:"), one_line(fact))).end_line();
    }
    if let Some(values) = row.values.0 {
        text.put("  values:").end_line();
        tree::write(&whole_attributes(values, Sign::None, detail), 0, text);
    }
}

async fn remove(args: StateRemoveArgs, console: Console) -> anyhow::Result<()> {
    let address = address(&args.address)?;
    let records = records::open(Target::from_args(args.target), console).await?;
    forget(&records, &address, (args.yes, args.force), console).await
}

/// Removes the records that an address selects, and the marks of those that are missing.
pub async fn forget(
    records: &Records,
    address: &Address,
    (yes, force): (bool, bool),
    console: Console,
) -> anyhow::Result<()> {
    if let Some(unreadable) = records.unreadable.iter().find(|unreadable| unreadable.address == *address) {
        let question = format!("{unreadable}\nThe object is kept, but is no longer managed.");
        confirm(&question, yes, console)?;
        records.editor.remove_unreadable(unreadable).await?;
        console.notice(&format!("`{address}` is forgotten."));
        return Ok(());
    }
    // The missing record takes precedence over other instances of the name.
    let selected = match records.editor.is_missing(address) {
        true => Vec::new(),
        false => selected(address, &records.recorded),
    };
    let is_recorded = selected.iter().any(|stored| stored.record.address == *address);
    let missing = if is_recorded { Vec::new() } else { missing(records, address).await? };
    if selected.is_empty() && missing.is_empty() {
        return Err(not_recorded(address, &records.recorded));
    }
    let edited = selected.iter().map(|stored| edit::remove(&stored.record, force));
    let edited = edited.collect::<anyhow::Result<Vec<_>>>()?;
    let absences = missing.iter().map(|missing| match !missing.is_instance() && !selected.is_empty() {
        true => format!("The index of `{missing}` was lost. Instances without a record are treated as never created."),
        false => format!("`{missing}` has no record. It is treated as never created."),
    });
    let removals = selected.iter().map(|stored| edit::removal_question(&stored.record));
    let mut question = absences.chain(removals).collect::<Vec<_>>().join("\n");
    if matches!(records.editor, Editor::Cluster(_)) && !selected.is_empty() {
        question.push_str(" Unless its Resource is deleted or suspended, the controller will create it again.");
    }
    let erased = selected.iter().zip(&edited).filter(|(_, edited)| **edited == RecordEdit::Delete);
    let left: Vec<String> = erased.filter_map(|(stored, _)| edit::remaining_copies(&stored.record)).collect();
    question.extend(left.iter().map(|left| format!(" {left}")));
    confirm(&question, yes, console)?;
    // While the others are recorded, an index that was lost is written again, and their removal then ends as usual.
    for missing in &missing {
        records.editor.forget_missing(missing).await?;
        match !missing.is_instance() && !selected.is_empty() {
            true => console.notice(&format!("Instances of `{missing}` without a record are forgotten.")),
            false => console.notice(&format!("`{missing}` is forgotten.")),
        }
    }
    for (stored, edited) in selected.iter().zip(edited) {
        records.editor.write(stored, edited).await?;
        console.notice(&format!("`{}` is forgotten.", stored.record.address));
    }
    left.iter().for_each(|left| console.notice(left));
    Ok(())
}

/// The missing records that an address stands for: a Resource, or the index of a family, may refer to a record that does not
/// exist (`RecordMissing`). A record that cannot be read is not missing, so beside it a name stands for nothing.
async fn missing(records: &Records, address: &Address) -> anyhow::Result<Vec<Address>> {
    let is_family = !address.is_instance() && !records.editor.is_missing(address);
    if is_family && records.unreadable.iter().any(|record| record.address.stem == address.stem) {
        return Ok(Vec::new());
    }
    records.editor.missing(address).await
}

async fn move_records(args: StateMoveArgs, console: Console) -> anyhow::Result<()> {
    let (from, to) = (address(&args.from)?, address(&args.to)?);
    let mut records = records::open(Target::from_args(args.target), console).await?;
    let selected: Vec<Stored> = selected(&from, &records.recorded).into_iter().cloned().collect();
    if selected.is_empty() {
        return Err(not_recorded(&from, &records.recorded));
    }
    let is_family = selected.iter().any(|stored| stored.record.address != from);
    if let Some(unreadable) = records.unreadable.iter().find(|record| is_family && record.address.stem == from.stem) {
        return Err(Failure::hinted(unreadable.to_string(), "move the instances one by one"));
    }
    if is_family && to.is_instance() {
        let what = format!("`{from}` is a family, but `{to}` is a single instance");
        return Err(Failure::hinted(what, "omit the key of the destination, or specify the instance to move"));
    }
    let mut pairs: Vec<(Stored, Address)> = Vec::new();
    let unfinished = unfinished(&records.recorded);
    for stored in selected {
        edit::require_no_intent(&stored.record)?;
        let key = if is_family { &stored.record.address.key } else { &to.key };
        let to = to.stem.clone().instance(key.clone());
        edit::require_no_move(&unfinished, [&stored.record.address, &to])?;
        if let Some(occupant) = records.recorded.get(&to).filter(|occupant| !occupant.record.is_empty()) {
            let what = format!("`{}` already has a record", occupant.record.address);
            return Err(Failure::hinted(
                what,
                format!("to forget that object without destroying it: `purlin state rm {to}`"),
            ));
        }
        pairs.push((stored, to));
    }
    let after = match &records.editor {
        Editor::File(state) => {
            let moves = pairs.iter().map(|(stored, to)| {
                let (from, uid) = (stored.record.address.clone(), stored.record.uid.clone());
                Move { from, to: to.clone(), uid, reverted: false, conversion: None }
            });
            execute::apply_moves(state.as_ref(), &mut records.recorded, &moves.collect::<Vec<_>>()).await?;
            ""
        }
        Editor::Cluster(editor) => {
            for (stored, to) in &pairs {
                editor.move_record(stored, to).await?;
            }
            "; the controller completes the move"
        }
    };
    for (stored, to) in &pairs {
        console.notice(&format!("Moved `{}` to `{to}`{after}.", stored.record.address));
    }
    Ok(())
}

/// Returns the record of exactly this address. Without such a record, a name without a key selects all instances of the
/// family.
fn selected<'r>(address: &Address, recorded: &'r Recorded) -> Vec<&'r Stored> {
    match recorded.get(address) {
        Some(stored) => vec![stored],
        None if address.is_instance() => Vec::new(),
        None => recorded.values().filter(|stored| stored.record.address.stem == address.stem).collect(),
    }
}

/// Tainting a tainted object is not an error, so that interrupted scripts can be repeated.
async fn taint(args: StateEditArgs, console: Console) -> anyhow::Result<()> {
    let address = args.address.clone();
    if !write_edited(args, edit::taint, "is tainted: the next plan replaces it", console).await? {
        console.notice(&format!("`{address}` is already tainted. Nothing was changed."));
        console.notice(&format!("hint: the next apply replaces it; `purlin state untaint {address}` prevents that"));
    }
    Ok(())
}

async fn edit(
    args: StateEditArgs,
    edit: fn(&Record) -> anyhow::Result<RecordEdit>,
    (done, already): (&str, &str),
    console: Console,
) -> anyhow::Result<()> {
    let address = args.address.clone();
    match write_edited(args, edit, done, console).await? {
        true => Ok(()),
        false => Err(Failure::hinted(format!("`{address}` {already}"), "nothing was changed")),
    }
}

/// Edits all selected records, or none if one of them cannot be edited. Returns whether a record was changed.
async fn write_edited(
    args: StateEditArgs,
    edit: fn(&Record) -> anyhow::Result<RecordEdit>,
    done: &str,
    console: Console,
) -> anyhow::Result<bool> {
    let address = address(&args.address)?;
    let records = records::open(Target::from_args(args.target), console).await?;
    let selected = selected(&address, &records.recorded);
    if selected.is_empty() {
        return Err(not_recorded(&address, &records.recorded));
    }
    let edited = selected.iter().map(|stored| edit(&stored.record)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut any = false;
    for (stored, edited) in selected.into_iter().zip(edited).filter(|(_, edited)| *edited != RecordEdit::Unchanged) {
        records.editor.write(stored, edited).await?;
        console.notice(&format!("`{}` {done}.", stored.record.address));
        any = true;
    }
    Ok(any)
}

async fn restore(args: StateRestoreArgs, console: Console) -> anyhow::Result<()> {
    let address = address(&args.address)?;
    let records = records::open(Target::from_args(args.target), console).await?;
    let stored = records.recorded.get(&address).ok_or_else(|| not_recorded(&address, &records.recorded))?;
    edit::require_no_move(&unfinished(&records.recorded), [&address, &address])?;
    records.editor.write(stored, edit::restore(&stored.record, args.key)?).await?;
    let was_current = stored.record.current.as_ref();
    let replaced = was_current.map_or("", |_| ", and the next apply destroys the object that was current");
    console.notice(&format!("The deposed object {} of `{address}` is current again{replaced}.", args.key));
    Ok(())
}

async fn release(args: StateReleaseArgs, console: Console) -> anyhow::Result<()> {
    let Target::Cluster(target) = Target::from_args(args.target) else {
        return Err(Failure::hinted(
            "`purlin state release` works only on a cluster: files have no finalizers",
            "to forget an object without destroying it: `purlin state rm ADDRESS`",
        ));
    };
    let address = args.address.as_deref().map(address).transpose()?;
    let what = address.as_ref().map_or("every Resource in the namespace".to_owned(), |address| format!("`{address}`"));
    let question = format!(
        "The finalizer of {what} is removed. Objects and records are kept, and adopted when the Resource is applied again."
    );
    confirm(&question, args.yes, console)?;
    let released = cluster::release(&target, address.as_ref()).await?;
    console.notice(&format!("{released} released."));
    Ok(())
}

fn not_recorded(address: &Address, recorded: &Recorded) -> anyhow::Error {
    let instance = recorded.keys().find(|other| other.stem == address.stem);
    let hint = match instance {
        Some(instance) => format!("specify an instance with a record, such as `{instance}` (quoted for your shell)"),
        None => "`purlin state list` lists the records".to_owned(),
    };
    Failure::hinted(format!("`{address}` has no record"), hint)
}
