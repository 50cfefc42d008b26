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

/// What follows from the end of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Steps that may run now, in node order.
    pub ready: Vec<NodeIndex>,
    /// Steps that never will, in node order, each with the failed step that is the cause.
    pub skipped: Vec<(NodeIndex, NodeIndex)>,
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for this many others.
    Waiting(u32),
    /// A step that was given out, or was running from the start.
    Started,
    /// Done, failed or skipped.
    Over,
}

/// Progress through a graph. All calls together take time linear in the size of the graph.
#[derive(Clone, Debug)]
pub struct Walk {
    graph: Arc<ActionGraph>,
    states: Vec<State>,
    /// Steps that are not over.
    left: usize,
}

impl Walk {
    /// At the beginning. Steps that run already count as started.
    pub fn new(graph: Arc<ActionGraph>) -> Self {
        let waiting = |node| State::Waiting(graph.graph.neighbors(node).count() as u32);
        let mut states: Vec<State> = graph.graph.node_indices().map(waiting).collect();
        for node in graph.nodes().filter(|&node| graph.is_running(node)) {
            states[node.index()] = State::Started;
        }
        let left = graph.len();
        Self { graph, states, left }
    }

    /// The graph walked.
    pub fn graph(&self) -> &Arc<ActionGraph> {
        &self.graph
    }

    /// The steps that may run at the start, in node order, without those that run already. A second call gives none.
    pub fn start(&mut self) -> Vec<NodeIndex> {
        let free = |node: &NodeIndex| self.states[node.index()] == State::Waiting(0);
        let ready: Vec<NodeIndex> = self.graph.nodes().filter(free).collect();
        for node in &ready {
            self.states[node.index()] = State::Started;
        }
        ready
    }

    /// Takes a started step's outcome. A step that was not started, or is over, changes nothing.
    pub fn finish(&mut self, node: NodeIndex, outcome: Outcome) -> Finished {
        let mut finished = Finished::default();
        if self.states.get(node.index()) != Some(&State::Started) || !self.graph.is_step(node) {
            return finished;
        }
        self.close(node);
        match outcome {
            Outcome::Done => self.release(node, &mut finished.ready),
            Outcome::Failed => self.skip_above(node, &mut finished.skipped),
        }
        finished.ready.sort_unstable();
        finished.skipped.sort_unstable();
        finished
    }

    /// Lets those go on that waited for a node. Junctions are passed at once.
    fn release(&mut self, node: NodeIndex, ready: &mut Vec<NodeIndex>) {
        let graph = Arc::clone(&self.graph);
        let mut done = vec![node];
        while let Some(here) = done.pop() {
            for waiting in graph.waiting(here) {
                let State::Waiting(count) = self.states[waiting.index()] else { continue };
                match (count, graph.is_step(waiting)) {
                    (1, true) => {
                        self.states[waiting.index()] = State::Started;
                        ready.push(waiting);
                    }
                    (1, false) => {
                        self.states[waiting.index()] = State::Over;
                        done.push(waiting);
                    }
                    _ => self.states[waiting.index()] = State::Waiting(count - 1),
                }
            }
        }
    }

    /// Gives up everything that waits for a failed step, directly or through others.
    fn skip_above(&mut self, failed: NodeIndex, skipped: &mut Vec<(NodeIndex, NodeIndex)>) {
        let graph = Arc::clone(&self.graph);
        let mut open = vec![failed];
        while let Some(here) = open.pop() {
            for waiting in graph.waiting(here) {
                if matches!(self.states[waiting.index()], State::Waiting(_)) {
                    self.close(waiting);
                    open.push(waiting);
                    if graph.is_step(waiting) {
                        skipped.push((waiting, failed));
                    }
                }
            }
        }
    }

    /// Skips every step that was not started, because of a stop. Gives them in node order.
    pub fn skip_rest(&mut self) -> Vec<NodeIndex> {
        let waits = |node: &NodeIndex| matches!(self.states[node.index()], State::Waiting(_));
        let rest: Vec<NodeIndex> = self.graph.nodes().filter(waits).collect();
        for &node in &rest {
            self.close(node);
        }
        rest
    }

    /// The unfinished steps that a waiting step waits for directly, in node order.
    pub fn waits_for(&self, node: NodeIndex) -> Vec<NodeIndex> {
        if !matches!(self.states[node.index()], State::Waiting(_)) {
            return Vec::new();
        }
        let open = |to: &NodeIndex| self.states[to.index()] != State::Over;
        self.graph.waits_for(node).into_iter().map(|(to, _)| to).filter(open).collect()
    }

    /// Whether every step has finished or was skipped.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    fn close(&mut self, node: NodeIndex) {
        self.left -= usize::from(self.graph.is_step(node));
        self.states[node.index()] = State::Over;
    }
}

#[cfg(test)]
#[path = "walk/tests.rs"]
mod tests;
