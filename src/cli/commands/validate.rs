//! `purlin validate`: checks manifests and configurations of Terraform without records, a cluster or credentials.

use crate::cli::args::{Format, ValidateArgs};
use crate::cli::failure::Exit;
use crate::cli::json::{Diagnostics, FORMAT_VERSION};
use crate::cli::options::Files;
use crate::cli::output::Console;
use crate::cli::{init, json, local, root_module};
use engine::plan::Plan;
use engine::plan::render::problems;
use model::has_errors;
use model::text::counted;
use runtime::execute::Limits;

/// With `-o json`, the diagnostics are printed to standard output, because they are the result.
pub async fn run(args: ValidateArgs, console: Console) -> anyhow::Result<Exit> {
    let mut files = Files::new(args.files, None).or_here();
    files.require_sources("validate")?;
    let (roots, sources): (Vec<_>, Vec<_>) = files.sources.into_iter().partition(|path| root_module::is_in(path));
    files.sources = sources;
    let (mut modules, mut diagnostics) = (0, model::Diagnostics::new());
    for root in &roots {
        let (tree, problems) = init::read(root, &files.variables);
        modules += tree.nodes.len();
        diagnostics.extend(problems);
    }
    let (mut plan, mut resources) = (Plan::default(), None);
    if !files.sources.is_empty() {
        let checked = local::validate(&files, Limits::default()).await?;
        diagnostics.extend(checked.diagnostics);
        plan = checked.plan;
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
            console.problems(&problems::collect(plan.changes(), &diagnostics));
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
