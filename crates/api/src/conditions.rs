//! Condition types, and the merge of new conditions into old ones that keeps transition times.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The object matches its Resource. Always present.
    Ready,
    /// The last plan of the object was applied. Always present.
    Synced,
    /// A change is in progress, or will start without any action by the user. kstatus shows it as "in progress".
    Reconciling,
    /// The object stays as it is until the user acts. kstatus shows it as "failed".
    Stalled,
    /// The object was changed outside of Purlin.
    Drifted,
    /// The object must be destroyed, but cannot be destroyed yet.
    DeletionBlocked,
    /// A change waits for the approval of a Plan.
    ApprovalRequired,
    /// The status of a Plan has the changes.
    Computed,
    /// The changes of a Plan may be made.
    Approved,
    /// The processes of a Provider can access every file that the controller can access.
    Unconfined,
}

impl ConditionType {
    /// Every type, in the order of the status.
    pub const ALL: &[Self] = &[
        Self::Ready,
        Self::Synced,
        Self::Reconciling,
        Self::Stalled,
        Self::Drifted,
        Self::DeletionBlocked,
        Self::ApprovalRequired,
        Self::Computed,
        Self::Approved,
        Self::Unconfined,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Synced => "Synced",
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
            Self::Drifted => "Drifted",
            Self::DeletionBlocked => "DeletionBlocked",
            Self::ApprovalRequired => "ApprovalRequired",
            Self::Computed => "Computed",
            Self::Approved => "Approved",
            Self::Unconfined => "Unconfined",
        }
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns a condition without a transition time, which [`merge`] sets.
pub fn condition(
    kind: ConditionType,
    status: &str,
    reason: impl fmt::Display,
    message: impl Into<String>,
    observed_generation: i64,
) -> Condition {
    Condition {
        type_: kind.as_str().to_owned(),
        status: status.to_owned(),
        reason: reason.to_string(),
        message: message.into(),
        // The API server rejects negative values. A Resource that was never observed has none.
        observed_generation: Some(observed_generation).filter(|generation| *generation >= 0),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Returns the condition of a type.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == kind.as_str())
}

/// Returns the conditions to write: those of `new`, in the order of [`ConditionType::ALL`], each with the time at which
/// its status last changed. Conditions with foreign types are kept.
pub fn merge(old: &[Condition], new: impl IntoIterator<Item = Condition>, now: Timestamp) -> Vec<Condition> {
    let mut merged: Vec<Condition> = new.into_iter().collect();
    for condition in &mut merged {
        let before = old.iter().find(|before| before.type_ == condition.type_);
        condition.last_transition_time = match before {
            Some(before) if before.status == condition.status => before.last_transition_time.clone(),
            _ => Time(now),
        };
    }
    merged.extend(old.iter().filter(|before| rank(&before.type_).is_none()).cloned());
    merged.sort_by_key(|condition| rank(&condition.type_).unwrap_or(usize::MAX));
    merged
}

fn rank(kind: &str) -> Option<usize> {
    ConditionType::ALL.iter().position(|known| known.as_str() == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: &str, message: &str) -> Condition {
        condition(ConditionType::Ready, status, "Available", message, 1)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let first = merge(&[], [ready("False", "a")], at(1));
        let second = merge(&first, [ready("False", "b")], at(2));
        assert_eq!((second[0].last_transition_time.0, second[0].message.as_str()), (at(1), "b"));
        let third = merge(&second, [ready("True", "b")], at(3));
        assert_eq!(third[0].last_transition_time.0, at(3));
    }

    #[test]
    fn merging_equal_conditions_changes_nothing() {
        let synced = condition(ConditionType::Synced, "True", "Available", "", 1);
        let first = merge(&[], [synced.clone(), ready("True", "")], at(1));
        assert_eq!(first.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), ["Ready", "Synced"]);
        assert_eq!(merge(&first, [ready("True", ""), synced], at(9)), first);
    }

    #[test]
    fn absent_own_conditions_are_removed_and_foreign_ones_are_kept() {
        let mut foreign = ready("True", "");
        foreign.type_ = "Audited".to_owned();
        let stalled = condition(ConditionType::Stalled, "True", "InvalidConfig", "", 1);
        let merged = merge(&[stalled, foreign], [ready("True", "")], at(1));
        assert_eq!(merged.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), ["Ready", "Audited"]);
    }
}
