//! The error of an installation: a message on one line and a hint.

use std::fmt::Display;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InstallError {
    /// The relevant field of the `Provider`, such as `spec.version`.
    pub field: Option<&'static str>,
    pub message: String,
    pub hint: Option<String>,
}

impl InstallError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { field: None, message: message.into(), hint: None }
    }

    /// A failed file operation.
    pub fn file(path: &Path, error: impl Display) -> Self {
        Self::new(format!("{}: {error}", path.display()))
    }

    /// Sets the field.
    #[must_use]
    pub fn at(self, field: &'static str) -> Self {
        Self { field: Some(field), ..self }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
