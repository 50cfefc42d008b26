//! The walk over a graph: which steps may run now. A pure state machine; it knows no threads and no time.

use std::sync::Arc;

use petgraph::graph::NodeIndex;

use super::ActionGraph;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was to do.
    Done,
    /// It did not; everything that waits for it is skipped.
    Failed,
}

/// Progress through a graph.
#[derive(Clone, Debug)]
pub struct Walk {
    graph: Arc<ActionGraph>,
}

impl Walk {
    /// At the beginning.
    pub fn new(graph: Arc<ActionGraph>) -> Self {
        Self { graph }
    }

    /// The graph walked.
    pub fn graph(&self) -> &Arc<ActionGraph> {
        &self.graph
    }

    /// The steps that may run at the start, in node order. Call it once.
    pub fn start(&mut self) -> Vec<NodeIndex> {
        Vec::new()
    }

    /// Takes a step's outcome; gives the steps that may run now, and those that never will because of a failure
    /// (each with the failed step that is the cause).
    pub fn finish(&mut self, _node: NodeIndex, _outcome: Outcome) -> (Vec<NodeIndex>, Vec<(NodeIndex, NodeIndex)>) {
        (Vec::new(), Vec::new())
    }

    /// The unfinished steps that a step waits for directly.
    pub fn waits_for(&self, _node: NodeIndex) -> Vec<NodeIndex> {
        Vec::new()
    }

    /// Whether every step has finished or was skipped.
    pub fn is_over(&self) -> bool {
        true
    }

    /// Everything not finished and not skipped is skipped.
    pub fn skip_rest(&mut self) -> Vec<NodeIndex> {
        Vec::new()
    }
}
