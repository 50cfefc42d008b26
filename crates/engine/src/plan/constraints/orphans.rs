//! Keeps objects without a manifest while another manifest has an error.
//!
//! On files, a missing manifest may be part of a change with a mistake, such as a new name without `moved-from`. What the
//! faulty manifest was to become is not known, so nothing is given up because of what is missing beside it.

use crate::plan::Mode;
use crate::plan::decision::{Block, Decision, DeposedDecision};
use crate::plan::input::{Id, PlanInput};
use model::{Diagnostic, Reason, Record, Severity, has_errors};

/// The objects without a manifest that would be destroyed or forgotten.
pub(super) fn find(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    if !input.options.destroy_orphans || input.options.mode != Mode::Normal {
        return Vec::new();
    }
    let faulty = (0..decisions.len()).find(|id| is_faulty(input, decisions, *id));
    if faulty.is_none() && !has_errors(&input.general) {
        return Vec::new();
    }
    let is_given_up = |id: &Id| {
        let node = input.nodes[*id];
        let removed = |decision: &Decision| {
            !decision.is_blocked() && (decision.removes() || decision.deposed.iter().any(DeposedDecision::removes))
        };
        let has_objects = node.record.is_some_and(Record::has_objects);
        node.instance.is_none() && has_objects && decisions[*id].as_ref().is_some_and(removed)
    };
    (0..input.objects).filter(is_given_up).map(|id| (id, kept(input, id, faulty))).collect()
}

/// Whether a manifest cannot be planned. An object that is held as it is, such as a protected one, can be.
pub(in crate::plan) fn is_faulty(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> bool {
    let node = input.nodes[id];
    let block = decisions[id].as_ref().and_then(|decision| decision.block.as_deref());
    let cannot_be_planned = block.is_some_and(|block| !block.held && block.cause().severity == Severity::Error);
    cannot_be_planned && node.desired && input.is_selected(id) && !input.options.blocked.contains_key(node.address)
}

fn kept(input: &PlanInput<'_>, id: Id, faulty: Option<Id>) -> Block {
    let cause = faulty.map_or_else(|| "the configuration".to_owned(), |faulty| format!("`{}`", input.address(faulty)));
    let what = format!("not destroyed although its manifest is missing: {cause} has an error");
    Block::frozen(Diagnostic::warning(input.address(id), Reason::SourceIncomplete, what)).waiting_for(faulty)
}
