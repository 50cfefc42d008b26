//! From the objects of the API server to a snapshot: states, what waits for what, and held Plans. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::snapshot::{Edge, HeldChange, HeldPlan, Object, Snapshot, State, StepNode, object_edges};
use api::{
    ApprovalState, ConditionType, Deposed, Instances, PlanGraph, PlanObject, PlanSpec, PlanStatus, RawObject,
    ResourceStatus, conditions,
};
use engine::plan::approval::shown::coverage;
use engine::plan::published;
use model::{Address, Reason};
use runtime::reconcile::summarize::waits_for_others;

/// The part of a Resource or DataSource that the graph shows.
#[derive(Clone, Debug)]
pub struct ObservedObject {
    pub shown: Object,
    dependencies: Vec<String>,
    waiting_for: Vec<String>,
    deposed: Vec<Deposed>,
}

/// The part of a held Plan that the graph shows.
#[derive(Clone, Debug)]
pub struct ObservedPlan {
    shown: HeldPlan,
    graph: PlanGraph,
}

impl ObservedPlan {
    /// Whether it has a change or a step of the object.
    pub fn concerns(&self, object: &str) -> bool {
        self.shown.changes.iter().any(|change| resource_of(&change.address) == object)
            || self.graph.nodes.iter().any(|step| **step.address.name() == *object)
    }
}

/// The fields of a spec that the graph shows.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ShownSpec {
    #[serde(rename = "type")]
    type_name: String,
    config: serde_json::Value,
}

/// Reads a Resource, or a DataSource, whose name is `data.NAME` as in addresses. An unreadable status counts as none.
pub fn object<K>(object: &RawObject<K>, is_data: bool) -> ObservedObject {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let name = if is_data { Address::data(name).to_string() } else { name.to_owned() };
    let status: ResourceStatus = object.status().unwrap_or_default();
    let (state, reason, message) = judge(object.metadata.generation, &status);
    let spec: ShownSpec = object.spec().unwrap_or_default();
    let label = status.kubernetes_name(&spec.config).unwrap_or_default();
    let pending = status.pending.unwrap_or_default();
    let shown = Object {
        name,
        type_name: spec.type_name,
        label,
        state,
        reason,
        message,
        action: pending.action,
        count: status.instances.as_ref().map(count).unwrap_or_default(),
        plan: None,
    };
    ObservedObject {
        shown,
        dependencies: status.dependencies,
        waiting_for: pending.waiting_for,
        deposed: status.deposed,
    }
}

/// Reads a Plan. `None` if it is a preview, has ended, or shows other changes than those of its digest.
pub fn plan(object: &RawObject<PlanObject>) -> Option<ObservedPlan> {
    let spec: PlanSpec = object.spec().ok()?;
    let status: PlanStatus = published::unpack(object.status().unwrap_or_default());
    spec.digest.as_ref()?;
    let state = status.approval.unwrap_or(ApprovalState::Waiting);
    if state.is_final() || coverage(&spec, &status).is_err() {
        return None;
    }
    let computed = conditions::find(&status.conditions, ConditionType::Computed);
    let message = computed.map(|condition| condition.message.clone()).unwrap_or_default();
    let held = status.approvals.iter().flat_map(|approval| &approval.changes);
    let held = if status.approvals.is_empty() { spec.changes.iter().collect() } else { held.collect::<Vec<_>>() };
    let changes = held
        .iter()
        .map(|change| HeldChange { address: change.address.to_string(), action: format!("{:?}", change.action) });
    let shown = HeldPlan {
        name: object.metadata.name.clone().unwrap_or_default(),
        state: format!("{state:?}"),
        message,
        changes: changes.collect(),
        decided_by: status.decided_by.unwrap_or_default(),
        decided_at: status.decided_at.unwrap_or_default(),
        differences: status.differences,
    };
    Some(ObservedPlan { shown, graph: status.graph.unwrap_or_default() })
}

