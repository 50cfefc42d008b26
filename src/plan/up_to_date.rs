//! Finds the objects that are up to date, so that no driver is called for them.
//!
//! Terraform calls the provider for every object in every plan. In Purlin, the record holds a digest of the
//! configuration that the driver last found the object to match. Until the next refresh, the same call would return the
//! same result.

use std::sync::Arc;

use super::Refresh;
use super::input::{Id, Node, PlanInput};
use super::progress::Progress;
use crate::model::{ConfigDigest, ObjectStatus, RecordedObject};

/// Whether a driver call would return no change: configuration, provider and service account are the same as in the
/// last call, and the drift interval has not passed.
pub(super) fn is_up_to_date(input: &PlanInput<'_>, id: Id, progress: &Progress, object: &Arc<RecordedObject>) -> bool {
    let node = input.nodes[id];
    let Refresh::Due(due) = &input.options.refresh else { return false };
    let recorded = node.current().is_some_and(|recorded| Arc::ptr_eq(recorded, object));
    let account = node.instance.is_some_and(|instance| instance.service_account == object.service_account);
    recorded
        && account
        && !due.contains(node.address)
        && object.status == ObjectStatus::Ready
        && object.readiness.is_none()
        && object.provider == progress.provider
        && input.schema(id).is_some_and(|schema| schema.version == object.schema_version)
        && object.matching_config.is_some()
        && object.matching_config == ConfigDigest::new(&progress.config, object.revision)
}

/// The object with the digest of the configuration that it matches. The digest alone is no reason to write the record,
/// so an object that equals its record is returned as it is.
pub(super) fn with_digest(node: Node<'_>, progress: &Progress, base: &Arc<RecordedObject>) -> Arc<RecordedObject> {
    if node.current().is_some_and(|recorded| Arc::ptr_eq(recorded, base)) {
        return base.clone();
    }
    let agrees_with = ConfigDigest::new(&progress.config, base.revision);
    Arc::new(RecordedObject { matching_config: agrees_with, ..base.as_ref().clone() })
}
