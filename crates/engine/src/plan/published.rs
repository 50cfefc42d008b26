//! A plan as the status of a `Plan` object, and back. The status contains no sensitive value, and everything that the
//! text of a plan needs, so a user who may only read the `Plan` sees the same text as one who made the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::render::is_shown;
use super::render::summary::Counts;
use crate::load;
use api::conditions::{ConditionType, condition, merge};
use api::{ChangeProof, Omitted, PlanDiagnostic, PlanGraph, PlanOutcome, PlanStatus, PlanSummary, PlannedChange};
use model::{
    Action, Address, Change, ChangeCause, Diagnostic, Diagnostics, Drift, Path, Reason, Secrets, Source, Value,
    has_errors,
};

/// The text in place of a value that is known only after the apply.
const UNKNOWN: &str = "(known after apply)";
/// The text in place of a sensitive value.
const SENSITIVE: &str = "(sensitive value)";

/// The maximum size of a status in bytes: few people read a larger one.
const MAX_STATUS: usize = 512 * 1024;

/// The maximum size in bytes of the changes of an approval that are listed as they are.
const MAX_LISTED: usize = 128 * 1024;

/// The maximum size in bytes of the compressed changes of the approvals of a status. Each digest needs 43 bytes, so there is
/// room for more than ten thousand. With [`MAX_STATUS`], a Plan fits into etcd.
pub const MAX_APPROVALS: usize = 640 * 1024;

/// The maximum depth of a value in a status. Clients reject JSON that is nested more than about a hundred levels deep.
const MAX_DEPTH: usize = 40;

/// The text in place of a value that is deeper.
const TOO_DEEP: &str = "(nested too deep to be shown)";

/// Returns the status without conditions, in at most `limit` bytes of JSON. What does not fit is left out, and
/// [`PlanStatus::omitted`] says so: first the largest values, then the graph, then messages and changes. `proofs`: of the
/// changes that need an approval.
pub fn status<'a>(
    limit: usize,
    changes: impl IntoIterator<Item = &'a Change> + Clone + 'a,
    diagnostics: &[Diagnostic],
    graph: PlanGraph,
    proofs: &BTreeMap<&Address, &ChangeProof>,
) -> PlanStatus {
    let counts = Counts::of(changes.clone(), diagnostics);
    let outcome = match (has_errors(diagnostics), counts.changes > 0) {
        (true, _) => PlanOutcome::Errors,
        (false, true) => PlanOutcome::Changes,
        (false, false) => PlanOutcome::NoChanges,
    };
    let shown = changes.into_iter().filter(|change| is_shown(change) || change.action == Action::Blocked);
    let mut status = PlanStatus {
        result: Some(outcome),
        summary: Some(summary(&counts)),
        changes: shown
            .map(|change| {
                let proof = proofs.get(&change.address).filter(|_| change.deposed.is_none());
                PlannedChange { proof: proof.map(|proof| (*proof).clone()), ..publish(change) }
            })
            .collect(),
        graph: Some(graph),
        diagnostics: diagnostics.iter().map(publish_diagnostic).collect(),
        ..PlanStatus::default()
    };
    fit(limit.min(MAX_STATUS), &mut status);
    for change in status.changes.iter_mut().filter(|change| !lacks_values(change)) {
        // They are shown, so their digest is computed from them.
        change.proof.iter_mut().for_each(|proof| proof.values = None);
    }
    status
}

/// Whether the values of a change are left out as a whole.
pub(crate) fn lacks_values(change: &PlannedChange) -> bool {
    change.values_omitted && change.before.is_none() && change.after.is_none()
}

fn fit(limit: usize, status: &mut PlanStatus) {
    let mut omitted = Omitted::default();
    omit_values(size(status).saturating_sub(limit), &mut status.changes);
    let mut excess = size(status).saturating_sub(limit);
    if excess > 0 {
        omitted.graph = status.graph.take().is_some_and(|graph| !graph.nodes.is_empty());
        excess = size(status).saturating_sub(limit);
    }
    if excess > 0 {
        // Half of the space for each of them, or what the other one leaves. The sentence about it needs a little.
        let room =
            limit.saturating_sub(size(&PlanStatus { changes: vec![], diagnostics: vec![], ..status.clone() }) + 200);
        let half = room.saturating_sub(size(&status.changes)).max(room / 2);
        omitted.diagnostics = truncate(half, &mut status.diagnostics, |_| 0);
        let room = room.saturating_sub(size(&status.diagnostics));
        omitted.changes = truncate(room, &mut status.changes, |change| match change.action {
            // What is lost first.
            Action::Destroy => 0,
            Action::Replace => 1,
            Action::Update | Action::Forget => 2,
            _ => 3,
        });
    }
    omitted.values = count(status.changes.iter().filter(|change| change.values_omitted).count());
    status.omitted = Some(omitted).filter(|omitted| *omitted != Omitted::default());
}

