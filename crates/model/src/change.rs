//! The planned change of an object, and its steps.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::encoding;
use super::{Address, ChangeCause, DeposedKey, Path, Reason, TypeName, Value};

/// The order of the steps of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReplaceOrder {
    /// Destroy the old object, then create the new one.
    DestroyFirst,
    /// Create the new object, then destroy the old one (`create_before_destroy`).
    CreateFirst,
}

/// The planned action for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    NoOp,
    /// Only the record changes: a flag, a dependency, or a refreshed value.
    Record,
    /// The object is unchanged, but is not ready yet.
    Wait,
    Create,
    /// Update in place.
    Update,
    Replace,
    Destroy,
    /// Drop the record and leave the object.
    Forget,
    /// Read a data source after its dependencies. A data source that was read during the plan is a `NoOp`.
    Read,
    /// The change cannot be planned or must wait. It has no step.
    Blocked,
}

/// A change of an object that was made outside of Purlin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Drift {
    /// These attributes differ from the record. A path ends at a sensitive value ([`super::visible`]).
    Changed(Vec<Path>),
    /// The object does not exist any more.
    Missing,
}

impl Drift {
    pub fn reason(&self) -> Reason {
        match self {
            Self::Changed(_) => Reason::Drifted,
            Self::Missing => Reason::ObjectMissing,
        }
    }
}

/// The maximum number of attributes in a message.
const MAX_NAMED: usize = 10;

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Changed(paths) = self else { return f.write_str("the object no longer exists") };
        f.write_str("changed outside of Purlin")?;
        for (number, path) in paths.iter().take(MAX_NAMED).enumerate() {
            write!(f, "{} `{path}`", if number == 0 { ":" } else { "," })?;
        }
        match paths.len().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The planned change of a current or deposed object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub address: Address,
    /// The key of an object that was deposed in an earlier run; `None` for the current object.
    pub deposed: Option<DeposedKey>,
    pub type_name: TypeName,
    pub action: Action,
    /// Only for replacements.
    pub order: Option<ReplaceOrder>,
    /// Forget the old object instead of destroying it (`deletionPolicy: Orphan`).
    pub forget: bool,
    /// The reason why a create-before-destroy replacement cannot destroy the old object yet. Its plan has a step `C(x)`
    /// but no step `D(x)`, and the old object stays deposed. `message` and `waiting_for` have the details.
    pub hold_destroy: Option<Reason>,
    /// `None` when it is obvious.
    pub because: Option<ChangeCause>,
    /// The condition reason of a `Blocked` change.
    pub blocked: Option<Reason>,
    /// The condition message of a `Blocked` change or of a held destroy.
    pub message: String,
    /// The objects for which a `Blocked` change or a held destroy waits.
    pub waiting_for: Vec<Address>,
    /// The attributes that force the replacement. A path ends at a sensitive value ([`super::visible`]).
    pub replace_paths: Vec<Path>,
    /// The step only records values that a read returned and that no expression reads. Text output omits the change.
    pub silent: bool,
    /// The object existed before Purlin managed it, and is recorded for the first time.
    pub imported: bool,
    /// Set if drift is the only cause of the change. With the action `NoOp` or `Wait`, the drift is only reported.
    pub drift: Option<Drift>,
    /// The recorded value.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "encoding::some")]
    pub before: Option<Value>,
    /// The planned value; `None` for destroy and forget.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "encoding::some")]
    pub after: Option<Value>,
}

impl Change {
    /// Whether the plan is not empty because of this change: it changes an object, or an object becomes managed or is no
    /// longer managed. As in OpenTofu, an import counts.
    pub fn is_change(&self) -> bool {
        match self.action {
            Action::Create | Action::Update | Action::Replace | Action::Destroy | Action::Forget => true,
            Action::NoOp | Action::Record | Action::Wait | Action::Read => self.imported,
            Action::Blocked => false,
        }
    }

    /// The drift that is reported and not corrected. The record can be updated for another reason at the same time.
    pub fn reported_drift(&self) -> Option<&Drift> {
        let is_left = match self.action {
            Action::NoOp => true,
            Action::Record | Action::Wait => self.before == self.after,
            _ => false,
        };
        self.drift.as_ref().filter(|_| is_left)
    }
}

impl Change {
    /// A change that says nothing but its action.
    pub fn plain(address: Address, type_name: &str, action: Action) -> Self {
        Self {
            address,
            deposed: None,
            type_name: type_name.into(),
            action,
            order: None,
            forget: false,
            hold_destroy: None,
            because: None,
            blocked: None,
            message: String::new(),
            waiting_for: Vec::new(),
            replace_paths: Vec::new(),
            silent: false,
            imported: false,
            drift: None,
            before: None,
            after: None,
        }
    }
}

/// The operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Create,
    /// Update the current object in place.
    Update,
    /// Write the record only.
    Record,
    /// Wait until the current object is ready.
    Wait,
    Destroy,
    /// Drop the object from the record and leave it.
    Forget,
    /// Read a data source.
    Read,
}

impl Operation {
    /// The name in step IDs and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Record => "record",
            Self::Wait => "wait",
            Self::Destroy => "destroy",
            Self::Forget => "forget",
            Self::Read => "read",
        }
    }

    /// Whether a step with this operation is a step `D(x)`. All others are steps `C(x)`.
    pub fn removes(self) -> bool {
        matches!(self, Self::Destroy | Self::Forget)
    }
}

/// A step of an apply, and a node of the action graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Step {
    pub address: Address,
    /// The key of an object that was deposed in an earlier run; `None` for the current object.
    pub deposed: Option<DeposedKey>,
    pub operation: Operation,
    /// The step is part of a replacement.
    pub replaces: bool,
}

impl Step {
    /// The unique name of the step. It depends only on desired and recorded state, so it is stable across plans.
    pub fn id(&self) -> String {
        match self.deposed {
            None => format!("{} {}", self.address, self.operation.as_str()),
            Some(key) => format!("{} {} (deposed {key})", self.address, self.operation.as_str()),
        }
    }

    /// Whether the step destroys or forgets an object, or is part of a replacement.
    pub fn is_destructive(&self) -> bool {
        self.operation.removes() || self.replaces
    }
}
