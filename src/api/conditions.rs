//! Condition types, and how a new set of conditions is merged into an old one without flapping.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// The aspects of an object's state that conditions tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The object is as its Resource describes it. Always there.
    Ready,
    /// The last plan of the object was carried out. Always there.
    Synced,
    /// A change is under way, or will start by itself. kstatus reads it as "in progress".
    Reconciling,
    /// Nothing will happen until somebody changes something. kstatus reads it as "failed".
    Stalled,
    /// The object is not as it was left.
    Drifted,
    /// The object is to be destroyed and must not be yet.
    DeletionBlocked,
    /// The processes of a Provider reach whatever the controller can.
    Unconfined,
}

impl ConditionType {
    /// Every type, in the order in which a status lists them.
    pub const ALL: &[Self] = &[
        Self::Ready,
        Self::Synced,
        Self::Reconciling,
        Self::Stalled,
        Self::Drifted,
        Self::DeletionBlocked,
        Self::Unconfined,
    ];

    /// The CamelCase word that the API shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Synced => "Synced",
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
            Self::Drifted => "Drifted",
            Self::DeletionBlocked => "DeletionBlocked",
            Self::Unconfined => "Unconfined",
        }
    }

    /// Whether a status has it even when it is not true. The others are listed while they are true only.
    pub fn is_always_there(self) -> bool {
        matches!(self, Self::Ready | Self::Synced)
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A condition as of now; [`merge`] sets its time.
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
        // The server refuses negative ones; of a Resource that nobody has considered yet there is none.
        observed_generation: Some(observed_generation).filter(|generation| *generation >= 0),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// The conditions to write: those of `new`, in the order of [`ConditionType::ALL`], each with the time at which its
/// status last changed. A condition that is as before keeps its time, so that merging the same twice changes
/// nothing. Conditions of types that are not ours stay.
pub fn merge(old: &[Condition], new: impl IntoIterator<Item = Condition>, now: Timestamp) -> Vec<Condition> {
    let rank = |kind: &str| ConditionType::ALL.iter().position(|known| known.as_str() == kind);
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
    fn the_time_moves_only_when_the_status_changes() {
        let first = merge(&[], [ready("False", "a")], at(1));
        let second = merge(&first, [ready("False", "b")], at(2));
        assert_eq!((second[0].last_transition_time.0, second[0].message.as_str()), (at(1), "b"));
        let third = merge(&second, [ready("True", "b")], at(3));
        assert_eq!(third[0].last_transition_time.0, at(3));
    }

    #[test]
    fn merging_the_same_again_changes_nothing() {
        let synced = condition(ConditionType::Synced, "True", "Available", "", 1);
        let first = merge(&[], [synced.clone(), ready("True", "")], at(1));
        assert_eq!(first.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), ["Ready", "Synced"]);
        assert_eq!(merge(&first, [ready("True", ""), synced], at(9)), first);
    }

    #[test]
    fn our_own_conditions_go_and_foreign_ones_stay() {
        let mut foreign = ready("True", "");
        foreign.type_ = "Approved".to_owned();
        let stalled = condition(ConditionType::Stalled, "True", "InvalidConfig", "", 1);
        let merged = merge(&[stalled, foreign], [ready("True", "")], at(1));
        assert_eq!(merged.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), ["Ready", "Approved"]);
    }
}
