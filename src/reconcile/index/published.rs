//! What is remembered of the status of a Resource, of each of them all the time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::ResourceStatus;
use crate::api::conditions::ConditionType;
use crate::load::Interner;

/// A message that is longer is about one object, and nobody else has it.
const COMMON: usize = 100;

/// What summarizing needs of the status that is written already.
#[derive(Clone, Debug, Default)]
pub struct Published {
    conditions: Arc<[Told]>,
    /// The generation that the status is about; -1 for none.
    pub observed_generation: i64,
    /// What its objects were when it was written.
    pub revision: Option<Arc<str>>,
    /// The request that was handled last.
    pub handled_reconcile: Arc<str>,
    /// Digest of the whole status: the same digest needs no write.
    pub digest: u64,
}

/// A condition. Objects at rest all say the same, so the texts are shared.
#[derive(Clone, Debug)]
struct Told {
    kind: Arc<str>,
    status: Arc<str>,
    reason: Arc<str>,
    message: Arc<str>,
    generation: Option<i64>,
    since: Timestamp,
}

impl Published {
    /// What is remembered of a status. What many of them say is kept once in `texts`.
    pub fn of(status: &ResourceStatus, texts: &mut Interner) -> Self {
        let mut hasher = DefaultHasher::new();
        // A status that cannot be written as JSON has no digest, so it differs from every other one.
        serde_json::to_vec(status).unwrap_or_default().hash(&mut hasher);
        Self {
            conditions: status.conditions.iter().map(|condition| Told::of(condition, texts)).collect(),
            observed_generation: status.observed_generation,
            revision: status.revision.as_deref().map(Arc::from),
            handled_reconcile: texts.get(status.last_handled_reconcile_at.as_deref().unwrap_or_default()),
            digest: hasher.finish(),
        }
    }

    /// Of a Resource that has no status yet.
    pub fn nothing() -> Self {
        Self { observed_generation: -1, ..Self::default() }
    }

    /// The conditions as they are written.
    pub fn conditions(&self) -> Vec<Condition> {
        self.conditions.iter().map(Told::condition).collect()
    }

    /// One of them.
    pub fn condition(&self, kind: ConditionType) -> Option<Condition> {
        self.conditions.iter().find(|told| *told.kind == *kind.as_str()).map(Told::condition)
    }
}

impl Told {
    fn of(condition: &Condition, texts: &mut Interner) -> Self {
        let message = condition.message.as_str();
        Self {
            kind: texts.get(&condition.type_),
            status: texts.get(&condition.status),
            reason: texts.get(&condition.reason),
            message: if message.len() > COMMON { message.into() } else { texts.get(message) },
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
    use crate::api::conditions::condition;

    #[test]
    fn conditions_come_back_as_they_were_written() {
        let long = "because ".repeat(30);
        let conditions = vec![
            condition(ConditionType::Ready, "True", "Available", "as described", 3),
            condition(ConditionType::Synced, "False", "OperationFailed", long, -1),
        ];
        let status = ResourceStatus { conditions, observed_generation: 3, ..<_>::default() };
        let published = Published::of(&status, &mut Interner::default());
        assert_eq!(published.conditions(), status.conditions);
        assert_eq!(published.condition(ConditionType::Synced).as_ref(), status.conditions.get(1));
        assert_eq!(published.condition(ConditionType::Stalled), None);
    }

    #[test]
    fn a_status_read_back_has_the_digest_it_was_written_with() {
        let status = ResourceStatus { observed_generation: 3, id: Some("i".into()), ..<_>::default() };
        let read: ResourceStatus = serde_json::from_value(serde_json::to_value(&status).unwrap()).unwrap();
        let texts = &mut Interner::default();
        assert_eq!(Published::of(&read, texts).digest, Published::of(&status, texts).digest);
    }
}
