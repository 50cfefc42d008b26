//! R9: what a delete-first replacement needs anew is there before the old object is given up, wherever that closes
//! no ring.
//!
//! The rule speaks of pairs, each tried in address order. For one object the order of its pairs does not matter, and
//! all of them can be tried at once: a junction for what it needs anew closes a ring exactly when one of the pairs
//! does. Only then they are tried more finely.

use std::collections::BTreeSet;

use super::Because;
use super::draft::Draft;
use super::topology::{Adjacency, Incremental, NONE, Search};
use super::world::World;

/// Adds the edges of R9 to a graph without rings.
pub(super) fn add(world: &World<'_>, draft: &mut Draft) {
    let candidates = candidates(world, draft);
    if candidates.is_empty() {
        return;
    }
    let before = draft.edges.len();
    for &(remove, newcomers) in &candidates {
        draft.wait(remove, newcomers, Because::NewDependencyFirst, false);
    }
    let rings = draft.rings();
    let known = known_records(world, &candidates);
    if rings.is_empty() && known.is_empty() {
        return;
    }
    draft.edges.truncate(before);
    add_one_by_one(draft, &candidates, &rings, &known);
}

/// The record-only steps of what some replaced objects used, each after the destroy of such an object. To these R4 does
/// not apply, so no ring tells that they are no newcomers.
fn known_records(world: &World<'_>, candidates: &[(u32, u32)]) -> BTreeSet<(u32, u32)> {
    let only_records = |at: u32| world.makes(at) && !world.changes(at);
    let mut stands_on_records = vec![false; world.objects.len()];
    for &at in &world.used_order {
        stands_on_records[at as usize] =
            world.used.of(at).iter().any(|&to| only_records(to) || stands_on_records[to as usize]);
    }
    let mut search = Search::new(world.objects.len());
    let mut known = BTreeSet::new();
    for &(remove, _) in candidates {
        let at = world.steps[remove as usize].object;
        if stands_on_records[at as usize] && search.visits <= MOST_VISITS {
            let used = search.reachable(&world.used, world.used.of(at));
            known.extend(used.into_iter().filter(|&to| only_records(to)).map(|to| (remove, world.make[to as usize])));
        }
    }
    known
}

/// For each delete-first replacement that wants what it had not used: its destroy, and the node that stands for all
/// that it wants anew. What it reaches on old ways only is no newcomer; what it reaches on both is found out by the
/// ring that it closes with R4.
fn candidates(world: &World<'_>, draft: &mut Draft) -> Vec<(u32, u32)> {
    let replaced = |at: u32| world.makes(at) && world.removes(at) && !world.creates_first(at);
    let numbers = || 0..world.objects.len() as u32;
    let leads_to_new = leads_to_new(world);
    if !numbers().any(|at| replaced(at) && leads_to_new[at as usize]) {
        return Vec::new();
    }
    let count = world.objects.len();
    let wanted = draft.chain(world.wants_order.iter(), count, |at, chain, found| {
        found.push(world.make[at as usize]);
        if !world.makes(at) {
            found.extend(world.wants.of(at).iter().map(|&to| chain[to as usize]));
        }
    });
    let newcomers = draft.chain(world.wants_order.iter().filter(|&&at| leads_to_new[at as usize]), count, {
        |at, chain, found| {
            let way = |&to: &u32| if world.used.has(at, to) { chain[to as usize] } else { wanted[to as usize] };
            found.extend(world.wants.of(at).iter().map(way));
        }
    });
    let pairs = numbers().filter(|&at| replaced(at)).map(|at| (world.remove[at as usize], newcomers[at as usize]));
    pairs.filter(|&(_, newcomers)| newcomers != NONE).collect()
}

/// The objects from which some chain of references has one that the records do not have.
fn leads_to_new(world: &World<'_>) -> Vec<bool> {
    let mut leads = vec![false; world.objects.len()];
    for &at in &world.wants_order {
        leads[at as usize] = world.wants.of(at).iter().any(|&to| leads[to as usize] || !world.used.has(at, to));
    }
    leads
}

/// How much may be looked at: a second's worth. What is not tried then goes in the order of the other rules, which
/// closes no ring and is no worse than what Terraform does.
const MOST_VISITS: usize = 20_000_000;

/// Tries candidates in address order. An edge that is in no ring even with all candidates drawn is in none with some
/// of them, so only those within a ring are tried, and those that lead to what is `known` as no newcomer.
fn add_one_by_one(draft: &mut Draft, candidates: &[(u32, u32)], rings: &[Vec<u32>], known: &BTreeSet<(u32, u32)>) {
    let mut ring_of = vec![NONE; draft.nodes()];
    for (ring, at) in rings.iter().zip(0..) {
        for &node in ring {
            ring_of[node as usize] = at;
        }
    }
    let is_inner =
        |&(from, to): &(u32, u32)| ring_of[from as usize] != NONE && ring_of[from as usize] == ring_of[to as usize];
    let knows_some = |remove: u32| known.range((remove, 0)..=(remove, NONE)).next().is_some();
    let is_doubtful = |pair: &(u32, u32)| is_inner(pair) || knows_some(pair.0);
    let (doubtful, safe): (Vec<_>, Vec<_>) = candidates.iter().copied().partition(is_doubtful);
    for (remove, newcomers) in safe {
        draft.wait(remove, newcomers, Because::NewDependencyFirst, false);
    }
    let onward = ways_on(draft);
    let mut order = Incremental::new(&draft.adjacency());
    for (remove, newcomers) in doubtful {
        if order.search.visits > MOST_VISITS {
            break;
        }
        let mut tried = BTreeSet::new();
        let mut open = vec![newcomers];
        while let Some(node) = open.pop() {
            if !tried.insert(node) {
                continue;
            }
            // A junction may lead to what is known.
            let is_whole = !knows_some(remove) || draft.is_step(node);
            if is_whole && !known.contains(&(remove, node)) && order.add(remove, node) {
                draft.wait(remove, node, Because::NewDependencyFirst, false);
            } else {
                open.extend(onward.of(node));
            }
        }
    }
}

/// From a junction, or a step `C`, to what it stands for or refers to: where to look on when it cannot be added whole.
fn ways_on(draft: &Draft) -> Adjacency {
    let is_way = |because: Because| matches!(because, Because::Onward | Because::References);
    let edges = draft.edges.iter().filter(|edge| is_way(edge.because));
    Adjacency::new(draft.nodes(), edges.map(|edge| (edge.from, edge.to)))
}
