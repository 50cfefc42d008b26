//! The exit codes of commands, and errors with a hint.

use process::request_error;
use std::fmt;
use std::process::ExitCode;

/// A user-facing error, returned as an `anyhow::Error`.
#[derive(Debug)]
pub struct Failure {
    /// One line.
    pub message: String,
    pub hint: Option<String>,
}

impl Failure {
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

/// An error and its causes in one line.
pub fn line(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        match cause.downcast_ref::<kube::Error>() {
            Some(failed) => {
                parts.push(request_error(failed));
                break;
            }
            None => parts.push(cause.to_string()),
        }
    }
    parts.join(": ")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Exit code 0.
    Success,
    /// Exit code 1. The problems are already printed.
    Problems,
    /// Exit code 2: there are changes, and `--detailed-exitcode` is set.
    Changes,
    /// Exit code 130, as shells use for an interrupt: a signal ended the command while steps were running.
    Aborted,
    /// The exit code of the program that Purlin has run.
    Program(u8),
}

impl Exit {
    /// Returns the exit of a command that plans or applies.
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
            Exit::Program(code) => Self::from(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn the_message_of_a_response_is_shown_once() {
        let status = Status { message: "you may not approve".to_owned(), code: 403, ..Status::default() };
        let error = anyhow::Error::from(kube::Error::Api(status.boxed())).context("`store-1` is not approved");
        assert_eq!(line(&error), "`store-1` is not approved: you may not approve");
        assert_eq!(line(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }
}
