//! A plan as the status of a `Plan` object, and back. The status contains no sensitive value, and everything that the
//! text of a plan needs, so a user who may only read the `Plan` sees the same text as one who made the plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::render::is_shown;
use super::render::summary::Counts;
use crate::api::{Omitted, PlanDiagnostic, PlanGraph, PlanOutcome, PlanStatus, PlanSummary, PlannedChange};
use crate::model::{Action, Change, Diagnostic, Diagnostics, Drift, Path, Secrets, Source, Value, has_errors};

/// The text in place of a value that is known only after the apply.
const UNKNOWN: &str = "(known after apply)";
/// The text in place of a sensitive value.
const SENSITIVE: &str = "(sensitive value)";

/// The maximum size of a status in bytes: few people read a larger one.
const MAX_STATUS: usize = 512 * 1024;

/// Returns the status without conditions, in at most `limit` bytes of JSON. Values, and then the graph, are omitted if it
/// would be larger.
pub fn status(limit: usize, changes: &[Change], diagnostics: &[Diagnostic], graph: PlanGraph) -> PlanStatus {
    let limit = limit.min(MAX_STATUS);
    let counts = Counts::of(changes, diagnostics);
    let outcome = match (has_errors(diagnostics), counts.changes > 0) {
        (true, _) => PlanOutcome::Errors,
        (false, true) => PlanOutcome::Changes,
        (false, false) => PlanOutcome::NoChanges,
    };
    let mut status = PlanStatus {
        result: Some(outcome),
        summary: Some(summary(&counts)),
        changes: changes.iter().filter(|one| is_shown(one) || one.action == Action::Blocked).map(publish).collect(),
        graph: Some(graph),
        diagnostics: diagnostics.iter().map(publish_diagnostic).collect(),
        ..PlanStatus::default()
    };
    if size(&status) > limit {
        status.omitted = Some(Omitted::Values);
        for change in &mut status.changes {
            (change.before, change.after) = (None, None);
            let lists = [&mut change.unknown_paths, &mut change.sensitive_paths, &mut change.changed_sensitive_paths];
            lists.into_iter().for_each(Vec::clear);
        }
    }
    if size(&status) > limit {
        status.omitted = Some(Omitted::Graph);
        status.graph = None;
    }
    // What is left has a fixed size for each object, which the limit of a namespace bounds; the rest is cut.
    while size(&status) > limit && !(status.changes.is_empty() && status.diagnostics.is_empty()) {
        status.changes.truncate(status.changes.len() / 2);
        status.diagnostics.truncate(status.diagnostics.len() / 2);
    }
    status
}

/// The headline of a status.
pub fn headline(changes: &[Change], diagnostics: &[Diagnostic]) -> String {
    Counts::of(changes, diagnostics).to_string()
}

/// Returns the changes and diagnostics of a status. Sensitive values are marked, and have other contents.
pub fn read(status: &PlanStatus) -> (Vec<Change>, Diagnostics) {
    (status.changes.iter().map(restore).collect(), status.diagnostics.iter().map(restore_diagnostic).collect())
}

fn size(status: &PlanStatus) -> usize {
    serde_json::to_vec(status).map_or(0, |json| json.len())
}

fn summary(counts: &Counts) -> PlanSummary {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    PlanSummary {
        import: number(counts.import),
        create: number(counts.create),
        update: number(counts.update),
        replace: number(counts.replace),
        destroy: number(counts.destroy),
        forget: number(counts.forget),
        read: number(counts.read),
        blocked: number(counts.erroneous + counts.waiting + counts.held),
    }
}

fn publish(change: &Change) -> PlannedChange {
    let null = Value::Null;
    let (before, after) = (change.before.as_ref().unwrap_or(&null), change.after.as_ref().unwrap_or(&null));
    let secrets = Secrets::of([before, after]);
    let (masked_before, masked_after) = (marked_like(before, after, &secrets), marked_like(after, before, &secrets));
    let mut marks = Marks::default();
    let (before_json, after_json) =
        (marks.public(&masked_before, &Path::default()), marks.public(&masked_after, &Path::default()));
    let is_changed = |path: &&Path| {
        let (old, new) = (masked_before.at(path), masked_after.at(path));
        old.zip(new).is_some_and(|(old, new)| !old.equals_unmarked(&new))
    };
    let drifted_paths = match &change.drift {
        Some(Drift::Changed(paths)) => paths.clone(),
        _ => Vec::new(),
    };
    PlannedChange {
        address: change.address.clone(),
        type_name: change.type_name.to_string(),
        action: change.action,
        order: change.order,
        deposed_key: change.deposed,
        forget: change.forget,
        imported: change.imported,
        because: change.because.clone(),
        reason: change.blocked.or(change.hold_destroy),
        message: change.message.clone(),
        waiting_for: change.waiting_for.clone(),
        replace_paths: change.replace_paths.clone(),
        drifted_paths,
        before: change.before.as_ref().map(|_| before_json),
        after: change.after.as_ref().map(|_| after_json),
        changed_sensitive_paths: marks.sensitive.iter().filter(is_changed).cloned().collect(),
        unknown_paths: marks.unknown.into_iter().collect(),
        sensitive_paths: marks.sensitive.into_iter().collect(),
    }
}

