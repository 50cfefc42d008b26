//! The finalizer and the annotation on a Resource as this process wrote them last, until the watch confirms them.

use std::sync::Arc;

use engine::load::Instance;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Overlay {
    /// Nothing to confirm.
    None,
    /// Added, for the Resource of this UID.
    Marked(Arc<str>),
    /// Removed, from the Resource of this UID.
    Unmarked(Arc<str>),
}

impl Overlay {
    /// The overlay after the watch has delivered this form of the Resource.
    pub(super) fn confirmed_by(self, observed: &Instance) -> Self {
        let marked = observed.is_marked();
        let unmarked = !observed.has_finalizer && observed.record_annotation != observed.uid;
        match self {
            // A record of an earlier Resource of the name says nothing about the finalizer and the annotation of this
            // one.
            Self::Marked(uid) | Self::Unmarked(uid) if uid != observed.uid => Self::None,
            Self::Marked(_) if marked => Self::None,
            Self::Unmarked(_) if unmarked => Self::None,
            other => other,
        }
    }

    /// The Resource with the finalizer and the annotation as last written.
    pub(super) fn over(&self, observed: &Arc<Instance>) -> Arc<Instance> {
        let (has_finalizer, record_annotation) = match self {
            Self::None => return observed.clone(),
            Self::Marked(uid) => (true, uid.clone()),
            Self::Unmarked(_) => (false, Arc::from("")),
        };
        Arc::new(Instance { record_annotation, has_finalizer, ..Instance::clone(observed) })
    }
}

/// Whether a change of a Resource requires a plan. A change of the finalizer or the annotation does not, unless another
/// client removed them from a Resource that has, or had, a record.
pub(super) fn is_relevant_change(old: &Instance, new: &Instance, has_record: bool) -> bool {
    let finalizer_lost = old.has_finalizer && !new.has_finalizer;
    let annotation_lost = old.record_annotation != new.record_annotation && new.record_annotation != new.uid;
    let is_held = has_record || new.has_record_annotation();
    !old.is_equivalent(new) || (is_held && (finalizer_lost || annotation_lost))
}