/// Such as `2 of 3 ready`.
pub fn count(instances: &Instances) -> String {
    let desired = instances.desired.map_or_else(|| "?".to_owned(), |count| count.to_string());
    format!("{} of {desired} ready", instances.ready)
}

/// The state, with the reason and message that explain it.
fn judge(generation: Option<i64>, status: &ResourceStatus) -> (State, String, String) {
    let Some(ready) = conditions::find(&status.conditions, ConditionType::Ready) else {
        return (State::Waiting, String::new(), "not yet observed by the controller".to_owned());
    };
    if Some(status.observed_generation) != generation {
        let message = "the controller has not observed the latest change yet";
        return (State::Waiting, String::new(), message.to_owned());
    }
    if ready.status == "True" {
        return (State::Ready, String::new(), ready.message.clone());
    }
    let stalled = conditions::find(&status.conditions, ConditionType::Stalled);
    let is_stalled = stalled.is_some_and(|condition| condition.status == "True");
    let waits = status.pending.as_ref().is_some_and(|pending| !pending.waiting_for.is_empty());
    let state = match ready.reason.parse::<Reason>() {
        Ok(Reason::ApprovalRequired) => State::Approval,
        Ok(Reason::Suspended) => State::Suspended,
        _ if is_stalled => State::Failed,
        // The step has not started. "waiting until the object is ready" is a step that runs.
        Ok(Reason::Progressing | Reason::Deleting) => {
            let idle = ["waiting to ", "waiting for ", "not planned yet"];
            let is_idle = waits || idle.iter().any(|text| ready.message.starts_with(text));
            if is_idle { State::Waiting } else { State::Running }
        }
        Ok(Reason::Terminating) => State::Waiting,
        Ok(reason) if waits_for_others(reason) => State::Waiting,
        _ => State::Failed,
    };
    (state, ready.reason.clone(), ready.message.clone())
}

/// The graph of these objects and Plans.
pub fn snapshot(
    namespace: &str,
    objects: &BTreeMap<String, ObservedObject>,
    plans: &BTreeMap<String, ObservedPlan>,
) -> Snapshot {
    let holders = holders(plans);
    let shown = objects
        .values()
        .map(|object| Object { plan: holders.get(&object.shown.name).cloned(), ..object.shown.clone() });
    let mut graph = Steps::default();
    plans.values().filter(|plan| plan.shown.state != "Rejected").for_each(|plan| graph.add_plan(plan, objects));
    objects.values().for_each(|object| graph.add_pending(object, objects));
    let names: BTreeSet<&str> = objects.keys().map(String::as_str).collect();
    let dependencies = objects.iter().flat_map(|(name, object)| {
        object
            .dependencies
            .iter()
            .map(move |dependency| (name.as_str(), resource_of(dependency), format!("{name} depends on {dependency}")))
    });
    Snapshot {
        namespace: namespace.to_owned(),
        objects: shown.collect(),
        edges: object_edges(&names, &graph.edges, resource_of, dependencies),
        step_edges: graph.edges,
        steps: graph.nodes.into_values().collect(),
        plans: plans.values().map(|plan| plan.shown.clone()).collect(),
        may_decide: false,
        notes: Vec::new(),
    }
}

/// The Plan that holds the change of each object.
fn holders(plans: &BTreeMap<String, ObservedPlan>) -> BTreeMap<String, String> {
    let changes = plans.values().flat_map(|plan| plan.shown.changes.iter().map(move |change| (plan, change)));
    changes.map(|(plan, change)| (resource_of(&change.address).to_owned(), plan.shown.name.clone())).collect()
}

/// The name of the Resource that an address, or the ID of a step, begins with.
fn resource_of(text: &str) -> &str {
    text.find(['[', ' ', ':']).map_or(text, |end| &text[..end])
}

/// In the ID of a step on a deposed object.
const DEPOSED: &str = " (deposed ";

#[derive(Default)]
struct Steps {
    nodes: BTreeMap<String, StepNode>,
    edges: Vec<Edge>,
    /// The Resources whose steps a Plan has.
    planned: BTreeSet<String>,
}

