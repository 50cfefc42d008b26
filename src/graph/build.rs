//! The stages from plan to graph.
//!
//! Takes a plan with what it was made from; gives the graph and warnings. It decides nothing about objects, which is
//! the plan's, and nothing about order, which is `ordering`'s: it puts names to numbers, and numbers to names.

mod objects;
#[cfg(test)]
mod tests;

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use self::objects::Joined;
use super::ordering::{self, FellBack, Ordering, Part, StepOf};
use super::{ActionGraph, Because, Node, Wait, Why};
use crate::load::Config;
use crate::model::{Diagnostic, Diagnostics, Operation, Reason, Recorded, Step};
use crate::plan::{Plan, RunningStep};

/// Builds the graph of a plan. `running` steps are fixed nodes: they wait for nothing, and everything else of their
/// object comes after them. The diagnostics are warnings: released objects that fell back, rings in records.
///
/// Wanted is what `plan.wants` has: the configuration of an object that is on its way out says nothing any more.
pub fn build(plan: &Plan, config: &Config, recorded: &Recorded, running: &[RunningStep]) -> (ActionGraph, Diagnostics) {
    let mut joined = Joined::resources(config, plan);
    // Hooks belong to the steps of their objects: nothing waits for a hook alone, so they have no nodes.
    joined.orphans(recorded);
    joined.join_changes(plan);
    joined.join_records(recorded, running);
    // Providers are configured before the walk and closed after it: drivers do both, on first and last use.
    joined.references(plan);
    let mut diagnostics = cut_rings_in_records(&mut joined);
    let again = joined.join_running(running);
    let ordering = ordering::order(&joined.objects);
    diagnostics.extend(ordering.fell_back.iter().map(|fell_back| told(&joined, fell_back)));
    let mut graph = split_into_steps(&joined, &ordering);
    follow_running(&mut graph, &joined, &ordering, &again);
    add_root(&mut graph);
    diagnostics.extend(validate(&mut graph));
    (graph, diagnostics)
}

/// R8: rings in records are cut, with a warning.
fn cut_rings_in_records(joined: &mut Joined<'_>) -> Diagnostics {
    let mut used: Vec<Vec<u32>> = joined.objects.iter_mut().map(|object| std::mem::take(&mut object.used)).collect();
    let cuts = super::records::cut_rings(&mut used, &joined.versions);
    for (object, used) in joined.objects.iter_mut().zip(used) {
        object.used = used;
    }
    let warn = |cut: super::records::Cut| {
        let dependency = joined.name(cut.dependency);
        let ring: Vec<String> = cut.ring.iter().map(|&at| joined.name(at).to_string()).collect();
        let summary = format!("the recorded dependency on {dependency} is ignored, since records form a ring");
        Diagnostic::warning(joined.name(cut.dependent), Reason::RecordedCycle, summary)
            .because(format!("in the ring stand {}", ring.join(", ")))
            .hint("apply the configuration once: it writes the records anew")
    };
    cuts.into_iter().map(warn).collect()
}

/// R6: a released object that goes back to the classic order is told with the ring that the safer one would close.
fn told(joined: &Joined<'_>, fell_back: &FellBack) -> Diagnostic {
    let ring: Vec<(Step, Wait)> = fell_back.ring.iter().map(|&(of, wait)| (joined.step(of), wait)).collect();
    let summary = "it is destroyed before its former dependents let go of it";
    let why = match ring.as_slice() {
        [] => "the safer order has a ring, and there are too many to tell them one by one".to_owned(),
        ring => format!("in the safer order {}", ring_sentence(ring)),
    };
    Diagnostic::warning(joined.name(fell_back.object), Reason::ReleaseFellBack, summary).because(why)
}

/// A ring of steps as a sentence: every step, and why it waits for the next one.
fn ring_sentence(ring: &[(Step, Wait)]) -> String {
    let mut sentence = String::new();
    for (at, (from, wait)) in ring.iter().enumerate() {
        let to = &ring[(at + 1) % ring.len()].0;
        let why = Why { because: wait.because, from, to, indirect: wait.indirect, required_by: None };
        match at {
            0 => sentence.push_str(&from.id()),
            _ => sentence.push_str(", which"),
        }
        sentence.push_str(&format!(" waits for {} ({why})", to.id()));
    }
    sentence
}

