//! What can be written in a configuration and cannot be run yet. It is refused at its place.

use configuration::module::{Module, Provisioner};
use configuration::{Diagnostics, Tree};
use hcl::Diagnostic;

/// The blocks of a configuration that cannot be run.
pub fn unsupported(tree: &Tree) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    let mut seen = std::collections::BTreeSet::new();
    for node in tree.nodes.iter().filter(|node| seen.insert(node.module.directory.as_str())) {
        of_module(&node.module, &mut diagnostics);
    }
    diagnostics
}

fn of_module(module: &Module, diagnostics: &mut Diagnostics) {
    let of_removed = module.removed.iter().flat_map(|removed| &removed.provisioners);
    let provisioners = module.resources.values().flat_map(|resource| &resource.provisioners).chain(of_removed);
    diagnostics.errors.extend(provisioners.filter_map(on_machine));
}

/// The problem of a provisioner that logs in to a machine.
fn on_machine(provisioner: &Provisioner) -> Option<Diagnostic> {
    let kind = provisioner.kind.as_str();
    ["remote-exec", "file"].contains(&kind).then(|| {
        let detail = format!("A provisioner \"{kind}\" logs in to a machine, which Purlin does not do.");
        let hint = "pass the work to the machine when it is created, as with `user_data` and cloud-init, or run ssh or scp in a provisioner \"local-exec\"";
        Diagnostic::new("Unsupported provisioner", detail, provisioner.range).hint(hint)
    })
}
