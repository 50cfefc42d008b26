//! `purlin state`: looks at records, and repairs them by compare-and-swap.

use super::edit::{self, Edited};
use super::records::{self, Editor, Records};
use super::{export, rows};
use crate::cli::args::{
    Format, StateCommand, StateEditArgs, StateListArgs, StateMoveArgs, StateReleaseArgs, StateRemoveArgs, StateShowArgs,
};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Target, address, names};
use crate::cli::output::Console;
use crate::cli::table::Table;
use crate::cli::{cluster, json};
use crate::execute;
use crate::model::{Address, Record, Recorded, Stored, Value};
use crate::plan::moves::Move;

/// Runs the command.
pub async fn run(command: StateCommand, console: Console) -> anyhow::Result<Exit> {
    match command {
        StateCommand::List(args) => return list(args, console).await,
        StateCommand::Export(args) => return export::run(args, console).await,
        StateCommand::Show(args) => show(args, console).await?,
        StateCommand::Rm(args) => remove(args, console).await?,
        StateCommand::Mv(args) => relocate(args, console).await?,
        StateCommand::Taint(args) => taint(args, console).await?,
        StateCommand::Untaint(args) => {
            edit(args, edit::untaint, ("is not tainted any more", "is not tainted"), console).await?;
        }
        StateCommand::Unprotect(args) => {
            edit(args, edit::unprotect, ("is not protected any more", "is not protected"), console).await?;
        }
        StateCommand::Release(args) => release(args, console).await?,
    }
    Ok(Exit::Success)
}

async fn list(args: StateListArgs, console: Console) -> anyhow::Result<Exit> {
    let records = records::read(Target::decide(args.target), console).await?;
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
        console.notice("Nothing is recorded.");
        return Ok(exit);
    }
    console.result(|out| table.write(out))?;
    Ok(exit)
}

async fn show(args: StateShowArgs, console: Console) -> anyhow::Result<()> {
    let address = address(&args.address)?;
    let records = records::read(Target::decide(args.target), console).await?;
    // The name of a family stands for all of its instances.
    let meant: Vec<&Record> = records
        .recorded
        .values()
        .map(|stored| stored.record.as_ref())
        .filter(|record| names(&args.address, &record.address))
        .collect();
    if meant.is_empty() {
        return Err(not_recorded(&address, &records.recorded));
    }
    let mut rows = meant.iter().flat_map(|record| rows::rows(record));
    if args.output == Format::Json {
        return console.result(|out| rows::write_json(out, &mut rows, &[]));
    }
    console.result(|out| {
        for row in rows {
            let leftover = row.deposed_key.map(|key| format!(" (deposed {key})")).unwrap_or_default();
            writeln!(out, "{}", console.paint.strong(&format!("{}{leftover}", row.address)))?;
            writeln!(out, "  type:    {}\n  status:  {}", row.type_name, row.status)?;
            let order = if row.create_before_destroy { "creates first" } else { "destroys first" };
            writeln!(out, "  replace: {order}")?;
            let dependencies: Vec<String> = row.dependencies.iter().map(ToString::to_string).collect();
            if !dependencies.is_empty() {
                writeln!(out, "  used:    {}", dependencies.join(", "))?;
            }
            out.write_all(b"  values:  ")?;
            json::line(out, &row.values)?;
        }
        Ok(())
    })
}

