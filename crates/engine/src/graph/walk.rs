//! The walk over a graph, which determines the steps that can run. It is a pure state machine without threads and time.

use std::sync::Arc;

use petgraph::graph::NodeIndex;

use super::ActionGraph;

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The step succeeded.
    Done,
    /// The step failed. Steps that wait for it are skipped.
    Failed,
}

/// The effects of the end of a step on other steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkUpdate {
    /// Steps that can run now, in node order.
    pub ready: Vec<NodeIndex>,
    /// Steps that are skipped, in node order, each with the failed step that is the cause.
    pub skipped: Vec<(NodeIndex, NodeIndex)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeState {
    /// The node waits for this number of nodes.
    Waiting(u32),
    /// The step was returned as ready, or was running when the walk started.
    Started,
    /// The node is done, failed or skipped.
    Finished,
}

/// The progress of a walk. All calls together take linear time in the size of the graph.
#[derive(Clone, Debug)]
pub struct Walk {
    graph: Arc<ActionGraph>,
    states: Vec<NodeState>,
    /// The number of unfinished steps.
    remaining: usize,
}

impl Walk {
    /// Starts a walk. Running steps count as started.
    pub fn new(graph: Arc<ActionGraph>) -> Self {
        let mut states: Vec<NodeState> = graph
            .graph
            .node_indices()
            .map(|node| NodeState::Waiting(graph.graph.neighbors(node).count() as u32))
            .collect();
        for node in graph.nodes().filter(|&node| graph.is_running(node)) {
            states[node.index()] = NodeState::Started;
        }
        let remaining = graph.len();
        Self { graph, states, remaining }
    }

    pub fn graph(&self) -> &Arc<ActionGraph> {
        &self.graph
    }

    /// Returns the steps that can run at the start, in node order and without running steps. A second call returns
    /// none.
    pub fn start(&mut self) -> Vec<NodeIndex> {
        let ready: Vec<NodeIndex> =
            self.graph.nodes().filter(|node| self.states[node.index()] == NodeState::Waiting(0)).collect();
        for node in &ready {
            self.states[node.index()] = NodeState::Started;
        }
        ready
    }

    /// Handles the outcome of a started step. Other steps are ignored.
    pub fn finish(&mut self, node: NodeIndex, outcome: Outcome) -> WalkUpdate {
        let mut finished = WalkUpdate::default();
        if self.states.get(node.index()) != Some(&NodeState::Started) || !self.graph.is_step(node) {
            return finished;
        }
        self.mark_finished(node);
        match outcome {
            Outcome::Done => self.release(node, &mut finished.ready),
            Outcome::Failed => self.skip_dependents(node, &mut finished.skipped),
        }
        finished.ready.sort_unstable();
        finished.skipped.sort_unstable();
        finished
    }

    /// Updates the nodes that wait for a finished node. Junctions finish immediately.
    fn release(&mut self, node: NodeIndex, ready: &mut Vec<NodeIndex>) {
        let graph = Arc::clone(&self.graph);
        let mut done = vec![node];
        while let Some(here) = done.pop() {
            for waiting in graph.waiting(here) {
                let NodeState::Waiting(count) = self.states[waiting.index()] else { continue };
                match (count, graph.is_step(waiting)) {
                    (1, true) => {
                        self.states[waiting.index()] = NodeState::Started;
                        ready.push(waiting);
                    }
                    (1, false) => {
                        self.states[waiting.index()] = NodeState::Finished;
                        done.push(waiting);
                    }
                    _ => self.states[waiting.index()] = NodeState::Waiting(count - 1),
                }
            }
        }
    }

    /// Skips everything that waits for a failed step, directly or through other nodes.
    fn skip_dependents(&mut self, failed: NodeIndex, skipped: &mut Vec<(NodeIndex, NodeIndex)>) {
        let graph = Arc::clone(&self.graph);
        let mut open = vec![failed];
        while let Some(here) = open.pop() {
            for waiting in graph.waiting(here) {
                if matches!(self.states[waiting.index()], NodeState::Waiting(_)) {
                    self.mark_finished(waiting);
                    open.push(waiting);
                    if graph.is_step(waiting) {
                        skipped.push((waiting, failed));
                    }
                }
            }
        }
    }

    /// Skips all steps that were not started, for a shutdown. Returns them in node order.
    pub fn skip_rest(&mut self) -> Vec<NodeIndex> {
        let rest: Vec<NodeIndex> =
            self.graph.nodes().filter(|node| matches!(self.states[node.index()], NodeState::Waiting(_))).collect();
        for &node in &rest {
            self.mark_finished(node);
        }
        rest
    }

    /// Returns the unfinished steps that a waiting step waits for directly, in node order.
    pub fn waits_for(&self, node: NodeIndex) -> Vec<NodeIndex> {
        if !matches!(self.states[node.index()], NodeState::Waiting(_)) {
            return Vec::new();
        }
        self.graph
            .waits_for(node)
            .into_iter()
            .map(|(to, _)| to)
            .filter(|to| self.states[to.index()] != NodeState::Finished)
            .collect()
    }

    /// Whether all steps are done, failed or skipped.
    pub fn is_finished(&self) -> bool {
        self.remaining == 0
    }

    fn mark_finished(&mut self, node: NodeIndex) {
        self.remaining -= usize::from(self.graph.is_step(node));
        self.states[node.index()] = NodeState::Finished;
    }
}

#[cfg(test)]
#[path = "walk/tests.rs"]
mod tests;
