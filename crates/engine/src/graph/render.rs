//! Renders a graph as text, for Graphviz, for Mermaid and as JSON.
//!
//! Junctions are not rendered. The formats for users are transitively reduced as long as that is cheap. JSON has all
//! direct edges.

mod dot;
mod json;
mod mermaid;
mod published;
mod text;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use petgraph::graph::NodeIndex;

use super::{ActionGraph, Wait};

pub use dot::dot;
pub use json::{GraphJson, PublishedJson, json};
pub use mermaid::mermaid;
pub use published::published;
pub use text::text;

/// The maximum number of steps for a reduction, which needs 2 MiB of memory at this size.
const MAX_REDUCED: usize = 4_000;

/// Returns the steps in an order in which each follows the steps that it waits for. Ties are resolved by address.
fn in_order(edges: &[Vec<(NodeIndex, Wait)>]) -> Vec<NodeIndex> {
    let mut waiting: Vec<Vec<NodeIndex>> = vec![Vec::new(); edges.len()];
    for (from, waits) in edges.iter().enumerate() {
        for (to, _) in waits {
            waiting[to.index()].push(NodeIndex::new(from));
        }
    }
    let mut open: Vec<usize> = edges.iter().map(Vec::len).collect();
    let free = (0..edges.len()).filter(|&at| open[at] == 0).map(|at| Reverse(NodeIndex::new(at)));
    let mut ready: BinaryHeap<Reverse<NodeIndex>> = free.collect();
    let mut order = Vec::with_capacity(edges.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for &next in &waiting[node.index()] {
            open[next.index()] -= 1;
            if open[next.index()] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    order
}

/// Returns the steps in order, and the edges of each step. If the graph is small, edges that others imply are omitted.
fn reduce(graph: &ActionGraph) -> (Vec<NodeIndex>, Vec<Vec<(NodeIndex, Wait)>>) {
    let mut edges: Vec<Vec<(NodeIndex, Wait)>> = graph.nodes().map(|node| graph.waits_for(node)).collect();
    let order = in_order(&edges);
    if graph.len() > MAX_REDUCED {
        return (order, edges);
    }
    let words = graph.len().div_ceil(64);
    let mut below: Vec<Vec<u64>> = vec![vec![0; words]; graph.len()];
    let has = |set: &[u64], node: NodeIndex| set[node.index() / 64] >> (node.index() % 64) & 1 == 1;
    for &node in &order {
        let mut through_others = vec![0; words];
        for (to, _) in &edges[node.index()] {
            for (word, more) in through_others.iter_mut().zip(&below[to.index()]) {
                *word |= more;
            }
        }
        edges[node.index()].retain(|(to, _)| !has(&through_others, *to));
        for (to, _) in &edges[node.index()] {
            through_others[to.index() / 64] |= 1 << (to.index() % 64);
        }
        below[node.index()] = through_others;
    }
    (order, edges)
}

#[cfg(test)]
mod tests;
