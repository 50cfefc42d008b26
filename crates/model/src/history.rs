//! The history of an object: its last changes, without values. It is part of the record, so it has a limited size.
//!
//! Nothing is planned from a history, and none is a reason to write a record.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::encoding::is_default;
use super::text::one_line;
use super::{ChangeApproval, DeposedKey, Operation, Path, shared};

/// The maximum number of entries. A longer history belongs in the log.
const MAX_ENTRIES: usize = 10;

/// The maximum size of a history in bytes, as stored without compression. It keeps the records of a hundred thousand
/// objects small, even if all of them fail with long errors.
pub const MAX_BYTES: usize = 4096;

/// The maximum length of an error in bytes. The status and the event have more of it.
const MAX_ERROR: usize = 300;
const MAX_BECAUSE: usize = 200;
const MAX_ATTRIBUTES: usize = 8;
const MAX_ATTRIBUTE: usize = 80;
const MAX_USER: usize = 128;
const MAX_OPERATION_ID: usize = 64;

/// What an entry needs besides its texts: names of fields, times, numbers and lengths, all of maximum length.
const FIXED: usize = 128;

/// The `because` of an update whose generation differs from that of the change before.
const SPEC_CHANGED: &str = "its spec changed";
/// The `because` of an update whose generation is that of the change before.
const VALUE_CHANGED: &str = "a value that it reads, or its provider, changed";
/// The `because` of an update without a change before it.
const SPEC_OR_VALUE_CHANGED: &str = "its spec, or a value that it reads, changed";

/// The last changes of an object, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History(Arc<[HistoryEntry]>);

/// A change of an object, or several attempts that failed with the same error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryEntry {
    #[serde(rename = "k")]
    pub kind: ChangeKind,
    /// The deposed object that was destroyed or forgotten; `None` for the current object.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub deposed: Option<DeposedKey>,
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    pub cause: Cause,
    /// When the change began, or its last attempt. In milliseconds, like `first`.
    #[serde(rename = "b", with = "jiff::fmt::serde::timestamp::millisecond::required")]
    pub began: Timestamp,
    /// When the first attempt began.
    #[serde(rename = "f", with = "jiff::fmt::serde::timestamp::millisecond::required")]
    pub first: Timestamp,
    /// How long the last attempt took.
    #[serde(rename = "m", default, skip_serializing_if = "is_default")]
    pub milliseconds: u64,
    #[serde(rename = "o")]
    pub outcome: ChangeOutcome,
    /// The number of attempts.
    #[serde(rename = "n")]
    pub count: u32,
    /// The ID of the operation in the log; that of the last attempt. Empty without an operation.
    #[serde(rename = "i", default, skip_serializing_if = "is_default")]
    pub operation_id: Arc<str>,
}

/// What a change does with the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Create,
    Update,
    Destroy,
    Forget,
    /// Record an existing object.
    Import,
    /// Run the hooks of a new object in an operation of their own.
    Hooks,
}

/// Why an object is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The reason as in the plan. Empty if nothing is known.
    #[serde(rename = "b", default, skip_serializing_if = "is_default", deserialize_with = "shared::text")]
    pub because: Arc<str>,
    /// The changed attributes, or those that force the replacement.
    #[serde(rename = "a", default, skip_serializing_if = "is_default", deserialize_with = "shared::texts")]
    pub attributes: Arc<[Arc<str>]>,
    /// The number of further attributes.
    #[serde(rename = "m", default, skip_serializing_if = "is_default")]
    pub more_attributes: u32,
    /// The generation of the Resource. On files, a hash of the spec.
    #[serde(rename = "g", default, skip_serializing_if = "is_default")]
    pub generation: i64,
    /// The change is part of a replacement.
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    pub replaces: bool,
    /// The user who approved the change. Empty if it needed no approval, or if the approval does not name a user.
    #[serde(rename = "u", default, skip_serializing_if = "is_default", deserialize_with = "shared::text")]
    pub approved_by: Arc<str>,
    /// Which approvals the change uses up, as [`ChangeApproval::uses`](super::ChangeApproval) has it.
    #[serde(rename = "p", default, skip_serializing_if = "is_default")]
    pub approval: Arc<str>,
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeOutcome {
    Succeeded,
    /// The object exists, but was not ready when it was last recorded.
    NotReady,
    /// The error, on one line and without sensitive values.
    Failed(Arc<str>),
    /// Its process ended first. Recovery determined what had happened.
    Recovered(Resolution),
}

/// What recovery found out about an interrupted operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resolution {
    /// The operation took effect, or recovery completed it.
    Effective,
    /// The operation had no effect.
    NoEffect,
    /// It cannot be known whether an update took effect. The object was read, and the next plan compares it.
    Read,
    /// The hooks were interrupted. The next plan runs them again.
    Hooks,
}

