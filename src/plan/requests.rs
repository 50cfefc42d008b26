//! What a Resource asks for once: to import its object, or to replace it.

use std::sync::Arc;

use super::scene::{Id, Scene};
use crate::load::Instance;
use crate::model::{ImportRequest, Reason};

/// The id to import the object by, when it has no object yet. It is ignored once there is one, and while a replacement
/// is pending: then the id names the object that was destroyed.
pub(super) fn import_of(scene: &Scene<'_>, id: Id) -> Option<ImportRequest> {
    let subject = scene.subjects[id];
    let import = subject.instance?.import.clone()?;
    let unknown_outcome =
        scene.options.held.get(subject.address).is_some_and(|held| held.reason == Reason::CreateOutcomeUnknown);
    let free = subject.record.is_none_or(|record| {
        let occupied = if unknown_outcome { record.current.is_some() } else { record.has_objects() };
        !occupied && !record.replacement_pending
    });
    free.then_some(import)
}

/// Whether a replacement was asked for, by option or annotation, and not carried out yet.
pub(super) fn replacement_requested(scene: &Scene<'_>, id: Id) -> bool {
    let subject = scene.subjects[id];
    let handled = subject.record.map_or("", |record| &record.handled_replace_request);
    let by_annotation = |i: &Arc<Instance>| !i.replace_requested.is_empty() && *i.replace_requested != *handled;
    scene.options.replace.contains(subject.address) || subject.instance.is_some_and(by_annotation)
}
