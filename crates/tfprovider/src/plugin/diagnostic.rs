//! The diagnostics of a provider.

use prost::Message as _;

use cty::{Path, Step};

use super::fields::Fields;
use super::messages as raw;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// A problem that a provider reports. Its strings may contain sensitive values, because providers quote their input;
/// mask them before showing them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub summary: String,
    /// May be empty.
    pub detail: String,
    /// The path in the configuration. It ends at a set, whose elements have no path.
    pub path: Option<Path>,
}

impl From<raw::Diagnostic> for Diagnostic {
    fn from(diagnostic: raw::Diagnostic) -> Self {
        Self {
            // Every severity other than a warning is an error.
            severity: if diagnostic.severity == 2 { Severity::Warning } else { Severity::Error },
            summary: diagnostic.summary,
            detail: diagnostic.detail,
            path: diagnostic.attribute.as_deref().map(path).filter(|path| !path.0.is_empty()),
        }
    }
}

pub(super) fn diagnostics(diagnostics: Vec<raw::Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.into_iter().map(Diagnostic::from).collect()
}

/// The maximum length of a path: more than any schema is deep. A step of two bytes needs many times as much memory.
const MAX_STEPS: usize = 100;

/// Decodes a path, up to the first unsupported step.
pub(super) fn path(encoded: &[u8]) -> Path {
    let steps = Fields(encoded).filter(|(number, _)| *number == 1).take(MAX_STEPS);
    let segments = steps.map_while(|(_, step)| match raw::PathStep::decode(step).ok()?.selector? {
        raw::Selector::AttributeName(name) | raw::Selector::ElementKeyString(name) => Some(Step::Name(name.into())),
        raw::Selector::ElementKeyInt(index) => usize::try_from(index).ok().map(Step::Index),
    });
    Path(segments.collect())
}

/// Formats the first error on one line.
pub(super) fn first_error(diagnostics: &[Diagnostic]) -> String {
    let Some(first) = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) else {
        return "no reason given".to_owned();
    };
    let place = first.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
    let detail = if first.detail.is_empty() { String::new() } else { format!(": {}", first.detail) };
    format!("{place}{}{detail}", first.summary).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path as a message.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Steps {
        #[prost(message, repeated, tag = "1")]
        steps: Vec<raw::PathStep>,
    }

    fn step(selector: raw::Selector) -> raw::PathStep {
        raw::PathStep { selector: Some(selector) }
    }

    #[test]
    fn a_diagnostic_keeps_its_path() {
        let steps = vec![
            step(raw::Selector::AttributeName("rule".into())),
            step(raw::Selector::ElementKeyInt(2)),
            step(raw::Selector::ElementKeyString("a b".into())),
            raw::PathStep { selector: None },
            step(raw::Selector::AttributeName("lost".into())),
        ];
        let attribute = Some(Steps { steps }.encode_to_vec());
        let message = raw::Diagnostic { severity: 2, summary: "s".into(), detail: "d".into(), attribute };
        let diagnostic = Diagnostic::from(message);
        assert_eq!(diagnostic.severity, Severity::Warning);
        assert_eq!(diagnostic.path.unwrap().to_string(), r#"rule[2]["a b"]"#);
        assert_eq!(Diagnostic::from(raw::Diagnostic { severity: 7, ..Default::default() }).severity, Severity::Error);
    }

    #[test]
    fn a_path_has_a_maximum_length() {
        let steps = Steps { steps: vec![step(raw::Selector::ElementKeyInt(0)); 1_000_000] };
        assert_eq!(path(&steps.encode_to_vec()).0.len(), MAX_STEPS);
    }
}
