//! `purlin history NAME`: the last changes of an object, from its record.

use std::cmp::Reverse;
use std::io;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::cli::args::{Format, HistoryArgs};
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::json::{self, Diagnostics, FORMAT_VERSION};
use crate::cli::options::{Target, address, matches_name};
use crate::cli::output::Console;
use crate::cli::state::records;
use crate::cli::table::Table;
use crate::model::history::{Cause, ChangeKind, ChangeOutcome, Resolution};
use crate::model::{Address, DeposedKey, Diagnostic, Record, Recorded, suggest};

pub async fn run(args: HistoryArgs, console: Console) -> anyhow::Result<Exit> {
    let address = address(&args.address)?;
    let target = Target::from_args(args.target);
    let records = records::read(target.clone(), console).await?;
    let is_selected = |found: &Address| matches_name(&args.address, found);
    let selected = records.recorded.values().map(|stored| stored.record.as_ref());
    let selected: Vec<&Record> = selected.filter(|record| is_selected(&record.address)).collect();
    let unreadable = |one: &Diagnostic| one.address.as_ref().is_some_and(is_selected);
    let diagnostics: Vec<Diagnostic> = records.diagnostics.into_iter().filter(unreadable).collect();
    if selected.is_empty() && diagnostics.is_empty() {
        if let Target::Cluster(target) = &target {
            // The error of a Resource that does not exist says more.
            cluster::resource(target, &args.address, console).await?;
        }
        return Err(not_recorded(&address, &records.recorded));
    }
    let mut changes: Vec<Change<'_>> = selected.iter().flat_map(|record| changes(record)).collect();
    // The order of changes that began in the same millisecond is kept.
    changes.reverse();
    changes.sort_by_key(|change| Reverse(change.began));
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

/// A change, or one that has not ended.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change<'r> {
    address: &'r Address,
    action: ChangeKind,
    replaces: bool,
    deposed_key: Option<DeposedKey>,
    #[serde(serialize_with = "as_text")]
    began: Timestamp,
    #[serde(serialize_with = "as_text")]
    first_began: Timestamp,
    count: u32,
    milliseconds: Option<u64>,
    /// `succeeded`, `notReady`, `failed`, `recovered` or `open`.
    outcome: &'static str,
    error: Option<&'r str>,
    /// What recovery determined: `effective`, `noEffect`, `read` or `hooks`.
    resolution: Option<&'static str>,
    reason: &'r str,
    attributes: Vec<&'r str>,
    more_attributes: u32,
    generation: i64,
    /// Empty if the change needed no approval.
    approved_by: &'r str,
    operation_id: &'r str,
}

fn as_text<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// The recorded changes, and the operation that has not ended.
fn changes(record: &Record) -> Vec<Change<'_>> {
    let ended = record.history.entries().iter().map(|entry| {
        let (outcome, error, resolution) = match &entry.outcome {
            ChangeOutcome::Succeeded => ("succeeded", None, None),
            ChangeOutcome::NotReady => ("notReady", None, None),
            ChangeOutcome::Failed(error) => ("failed", Some(&**error), None),
            ChangeOutcome::Recovered(resolution) => ("recovered", None, Some(resolution_name(*resolution))),
        };
        Change {
            action: entry.kind,
            deposed_key: entry.deposed,
            began: entry.began,
            first_began: entry.first,
            count: entry.count,
            milliseconds: Some(entry.milliseconds),
            outcome,
            error,
            resolution,
            operation_id: &entry.operation_id,
            ..open(record, &entry.cause)
        }
    });
    let open = record.intent.iter().map(|intent| Change {
        action: ChangeKind::of(intent.operation),
        deposed_key: intent.deposed.filter(|_| ChangeKind::of(intent.operation) == ChangeKind::Destroy),
        began: intent.started,
        first_began: intent.started,
        operation_id: &intent.operation_id,
        ..open(record, &intent.cause)
    });
    ended.chain(open).collect()
}

fn open<'r>(record: &'r Record, cause: &'r Cause) -> Change<'r> {
    Change {
        address: &record.address,
        action: ChangeKind::Update,
        replaces: cause.replaces,
        deposed_key: None,
        began: Timestamp::UNIX_EPOCH,
        first_began: Timestamp::UNIX_EPOCH,
        count: 1,
        milliseconds: None,
        outcome: "open",
        error: None,
        resolution: None,
        reason: &cause.because,
        attributes: cause.attributes.iter().map(AsRef::as_ref).collect(),
        more_attributes: cause.more_attributes,
        generation: cause.generation,
        approved_by: &cause.approved_by,
        operation_id: "",
    }
}

fn resolution_name(resolution: Resolution) -> &'static str {
    match resolution {
        Resolution::Effective => "effective",
        Resolution::NoEffect => "noEffect",
        Resolution::Read => "read",
        Resolution::Hooks => "hooks",
    }
}

impl Change<'_> {
    fn cells(&self) -> [String; 5] {
        [format!("{:.0}", self.began), self.action(), self.duration(), self.result(), self.why()]
    }

    fn action(&self) -> String {
        match (self.deposed_key, self.replaces) {
            (Some(key), _) => format!("{} (deposed {key})", self.action.as_str()),
            (None, true) => format!("{} (replacement)", self.action.as_str()),
            (None, false) => self.action.as_str().to_owned(),
        }
    }

    fn duration(&self) -> String {
        match self.milliseconds {
            None => "-".to_owned(),
            Some(short) if short < 10_000 => format!("{}.{}s", short / 1000, short % 1000 / 100),
            Some(long) => format!("{:#}", jiff::SignedDuration::from_secs(i64::try_from(long / 1000).unwrap_or(0))),
        }
    }

    fn result(&self) -> String {
        let result = match (self.outcome, self.resolution) {
            (_, Some("effective")) => "interrupted; it took effect",
            (_, Some("noEffect")) => "interrupted; it had no effect",
            (_, Some("read")) => "interrupted; the object was read",
            (_, Some(_)) => "interrupted; its hooks run again",
            ("notReady", _) => "not ready",
            ("open", _) => "not ended",
            (outcome, _) => outcome,
        };
        let times = match self.count {
            1 => String::new(),
            count => format!(" {count} times since {:.0}", self.first_began),
        };
        match self.error {
            Some(error) => format!("{result}{times}: {error}"),
            None => format!("{result}{times}"),
        }
    }

    fn why(&self) -> String {
        let mut why = self.reason.to_owned();
        let named = self.attributes.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        if !named.is_empty() {
            why = if why.is_empty() { named } else { format!("{why}: {named}") };
        }
        if self.more_attributes > 0 {
            why.push_str(&format!(" and {} more", self.more_attributes));
        }
        if !self.approved_by.is_empty() {
            let gap = if why.is_empty() { "" } else { "; " };
            why.push_str(&format!("{gap}approved by {}", self.approved_by));
        }
        why
    }
}

fn write_json(out: &mut dyn io::Write, changes: &[Change<'_>], diagnostics: &[Diagnostic]) -> io::Result<()> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Document<'a> {
        format_version: &'a str,
        changes: &'a [Change<'a>],
        diagnostics: Diagnostics<'a>,
    }
    json::write_line(out, &Document { format_version: FORMAT_VERSION, changes, diagnostics: Diagnostics(diagnostics) })
}

fn not_recorded(address: &Address, recorded: &Recorded) -> anyhow::Error {
    let names = recorded.keys().map(|other| other.name.as_ref()).filter(|name| *name != &*address.name);
    let instance = recorded.keys().find(|other| other.name == address.name);
    let hint = match (instance, suggest::closest(&address.name, names)) {
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
