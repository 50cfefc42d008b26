//! `Plan` -> `ActionGraph`, a value: nodes are steps, edges say what a step waits for and why.
//!
//! Built in the stages of Terraform's resource graph, each a named function: resource nodes from configuration
//! joined with change and record, orphans, references and `dependsOn`, replaced objects split into destroy and
//! create steps (`build`), the order by the rules R1 to R9 (`ordering`, told in `docs/ordering.md`), one root, and
//! validation (`build` again). A graph is executed by following it (`walk`), and printed (`render`).

mod because;
mod build;
mod ordering;
mod records;
pub mod render;
#[cfg(test)]
mod situation;
mod walk;

use std::collections::BTreeSet;
use std::sync::Arc;

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use crate::model::{Address, InstanceKey, Step};

pub use because::{Because, Why};
pub use build::build;
pub use walk::{Finished, Outcome, Walk};

/// The ordering graph: an edge leads from a step to one that it waits for.
///
/// Between steps stand junctions. They do nothing; who waits for a junction waits for all that it leads to. They keep
/// the graph as small as its input, and nobody outside sees them: nodes given out or taken are steps.
#[derive(Clone, Debug, Default)]
pub struct ActionGraph {
    /// The steps: those of the plan by address, then running ones that the plan does not have.
    steps: Vec<Node>,
    /// Nodes are the steps, by the same numbers, then junctions, then the root, which waits for all.
    graph: DiGraph<(), Wait>,
}

/// A step as a node.
#[derive(Clone, Debug)]
struct Node {
    step: Step,
    is_running: bool,
    /// Who requires the object to be create-before-destroy, when it does not ask for it itself.
    required_by: Option<Address>,
    /// The families that it refers to, or used, as a whole.
    families: Box<[Arc<str>]>,
}

impl Node {
    /// Whether a family that is named as a whole has another step's object.
    fn names_family_of(&self, other: &Self) -> bool {
        let address = &other.step.address;
        address.key != InstanceKey::None && self.families.contains(&address.name)
    }
}

/// Why a step waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// The rule.
    pub because: Because,
    /// The two objects are related through others only.
    pub indirect: bool,
}

impl ActionGraph {
    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Every step, in address order; of one object create, update or record first, then destroy, then leftovers.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeIndex> + use<> {
        (0..self.steps.len()).map(NodeIndex::new)
    }

    /// The step of a node.
    pub fn step(&self, node: NodeIndex) -> &Step {
        &self.steps[node.index()].step
    }

    /// The name of a step in outputs. It is unique: a running step that will be followed by the same step again says
    /// that it is running.
    pub fn id(&self, node: NodeIndex) -> String {
        let id = self.step(node).id();
        if self.is_running(node) { format!("{id} (running)") } else { id }
    }

    /// Whether the step was under way when the graph was made.
    pub fn is_running(&self, node: NodeIndex) -> bool {
        self.steps[node.index()].is_running
    }

    /// The node of a step that was (or was not) under way when the graph was made.
    pub fn find(&self, step: &Step, is_running: bool) -> Option<NodeIndex> {
        self.nodes().find(|&node| self.is_running(node) == is_running && self.step(node) == step)
    }

    /// What a step waits for directly, in node order, each with the first rule that asks for it.
    pub fn waits_for(&self, node: NodeIndex) -> Vec<(NodeIndex, Wait)> {
        let mut found: Vec<(NodeIndex, Wait)> = Vec::new();
        for edge in self.graph.edges(node) {
            let mut visited = BTreeSet::new();
            let mut open = vec![edge.target()];
            while let Some(here) = open.pop() {
                if self.is_step(here) {
                    found.push((here, *edge.weight()));
                } else if visited.insert(here) {
                    open.extend(self.graph.neighbors(here));
                }
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|(to, _)| *to);
        found
    }

    /// The reason of an edge, to be printed.
    pub fn why(&self, from: NodeIndex, to: NodeIndex, wait: Wait) -> Why<'_> {
        let (one, other) = (&self.steps[from.index()], &self.steps[to.index()]);
        let names_family = one.names_family_of(other) || other.names_family_of(one);
        Why {
            because: wait.because,
            from: self.step(from),
            to: self.step(to),
            indirect: wait.indirect && !names_family,
            required_by: self.steps[from.index()].required_by.as_ref(),
        }
    }

    /// The graph of some Resources only, by name, that have nothing to do with all others.
    #[must_use]
    pub fn only(&self, names: &BTreeSet<Arc<str>>) -> Self {
        let root = self.graph.node_count().checked_sub(1);
        let mut reached = vec![false; self.graph.node_count()];
        let mut open: Vec<NodeIndex> =
            self.nodes().filter(|&node| names.contains(&self.step(node).address.name)).collect();
        while let Some(node) = open.pop() {
            // All ways to a junction come from what it belongs to; the root belongs to all.
            if Some(node.index()) != root && !std::mem::replace(&mut reached[node.index()], true) {
                open.extend(self.graph.neighbors_undirected(node));
            }
        }
        let steps = self.nodes().filter(|node| reached[node.index()]).map(|node| self.steps[node.index()].clone());
        let mut only = Self { steps: steps.collect(), graph: DiGraph::new() };
        let mut place = vec![NodeIndex::end(); reached.len()];
        for node in self.graph.node_indices().filter(|node| reached[node.index()]) {
            place[node.index()] = only.graph.add_node(());
        }
        for edge in self.graph.raw_edges().iter().filter(|edge| reached[edge.source().index()]) {
            only.graph.add_edge(place[edge.source().index()], place[edge.target().index()], edge.weight);
        }
        build::add_root(&mut only);
        only
    }

    fn is_step(&self, node: NodeIndex) -> bool {
        node.index() < self.steps.len()
    }

    /// Whoever waits for a node directly: steps, junctions and the root.
    fn waiting(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.graph.neighbors_directed(node, Direction::Incoming)
    }
}
