//! The Plan that is created for changes that wait for an approval.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::pipeline;
use api::conditions::{ConditionType, condition};
use api::{PlanStatus, RequiredApproval};
use engine::graph::render;
use engine::plan::approval::{Guarded, Offer};
use engine::plan::published;
use model::{Diagnostics, Name, Reason, Uid};

/// The maximum size of the status of a Plan, in bytes.
const MAX_STATUS: usize = 512 * 1024;

/// The changes of one component that need an approval.
#[derive(Clone, Debug)]
pub struct GuardedComponent {
    pub names: BTreeSet<Name>,
    pub guarded: Guarded,
    /// Where users decide on those that are not approved; `None` if all are.
    pub offer: Option<Offer>,
    /// The Plan to create if some of them have none.
    pub held: Option<Arc<HeldPlan>>,
}

impl GuardedComponent {
    /// The names of the objects whose changes need an approval.
    pub fn changed_names(&self) -> impl Iterator<Item = &Name> {
        self.guarded.changes.iter().map(|change| change.digest.address.name())
    }

    /// Whether a Plan with this digest covers some of the changes.
    pub fn is_covered_by(&self, digest: &str) -> bool {
        self.guarded.covered_by(digest).is_some()
    }
}

/// A Plan for changes that wait for an approval.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldPlan {
    /// The name to try first.
    pub name: Arc<str>,
    pub digest: Arc<str>,
    /// The plan of the whole component, as if all changes were approved.
    pub status: Box<PlanStatus>,
}

impl HeldPlan {
    /// Another name, because a Plan with other changes has that one.
    pub fn other_name(&self, random: u64) -> Option<String> {
        Some(self.status.approvals.first()?.other_plan_name(random))
    }
}

/// A Resource whose change waits.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOwner {
    pub name: Name,
    pub uid: Uid,
}

/// The Plan for the changes of a component that are not approved.
pub fn held_plan(
    ordered: &pipeline::OrderedPlan,
    component: &BTreeSet<Name>,
    guarded: &Guarded,
    held: &RequiredApproval,
) -> HeldPlan {
    let pipeline::OrderedPlan { plan, graph, .. } = ordered;
    let changes = plan.changes().filter(|change| component.contains(change.address.name()));
    let diagnostics: Diagnostics = plan
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.address.as_ref().is_some_and(|address| component.contains(address.name())))
        .cloned()
        .collect();
    let graph = render::published(&graph.subgraph(component));
    let proofs = guarded.proofs().collect();
    let mut status = published::status(MAX_STATUS, changes.clone(), &diagnostics, graph, &proofs);
    status.approvals = vec![held.clone()];
    let computed = published::message(&published::headline(changes, &diagnostics), &status);
    status.conditions = vec![condition(ConditionType::Computed, "True", Reason::PlanComputed, computed, 1)];
    HeldPlan { name: held.plan_name().into(), digest: held.digest.as_str().into(), status: Box::new(status) }
}
