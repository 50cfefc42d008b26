//! What is to happen to one object, and the steps it is done in.

use std::fmt;
use std::sync::Arc;

use super::{Address, DeposedKey, Path, Reason, Value};

/// In which order a replacement happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum ReplaceOrder {
    /// Destroy the old object, then create the new one.
    DestroyFirst,
    /// Create the new object, then destroy the old one (`create_before_destroy`).
    CreateFirst,
}

/// What a plan does with one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Action {
    /// Nothing.
    NoOp,
    /// Only the record changes: a flag, an edge, or the value as it was read.
    Record,
    /// The object is as it was asked for, and is waited for until it is ready.
    Wait,
    /// A new object.
    Create,
    /// A change in place.
    Update,
    /// A new object instead of the old one.
    Replace,
    /// The object goes.
    Destroy,
    /// The record goes, the object stays.
    Forget,
    /// A data source is read when all that it needs is done. One that was read for the plan has nothing left to do.
    Read,
    /// It cannot be planned, or is held; no step.
    Blocked,
}

/// What reading found that nobody here has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Somebody else has changed these attributes.
    Changed(Vec<Path>),
    /// The object does not exist any more.
    Gone,
}

impl Drift {
    /// The condition reason.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Changed(_) => Reason::Drifted,
            Self::Gone => Reason::Gone,
        }
    }
}

/// How many attributes a sentence names; nobody reads more.
const NAMED: usize = 10;

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Changed(paths) = self else { return f.write_str("the object does not exist any more") };
        f.write_str("changed outside of Purlin")?;
        for (number, path) in paths.iter().take(NAMED).enumerate() {
            write!(f, "{} `{path}`", if number == 0 { ":" } else { "," })?;
        }
        match paths.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The planned change of one object, or of one leftover.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which object.
    pub address: Address,
    /// Set for a leftover: an object deposed in an earlier run.
    pub deposed: Option<DeposedKey>,
    /// The resource type.
    pub type_name: Arc<str>,
    /// What happens.
    pub action: Action,
    /// The order of a replacement.
    pub order: Option<ReplaceOrder>,
    /// A replacement or destroy whose old object is forgotten instead (`deletionPolicy: Orphan`).
    pub forget: bool,
    /// A create-first replacement that goes ahead although its old object must stay for now: it has a step `C(x)`
    /// and no step `D(x)`, and leaves the old object deposed. The condition reason; `message` and `waiting_for` tell
    /// more.
    pub hold_destroy: Option<Reason>,
    /// Why, as a sentence fragment: "tainted", "requested", "no longer wanted". `None` when it is plain.
    pub because: Option<String>,
    /// `Blocked`: the condition reason.
    pub blocked: Option<Reason>,
    /// `Blocked`, or a held destroy: the text of the condition, also what it waits for.
    pub message: String,
    /// `Blocked`, or a held destroy: the objects it waits for.
    pub waiting_for: Vec<Address>,
    /// The attributes that force the replacement.
    pub replace_paths: Vec<Path>,
    /// What somebody else has done to the object, when that is all that this change is about. With the action `NoOp`
    /// it is only reported.
    pub drift: Option<Drift>,
    /// The recorded value; `None` when there is none.
    pub before: Option<Value>,
    /// The planned value with `Unknown` where it is not known yet; `None` for destroy and forget.
    pub after: Option<Value>,
}

#[cfg(test)]
impl Change {
    /// A change of which nothing in particular is to be said; tests name what matters to them.
    pub(crate) fn plain(address: Address, type_name: &str, action: Action) -> Self {
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
            drift: None,
            before: None,
            after: None,
        }
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Make a new object.
    Create,
    /// Change the current object in place.
    Update,
    /// Write the record only.
    Record,
    /// Wait until the current object is ready.
    Wait,
    /// Destroy an object.
    Destroy,
    /// Drop an object from the record.
    Forget,
    /// Read a data source.
    Read,
}

impl Operation {
    /// The word in ids and messages.
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

    /// Whether this is a step of the kind `D(x)`; every other is of the kind `C(x)`.
    pub fn removes(self) -> bool {
        matches!(self, Self::Destroy | Self::Forget)
    }
}

/// One step of the walk: a node of the ordering graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// Which object.
    pub address: Address,
    /// Set for leftovers only: the object deposed in an earlier run.
    pub deposed: Option<DeposedKey>,
    /// What is done.
    pub operation: Operation,
    /// Both steps of a replacement have it.
    pub replaces: bool,
}

impl Step {
    /// The unique, stable name of the step: a function of desired and recorded state only.
    pub fn id(&self) -> String {
        match self.deposed {
            None => format!("{} {}", self.address, self.operation.as_str()),
            Some(key) => format!("{} {} (deposed {key})", self.address, self.operation.as_str()),
        }
    }

    /// Whether an object is given up by it, or by the replacement that it is a part of.
    pub fn gives_up(&self) -> bool {
        self.operation.removes() || self.replaces
    }
}