async fn remove(args: StateRemoveArgs, console: Console) -> anyhow::Result<()> {
    let address = address(&args.address)?;
    let target = Target::decide(args.target);
    let records = records::open(target.clone(), console).await?;
    if let Some(found) = records.unreadable.iter().find(|found| found.address == address) {
        let question = format!("{found}\nWhat it is about stays, and is no longer managed.");
        confirm(&question, args.yes, console)?;
        records.editor.remove_unreadable(found).await?;
        console.notice(&format!("`{address}` is forgotten."));
        return Ok(());
    }
    let meant = meant(&address, &records.recorded);
    // What is missing is that very record, whatever else has the name.
    if meant.is_empty() || records.editor.misses(&address) {
        return forget_missing(&records, &address, args.yes, console).await;
    }
    let edited = meant.iter().map(|stored| edit::remove(&stored.record, args.force));
    let edited = edited.collect::<anyhow::Result<Vec<_>>>()?;
    let mut question = meant.iter().map(|stored| edit::removal(&stored.record)).collect::<Vec<_>>().join("\n");
    if matches!(target, Target::Cluster(_)) {
        question.push_str(" Unless its Resource is deleted or suspended, the controller will create it again.");
    }
    let erased = meant.iter().zip(&edited).filter(|(_, edited)| **edited == Edited::Erased);
    let left: Vec<String> = erased.filter_map(|(stored, _)| edit::left_behind(&stored.record)).collect();
    question.extend(left.iter().map(|left| format!(" {left}")));
    confirm(&question, args.yes, console)?;
    for (stored, edited) in meant.iter().zip(edited) {
        records.editor.write(stored, edited).await?;
        console.notice(&format!("`{}` is forgotten.", stored.record.address));
    }
    left.iter().for_each(|left| console.notice(left));
    Ok(())
}

/// A Resource, or the index of a family, may say that there is a record when there is none (`RecordMissing`): then that
/// is what is forgotten.
async fn forget_missing(records: &Records, address: &Address, yes: bool, console: Console) -> anyhow::Result<()> {
    let Editor::Cluster(editor) = &records.editor else { return Err(not_recorded(address, &records.recorded)) };
    confirm(&format!("`{address}` has no record. It is taken never to have been made."), yes, console)?;
    editor.forget_missing(address).await?;
    console.notice(&format!("`{address}` is forgotten."));
    Ok(())
}

async fn relocate(args: StateMoveArgs, console: Console) -> anyhow::Result<()> {
    let (from, to) = (address(&args.from)?, address(&args.to)?);
    let mut records = records::open(Target::decide(args.target), console).await?;
    let meant: Vec<Stored> = meant(&from, &records.recorded).into_iter().cloned().collect();
    if meant.is_empty() {
        return Err(not_recorded(&from, &records.recorded));
    }
    let is_family = meant.iter().any(|stored| stored.record.address != from);
    if let Some(unreadable) = records.unreadable.iter().find(|found| is_family && found.address.name == from.name) {
        return Err(Failure::hinted(unreadable.to_string(), "name the instances that are to be moved one by one"));
    }
    if is_family && to.is_instance() {
        let what = format!("`{from}` is a family, and `{to}` one instance");
        return Err(Failure::hinted(what, "name a Resource without a key, or the instance that is to be moved"));
    }
    let mut pairs: Vec<(Stored, Address)> = Vec::new();
    for stored in meant {
        edit::require_settled(&stored.record)?;
        let key = if is_family { &stored.record.address.key } else { &to.key };
        let to = Address { name: to.name.clone(), key: key.clone() };
        if let Some(occupant) = records.recorded.get(&to).filter(|occupant| !occupant.record.is_empty()) {
            let what = format!("`{}` has a record already", occupant.record.address);
            return Err(Failure::hinted(
                what,
                format!("to forget that object and let it stay: `purlin state rm {to}`"),
            ));
        }
        pairs.push((stored, to));
    }
    let after = match &records.editor {
        Editor::File(state) => {
            let one = |(stored, to): &(Stored, Address)| {
                let (from, uid) = (stored.record.address.clone(), stored.record.uid.clone());
                Move { from, to: to.clone(), uid, back: false, conversion: None }
            };
            let moves: Vec<Move> = pairs.iter().map(one).collect();
            execute::carry_out(state, &mut records.recorded, &moves).await?;
            ""
        }
        Editor::Cluster(editor) => {
            for (stored, to) in &pairs {
                editor.relocate(stored, to).await?;
            }
            "; the controller carries it out"
        }
    };
    for (stored, to) in &pairs {
        console.notice(&format!("`{}` is `{to}` from now on{after}.", stored.record.address));
    }
    Ok(())
}

