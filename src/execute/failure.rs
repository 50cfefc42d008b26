//! Why a step did not do what it was to do, in the words of conditions, and what was warned of by the way. The kind of an
//! error alone decides the reason, and whether trying again may help.

use crate::execute::JournalError;
use crate::model::{Address, Diagnostic, Diagnostics, DriverError, ErrorKind, Path, Reason};

/// A failed step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The condition reason.
    pub reason: Reason,
    /// One line, without sensitive values.
    pub message: String,
    /// Whether trying again may help without a change of the object.
    pub retryable: bool,
}

impl Failure {
    /// A fault of Purlin.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { reason: Reason::InternalError, message: message.into(), retryable: true }
    }

    /// A driver that broke its contract.
    pub fn driver(message: impl Into<String>) -> Self {
        Self { reason: Reason::DriverFault, message: message.into(), retryable: true }
    }

    /// A failure of the create leg of a replacement whose old object is gone already.
    #[must_use]
    pub fn of_replacement(self) -> Self {
        let message = format!("the old object is destroyed and the new one could not be created: {}", self.message);
        Self { reason: Reason::ReplacementFailed, message, ..self }
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        let (reason, retryable) = match error.kind {
            ErrorKind::Transient => (Reason::OperationFailed, true),
            ErrorKind::Terminal => (Reason::OperationRefused, false),
            ErrorKind::InvalidConfig => (Reason::InvalidConfig, false),
            // Permissions and foreign objects change outside of the Resource, so they are looked at again.
            ErrorKind::Forbidden => (Reason::Forbidden, true),
            ErrorKind::AlreadyExists => (Reason::AlreadyExists, true),
            ErrorKind::Unavailable => (Reason::ProviderNotReady, true),
        };
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
        let reason = match error {
            JournalError::Conflict { .. } => Reason::OperationInProgress,
            JournalError::Unavailable { .. } => Reason::RecordNotWritten,
        };
        Self { reason, message: error.to_string(), retryable: true }
    }
}

/// Drivers give paths below `spec.config`; people see them from `spec` on.
pub(super) fn below_config(path: &Path) -> Path {
    let mut full = Path::default().name("spec").name("config");
    full.0.extend(path.0.iter().cloned());
    full
}

/// The warnings of calls about an object.
pub(crate) fn told(address: &Address, warnings: Diagnostics) -> Diagnostics {
    let of_object = |warning: Diagnostic| Diagnostic {
        path: warning.path.as_ref().map(below_config),
        address: Some(address.clone()),
        ..warning
    };
    warnings.into_iter().map(of_object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_error_decides_reason_and_retry() {
        let error = |kind| DriverError { kind, message: "no".into(), path: None, hint: None };
        let judged = |kind| {
            let failure = Failure::from(error(kind));
            (failure.reason, failure.retryable)
        };
        assert_eq!(judged(ErrorKind::Transient), (Reason::OperationFailed, true));
        assert_eq!(judged(ErrorKind::Terminal), (Reason::OperationRefused, false));
        assert_eq!(judged(ErrorKind::InvalidConfig), (Reason::InvalidConfig, false));
        assert_eq!(judged(ErrorKind::Forbidden), (Reason::Forbidden, true));
    }

    #[test]
    fn a_failure_says_where_and_what_next_in_one_line() {
        let error = DriverError {
            kind: ErrorKind::InvalidConfig,
            message: "must be set".into(),
            path: Some(Path::default().name("manifest")),
            hint: Some("write the object there".into()),
        };
        assert_eq!(Failure::from(error).message, "spec.config.manifest: must be set (hint: write the object there)");
    }
}
