//! What providers say, and what goes wrong with them, in the engine's words.

use crate::cty::ValueError;
use crate::model::{self, DriverError, ErrorKind, Path, Reason, Severity};
use crate::plugin::{Diagnostic, PluginError};

/// A call that gave no answer.
pub(super) fn failed(error: &PluginError) -> DriverError {
    let kind = match error {
        PluginError::Unimplemented { .. } => ErrorKind::Terminal,
        _ => ErrorKind::Transient,
    };
    DriverError { kind, message: error.to_string(), path: None, hint: None }
}

/// A provider that broke a rule of the protocol.
pub(super) fn fault(what: impl Into<String>) -> DriverError {
    DriverError {
        kind: ErrorKind::Terminal,
        message: what.into(),
        path: None,
        hint: Some("this is a fault of the provider; report it to its authors".to_owned()),
    }
}

/// A provider whose answer is against the rules, at these places.
pub(super) fn faults(what: &str, found: &[ValueError]) -> Option<DriverError> {
    let first = found.first()?;
    let more = if found.len() > 1 { format!(" (and {} more)", found.len() - 1) } else { String::new() };
    Some(fault(format!("the provider {what}: {first}{more}")))
}

/// A value that cannot be read or written.
pub(super) fn unreadable(what: &str, error: &ValueError) -> DriverError {
    fault(format!("{what} cannot be read: {error}"))
}

/// The first error among what was said.
pub(super) fn error(said: &[Diagnostic]) -> Option<DriverError> {
    let mut errors = said.iter().filter(|one| one.severity == Severity::Error);
    let first = errors.next()?;
    let more = errors.count();
    let mut message = one_line(first);
    if more > 0 {
        message.push_str(&format!(" (and {more} more)"));
    }
    // Whether trying again helps is not said. Services refuse for a while more often than for ever.
    Some(DriverError { kind: ErrorKind::Transient, message, path: first.path.clone(), hint: None })
}

/// The warnings among what was said.
pub(super) fn warnings(said: Vec<Diagnostic>) -> model::Diagnostics {
    said.into_iter().filter(|one| one.severity == Severity::Warning).map(diagnostic).collect()
}

/// What was said of a configuration.
pub(super) fn diagnostics(said: Vec<Diagnostic>) -> model::Diagnostics {
    said.into_iter().map(diagnostic).collect()
}

fn diagnostic(said: Diagnostic) -> model::Diagnostic {
    let reason = if said.severity == Severity::Error { Reason::InvalidConfig } else { Reason::ProviderWarning };
    let mut told = model::Diagnostic::general(reason, one_line(&said));
    told.severity = said.severity;
    told.path = said.path.filter(|path: &Path| !path.0.is_empty());
    told
}

/// Summary and detail in one line.
fn one_line(said: &Diagnostic) -> String {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (summary, detail) = (flat(&said.summary), flat(&said.detail));
    match (summary.is_empty(), detail.is_empty()) {
        (false, false) => format!("{}: {detail}", summary.trim_end_matches(['.', ':'])),
        (true, false) => detail,
        _ => summary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_told_in_one_line() {
        let say = |severity, summary: &str, detail: &str| Diagnostic {
            severity,
            summary: summary.into(),
            detail: detail.into(),
            path: None,
        };
        let said = [
            say(Severity::Warning, "Old", ""),
            say(Severity::Error, "Cannot create.", "The server\n  said no."),
            say(Severity::Error, "Again", ""),
        ];
        assert_eq!(error(&said).unwrap().message, "Cannot create: The server said no. (and 1 more)");
        assert!(error(&said[..1]).is_none());
    }
}
