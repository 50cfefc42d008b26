//! Renders plans, graphs, records and other output for scenario files.

use std::sync::Arc;

use purlin::execute::{Progress, ProgressKind, Recovery};
use purlin::graph::ActionGraph;
use purlin::model::{Action, Change, Diagnostic, Record, Recorded, RecordedObject, ReplaceOrder, Severity, Value};
use purlin::plan::Plan;
use purlin::plan::moves::Move;
use purlin::plan::options::status_word;

/// The sections of expected output, in order.
pub(super) const SECTIONS: &[&str] =
    &["recovered", "moves", "plan", "graph", "diagnostics", "tape", "records", "world"];

pub(super) fn move_of(one: &Move) -> String {
    match one.reverted {
        true => format!("{}, not {}", one.from, one.to),
        false => format!("{} -> {}", one.from, one.to),
    }
}

pub(super) fn plan(plan: &Plan, show_values: bool) -> Vec<String> {
    plan.changes().flat_map(|change| self::change(change, show_values)).collect()
}

fn change(change: &Change, show_values: bool) -> Vec<String> {
    let name = match change.deposed {
        None => change.address.to_string(),
        Some(key) => format!("{} (deposed {key})", change.address),
    };
    let mut line = match (change.action, change.order) {
        (Action::NoOp, _) => format!("  {name}: nothing"),
        (Action::Record, _) => format!(". {name}: record"),
        (Action::Wait, _) => format!(". {name}: wait"),
        (Action::Create, _) => format!("+ {name}: create"),
        (Action::Update, _) => format!("~ {name}: update"),
        (Action::Replace, Some(ReplaceOrder::CreateFirst)) => format!("+/- {name}: replace, create first"),
        (Action::Replace, _) => format!("-/+ {name}: replace, destroy first"),
        (Action::Destroy, _) => format!("- {name}: destroy"),
        (Action::Forget, _) => format!("< {name}: forget"),
        (Action::Read, _) => format!("<= {name}: read"),
        (Action::Blocked, _) => {
            let reason = change.blocked.map(|reason| format!(" {reason}")).unwrap_or_default();
            format!("! {name}: blocked{reason}: {}", change.message)
        }
    };
    if change.action == Action::Replace && change.forget {
        line.push_str(", forget the old");
    }
    if let Some(why) = &change.because {
        line.push_str(&format!(" ({why})"));
    }
    if !change.replace_paths.is_empty() {
        let paths: Vec<String> = change.replace_paths.iter().map(ToString::to_string).collect();
        line.push_str(&format!(" because of {}", paths.join(", ")));
    }
    if let Some(reason) = change.hold_destroy {
        line.push_str(&format!("; the old object is kept, {reason}: {}", change.message));
    }
    let mut lines = vec![line];
    if show_values && change.action != Action::NoOp {
        let mut show = |what: &str, value: Option<&Value>| {
            if let Some(value) = value {
                lines.push(format!("    {what}: {}", compact(value)));
            }
        };
        show("before", change.before.as_ref());
        show("after", change.after.as_ref());
    }
    lines
}