/// Leaves out values of at least this size: the largest ones first, because most changes are small.
fn omit_values(excess: usize, changes: &mut [PlannedChange]) {
    let mut by_size: Vec<(usize, &mut PlannedChange)> =
        changes.iter_mut().map(|change| (values(change), change)).collect();
    by_size.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let mut left = excess;
    for (size, change) in by_size {
        if left == 0 || size == 0 {
            return;
        }
        (change.before, change.after) = (None, None);
        let lists = [&mut change.unknown_paths, &mut change.sensitive_paths, &mut change.changed_sensitive_paths];
        lists.into_iter().for_each(Vec::clear);
        change.values_omitted = true;
        // The mark has a size too.
        left = left.saturating_sub(size.saturating_sub(25));
    }
}

/// The size of the values of a change.
fn values(change: &PlannedChange) -> usize {
    let values = [&change.before, &change.after].into_iter().flatten().map(size).sum::<usize>();
    let lists = [&change.unknown_paths, &change.sensitive_paths, &change.changed_sensitive_paths];
    values + lists.into_iter().filter(|list| !list.is_empty()).map(size).sum::<usize>()
}

/// Keeps the first items by rank that fit into this size, in their order. Returns the number of the others.
fn truncate<T: Serialize>(room: usize, items: &mut Vec<T>, rank: impl Fn(&T) -> u8) -> i32 {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|position| rank(&items[*position]));
    let mut left = room.saturating_sub(2);
    let mut is_kept = vec![false; items.len()];
    for position in order {
        // With a comma.
        let Some(rest) = left.checked_sub(size(&items[position]) + 1) else { break };
        (left, is_kept[position]) = (rest, true);
    }
    let mut kept = is_kept.iter();
    items.retain(|_| kept.next().is_some_and(|kept| *kept));
    count(is_kept.iter().filter(|kept| !**kept).count())
}

fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Bounds the changes of the approvals of a status.
pub fn pack(mut status: PlanStatus) -> PlanStatus {
    if size(&status.approvals) <= MAX_LISTED {
        return status;
    }
    let json = serde_json::to_string(&status.approvals).ok().filter(|json| json.len() <= load::MAX_DECOMPRESSED);
    let compressed = json.and_then(|json| load::compress(&json).ok());
    status.approvals_zstd = compressed.filter(|compressed| compressed.len() <= MAX_APPROVALS);
    if status.approvals_zstd.is_none() {
        return only_digests(status);
    }
    status.approvals.iter_mut().for_each(|approval| approval.changes.clear());
    status
}

/// The status without the changes of its approvals.
fn only_digests(mut status: PlanStatus) -> PlanStatus {
    let omitted = Omitted { approvals: guarded_changes(&status), ..status.omitted.unwrap_or_default() };
    status.omitted = Some(omitted);
    status.approvals_zstd = None;
    status.approvals.iter_mut().for_each(|approval| approval.changes.clear());
    status
}

/// The status with the changes of its approvals listed.
pub fn unpack(mut status: PlanStatus) -> PlanStatus {
    let Some(compressed) = status.approvals_zstd.take() else { return status };
    let approvals = load::decompress(&compressed).ok().and_then(|json| serde_json::from_str(&json).ok());
    // Without the changes, the digests count alone.
    status.approvals = approvals.unwrap_or(status.approvals);
    status
}

/// The number of changes that need an approval.
pub fn guarded_changes(status: &PlanStatus) -> i32 {
    let listed = status.approvals.iter().map(|approval| approval.changes.len()).sum::<usize>();
    status.omitted.map_or(0, |omitted| omitted.approvals).max(count(listed))
}

/// A status instead of one that the API server has refused, with this message: the approvals remain, or only their digests.
pub fn refused(status: &PlanStatus, message: &str, with_changes: bool) -> PlanStatus {
    let what = format!("the API server refused the list of the changes: {message}");
    let generation = status.observed_generation;
    let computed = condition(ConditionType::Computed, "False", Reason::OperationFailed, what, generation);
    let omitted = Omitted {
        changes: count(status.changes.len()),
        diagnostics: count(status.diagnostics.len()),
        graph: status.graph.is_some(),
        ..status.omitted.unwrap_or_default()
    };
    let reduced = PlanStatus {
        conditions: merge(&status.conditions, [computed], Timestamp::UNIX_EPOCH),
        changes: Vec::new(),
        diagnostics: Vec::new(),
        graph: None,
        omitted: Some(omitted),
        ..status.clone()
    };
    if with_changes { reduced } else { only_digests(reduced) }
}

/// How many objects without values are named: more names are as good as none.
const NAMED: usize = 10;

