//! Compares the published copies of an object with its record.

use std::collections::BTreeMap;

use super::Mode;
use super::decision::{Block, Decision};
use super::eval_scope::EvalScope;
use super::input::{Id, PlanInput};
use crate::load::Instance;
use crate::load::Publication;
use crate::load::publish::{self, PublishedData};
use model::{ChangeCause, DataRef, Diagnostic, PublishedCopy, Reason};

/// Checks the copies of an object that was just decided. A copy that cannot be published blocks the object. A
/// difference from the record gives an unchanged object a step. `drifted`: another client changed a copy.
pub fn check_copies(scope: &EvalScope<'_, '_>, id: Id, drifted: bool, decision: &mut Decision) {
    let node = scope.input.nodes[id];
    let Some(instance) = node.instance.filter(|_| node.desired && !decision.is_blocked()) else { return };
    let recorded = node.record.map(|record| record.published.as_slice()).unwrap_or_default();
    if instance.publish.is_empty() && recorded.is_empty() {
        return;
    }
    let Some(itself) = decision.value.clone() else { return };
    match publish::evaluate(instance, &itself, scope) {
        Ok(desired) => {
            decision.copies_drifted = drifted;
            decision.publishes = differs(instance, &desired, recorded, drifted);
        }
        Err(diagnostics) => {
            let block = Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false };
            decision.block(block, node.current());
        }
    }
}

/// The error of each object that publishes to the same target as another one. The object that has written the copy
/// keeps the target, or else the first one.
pub fn conflicts(input: &PlanInput<'_>) -> BTreeMap<Id, Diagnostic> {
    let mut claims: BTreeMap<&DataRef, Vec<(Id, &Publication)>> = BTreeMap::new();
    if input.options.mode != Mode::Normal {
        return BTreeMap::new();
    }
    for (id, node) in input.nodes.iter().enumerate().filter(|(_, node)| node.desired) {
        for publication in node.instance.iter().flat_map(|instance| instance.publish.iter()) {
            claims.entry(&publication.target).or_default().push((id, publication));
        }
    }
    let mut refused = BTreeMap::new();
    for (target, publishers) in claims.into_iter().filter(|(_, publishers)| publishers.len() > 1) {
        let mut ids = publishers.iter().map(|(id, _)| *id);
        let owner = ids.find(|id| has_written(input, *id, target)).unwrap_or(publishers[0].0);
        for (id, publication) in publishers.into_iter().filter(|(id, _)| *id != owner) {
            let (address, owner) = (input.address(id), input.address(owner));
            let what = format!("`{owner}` also publishes {} `{}`", target.kind.as_str(), target.name);
            let hint = if address.stem == owner.stem {
                "use `${each.key}` or `${count.index}` in the name of each copy, or publish all from one Resource"
            } else {
                "publish under another name, or publish all keys from one of them"
            };
            let error = Diagnostic::error(address, Reason::PublishConflict, what).at(publication.at.clone()).hint(hint);
            refused.entry(id).or_insert(error);
        }
    }
    refused
}

fn has_written(input: &PlanInput<'_>, id: Id, target: &DataRef) -> bool {
    let mut copies = input.nodes[id].record.iter().flat_map(|record| &record.published);
    copies.any(|copy| copy.target == *target && !copy.uid.is_empty())
}

fn differs(
    instance: &Instance,
    desired: &PublishedData,
    recorded: &[PublishedCopy],
    drifted: bool,
) -> Option<ChangeCause> {
    if recorded.iter().any(|copy| !desired.contains_key(&copy.target)) {
        return Some(ChangeCause::CopyRemoved);
    }
    for (target, texts) in desired {
        let copy = recorded.iter().find(|copy| copy.target == *target);
        let is_same = copy.zip(texts.as_ref()).is_some_and(|(copy, texts)| {
            (&copy.owner, &copy.service_account) == (&instance.uid, &instance.service_account)
                && !copy.uid.is_empty()
                && publish::to_recorded(texts).equals_unmarked(&copy.data)
        });
        if !is_same {
            return Some(ChangeCause::PublishedData);
        }
    }
    drifted.then_some(ChangeCause::CopyDrifted)
}
