//! The error for a reference to an object that does not exist, with what its author may have meant.

use super::decision::Block;
use super::input::{Id, PlanInput};
use super::provider;
use crate::load::expression::instead_of_missing;
use crate::load::{BUILT_IN, Reference};
use model::suggest::closest;
use model::{Address, Diagnostic, Reason};

/// The error for a reference to an object that does not exist.
pub fn not_found(input: &PlanInput<'_>, address: &Address, missing: &Reference) -> Diagnostic {
    const MAX_SHOWN: usize = 5;
    let target = &missing.target;
    let what = format!("references `{target}`, which does not exist");
    let mut error = Diagnostic::error(address, Reason::DependencyNotFound, what).at(missing.at.clone());
    let Some(junction) = input.junction(&target.stem) else {
        error.hint = suggestion(input, address, missing);
        return error;
    };
    let Some(family) = input.nodes[junction].family else { return error };
    if family.is_disabled() {
        return error.because(format!("`{}` is disabled", target.stem));
    }
    let members: Vec<Id> = input.members(junction).filter(|member| input.nodes[*member].desired).collect();
    let shown: Vec<String> =
        members.iter().take(MAX_SHOWN).map(|member| format!("`{}`", input.address(*member))).collect();
    error.hint = Some(match members.len() {
        0 => format!("`{}` has no instances", target.stem),
        count if count <= MAX_SHOWN => format!("`{}` is a family, which has {}", target.stem, shown.join(", ")),
        count => format!("`{}` is a family of {count} instances: {}, ...", target.stem, shown.join(", ")),
    });
    error
}

/// What the author of a reference may have meant.
fn suggestion(input: &PlanInput<'_>, address: &Address, missing: &Reference) -> Option<String> {
    let desired = input.nodes.iter().filter(|node| node.desired);
    let instead = instead_of_missing(
        &missing.target,
        &missing.segments,
        |name| desired.clone().any(|node| **node.address.name() == *name),
        |name| {
            BUILT_IN.contains(&name)
                || desired.clone().filter_map(|node| node.instance).any(|instance| *instance.type_name == *name)
        },
    );
    instead.or_else(|| {
        let names = desired.map(|node| &**node.address.stem.text()).filter(|name| *name != &**address.stem.text());
        closest(missing.target.stem.text(), names).map(|meant| format!("did you mean `{meant}`?"))
    })
}

/// What is missing may be in a file that cannot be read. The object then waits until that error is corrected.
pub fn excuse_missing(input: &PlanInput<'_>, mut block: Block) -> Block {
    let Some(why) = input.unreadable else { return block };
    let is_something_missing = block.diagnostics.iter().all(|problem| match problem.reason {
        Reason::DependencyNotFound | Reason::InputNotFound | Reason::ProviderNotFound => true,
        _ => provider::is_missing(problem),
    });
    if is_something_missing {
        for problem in &mut block.diagnostics {
            problem.reason = Reason::SourceIncomplete;
            why.clone_into(&mut problem.detail);
            problem.hint = None;
        }
    }
    block
}
