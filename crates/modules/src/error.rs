//! The error of an installation: a message on one line and a hint.

use std::fmt::Display;
use std::path::Path;

use configuration::InvalidSource;
use fetch::FetchError;

/// Why a module could not be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleError {
    /// One line.
    pub message: String,
    /// What helps.
    pub hint: Option<String>,
}

impl ModuleError {
    /// An error without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// A failed file operation.
    pub(crate) fn file(path: &Path, error: impl Display) -> Self {
        Self::new(format!("{}: {error}", path.display()))
    }

    /// Sets the hint.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<FetchError> for ModuleError {
    fn from(error: FetchError) -> Self {
        Self { message: error.message, hint: error.hint }
    }
}

impl From<InvalidSource> for ModuleError {
    fn from(error: InvalidSource) -> Self {
        Self { message: error.detail, hint: Some(error.hint) }
    }
}
