//! Families: determines the instances of a family and its value for dependents.
//!
//! The expressions of a family are evaluated once their dependencies are decided. Planning then starts again with the
//! new instances ([`super::Planner::expansions`]). While the instances are not known, no recorded object of the family
//! is an orphan.

use std::collections::BTreeMap;

use super::UNDECIDED;
use super::decision::{Block, Decision};
use super::eval_scope::EvalScope;
use super::input::{Id, PlanInput};
use super::missing_record::lost_instances;
use super::missing_reference::{excuse_missing, not_found};
use crate::load::{Expansion, Family, InstanceKeys, RepetitionResult};
use model::{Diagnostic, Reason, Severity, Stem};

/// The evaluated expressions of this round.
#[derive(Default)]
pub struct Families {
    /// By name: why the instances must not be changed. `None` if they match the configuration.
    gates: BTreeMap<Stem, Option<Block>>,
    /// Families whose instances became known in this round.
    pub expansions: BTreeMap<Stem, InstanceKeys>,
}

impl Families {
    /// Dependencies are decided again, so their expressions must be evaluated again.
    pub fn reset(&mut self) {
        self.gates.clear();
    }

    /// Decides about junctions, and about objects whose family blocks them. `None` if planning continues.
    pub fn decide(&mut self, scope: &EvalScope<'_, '_>, id: Id) -> Option<Decision> {
        let input = scope.input;
        let block = input.gates(id).into_iter().find_map(|family| self.gate(scope, family));
        let node = input.nodes[id];
        if input.is_junction(id) {
            return Some(match (node.family, block) {
                (None, _) => Decision::no_op(),
                (Some(_), Some(block)) => Decision::blocked(block, None),
                (Some(family), None) if node.desired => family_value(scope, id, family),
                (Some(family), None) => match lost_instances(input, &family.shared) {
                    Some(lost) => Decision::blocked(Block::held(lost), None),
                    None => remaining_value(scope, id, family),
                },
            });
        }
        let block = block?;
        let cause = block.cause();
        let diagnostic =
            Diagnostic { severity: cause.severity, ..Diagnostic::error(node.address, cause.reason, UNDECIDED) };
        let why = cause.path.iter().map(|path| format!("{path}: ")).chain([cause.summary.clone()]).collect::<String>();
        let held = Block { held: true, ..Block::broken(diagnostic.because(why)) };
        Some(Decision::blocked(held.waiting_for(block.waiting_for), node.current()))
    }

    /// Why the instances of a family must not be changed, if so.
    fn gate(&mut self, scope: &EvalScope<'_, '_>, family: &Family) -> Option<Block> {
        let name = &family.shared.address.stem;
        if let Some(known) = self.gates.get(name) {
            return known.clone();
        }
        let gate = match &family.expansion {
            Expansion::Failed(problems) => {
                Some(Block { diagnostics: problems.clone(), waiting_for: Vec::new(), held: false, frozen: false })
            }
            Expansion::Pending => match evaluate(scope, family) {
                Ok(members) => {
                    self.expansions.insert(name.clone(), members);
                    Some(not_ready(family, "its instances are being determined"))
                }
                Err(block) => Some(*block),
            },
            Expansion::Known(members) => match evaluate(scope, family) {
                Ok(now) if now == *members => None,
                Ok(_) => Some(not_ready(family, "its instances differ after a dependency was blocked")),
                Err(block) => Some(*block),
            },
        };
        self.gates.insert(name.clone(), gate.clone());
        gate
    }
}

