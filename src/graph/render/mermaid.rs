//! Renders a graph for Mermaid, which Markdown pages can contain.

use super::super::ActionGraph;
use super::reduce;
use crate::model::text::escape;

/// Renders a flowchart. Arrows lead from a step to the steps that it waits for.
pub fn mermaid(graph: &ActionGraph) -> String {
    let (order, edges) = reduce(graph);
    let mut text = String::from("flowchart RL\n");
    for &node in &order {
        text.push_str(&format!("  s{}[\"{}\"]\n", node.index(), escaped(&graph.id(node))));
    }
    for &node in &order {
        for &(to, wait) in &edges[node.index()] {
            let why = escaped(&graph.explain(node, to, wait).to_string());
            text.push_str(&format!("  s{} -->|\"{why}\"| s{}\n", node.index(), to.index()));
        }
    }
    text
}

/// Escapes a quoted string with Mermaid's entities, which start with `#`.
fn escaped(text: &str) -> String {
    escape(text).replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;")
}
