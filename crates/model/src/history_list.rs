//! The history of objects as a list for users: `purlin history` and the live view show it.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::history::{Cause, ChangeKind, ChangeOutcome, Resolution};
use super::{Address, DeposedKey, Record};

/// The changes of these records, newest first.
pub fn listed<'r>(records: impl Iterator<Item = &'r Record>) -> Vec<ListedChange<'r>> {
    let mut listed: Vec<(Timestamp, ListedChange<'r>)> = Vec::new();
    for record in records {
        // The changes of a record are in the order in which they happened, also if the clock was set back meanwhile.
        let mut latest = Timestamp::MIN;
        for change in changes_of(record) {
            latest = latest.max(change.began);
            listed.push((latest, change));
        }
    }
    // The order of changes that began in the same millisecond is kept.
    listed.reverse();
    listed.sort_by_key(|(latest, _)| Reverse(*latest));
    listed.into_iter().map(|(_, change)| change).collect()
}

/// A change, or one that has not ended.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedChange<'r> {
    pub address: &'r Address,
    pub action: ChangeKind,
    pub replaces: bool,
    pub deposed_key: Option<DeposedKey>,
    #[serde(serialize_with = "as_text")]
    pub began: Timestamp,
    #[serde(serialize_with = "as_text")]
    pub first_began: Timestamp,
    pub count: u32,
    pub milliseconds: Option<u64>,
    /// `succeeded`, `notReady`, `failed`, `recovered` or `open`.
    pub outcome: &'static str,
    pub error: Option<&'r str>,
    /// What recovery determined: `effective`, `noEffect`, `read` or `hooks`.
    pub resolution: Option<&'static str>,
    pub reason: &'r str,
    pub attributes: Vec<&'r str>,
    pub more_attributes: u32,
    pub generation: i64,
    /// Empty if the change needed no approval.
    pub approved_by: &'r str,
    pub operation_id: &'r str,
}

fn as_text<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// The recorded changes, and the operation that has not ended.
fn changes_of(record: &Record) -> Vec<ListedChange<'_>> {
    let ended = record.history.entries().iter().map(|entry| {
        let (outcome, error, resolution) = match &entry.outcome {
            ChangeOutcome::Succeeded => ("succeeded", None, None),
            ChangeOutcome::NotReady => ("notReady", None, None),
            ChangeOutcome::Failed(error) => ("failed", Some(&**error), None),
            ChangeOutcome::Recovered(resolution) => ("recovered", None, Some(resolution_name(*resolution))),
        };
        ListedChange {
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
    let open = record.intent.iter().map(|intent| ListedChange {
        action: ChangeKind::of(intent.operation),
        deposed_key: intent.deposed.filter(|_| ChangeKind::of(intent.operation) == ChangeKind::Destroy),
        began: intent.started,
        first_began: intent.started,
        operation_id: &intent.operation_id,
        ..open(record, &intent.cause)
    });
    ended.chain(open).collect()
}

fn open<'r>(record: &'r Record, cause: &'r Cause) -> ListedChange<'r> {
    ListedChange {
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

impl ListedChange<'_> {
    /// When, action, duration, result and reason, as texts.
    pub fn cells(&self) -> [String; 5] {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, HistoryEntry};

    fn record(name: &str, entries: Vec<HistoryEntry>) -> Record {
        Record {
            history: History::from_entries(entries),
            ..Record::empty("shop".into(), Address::single(name), "".into(), "t".into())
        }
    }

    fn entry(kind: ChangeKind, second: i64) -> HistoryEntry {
        HistoryEntry::new(kind, Cause::default(), at(second), at(second), ChangeOutcome::Succeeded)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn changes_of_an_object_are_in_their_order_also_if_the_clock_was_set_back() {
        let set_back = record("a", vec![entry(ChangeKind::Create, 900), entry(ChangeKind::Update, 100)]);
        let other = record("b", vec![entry(ChangeKind::Create, 500)]);
        let kinds: Vec<_> = listed([&set_back, &other].into_iter()).iter().map(|one| one.action).collect();
        assert_eq!(kinds, [ChangeKind::Update, ChangeKind::Create, ChangeKind::Create]);
        assert_eq!(listed([&set_back, &other].into_iter())[2].address, &Address::single("b"));
    }
}
