//! `Plan` -> `ActionGraph`, a value: nodes are steps, edges say what a step waits for and why.
//!
//! Built in the stages of Terraform's resource graph, each a named function: resource nodes from configuration
//! joined with change and record, `dependsOn`, orphans, references, one root, replaced objects split into destroy
//! and create steps, validation (acyclic, one root). The order comes from the rules R1 to R9 (`docs/ordering.md`).

pub mod because;
mod ordering;
pub mod walk;

use petgraph::graph::{DiGraph, NodeIndex};

use crate::load::Config;
use crate::model::{Diagnostics, Recorded, Step};
use crate::plan::{Plan, RunningStep};

pub use because::{Because, Why};
pub use walk::{Outcome, Walk};

/// The ordering graph: an edge leads from a step to one that it waits for.
#[derive(Clone, Debug, Default)]
pub struct ActionGraph {
    /// Steps and their edges. May be transitively reduced; the closure is what counts.
    pub graph: DiGraph<Step, Because>,
}

/// Builds the graph of a plan. `running` steps are fixed nodes: they wait for nothing, and everything else of their
/// object comes after them. The diagnostics are warnings (released objects that fell back, rings in records).
pub fn build(
    _plan: &Plan,
    _config: &Config,
    _recorded: &Recorded,
    _running: &[RunningStep],
) -> (ActionGraph, Diagnostics) {
    (ActionGraph::default(), Vec::new())
}

impl ActionGraph {
    /// The step of a node.
    pub fn step(&self, node: NodeIndex) -> &Step {
        &self.graph[node]
    }

    /// All steps.
    pub fn steps(&self) -> impl Iterator<Item = (NodeIndex, &Step)> {
        self.graph.node_indices().map(|node| (node, &self.graph[node]))
    }
}