/// Renders a value with unknown values as `?`, and without null and sensitive values.
fn compact(value: &Value) -> String {
    match value {
        Value::Unknown => "?".to_owned(),
        Value::Sensitive(_) => "(sensitive)".to_owned(),
        Value::Map(map) => {
            let set = map.iter().filter(|(_, item)| !matches!(item, Value::Null));
            let entries: Vec<String> = set.map(|(name, item)| format!("{name}: {}", compact(item))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::List(items) => format!("[{}]", items.iter().map(compact).collect::<Vec<_>>().join(", ")),
        other => other.to_public_json().to_string(),
    }
}

pub(super) fn graph(graph: &ActionGraph) -> Vec<String> {
    let mut lines = Vec::new();
    for node in graph.nodes() {
        lines.push(graph.id(node));
        for (to, wait) in graph.waits_for(node) {
            lines.push(format!("    after {}: {}", graph.id(to), graph.explain(node, to, wait)));
        }
    }
    lines
}

pub(super) fn diagnostic(diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    format!("{severity} {}: {diagnostic}", diagnostic.reason)
}

pub(super) fn progress(progress: &Progress) -> String {
    let id = progress.step.id();
    match &progress.kind {
        ProgressKind::Started => format!("{id}: started"),
        ProgressKind::Hook(note) => {
            let state = if note.failed { "failed" } else { "ran" };
            format!("{id}: hook {} {state}: {}", note.hook, note.message)
        }
        ProgressKind::Warning(warning) => format!("{id}: warning: {}", warning.message()),
        ProgressKind::Delayed(why) => format!("{id}: delayed, {}: {}", why.reason, why.message()),
        ProgressKind::Superseded => format!("{id}: superseded"),
        ProgressKind::WaitInterrupted => format!("{id}: wait interrupted, not ready yet"),
        ProgressKind::Finished => format!("{id}: finished"),
        ProgressKind::Failed { reason, message, retryable } => {
            let again = if *retryable { "" } else { ", permanently" };
            format!("{id}: failed{again}, {reason}: {message}")
        }
        ProgressKind::Skipped { because_of: Some(step) } => format!("{id}: skipped because of {}", step.id()),
        ProgressKind::Skipped { because_of: None } => format!("{id}: skipped"),
    }
}

pub(super) fn recovery(recovery: &Recovery) -> String {
    match recovery {
        Recovery::Resolved(stored) => match &stored.record.current {
            Some(object) => format!("resolved, {}", self::object(object)),
            None => "resolved, no current object".to_owned(),
        },
        Recovery::Erased => "resolved, record erased".to_owned(),
        Recovery::Missing => "the record is missing".to_owned(),
        Recovery::Blocked(held, again) => {
            let again = again.map(|time| format!("; again at {time}")).unwrap_or_default();
            format!("blocked, {}: {}{again}", held.reason, held.message)
        }
    }
}

pub(super) fn records(recorded: &Recorded) -> Vec<String> {
    recorded.values().flat_map(|stored| record(&stored.record)).collect()
}

fn record(record: &Record) -> Vec<String> {
    let current = record.current.as_deref().map_or_else(|| "no object".to_owned(), object);
    let mut line = format!("{}: {current}", record.address);
    if let Some(intent) = &record.intent {
        let deposed = intent.deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default();
        line.push_str(&format!(", intent to {}{deposed}", intent.operation.as_str()));
    }
    if record.replacement_pending {
        line.push_str(", replacement pending");
    }
    if record.failed_creates > 0 {
        line.push_str(&format!(", {} failed creates", record.failed_creates));
    }
    let deposed = record
        .deposed
        .iter()
        .map(|(key, object_of)| format!("{} (deposed {key}): {}", record.address, object(object_of)));
    std::iter::once(line).chain(deposed).collect()
}

fn object(object: &RecordedObject) -> String {
    let mut line = format!("{} {}", status_word(object.status), object.id().unwrap_or("without an id"));
    if !object.dependencies.is_empty() {
        let uses: Vec<String> = object.dependencies.iter().map(ToString::to_string).collect();
        line.push_str(&format!(", depends on {}", uses.join(" ")));
    }
    if !object.hooks.is_empty() {
        let names: Vec<&str> = object.hooks.iter().map(|hook| &*hook.name).collect();
        line.push_str(&format!(", hooks {}", names.join(" ")));
    }
    let flags = [
        (object.create_before_destroy, "create first"),
        (object.prevent_destroy, "protected"),
        (object.skip_destroy, "forgotten when it is removed"),
        (object.awaits_postconditions, "awaits the postconditions of its successor"),
        (object.hooks_pending, "hooks pending"),
        (object.readiness.is_some(), "not ready yet"),
    ];
    for (_, flag) in flags.iter().filter(|(is_set, _)| *is_set) {
        line.push_str(&format!(", {flag}"));
    }
    line
}

/// Renders the arguments of an existing object.
pub(super) fn arguments(value: &Value) -> String {
    let Value::Map(map) = value else { return compact(value) };
    let rest = map.iter().filter(|(name, _)| !["id", "computed"].contains(&&***name));
    compact(&Value::map(rest.map(|(name, item)| (Arc::clone(name), item.clone()))))
}

/// Replaces the generated keys of deposed objects by numbers in the order of their appearance.
pub(super) fn name_keys(text: &str) -> String {
    let mut named = String::new();
    let mut keys: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("deposed ") {
        let (before, from) = rest.split_at(at + "deposed ".len());
        named.push_str(before);
        let key: String = from.chars().take_while(char::is_ascii_hexdigit).collect();
        if key.len() == 8 {
            let number = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key.clone());
                keys.len() - 1
            });
            named.push_str(&format!("#{}", number + 1));
            rest = &from[8..];
        } else {
            rest = from;
        }
    }
    named.push_str(rest);
    named
}
