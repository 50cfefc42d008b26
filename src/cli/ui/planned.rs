//! What the page shows of a plan on files.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::inputs::{Inputs, PlanResult};
use controller::ui::snapshot::{Edge, Object, Snapshot, State, StepNode, object_edges};
use controller::ui::{Detail, Diff, HistoryRow, Section};
use engine::graph::render;
use engine::plan::render::{Detail as Amount, is_shown, write_change};
use model::history_list;
use model::text::one_line;
use model::{Action, Address, Change, InstanceKey, Reason, Stem, Text, display_id, kubernetes_name};
use runtime::reconcile::summarize::waits_for_others;

/// How many instances of a family get an edge of their own from an object that depends on all of them.
const MAX_FAMILY_EDGES: usize = 50;

/// The inputs of a plan, and the plan.
pub struct Planned {
    pub inputs: Inputs,
    pub planned: PlanResult,
}

impl Planned {
    pub fn snapshot(&self) -> Snapshot {
        let objects: Vec<Object> = self.current().map(|change| self.object(change)).collect();
        let (steps, step_edges) = self.steps();
        let names: BTreeSet<&str> = objects.iter().map(|object| object.name.as_str()).collect();
        let owners: BTreeMap<&str, &str> = steps.iter().map(|step| (&*step.id, &*step.object)).collect();
        let dependencies = self.dependencies();
        let dependencies = dependencies.iter().map(|(from, to, why)| (from.as_str(), to.as_str(), why.clone()));
        let edges = object_edges(&names, &step_edges, |step| owners.get(step).copied().unwrap_or(step), dependencies);
        let general = self.planned.diagnostics.iter().filter(|problem| problem.address.is_none());
        Snapshot {
            namespace: self.inputs.config.namespace.to_string(),
            edges,
            notes: general.map(|problem| one_line(&problem.to_string()).into_owned()).collect(),
            objects,
            steps,
            step_edges,
            ..Snapshot::default()
        }
    }

    /// The changes of objects that are not deposed.
    fn current(&self) -> impl Iterator<Item = &Change> {
        self.planned.plan.current_changes()
    }

    fn object(&self, change: &Change) -> Object {
        let (state, reason, message) = self.state(change);
        let action = match change.action {
            Action::NoOp | Action::Blocked => String::new(),
            action => format!("{action:?}"),
        };
        Object {
            name: change.address.to_string(),
            type_name: change.type_name.to_string(),
            label: change.after.as_ref().or(change.before.as_ref()).and_then(kubernetes_name).unwrap_or_default(),
            state,
            reason: reason.map(|reason| reason.to_string()).unwrap_or_default(),
            message,
            action,
            count: String::new(),
            plan: None,
        }
    }

    fn is_running(&self, address: &Address) -> bool {
        let graph = &self.planned.graph;
        graph.nodes().any(|node| graph.is_running(node) && graph.step(node).address == *address)
    }

    fn state(&self, change: &Change) -> (State, Option<Reason>, String) {
        let failure = self.inputs.failures.get(&change.address);
        let because = change.because.as_ref().map(ToString::to_string).unwrap_or_default();
        match change.action {
            _ if self.is_running(&change.address) => (State::Running, None, "its step is running".to_owned()),
            Action::Blocked => {
                let reason = change.blocked.unwrap_or(Reason::Waiting);
                let state = match reason {
                    Reason::Suspended => State::Suspended,
                    _ if waits_for_others(reason) => State::Waiting,
                    _ => State::Failed,
                };
                (state, Some(reason), change.message.clone())
            }
            Action::NoOp | Action::Record => (State::Ready, None, because),
            _ => match failure {
                Some(failure) => {
                    (State::Failed, None, format!("{} failed: {}", failure.operation, one_line(&failure.message)))
                }
                None => (State::Waiting, None, because),
            },
        }
    }

