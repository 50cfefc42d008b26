//! Resources that stand for several objects: which instances there are, as far as expressions tell it, and what others
//! see of the whole family.
//!
//! A family whose expressions are not evaluated yet is a question like any other: once what they refer to is decided,
//! the answer is there, and planning begins anew with the instances ([`super::Planner::expansions`]). Until then, and
//! when there is no answer, nothing that is recorded of the family is an orphan.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::{Block, Draft};
use super::preflight::not_found;
use super::scene::{Id, Scene};
use super::seen::Seen;
use crate::load::{Expansion, Family, Made, Members};
use crate::model::{Diagnostic, Reason, Severity};

/// What the expressions of families gave in this round.
#[derive(Default)]
pub(super) struct Families {
    /// By name: why nothing may be done about its instances; `None` when they are those of the configuration.
    gates: BTreeMap<Arc<str>, Option<Block>>,
    /// Families whose instances are known only now.
    pub expansions: BTreeMap<Arc<str>, Members>,
}

impl Families {
    /// Dependencies are decided anew: so are the expressions that refer to them.
    pub fn forget(&mut self) {
        self.gates.clear();
    }

    /// The decision about an object whose family does not let it be touched, and about junctions. `None`: planning has
    /// to go on.
    pub fn decide(&mut self, seen: &Seen<'_, '_>, id: Id) -> Option<Draft> {
        let scene = seen.scene;
        let block = scene.gate(id).and_then(|family| self.gate(seen, family));
        let subject = scene.subjects[id];
        if scene.is_junction(id) {
            let family = subject.family.filter(|_| subject.wanted);
            return Some(match (family, block) {
                // Nobody refers to it, or it is being deleted, and with it all its instances.
                (None, _) => Draft::nothing(),
                (Some(_), Some(block)) => Draft::blocked(block, None),
                (Some(family), None) => whole(seen, id, family),
            });
        }
        let block = block?;
        let cause = block.leading();
        let what = "stays as it is, since it cannot be told whether it is wanted";
        let diagnostic =
            Diagnostic { severity: cause.severity, ..Diagnostic::error(subject.address, cause.reason, what) };
        let why = cause.path.iter().map(|path| format!("{path}: ")).chain([cause.summary.clone()]).collect::<String>();
        let held = Block { held: true, ..Block::broken(diagnostic.because(why)) };
        Some(Draft::blocked(held.waiting_for(block.waiting_for), subject.current()))
    }

    /// Why nothing may be done about the instances of a family, if anything.
    fn gate(&mut self, seen: &Seen<'_, '_>, family: &Family) -> Option<Block> {
        let name = &family.shared.address.name;
        if let Some(known) = self.gates.get(name) {
            return known.clone();
        }
        let gate = match &family.expansion {
            Expansion::Failed(problems) => {
                Some(Block { diagnostics: problems.clone(), waiting_for: Vec::new(), held: false, frozen: false })
            }
            Expansion::Open => match evaluate(seen, family) {
                Ok(members) => {
                    self.expansions.insert(name.clone(), members);
                    Some(not_ready(family, "its instances are being made out"))
                }
                Err(block) => Some(*block),
            },
            Expansion::Known(members) => match evaluate(seen, family) {
                Ok(now) if now == *members => None,
                Ok(_) => {
                    Some(not_ready(family, "other instances than these are wanted after a dependency was held back"))
                }
                Err(block) => Some(*block),
            },
        };
        self.gates.insert(name.clone(), gate.clone());
        gate
    }
}

/// The instances as dependencies are planned by now, or why they cannot be told.
fn evaluate(seen: &Seen<'_, '_>, family: &Family) -> Result<Members, Box<Block>> {
    let scene = seen.scene;
    let address = &family.shared.address;
    let references = &family.repetition().references;
    if let Some(missing) = references.iter().find(|reference| scene.resolve(&reference.target).is_none()) {
        return Err(Box::new(Block::broken(not_found(scene, address, missing))));
    }
    let targets = || references.iter().filter_map(|reference| scene.resolve(&reference.target));
    let hidden: Vec<Id> = targets().flat_map(|target| seen.hidden(target)).collect();
    if let Some(first) = hidden.first() {
        let what = format!("waits for `{}`", scene.address(*first));
        let mut waits = Diagnostic::error(address, Reason::DependencyNotReady, what);
        if let Some(block) = seen.draft(*first).and_then(|draft| draft.block.as_deref()) {
            waits.severity = block.leading().severity;
            waits.detail = format!("it cannot be planned ({}: {})", block.reason(), block.leading().summary);
        }
        let path = references.first().map(|reference| reference.at.clone());
        return Err(Box::new(Block::broken(Diagnostic { path, ..waits }).waiting_for(hidden)));
    }
    match family.evaluate(seen) {
        Ok(Made::Members(members)) => Ok(members),
        Ok(Made::Unknown(at)) => {
            let what = "which objects there are is known only after its dependencies are applied";
            let waits = Diagnostic::warning(address, Reason::DependencyNotReady, what).at(at);
            let changing = targets().filter(|target| seen.draft(*target).is_some_and(|draft| draft.changed));
            Err(Box::new(Block::broken(waits).waiting_for(changing)))
        }
        Err(problems) => {
            let own = |problem| Diagnostic { address: Some(address.clone()), ..problem };
            let diagnostics = problems.into_iter().map(own).collect();
            Err(Box::new(Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false }))
        }
    }
}

fn not_ready(family: &Family, what: &str) -> Block {
    Block::broken(Diagnostic::warning(&family.shared.address, Reason::DependencyNotReady, what))
}

/// What is seen of a whole family once all its instances are decided: a list, a map, or null.
fn whole(seen: &Seen<'_, '_>, id: Id, family: &Family) -> Draft {
    let scene = seen.scene;
    let wanted = || scene.members(id).filter(|member| scene.subjects[*member].wanted);
    let drafts = || wanted().filter_map(|member| seen.draft(member).map(|draft| (member, draft)));
    let hidden: Vec<Id> =
        wanted().filter(|member| seen.draft(*member).is_none_or(|draft| draft.seen.is_none())).collect();
    if let Some(first) = hidden.first() {
        let cause = drafts().find(|(member, _)| member == first).and_then(|(_, draft)| draft.block.as_deref());
        let severity = cause.map_or(Severity::Warning, |block| block.leading().severity);
        let what = format!("waits for `{}`", scene.address(*first));
        let waits = Diagnostic::error(scene.address(id), Reason::DependencyNotReady, what);
        return Draft::blocked(Block::broken(Diagnostic { severity, ..waits }).waiting_for(hidden), None);
    }
    let value = family.value(wanted().map(|member| (scene.address(member).key.clone(), Some(seen.value(member)))));
    // One that goes was part of it until now.
    let leaves = |member: Id| !scene.subjects[member].wanted && scene.subjects[member].current().is_some();
    let changed = scene.members(id).any(leaves) || drafts().any(|(_, draft)| draft.changed);
    Draft { seen: Some(value), changed, ..Draft::nothing() }
}

/// Whether the instances of a Resource are not known, so that the Resource itself is what is told of.
pub(super) fn is_unexpanded(scene: &Scene<'_>, id: Id) -> bool {
    scene.gate(id).is_some_and(|family| !matches!(family.expansion, Expansion::Known(_)))
}
