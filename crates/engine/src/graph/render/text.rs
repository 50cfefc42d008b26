//! Renders a graph as text: steps in a valid order, each with the steps that it waits for and the reasons.

use super::super::ActionGraph;
use super::reduce;

/// Renders one line for each step, followed by an indented line for each step that it waits for.
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
