//! Blocks changes that would fail as things are now, unless a step of the same plan may resolve that.
//!
//! A driver refuses a change if, for example, its name is taken or its namespace does not exist. The old object of a
//! replacement must not be destroyed for a new one that cannot be created.

use std::collections::BTreeMap;

use crate::plan::decision::{Block, Decision};
use crate::plan::input::{Id, PlanInput};
use model::{Action, Refusal, Remedy, Value};

/// The block of an object whose change is refused, and which has no remedies.
pub fn refused(input: &PlanInput<'_>, decisions: &[Option<Decision>], id: Id) -> Option<Block> {
    let decision = decisions[id].as_ref()?;
    let refusal = decision.refusal()?;
    let what = match decision.action {
        Action::Replace => "must be replaced, but the old object is kept because the new one cannot be created",
        Action::Create => "the object cannot be created",
        _ => "the object cannot be updated",
    };
    let block = Block::failed(input.address(id), what, refusal.error.clone());
    Some(Block { held: decision.action != Action::Create, ..block })
}

/// For each object whose change is refused, those with a step that may resolve that: its dependencies, and what the driver
/// names. An object whose own change is refused counts only if that one is resolved too, so a chain of names has remedies,
/// and a circle has none.
pub fn remedies(input: &PlanInput<'_>, decisions: &[Option<Decision>]) -> BTreeMap<Id, Vec<Id>> {
    let mut found: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
    let mut uncertain: Vec<(Id, Id)> = Vec::new();
    let idle: Vec<Id> = (0..input.objects).filter(|id| !input.running.contains_key(id)).collect();
    for id in idle.iter().copied() {
        let Some(refusal) = decisions[id].as_ref().and_then(Decision::refusal) else { continue };
        let mut certain = changing_dependencies(input, decisions, id);
        for other in idle.iter().copied().filter(|other| *other != id) {
            match resolves(input, decisions, (id, refusal), other) {
                Some(Resolved::Surely) => certain.push(other),
                Some(Resolved::IfResolved) => uncertain.push((id, other)),
                None => {}
            }
        }
        if !certain.is_empty() {
            found.insert(id, certain);
        }
    }
    loop {
        let (resolved, rest): (Vec<_>, Vec<_>) =
            uncertain.into_iter().partition(|(_, other)| found.contains_key(other));
        if resolved.is_empty() {
            break;
        }
        resolved.into_iter().for_each(|(id, other)| found.entry(id).or_default().push(other));
        uncertain = rest;
    }
    for others in found.values_mut() {
        others.sort_unstable();
        others.dedup();
    }
    found
}

/// Whether a step of another object resolves a refusal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Resolved {
    /// If the refusal of the other object is resolved.
    IfResolved,
    Surely,
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
    (0..input.objects)
        .filter(|other| *other != id && visited[*other])
        .filter(|other| decisions[*other].as_ref().is_some_and(Decision::changes_object))
        .collect()
}

/// Whether a step of `other` is one of the remedies.
fn resolves(
    input: &PlanInput<'_>,
    decisions: &[Option<Decision>],
    (id, refusal): (Id, &Refusal),
    other: Id,
) -> Option<Resolved> {
    let (refused, decision) = (decisions[id].as_ref()?, decisions[other].as_ref()?);
    // Another provider configuration may be another place.
    let [place, other_place] =
        [refused, decision].map(|decision| decision.provider.as_ref().map(|provider| &provider.digest));
    if input.nodes[id].type_name() != input.nodes[other].type_name() || place != other_place {
        return None;
    }
    let resolved = refusal.remedies.iter().filter_map(|remedy| match remedy {
        Remedy::Applied(part) => {
            let planned = decision.planned.as_ref().filter(|_| decision.changes_object());
            planned.is_some_and(|planned| Remedy::contains(&planned.config, part)).then_some(Resolved::Surely)
        }
        Remedy::Removed(part) => removes(decision, part),
    });
    resolved.max()
}

/// Whether an object destroys, and does not make again, an object whose identity contains `part`. An object whose own
/// change is refused may stay.
fn removes(decision: &Decision, part: &Value) -> Option<Resolved> {
    let mut deposed = decision.deposed.iter().filter(|deposed| deposed.action == Action::Destroy);
    if deposed.any(|deposed| identity_contains(deposed.object.identity.as_ref(), part)) {
        return Some(Resolved::Surely);
    }
    decision.prior.as_ref().filter(|prior| identity_contains(prior.identity.as_ref(), part))?;
    match decision.action {
        Action::Destroy => Some(Resolved::Surely),
        Action::Replace if !decision.forget && decision.hold_destroy.is_none() => {
            let planned = decision.planned.as_ref()?;
            if identity_contains(planned.identity.as_ref(), part) {
                return None;
            }
            Some(if planned.refusal.is_some() { Resolved::IfResolved } else { Resolved::Surely })
        }
        _ => None,
    }
}

fn identity_contains(identity: Option<&Value>, part: &Value) -> bool {
    identity.is_some_and(|identity| Remedy::contains(identity, part))
}
