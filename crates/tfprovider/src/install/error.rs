//! The error of an installation: a message on one line and a hint.

use std::fmt::Display;
use std::path::Path;

use fetch::{FetchError, FetchErrorKind};

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

/// What the way out is depends on where else a package can come from: mirrors.
impl From<FetchError> for InstallError {
    fn from(error: FetchError) -> Self {
        let FetchError { kind, message, hint } = error;
        let more = match kind {
            FetchErrorKind::Unreachable => "; without network access, use a mirror (--plugin-dir)",
            FetchErrorKind::Limited => "; a mirror has no rate limit",
            _ => "",
        };
        let field = match kind {
            FetchErrorKind::Unsuitable => Some("spec.package"),
            FetchErrorKind::NotOffered => Some("spec.source"),
            _ => None,
        };
        let mirror = "correct the host in `spec.source`, or set a mirror in `spec.package`";
        let hint = match kind {
            FetchErrorKind::NotOffered => Some(mirror.to_owned()),
            _ => hint.map(|hint| hint + more),
        };
        Self { field, message, hint }
    }
}
