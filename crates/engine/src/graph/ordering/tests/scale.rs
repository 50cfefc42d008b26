//! Large graphs have a linear number of edges, because closures are never computed.

use super::super::{Object, Presence, order, order_with_limit};
use super::cases::Dice;

/// The structure of the benchmarks: each object depends on two of the fifty previous objects.
pub fn references(count: u32) -> Vec<Vec<u32>> {
    let mut dice = Dice(7);
    let mut one = |at: u32| at - 1 - dice.roll(u64::from(at.min(50))) as u32;
    (0..count).map(|at| if at == 0 { Vec::new() } else { vec![one(at), one(at)] }).collect()
}

/// Returns objects with this structure. Every tenth object is create-before-destroy.
pub fn shape(count: u32, make: Presence, remove: Presence) -> Vec<Object> {
    let mut flags = vec![false; count as usize];
    let references = references(count);
    for at in (0..count as usize).rev() {
        flags[at] |= at % 10 == 9;
        let flag = flags[at];
        references[at].iter().for_each(|&to| flags[to as usize] |= flag);
    }
    references
        .into_iter()
        .zip(flags)
        .map(|(wants, create_before_destroy)| Object {
            wanted: true,
            create_before_destroy,
            apply: make,
            remove,
            is_record_only: false,
            used: if remove == Presence::Absent { Vec::new() } else { wants.clone() },
            wants,
            deposed: Vec::new(),
            remedies: Vec::new(),
        })
        .collect()
}

#[test]
fn creating_or_replacing_all_objects_needs_few_edges_per_dependency() {
    for remove in [Presence::Absent, Presence::Planned] {
        let ordering = order(&shape(10_000, Presence::Planned, remove));
        assert!(ordering.edges.len() < 100_000, "{} edges", ordering.edges.len());
    }
}

/// Returns a thousand objects that depend on one hub, which depends on a thousand others.
fn through_a_hub(hub: &Object, dependent: &Object, dependency: &Object, is_recorded: bool) -> Vec<Object> {
    let with = |object: &Object, list: Vec<u32>| Object {
        wants: list.clone(),
        used: if is_recorded { list } else { Vec::new() },
        ..object.clone()
    };
    let mut objects = vec![dependency.clone(); 1_000];
    objects.push(with(hub, (0..1_000).collect()));
    objects.extend((0..1_000).map(|_| with(dependent, vec![1_000])));
    objects
}

#[test]
fn an_unchanged_hub_needs_linear_edges() {
    let object = |wanted, create_before_destroy, make, remove| {
        let step = |there| if there { Presence::Planned } else { Presence::Absent };
        Object { wanted, create_before_destroy, apply: step(make), remove: step(remove), ..Object::default() }
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

/// All objects are replaced with destroy before create, and every tenth dependency has changed, which causes many
/// cycles.
#[test]
fn the_work_on_cycles_is_limited() {
    let mut objects = shape(2_000, Presence::Planned, Presence::Planned);
    let mut dice = Dice(3);
    for (at, object) in objects.iter_mut().enumerate().skip(100) {
        if dice.roll(5) == 0 {
            object.used[0] = at as u32 - 1 - dice.roll(50) as u32;
        }
    }
    objects.iter_mut().for_each(|object| object.create_before_destroy = false);
    let ordering = order_with_limit(&objects, 300_000);
    super::judge::assert_acyclic(&ordering);
    assert!(!ordering.fallbacks.is_empty());
    assert!(ordering.edges.len() < 40_000, "{} edges", ordering.edges.len());
}
