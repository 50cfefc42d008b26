//! Renders a graph for Graphviz.

use super::super::ActionGraph;
use super::reduce;
use model::text::escape;

/// Renders a digraph. Arrows lead from a step to the steps that it waits for. Dashed boxes are destroys.
pub fn dot(graph: &ActionGraph) -> String {
    let (order, edges) = reduce(graph);
    let mut text = String::from("digraph order {\n  rankdir = RL;\n  node [shape = box];\n");
    for &node in &order {
        let style = if graph.step(node).operation.removes() { " [style = dashed]" } else { "" };
        text.push_str(&format!("  {}{style};\n", quoted(&graph.id(node))));
    }
    for &node in &order {
        for &(to, wait) in &edges[node.index()] {
            let why = graph.explain(node, to, wait).to_string();
            let (from, to) = (quoted(&graph.id(node)), quoted(&graph.id(to)));
            text.push_str(&format!("  {from} -> {to} [label = {}];\n", quoted(&why)));
        }
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escape(text).replace('\\', "\\\\").replace('"', "\\\""))
}
