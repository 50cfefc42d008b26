//! Large graphs stay small: closures are never written out.

use super::super::{Object, Presence, order};
use super::cases::Dice;

/// The shape of the benchmarks: two references each, drawn from the fifty objects before.
pub(super) fn references(count: u32) -> Vec<Vec<u32>> {
    let mut dice = Dice(7);
    let mut one = |at: u32| at - 1 - dice.roll(u64::from(at.min(50))) as u32;
    (0..count).map(|at| if at == 0 { Vec::new() } else { vec![one(at), one(at)] }).collect()
}

/// Objects in that shape, every tenth asking for create-before-destroy.
pub(super) fn shape(count: u32, make: Presence, remove: Presence) -> Vec<Object> {
    let mut flags = vec![false; count as usize];
    let references = references(count);
    for at in (0..count as usize).rev() {
        flags[at] |= at % 10 == 9;
        let flag = flags[at];
        references[at].iter().for_each(|&to| flags[to as usize] |= flag);
    }
    let object = |(wants, create_before_destroy): (Vec<u32>, bool)| Object {
        wanted: true,
        create_before_destroy,
        make,
        remove,
        used: if remove == Presence::Absent { Vec::new() } else { wants.clone() },
        wants,
        leftovers: Vec::new(),
    };
    references.into_iter().zip(flags).map(object).collect()
}

#[test]
fn creating_or_replacing_everything_takes_a_few_edges_for_each_reference() {
    for remove in [Presence::Absent, Presence::Planned] {
        let ordering = order(&shape(10_000, Presence::Planned, remove));
        assert!(ordering.edges.len() < 100_000, "{} edges", ordering.edges.len());
    }
}
