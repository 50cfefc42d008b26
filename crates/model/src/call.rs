//! Requests, responses and errors of driver calls.

use std::sync::Arc;

use super::{Health, Path, Reason, RecordedObject, Value};

/// The request of `Driver::plan`.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRequest {
    /// The current object; `None` to plan a create.
    pub prior: Option<Arc<RecordedObject>>,
    /// The evaluated configuration. Values that are not known yet are `Unknown`.
    pub config: Value,
    /// Present if ignored attributes in `config` have the values of the object.
    pub ignored: Option<Ignored>,
    /// Random bytes for values that the driver generates (IDs, name suffixes). Equal bytes result in equal plans.
    pub entropy: [u8; 16],
    /// The earlier plan of the same step, if this is the final plan. The driver keeps its generated values.
    pub previous_plan: Option<Value>,
    /// The existing object that the planned one replaces. The driver asks whether the new object can be created once
    /// the old one is destroyed. Nothing of the old object carries over.
    pub replaces: Option<Arc<RecordedObject>>,
}

/// The response of `Driver::plan`.
#[derive(Clone, Debug, Default)]
pub struct PlanResponse {
    /// The value after the change. Values that only the apply call returns are `Unknown`.
    pub planned: Value,
    /// Attributes that cannot be updated in place. If not empty, the object is replaced.
    pub requires_replace: Vec<Path>,
    /// Bytes to pass to `apply`.
    pub private: Arc<[u8]>,
    /// The identity of the new object, if it is known before the create. Two objects with the same identity cannot
    /// exist at the same time, so create-before-destroy is rejected for them.
    pub identity: Option<Value>,
    /// The object must be updated even if the planned value equals the prior value, because the driver needs a value
    /// that is not stored, such as a write-only attribute.
    pub requires_update: bool,
    /// For an unchanged prior object that is not ready yet: `planned`, where attributes that can change until the
    /// object is ready are unknown.
    pub until_ready: Option<Value>,
    /// The driver has checked the plan by the rules of its protocol: against the configuration, the prior object and
    /// the previous plan, and which attributes force a replacement.
    pub checked: bool,
    /// Why the change would fail as things are now. The plan is blocked unless one of its steps may resolve it.
    pub refusal: Option<Refusal>,
    /// The planned object exists already and belongs to this address: it is imported instead of created.
    pub adopts: Option<ImportRequest>,
}

/// Why a planned change would fail as things are now.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub error: DriverError,
    /// The steps of other objects of the same type that may resolve it. A step of a dependency always may.
    pub remedies: Vec<Remedy>,
}

/// A step that may let a refused change succeed.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// An object whose configuration contains this value is created or updated.
    Applied(Value),
    /// An object whose identity contains this value is destroyed.
    Removed(Value),
}

impl Remedy {
    /// Whether `value` has everything that `part` has.
    pub fn contains(value: &Value, part: &Value) -> bool {
        match (value.unmarked(), part.unmarked()) {
            (Value::Map(map), Value::Map(part)) => {
                part.iter().all(|(key, part)| map.get(key).is_some_and(|value| Self::contains(value, part)))
            }
            (value, part) => value.equals_unmarked(part),
        }
    }
}

/// The state of an object as the driver returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectState {
    /// All attributes, with known values. Sensitive values are marked.
    pub value: Value,
    /// Opaque bytes of the driver.
    pub private: Arc<[u8]>,
    pub identity: Option<Value>,
    /// `None` for types whose objects have no readiness.
    pub health: Option<Health>,
}

impl From<&RecordedObject> for ObjectState {
    fn from(object: &RecordedObject) -> Self {
        let (private, identity) = (Arc::clone(&object.private), object.identity.clone());
        Self { value: object.value.clone(), private, identity, health: None }
    }
}

/// The kind of an error, which decides about a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorKind {
    /// A retry can succeed: network errors, throttling, conflicts.
    Transient,
    /// A retry cannot succeed until the user changes something.
    Terminal,
    /// The driver rejected the configuration.
    InvalidConfig,
    /// The service account lacks a permission.
    Forbidden,
    /// An object with this name exists, and Purlin does not manage it.
    AlreadyExists,
    /// The provider cannot be installed, started or configured. The call was not sent.
    Unavailable,
    /// Something else must happen first, and does so without a user.
    Waiting,
}

impl ErrorKind {
    /// The reason of the condition of the object.
    pub fn reason(self) -> Reason {
        match self {
            Self::Transient => Reason::OperationFailed,
            Self::Terminal => Reason::OperationRejected,
            Self::InvalidConfig => Reason::InvalidConfig,
            Self::Forbidden => Reason::Forbidden,
            Self::AlreadyExists => Reason::AlreadyExists,
            Self::Unavailable => Reason::ProviderNotReady,
            Self::Waiting => Reason::Waiting,
        }
    }
}

/// The error of a failed call. Its message has one line and no sensitive values.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct DriverError {
    pub kind: ErrorKind,
    pub message: String,
    /// The attribute, relative to `spec.config`.
    pub path: Option<Path>,
    /// The next step for the user.
    pub hint: Option<String>,
}

impl DriverError {
    /// Returns the message with the hint, for places without a separate hint.
    pub fn line(self) -> String {
        match self.hint {
            Some(hint) => format!("{} (hint: {hint})", self.message),
            None => self.message,
        }
    }
}

/// `spec.import`: how the driver finds the object.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ImportRequest {
    /// The import ID.
    Id(Arc<str>),
    /// The attributes of the resource identity, as a map.
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

/// One entry of `lifecycle.ignoreChanges`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IgnoredChange {
    /// `all`: every configurable attribute.
    All,
    /// The attribute at this path and everything below it.
    At(Path),
}

impl IgnoredChange {
    /// Whether the entry names a path or what contains it.
    pub fn covers(&self, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::At(ignored) => path.starts_with(ignored),
        }
    }
}

/// The changes that the plan of an existing object ignores.
#[derive(Clone, Debug, PartialEq)]
pub struct Ignored {
    /// The configuration as written. That of the request has the values of the object at the ignored paths.
    pub written: Value,
    pub changes: Arc<[IgnoredChange]>,
}
