//! Keeps objects without a manifest while another manifest has an error.
//!
//! On files, a missing manifest may be part of a change with a mistake, such as a new name without `moved-from`. What the
//! faulty manifest was to become is not known, so nothing is given up because of what is missing beside it.

use crate::plan::Mode;
use crate::plan::decision::{Block, Decision, DeposedDecision};
use crate::plan::input::{Id, PlanInput};
use model::{Diagnostic, Reason, Record, Severity, Words, has_errors};

/// The objects without a manifest that would be destroyed or forgotten.
pub fn find(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    if !input.options.destroy_orphans || input.options.mode != Mode::Normal {
        return Vec::new();
    }
    let faulty = (0..decisions.len()).find(|id| is_faulty(input, decisions, *id));
    if faulty.is_none() && !has_errors(&input.general) {
        return Vec::new();
    }
    let mut blocks = Vec::new();
    for (id, decision) in decisions[..input.objects].iter().enumerate() {
        let (node, Some(decision)) = (input.nodes[id], decision) else { continue };
        let is_orphan = node.instance.is_none() && node.record.is_some_and(Record::has_objects);
        let removes = decision.removes() || decision.deposed.iter().any(DeposedDecision::removes);
        if is_orphan && removes && !decision.is_blocked() {
            blocks.push((id, kept(input, id, faulty)));
        }
    }
    blocks
}

/// Whether a manifest cannot be planned. An object that is held as it is, such as a protected one, can be.
pub fn is_faulty(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> bool {
    let node = input.nodes[id];
    let block = decisions[id].as_ref().and_then(|decision| decision.block.as_deref());
    let cannot_be_planned = block.is_some_and(|block| !block.held && block.cause().severity == Severity::Error);
    cannot_be_planned && node.desired && input.is_selected(id) && !input.options.blocked.contains_key(node.address)
}

fn kept(input: &PlanInput<'_>, id: Id, faulty: Option<Id>) -> Block {
    let cause = faulty.map_or_else(|| "the configuration".to_owned(), |faulty| format!("`{}`", input.address(faulty)));
    let address = input.address(id);
    let what = format!("not destroyed although its {} is missing: {cause} has an error", Words::of(address).source());
    Block::frozen(Diagnostic::warning(address, Reason::SourceIncomplete, what)).waiting_for(faulty)
}
