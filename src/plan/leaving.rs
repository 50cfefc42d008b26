//! What happens to objects that are not wanted (any more), and to leftovers: destroyed, forgotten, or held.
//!
//! Nothing is evaluated here: a destroy never depends on configuration that can be evaluated.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::{Block, Draft, LeftoverDraft};
use super::drift::difference;
use super::progress::{Progress, Refreshed};
use super::protect::prevented_block;
use super::scene::{Id, Scene, Subject};
use super::served::unserved;
use super::{Mode, drift};
use crate::model::{Action, DeposedKey, Diagnostic, Reason, RecordedObject, Severity};

/// Why an object that is not wanted must be left alone, as far as that can be told without asking.
pub(super) fn at_once(scene: &Scene<'_>, id: Id) -> Option<Block> {
    let subject = scene.subjects[id];
    if subject.instance.is_none() && scene.options.mode == Mode::Normal {
        if !scene.options.destroy_orphans {
            let what = "there is a record, but no Resource: the object is left alone";
            let hint = format!("create the Resource again to adopt it, or run `purlin state rm {}`", subject.address);
            return Some(Block::frozen(Diagnostic::warning(subject.address, Reason::Abandoned, what).hint(hint)));
        }
        if let Some(incomplete) = &scene.incomplete {
            let what = "not destroyed, though its manifest is missing: part of the source could not be read";
            let held = Diagnostic::error(subject.address, Reason::SourceIncomplete, what).because(incomplete.clone());
            return Some(Block::frozen(held));
        }
    }
    if let Some(block) = of_broken(scene, id) {
        return Some(block);
    }
    let record = subject.record.filter(|record| record.has_objects())?;
    all_destroys_held(scene, subject).or_else(|| {
        let kept = |object: &Arc<RecordedObject>| subject.keeps_object(object);
        let is_unserved = scene.schema(id).is_none();
        (is_unserved && !record.current.iter().chain(record.deposed.values()).all(kept)).then(|| {
            let problem = unserved(scene, id);
            let what = format!("cannot be destroyed: {}", problem.summary);
            Block::frozen(Diagnostic { summary: what, path: None, ..problem })
        })
    })
}

/// What is recorded of a family whose Resource cannot be understood stays: nobody can tell which instances it is to
/// have, if the field that says so is the one that is wrong. The error is told once, at the Resource.
pub(super) fn of_broken(scene: &Scene<'_>, id: Id) -> Option<Block> {
    let subject = scene.subjects[id];
    let of_single = subject.family.is_none() && !subject.configured && scene.options.mode == Mode::Normal;
    let resource = subject.instance.filter(|instance| of_single && instance.is_wanted())?;
    let cause = resource.problems.iter().find(|problem| problem.severity == Severity::Error)?;
    let what = "stays as it is, since it cannot be told whether it is wanted";
    let why = cause.path.iter().map(|path| format!("{path}: ")).chain([cause.summary.clone()]).collect::<String>();
    Some(Block::held(Diagnostic::error(subject.address, cause.reason, what).because(why)))
}

/// Nothing may be destroyed at all.
pub(super) fn all_destroys_held(scene: &Scene<'_>, subject: Subject<'_>) -> Option<Block> {
    let held = scene.options.hold_destroys.as_ref()?;
    Some(Block::held(Diagnostic::error(subject.address, held.reason, held.message.clone())))
}

/// The decision about an object that is not wanted, after it was read if that was due.
pub(super) fn decide(scene: &Scene<'_>, id: Id, progress: &mut Progress) -> Draft {
    let subject = scene.subjects[id];
    let Some(record) = subject.record else { return Draft::nothing() };
    let Some(current) = &record.current else {
        // A record of nothing goes too. One that still has leftovers goes with the last of them.
        let action = if record.has_objects() { Action::NoOp } else { Action::Forget };
        return Draft { action, because: Some("nothing is left of it".to_owned()), ..Draft::nothing() };
    };
    let seen = Some(current.value.clone());
    match going(scene, subject, current, progress.current.take()) {
        Going::Goes { action, because, object } => {
            let forget = action == Action::Forget;
            Draft { action, because: Some(because), forget, prior: object, seen, ..Draft::nothing() }
        }
        Going::Stays(block) => Draft::blocked(block, Some(current)),
    }
}

/// The decision of a plan that changes no object: the record follows what was read, and goes with what is gone.
pub(super) fn refreshed(scene: &Scene<'_>, id: Id, progress: &mut Progress) -> Draft {
    let subject = scene.subjects[id];
    let Some(current) = subject.current() else { return Draft::nothing() };
    match progress.current.clone() {
        None => Draft::unchanged(Some(current)),
        Some(Refreshed::Found(now)) => {
            Draft { record_differs: difference(current, &now), ..Draft::unchanged(Some(&now)) }
        }
        Some(Refreshed::Gone) => {
            let because = Some("it does not exist any more".to_owned());
            Draft { action: Action::Forget, because, forget: true, ..Draft::nothing() }
        }
        Some(Refreshed::Elsewhere) => Draft::blocked(drift::elsewhere(scene, subject), Some(current)),
        Some(Refreshed::Failed(error)) => {
            Draft::blocked(Block::failed(subject.address, "the object could not be read", error), Some(current))
        }
    }
}

