//! Blocks changes that would fail as things are now, unless a step of the same plan may resolve that.
//!
//! A driver refuses a change if, for example, its name is taken or its namespace does not exist. The old object of a
//! replacement must not be destroyed for a new one that cannot be created.

use std::sync::Arc;

use crate::plan::decision::{Block, Decision};
use crate::plan::input::{Id, PlanInput};
use model::{Action, Refusal, Remedy, Value};

/// The block of an object whose change is refused. `None` if a step of the plan may resolve the refusal.
pub(super) fn refused(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> Option<Block> {
    let decision = decisions[id].as_ref()?;
    let refusal = decision.planned.as_ref()?.refusal.as_ref()?;
    if !remedies(input, decisions, id).is_empty() {
        return None;
    }
    let what = match decision.action {
        Action::Replace => "must be replaced, but the old object is kept because the new one cannot be created",
        Action::Create => "the object cannot be created",
        _ => "the object cannot be updated",
    };
    let block = Block::failed(input.address(id), what, refusal.error.clone());
    Some(Block { held: decision.action != Action::Create, ..block })
}

/// The objects with a step that may resolve the refusal of an object: its dependencies, and what the driver names.
pub(in crate::plan) fn remedies(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> Vec<Id> {
    let refusal = decisions[id].as_ref().and_then(|decision| decision.planned.as_ref()?.refusal.as_ref());
    let Some(refusal) = refusal else { return Vec::new() };
    let mut found = changing_dependencies(input, decisions, id);
    let others = (0..input.objects).filter(|other| *other != id && !input.running.contains_key(other));
    found.extend(others.filter(|other| resolves(input, decisions, (id, refusal), *other)));
    found.sort_unstable();
    found.dedup();
    found
}

/// The direct and indirect dependencies that are created, updated or replaced.
fn changing_dependencies(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> Vec<Id> {
    let mut visited = vec![false; decisions.len()];
    let mut open = vec![id];
    while let Some(here) = open.pop() {
        for next in input.dependencies.of(here) {
            if !std::mem::replace(&mut visited[next], true) {
                open.push(next);
            }
        }
    }
    let changes = |other: &Id| decisions[*other].as_ref().is_some_and(Decision::changes_object);
    (0..input.objects).filter(|other| *other != id && visited[*other]).filter(changes).collect()
}

/// Whether a step of `other` is one of the remedies.
fn resolves(input: &PlanInput<'_>, decisions: &[Option<Decision>], (id, refusal): (Id, &Refusal), other: Id) -> bool {
    let (Some(own), Some(decision)) = (&decisions[id], &decisions[other]) else { return false };
    // Another provider configuration may be another place.
    let digests = [own, decision].map(|decision| decision.provider.as_ref().map(|used| Arc::clone(&used.digest)));
    if input.nodes[id].type_name() != input.nodes[other].type_name() || digests[0] != digests[1] {
        return false;
    }
    refusal.remedies.iter().any(|remedy| match remedy {
        Remedy::Applied(part) => {
            let planned = decision.planned.as_ref().filter(|_| decision.changes_object());
            planned.is_some_and(|planned| Remedy::contains(&planned.config, part))
        }
        Remedy::Removed(part) => removes(decision, part),
    })
}

/// Whether an object destroys, and does not make again, an object whose identity contains `part`. An object whose own
/// change is refused may stay.
fn removes(decision: &Decision, part: &Value) -> bool {
    let contains =
        |identity: &Option<Value>| identity.as_ref().is_some_and(|identity| Remedy::contains(identity, part));
    let deposed = decision.deposed.iter().filter(|deposed| deposed.action == Action::Destroy);
    let current = decision.prior.as_ref().filter(|_| match decision.action {
        Action::Destroy => true,
        Action::Replace => {
            let planned = decision.planned.as_ref();
            !decision.forget
                && decision.hold_destroy.is_none()
                && planned.is_some_and(|planned| planned.refusal.is_none() && !contains(&planned.identity))
        }
        _ => false,
    });
    deposed.map(|deposed| &deposed.object).chain(current).any(|object| contains(&object.identity))
}
