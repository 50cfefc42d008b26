//! The action graph of a plan: nodes are steps, and edges say what a step waits for and why.
//!
//! `build` creates it in the stages of Terraform's resource graph: objects from configuration, changes and records,
//! orphans, references, replacements split into two steps, the ordering rules R1 to R9 (`ordering`, documented in
//! `docs/ordering.md`), a root, and validation. `walk` executes a graph, and `render` prints it.

mod reason;
mod build;
mod ordering;
mod recorded_cycles;
pub mod render;
#[cfg(test)]
mod fixture;
mod walk;

use std::collections::BTreeSet;

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use serde::{Deserialize, Serialize};

use model::{Address, InstanceKey, Name, Stem, Step};

pub use build::build;
pub use reason::{EdgeExplanation, EdgeReason};
pub use walk::{Outcome, Walk, WalkUpdate};

/// The steps of a plan. An edge leads from a step to a step that it waits for.
///
/// The graph also has junctions, which do nothing: a step that waits for a junction waits for everything that the
/// junction leads to. They keep the size of the graph linear. The public functions use only nodes that are steps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ActionGraph {
    /// The steps of the plan in address order, then running steps that are not in the plan.
    steps: Vec<Node>,
    /// The nodes are the steps with the same indexes, then junctions, then the root, which waits for all nodes.
    graph: DiGraph<(), Wait>,
}

/// A node that is a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Node {
    step: Step,
    is_running: bool,
    /// The object that requires this one to be create-before-destroy, if it is inherited.
    required_by: Option<Address>,
    /// The families on which the object depends, or depended, as a whole.
    families: Box<[Stem]>,
}

impl Node {
    /// Whether the object depends on the whole family of another step's object.
    fn names_family_of(&self, other: &Self) -> bool {
        let address = &other.step.address;
        address.key != InstanceKey::None && self.families.contains(&address.stem)
    }
}

/// The reason for which a step waits for another step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wait {
    pub reason: EdgeReason,
    /// The objects depend on each other only through other objects.
    pub indirect: bool,
}

impl ActionGraph {
    /// The number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns all steps in address order. The steps of an object are sorted as create, update or record, then destroy,
    /// then deposed objects.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeIndex> + use<> {
        (0..self.steps.len()).map(NodeIndex::new)
    }

    pub fn step(&self, node: NodeIndex) -> &Step {
        &self.steps[node.index()].step
    }

    /// Returns the unique ID of a step. A running step has a suffix, because the plan can have the same step again.
    pub fn id(&self, node: NodeIndex) -> String {
        let id = self.step(node).id();
        if self.is_running(node) { format!("{id} (running)") } else { id }
    }

    /// Whether the step was running when the graph was built.
    pub fn is_running(&self, node: NodeIndex) -> bool {
        self.steps[node.index()].is_running
    }

    /// Returns the node of a step that was, or was not, running when the graph was built.
    pub fn find(&self, step: &Step, is_running: bool) -> Option<NodeIndex> {
        self.nodes().find(|&node| self.is_running(node) == is_running && self.step(node) == step)
    }

    /// Returns the steps that a step waits for directly, in node order, each with the first rule that requires it.
    pub fn waits_for(&self, node: NodeIndex) -> Vec<(NodeIndex, Wait)> {
        let mut waits: Vec<(NodeIndex, Wait)> = Vec::new();
        for edge in self.graph.edges(node) {
            let mut visited = BTreeSet::new();
            let mut open = vec![edge.target()];
            while let Some(here) = open.pop() {
                if self.is_step(here) {
                    waits.push((here, *edge.weight()));
                } else if visited.insert(here) {
                    open.extend(self.graph.neighbors(here));
                }
            }
        }
        waits.sort_unstable();
        waits.dedup_by_key(|(to, _)| *to);
        waits
    }

    /// Returns the reason of an edge for output.
    pub fn explain(&self, from: NodeIndex, to: NodeIndex, wait: Wait) -> EdgeExplanation<'_> {
        let (waiting, target) = (&self.steps[from.index()], &self.steps[to.index()]);
        let names_family = waiting.names_family_of(target) || target.names_family_of(waiting);
        EdgeExplanation {
            reason: wait.reason,
            from: self.step(from),
            to: self.step(to),
            indirect: wait.indirect && !names_family,
            required_by: waiting.required_by.as_ref(),
        }
    }

    /// Returns the graph of the named Resources. They must not be connected to other Resources.
    #[must_use]
    pub fn subgraph(&self, names: &BTreeSet<Name>) -> Self {
        let root = self.graph.node_count().checked_sub(1);
        let mut reached = vec![false; self.graph.node_count()];
        let mut open: Vec<NodeIndex> =
            self.nodes().filter(|&node| names.contains(self.step(node).address.name())).collect();
        while let Some(node) = open.pop() {
            // A junction is only connected to nodes of the same component. Only the root is connected to all.
            let is_other = self.is_step(node) && !names.contains(self.step(node).address.name());
            if Some(node.index()) != root && !is_other && !std::mem::replace(&mut reached[node.index()], true) {
                open.extend(self.graph.neighbors_undirected(node));
            }
        }
        let steps = self.nodes().filter(|node| reached[node.index()]).map(|node| self.steps[node.index()].clone());
        let mut subgraph = Self { steps: steps.collect(), graph: DiGraph::new() };
        let mut place = vec![NodeIndex::end(); reached.len()];
        for node in self.graph.node_indices().filter(|node| reached[node.index()]) {
            place[node.index()] = subgraph.graph.add_node(());
        }
        let edges = self.graph.raw_edges().iter();
        for edge in edges.filter(|edge| reached[edge.source().index()] && reached[edge.target().index()]) {
            subgraph.graph.add_edge(place[edge.source().index()], place[edge.target().index()], edge.weight);
        }
        build::add_root(&mut subgraph);
        subgraph
    }

    fn is_step(&self, node: NodeIndex) -> bool {
        node.index() < self.steps.len()
    }

    /// Returns the nodes that wait for a node directly: steps, junctions and the root.
    fn waiting(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.graph.neighbors_directed(node, Direction::Incoming)
    }
}
