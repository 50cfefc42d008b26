//! Renders a graph as text, for Graphviz, for Mermaid and as JSON.
//!
//! Junctions are not rendered. The formats for users are transitively reduced as long as that is cheap. JSON has all
//! direct edges.

mod json;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use petgraph::graph::NodeIndex;

use super::{ActionGraph, Wait};
use api::{PlanEdge, PlanGraph, PlanStep};
use model::text::escape;

pub use json::{GraphJson, PublishedJson, json};

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
    for &node in &order {
        let mut through_others = vec![0; words];
        for (to, _) in &edges[node.index()] {
            for (word, more) in through_others.iter_mut().zip(&below[to.index()]) {
                *word |= more;
            }
        }
        edges[node.index()].retain(|(to, _)| through_others[to.index() / 64] >> (to.index() % 64) & 1 == 0);
        for (to, _) in &edges[node.index()] {
            through_others[to.index() / 64] |= 1 << (to.index() % 64);
        }
        below[node.index()] = through_others;
    }
    (order, edges)
}

/// Renders a graph as text. The steps are in a valid order: one line for each step, followed by an indented line for each step that it waits for.
///
/// ```text
/// db create
/// web create
///   after db create: web depends on db
/// ```
pub fn text(graph: &ActionGraph) -> String {
    let (order, edges) = reduce(graph);
    let mut text = String::new();
    for node in order {
        text.push_str(&graph.id(node));
        text.push('\n');
        for &(to, wait) in &edges[node.index()] {
            text.push_str(&format!("  after {}: {}\n", graph.id(to), graph.explain(node, to, wait)));
        }
    }
    text
}

/// Renders a digraph for Graphviz. Arrows lead from a step to the steps that it waits for. Dashed boxes are destroys.
pub fn dot(graph: &ActionGraph) -> String {
    let (order, edges) = reduce(graph);
    let mut text = String::from("digraph order {\n  rankdir = RL;\n  node [shape = box];\n");
    for &node in &order {
        let style = if graph.step(node).operation.removes() { " [style = dashed]" } else { "" };
        text.push_str(&format!("  {}{style};\n", dot_string(&graph.id(node))));
    }
    for &node in &order {
        for &(to, wait) in &edges[node.index()] {
            let why = graph.explain(node, to, wait).to_string();
            let (from, to) = (dot_string(&graph.id(node)), dot_string(&graph.id(to)));
            text.push_str(&format!("  {from} -> {to} [label = {}];\n", dot_string(&why)));
        }
    }
    text.push_str("}\n");
    text
}

fn dot_string(text: &str) -> String {
    format!("\"{}\"", escape(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Renders a flowchart for Mermaid, which Markdown pages can contain. Arrows lead from a step to the steps that it waits for.
pub fn mermaid(graph: &PlanGraph) -> String {
    let mut text = String::from("flowchart RL\n");
    let mut numbers = HashMap::new();
    for (number, step) in graph.nodes.iter().enumerate() {
        numbers.insert(step.id.as_str(), number);
        text.push_str(&format!("  s{number}[\"{}\"]\n", mermaid_text(&step.id)));
    }
    for edge in &graph.edges {
        let (Some(from), Some(to)) = (numbers.get(edge.from.as_str()), numbers.get(edge.to.as_str())) else { continue };
        text.push_str(&format!("  s{from} -->|\"{}\"| s{to}\n", mermaid_text(&edge.because)));
    }
    text
}

/// Escapes a quoted string with Mermaid's entities, which start with `#`.
fn mermaid_text(text: &str) -> String {
    escape(text).replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;")
}

/// Returns the order of the steps as the status of a `Plan` object has it, without the edges that others imply as long as
/// the graph is small.
pub fn published(graph: &ActionGraph) -> PlanGraph {
    let (order, edges) = reduce(graph);
    let mut published = PlanGraph::default();
    for node in order {
        let (id, step) = (graph.id(node), graph.step(node));
        published.edges.extend(edges[node.index()].iter().map(|&(to, wait)| PlanEdge {
            from: id.clone(),
            to: graph.id(to),
            because: graph.explain(node, to, wait).to_string(),
        }));
        published.nodes.push(PlanStep {
            id,
            address: step.address.clone(),
            operation: step.operation,
            deposed_key: step.deposed,
            replaces: step.replaces,
        });
    }
    published
}

#[cfg(test)]
mod tests;
