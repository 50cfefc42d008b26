//! The problems of a configuration of Terraform, in the form of all diagnostics.

use configuration::{Diagnostics, Sources};
use model::{Diagnostic, Reason, Severity, Source};

/// The errors and warnings, each with the file and line.
pub fn diagnostics(found: &Diagnostics, sources: &Sources) -> model::Diagnostics {
    let errors = found.errors.iter().map(|error| diagnostic(error, Severity::Error, sources));
    let warnings = found.warnings.iter().map(|warning| diagnostic(warning, Severity::Warning, sources));
    errors.chain(warnings).collect()
}

fn diagnostic(problem: &hcl::Diagnostic, severity: Severity, sources: &Sources) -> Diagnostic {
    let source = sources
        .get(problem.range.file)
        .map(|source| Source { file: source.name().into(), line: source.position(problem.range.start).line as usize });
    let detail = problem.detail.split_whitespace().collect::<Vec<_>>().join(" ");
    let detail = detail.strip_suffix('.').unwrap_or(&detail).to_owned();
    let general = Diagnostic::general(Reason::InvalidManifest, problem.summary.clone()).because(detail);
    Diagnostic { severity, hint: problem.hint.clone(), ..general.from_source(source) }
}