/// Steps and edges under their names. A replaced object has two steps here.
fn split_into_steps(joined: &Joined<'_>, ordering: &Ordering) -> ActionGraph {
    let node = |&of: &StepOf| {
        let step = joined.step(of);
        let required_by = joined.steps[of.object as usize].required_by.filter(|_| of.part == Part::Remove);
        let families = joined.named_families(of.object);
        Node { is_running: joined.is_running(of), required_by: required_by.cloned(), families, step }
    };
    let steps = ordering.steps.iter().map(node).collect();
    let mut graph = DiGraph::with_capacity(ordering.nodes + 1, ordering.edges.len() + ordering.steps.len());
    for _ in 0..ordering.nodes {
        graph.add_node(());
    }
    for edge in &ordering.edges {
        let (from, to) = (NodeIndex::new(edge.from as usize), NodeIndex::new(edge.to as usize));
        graph.add_edge(from, to, Wait { because: edge.because, indirect: edge.indirect });
    }
    ActionGraph { steps, graph }
}

/// A running step whose object has the same kind of step in the plan as well, as an update during an update, is a node
/// of its own, and every step of the object waits for it.
fn follow_running(graph: &mut ActionGraph, joined: &Joined<'_>, ordering: &Ordering, again: &[(u32, Step)]) {
    if again.is_empty() {
        return;
    }
    // Steps come before junctions, so these must make room.
    let (first, shift) = (ordering.steps.len(), again.len());
    let place = |node: NodeIndex| if node.index() < first { node } else { NodeIndex::new(node.index() + shift) };
    let mut moved = DiGraph::with_capacity(graph.graph.node_count() + shift, graph.graph.edge_count());
    for _ in 0..graph.graph.node_count() + shift {
        moved.add_node(());
    }
    for edge in graph.graph.raw_edges() {
        moved.add_edge(place(edge.source()), place(edge.target()), edge.weight);
    }
    for (number, (object, step)) in again.iter().enumerate() {
        let families = joined.named_families(*object);
        graph.steps.push(Node { step: step.clone(), is_running: true, required_by: None, families });
        let running = NodeIndex::new(first + number);
        for (at, of) in ordering.steps.iter().enumerate() {
            if of.object == *object && !joined.is_running(*of) {
                moved.add_edge(NodeIndex::new(at), running, Wait { because: Because::StepRunning, indirect: false });
            }
        }
    }
    graph.graph = moved;
}

/// One root, which waits for whatever nothing else waits for: when it could run, all is done.
pub(super) fn add_root(graph: &mut ActionGraph) {
    let last: Vec<NodeIndex> = graph.graph.externals(Direction::Incoming).collect();
    let root = graph.graph.add_node(());
    for node in last {
        graph.graph.add_edge(root, node, Wait { because: Because::Onward, indirect: true });
    }
}

/// Acyclic, and one root. The rules leave no ring; should one be left all the same, its steps and all that wait for
/// them are taken out, with an error for each, and everything else proceeds.
fn validate(graph: &mut ActionGraph) -> Diagnostics {
    debug_assert!(graph.graph.externals(Direction::Incoming).count() == 1, "one root");
    let stuck = stuck(graph);
    if !stuck.contains(&true) {
        return Vec::new();
    }
    let ring = format!("in a ring of steps {}", ring_sentence(&any_ring(graph, &stuck)));
    let report = |node: NodeIndex| {
        let step = graph.step(node);
        let summary = format!("{} cannot be put in order", step.id());
        Diagnostic::error(&step.address, Reason::InternalError, summary).because(ring.clone())
    };
    let diagnostics = graph.nodes().filter(|node| stuck[node.index()]).map(report).collect();
    take_out(graph, &stuck);
    add_root(graph);
    diagnostics
}

/// Which nodes stand in a ring, or wait for one.
fn stuck(graph: &ActionGraph) -> Vec<bool> {
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

/// A ring among stuck nodes: each of them waits for a stuck one, so following these comes round.
fn any_ring(graph: &ActionGraph, stuck: &[bool]) -> Vec<(Step, Wait)> {
    let onward = |node: NodeIndex| {
        let edges = graph.graph.edges(node).filter(|edge| stuck[edge.target().index()]);
        edges.map(|edge| (edge.target(), *edge.weight())).min()
    };
    let mut way: Vec<(NodeIndex, Wait)> = Vec::new();
    let mut here = graph.nodes().find(|node| stuck[node.index()]);
    while let Some(node) = here {
        if let Some(start) = way.iter().position(|(passed, _)| *passed == node) {
            let ring = way.drain(start..).filter(|(node, _)| graph.is_step(*node));
            return ring.map(|(node, wait)| (graph.step(node).clone(), wait)).collect();
        }
        let next = onward(node);
        way.extend(next.map(|(_, wait)| (node, wait)));
        here = next.map(|(next, _)| next);
    }
    Vec::new()
}

/// Takes nodes out of the graph, and the root with them if it waits for one.
fn take_out(graph: &mut ActionGraph, out: &[bool]) {
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

/// The operation of a step of the kind `D`.
fn removal(forget: bool) -> Operation {
    if forget { Operation::Forget } else { Operation::Destroy }
}
