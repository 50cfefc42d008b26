//! What an object publishes, compared with what its record says.

use super::draft::{Block, Draft};
use super::scene::Id;
use super::seen::Seen;
use crate::load::Instance;
use crate::load::publish::{self, Published};
use crate::model::PublishedCopy;

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
