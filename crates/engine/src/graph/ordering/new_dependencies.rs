//! R9: in a destroy-before-create replacement, new dependencies exist before the old object is destroyed, unless that
//! would cause a cycle.
//!
//! The rule applies to pairs of steps in address order. The pairs of an object can be tried together: a junction for
//! its new dependencies is in a cycle exactly if one of the pairs is. Only then are they tried one by one.

use std::collections::BTreeSet;

use super::EdgeReason;
use super::builder::GraphBuilder;
use super::relations::Relations;
use super::topology::{Adjacency, Incremental, NONE, Search};

/// Adds the edges of R9 to a graph without cycles.
pub fn add(relations: &Relations<'_>, builder: &mut GraphBuilder) {
    let candidates = candidates(relations, builder);
    if candidates.is_empty() {
        return;
    }
    let before = builder.edges.len();
    for &(remove, new_dependencies) in &candidates {
        builder.wait(remove, new_dependencies, EdgeReason::NewDependencyFirst, false);
    }
    let cycles = builder.cycles();
    let known = existing_records(relations, &candidates);
    if cycles.is_empty() && known.is_empty() {
        return;
    }
    builder.edges.truncate(before);
    add_one_by_one(builder, &candidates, &cycles, &known);
}

/// Returns pairs of the destroy of a replaced object and a record-only step of one of its recorded dependencies. R4
/// does not apply to these steps, so no cycle shows that they are not new dependencies.
fn existing_records(relations: &Relations<'_>, candidates: &[(u32, u32)]) -> BTreeSet<(u32, u32)> {
    let mut stands_on_records = vec![false; relations.objects.len()];
    for &at in &relations.used_order {
        stands_on_records[at as usize] =
            relations.used.of(at).iter().any(|&to| relations.only_records(to) || stands_on_records[to as usize]);
    }
    let mut search = Search::new(relations.objects.len());
    let mut known = BTreeSet::new();
    for &(remove, _) in candidates {
        let at = relations.steps[remove as usize].object;
        if stands_on_records[at as usize] && search.visits <= MOST_VISITS {
            let used = search.reachable(&relations.used, relations.used.of(at));
            let records = used.into_iter().filter(|&to| relations.only_records(to));
            known.extend(records.map(|to| (remove, relations.apply[to as usize])));
        }
    }
    known
}

/// Returns the destroy of each destroy-before-create replacement with new dependencies, and the node that represents
/// them. A dependency that is only reachable through recorded dependencies is not new. One that is reachable both ways
/// is found later, because it causes a cycle with R4.
fn candidates(relations: &Relations<'_>, builder: &mut GraphBuilder) -> Vec<(u32, u32)> {
    let count = relations.objects.len();
    let replaced: Vec<u32> = (0..count as u32)
        .filter(|&at| relations.has_apply(at) && relations.has_remove(at) && !relations.creates_first(at))
        .collect();
    let leads_to_new = leads_to_new(relations);
    if !replaced.iter().any(|&at| leads_to_new[at as usize]) {
        return Vec::new();
    }
    let wanted = builder.chain(relations.wants_order.iter(), count, |at, chain, found| {
        found.push(relations.apply[at as usize]);
        if !relations.has_apply(at) {
            found.extend(relations.wants.of(at).iter().map(|&to| chain[to as usize]));
        }
    });
    let new_dependencies =
        builder.chain(relations.wants_order.iter().filter(|&&at| leads_to_new[at as usize]), count, {
            |at, chain, found| {
                for &to in relations.wants.of(at) {
                    found.push(if relations.used.has(at, to) { chain[to as usize] } else { wanted[to as usize] });
                }
            }
        });
    let pairs = replaced.into_iter().map(|at| (relations.remove[at as usize], new_dependencies[at as usize]));
    pairs.filter(|&(_, new_dependencies)| new_dependencies != NONE).collect()
}

/// Returns for each object whether a chain of its desired dependencies contains one that is not recorded.
fn leads_to_new(relations: &Relations<'_>) -> Vec<bool> {
    let mut leads = vec![false; relations.objects.len()];
    for &at in &relations.wants_order {
        leads[at as usize] = relations.wants.of(at).iter().any(|&to| leads[to as usize] || !relations.used.has(at, to));
    }
    leads
}

/// The limit of visited nodes, which takes about a second. Pairs beyond the limit are ordered only by the other rules,
/// as in Terraform.
const MOST_VISITS: usize = 20_000_000;

/// Tries candidates in address order. An edge that is in no cycle with all candidates is in no cycle with some of them,
/// so only those in a cycle are tried, and those that lead to `known` steps.
fn add_one_by_one(
    builder: &mut GraphBuilder,
    candidates: &[(u32, u32)],
    cycles: &[Vec<u32>],
    known: &BTreeSet<(u32, u32)>,
) {
    let mut cycle_of = vec![NONE; builder.nodes()];
    for (cycle, at) in cycles.iter().zip(0..) {
        for &node in cycle {
            cycle_of[node as usize] = at;
        }
    }
    let (doubtful, safe): (Vec<_>, Vec<_>) = candidates.iter().copied().partition(|&(remove, new_dependencies)| {
        let cycle = cycle_of[remove as usize];
        (cycle != NONE && cycle == cycle_of[new_dependencies as usize]) || knows_some(known, remove)
    });
    for (remove, new_dependencies) in safe {
        builder.wait(remove, new_dependencies, EdgeReason::NewDependencyFirst, false);
    }
    let onward = successors(builder);
    let mut order = Incremental::new(&builder.adjacency());
    for (remove, new_dependencies) in doubtful {
        if order.search.visits > MOST_VISITS {
            break;
        }
        let mut tried = BTreeSet::new();
        let mut open = vec![new_dependencies];
        while let Some(node) = open.pop() {
            if !tried.insert(node) {
                continue;
            }
            // A junction can lead to known steps.
            let is_whole = !knows_some(known, remove) || builder.is_step(node);
            if is_whole && !known.contains(&(remove, node)) && order.add(remove, node) {
                builder.wait(remove, node, EdgeReason::NewDependencyFirst, false);
            } else {
                open.extend(onward.of(node));
            }
        }
    }
}

fn knows_some(known: &BTreeSet<(u32, u32)>, remove: u32) -> bool {
    known.range((remove, 0)..=(remove, NONE)).next().is_some()
}

/// Returns the successors of junctions and of steps `C(x)`, which are tried if the node itself cannot be added.
fn successors(builder: &GraphBuilder) -> Adjacency {
    let edges =
        builder.edges.iter().filter(|edge| matches!(edge.reason, EdgeReason::Junction | EdgeReason::References));
    Adjacency::new(builder.nodes(), edges.map(|edge| (edge.from, edge.to)))
}
