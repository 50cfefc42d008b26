//! `purlin get`: lists objects in a table, like `kubectl get`.

use std::collections::BTreeSet;

use crate::cli::args::{Format, GetArgs};
use crate::cli::cluster::selection::Selection;
use crate::cli::failure::{Exit, Failure};
use crate::cli::inputs::{Inputs, PlanParameters, PlanResult};
use crate::cli::json::{self, FORMAT_VERSION};
use crate::cli::options::{Choice, Files, Planning, Target, matches_name};
use crate::cli::output::Console;
use crate::cli::table::Table;
use crate::cli::view::View;
use api::conditions::{self, ConditionType};
use model::{Action, Address, Change, Diagnostic, Diagnostics, InstanceKey, ObjectStatus, Record, display_id};
use runtime::store::LastFailure;
use serde::Serialize;

/// The reason of a suspended object, which is not known to be ready.
const SUSPENDED: &str = "Suspended";

#[derive(Debug, Serialize)]
pub struct Row {
    /// Of a cluster; empty on files.
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    address: String,
    #[serde(rename = "type")]
    type_name: String,
    ready: bool,
    id: String,
    /// The planned action; empty if there is none.
    action: String,
    /// The reason of the condition, if the object is not ready.
    reason: String,
    message: String,
    /// Whether the row is a family in a cluster.
    #[serde(skip)]
    stands_for_many: bool,
}

pub async fn run(args: GetArgs, console: Console) -> anyhow::Result<Exit> {
    let choice = Choice::new(args.names, args.choice);
    let with_namespace = choice.all_namespaces;
    let (rows, diagnostics) = match Target::choosing(args.target, &choice)? {
        Target::Files(files) => from_files(files, console).await?,
        Target::Cluster(cluster) => {
            // A name can be that of an instance: its row is chosen below.
            let listed = Choice { names: Vec::new(), ..choice.clone() };
            let selection = Selection::read(&cluster, &listed, console).await?;
            (selection.objects.values().flat_map(from_status).collect(), Diagnostics::new())
        }
    };
    let rows = match choice.names.as_slice() {
        [] => rows,
        names => chosen(names, rows)?,
    };
    show(&rows, &diagnostics, args.output, with_namespace, console)?;
    Ok(Exit::Success)
}

/// The rows of these names, in the order of the list.
fn chosen(names: &[String], rows: Vec<Row>) -> anyhow::Result<Vec<Row>> {
    let mut places = BTreeSet::new();
    for name in names {
        let found = places_of(name, &rows);
        if found.is_empty() {
            return Err(Failure::hinted(format!("there is no object `{name}`"), "`purlin get` lists all objects"));
        }
        places.extend(found);
    }
    Ok(rows.into_iter().enumerate().filter(|(place, _)| places.contains(place)).map(|(_, row)| row).collect())
}

/// The places of the rows of a name or an address. For an instance without an own row, that of its family.
fn places_of(name: &str, rows: &[Row]) -> Vec<usize> {
    let places: Vec<usize> = (0..rows.len())
        .filter(|place| rows[*place].address.parse::<Address>().is_ok_and(|address| matches_name(name, &address)))
        .collect();
    match name.parse::<Address>() {
        Ok(address) if places.is_empty() && address.key != InstanceKey::None => (0..rows.len())
            .filter(|place| rows[*place].stands_for_many && rows[*place].address == address.stem.to_string())
            .collect(),
        _ => places,
    }
}

