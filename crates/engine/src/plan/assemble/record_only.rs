//! Record-only steps of objects that are blocked or part of a refresh-only plan: they record the read object and
//! whether the manifest keeps it.

use super::{EvaluatedFlags, prepared_from};
use crate::plan::PreparedStep;
use crate::plan::decision::Decision;
use crate::plan::input::{Id, Node, PlanInput, is_only_observed};
use model::{Action, ChangeCause, Reason, RecordedObject};

/// Flags and dependencies are recorded unchanged, except whether to keep the object.
pub fn prepare_record_only(
    input: &PlanInput<'_>,
    id: Id,
    decision: &mut Decision,
    expressed: &EvaluatedFlags,
) -> Option<PreparedStep> {
    let node = input.nodes[id];
    let record = node.record?;
    let is_busy = input.running.contains_key(&id) || record.intent.is_some() || record.moving_to.is_some();
    if is_busy || !input.is_selected(id) || waits_to_record(input, node) {
        return None;
    }
    let object = decision.prior.clone().filter(|_| matches!(decision.action, Action::NoOp | Action::Blocked))?;
    // Expressions are evaluated for objects with a Resource only. Otherwise the record stays unchanged.
    let prevented = node.instance.is_some() && expressed.prevent_destroy;
    let prevent_destroy = prevented || (object.prevent_destroy && !node.may_remove_protection());
    // Until it is managed, it was only observed.
    let is_kept = decision.action == Action::Blocked && is_only_observed(&object);
    let skip_destroy = is_kept || node.keeps_object(&object);
    let rules = [
        (object.prevent_destroy != prevent_destroy, ChangeCause::PreventDestroy),
        (object.skip_destroy != skip_destroy, ChangeCause::DeletionPolicy),
    ];
    let because = decision
        .record_differs
        .clone()
        .or_else(|| rules.into_iter().find(|(changed, _)| *changed).map(|(_, because)| because))?;
    if decision.action == Action::NoOp {
        decision.action = Action::Record;
        decision.because = Some(because);
    }
    Some(PreparedStep {
        planned: object.value.clone(),
        private: object.private.clone(),
        recorded: RecordedObject { prevent_destroy, skip_destroy, ..object.as_ref().clone() },
        prior: Some(object),
        record_only: true,
        ..prepared_from(input, id, Action::Record)
    })
}

fn waits_to_record(input: &PlanInput<'_>, node: Node<'_>) -> bool {
    let held = input.options.blocked.get(node.address);
    held.is_some_and(|held| held.reason == Reason::RecordNotWritten)
}
