//! The order of the steps as the status of a `Plan` object has it.

use super::super::ActionGraph;
use super::reduce;
use api::{PlanEdge, PlanGraph, PlanStep};

/// Returns the steps in a valid order, without the edges that others imply as long as the graph is small.
pub fn published(graph: &ActionGraph) -> PlanGraph {
    let (order, edges) = reduce(graph);
    let mut all = PlanGraph::default();
    for node in order {
        let (id, step) = (graph.id(node), graph.step(node));
        all.edges.extend(edges[node.index()].iter().map(|&(to, wait)| PlanEdge {
            from: id.clone(),
            to: graph.id(to),
            because: graph.explain(node, to, wait).to_string(),
        }));
        all.nodes.push(PlanStep {
            id,
            address: step.address.clone(),
            operation: step.operation,
            deposed_key: step.deposed,
            replaces: step.replaces,
        });
    }
    all
}