/// What an address means: the object of that very address; without a key, and where there is none, all instances of the
/// family.
fn meant<'r>(address: &Address, recorded: &'r Recorded) -> Vec<&'r Stored> {
    match recorded.get(address) {
        Some(stored) => vec![stored],
        None if address.is_instance() => Vec::new(),
        None => recorded.values().filter(|stored| stored.record.address.name == address.name).collect(),
    }
}

/// To taint twice is no error: a script that was cut may be run again.
async fn taint(args: StateEditArgs, console: Console) -> anyhow::Result<()> {
    let address = args.address.clone();
    if !write_edited(args, edit::taint, "is tainted: the next plan replaces it", console).await? {
        console.notice(&format!("`{address}` is tainted already, and nothing was changed."));
        console.notice(&format!("hint: the next apply replaces it; `purlin state untaint {address}` lets it stay"));
    }
    Ok(())
}

async fn edit(
    args: StateEditArgs,
    edit: fn(&Record) -> anyhow::Result<Edited>,
    (done, already): (&str, &str),
    console: Console,
) -> anyhow::Result<()> {
    let address = args.address.clone();
    match write_edited(args, edit, done, console).await? {
        true => Ok(()),
        false => Err(Failure::hinted(format!("`{address}` {already}"), "nothing was changed")),
    }
}

/// Edits all that an address means, unless one of it must not be. Gives whether anything was to be done.
async fn write_edited(
    args: StateEditArgs,
    edit: fn(&Record) -> anyhow::Result<Edited>,
    done: &str,
    console: Console,
) -> anyhow::Result<bool> {
    let address = address(&args.address)?;
    let records = records::open(Target::decide(args.target), console).await?;
    let meant = meant(&address, &records.recorded);
    if meant.is_empty() {
        return Err(not_recorded(&address, &records.recorded));
    }
    let edited = meant.iter().map(|stored| edit(&stored.record)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut any = false;
    for (stored, edited) in meant.into_iter().zip(edited).filter(|(_, edited)| *edited != Edited::Same) {
        records.editor.write(stored, edited).await?;
        console.notice(&format!("`{}` {done}.", stored.record.address));
        any = true;
    }
    Ok(any)
}

async fn release(args: StateReleaseArgs, console: Console) -> anyhow::Result<()> {
    let Target::Cluster(target) = Target::decide(args.target) else {
        return Err(Failure::hinted(
            "files have no finalizers, so there is nothing to release",
            "to forget an object and let it stay: `purlin state rm ADDRESS`",
        ));
    };
    let wanted = args.address.as_deref().map(address).transpose()?;
    let what = wanted.as_ref().map_or("Every Resource of the namespace".to_owned(), |address| format!("`{address}`"));
    let question =
        format!("{what} loses its finalizer. Objects and records stay; applying the Resource again adopts them.");
    confirm(&question, args.yes, console)?;
    let released = cluster::release(&target, wanted.as_ref()).await?;
    console.notice(&format!("{released} released."));
    Ok(())
}

fn confirm(what: &str, yes: bool, console: Console) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !console.can_ask {
        return Err(Failure::hinted("there is no terminal to ask for confirmation on", "add --yes"));
    }
    match console.ask(&format!("{what}\nOnly `yes` is taken for a yes: "))?.as_str() {
        "yes" => Ok(()),
        _ => Err(Failure::hinted("not confirmed", "nothing was changed")),
    }
}

fn not_recorded(address: &Address, recorded: &Recorded) -> anyhow::Error {
    let instance = recorded.keys().find(|other| other.name == address.name);
    let hint = match instance {
        Some(instance) => format!("there is `{instance}`, among others: name one of them (in quotes, for the shell)"),
        None => "`purlin state list` lists what is".to_owned(),
    };
    Failure::hinted(format!("nothing is recorded of `{address}`"), hint)
}
