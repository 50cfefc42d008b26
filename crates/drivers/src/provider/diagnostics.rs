//! Converts diagnostics and errors of providers to those of the engine.

use cty::Error;

use super::values;
use model::{DriverError, ErrorKind, Reason, Severity};
use tfprovider::plugin::{Diagnostic, PluginError};

/// The error of a call without a response.
pub fn call_error(error: &PluginError) -> DriverError {
    let kind = match error {
        PluginError::Unimplemented { .. } => ErrorKind::Terminal,
        _ => ErrorKind::Transient,
    };
    DriverError { kind, message: error.to_string(), path: None, hint: None }
}

/// The error of a provider that violates the protocol.
pub fn protocol_error(what: impl Into<String>) -> DriverError {
    DriverError {
        kind: ErrorKind::Terminal,
        message: what.into(),
        path: None,
        hint: Some("this is a bug in the provider; report it to its developers".to_owned()),
    }
}

/// The error of a response with these invalid values; `None` if there are none.
pub fn value_errors(what: &str, errors: &[Error]) -> Option<DriverError> {
    let first = errors.first()?;
    let more = if errors.len() > 1 { format!(" (and {} more)", errors.len() - 1) } else { String::new() };
    Some(protocol_error(format!("the provider {what}: {first}{more}")))
}

/// The error of a value that cannot be encoded or decoded.
pub fn decode_error(what: &str, error: &Error) -> DriverError {
    protocol_error(format!("{what} cannot be read: {error}"))
}

pub fn first_error(diagnostics: &[Diagnostic]) -> Option<DriverError> {
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    let first = errors.next()?;
    let more = errors.count();
    let mut message = one_line(first);
    if more > 0 {
        message.push_str(&format!(" (and {more} more)"));
    }
    // The protocol does not say whether a retry helps. Most errors of services are temporary.
    Some(DriverError { kind: ErrorKind::Transient, message, path: first.path().map(values::path), hint: None })
}

pub fn warnings(diagnostics: Vec<Diagnostic>) -> model::Diagnostics {
    diagnostics.into_iter().filter(|diagnostic| !diagnostic.is_error()).map(diagnostic).collect()
}

pub fn diagnostics(diagnostics: Vec<Diagnostic>) -> model::Diagnostics {
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
    let [summary, detail] =
        [&diagnostic.summary, &diagnostic.detail].map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    match (summary.is_empty(), detail.is_empty()) {
        (false, false) => format!("{}: {detail}", summary.trim_end_matches(['.', ':'])),
        (true, false) => detail,
        _ => summary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider_diagnostic(code: i32, summary: &str, detail: &str) -> Diagnostic {
        Diagnostic { code, summary: summary.into(), detail: detail.into(), attribute: None }
    }

    #[test]
    fn the_first_error_is_formatted_in_one_line() {
        let diagnostics = [
            provider_diagnostic(Diagnostic::WARNING, "Old", ""),
            provider_diagnostic(1, "Cannot create.", "The server\n  said no."),
            provider_diagnostic(1, "Again", ""),
        ];
        assert_eq!(first_error(&diagnostics).unwrap().message, "Cannot create: The server said no. (and 1 more)");
        assert!(first_error(&diagnostics[..1]).is_none());
    }
}
