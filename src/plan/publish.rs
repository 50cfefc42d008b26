//! What an object publishes, compared with what its record says.

use std::collections::BTreeMap;

use super::Mode;
use super::draft::{Block, Draft};
use super::scene::{Id, Scene};
use super::seen::Seen;
use crate::load::Instance;
use crate::load::Publication;
use crate::load::publish::{self, Published};
use crate::model::{DataRef, Diagnostic, PublishedCopy, Reason};

/// Looks at the copies of an object that was just decided. What cannot be published blocks it before anything is made;
/// what differs from the record gives the object a step, though it stays as it is itself. `drifted`: somebody else has
/// changed a copy.
pub(super) fn look(seen: &Seen<'_, '_>, id: Id, drifted: bool, draft: &mut Draft) {
    let subject = seen.scene.subjects[id];
    let Some(instance) = subject.instance.filter(|_| subject.wanted && !draft.is_blocked()) else { return };
    let recorded = subject.record.map(|record| record.published.as_slice()).unwrap_or_default();
    if instance.publish.is_empty() && recorded.is_empty() {
        return;
    }
    let Some(itself) = draft.seen.clone() else { return };
    match publish::evaluate(instance, &itself, seen) {
        Ok(wanted) => {
            draft.copies_drifted = drifted;
            draft.publishes = differs(instance, &wanted, recorded, drifted);
        }
        Err(diagnostics) => {
            let block = Block { diagnostics, waiting_for: Vec::new(), held: false, frozen: false };
            draft.block(block, subject.current());
        }
    }
}

/// The error of each object that is to publish where another one does: only one of them can write the copy. That is the
/// one that has, or else the first.
pub(super) fn claimed_twice(scene: &Scene<'_>) -> BTreeMap<Id, Diagnostic> {
    let mut claims: BTreeMap<&DataRef, Vec<(Id, &Publication)>> = BTreeMap::new();
    if scene.options.mode != Mode::Normal {
        return BTreeMap::new();
    }
    for (id, subject) in scene.subjects.iter().enumerate().filter(|(_, subject)| subject.wanted) {
        for publication in subject.instance.iter().flat_map(|instance| instance.publish.iter()) {
            claims.entry(&publication.target).or_default().push((id, publication));
        }
    }
    let mut refused = BTreeMap::new();
    for (target, all) in claims.into_iter().filter(|(_, all)| all.len() > 1) {
        let has_written = |id: Id| {
            let copies = scene.subjects[id].record.iter().flat_map(|record| &record.published);
            copies.into_iter().any(|copy| copy.target == *target && !copy.uid.is_empty())
        };
        let owner = all.iter().map(|(id, _)| *id).find(|id| has_written(*id)).unwrap_or(all[0].0);
        for (id, publication) in all.into_iter().filter(|(id, _)| *id != owner) {
            let (address, owner) = (scene.address(id), scene.address(owner));
            let what = format!("`{owner}` publishes {} `{}` as well", target.kind.as_str(), target.name);
            let hint = if address.name == owner.name {
                "name the copy of each instance with `${each.key}` or `${count.index}`, or let one Resource read them all"
            } else {
                "publish under another name, or all keys by one of the two"
            };
            let told = Diagnostic::error(address, Reason::PublishConflict, what).at(publication.at.clone()).hint(hint);
            refused.entry(id).or_insert(told);
        }
    }
    refused
}

fn differs(instance: &Instance, wanted: &Published, recorded: &[PublishedCopy], drifted: bool) -> Option<&'static str> {
    if recorded.iter().any(|copy| !wanted.contains_key(&copy.target)) {
        return Some("something is no longer published");
    }
    let as_recorded = |(target, texts): (&_, &Option<_>)| {
        let (Some(copy), Some(texts)) = (recorded.iter().find(|copy| copy.target == *target), texts) else {
            return false;
        };
        let same = (&copy.owner, &copy.service_account) == (&instance.uid, &instance.service_account);
        same && !copy.uid.is_empty() && publish::recorded(texts).same(&copy.data)
    };
    if !wanted.iter().all(as_recorded) {
        return Some("what it publishes changed");
    }
    drifted.then_some("a published copy was changed outside of Purlin")
}
