//! The script: what is answered to which call, in the form of scenario files.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::model::ErrorKind;

/// What a driver is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Check a configuration.
    Validate,
    /// Plan.
    Plan,
    /// Read.
    Read,
    /// Import.
    Import,
    /// Take over an object of another type.
    Move,
    /// Make an object.
    Create,
    /// Change one.
    Update,
    /// Wait until one is ready.
    Ready,
    /// Destroy one.
    Destroy,
    /// Run a hook.
    Hook,
}

/// One answer. Where it does not fit the operation it is taken as `Ok`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Answer {
    /// All goes well.
    #[default]
    Ok,
    /// An error; nothing has changed.
    Fail {
        /// What trying again means.
        #[serde(default)]
        kind: Kind,
        /// The text.
        #[serde(default = "default_message")]
        message: String,
    },
    /// An error that comes with the object: it is made or changed, but not complete.
    FailPartly {
        /// What trying again means.
        #[serde(default)]
        kind: Kind,
        /// The text.
        #[serde(default = "default_message")]
        message: String,
    },
    /// The change happens, but the answer is a transient error without an object. Fair only with a create that may
    /// be repeated.
    LoseAnswer,
    /// Create and update: all goes well, and the object is not ready yet.
    Unready,
    /// The process ends before the change.
    CrashBefore,
    /// The process ends after the change and before the answer.
    CrashAfter,
    /// The call waits until this gate is released; then the next answer counts.
    Hold(String),
    /// Read, and wait until it is ready: somebody has removed the object.
    Lose,
    /// All goes well, and something is warned of.
    Warn(String),
    /// Plan: a planned value that is neither the configured nor the prior one.
    InvalidPlan,
}

/// The kinds of errors, as scenario files spell them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// It may go away by itself.
    #[default]
    Transient,
    /// It will not.
    Terminal,
    /// The configuration is refused.
    InvalidConfig,
    /// A permission is missing.
    Forbidden,
    /// An object of that name exists.
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

/// The answers to one operation on one object, first come first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Line {
    /// The address; `*` for whichever object comes.
    pub on: String,
    /// The operation.
    pub operation: Operation,
    /// The answers; after the last one everything is `ok`.
    pub answers: Vec<Answer>,
}

/// How the world behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Script {
    /// How a create that a crash cut is recovered.
    pub create_recovery: Recovery,
    /// The answers.
    pub lines: Vec<Line>,
}

/// How a create that a crash cut is recovered, as scenario files spell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Recovery {
    /// The id is drawn beforehand, so the call can be made again.
    #[default]
    Repeat,
    /// The object carries the id of the operation.
    Find,
    /// Nobody can tell.
    Unknown,
}

/// The answers still to come.
#[derive(Debug, Default)]
pub(super) struct Queues(BTreeMap<(String, Operation), VecDeque<Answer>>);

impl Queues {
    /// Adds answers after those that are there.
    pub(super) fn add(&mut self, line: Line) {
        self.0.entry((line.on, line.operation)).or_default().extend(line.answers);
    }

    /// Takes the next answer for an object; those for `*` are for objects that have none of their own.
    pub(super) fn next(&mut self, address: &str, operation: Operation) -> Answer {
        for on in [address, "*"] {
            let queue = self.0.get_mut(&(on.to_owned(), operation));
            if let Some(answer) = queue.and_then(VecDeque::pop_front) {
                return answer;
            }
        }
        Answer::Ok
    }

    /// Answers that nobody has asked for, as `address operation`: a scenario that has any tests less than it says.
    pub(super) fn unused(&self) -> Vec<String> {
        let left = self.0.iter().filter(|(_, queue)| !queue.is_empty());
        left.map(|((address, operation), _)| format!("{address} {operation:?}")).collect()
    }
}

fn default_message() -> String {
    "as the script says".to_owned()
}
