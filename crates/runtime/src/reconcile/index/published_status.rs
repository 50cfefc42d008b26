//! The compact form of a status, which is kept in memory for every Resource and Module.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use api::Status;
use api::conditions::ConditionType;
use engine::load::Interner;

/// Longer messages are specific to one object and are not interned.
const MAX_INTERNED: usize = 100;

/// The parts of the current status that summarizing needs.
#[derive(Clone, Debug, Default)]
pub struct PublishedStatus {
    conditions: Arc<[PublishedCondition]>,
    /// The generation that the status describes; -1 for none.
    pub observed_generation: i64,
    /// The revision of the objects.
    pub revision: Option<Arc<str>>,
    /// The last handled reconcile request.
    pub handled_reconcile: Arc<str>,
    /// A digest of the whole status: a status with the same digest is not written again once the server has it.
    pub digest: u64,
}

/// A condition. Most idle objects have the same strings, so these are shared.
#[derive(Clone, Debug)]
struct PublishedCondition {
    kind: Arc<str>,
    status: Arc<str>,
    reason: Arc<str>,
    message: Arc<str>,
    generation: Option<i64>,
    since: Timestamp,
}

impl PublishedStatus {
    /// Converts a status, and interns its common strings.
    pub fn of(status: &Status, strings: &mut Interner) -> Self {
        let mut hasher = DefaultHasher::new();
        // A status that cannot be serialized gets the digest of an empty string.
        serde_json::to_vec(status).unwrap_or_default().hash(&mut hasher);
        Self {
            conditions: status
                .conditions()
                .iter()
                .map(|condition| PublishedCondition::of(condition, strings))
                .collect(),
            observed_generation: status.observed_generation(),
            revision: status.revision().map(Arc::from),
            handled_reconcile: strings.get(status.last_handled_reconcile_at().unwrap_or_default()),
            digest: hasher.finish(),
        }
    }

    /// The form for a Resource without a status.
    pub fn empty() -> Self {
        Self { observed_generation: -1, ..Self::default() }
    }

    pub fn conditions(&self) -> Vec<Condition> {
        self.conditions.iter().map(PublishedCondition::condition).collect()
    }

    pub fn is_true(&self, kind: ConditionType) -> bool {
        self.conditions.iter().any(|condition| *condition.kind == *kind.as_str() && *condition.status == *"True")
    }

    pub fn condition(&self, kind: ConditionType) -> Option<Condition> {
        self.conditions.iter().find(|condition| *condition.kind == *kind.as_str()).map(PublishedCondition::condition)
    }
}

impl PublishedCondition {
    fn of(condition: &Condition, strings: &mut Interner) -> Self {
        let message = condition.message.as_str();
        Self {
            kind: strings.get(&condition.type_),
            status: strings.get(&condition.status),
            reason: strings.get(&condition.reason),
            message: if message.len() > MAX_INTERNED { message.into() } else { strings.get(message) },
            generation: condition.observed_generation,
            since: condition.last_transition_time.0,
        }
    }

    fn condition(&self) -> Condition {
        Condition {
            type_: self.kind.to_string(),
            status: self.status.to_string(),
            reason: self.reason.to_string(),
            message: self.message.to_string(),
            observed_generation: self.generation,
            last_transition_time: Time(self.since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::ResourceStatus;
    use api::conditions::condition;

    #[test]
    fn conditions_round_trip() {
        let long = "because ".repeat(30);
        let conditions = vec![
            condition(ConditionType::Ready, "True", "Available", "as described", 3),
            condition(ConditionType::Synced, "False", "OperationFailed", long, -1),
        ];
        let status = ResourceStatus { conditions, observed_generation: 3, ..<_>::default() };
        let published = PublishedStatus::of(&status.clone().into(), &mut Interner::default());
        assert_eq!(published.conditions(), status.conditions);
        assert_eq!(published.condition(ConditionType::Synced).as_ref(), status.conditions.get(1));
        assert_eq!(published.condition(ConditionType::Stalled), None);
    }

    #[test]
    fn a_status_read_back_has_the_digest_it_was_written_with() {
        let status = ResourceStatus { observed_generation: 3, id: Some("i".into()), ..<_>::default() };
        let read: ResourceStatus = serde_json::from_value(serde_json::to_value(&status).unwrap()).unwrap();
        let texts = &mut Interner::default();
        assert_eq!(PublishedStatus::of(&read.into(), texts).digest, PublishedStatus::of(&status.into(), texts).digest);
    }
}
