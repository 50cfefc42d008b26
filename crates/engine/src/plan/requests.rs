//! One-time requests of a Resource: to import its object, or to replace it.

use std::sync::Arc;

use super::input::{Id, PlanInput};
use crate::load::Instance;
use model::{ImportRequest, Reason};

/// The import request of a Resource without an object. It is ignored while a replacement is pending, because the id
/// then refers to the destroyed object.
pub(super) fn import_of(input: &PlanInput<'_>, id: Id) -> Option<ImportRequest> {
    let node = input.nodes[id];
    let import = node.instance?.import.clone()?;
    let unknown_outcome =
        input.options.blocked.get(node.address).is_some_and(|held| held.reason == Reason::CreateOutcomeUnknown);
    let free = node.record.is_none_or(|record| {
        let occupied = if unknown_outcome { record.current.is_some() } else { record.has_objects() };
        !occupied && !record.replacement_pending
    });
    free.then_some(import)
}

/// The import request of a Resource with an object, if it differs from the one that was last compared with the object.
pub(super) fn changed_import(input: &PlanInput<'_>, id: Id) -> Option<ImportRequest> {
    let node = input.nodes[id];
    let record = node.record.filter(|record| record.current.is_some() && !record.replacement_pending)?;
    let import = node.instance?.import.clone()?;
    (*import.to_string() != *record.handled_import).then_some(import)
}

/// Whether a replacement was requested by option or annotation and is not done yet. An annotation requests nothing of an
/// object that is only imported or adopted now: whether it was fulfilled before is in the record that was lost.
pub(super) fn replacement_requested(input: &PlanInput<'_>, id: Id) -> bool {
    let node = input.nodes[id];
    let by_annotation = |instance: &Arc<Instance>| {
        let requested = &instance.replace_requested;
        let known = node.record.filter(|record| record.has_objects() || record.replacement_pending);
        !requested.is_empty() && known.is_some_and(|record| record.handled_replace_request != *requested)
    };
    input.options.replace.contains(node.address) || node.instance.is_some_and(by_annotation)
}
