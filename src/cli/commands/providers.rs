//! `purlin providers`: the providers that the modules of a configuration of Terraform require.

use crate::cli::args::RootArgs;
use crate::cli::failure::Exit;
use crate::cli::init;
use crate::cli::output::Console;
use crate::cli::root_module::Variables;
use configuration::{NodeId, Tree};
use model::has_errors;

pub fn run(args: RootArgs, console: Console) -> anyhow::Result<Exit> {
    let root = init::root(args.directory)?;
    let (tree, problems) = init::read(&root, &Variables::default());
    console.diagnostics(&problems);
    if has_errors(&problems) {
        return Ok(Exit::Problems);
    }
    let required = tree.required_providers();
    let mut lines = vec!["Providers required by configuration:".to_owned(), ".".to_owned()];
    let of = |node: NodeId| -> Vec<String> {
        let own = required.iter().flat_map(|(source, all)| all.iter().map(move |one| (source, one)));
        own.filter(|(_, one)| one.node == node)
            .map(|(source, one)| {
                let version = one.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
                format!("provider[{}]{version}", source.full())
            })
            .collect()
    };
    branches(&tree, 0, "", &of, &mut lines);
    console.lines(format_args!("{}\n", lines.join("\n")))?;
    Ok(Exit::Success)
}

/// Adds the providers and the calls of a module, each below the line of the module.
fn branches(tree: &Tree, node: NodeId, indent: &str, of: &dyn Fn(NodeId) -> Vec<String>, lines: &mut Vec<String>) {
    let own = of(node).into_iter().map(|line| (line, None));
    let calls = tree.nodes[node].children.iter().map(|(name, child)| (format!("module.{name}"), Some(*child)));
    let all: Vec<(String, Option<NodeId>)> = own.chain(calls).collect();
    let count = all.len();
    for (position, (line, child)) in all.into_iter().enumerate() {
        let (branch, below) = if position + 1 == count { ("└── ", "    ") } else { ("├── ", "│   ") };
        lines.push(format!("{indent}{branch}{line}"));
        if let Some(child) = child {
            branches(tree, child, &format!("{indent}{below}"), of, lines);
        }
    }
}
