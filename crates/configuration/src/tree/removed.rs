//! `removed` blocks: what they name, and that it is gone.

use std::sync::Arc;

use hcl::Diagnostic;

use super::{Node, NodeId, Tree};
use crate::address::InstanceAddress;
use crate::diagnostics::Diagnostics;
use crate::module::Removed;

impl Removed {
    /// The names of the calls from the root module to what the block names, which stands in a module.
    fn path<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Arc<str>> {
        node.path.iter().chain(self.from.module.0.iter().map(|step| &step.name))
    }

    /// Whether the block, which stands in a module, is about an object.
    fn covers(&self, node: &Node, object: &InstanceAddress) -> bool {
        let mut names = object.resource.module.0.iter().map(|step| &step.name);
        self.path(node).all(|name| names.next() == Some(name))
            && match &self.from.resource {
                Some((resource, _)) => names.next().is_none() && *resource == object.resource.resource,
                None => true,
            }
    }
}

impl Tree {
    /// The `removed` block that is about an object, with the module in which it stands.
    pub fn removed(&self, object: &InstanceAddress) -> Option<(NodeId, &Removed)> {
        self.nodes.iter().enumerate().find_map(|(id, node)| {
            let own = node.module.removed.iter().find(|removed| removed.covers(node, object));
            own.map(|removed| (id, removed))
        })
    }
}

/// Reports what is still in the configuration.
pub fn check(tree: &Tree, diagnostics: &mut Diagnostics) {
    for node in &tree.nodes {
        for removed in &node.module.removed {
            let Some(found) = tree.at(&removed.path(node).collect::<Vec<_>>()) else { continue };
            let what = match &removed.from.resource {
                Some((name, _)) if found.module.resources.contains_key(name) => "resource",
                Some(_) => continue,
                None => "module",
            };
            let detail = format!("The {what} `{}` is in the configuration, and removed by this block.", removed.from);
            let summary = format!("Removed {what} block still exists");
            let hint = format!("delete the {what} block, or the `removed` block");
            diagnostics.errors.push(Diagnostic::new(summary, detail, removed.range).hint(hint));
        }
    }
}
