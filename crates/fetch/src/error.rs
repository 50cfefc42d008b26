//! The error of a request or of an archive: a message on one line and a hint.

use std::fmt::Display;
use std::path::Path;

/// Why something could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    /// What went wrong, for callers that know more about the way out than this crate.
    pub kind: FetchErrorKind,
    /// One line.
    pub message: String,
    /// What helps.
    pub hint: Option<String>,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchErrorKind {
    /// No complete response was received.
    Unreachable,
    /// The server accepts no more requests for now.
    Limited,
    /// The server has rejected the request, or has failed.
    Rejected,
    /// The host does not offer the service.
    NotOffered,
    /// The address or what is found there is not what is expected.
    Unsuitable,
    /// An operation on this machine has failed.
    Local,
}

impl FetchError {
    /// An error without a hint.
    pub fn new(kind: FetchErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// A failed file operation.
    pub fn file(path: &Path, error: impl Display) -> Self {
        Self::new(FetchErrorKind::Local, format!("{}: {error}", path.display()))
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
