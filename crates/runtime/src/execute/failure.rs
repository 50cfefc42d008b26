//! The failure of a step as a condition reason and message. Only the kind of an error decides the reason and whether a
//! retry may help.

use crate::execute::JournalError;
use model::{Address, Diagnostic, Diagnostics, DriverError, ErrorKind, Path, Reason};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub reason: Reason,
    /// One line, without sensitive values.
    pub message: String,
    /// Whether a retry without a change of the Resource may help.
    pub retryable: bool,
}

impl Failure {
    /// A bug in Purlin.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { reason: Reason::InternalError, message: message.into(), retryable: true }
    }

    /// A driver violated its contract.
    pub fn driver(message: impl Into<String>) -> Self {
        Self { reason: Reason::DriverFault, message: message.into(), retryable: true }
    }

    /// A failed create of a replacement whose old object is already destroyed.
    #[must_use]
    pub fn of_replacement(self) -> Self {
        let message = format!("the old object is destroyed and the new one could not be created: {}", self.message);
        Self { reason: Reason::ReplacementFailed, message, ..self }
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        // Permissions and foreign objects change without a change of the Resource, so Purlin retries.
        let retryable = !matches!(error.kind, ErrorKind::Terminal | ErrorKind::InvalidConfig);
        let reason = error.kind.reason();
        let mut message = match &error.path {
            Some(path) => format!("{}: {}", below_config(path), error.message),
            None => error.message,
        };
        if let Some(hint) = &error.hint {
            message.push_str(&format!(" (hint: {hint})"));
        }
        Self { reason, message, retryable }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { reason: diagnostic.reason, message: diagnostic.message(), retryable: false }
    }
}

impl From<Box<Diagnostic>> for Failure {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        (*diagnostic).into()
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let reason = match &error {
            JournalError::Conflict { .. } => Reason::OperationInProgress,
            JournalError::Unavailable { .. } => Reason::RecordNotWritten,
            JournalError::Missing(diagnostic) => diagnostic.reason,
        };
        // The failure belongs to the object, so that many objects with this failure have the same message.
        let message = match error {
            JournalError::Unavailable { message, .. } => format!("the record cannot be written: {message}"),
            other => other.to_string(),
        };
        Self { reason, message, retryable: true }
    }
}

/// Drivers return paths relative to `spec.config`; users see paths from `spec`.
pub(crate) fn below_config(path: &Path) -> Path {
    let mut full = Path::default().name("spec").name("config");
    full.0.extend(path.0.iter().cloned());
    full
}

/// Adds the address and the full path to the warnings of calls about an object.
pub(crate) fn with_address(address: &Address, warnings: Diagnostics) -> Diagnostics {
    warnings
        .into_iter()
        .map(|warning| Diagnostic {
            path: warning.path.as_ref().map(below_config),
            address: Some(address.clone()),
            ..warning
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_error_decides_reason_and_retry() {
        let error = |kind| DriverError { kind, message: "no".into(), path: None, hint: None };
        let reason_and_retryable = |kind| {
            let failure = Failure::from(error(kind));
            (failure.reason, failure.retryable)
        };
        assert_eq!(reason_and_retryable(ErrorKind::Transient), (Reason::OperationFailed, true));
        assert_eq!(reason_and_retryable(ErrorKind::Terminal), (Reason::OperationRejected, false));
        assert_eq!(reason_and_retryable(ErrorKind::InvalidConfig), (Reason::InvalidConfig, false));
        assert_eq!(reason_and_retryable(ErrorKind::Forbidden), (Reason::Forbidden, true));
    }

    #[test]
    fn a_failure_message_has_the_path_and_the_hint() {
        let error = DriverError {
            kind: ErrorKind::InvalidConfig,
            message: "must be set".into(),
            path: Some(Path::default().name("manifest")),
            hint: Some("write the object there".into()),
        };
        assert_eq!(Failure::from(error).message, "spec.config.manifest: must be set (hint: write the object there)");
    }
}
