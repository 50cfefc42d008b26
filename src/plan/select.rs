//! Selecting: which objects a plan with `--target` is about. All others are left exactly as they are.
//!
//! Order and flags come from the whole situation all the same, so that to select changes neither: an object that is not
//! selected has its place in every closure, and no step.

use super::Mode;
use super::draft::{Block, Draft};
use super::scene::{Id, Scene};
use crate::model::{Action, Address, Change, Diagnostic, InstanceKey, Reason, Severity};

/// The `because` of an object that is not selected.
pub const NOT_SELECTED: &str = "not selected";

/// Whether the text of a target, a name or the address of one instance, means an object.
pub fn means(target: &Address, address: &Address) -> bool {
    target == address || (target.key == InstanceKey::None && target.name == address.name)
}

/// The objects that the plan is about, a mark for each; nothing when it is about all.
///
/// Towards the configuration: the targets, and every wanted object that they refer to, directly or not. What is no longer
/// wanted goes only when it is a target itself. Towards nothing: the targets, and what depends on them by records. A plan
/// that only reads follows the records as well, since no configuration counts in it.
pub(super) fn selected(scene: &Scene<'_>) -> Vec<bool> {
    let options = scene.options;
    if options.targets.is_empty() {
        return Vec::new();
    }
    let count = scene.subjects.len();
    let is_target = |id: &Id| options.targets.iter().any(|target| means(target, scene.address(*id)));
    let targets: Vec<Id> = (0..count).filter(is_target).collect();
    let dependents;
    let along = match options.mode {
        Mode::Normal => &scene.wants,
        Mode::RefreshOnly => &scene.used,
        Mode::Destroy => {
            dependents = scene.used.turned();
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
        selected.iter_mut().zip(&scene.subjects).for_each(|(selected, subject)| *selected &= subject.wanted);
    }
    targets.into_iter().for_each(|id| selected[id] = true);
    selected
}

/// Nothing at all may be done about an object that is not selected.
pub(super) fn left_out(address: &Address) -> Block {
    Block::frozen(Diagnostic::warning(address, Reason::NotSelected, NOT_SELECTED))
}

/// An object that is not selected has nothing to do, which is no trouble; nor is what would stand in the way of its
/// leftovers.
pub(super) fn at_rest(draft: &mut Draft) {
    if draft.block.as_ref().is_none_or(|block| block.reason() != Reason::NotSelected) {
        return;
    }
    (draft.action, draft.block, draft.because) = (Action::NoOp, None, Some(NOT_SELECTED.to_owned()));
    for leftover in &mut draft.leftovers {
        (leftover.action, leftover.block) = (Action::NoOp, None);
        leftover.because = Some(NOT_SELECTED.to_owned());
    }
}

/// Told once, so that nobody takes the plan for the whole.
pub(super) fn warning(scene: &Scene<'_>, changes: &[Change]) -> Option<Diagnostic> {
    let is_left_out = |change: &&Change| change.deposed.is_none() && change.because.as_deref() == Some(NOT_SELECTED);
    let left_out = changes.iter().filter(is_left_out).count();
    (!scene.selected.is_empty()).then(|| {
        let what = format!("targeting is in effect: {left_out} object(s) are left as they are");
        let hint = "the plan may not be all that the configuration asks for; plan without --target afterwards";
        let warning = Diagnostic::general(Reason::NotSelected, what).hint(hint);
        Diagnostic { severity: Severity::Warning, ..warning }
    })
}
