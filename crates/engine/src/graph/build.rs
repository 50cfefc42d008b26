//! Builds the graph of a plan.
//!
//! It maps addresses to numbers for `ordering`, which determines the order, and maps the result back to steps.

mod objects;
#[cfg(test)]
mod tests;

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use self::objects::ObjectTable;
use super::ordering::{self, Fallback, Ordering, Part};
use super::{ActionGraph, EdgeExplanation, EdgeReason, Node, Wait};
use crate::load::Config;
use crate::plan::{Plan, RunningStep};
use model::{Diagnostic, Diagnostics, Operation, Reason, Recorded, Step};

/// Builds the graph of a plan. `running` steps wait for nothing, and the other steps of their objects wait for them.
/// The diagnostics are warnings about the fallback of R6 and about cycles in records.
///
/// Only objects with `dependencies` in the plan are desired. The configuration of an object that is being destroyed is
/// ignored.
pub fn build(plan: &Plan, config: &Config, recorded: &Recorded, running: &[RunningStep]) -> (ActionGraph, Diagnostics) {
    let mut table = ObjectTable::resources(config, plan);
    // Hooks have no nodes, because they are parts of the steps of their objects.
    table.orphans(recorded);
    table.join_changes(plan);
    table.join_records(recorded, running);
    // Providers have no nodes, because drivers configure them on first use.
    table.references(plan);
    table.remedies(plan);
    let mut diagnostics = break_recorded_cycles(&mut table);
    let again = table.join_running(running);
    let ordering = ordering::order(&table.objects);
    diagnostics.extend(ordering.fallbacks.iter().map(|fallback| fallback_warning(&table, fallback)));
    let mut graph = split_into_steps(&table, &ordering);
    add_running_steps(&mut graph, &table, &ordering, &again);
    add_root(&mut graph);
    diagnostics.extend(validate(&mut graph));
    (graph, diagnostics)
}

/// R8: breaks cycles in records, with a warning.
fn break_recorded_cycles(table: &mut ObjectTable<'_>) -> Diagnostics {
    let mut used: Vec<Vec<u32>> = table.objects.iter_mut().map(|object| std::mem::take(&mut object.used)).collect();
    let cuts = super::recorded_cycles::break_cycles(&mut used, &table.versions);
    for (object, used) in table.objects.iter_mut().zip(used) {
        object.used = used;
    }
    let mut diagnostics = Diagnostics::new();
    for cut in cuts {
        let dependency = table.name(cut.dependency);
        let cycle: Vec<String> = cut.cycle.iter().map(|&at| table.name(at).to_string()).collect();
        let summary = format!("the recorded dependency on {dependency} is ignored because it is part of a cycle");
        let warning = Diagnostic::warning(table.name(cut.dependent), Reason::RecordedCycle, summary)
            .because(format!("the cycle consists of {}", cycle.join(", ")))
            .hint("apply the configuration once to rewrite the records");
        diagnostics.push(warning);
    }
    diagnostics
}

/// R6: returns the warning for an object without dependents that is destroyed in the usual order, with the cycle that
/// the safer order would cause.
fn fallback_warning(table: &ObjectTable<'_>, fallback: &Fallback) -> Diagnostic {
    let cycle: Vec<(Step, Wait)> = fallback.cycle.iter().map(|&(of, wait)| (table.step(of), wait)).collect();
    let summary = "it is destroyed before its former dependents are updated";
    let why = match cycle.as_slice() {
        [] => "the safer order has too many cycles to report them separately".to_owned(),
        cycle => format!("in the safer order, {}", describe_cycle(cycle)),
    };
    Diagnostic::warning(table.name(fallback.object), Reason::ReleaseOrderFallback, summary).because(why)
}

/// Describes a cycle of steps: every step, and the reason why it waits for the next one.
fn describe_cycle(cycle: &[(Step, Wait)]) -> String {
    let mut sentence = String::new();
    for (at, (from, wait)) in cycle.iter().enumerate() {
        let to = &cycle[(at + 1) % cycle.len()].0;
        let why = EdgeExplanation { reason: wait.reason, from, to, indirect: wait.indirect, required_by: None };
        match at {
            0 => sentence.push_str(&from.id()),
            _ => sentence.push_str(", which"),
        }
        sentence.push_str(&format!(" waits for {} ({why})", to.id()));
    }
    sentence
}

/// Creates the nodes and edges. A replaced object has two steps.
fn split_into_steps(table: &ObjectTable<'_>, ordering: &Ordering) -> ActionGraph {
    let steps = ordering.steps.iter().map(|&of| Node {
        step: table.step(of),
        is_running: table.is_running(of),
        required_by: table.steps[of.object as usize].required_by.filter(|_| of.part == Part::Remove).cloned(),
        families: table.named_families(of.object),
    });
    let steps = steps.collect();
    let mut graph = DiGraph::with_capacity(ordering.nodes + 1, ordering.edges.len() + ordering.steps.len());
    for _ in 0..ordering.nodes {
        graph.add_node(());
    }
    for edge in &ordering.edges {
        let (from, to) = (NodeIndex::new(edge.from as usize), NodeIndex::new(edge.to as usize));
        graph.add_edge(from, to, Wait { reason: edge.reason, indirect: edge.indirect });
    }
    ActionGraph { steps, graph }
}