/// The value with the marks of the other version, and with marks on strings that contain a sensitive string.
fn marked_like(value: &Value, other: &Value, secrets: &Secrets) -> Value {
    match (value, other) {
        (Value::Sensitive(_), _) => value.clone(),
        (_, Value::Sensitive(_)) => value.clone().into_sensitive(),
        (Value::String(text), _) if secrets.occur_in(text) => value.clone().into_sensitive(),
        (Value::Map(map), _) => Value::map(map.iter().map(|(name, item)| {
            let other = other.get(name).unwrap_or(&Value::Null);
            (Arc::clone(name), marked_like(item, other, secrets))
        })),
        (Value::List(items), other) => {
            let others: &[Value] = match other {
                Value::List(others) => others,
                _ => &[],
            };
            let marked = others.iter().filter(|other| matches!(other, Value::Sensitive(_)));
            let marked: Vec<&Value> = marked.collect();
            Value::list(items.iter().enumerate().map(|(position, item)| {
                // An item can have another position in the other version.
                match marked.iter().any(|other| other.equals_unmarked(item)) {
                    true => item.clone().into_sensitive(),
                    false => marked_like(item, others.get(position).unwrap_or(&Value::Null), secrets),
                }
            }))
        }
        _ => value.clone(),
    }
}

/// The positions of values that JSON cannot represent.
#[derive(Default)]
struct Marks {
    unknown: BTreeSet<Path>,
    sensitive: BTreeSet<Path>,
}

impl Marks {
    /// The value with text in place of unknown and sensitive values, whose positions are collected. Without attributes
    /// that are null: a merge patch would remove them.
    fn public(&mut self, value: &Value, at: &Path) -> serde_json::Value {
        match value {
            Value::Unknown => {
                self.unknown.insert(at.clone());
                UNKNOWN.into()
            }
            Value::Sensitive(_) => {
                self.sensitive.insert(at.clone());
                SENSITIVE.into()
            }
            Value::List(items) => {
                items.iter().enumerate().map(|(position, item)| self.public(item, &at.index(position))).collect()
            }
            Value::Map(map) => {
                let set = map.iter().filter(|(_, item)| **item != Value::Null);
                set.map(|(name, item)| (name.to_string(), self.public(item, &at.name(Arc::clone(name))))).collect()
            }
            other => other.to_public_json(),
        }
    }
}

fn restore(published: &PlannedChange) -> Change {
    let unknown = published.unknown_paths.iter().collect();
    let sensitive: BTreeSet<&Path> = published.sensitive_paths.iter().collect();
    let changed = published.changed_sensitive_paths.iter().collect();
    let none = BTreeSet::new();
    let before = Restored { unknown: &none, sensitive: &sensitive, changed: &none };
    let after = Restored { unknown: &unknown, sensitive: &sensitive, changed: &changed };
    let read = |json: &Option<serde_json::Value>, marks: &Restored<'_>| {
        json.as_ref().map(|json| marks.value(&Value::from_json(json.clone()), &Path::default()))
    };
    let is_blocked = published.action == Action::Blocked;
    let drifted = (!published.drifted_paths.is_empty()).then(|| Drift::Changed(published.drifted_paths.clone()));
    Change {
        address: published.address.clone(),
        deposed: published.deposed_key,
        type_name: published.type_name.as_str().into(),
        action: published.action,
        order: published.order,
        forget: published.forget,
        hold_destroy: published.reason.filter(|_| !is_blocked),
        because: published.because.clone(),
        blocked: published.reason.filter(|_| is_blocked),
        message: published.message.clone(),
        waiting_for: published.waiting_for.clone(),
        replace_paths: published.replace_paths.clone(),
        silent: false,
        imported: published.imported,
        drift: drifted,
        before: read(&published.before, &before),
        after: read(&published.after, &after),
    }
}

struct Restored<'a> {
    unknown: &'a BTreeSet<&'a Path>,
    sensitive: &'a BTreeSet<&'a Path>,
    /// Sensitive values that are different from those of the other version.
    changed: &'a BTreeSet<&'a Path>,
}

impl Restored<'_> {
    fn value(&self, value: &Value, at: &Path) -> Value {
        match value {
            _ if self.unknown.contains(at) => Value::Unknown,
            _ if self.sensitive.contains(at) => Value::from(self.changed.contains(at)).into_sensitive(),
            Value::Map(map) => {
                let entry = |(name, item): (&Arc<str>, &Value)| {
                    (Arc::clone(name), self.value(item, &at.name(Arc::clone(name))))
                };
                Value::map(map.iter().map(entry))
            }
            Value::List(items) => {
                Value::list(items.iter().enumerate().map(|(position, item)| self.value(item, &at.index(position))))
            }
            other => other.clone(),
        }
    }
}

fn publish_diagnostic(diagnostic: &Diagnostic) -> PlanDiagnostic {
    PlanDiagnostic {
        severity: diagnostic.severity,
        reason: diagnostic.reason,
        address: diagnostic.address.clone(),
        path: diagnostic.path.clone(),
        line: diagnostic.source.as_ref().and_then(|source| i32::try_from(source.line).ok()),
        summary: diagnostic.summary.clone(),
        detail: diagnostic.detail.clone(),
        hint: diagnostic.hint.clone(),
    }
}

fn restore_diagnostic(published: &PlanDiagnostic) -> Diagnostic {
    let PlanDiagnostic { severity, reason, address, path, line, summary, detail, hint } = published.clone();
    let line = line.and_then(|line| usize::try_from(line).ok());
    let source = line.map(|line| Source { file: "manifests".into(), line });
    Diagnostic { severity, reason, address, path, source, summary, detail, hint }
}

#[cfg(test)]
mod tests;
