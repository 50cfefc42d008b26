//! Builds the graph: edges between steps and junctions.

use super::topology::{Adjacency, NONE};
use super::{Edge, EdgeReason};

#[derive(Clone, Debug)]
pub struct GraphBuilder {
    steps: u32,
    nodes: u32,
    pub edges: Vec<Edge>,
    /// The number of objects visited by searches.
    pub visits: usize,
}

impl GraphBuilder {
    pub fn new(steps: usize) -> Self {
        Self { steps: steps as u32, nodes: steps as u32, edges: Vec::new(), visits: 0 }
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes as usize
    }

    /// Whether a node is a step and not a junction.
    pub fn is_step(&self, node: u32) -> bool {
        node < self.steps
    }

    /// Adds an edge, unless one of its ends is `NONE`.
    pub fn wait(&mut self, from: u32, to: u32, reason: EdgeReason, indirect: bool) {
        if from != NONE && to != NONE {
            self.edges.push(Edge { from, to, reason, indirect });
        }
    }

    /// Returns a node for each object of `order` that represents the nodes which `gather` collects: steps, and the
    /// nodes of earlier objects, which are passed to it. No node results in `NONE`, a single node in the node itself,
    /// and several nodes in a junction.
    #[expect(single_use_lifetimes, reason = "an anonymous lifetime is not allowed in `impl Trait` here")]
    pub fn chain<'o>(
        &mut self,
        order: impl Iterator<Item = &'o u32>,
        count: usize,
        gather: impl Fn(u32, &[u32], &mut Vec<u32>),
    ) -> Vec<u32> {
        let mut chain = vec![NONE; count];
        let mut found = Vec::new();
        for &at in order {
            found.clear();
            gather(at, &chain, &mut found);
            found.retain(|&node| node != NONE);
            found.sort_unstable();
            found.dedup();
            chain[at as usize] = match found.as_slice() {
                [] => NONE,
                &[single] => single,
                several => {
                    let junction = self.nodes;
                    self.nodes += 1;
                    self.edges.extend(several.iter().map(|&to| Edge {
                        from: junction,
                        to,
                        reason: EdgeReason::Junction,
                        indirect: true,
                    }));
                    junction
                }
            };
        }
        chain
    }

    pub fn adjacency(&self) -> Adjacency {
        Adjacency::new(self.nodes(), self.edges.iter().map(|edge| (edge.from, edge.to)))
    }

    /// Returns the strongly connected components with a cycle.
    pub fn cycles(&self) -> Vec<Vec<u32>> {
        self.adjacency().cycles()
    }

    /// Returns the number of nodes and the edges, without unreachable junctions and without duplicates. The reason of
    /// the first rule is kept.
    pub fn finish(mut self) -> (usize, Vec<Edge>) {
        self.edges.sort_unstable();
        self.edges.dedup_by_key(|edge| (edge.from, edge.to));
        let adjacency = self.adjacency();
        let mut number = vec![NONE; self.nodes()];
        let mut stack: Vec<u32> = (0..self.steps).collect();
        for (at, number) in number.iter_mut().take(self.steps as usize).enumerate() {
            *number = at as u32;
        }
        let mut nodes = self.steps;
        while let Some(here) = stack.pop() {
            for &next in adjacency.of(here) {
                if number[next as usize] == NONE {
                    number[next as usize] = nodes;
                    nodes += 1;
                    stack.push(next);
                }
            }
        }
        self.edges.retain(|edge| number[edge.from as usize] != NONE);
        for edge in &mut self.edges {
            (edge.from, edge.to) = (number[edge.from as usize], number[edge.to as usize]);
        }
        (nodes as usize, self.edges)
    }
}
