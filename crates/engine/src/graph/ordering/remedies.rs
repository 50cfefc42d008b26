//! R10: a change that a driver refuses as things are now runs after the steps that may resolve that, unless that would
//! cause a cycle. The first step of a destroy-before-create replacement is the destroy of the old object.

use super::EdgeReason;
use super::builder::GraphBuilder;
use super::relations::Relations;
use super::topology::{Incremental, NONE};

/// Adds the edges of R10 to a graph without cycles.
pub(super) fn add(relations: &Relations<'_>, builder: &mut GraphBuilder) {
    let pairs: Vec<(u32, u32)> = pairs(relations).collect();
    if pairs.is_empty() {
        return;
    }
    let mut order = Incremental::new(&builder.adjacency());
    for (from, to) in pairs {
        if order.add(from, to) {
            builder.wait(from, to, EdgeReason::RemedyFirst, false);
        }
    }
}

/// The first step of each refused change, with each step of its remedies.
fn pairs(relations: &Relations<'_>) -> impl Iterator<Item = (u32, u32)> {
    let first = |at: u32| {
        let (apply, remove) = (relations.apply[at as usize], relations.remove[at as usize]);
        if remove == NONE || relations.creates_first(at) { apply } else { remove }
    };
    let refused = relations.objects.iter().zip(0_u32..).filter(|(object, _)| !object.remedies.is_empty());
    let pairs = refused.flat_map(move |(object, at)| {
        let steps =
            object.remedies.iter().flat_map(|&to| [relations.apply[to as usize], relations.remove[to as usize]]);
        steps.map(move |to| (first(at), to))
    });
    pairs.filter(|&(from, to)| from != NONE && to != NONE)
}
