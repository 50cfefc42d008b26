//! What the page draws: objects, steps, what waits for what, and held plans. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// The graph of a namespace at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub namespace: String,
    /// In the order of their names.
    pub objects: Vec<Object>,
    /// Between objects, by name.
    pub edges: Vec<Edge>,
    /// The steps that run or are due.
    pub steps: Vec<StepNode>,
    /// Between steps, by ID.
    pub step_edges: Vec<Edge>,
    /// The Plans that are not finished.
    pub plans: Vec<HeldPlan>,
    /// Whether the user may approve and reject.
    pub may_decide: bool,
    /// What is missing here, and why; one line each.
    pub notes: Vec<String>,
}

/// A Resource, a DataSource, or on files an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    pub name: String,
    pub type_name: String,
    /// `KIND/NAME` of a Kubernetes object; empty for others.
    pub label: String,
    pub state: State,
    /// The reason of the condition, if the object is not ready.
    pub reason: String,
    /// Why it is in this state.
    pub message: String,
    /// The planned action, such as `Replace`; empty if there is none.
    pub action: String,
    /// Of a family: `2 of 3 ready`.
    pub count: String,
    /// The Plan that holds its change.
    pub plan: Option<String>,
}

/// The state of an object or a step. The page shows it as a word, a sign and a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Ready,
    Running,
    /// It waits for other objects, or to start.
    Waiting,
    /// It waits for the approval of a Plan.
    Approval,
    /// It needs the user, or is tried again after an error.
    Failed,
    Suspended,
}

/// `from` waits for `to`, or depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub why: String,
    /// Whether a step waits at this moment.
    pub waits: bool,
    /// Whether it follows the order of the dependencies. The destroy of an object that waits for its dependents does not.
    pub depends: bool,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepNode {
    pub id: String,
    /// The name of its object in [`Snapshot::objects`].
    pub object: String,
    pub operation: String,
    pub state: State,
    pub message: String,
}

/// A Plan that holds changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldPlan {
    pub name: String,
    /// `Waiting`, `Approved` or `Rejected`.
    pub state: String,
    /// A sentence about the changes.
    pub message: String,
    /// The objects and actions that need the approval.
    pub changes: Vec<HeldChange>,
    pub decided_by: String,
    pub decided_at: String,
    pub differences: Vec<String>,
}

/// A change that needs an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldChange {
    pub address: String,
    pub action: String,
}

/// The edges between objects: what their steps wait for, then dependencies, as `(from, to, why)`. `object_of` returns the
/// object of a step.
pub fn object_edges<'a>(
    objects: &BTreeSet<&'a str>,
    steps: &'a [Edge],
    object_of: impl Fn(&'a str) -> &'a str,
    dependencies: impl Iterator<Item = (&'a str, &'a str, String)>,
) -> Vec<Edge> {
    let mut edges: BTreeMap<(&str, &str), Edge> = BTreeMap::new();
    let waits = steps.iter().map(|step| (object_of(&step.from), object_of(&step.to), step.why.clone(), true));
    let dependencies = dependencies.map(|(from, to, why)| (from, to, why, false));
    for (from, to, why, waits) in waits.chain(dependencies) {
        if from != to && objects.contains(from) && objects.contains(to) {
            let edge = edges.entry((from, to)).or_insert_with(|| Edge {
                from: from.to_owned(),
                to: to.to_owned(),
                why,
                waits,
                depends: false,
            });
            edge.depends |= !waits;
        }
    }
    edges.into_values().collect()
}