impl ChangeKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Destroy => "destroy",
            Self::Forget => "forget",
            Self::Import => "import",
            Self::Hooks => "hooks",
        }
    }

    /// The kind of the change that an intent with this operation announces.
    pub fn of(operation: Operation) -> Self {
        match operation {
            Operation::Create => Self::Create,
            Operation::Update => Self::Update,
            Operation::Destroy => Self::Destroy,
            Operation::Forget => Self::Forget,
            Operation::Record | Operation::Wait | Operation::Read => Self::Hooks,
        }
    }
}

impl Cause {
    /// `because` and `attributes` are those of the plan.
    pub fn new(because: Option<&str>, attributes: &[Path], generation: i64, replaces: bool) -> Self {
        let named = attributes.iter().take(MAX_ATTRIBUTES).map(|path| cut(&path.to_string(), MAX_ATTRIBUTE));
        Self {
            because: cut(&one_line(because.unwrap_or_default()), MAX_BECAUSE),
            attributes: named.collect(),
            more_attributes: u32::try_from(attributes.len().saturating_sub(MAX_ATTRIBUTES)).unwrap_or(u32::MAX),
            generation,
            replaces,
            approved_by: Arc::default(),
            approval: Arc::default(),
        }
    }

    #[must_use]
    pub fn approved(self, approval: Option<&ChangeApproval>) -> Self {
        let Some(approval) = approval else { return self };
        Self { approved_by: cut(&one_line(&approval.by), MAX_USER), approval: approval.uses.clone(), ..self }
    }

    /// The cause of an operation on a record. The plan gives no reason for a create and for an update that only the
    /// configuration requires.
    #[must_use]
    pub fn or_default(self, operation: Operation, before: &History) -> Self {
        if !self.because.is_empty() {
            return self;
        }
        let because = match (operation, before.applied_generation()) {
            (Operation::Create, _) => "it is new",
            (Operation::Update, None) => SPEC_OR_VALUE_CHANGED,
            (Operation::Update, Some(applied)) if applied == self.generation => VALUE_CHANGED,
            (Operation::Update, Some(_)) => SPEC_CHANGED,
            (Operation::Record, _) => "it was created",
            _ => "",
        };
        Self { because: because.into(), ..self }
    }
}

impl ChangeOutcome {
    pub fn failed(error: &str) -> Self {
        Self::Failed(cut(&one_line(error), MAX_ERROR))
    }
}

impl HistoryEntry {
    /// A change that ends now.
    pub fn new(kind: ChangeKind, cause: Cause, began: Timestamp, now: Timestamp, outcome: ChangeOutcome) -> Self {
        let began = milliseconds(began);
        let took = now.as_millisecond().saturating_sub(began.as_millisecond());
        Self {
            kind,
            deposed: None,
            cause,
            began,
            first: began,
            milliseconds: u64::try_from(took).unwrap_or(0),
            outcome,
            count: 1,
            operation_id: "".into(),
        }
    }

    /// The ID is that of the operation in the log.
    #[must_use]
    pub fn of_operation(self, id: &str) -> Self {
        Self { operation_id: cut(id, MAX_OPERATION_ID), ..self }
    }

    /// Whether the change of the current object was made with this approval. `is_complete`: nothing is left to change, which
    /// decides if it could not be known whether the change took effect.
    pub fn uses(&self, approval: &str, kind: ChangeKind, is_complete: bool) -> bool {
        let is_made = match &self.outcome {
            ChangeOutcome::Succeeded
            | ChangeOutcome::NotReady
            | ChangeOutcome::Recovered(Resolution::Effective | Resolution::Hooks) => true,
            ChangeOutcome::Recovered(Resolution::Read) => is_complete,
            ChangeOutcome::Recovered(Resolution::NoEffect) | ChangeOutcome::Failed(_) => false,
        };
        is_made && self.kind == kind && self.deposed.is_none() && self.cause.approval.contains(approval)
    }

    /// Whether the object has changed successfully, so that a later failure is not a repeated one. A destroy is not:
    /// an incomplete object is destroyed and created again until that succeeds.
    fn is_progress(&self) -> bool {
        let is_effective = matches!(
            self.outcome,
            ChangeOutcome::Succeeded | ChangeOutcome::NotReady | ChangeOutcome::Recovered(Resolution::Effective)
        );
        is_effective && self.kind != ChangeKind::Destroy
    }

    fn is_successful_destroy(&self) -> bool {
        self.kind == ChangeKind::Destroy && self.outcome == ChangeOutcome::Succeeded
    }

    fn repeats(&self, earlier: &Self) -> bool {
        let (ChangeOutcome::Failed(error), ChangeOutcome::Failed(known)) = (&self.outcome, &earlier.outcome) else {
            return false;
        };
        self.kind == earlier.kind && words(error).eq(words(known))
    }

