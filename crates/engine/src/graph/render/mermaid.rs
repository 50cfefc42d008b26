//! Renders a graph for Mermaid, which Markdown pages can contain.

use std::collections::HashMap;

use api::PlanGraph;
use model::text::escape;

/// Renders a flowchart. Arrows lead from a step to the steps that it waits for.
pub fn mermaid(graph: &PlanGraph) -> String {
    let mut text = String::from("flowchart RL\n");
    let mut numbers = HashMap::new();
    for (number, step) in graph.nodes.iter().enumerate() {
        numbers.insert(step.id.as_str(), number);
        text.push_str(&format!("  s{number}[\"{}\"]\n", escaped(&step.id)));
    }
    for edge in &graph.edges {
        let (Some(from), Some(to)) = (numbers.get(edge.from.as_str()), numbers.get(edge.to.as_str())) else { continue };
        text.push_str(&format!("  s{from} -->|\"{}\"| s{to}\n", escaped(&edge.because)));
    }
    text
}

/// Escapes a quoted string with Mermaid's entities, which start with `#`.
fn escaped(text: &str) -> String {
    escape(text).replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;")
}
