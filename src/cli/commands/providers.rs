//! `purlin providers`: the providers that the modules of a configuration of Terraform require.

use std::collections::BTreeMap;

use crate::cli::args::RootArgs;
use crate::cli::failure::Exit;
use crate::cli::init;
use crate::cli::output::Console;
use crate::cli::root_module::Variables;
use configuration::{NodeId, ProviderRequirement, ProviderSource, Tree};
use model::has_errors;

pub fn run(args: RootArgs, console: Console) -> anyhow::Result<Exit> {
    let root = init::root(args.directory)?;
    let (tree, problems) = init::read(&root, &Variables::default());
    console.diagnostics(&problems);
    if has_errors(&problems) {
        return Ok(Exit::Problems);
    }
    let lines = vec!["Providers required by configuration:".to_owned(), ".".to_owned()];
    let mut branches = Branches { tree: &tree, required: tree.required_providers(), lines };
    branches.add(0, "");
    console.lines(format_args!("{}\n", branches.lines.join("\n")))?;
    Ok(Exit::Success)
}

struct Branches<'t> {
    tree: &'t Tree,
    required: BTreeMap<ProviderSource, Vec<ProviderRequirement>>,
    lines: Vec<String>,
}

impl Branches<'_> {
    /// Adds the providers and the calls of a module, each below the line of the module.
    fn add(&mut self, node: NodeId, indent: &str) {
        let mut branches: Vec<(String, Option<NodeId>)> = Vec::new();
        for (source, requirements) in &self.required {
            for requirement in requirements.iter().filter(|requirement| requirement.node == node) {
                let version = requirement.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
                branches.push((format!("provider[{}]{version}", source.full()), None));
            }
        }
        let calls = self.tree.nodes[node].children.iter();
        branches.extend(calls.map(|(name, child)| (format!("module.{name}"), Some(*child))));
        let count = branches.len();
        for (position, (line, child)) in branches.into_iter().enumerate() {
            let (branch, below) = if position + 1 == count { ("└── ", "    ") } else { ("├── ", "│   ") };
            self.lines.push(format!("{indent}{branch}{line}"));
            if let Some(child) = child {
                self.add(child, &format!("{indent}{below}"));
            }
        }
    }
}
