//! The graph as a program to read: steps in an order that holds, each with what it comes after, and why.

use super::super::ActionGraph;
use super::reduced;

/// One line for each step, indented below it a line for each step it waits for.
///
/// ```text
/// db create
/// web create
///   after db create: web refers to db
/// ```
pub fn text(graph: &ActionGraph) -> String {
    let (order, edges) = reduced(graph);
    let mut text = String::new();
    for node in order {
        text.push_str(&graph.id(node));
        text.push('\n');
        for &(to, wait) in &edges[node.index()] {
            text.push_str(&format!("  after {}: {}\n", graph.id(to), graph.why(node, to, wait)));
        }
    }
    text
}
