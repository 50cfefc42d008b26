//! What passes between planning, executing and drivers: requests, answers, errors.

use std::sync::Arc;

use super::{Path, RecordedObject, Value};

/// What `plan` is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRequest {
    /// The object as it is; `None` to plan a new one.
    pub prior: Option<Arc<RecordedObject>>,
    /// The evaluated configuration; places not known yet are `Unknown`.
    pub config: Value,
    /// Random bytes for whatever the driver draws (ids, name suffixes). The same bytes give the same plan.
    pub entropy: [u8; 16],
    /// What was planned before for the same step, when this is the final plan: whatever was drawn then is kept.
    pub planned_before: Option<Value>,
}

/// What `plan` answers. The default is one of which nothing is to be said but the value.
#[derive(Clone, Debug, Default)]
pub struct PlanResponse {
    /// The value after the change; `Unknown` where only the call will tell.
    pub planned: Value,
    /// Attributes whose change cannot be done in place. Non-empty: replace.
    pub requires_replace: Vec<Path>,
    /// Bytes to hand to `apply`.
    pub private: Arc<[u8]>,
    /// What the object will be found by when that is known before it exists. Two objects with one fixed identity
    /// cannot exist at the same time, so create-before-destroy is refused for them.
    pub identity: Option<Value>,
    /// The driver is to be told something that it does not keep and that no value shows: the object is updated even
    /// when it is planned to stay as it is.
    pub tells: bool,
    /// Of a prior object that is not ready yet and that is to stay as it is: `planned`, with what may still change until it
    /// is ready unknown.
    pub until_ready: Option<Value>,
    /// The driver has checked the plan by the rules of its protocol, which know more than values tell: against the
    /// configuration, the prior object and the plan before, and which attributes force a replacement.
    pub checked: bool,
}

/// An object as a driver reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectState {
    /// All attributes, wholly known, sensitive places marked.
    pub value: Value,
    /// The driver's bytes.
    pub private: Arc<[u8]>,
    /// What it is found by.
    pub identity: Option<Value>,
}

impl From<&RecordedObject> for ObjectState {
    fn from(object: &RecordedObject) -> Self {
        let (private, identity) = (Arc::clone(&object.private), object.identity.clone());
        Self { value: object.value.clone(), private, identity }
    }
}

/// How trying again relates to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It may go away by itself: network, throttling, conflict.
    Transient,
    /// It will not, unless the object or the world is changed.
    Terminal,
    /// The configuration is refused.
    InvalidConfig,
    /// The service account lacks a permission.
    Forbidden,
    /// An object of that name is there and not ours.
    AlreadyExists,
    /// The provider itself cannot be used: no program, no start, or settings that it refuses. Nothing was asked of it.
    Unavailable,
}

/// A failed call: one line, without sensitive values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct DriverError {
    /// What retrying means.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// Which attribute, below `spec.config`.
    pub path: Option<Path>,
    /// The next step.
    pub hint: Option<String>,
}

impl DriverError {
    /// What happened with the next step, where a diagnostic has no place for it.
    pub fn line(self) -> String {
        match self.hint {
            Some(hint) => format!("{} (hint: {hint})", self.message),
            None => self.message,
        }
    }
}

/// `spec.import`: what the driver finds the object by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportRequest {
    /// The text that the type calls its id.
    Id(Arc<str>),
    /// The identity that its provider gives it: a map.
    Identity(Value),
}

impl std::fmt::Display for ImportRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::Identity(identity) => write!(f, "{}", identity.to_public_json()),
        }
    }
}
