//! What a provider says of an object.

use crate::model::{Path, Segment, Severity};

use super::messages as raw;

/// A problem as a provider tells it. Its texts may hold sensitive values, since providers quote what they were given:
/// whoever shows them masks them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub summary: String,
    /// Why, or what to do; may be empty.
    pub detail: String,
    /// Where in the configuration. It ends at a set, whose elements have no names.
    pub path: Option<Path>,
}

impl From<raw::Diagnostic> for Diagnostic {
    fn from(diagnostic: raw::Diagnostic) -> Self {
        Self {
            // Whatever is not said to be a mere warning holds the object back.
            severity: if diagnostic.severity == 2 { Severity::Warning } else { Severity::Error },
            summary: diagnostic.summary,
            detail: diagnostic.detail,
            path: diagnostic.attribute.map(path).filter(|path| !path.0.is_empty()),
        }
    }
}

pub(super) fn diagnostics(diagnostics: Vec<raw::Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.into_iter().map(Diagnostic::from).collect()
}

/// A path, up to the first step that we do not know.
pub(super) fn path(path: raw::AttributePath) -> Path {
    let segments = path.steps.into_iter().map_while(|step| match step.selector? {
        raw::Selector::AttributeName(name) | raw::Selector::ElementKeyString(name) => Some(Segment::Name(name.into())),
        raw::Selector::ElementKeyInt(index) => usize::try_from(index).ok().map(Segment::Index),
    });
    Path(segments.collect())
}

/// The first error in one line.
pub(super) fn first_error(diagnostics: &[Diagnostic]) -> String {
    let Some(first) = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) else {
        return "it does not say why".to_owned();
    };
    let place = first.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
    let detail = if first.detail.is_empty() { String::new() } else { format!(": {}", first.detail) };
    format!("{place}{}{detail}", first.summary).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_keeps_its_place() {
        let step = |selector| raw::PathStep { selector: Some(selector) };
        let steps = vec![
            step(raw::Selector::AttributeName("rule".into())),
            step(raw::Selector::ElementKeyInt(2)),
            step(raw::Selector::ElementKeyString("a b".into())),
            raw::PathStep { selector: None },
            step(raw::Selector::AttributeName("lost".into())),
        ];
        let attribute = Some(raw::AttributePath { steps });
        let told = raw::Diagnostic { severity: 2, summary: "s".into(), detail: "d".into(), attribute };
        let diagnostic = Diagnostic::from(told);
        assert_eq!(diagnostic.severity, Severity::Warning);
        assert_eq!(diagnostic.path.unwrap().to_string(), r#"rule[2]["a b"]"#);
        assert_eq!(Diagnostic::from(raw::Diagnostic { severity: 7, ..Default::default() }).severity, Severity::Error);
    }
}
