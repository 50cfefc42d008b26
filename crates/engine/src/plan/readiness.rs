//! The readiness of existing objects. It changes no object: a new object waits until its dependencies are ready, as it
//! would if they were new too, and what depends on an object that is being deleted waits until that is created again.

use super::decision::{Block, Decision};
use super::drift;
use super::eval_scope::EvalScope;
use super::input::{Id, Node, PlanInput};
use super::preflight::field_naming;
use crate::load::DriftAction;
use model::{Action, Diagnostic, Health, Reason};

/// The block of an object that is being deleted although its Resource exists. Nothing can be done with it until it is
/// gone. `read` is its health if this plan has read it.
pub fn terminating(input: &PlanInput<'_>, node: Node<'_>, read: Option<&Health>) -> Option<Block> {
    let health = read.or_else(|| input.options.health.get(node.address))?;
    let Health::Terminating(finalizers) = health else { return None };
    let what = Diagnostic::error(node.address, Reason::Terminating, health.to_string());
    let then = match drift::action(node) {
        DriftAction::Correct if finalizers.is_empty() => {
            return Some(Block::held(what.because("Purlin creates the object again when it is gone")));
        }
        DriftAction::Correct => "Purlin creates the object again when it is gone",
        DriftAction::Report | DriftAction::Ignore => {
            "set `spec.drift.action: Correct` to create the object again when it is gone"
        }
    };
    let others = if finalizers.is_empty() { "" } else { "the controllers of the finalizers must remove them; " };
    Some(Block::held(what.hint(format!("{others}{then}"))))
}

/// Blocks a change that must wait for a dependency: the create of a new object until the dependency is ready, and every
/// other change until a dependency that is being deleted was created again. A dependency with a step of this plan orders
/// the change anyway.
pub fn hold_for_dependencies(scope: &EvalScope<'_, '_>, id: Id, decision: &mut Decision) {
    let input = scope.input;
    let node = input.nodes[id];
    let pending = node.record.is_some_and(|record| record.replacement_pending);
    let is_new = decision.action == Action::Create && node.current().is_none() && !pending;
    if !decision.changes_object() {
        return;
    }
    let waits: Vec<Id> = input
        .dependencies
        .of(id)
        .flat_map(|target| scope.objects(target))
        .filter(|target| scope.health(*target).is_some_and(|health| is_new || matches!(health, Health::Terminating(_))))
        .collect();
    let Some((first, health)) = waits.first().and_then(|first| Some((*first, scope.health(*first)?))) else { return };
    let target = input.address(first);
    let mut diagnostic = Diagnostic::error(node.address, Reason::DependencyNotReady, format!("waits for `{target}`"));
    diagnostic.path = node.instance.and_then(|instance| field_naming(instance, target));
    let why = match health {
        Health::Terminating(_) => health.to_string(),
        Health::Failed(_) => format!("it has failed: {health}"),
        _ => format!("it is not ready: {health}"),
    };
    decision.block(Block::held(diagnostic.because(why)).waiting_for(waits), node.current());
}
