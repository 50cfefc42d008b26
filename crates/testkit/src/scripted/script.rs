//! The script in scenario files: the outcome of each call.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use model::ErrorKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    Validate,
    Plan,
    Read,
    Import,
    /// Take over an object of another type.
    Move,
    Create,
    Update,
    /// Wait until an object is ready.
    Ready,
    Destroy,
    Hook,
}

/// The outcome of a call. Outcomes that do not apply to the operation count as `Ok`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ScriptedOutcome {
    /// The call succeeds.
    #[default]
    Ok,
    /// The call fails without a change.
    Fail {
        #[serde(default)]
        kind: Kind,
        #[serde(default = "default_message")]
        message: String,
    },
    /// The call fails, and returns an object that was partially created or changed.
    FailPartly {
        #[serde(default)]
        kind: Kind,
        #[serde(default = "default_message")]
        message: String,
    },
    /// The change happens, but the call returns a transient error without an object. Only valid for a create that may
    /// be repeated.
    LoseAnswer,
    /// Create and update: the call succeeds, and the object is not ready yet.
    Unready,
    /// The process crashes before the change.
    CrashBefore,
    /// The process crashes after the change and before the response.
    CrashAfter,
    /// The call waits until this gate is released and then plays the next outcome.
    Hold(String),
    /// Read and ready: another client has removed the object.
    Lose,
    /// The call succeeds with a warning.
    Warn(String),
    /// Plan: returns a value that is neither the configured nor the prior one.
    InvalidPlan,
}

/// The kind of an error in scenario files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    #[default]
    Transient,
    Terminal,
    InvalidConfig,
    Forbidden,
    AlreadyExists,
}

impl From<Kind> for ErrorKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Transient => Self::Transient,
            Kind::Terminal => Self::Terminal,
            Kind::InvalidConfig => Self::InvalidConfig,
            Kind::Forbidden => Self::Forbidden,
            Kind::AlreadyExists => Self::AlreadyExists,
        }
    }
}

/// The outcomes of an operation on an object, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptLine {
    /// The address; `*` for any object.
    pub on: String,
    pub operation: Operation,
    /// The outcomes. Further calls succeed.
    pub answers: Vec<ScriptedOutcome>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Script {
    pub create_recovery: Recovery,
    pub lines: Vec<ScriptLine>,
}

/// How to recover an interrupted create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Recovery {
    /// The ID is generated before the call, so the call is repeated.
    #[default]
    Repeat,
    /// The object is found by the ID of the operation.
    Find,
    Unknown,
}

/// The remaining outcomes.
#[derive(Debug, Default)]
pub struct Queues(BTreeMap<(String, Operation), VecDeque<ScriptedOutcome>>);

impl Queues {
    pub fn add(&mut self, line: ScriptLine) {
        self.0.entry((line.on, line.operation)).or_default().extend(line.answers);
    }

    /// Takes the next outcome for an object, or else the next one for `*`.
    pub fn next(&mut self, address: &str, operation: Operation) -> ScriptedOutcome {
        for on in [address, "*"] {
            let queue = self.0.get_mut(&(on.to_owned(), operation));
            if let Some(answer) = queue.and_then(VecDeque::pop_front) {
                return answer;
            }
        }
        ScriptedOutcome::Ok
    }

    /// The unused outcomes, as `address operation`. A scenario must use all of its outcomes.
    pub fn unused(&self) -> Vec<String> {
        let left = self.0.iter().filter(|(_, queue)| !queue.is_empty());
        left.map(|((address, operation), _)| format!("{address} {operation:?}")).collect()
    }
}

fn default_message() -> String {
    "as the script says".to_owned()
}
