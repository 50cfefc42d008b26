//! What can be written in a configuration and cannot be run yet. It is refused at its place.

use configuration::module::Module;
use configuration::{Diagnostics, Mode, Tree};
use hcl::{Diagnostic, Range};

/// The blocks of a configuration that cannot be run.
pub fn unsupported(tree: &Tree) -> Diagnostics {
    let mut found = Diagnostics::default();
    let mut seen = std::collections::BTreeSet::new();
    for node in tree.nodes.iter().filter(|node| seen.insert(node.module.directory.as_str())) {
        of_module(&node.module, &mut found);
    }
    found
}

fn of_module(module: &Module, found: &mut Diagnostics) {
    let mut refuse = |what: &str, range: Range| {
        let detail = format!("Purlin cannot run {what} yet.");
        found.errors.push(Diagnostic::new("Unsupported block", detail, range));
    };
    for (name, resource) in &module.resources {
        if name.mode == Mode::Ephemeral {
            refuse("ephemeral resources", resource.range);
        }
        for provisioner in &resource.provisioners {
            refuse(&format!("a provisioner \"{}\"", provisioner.kind), provisioner.range);
        }
    }
    module.removed.iter().for_each(|removed| refuse("`removed` blocks", removed.range));
}
