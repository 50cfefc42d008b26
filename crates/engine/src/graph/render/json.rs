//! Renders a graph as JSON (`docs/formats.md`).

use serde::ser::{Serialize, SerializeSeq, SerializeStruct, Serializer};

use super::super::ActionGraph;
use api::{PlanGraph, PlanStep};
use model::{Address, DeposedKey, Operation};

/// Serializes as `{"nodes":[...],"edges":[...]}`. Edges are streamed, because there can be many.
#[derive(Clone, Copy, Debug)]
pub struct GraphJson<'a>(pub &'a ActionGraph);

/// Returns the graph as one line of JSON.
pub fn json(graph: &ActionGraph) -> String {
    serde_json::to_string(&GraphJson(graph)).expect("strings and flags can always be serialized")
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeJson<'a> {
    id: &'a str,
    address: &'a Address,
    operation: Operation,
    deposed_key: Option<DeposedKey>,
    replaces: bool,
}

#[derive(serde::Serialize)]
struct EdgeJson<'a> {
    from: &'a str,
    to: &'a str,
    because: String,
}

impl Serialize for GraphJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ids: Vec<String> = self.0.nodes().map(|node| self.0.id(node)).collect();
        let mut whole = serializer.serialize_struct("Graph", 2)?;
        whole.serialize_field("nodes", &Nodes { graph: self.0, ids: &ids })?;
        whole.serialize_field("edges", &Edges { graph: self.0, ids: &ids })?;
        whole.end()
    }
}

/// The steps in the status of a Plan, in the same format.
#[derive(Clone, Copy, Debug)]
pub struct PublishedJson<'a>(pub &'a PlanGraph);

impl<'a> From<&'a PlanStep> for NodeJson<'a> {
    fn from(step: &'a PlanStep) -> Self {
        Self {
            id: &step.id,
            address: &step.address,
            operation: step.operation,
            deposed_key: step.deposed_key,
            replaces: step.replaces,
        }
    }
}

impl Serialize for PublishedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut whole = serializer.serialize_struct("Graph", 2)?;
        whole.serialize_field("nodes", &self.0.nodes.iter().map(NodeJson::from).collect::<Vec<_>>())?;
        whole.serialize_field("edges", &self.0.edges)?;
        whole.end()
    }
}

struct Nodes<'a> {
    graph: &'a ActionGraph,
    ids: &'a [String],
}

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.graph.nodes().map(|node| {
            let step = self.graph.step(node);
            NodeJson {
                id: &self.ids[node.index()],
                address: &step.address,
                operation: step.operation,
                deposed_key: step.deposed,
                replaces: step.replaces,
            }
        }))
    }
}

struct Edges<'a> {
    graph: &'a ActionGraph,
    ids: &'a [String],
}

impl Serialize for Edges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut edges = serializer.serialize_seq(None)?;
        for node in self.graph.nodes() {
            for (to, wait) in self.graph.waits_for(node) {
                let because = self.graph.explain(node, to, wait).to_string();
                let (from, to) = (&self.ids[node.index()], &self.ids[to.index()]);
                edges.serialize_element(&EdgeJson { from, to, because })?;
            }
        }
        edges.end()
    }
}
