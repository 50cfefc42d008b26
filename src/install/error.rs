//! Why a provider cannot be installed: one line, and the next step.

use std::fmt::Display;
use std::path::Path;

use crate::model::ErrorKind;

/// A provider that cannot be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InstallError {
    /// Whether it may go away by itself.
    pub kind: ErrorKind,
    /// The field of the `Provider` to look at first, such as `spec.version`.
    pub field: Option<&'static str>,
    /// What happened, and where.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

impl InstallError {
    /// What does not change unless somebody changes something.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Terminal, field: None, message: message.into(), hint: None }
    }

    /// What may be otherwise the next time.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Transient, ..Self::terminal(message) }
    }

    /// Something that cannot be done with a file.
    pub fn file(path: &Path, error: impl Display) -> Self {
        Self::transient(format!("{}: {error}", path.display()))
    }

    /// With the field that it is about.
    #[must_use]
    pub fn at(self, field: &'static str) -> Self {
        Self { field: Some(field), ..self }
    }

    /// With a next step.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
