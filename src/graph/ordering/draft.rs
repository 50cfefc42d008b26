//! The graph while it is drawn: edges between steps and junctions.

use super::topology::{Adjacency, NONE};
use super::{Because, Edge};

/// Edges, and the number of the next junction.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    steps: u32,
    nodes: u32,
    pub(super) edges: Vec<Edge>,
    /// How many objects were looked at one by one, again and again.
    pub(super) visits: usize,
}

impl Draft {
    pub(super) fn new(steps: usize) -> Self {
        Self { steps: steps as u32, nodes: steps as u32, edges: Vec::new(), visits: 0 }
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.nodes as usize
    }

    /// Whether a node is a step, and no junction.
    pub(super) fn is_step(&self, node: u32) -> bool {
        node < self.steps
    }

    /// Adds an edge; one that leads to no node says nothing.
    pub(super) fn wait(&mut self, from: u32, to: u32, because: Because, indirect: bool) {
        if from != NONE && to != NONE {
            self.edges.push(Edge { from, to, because, indirect });
        }
    }

    /// One node for each object of `order` that stands for all that `gather` puts together for it: steps, and the
    /// nodes of objects that stand earlier in the order, which are given to it. Nothing is `NONE`, a single node
    /// stands for itself, several get a junction.
    #[expect(single_use_lifetimes, reason = "an anonymous lifetime is not allowed in `impl Trait` here")]
    pub(super) fn chain<'o>(
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
                    let onward = |&to| Edge { from: junction, to, because: Because::Onward, indirect: true };
                    self.edges.extend(several.iter().map(onward));
                    junction
                }
            };
        }
        chain
    }

    /// Who waits for whom.
    pub(super) fn adjacency(&self) -> Adjacency {
        Adjacency::new(self.nodes(), self.edges.iter().map(|edge| (edge.from, edge.to)))
    }

    /// The strongly connected components that hold a ring.
    pub(super) fn rings(&self) -> Vec<Vec<u32>> {
        self.adjacency().rings()
    }

    /// The number of nodes and the edges, without the junctions that no step leads to and without doubles:
    /// of several reasons between two nodes the first rule's is kept.
    pub(super) fn finish(mut self) -> (usize, Vec<Edge>) {
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