    /// At least the number of bytes that a store needs.
    fn size(&self) -> usize {
        let error = match &self.outcome {
            ChangeOutcome::Failed(error) => error.len(),
            ChangeOutcome::Succeeded | ChangeOutcome::NotReady | ChangeOutcome::Recovered(_) => 0,
        };
        let attributes: usize = self.cause.attributes.iter().map(|path| path.len() + 2).sum();
        let approval = self.cause.approved_by.len() + self.cause.approval.len();
        FIXED + self.cause.because.len() + attributes + error + self.operation_id.len() + approval
    }
}

impl History {
    /// The entries as a store has them.
    pub fn from_entries(entries: Vec<HistoryEntry>) -> Self {
        Self(entries.into())
    }

    /// Oldest first.
    pub fn entries(&self) -> &[HistoryEntry] {
        &self.0
    }

    /// Adds a change. A failure that repeats an earlier one replaces it, and with it the destroys in between, so that
    /// retries do not displace everything else. The oldest entries are dropped if there are too many.
    pub fn add(&mut self, mut new: HistoryEntry) {
        let mut entries = self.0.to_vec();
        let start = entries.iter().rposition(HistoryEntry::is_progress).map_or(0, |last| last + 1);
        if let Some(at) = entries[start..].iter().rposition(|earlier| new.repeats(earlier)) {
            let earlier = entries.remove(start + at);
            let mut between = entries.split_off(start + at);
            between.retain(|entry| !entry.is_successful_destroy());
            entries.append(&mut between);
            new.first = earlier.first;
            new.count = earlier.count.saturating_add(new.count);
        }
        entries.push(new);
        let mut size: usize = entries.iter().map(HistoryEntry::size).sum();
        let mut dropped = 0;
        while entries.len() - dropped > MAX_ENTRIES || (size > MAX_BYTES && entries.len() - dropped > 1) {
            size -= entries[dropped].size();
            dropped += 1;
        }
        entries.drain(..dropped);
        self.0 = entries.into();
    }

    /// Ends the newest entry if its object was not ready.
    pub fn conclude(&mut self, now: Timestamp, outcome: ChangeOutcome) {
        let Some((last, rest)) = self.0.split_last() else { return };
        if last.outcome != ChangeOutcome::NotReady {
            return;
        }
        let last = last.clone();
        let took = now.as_millisecond().saturating_sub(last.began.as_millisecond());
        self.0 = rest.into();
        self.add(HistoryEntry { outcome, milliseconds: u64::try_from(took).unwrap_or(0), ..last });
    }

    /// The generation of the last successful change of the current object.
    fn applied_generation(&self) -> Option<i64> {
        self.0
            .iter()
            .rev()
            .find(|entry| entry.is_progress() && entry.kind != ChangeKind::Hooks)
            .map(|entry| entry.cause.generation)
    }
}

fn milliseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time)
}

/// The words by which two errors are compared. Long words with a digit are left out: they are request IDs and times,
/// which differ in every attempt.
fn words(error: &str) -> impl Iterator<Item = &str> {
    const LONG: usize = 8;
    error.split_whitespace().filter(|word| word.len() < LONG || !word.contains(|c: char| c.is_ascii_digit()))
}

