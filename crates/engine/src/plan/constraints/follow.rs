//! Holds replacements that other objects cannot follow.
//!
//! A new object has new values, and the objects that read them must be updated or replaced too. If one of these cannot be
//! changed, because it is protected, a policy forbids the change, or it has an error, the replacement does not start: an
//! edit is never half applied, and reverting it costs nothing.

use crate::plan::decision::{Block, Decision};
use crate::plan::input::{Id, PlanInput};
use model::{Action, Diagnostic, Path, Reason, Severity, Value};

/// The replacements that have a dependent which must follow and cannot.
pub fn find(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> Vec<(Id, Block)> {
    let mut stopped_by: Vec<Option<Id>> = vec![None; decisions.len()];
    let mut open: Vec<(Id, Id)> =
        (0..input.objects).filter(|id| cannot_follow(input, decisions, *id)).map(|id| (id, id)).collect();
    // Starting from the objects that cannot follow, so that the cost is linear.
    while let Some((here, cause)) = open.pop() {
        for leader in input.dependencies.of(here) {
            let changed = decisions[leader].as_ref().is_some_and(|decision| decision.changed && !decision.is_blocked());
            if changed && stopped_by[leader].is_none() && must_follow(input, decisions, here, leader) {
                stopped_by[leader] = Some(cause);
                open.push((leader, cause));
            }
        }
    }
    let mut blocks = Vec::new();
    for id in (0..input.objects).filter(|id| !input.running.contains_key(id)) {
        let is_replaced = decisions[id].as_ref().is_some_and(|decision| decision.action == Action::Replace);
        let Some(cause) = stopped_by[id].filter(|_| is_replaced) else { continue };
        blocks.extend(held(input, decisions, id, cause).map(|block| (id, block)));
    }
    blocks
}

/// Whether an existing object cannot be changed, for a reason that planning itself has found. An operation that failed or
/// runs is none: its object is planned again.
fn cannot_follow(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> bool {
    let node = input.nodes[id];
    let block = decisions[id].as_ref().and_then(|decision| decision.block.as_deref());
    let is_error = block.is_some_and(|block| block.cause().severity == Severity::Error);
    let exists = node.desired && node.current().is_some();
    is_error && exists && input.is_selected(id) && !input.options.blocked.contains_key(node.address)
}

/// Whether an object reads a value of `leader` that the plan changes, or is replaced when it changes.
fn must_follow(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id, leader: Id) -> bool {
    if input.is_junction(id) {
        return true;
    }
    let Some(instance) = input.nodes[id].instance else { return false };
    let config = Path::of(&["spec", "config"]);
    let triggers = Path::of(&["spec", "lifecycle", "replaceTriggeredBy"]);
    instance
        .references
        .iter()
        .filter(|reference| !reference.explicit)
        .filter(|reference| reference.at.starts_with(&config) || reference.at.starts_with(&triggers))
        .filter(|reference| input.resolve(&reference.target) == Some(leader))
        .any(|reference| {
            let reads_whole = reference.target.is_instance() || input.is_junction(leader);
            reads_whole || changes(input, decisions, leader, &Path(reference.segments.to_vec()))
        })
}

/// Whether the plan changes what an expression reads of an object.
fn changes(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id, read: &Path) -> bool {
    let recorded = input.nodes[id].current().map_or(&Value::Null, |object| &object.value);
    let planned = decisions[id].as_ref().and_then(|decision| decision.value.as_ref()).unwrap_or(&Value::Unknown);
    recorded.differences(planned).iter().any(|path| path.starts_with(read) || read.starts_with(path))
}

fn held(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id, follower: Id) -> Option<Block> {
    let problem = decisions[follower].as_ref()?.block.as_deref()?.cause();
    let name = input.address(follower);
    let what = format!("must be replaced, but `{name}`, which has to follow, cannot be changed");
    let why = match problem.detail.as_str() {
        "" => problem.summary.clone(),
        detail => format!("{}: {detail}", problem.summary),
    };
    let way_out = problem.hint.as_ref().map_or(String::new(), |hint| format!(": {hint}"));
    let hint = format!("revert the change, or resolve the problem of `{name}`{way_out}");
    // A problem that may pass without a change is also that of the replacement, so that both are planned again.
    let reason = if problem.reason.may_pass() { problem.reason } else { Reason::InUse };
    let diagnostic = Diagnostic::error(input.address(id), reason, what).because(why).hint(hint);
    Some(Block::held(diagnostic).waiting_for([follower]))
}