/// What is not shown, as sentences for someone who decides about the changes.
pub fn not_shown(status: &PlanStatus) -> Vec<String> {
    let what = status
        .omitted
        .and_then(Omitted::what)
        .map(|what| format!("Not shown, because a Plan cannot hold it: {what}. The digest covers it nevertheless."));
    let without: Vec<String> =
        status.changes.iter().filter(|change| change.values_omitted).map(|change| change.address.to_string()).collect();
    let named = without.len().min(NAMED);
    let more = if without.len() > named { format!(" and {} more", without.len() - named) } else { String::new() };
    let names =
        (named > 0).then(|| format!("Changes whose values are not shown: {}{more}.", without[..named].join(", ")));
    what.into_iter().chain(names).collect()
}

/// The message of the condition `Computed`: the headline, and what is not shown.
pub fn message(headline: &str, status: &PlanStatus) -> String {
    match status.omitted.and_then(Omitted::what) {
        Some(what) => format!("{headline} (not shown because of its size: {what})"),
        None => headline.to_owned(),
    }
}

/// The headline of a status.
pub fn headline<'a>(changes: impl IntoIterator<Item = &'a Change> + Clone + 'a, diagnostics: &[Diagnostic]) -> String {
    Counts::of(changes, diagnostics).to_string()
}

/// Returns the changes and diagnostics of a status. Sensitive values are marked, and have other contents.
pub fn read(status: &PlanStatus) -> (Vec<Change>, Diagnostics) {
    (status.changes.iter().map(restore).collect(), status.diagnostics.iter().map(restore_diagnostic).collect())
}

/// The size of a value as JSON, in bytes.
pub fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

fn summary(counts: &Counts) -> PlanSummary {
    let number = count;
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

/// A change as a status shows it, without its proof.
pub(crate) fn publish(change: &Change) -> PlannedChange {
    let null = Value::Null;
    let (before, after) = (change.before.as_ref().unwrap_or(&null), change.after.as_ref().unwrap_or(&null));
    let secrets = Secrets::of([before, after]);
    let (masked_before, masked_after) = (marked_like(before, after, &secrets), marked_like(after, before, &secrets));
    let mut marks = Marks::default();
    let (before_json, after_json) =
        (marks.public(&masked_before, &Path::default()), marks.public(&masked_after, &Path::default()));
    let changed_sensitive_paths = marks
        .sensitive
        .iter()
        .filter(|path| {
            let versions = masked_before.at(path).zip(masked_after.at(path));
            versions.is_some_and(|(old, new)| !old.equals_unmarked(&new))
        })
        .cloned()
        .collect();
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
        because: change.because.as_ref().map(ToString::to_string),
        reason: change.blocked.or(change.hold_destroy),
        message: change.message.clone(),
        waiting_for: change.waiting_for.clone(),
        replace_paths: change.replace_paths.clone(),
        drifted_paths,
        before: change.before.as_ref().map(|_| before_json),
        after: change.after.as_ref().map(|_| after_json),
        values_omitted: marks.cut,
        changed_sensitive_paths,
        unknown_paths: marks.unknown.into_iter().collect(),
        sensitive_paths: marks.sensitive.into_iter().collect(),
        proof: None,
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
    /// Something is nested too deep.
    cut: bool,
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
            Value::List(_) | Value::Map(_) if at.0.len() >= MAX_DEPTH => {
                self.cut = true;
                TOO_DEEP.into()
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

/// The change that a status shows.
pub(crate) fn restore(published: &PlannedChange) -> Change {
    let unknown = published.unknown_paths.iter().collect();
    let sensitive: BTreeSet<&Path> = published.sensitive_paths.iter().collect();
    let changed = published.changed_sensitive_paths.iter().collect();
    let none = BTreeSet::new();
    let before = Restored { unknown: &none, sensitive: &sensitive, changed: &none };
    let after = Restored { unknown: &unknown, sensitive: &sensitive, changed: &changed };
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
        because: published.because.as_deref().map(ChangeCause::published),
        blocked: published.reason.filter(|_| is_blocked),
        message: published.message.clone(),
        waiting_for: published.waiting_for.clone(),
        replace_paths: published.replace_paths.clone(),
        silent: false,
        imported: published.imported,
        drift: drifted,
        before: published.before.as_ref().map(|json| before.object(json)),
        after: published.after.as_ref().map(|json| after.object(json)),
    }
}

struct Restored<'a> {
    unknown: &'a BTreeSet<&'a Path>,
    sensitive: &'a BTreeSet<&'a Path>,
    /// Sensitive values that are different from those of the other version.
    changed: &'a BTreeSet<&'a Path>,
}

impl Restored<'_> {
    fn object(&self, json: &serde_json::Value) -> Value {
        self.value(&Value::from_json(json.clone()), &Path::default())
    }

    fn value(&self, value: &Value, at: &Path) -> Value {
        match value {
            _ if self.unknown.contains(at) => Value::Unknown,
            _ if self.sensitive.contains(at) => Value::from(self.changed.contains(at)).into_sensitive(),
            Value::Map(map) => Value::map(
                map.iter().map(|(name, item)| (Arc::clone(name), self.value(item, &at.name(Arc::clone(name))))),
            ),
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
