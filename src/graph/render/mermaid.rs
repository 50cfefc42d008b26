//! The graph for Mermaid, as Markdown pages show it.

use super::super::ActionGraph;
use super::reduced;

/// A flowchart. Arrows lead from a step to what it waits for.
pub fn mermaid(graph: &ActionGraph) -> String {
    let (order, edges) = reduced(graph);
    let mut text = String::from("flowchart RL\n");
    for &node in &order {
        text.push_str(&format!("  s{}[\"{}\"]\n", node.index(), escaped(&graph.id(node))));
    }
    for &node in &order {
        for &(to, wait) in &edges[node.index()] {
            let why = escaped(&graph.why(node, to, wait).to_string());
            text.push_str(&format!("  s{} -->|\"{why}\"| s{}\n", node.index(), to.index()));
        }
    }
    text
}

/// Mermaid has no escapes in quoted texts but entities, which begin with `#`.
fn escaped(text: &str) -> String {
    text.replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;")
}
