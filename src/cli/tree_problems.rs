//! The problems of a configuration of Terraform, in the form of all diagnostics.

use std::path::Path;

use configuration::{Diagnostics, Sources};
use model::{Diagnostic, Reason, Severity, Source};

/// The errors and warnings, each with the file and line. `root` is the directory of the root module.
pub fn diagnostics(found: &Diagnostics, sources: &Sources, root: &Path) -> model::Diagnostics {
    let errors = found.errors.iter().map(|error| diagnostic(error, Severity::Error, sources, root));
    let warnings = found.warnings.iter().map(|warning| diagnostic(warning, Severity::Warning, sources, root));
    errors.chain(warnings).collect()
}

fn diagnostic(problem: &hcl::Diagnostic, severity: Severity, sources: &Sources, root: &Path) -> Diagnostic {
    let is_here = root == Path::new(".");
    let file = |name: &str| if is_here { name.to_owned() } else { root.join(name).display().to_string() };
    let source = sources.get(problem.range.file).map(|source| Source {
        file: file(source.name()).into(),
        line: source.position(problem.range.start).line as usize,
    });
    let detail = problem.detail.split_whitespace().collect::<Vec<_>>().join(" ");
    let detail = detail.strip_suffix('.').unwrap_or(&detail).to_owned();
    let general = Diagnostic::general(Reason::InvalidManifest, problem.summary.clone()).because(detail);
    Diagnostic { severity, hint: problem.hint.clone(), ..general.from_source(source) }
}