    fn steps(&self) -> (Vec<StepNode>, Vec<Edge>) {
        let graph = &self.planned.graph;
        let published = render::published(graph);
        let waiting: BTreeSet<&str> = published.edges.iter().map(|edge| edge.from.as_str()).collect();
        let running: BTreeSet<String> =
            graph.nodes().filter(|node| graph.is_running(*node)).map(|node| graph.id(node)).collect();
        let nodes = published.nodes.iter().map(|step| {
            let failure = self.inputs.failures.get(&step.address);
            let (state, message) = match failure {
                _ if running.contains(&step.id) => (State::Running, "running".to_owned()),
                Some(failure) => (State::Failed, format!("the last attempt failed: {}", one_line(&failure.message))),
                None if waiting.contains(step.id.as_str()) => (State::Waiting, "waits for other steps".to_owned()),
                None => (State::Waiting, "waits for nothing".to_owned()),
            };
            let (object, operation) = (step.address.to_string(), step.operation.as_str().to_owned());
            StepNode { id: step.id.clone(), object, operation, state, message }
        });
        let edges = published.edges.iter().map(|edge| Edge {
            from: edge.from.clone(),
            to: edge.to.clone(),
            why: edge.because.clone(),
            waits: true,
            depends: true,
        });
        (nodes.collect(), edges.collect())
    }

    /// Who depends on whom, and the sentence that says so. A dependency on a family is one on each of its instances.
    fn dependencies(&self) -> Vec<(String, String, String)> {
        let mut families: BTreeMap<&Stem, Vec<&Address>> = BTreeMap::new();
        for change in self.current().filter(|change| change.address.key != InstanceKey::None) {
            families.entry(&change.address.stem).or_default().push(&change.address);
        }
        let mut dependencies = Vec::new();
        for (from, wants) in self.planned.plan.dependencies() {
            for wanted in wants.iter() {
                let why = format!("{from} depends on {wanted}");
                let instances = families.get(&wanted.stem).filter(|_| wanted.key == InstanceKey::None);
                match instances {
                    Some(instances) => {
                        let some = instances.iter().take(MAX_FAMILY_EDGES);
                        dependencies.extend(some.map(|instance| (from.to_string(), instance.to_string(), why.clone())));
                    }
                    None => dependencies.push((from.to_string(), wanted.to_string(), why)),
                }
            }
        }
        dependencies
    }

    /// Everything about one object. `None` if there is none.
    pub fn detail(&self, name: &str) -> Option<Detail> {
        let change = self.current().find(|change| change.address.to_string() == name)?;
        let address = &change.address;
        let record = self.inputs.recorded.get(address).map(|stored| stored.record.as_ref());
        let changes = self.planned.plan.objects.get(address)?.changes().filter(|change| is_shown(change));
        let diffs = changes.map(|change| {
            let mut text = Text::new(false);
            write_change(change, Amount::default(), &mut text);
            Diff { plan: String::new(), text: text.as_str().to_owned() }
        });
        let current = record.and_then(|record| record.current.as_ref());
        let history: Section<HistoryRow> = match record {
            Some(record) => {
                history_list::listed(std::iter::once(record)).iter().map(HistoryRow::from).collect::<Vec<_>>().into()
            }
            None => Section::unavailable("the object has no record yet"),
        };
        Some(Detail {
            name: name.to_owned(),
            kind: if address.is_data() { "DataSource" } else { "Resource" },
            type_name: change.type_name.to_string(),
            facts: self.facts(change),
            conditions: Vec::new(),
            attributes: current.map(|object| object.value.to_public_json()).unwrap_or_default(),
            diffs: diffs.collect(),
            events: Section::unavailable("events exist only in a cluster"),
            history,
        })
    }

    fn facts(&self, change: &Change) -> Vec<(&'static str, String)> {
        let address = &change.address;
        let record = self.inputs.recorded.get(address).map(|stored| stored.record.as_ref());
        let current = record.and_then(|record| record.current.as_deref());
        let instance = self.planned.config.instances.get(address);
        let source = instance.and_then(|instance| instance.source.as_ref()).map(ToString::to_string);
        let problems = self.planned.diagnostics.iter().filter(|problem| problem.address.as_ref() == Some(address));
        let failure = self.inputs.failures.get(address);
        let dependencies = self.planned.plan.dependencies_of(address);
        let deposed = record.into_iter().flat_map(|record| record.deposed.keys()).map(ToString::to_string);
        let facts = [
            ("Id", current.and_then(|object| display_id(&object.value)).unwrap_or_default()),
            ("Manifest", source.unwrap_or_default()),
            (
                "Last failure",
                failure
                    .map(|failure| format!("{} at {:.0}: {}", failure.operation, failure.at, failure.message))
                    .unwrap_or_default(),
            ),
            ("Problem", list(problems.map(|problem| one_line(&problem.to_string()).into_owned()))),
            ("Depends on", list(dependencies.iter().map(ToString::to_string))),
            ("Waits for", list(change.waiting_for.iter().map(ToString::to_string))),
            ("Deposed", list(deposed)),
        ];
        facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
