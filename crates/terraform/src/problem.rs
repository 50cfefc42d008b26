//! Problems of a configuration in the engine's form.

use crate::program::Shared;
use configuration::{Diagnostics, Sources};
use model::{Address, Diagnostic, Reason, Severity, Source};

/// The problems, each at its place. `prefix` stands before the names of files.
pub fn diagnostics(found: &Diagnostics, sources: &Sources, prefix: &str) -> model::Diagnostics {
    let errors = found.errors.iter().map(|error| diagnostic(error, sources, prefix));
    let warnings = found
        .warnings
        .iter()
        .map(|warning| Diagnostic { severity: Severity::Warning, ..diagnostic(warning, sources, prefix) });
    errors.chain(warnings).collect()
}

/// The same for the problems of a Resource.
pub fn of_resource(found: &Diagnostics, shared: &Shared, address: &Address) -> model::Diagnostics {
    let problems = diagnostics(found, &shared.tree.sources, &shared.origin.directory);
    problems.into_iter().map(|problem| Diagnostic { address: Some(address.clone()), ..problem }).collect()
}

/// An error at its place.
fn diagnostic(problem: &hcl::Diagnostic, sources: &Sources, prefix: &str) -> Diagnostic {
    let reason = match problem.summary.as_str() {
        "Resource precondition failed" => Reason::PreconditionFailed,
        "Resource postcondition failed" => Reason::PostconditionFailed,
        _ => Reason::InvalidExpression,
    };
    let detail = line(&problem.detail);
    Diagnostic {
        source: place(problem.range, sources, prefix),
        hint: problem.hint.as_deref().map(line),
        ..Diagnostic::general(reason, line(&problem.summary)).because(detail.strip_suffix('.').unwrap_or(&detail))
    }
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The file and the line of a range.
pub fn place(range: hcl::Range, sources: &Sources, prefix: &str) -> Option<Source> {
    let source = sources.get(range.file)?;
    let line = source.position(range.start).line as usize;
    Some(Source { file: format!("{prefix}{}", source.name()).into(), line })
}

/// The problem of what uses a value with an error, which is reported where it is.
pub fn consequence(address: &Address, place: Option<Source>) -> Diagnostic {
    let what = "a value that it uses has an error, which is reported at its place";
    Diagnostic::warning(address, Reason::DependencyNotReady, what).from_source(place)
}