fn show(
    rows: &[Row],
    diagnostics: &Diagnostics,
    format: Format,
    with_namespace: bool,
    console: Console,
) -> anyhow::Result<()> {
    if format == Format::Json {
        return console.result(|out| {
            write!(out, "{{\"formatVersion\":\"{FORMAT_VERSION}\",\"objects\":")?;
            serde_json::to_writer(&mut *out, rows)?;
            out.write_all(b",\"diagnostics\":")?;
            serde_json::to_writer(&mut *out, &json::Diagnostics(diagnostics))?;
            out.write_all(b"}\n")
        });
    }
    console.diagnostics(diagnostics);
    if rows.is_empty() {
        console.notice("No objects found.");
        return Ok(());
    }
    if with_namespace {
        let mut table = Table::new(["NAMESPACE", "NAME", "READY", "TYPE", "ID", "ACTION", "MESSAGE"]);
        for row in rows {
            let [name, ready, type_name, id, action, message] = row.cells();
            table.push([row.namespace.clone(), name, ready, type_name, id, action, message]);
        }
        return console.table(&table);
    }
    let mut table = Table::new(["NAME", "READY", "TYPE", "ID", "ACTION", "MESSAGE"]);
    rows.iter().for_each(|row| table.push(row.cells()));
    console.table(&table)
}

impl Row {
    fn cells(&self) -> [String; 6] {
        let ready = match self.reason.as_str() {
            _ if self.ready => "True",
            SUSPENDED => "Suspended",
            _ => "False",
        };
        [&self.address, ready, &self.type_name, &self.id, &self.action, &self.message].map(str::to_owned)
    }
}

/// With manifests, returns the planned changes; without, the state of the records.
async fn from_files(files: Files, console: Console) -> anyhow::Result<(Vec<Row>, Diagnostics)> {
    let planning = Planning::without_refresh();
    let sources_given = !files.sources.is_empty();
    let view = View::open(Target::Files(files), planning.limits, console).await?;
    if !sources_given {
        let Inputs { recorded, failures, .. } = &view.inputs;
        let records = recorded.iter().map(|(address, stored)| from_record(&stored.record, failures.get(address)));
        let failed = failures.iter().filter(|(address, _)| !recorded.contains_key(address));
        let failed = failed.map(|(address, failure)| from_failure(address, failure));
        let mut rows: Vec<Row> = records.chain(failed).collect();
        rows.sort_by_cached_key(|row| row.address.parse::<Address>().ok());
        return Ok((rows, view.inputs.problems));
    }
    let planned = view.inputs.plan(&view.engine, &planning, PlanParameters::default()).await?;
    let rows = planned.plan.changes().map(|change| from_change(change, &view.inputs)).collect();
    let PlanResult { diagnostics, .. } = planned;
    let general = diagnostics.into_iter().filter(|diagnostic| diagnostic.address.is_none()).collect();
    Ok((rows, general))
}

fn from_change(change: &Change, inputs: &Inputs) -> Row {
    let id = change.before.as_ref().and_then(display_id).unwrap_or_default();
    let ready = matches!(change.action, Action::NoOp | Action::Record);
    let deposed = change.deposed.map(|key| format!("deposed {key}"));
    let problem = inputs.config.instances.get(&change.address).and_then(|instance| instance.problems.first());
    let why = match change.replace_paths.as_slice() {
        _ if !change.message.is_empty() => Some(change.message.clone()),
        [] => change.because.as_ref().map(ToString::to_string).or_else(|| problem.map(Diagnostic::message)),
        paths => Some(format!("forced by {}", paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))),
    };
    // A plan often finds the problem at which the last apply failed.
    let failure = inputs.failures.get(&change.address).filter(|_| !ready && change.deposed.is_none());
    let failure = failure.filter(|failure| !why.as_ref().is_some_and(|why| why.contains(&failure.message)));
    let message = [deposed, why, failure.map(last_failure)].into_iter().flatten().collect::<Vec<_>>().join("; ");
    Row {
        namespace: String::new(),
        address: change.address.to_string(),
        type_name: change.type_name.to_string(),
        ready,
        id,
        action: if ready { String::new() } else { format!("{:?}", change.action) },
        reason: change.blocked.or(change.hold_destroy).map(|reason| reason.to_string()).unwrap_or_default(),
        message,
        stands_for_many: false,
    }
}

fn last_failure(failure: &LastFailure) -> String {
    format!("{} failed: {}", failure.operation, failure.message)
}

