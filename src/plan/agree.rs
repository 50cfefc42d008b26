//! Which objects are known to be as their configuration asks, so that no driver is asked about them again.
//!
//! Upstream asks the provider about every object in every plan. Here the record says of which configuration the driver
//! has last shown or said that the object is as it asks; until the object is due to be looked at, the same question
//! would get the same answer.

use std::sync::Arc;

use super::Refresh;
use super::progress::Progress;
use super::scene::{Id, Scene, Subject};
use crate::model::{ConfigDigest, ObjectStatus, RecordedObject};

/// Whether the driver would only say again that nothing is to be done: the same was asked of the same provider, as the
/// same account, and the object need not be looked at before its drift interval has passed.
pub(super) fn is_known(scene: &Scene<'_>, id: Id, progress: &Progress, object: &Arc<RecordedObject>) -> bool {
    let subject = scene.subjects[id];
    let Refresh::Due(due) = &scene.options.refresh else { return false };
    let recorded = subject.current().is_some_and(|recorded| Arc::ptr_eq(recorded, object));
    let account = subject.instance.is_some_and(|instance| instance.service_account == object.service_account);
    recorded
        && account
        && !due.contains(subject.address)
        && object.status == ObjectStatus::Ready
        && object.readiness.is_none()
        && object.provider == progress.provider
        && scene.schema(id).is_some_and(|schema| schema.version == object.schema_version)
        && object.agrees_with.is_some()
        && object.agrees_with == ConfigDigest::new(&progress.config, object.revision)
}

/// An object of which the driver has just said that it is as it should be. That is noted with whatever else there is to
/// record, and is no reason to write a record.
pub(super) fn noted(subject: Subject<'_>, progress: &Progress, base: &Arc<RecordedObject>) -> Arc<RecordedObject> {
    if subject.current().is_some_and(|recorded| Arc::ptr_eq(recorded, base)) {
        return base.clone();
    }
    let agrees_with = ConfigDigest::new(&progress.config, base.revision);
    Arc::new(RecordedObject { agrees_with, ..base.as_ref().clone() })
}
