//! Selects the objects of a plan: those of the given sources, and of these the targets of `--target`. All other objects
//! are left unchanged.
//!
//! The selection does not affect order and flags: an object that is not selected is still part of the graph, but has no
//! step.

use super::decision::{Block, Decision};
use super::input::{Id, PlanInput};
use super::{Mode, Plan};
use model::{Action, Address, ChangeCause, Diagnostic, InstanceKey, Reason, Severity};

/// Whether a target, which is a name or the address of one instance, matches an object. A module call of Terraform's, or an
/// instance of one, matches all objects in it.
pub fn matches(target: &Address, address: &Address) -> bool {
    target == address
        || (target.key == InstanceKey::None && target.stem == address.stem)
        || (target.is_qualified() && is_in_call(target, address))
}

fn is_in_call(call: &Address, address: &Address) -> bool {
    match call.key {
        InstanceKey::None => address.groups().any(|group| group == call.stem),
        _ => address.to_string().strip_prefix(&*call.to_string()).is_some_and(|rest| rest.starts_with('.')),
    }
}

/// Whether each node is selected. Empty if all are.
///
/// In `Mode::Normal`: the targets and their desired direct and indirect dependencies. An object that is not desired is
/// only selected as a target. In `Mode::Destroy`: the targets and their recorded dependents. In `Mode::RefreshOnly`:
/// the targets and their recorded dependencies, because configuration is not evaluated.
pub(crate) fn selected(input: &PlanInput<'_>) -> Vec<bool> {
    let options = input.options;
    let count = input.nodes.len();
    if options.targets.is_empty() {
        let given: Vec<bool> = (0..count).map(|id| !input.is_of_other_source(id)).collect();
        return if given.iter().all(|given| *given) { Vec::new() } else { given };
    }
    let targets: Vec<Id> =
        (0..count).filter(|id| options.targets.iter().any(|target| matches(target, input.address(*id)))).collect();
    let dependents;
    let along = match options.mode {
        Mode::Normal => &input.dependencies,
        Mode::RefreshOnly => &input.recorded_dependencies,
        Mode::Destroy => {
            dependents = input.recorded_dependencies.reversed();
            &dependents
        }
    };
    let mut reached = vec![false; count];
    let mut open = targets.clone();
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut reached[id], true) {
            open.extend(along.of(id));
        }
    }
    let mut selected = reached;
    if options.mode == Mode::Normal {
        selected.iter_mut().zip(&input.nodes).for_each(|(selected, node)| *selected &= node.desired);
    }
    targets.into_iter().for_each(|id| selected[id] = true);
    selected.iter_mut().enumerate().for_each(|(id, selected)| *selected &= !input.is_of_other_source(id));
    selected
}

/// Why an object is not selected.
pub(crate) fn why_unselected(input: &PlanInput<'_>, id: Id) -> ChangeCause {
    if input.is_of_other_source(id) { ChangeCause::OtherSource } else { ChangeCause::NotSelected }
}

/// The block of an object that is not selected.
pub(crate) fn unselected_block(input: &PlanInput<'_>, id: Id) -> Block {
    Block::frozen(Diagnostic::warning(input.address(id), Reason::NotSelected, why_unselected(input, id).to_string()))
}

/// Turns the block of an object that is not selected, and those of its deposed objects, into no-ops.
pub(crate) fn clear_unselected(input: &PlanInput<'_>, id: Id, decision: &mut Decision) {
    if decision.block.as_ref().is_none_or(|block| block.reason() != Reason::NotSelected) {
        return;
    }
    let because = Some(why_unselected(input, id));
    for deposed in &mut decision.deposed {
        (deposed.action, deposed.block) = (Action::NoOp, None);
        deposed.because.clone_from(&because);
    }
    (decision.action, decision.block, decision.because) = (Action::NoOp, None, because);
}

/// The warning that the plan is partial.
pub(crate) fn warning(input: &PlanInput<'_>, plan: &Plan) -> Option<Diagnostic> {
    let left_out = plan.current_changes().filter(|change| change.because == Some(ChangeCause::NotSelected)).count();
    (!input.options.targets.is_empty()).then(|| {
        let what = format!("targeting is in effect: {left_out} object(s) are left unchanged");
        let hint = "the plan may not include all changes of the configuration; plan without --target afterwards";
        let warning = Diagnostic::general(Reason::NotSelected, what).hint(hint);
        Diagnostic { severity: Severity::Warning, ..warning }
    })
}