/// The decisions about the leftovers of any object.
pub(super) fn leftovers(scene: &Scene<'_>, id: Id, refreshed: Vec<(DeposedKey, Refreshed)>) -> Vec<LeftoverDraft> {
    let subject = scene.subjects[id];
    let Some(record) = subject.record.filter(|record| !record.deposed.is_empty()) else { return Vec::new() };
    let mut refreshed: BTreeMap<_, _> = refreshed.into_iter().collect();
    let decide = |(key, object): (&DeposedKey, &Arc<RecordedObject>)| {
        let mut draft = LeftoverDraft {
            key: *key,
            object: object.clone(),
            action: Action::Destroy,
            block: None,
            because: Some("left over from a replacement".to_owned()),
            exists: true,
        };
        if scene.running_leftovers.contains_key(&(id, *key)) {
            draft.because = Some("a step of it is running".to_owned());
            return draft;
        }
        match all_destroys_held(scene, subject) {
            _ if scene.options.mode == Mode::RefreshOnly => leave(scene, subject, &mut draft, refreshed.remove(key)),
            Some(block) => draft.block(block),
            None => match going(scene, subject, object, refreshed.remove(key)) {
                Going::Goes { action, because, object: now } => {
                    draft.exists = now.is_some();
                    draft.action = action;
                    draft.because = Some(because);
                    // Its own flag counts too, as in Terraform: it was deposed under that promise.
                    if object.skip_destroy {
                        draft.action = Action::Forget;
                    }
                }
                Going::Stays(block) => draft.block(block),
            },
        }
        draft
    };
    record.deposed.iter().map(decide).collect()
}

/// A leftover is not worth a record of how it is: it is read again before it goes. Only what is gone is forgotten.
fn leave(scene: &Scene<'_>, subject: Subject<'_>, draft: &mut LeftoverDraft, refreshed: Option<Refreshed>) {
    draft.because = None;
    match refreshed {
        None | Some(Refreshed::Found(_)) => draft.action = Action::NoOp,
        Some(Refreshed::Gone) => {
            draft.action = Action::Forget;
            draft.because = Some("it does not exist any more".to_owned());
        }
        Some(Refreshed::Elsewhere) => draft.block(drift::elsewhere(scene, subject)),
        Some(Refreshed::Failed(error)) => {
            draft.block(Block::failed(subject.address, "the object could not be read", error));
        }
    }
}

enum Going {
    Goes { action: Action, because: String, object: Option<Arc<RecordedObject>> },
    Stays(Block),
}

/// Whether and how one object goes.
fn going(scene: &Scene<'_>, subject: Subject<'_>, object: &Arc<RecordedObject>, refreshed: Option<Refreshed>) -> Going {
    let leftover = subject.current().is_none_or(|current| !Arc::ptr_eq(current, object));
    let now = match refreshed {
        None => object.clone(),
        Some(Refreshed::Found(now)) => now,
        Some(Refreshed::Gone) => {
            let because = "it does not exist any more".to_owned();
            return Going::Goes { action: Action::Forget, because, object: None };
        }
        Some(Refreshed::Elsewhere) => return Going::Stays(drift::elsewhere(scene, subject)),
        Some(Refreshed::Failed(error)) => {
            return Going::Stays(Block::failed(subject.address, "the object could not be read", error));
        }
    };
    let because = match (leftover, scene.options.mode, subject.instance) {
        (true, ..) => "left over from a replacement",
        (false, Mode::Destroy, _) if scene.selected.is_empty() => "everything is to be destroyed",
        (false, Mode::Destroy, _) => "selected, or depends on what is selected",
        (false, Mode::Normal, Some(instance)) if !instance.is_wanted() => "the Resource is being deleted",
        (false, Mode::Normal, Some(_)) if subject.family.is_some_and(|family| family.is_disabled()) => {
            "disabled (`enabled: false`)"
        }
        (false, ..) => "no longer wanted",
    };
    if subject.keeps_object(object) {
        let why = match subject.instance.filter(|instance| instance.keeps_object()) {
            Some(instance) if !instance.policies.delete => "without the policy `Delete`",
            Some(_) => "`deletionPolicy: Orphan`",
            None => "as its Resource said",
        };
        let because = format!("{because}; the object stays ({why})");
        return Going::Goes { action: Action::Forget, because, object: Some(now) };
    }
    if subject.prevents_destroy(object) {
        let what = format!("the object must be destroyed, and `preventDestroy` forbids it: {because}");
        return Going::Stays(prevented_block(scene, subject, what));
    }
    Going::Goes { action: Action::Destroy, because: because.to_owned(), object: Some(now) }
}