/// The beginning of a text with at most this number of bytes.
fn cut(text: &str, most: usize) -> Arc<str> {
    if text.len() <= most {
        return text.into();
    }
    let end = text.floor_char_boundary(most - '…'.len_utf8());
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn entry(kind: ChangeKind, second: i64, outcome: ChangeOutcome) -> HistoryEntry {
        HistoryEntry::new(kind, Cause::default(), at(second), at(second + 2), outcome)
    }

    fn history(entries: impl IntoIterator<Item = HistoryEntry>) -> History {
        let mut history = History::default();
        entries.into_iter().for_each(|entry| history.add(entry));
        history
    }

    fn line(entry: &HistoryEntry) -> String {
        let result = match &entry.outcome {
            ChangeOutcome::Failed(error) => format!("failed: {error}"),
            other => format!("{other:?}"),
        };
        let (first, last) = (entry.first.as_second(), entry.began.as_second());
        format!("{} {first}..{last} x{} {result}", entry.kind.as_str(), entry.count)
    }

    /// `create 1..3 x3 failed: error`
    fn shown(history: &History) -> Vec<String> {
        history.entries().iter().map(line).collect()
    }

    #[test]
    fn the_oldest_entries_are_dropped() {
        let all = history((0..15).map(|second| entry(ChangeKind::Update, second, ChangeOutcome::Succeeded)));
        assert_eq!(all.entries().len(), MAX_ENTRIES);
        assert_eq!(shown(&all)[0], "update 5..5 x1 Succeeded");
        assert_eq!(shown(&all)[MAX_ENTRIES - 1], "update 14..14 x1 Succeeded");
    }

    #[test]
    fn a_history_has_a_maximum_size_however_long_its_texts_are() {
        let paths: Vec<Path> = (0..20).map(|n| Path::default().name("é".repeat(200)).index(n)).collect();
        let mut all = History::default();
        for n in 0..20u8 {
            let letter = char::from(b'a' + n);
            let cause = Cause::new(Some(&"why\n".repeat(100)), &paths, 3, true);
            let outcome = ChangeOutcome::failed(&format!("{letter} {}", "ü".repeat(1_000)));
            all.add(HistoryEntry::new(ChangeKind::Update, cause, at(n.into()), at(60), outcome));
        }
        let newest = all.entries().last().unwrap();
        assert_eq!((newest.cause.attributes.len(), newest.cause.more_attributes), (MAX_ATTRIBUTES, 12));
        assert!(newest.cause.because.starts_with("why; why") && newest.cause.because.len() <= MAX_BECAUSE);
        let sizes: Vec<usize> = all.entries().iter().map(HistoryEntry::size).collect();
        assert!(sizes.iter().sum::<usize>() <= MAX_BYTES, "{sizes:?}");
        assert!(sizes.len() >= 3, "{sizes:?}");
    }

    #[test]
    fn equal_failures_are_one_entry() {
        let fails = |second, error: &str| entry(ChangeKind::Update, second, ChangeOutcome::failed(error));
        let all = history([
            entry(ChangeKind::Create, 0, ChangeOutcome::Succeeded),
            fails(1, "quota exceeded (request 7f3a11c2-1)"),
            fails(2, "quota exceeded (request 99f0aa31-2)"),
            fails(3, "status 403"),
            fails(4, "quota exceeded (request 0a0b0c0d-3)"),
            fails(5, "status 500"),
        ]);
        assert_eq!(
            shown(&all),
            [
                "create 0..0 x1 Succeeded",
                "update 3..3 x1 failed: status 403",
                "update 1..4 x3 failed: quota exceeded (request 0a0b0c0d-3)",
                "update 5..5 x1 failed: status 500",
            ]
        );
    }

    #[test]
    fn a_failure_after_a_success_is_a_new_entry() {
        let fails = |second| entry(ChangeKind::Update, second, ChangeOutcome::failed("no"));
        let all = history([fails(1), entry(ChangeKind::Update, 2, ChangeOutcome::Succeeded), fails(3)]);
        assert_eq!(shown(&all), ["update 1..1 x1 failed: no", "update 2..2 x1 Succeeded", "update 3..3 x1 failed: no"]);
    }

    #[test]
    fn an_object_that_is_replaced_until_it_works_has_one_entry() {
        let mut all = history([entry(ChangeKind::Update, 0, ChangeOutcome::Succeeded)]);
        for attempt in 0..20 {
            all.add(entry(ChangeKind::Create, 10 * attempt + 1, ChangeOutcome::failed("hook failed")));
            all.add(entry(ChangeKind::Destroy, 10 * attempt + 5, ChangeOutcome::Succeeded));
        }
        assert_eq!(
            shown(&all),
            ["update 0..0 x1 Succeeded", "create 1..191 x20 failed: hook failed", "destroy 195..195 x1 Succeeded"]
        );
    }

    #[test]
    fn readiness_ends_the_entry_of_the_change() {
        let mut all = history([entry(ChangeKind::Create, 1, ChangeOutcome::NotReady)]);
        all.conclude(at(61), ChangeOutcome::Succeeded);
        assert_eq!(shown(&all), ["create 1..1 x1 Succeeded"]);
        assert_eq!(all.entries()[0].milliseconds, 60_000);
        all.conclude(at(90), ChangeOutcome::failed("never"));
        assert_eq!(all.entries()[0].milliseconds, 60_000, "an ended entry does not change");
    }

    fn cause(generation: i64, before: &History) -> Arc<str> {
        Cause { generation, ..Cause::default() }.or_default(Operation::Update, before).because
    }

    #[test]
    fn the_generation_of_the_change_before_distinguishes_the_causes_of_an_update() {
        let created = Cause { generation: 2, ..Cause::default() };
        let created = HistoryEntry::new(ChangeKind::Create, created, at(1), at(2), ChangeOutcome::Succeeded);
        let failed = Cause { generation: 3, ..Cause::default() };
        let failed = HistoryEntry::new(ChangeKind::Update, failed, at(3), at(4), ChangeOutcome::failed("no"));
        let before = history([created, failed]);
        assert_eq!(&*cause(2, &before), VALUE_CHANGED);
        assert_eq!(&*cause(3, &before), SPEC_CHANGED, "the failed update has not applied it");
        assert_eq!(&*cause(3, &History::default()), SPEC_OR_VALUE_CHANGED);
    }
}