/// The row of an object that could not be created.
fn from_failure(address: &Address, failure: &LastFailure) -> Row {
    Row {
        namespace: String::new(),
        address: address.to_string(),
        type_name: failure.type_name.to_string(),
        ready: false,
        id: String::new(),
        action: String::new(),
        reason: failure.reason.clone(),
        message: last_failure(failure),
        stands_for_many: false,
    }
}

fn from_record(record: &Record, failure: Option<&LastFailure>) -> Row {
    let current = record.current.as_deref();
    let is_complete = record.intent.is_none()
        && current.is_some_and(|object| {
            object.status == ObjectStatus::Ready && !object.hooks_pending && object.readiness.is_none()
        });
    let deposed = match record.deposed.len() {
        0 => String::new(),
        count => format!("{count} deposed"),
    };
    let message = match (&record.intent, current.map(|object| object.status)) {
        (Some(intent), _) => {
            format!("{} in progress or interrupted since {:.0}", intent.operation.as_str(), intent.started)
        }
        (None, Some(ObjectStatus::Tainted)) => "tainted: the next apply replaces it".to_owned(),
        (None, Some(ObjectStatus::Interrupted)) => "interrupted: the next apply reads it first".to_owned(),
        (None, Some(ObjectStatus::Ready)) if current.is_some_and(|object| object.hooks_pending) => {
            "hooks pending: the next apply runs them".to_owned()
        }
        (None, Some(ObjectStatus::Ready) | None) => deposed,
    };
    let parts = [Some(message).filter(|text| !text.is_empty()), failure.map(last_failure)];
    let message = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Row {
        namespace: String::new(),
        address: record.address.to_string(),
        type_name: record.type_name.to_string(),
        ready: is_complete && failure.is_none(),
        id: current.and_then(|object| display_id(&object.value)).unwrap_or_default(),
        action: record.intent.as_ref().map(|intent| intent.operation.as_str().to_owned()).unwrap_or_default(),
        reason: failure.map(|failure| failure.reason.clone()).unwrap_or_default(),
        message,
        stands_for_many: false,
    }
}

/// Returns the rows of a Resource and of its troubled instances from the status.
fn from_status(resource: &api::Resource) -> Vec<Row> {
    let instances = resource.status.as_ref().and_then(|status| status.instances.as_ref());
    let troubled = instances.into_iter().flat_map(|instances| &instances.troubled).map(|instance| Row {
        namespace: resource.metadata.namespace.clone().unwrap_or_default(),
        address: instance.address.clone(),
        type_name: resource.spec.type_name.clone(),
        ready: false,
        id: String::new(),
        action: String::new(),
        reason: instance.reason.clone(),
        message: instance.message.clone(),
        stands_for_many: false,
    });
    std::iter::once(from_resource(resource)).chain(troubled).collect()
}

/// A Resource without status is not ready.
fn from_resource(resource: &api::Resource) -> Row {
    let status = resource.status.clone().unwrap_or_default();
    let ready = conditions::find(&status.conditions, ConditionType::Ready);
    let current = Some(status.observed_generation) == resource.metadata.generation;
    let is_ready = current && ready.is_some_and(|condition| condition.status == "True");
    Row {
        namespace: resource.metadata.namespace.clone().unwrap_or_default(),
        address: resource.metadata.name.clone().unwrap_or_default(),
        type_name: resource.spec.type_name.clone(),
        ready: is_ready,
        id: status.display_id.or(status.id).unwrap_or_default(),
        action: status.pending.map(|pending| pending.action).unwrap_or_default(),
        reason: ready.filter(|_| !is_ready).map(|condition| condition.reason.clone()).unwrap_or_default(),
        message: match ready {
            Some(_) if !current => "the controller has not observed the latest change yet".to_owned(),
            Some(condition) => condition.message.clone(),
            None => "not yet observed by the controller".to_owned(),
        },
        stands_for_many: status.instances.is_some(),
    }
}
