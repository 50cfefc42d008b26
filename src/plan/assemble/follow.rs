//! What is recorded of an object that gets no step of its own, since it is blocked, or since the plan changes no object: what
//! was read, and what its manifest says about keeping it.

use super::{Expressed, prepared_from};
use crate::model::{Action, Reason, RecordedObject};
use crate::plan::Prepared;
use crate::plan::draft::Draft;
use crate::plan::scene::{Id, Scene, Subject};

/// What is recorded of an object that is only read, or blocked: itself, with the flags and edges that it has, and with
/// what its manifest says about keeping it.
pub(super) fn follow(scene: &Scene<'_>, id: Id, draft: &mut Draft, expressed: &Expressed) -> Option<Prepared> {
    let subject = scene.subjects[id];
    let record = subject.record?;
    let is_busy = scene.running.contains_key(&id) || record.intent.is_some() || record.moving_to.is_some();
    if is_busy || !scene.is_selected(id) || waits_to_record(scene, subject) {
        return None;
    }
    let object = draft.prior.clone().filter(|_| matches!(draft.action, Action::NoOp | Action::Blocked))?;
    // What an expression says is known for objects with a Resource only; without one the record stays as it is.
    let prevented = subject.instance.is_some() && expressed.prevent_destroy;
    let prevent_destroy = prevented || (object.prevent_destroy && !subject.may_take_back());
    let skip_destroy = subject.keeps_object(&object);
    let rules = [
        (object.prevent_destroy != prevent_destroy, "`preventDestroy` changed"),
        (object.skip_destroy != skip_destroy, "what happens to it in the end changed"),
    ];
    let kept = || rules.into_iter().find(|(changed, _)| *changed).map(|(_, because)| because);
    let because = draft.record_differs.or_else(kept)?;
    if draft.action == Action::NoOp {
        draft.action = Action::Record;
        draft.because = Some(because.to_owned());
    }
    Some(Prepared {
        planned: object.value.clone(),
        private: object.private.clone(),
        recorded: RecordedObject { prevent_destroy, skip_destroy, ..object.as_ref().clone() },
        prior: Some(object),
        only_follows: true,
        ..prepared_from(scene, id, Action::Record)
    })
}

/// Its record could not be written just now.
fn waits_to_record(scene: &Scene<'_>, subject: Subject<'_>) -> bool {
    let held = scene.options.held.get(subject.address);
    held.is_some_and(|held| held.reason == Reason::RecordNotWritten)
}
