//! The limit of objects in a namespace, so that one tenant cannot exhaust the memory of the controller.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Reconciler;
use super::summarize::StepState;
use super::tracked::TrackedObject;
use crate::api::MAX_OBJECTS;
use crate::model::{Operation, Value};
use crate::plan::ObjectQuota;

/// The names whose objects the limit holds back.
#[derive(Debug, Default)]
pub(super) struct OverQuota(BTreeSet<Arc<str>>);

impl OverQuota {
    pub(super) fn set(&mut self, name: &Arc<str>, is_over: bool) {
        if is_over {
            self.0.insert(Arc::clone(name));
        } else {
            self.0.remove(name);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes and returns a name, which may have an object now.
    pub(super) fn take_next(&mut self) -> Option<Arc<str>> {
        self.0.pop_first()
    }
}

impl Reconciler {
    /// How many objects the next plan may create. `None`: there is no limit.
    pub(super) fn object_quota(&self) -> Option<ObjectQuota> {
        let limit = self.max_objects()?;
        let known = self.objects.count();
        // Only near the limit is the exact number worth its cost.
        let used = if known < limit / 2 { known } else { self.used_objects() };
        Some(ObjectQuota { limit, left: limit.saturating_sub(used) })
    }

    /// The records, and the objects that are being created or planned and have no record yet.
    fn used_objects(&self) -> usize {
        let records = self.schedule.records();
        let created = self.objects.all().filter(|(_, tracked)| is_being_created(tracked));
        let created = created.filter(|(address, _)| !records.contains_key(address)).count();
        let planned = self.planning.in_progress.iter().filter(|name| self.recorded(name).next().is_none()).count();
        records.len() + created + planned
    }

    /// The annotation of the Namespace takes precedence, because only administrators can set it.
    fn max_objects(&self) -> Option<usize> {
        let annotations = self.index.namespace_value().get("annotations");
        let own = annotations.and_then(|annotations| annotations.get(MAX_OBJECTS)).and_then(Value::as_str);
        own.and_then(|text| text.parse().ok()).or(self.policy.max_objects)
    }

    /// Plans an object that the limit has held back, because another one was removed.
    pub(super) fn object_removed(&mut self) {
        if let Some(name) = self.objects.over_quota.take_next() {
            self.touch(&name);
        }
    }
}

fn is_being_created(tracked: &TrackedObject) -> bool {
    tracked.steps.iter().any(|(step, state)| step.operation == Operation::Create && StepState::is_open(state))
}