/// Adds separate nodes for running steps whose objects have the same kind of step in the plan too. The other steps of
/// the object wait for them.
fn add_running_steps(graph: &mut ActionGraph, table: &ObjectTable<'_>, ordering: &Ordering, again: &[(u32, Step)]) {
    if again.is_empty() {
        return;
    }
    // Junctions are renumbered, because they follow the steps.
    let (first, shift) = (ordering.steps.len(), again.len());
    let mut moved = DiGraph::with_capacity(graph.graph.node_count() + shift, graph.graph.edge_count());
    for _ in 0..graph.graph.node_count() + shift {
        moved.add_node(());
    }
    for edge in graph.graph.raw_edges() {
        let [from, to] = [edge.source(), edge.target()]
            .map(|node| if node.index() < first { node } else { NodeIndex::new(node.index() + shift) });
        moved.add_edge(from, to, edge.weight);
    }
    for (number, (object, step)) in again.iter().enumerate() {
        let families = table.named_families(*object);
        graph.steps.push(Node { step: step.clone(), is_running: true, required_by: None, families });
        let running = NodeIndex::new(first + number);
        for (at, of) in ordering.steps.iter().enumerate() {
            if of.object == *object && !table.is_running(*of) {
                moved.add_edge(NodeIndex::new(at), running, Wait { reason: EdgeReason::StepRunning, indirect: false });
            }
        }
    }
    graph.graph = moved;
}

/// Adds the root, which waits for all nodes for which no other node waits.
pub fn add_root(graph: &mut ActionGraph) {
    let last: Vec<NodeIndex> = graph.graph.externals(Direction::Incoming).collect();
    let root = graph.graph.add_node(());
    for node in last {
        graph.graph.add_edge(root, node, Wait { reason: EdgeReason::Junction, indirect: true });
    }
}

/// Checks that the graph has one root and no cycle. The rules cause no cycle. If there is one because of a bug, its
/// steps and all steps that wait for them are removed with an error, and the other steps proceed.
fn validate(graph: &mut ActionGraph) -> Diagnostics {
    debug_assert!(graph.graph.externals(Direction::Incoming).count() == 1, "one root");
    let stuck = nodes_in_cycles(graph);
    if !stuck.contains(&true) {
        return Vec::new();
    }
    let cycle = format!("in a cycle of steps, {}", describe_cycle(&find_cycle(graph, &stuck)));
    let mut diagnostics = Diagnostics::new();
    for node in graph.nodes().filter(|node| stuck[node.index()]) {
        let step = graph.step(node);
        let summary = format!("the step `{}` cannot be ordered", step.id());
        let error = Diagnostic::error(&step.address, Reason::InternalError, summary);
        diagnostics.push(error.because(cycle.clone()));
    }
    remove_nodes(graph, &stuck);
    add_root(graph);
    diagnostics
}

/// Returns for each node whether it is in a cycle or waits for one.
fn nodes_in_cycles(graph: &ActionGraph) -> Vec<bool> {
    let graph = &graph.graph;
    let mut open: Vec<usize> = graph.node_indices().map(|node| graph.edges(node).count()).collect();
    let mut ready: Vec<NodeIndex> = graph.externals(Direction::Outgoing).collect();
    while let Some(node) = ready.pop() {
        for next in graph.neighbors_directed(node, Direction::Incoming) {
            open[next.index()] -= 1;
            if open[next.index()] == 0 {
                ready.push(next);
            }
        }
    }
    open.into_iter().map(|open| open > 0).collect()
}

/// Finds a cycle among the stuck nodes. Each of them waits for another one, so following the edges leads to a cycle.
fn find_cycle(graph: &ActionGraph, stuck: &[bool]) -> Vec<(Step, Wait)> {
    let mut way: Vec<(NodeIndex, Wait)> = Vec::new();
    let mut here = graph.nodes().find(|node| stuck[node.index()]);
    while let Some(node) = here {
        if let Some(start) = way.iter().position(|(passed, _)| *passed == node) {
            let cycle = way.drain(start..).filter(|(node, _)| graph.is_step(*node));
            return cycle.map(|(node, wait)| (graph.step(node).clone(), wait)).collect();
        }
        let stuck = graph.graph.edges(node).filter(|edge| stuck[edge.target().index()]);
        let next = stuck.map(|edge| (edge.target(), *edge.weight())).min();
        way.extend(next.map(|(_, wait)| (node, wait)));
        here = next.map(|(next, _)| next);
    }
    Vec::new()
}

/// Removes nodes from the graph.
fn remove_nodes(graph: &mut ActionGraph, out: &[bool]) {
    let mut number = vec![NodeIndex::end(); out.len()];
    let mut kept = DiGraph::new();
    for node in graph.graph.node_indices().filter(|node| !out[node.index()]) {
        number[node.index()] = kept.add_node(());
    }
    for edge in graph.graph.raw_edges().iter().filter(|edge| !out[edge.source().index()]) {
        kept.add_edge(number[edge.source().index()], number[edge.target().index()], edge.weight);
    }
    let mut out = out.iter();
    graph.steps.retain(|_| out.next() == Some(&false));
    graph.graph = kept;
}

/// Returns the operation of a step `D(x)`.
fn removal_operation(forget: bool) -> Operation {
    if forget { Operation::Forget } else { Operation::Destroy }
}
