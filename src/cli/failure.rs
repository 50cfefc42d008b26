//! How a command ends: with an exit code, or with one line that says what is wrong and one that says what to do.

use std::fmt;
use std::process::ExitCode;

/// An error for the user: a line, and the next step. Travels inside of `anyhow::Error`.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// An error with a next step, ready to be returned.
    pub fn hinted(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { message: message.into(), hint: Some(hint.into()) }.into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// How a command that reported its own problems ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All went well (0).
    Success,
    /// Something is wrong, and has been said (1).
    Problems,
    /// All went well and there are changes; with `--detailed-exitcode` only (2).
    Changes,
    /// A second signal ended it with steps still running (130, as shells count an interrupt).
    Aborted,
}

impl Exit {
    /// The exit of a command that plans or applies. Without `--detailed-exitcode` changes are no news.
    pub fn of(problems: bool, changes: bool, detailed: bool) -> Self {
        match (problems, changes && detailed) {
            (true, _) => Self::Problems,
            (false, true) => Self::Changes,
            (false, false) => Self::Success,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::SUCCESS,
            Exit::Problems => Self::from(1),
            Exit::Changes => Self::from(2),
            Exit::Aborted => Self::from(130),
        }
    }
}
