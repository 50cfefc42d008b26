//! Large graphs stay small: closures are never written out.

use super::super::{Object, Presence, order, order_within};
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
        only_records: false,
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

/// A thousand objects that refer to one hub, which refers to a thousand others: `hub` says what the hub does.
fn through_a_hub(hub: &Object, dependent: &Object, dependency: &Object, is_recorded: bool) -> Vec<Object> {
    let edges = |list: Vec<u32>| (list.clone(), if is_recorded { list } else { Vec::new() });
    let with = |object: &Object, list: Vec<u32>| {
        let (wants, used) = edges(list);
        Object { wants, used, ..object.clone() }
    };
    let mut objects = vec![dependency.clone(); 1_000];
    objects.push(with(hub, (0..1_000).collect()));
    objects.extend((0..1_000).map(|_| with(dependent, vec![1_000])));
    objects
}

#[test]
fn an_untouched_hub_costs_its_references_and_not_their_product() {
    let object = |wanted, create_before_destroy, make, remove| {
        let step = |there| if there { Presence::Planned } else { Presence::Absent };
        Object { wanted, create_before_destroy, make: step(make), remove: step(remove), ..Object::default() }
    };
    let hub = object(true, false, false, false);
    let (created, updated) = (object(true, false, true, false), object(true, false, true, false));
    let (replaced, first) = (object(true, false, true, true), object(true, true, true, true));
    let (destroyed, gone) = (object(false, false, false, true), object(false, true, false, true));
    let unwanted_hub = object(false, false, false, false);
    let cases = [
        ("created", through_a_hub(&hub, &created, &created, false)),
        ("replaced", through_a_hub(&hub, &replaced, &replaced, true)),
        ("updated over create-first", through_a_hub(&hub, &updated, &first, true)),
        ("destroyed", through_a_hub(&unwanted_hub, &destroyed, &destroyed, true)),
        ("destroyed over updated", through_a_hub(&unwanted_hub, &destroyed, &updated, true)),
        ("destroyed late over updated", through_a_hub(&unwanted_hub, &gone, &updated, true)),
        ("released", through_a_hub(&hub, &updated, &destroyed, true)),
    ];
    for (title, objects) in cases {
        let ordering = order(&objects);
        let edges = ordering.edges.len();
        assert!((1_000..8_000).contains(&edges), "{title}: {edges} edges");
    }
}

/// Everything is replaced delete-first and every tenth reference was changed: rings wherever one looks.
#[test]
fn what_is_spent_on_rings_is_bounded() {
    let mut objects = shape(2_000, Presence::Planned, Presence::Planned);
    let mut dice = Dice(3);
    for (at, object) in objects.iter_mut().enumerate().skip(100) {
        if dice.roll(5) == 0 {
            object.used[0] = at as u32 - 1 - dice.roll(50) as u32;
        }
    }
    objects.iter_mut().for_each(|object| object.create_before_destroy = false);
    let ordering = order_within(&objects, 300_000);
    super::judge::assert_acyclic(&ordering);
    assert!(!ordering.fell_back.is_empty());
    assert!(ordering.edges.len() < 40_000, "{} edges", ordering.edges.len());
}
