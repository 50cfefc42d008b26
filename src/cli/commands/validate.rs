//! `purlin validate`: checks manifests and configurations of Terraform without records, a cluster or credentials.

use std::path::{Path, PathBuf};

use crate::cli::args::{Format, ValidateArgs};
use crate::cli::failure::Exit;
use crate::cli::json::{Diagnostics, FORMAT_VERSION};
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::cli::{init, json, local, tree_problems};
use engine::plan::render::problems;
use model::has_errors;
use model::text::counted;
use runtime::execute::Limits;

/// With `-o json`, the diagnostics are printed to standard output, because they are the result.
pub async fn run(args: ValidateArgs, console: Console) -> anyhow::Result<Exit> {
    let mut files = Files::new(args.files, None);
    if files.sources.is_empty() && init::is_root(Path::new(".")).unwrap_or(false) {
        files.sources.push(PathBuf::from("."));
    }
    files.require_sources("validate")?;
    let roots: Vec<PathBuf> =
        files.sources.iter().filter(|path| init::is_root(path).unwrap_or(false)).cloned().collect();
    files.sources.retain(|path| !roots.contains(path) || has_manifests(path));
    let (mut modules, mut diagnostics) = (0, model::Diagnostics::new());
    for root in &roots {
        let (tree, mut found) = init::read(root)?;
        found.extend(tree.undeclared());
        modules += tree.nodes.len();
        diagnostics.extend(tree_problems::diagnostics(&found, &tree.sources, root));
    }
    let (mut changes, mut resources) = (Vec::new(), None);
    if !files.sources.is_empty() {
        let checked = local::validate(&files, Limits::default()).await?;
        diagnostics.extend(checked.diagnostics);
        changes = checked.changes;
        resources = Some(checked.resources);
    }
    let failed = has_errors(&diagnostics);
    match args.output {
        Format::Json => {
            let diagnostics = Diagnostics(&diagnostics);
            let report =
                serde_json::json!({"formatVersion": FORMAT_VERSION, "valid": !failed, "diagnostics": diagnostics});
            console.result(|out| json::write_line(out, &report))?;
        }
        Format::Text => {
            console.problems(&problems::collect(&changes, &diagnostics));
            let modules = (!roots.is_empty()).then(|| counted(modules, "module"));
            let resources = resources.map(|count| counted(count, "Resource"));
            let checked: Vec<String> = resources.into_iter().chain(modules).collect();
            if !failed {
                console.lines(format_args!("{} checked, no errors.\n", checked.join(" and ")))?;
            }
        }
    }
    Ok(Exit::of(failed, false, false))
}

/// Whether a directory has manifests beside its configuration.
fn has_manifests(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_manifest = |path: PathBuf| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    entries.map(|entry| entry.path()).any(is_manifest)
}