impl Steps {
    /// Adds the steps of a held Plan.
    fn add_plan(&mut self, plan: &ObservedPlan, objects: &BTreeMap<String, ObservedObject>) {
        let held: BTreeSet<&str> = plan.shown.changes.iter().map(|change| resource_of(&change.address)).collect();
        for step in &plan.graph.nodes {
            let object = step.address.name().to_string();
            let (state, message) =
                match (held.contains(&*object) && plan.shown.state == "Waiting", objects.get(&object)) {
                    (true, _) => (State::Approval, format!("waits for the approval of the Plan {}", plan.shown.name)),
                    (false, Some(observed)) if observed.shown.state != State::Ready => {
                        (observed.shown.state, observed.shown.message.clone())
                    }
                    (false, _) => (State::Waiting, String::new()),
                };
            self.planned.insert(object.clone());
            let operation = step.operation.as_str().to_owned();
            self.nodes.insert(step.id.clone(), StepNode { id: step.id.clone(), object, operation, state, message });
        }
        self.edges.extend(plan.graph.edges.iter().map(|edge| Edge {
            from: edge.from.clone(),
            to: edge.to.clone(),
            why: edge.because.clone(),
            waits: true,
            depends: true,
        }));
    }

    /// Adds the steps that the status of an object names.
    fn add_pending(&mut self, object: &ObservedObject, objects: &BTreeMap<String, ObservedObject>) {
        let shown = &object.shown;
        if !shown.action.is_empty() && !self.planned.contains(&shown.name) {
            let id = pending_step(shown);
            self.add(&id, shown, &shown.action.to_lowercase());
            self.wait(&id, &object.waiting_for, objects);
        }
        for deposed in &object.deposed {
            let id = format!("{}{} destroy (deposed {})", shown.name, deposed.instance, deposed.key);
            if !self.nodes.contains_key(&id) {
                let state = if deposed.waiting_for.is_empty() { State::Running } else { State::Waiting };
                let message = format!("the replaced object {} is destroyed", deposed.id);
                let step = Object { state, message, ..shown.clone() };
                self.add(&id, &step, "destroy");
                self.wait(&id, &deposed.waiting_for, objects);
            }
        }
    }

    fn add(&mut self, id: &str, object: &Object, operation: &str) {
        let node = StepNode {
            id: id.to_owned(),
            object: object.name.clone(),
            operation: operation.to_owned(),
            state: object.state,
            message: object.message.clone(),
        };
        self.nodes.entry(id.to_owned()).or_insert(node);
    }

    /// A step waits for these steps.
    fn wait(&mut self, from: &str, waiting_for: &[String], objects: &BTreeMap<String, ObservedObject>) {
        for other in waiting_for {
            let object = objects.get(resource_of(other)).map(|observed| &observed.shown);
            let to = self.shown_step(other, object);
            if let Some(object) = object {
                let is_deposed = to.contains(DEPOSED);
                let operation = if is_deposed { "destroy" } else { to.rsplit(' ').next().unwrap_or_default() };
                self.add(&to, object, operation);
            }
            let why = format!("{other} must finish first");
            self.edges.push(Edge { from: from.to_owned(), to, why, waits: true, depends: true });
        }
    }

    /// The step that stands for another: the status of an object has one for all of its instances, and one for both halves
    /// of a replacement. The destroy of a deposed object is a step of its own.
    fn shown_step(&self, step: &str, object: Option<&Object>) -> String {
        match object {
            Some(object)
                if !object.action.is_empty() && !self.planned.contains(&object.name) && !step.contains(DEPOSED) =>
            {
                pending_step(object)
            }
            _ => step.to_owned(),
        }
    }
}

/// The ID of the step that the status of an object names.
fn pending_step(object: &Object) -> String {
    format!("{} {}", object.name, object.action.to_lowercase())
}

#[cfg(test)]
mod tests;
