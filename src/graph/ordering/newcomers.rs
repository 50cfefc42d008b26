//! R9: what a delete-first replacement needs anew is there before the old object is given up, wherever that closes
//! no ring.
//!
//! The rule speaks of pairs, each tried in address order. For one object the order of its pairs does not matter, and
//! all of them can be tried at once: a junction for what it needs anew closes a ring exactly when one of the pairs
//! does. Only then they are tried more finely.

use std::collections::BTreeSet;

use super::Because;
use super::draft::Draft;
use super::topology::{Adjacency, Incremental, NONE};
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
    if rings.is_empty() {
        return;
    }
    draft.edges.truncate(before);
    add_one_by_one(draft, &candidates, &rings);
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
/// of them, so only those within a ring are tried.
fn add_one_by_one(draft: &mut Draft, candidates: &[(u32, u32)], rings: &[Vec<u32>]) {
    let mut ring_of = vec![NONE; draft.nodes()];
    for (ring, at) in rings.iter().zip(0..) {
        for &node in ring {
            ring_of[node as usize] = at;
        }
    }
    let is_inner =
        |&(from, to): &(u32, u32)| ring_of[from as usize] != NONE && ring_of[from as usize] == ring_of[to as usize];
    let (doubtful, safe): (Vec<_>, Vec<_>) = candidates.iter().copied().partition(is_inner);
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
            if order.add(remove, node) {
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
