//! Our marks on a Resource (finalizer and annotation) as we wrote them last, until the watch shows them.

use std::sync::Arc;

use crate::load::Instance;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Overlay {
    /// The watch is up to date.
    None,
    /// We put them on, for the Resource of this UID.
    Marked(Arc<str>),
    /// We took them off.
    Unmarked,
}

impl Overlay {
    /// What is left of it once the Resource was seen like this.
    pub(super) fn confirmed_by(self, seen: &Instance) -> Self {
        let marked = seen.is_marked();
        let unmarked = !seen.has_finalizer && seen.record_annotation != seen.uid;
        match self {
            // A record of an earlier Resource of the name says nothing about the marks of this one.
            Self::Marked(uid) if uid != seen.uid => Self::None,
            Self::Marked(_) if marked => Self::None,
            Self::Unmarked if unmarked => Self::None,
            other => other,
        }
    }

    /// The Resource with the marks as we wrote them.
    pub(super) fn over(&self, seen: &Arc<Instance>) -> Arc<Instance> {
        let (has_finalizer, record_annotation) = match self {
            Self::None => return seen.clone(),
            Self::Marked(uid) => (true, uid.clone()),
            Self::Unmarked => (false, Arc::from("")),
        };
        Arc::new(Instance { record_annotation, has_finalizer, ..Instance::clone(seen) })
    }
}

/// Whether a change of a Resource is a reason to look at it. Our own marks coming and going are none, unless somebody
/// took them off an object that is there.
pub(super) fn is_news(old: &Instance, new: &Instance, has_record: bool) -> bool {
    let finalizer_lost = old.has_finalizer && !new.has_finalizer;
    let annotation_lost = old.record_annotation != new.record_annotation && new.record_annotation != new.uid;
    !old.asks_the_same(new) || (has_record && (finalizer_lost || annotation_lost))
}
