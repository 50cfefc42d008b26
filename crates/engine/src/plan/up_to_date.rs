//! Finds the objects that are up to date, so that no driver is called for them.
//!
//! Terraform calls the provider for every object in every plan. In Purlin, the record holds a digest of the
//! configuration that the driver last found the object to match. Until the next refresh, the same call would return the
//! same result.

use std::sync::Arc;

use super::input::{Id, Node, PlanInput};
use super::progress::Progress;
use super::{Refresh, drift};
use crate::load::DriftAction;
use model::{ConfigDigest, ObjectStatus, RecordedObject};

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

/// The object with the digest of the configuration that it matches. The digest alone is a reason to write the record only
/// if drift is reported, which is a change of an object that matched: the record of an imported or migrated object has
/// no digest. Otherwise, an object that equals its record is returned as it is.
pub(super) fn with_digest(node: Node<'_>, progress: &Progress, base: &Arc<RecordedObject>) -> Arc<RecordedObject> {
    let is_recorded = node.current().is_some_and(|recorded| Arc::ptr_eq(recorded, base));
    let is_needed = base.matching_config.is_none() && drift::action(node) == DriftAction::Report;
    if is_recorded && !is_needed {
        return base.clone();
    }
    let agrees_with = ConfigDigest::new(&progress.config, base.revision);
    Arc::new(RecordedObject { matching_config: agrees_with, ..base.as_ref().clone() })
}
