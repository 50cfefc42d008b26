//! Converts diagnostics and errors of providers to those of the engine.

use cty::Error;

use super::values;
use model::{DriverError, ErrorKind, Reason, Severity};
use tfprovider::plugin::{Diagnostic, PluginError};

/// The error of a call without a response.
pub(super) fn call_error(error: &PluginError) -> DriverError {
    let kind = match error {
        PluginError::Unimplemented { .. } => ErrorKind::Terminal,
        _ => ErrorKind::Transient,
    };
    DriverError { kind, message: error.to_string(), path: None, hint: None }
}

/// The error of a provider that violates the protocol.
pub(super) fn protocol_error(what: impl Into<String>) -> DriverError {
    DriverError {
        kind: ErrorKind::Terminal,
        message: what.into(),
        path: None,
        hint: Some("this is a bug in the provider; report it to its developers".to_owned()),
    }
}

/// The error of a response with these invalid values; `None` if there are none.
pub(super) fn value_errors(what: &str, found: &[Error]) -> Option<DriverError> {
    let first = found.first()?;
    let more = if found.len() > 1 { format!(" (and {} more)", found.len() - 1) } else { String::new() };
    Some(protocol_error(format!("the provider {what}: {first}{more}")))
}

/// The error of a value that cannot be encoded or decoded.
pub(super) fn decode_error(what: &str, error: &Error) -> DriverError {
    protocol_error(format!("{what} cannot be read: {error}"))
}

pub(super) fn first_error(diagnostics: &[Diagnostic]) -> Option<DriverError> {
    let mut errors = diagnostics.iter().filter(|one| one.is_error());
    let first = errors.next()?;
    let more = errors.count();
    let mut message = one_line(first);
    if more > 0 {
        message.push_str(&format!(" (and {more} more)"));
    }
    // The protocol does not say whether a retry helps. Most errors of services are temporary.
    Some(DriverError { kind: ErrorKind::Transient, message, path: first.path().map(values::path), hint: None })
}

pub(super) fn warnings(diagnostics: Vec<Diagnostic>) -> model::Diagnostics {
    diagnostics.into_iter().filter(|one| !one.is_error()).map(diagnostic).collect()
}

pub(super) fn diagnostics(diagnostics: Vec<Diagnostic>) -> model::Diagnostics {
    diagnostics.into_iter().map(diagnostic).collect()
}

fn diagnostic(source: Diagnostic) -> model::Diagnostic {
    let reason = if source.is_error() { Reason::InvalidConfig } else { Reason::ProviderWarning };
    let mut converted = model::Diagnostic::general(reason, one_line(&source));
    converted.severity = if source.is_error() { Severity::Error } else { Severity::Warning };
    converted.path = source.path().map(values::path);
    converted
}

/// Summary and detail in one line.
fn one_line(diagnostic: &Diagnostic) -> String {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (summary, detail) = (flat(&diagnostic.summary), flat(&diagnostic.detail));
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
    fn the_first_error_is_formatted_in_one_line() {
        let say = |code, summary: &str, detail: &str| Diagnostic {
            code,
            summary: summary.into(),
            detail: detail.into(),
            attribute: None,
        };
        let diagnostics = [
            say(Diagnostic::WARNING, "Old", ""),
            say(1, "Cannot create.", "The server\n  said no."),
            say(1, "Again", ""),
        ];
        assert_eq!(first_error(&diagnostics).unwrap().message, "Cannot create: The server said no. (and 1 more)");
        assert!(first_error(&diagnostics[..1]).is_none());
    }
}