/// The instances according to the planned dependencies, or why they are not known.
fn evaluate(scope: &EvalScope<'_, '_>, family: &Family) -> Result<InstanceKeys, Box<Block>> {
    let input = scope.input;
    let address = &family.shared.address;
    let references = &family.repetition().references;
    if let Some(missing) = references.iter().find(|reference| input.resolve(&reference.target).is_none()) {
        return Err(Box::new(excuse_missing(input, Block::broken(not_found(input, address, missing)))));
    }
    let targets: Vec<Id> = references.iter().filter_map(|reference| input.resolve(&reference.target)).collect();
    let hidden: Vec<Id> = targets.iter().flat_map(|target| scope.hidden(*target)).collect();
    if let Some(first) = hidden.first() {
        let what = format!("waits for `{}`", input.address(*first));
        let mut waits = Diagnostic::error(address, Reason::DependencyNotReady, what);
        if let Some(block) = scope.decision(*first).and_then(|decision| decision.block.as_deref()) {
            waits.severity = block.cause().severity;
            waits.detail = format!("it cannot be planned ({}: {})", block.reason(), block.cause().cause());
        }
        let path = references.first().map(|reference| reference.at.clone());
        return Err(Box::new(Block::broken(Diagnostic { path, ..waits }).waiting_for(hidden)));
    }
    match family.evaluate(scope) {
        Ok(RepetitionResult::Instances(members)) => Ok(members),
        Ok(RepetitionResult::Unknown(at)) => {
            let what = "its instances are known only after its dependencies are applied";
            let waits = Diagnostic::warning(address, Reason::DependencyNotReady, what);
            // In another language, the field has another name.
            let waits = if address.is_qualified() { waits } else { waits.at(at) };
            let changing =
                targets.into_iter().filter(|target| scope.decision(*target).is_some_and(|decision| decision.changed));
            Err(Box::new(Block::broken(waits).waiting_for(changing)))
        }
        Err(problems) => {
            let diagnostics =
                problems.into_iter().map(|problem| Diagnostic { address: Some(address.clone()), ..problem }).collect();
            Err(Box::new(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }))
        }
    }
}

fn not_ready(family: &Family, what: &str) -> Block {
    Block::broken(Diagnostic::warning(&family.shared.address, Reason::DependencyNotReady, what))
}

/// The value of a whole family once all its instances are decided: a list, a map, or null.
fn family_value(scope: &EvalScope<'_, '_>, id: Id, family: &Family) -> Decision {
    let input = scope.input;
    let members = scope.objects(id);
    let hidden: Vec<Id> = members.iter().copied().filter(|member| scope.is_hidden(*member)).collect();
    if let Some(first) = hidden.first() {
        let cause = scope.decision(*first).and_then(|decision| decision.block.as_deref());
        let severity = cause.map_or(Severity::Warning, |block| block.cause().severity);
        let what = format!("waits for `{}`", input.address(*first));
        let waits = Diagnostic::error(input.address(id), Reason::DependencyNotReady, what);
        return Decision::blocked(Block::broken(Diagnostic { severity, ..waits }).waiting_for(hidden), None);
    }
    let value =
        family.value(members.iter().map(|member| (input.address(*member).key.clone(), Some(scope.value(*member)))));
    let loses_instances =
        input.members(id).any(|member| !input.nodes[member].desired && input.nodes[member].current().is_some());
    let changed = loses_instances
        || members.iter().any(|member| scope.decision(*member).is_some_and(|decision| decision.changed));
    Decision { value: Some(value), changed, ..Decision::no_op() }
}

/// The value of a family that is being deleted: that of the instances that still exist. As with any object that is being
/// deleted, its dependents keep their value until they are deleted too.
fn remaining_value(scope: &EvalScope<'_, '_>, id: Id, family: &Family) -> Decision {
    let input = scope.input;
    let configured = input.members(id).filter(|member| input.nodes[*member].configured);
    let value = family.value(configured.map(|member| {
        let value = scope.decision(member).and_then(|decision| decision.value.clone());
        (input.address(member).key.clone(), value)
    }));
    Decision { value: Some(value), ..Decision::no_op() }
}

/// Whether the instances of a family, or of a group around an object, are not known, so that diagnostics refer to these.
pub fn is_unexpanded(input: &PlanInput<'_>, id: Id) -> bool {
    input.gates(id).iter().any(|family| !matches!(family.expansion, Expansion::Known(_)))
}
