//! Every case of three objects, and random cases of more.

use super::super::{Leftover, Object, Presence};
use super::judge::judge;
use crate::plan::inherit::{Subject, effective};

/// What one object may be: recorded or not, wanted or not, with its steps and its flag.
#[derive(Clone, Copy, Debug)]
struct Fate {
    recorded: bool,
    wanted: bool,
    make: bool,
    remove: bool,
    /// Its step `C` is record-only.
    only_records: bool,
    flag: bool,
}

/// All of them. An object that is neither recorded nor wanted is there too: others' records may still name it.
fn fates() -> Vec<Fate> {
    let plain = [
        (true, true, false, false),
        (true, true, true, false),
        (true, true, true, true),
        (true, false, false, false),
        (true, false, false, true),
        (false, true, false, false),
        (false, true, true, false),
    ]
    .map(|(recorded, wanted, make, remove)| Fate {
        recorded,
        wanted,
        make,
        remove,
        only_records: false,
        flag: false,
    });
    let records = Fate { only_records: true, ..plain[1] };
    let unflagged = || plain.into_iter().chain([records]);
    let nowhere = Fate { recorded: false, wanted: false, ..plain[0] };
    unflagged().chain(unflagged().map(|fate| Fate { flag: true, ..fate })).chain([nowhere]).collect()
}

/// Every graph without rings over three objects, as lists of what each points at.
fn graphs() -> Vec<[Vec<u32>; 3]> {
    let pairs: Vec<(u32, u32)> = (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    let graph = |set: u32| {
        let mut lists: [Vec<u32>; 3] = Default::default();
        for (at, &(from, to)) in pairs.iter().enumerate() {
            if set >> at & 1 == 1 {
                lists[from as usize].push(to);
            }
        }
        lists
    };
    (0..64).map(graph).filter(|lists| is_acyclic(lists)).collect()
}

fn is_acyclic(lists: &[Vec<u32>]) -> bool {
    let direct: Vec<u64> = lists.iter().map(|list| list.iter().fold(0, |set, to| set | 1 << to)).collect();
    super::plain::closure(&direct).iter().enumerate().all(|(at, reach)| reach >> at & 1 == 0)
}

/// Gives every object its effective flag.
pub(super) fn inherit(objects: &mut [Object], flags: &[bool]) {
    let wide = |list: &[u32]| list.iter().map(|&at| at as usize).collect::<Vec<_>>();
    let subject = |(object, &flag): (&Object, &bool)| Subject {
        wanted: object.wanted,
        asks: object.wanted && flag,
        recorded_flag: flag,
        wants: wide(&object.wants),
        used: wide(&object.used),
        leftovers_used: object.leftovers.iter().flat_map(|left| wide(&left.used)).collect(),
    };
    let subjects: Vec<Subject> = objects.iter().zip(flags).map(subject).collect();
    let found = effective(&subjects);
    for (at, object) in objects.iter_mut().enumerate() {
        object.create_before_destroy = found.is_on(at);
    }
}

fn step(there: bool) -> Presence {
    if there { Presence::Planned } else { Presence::Absent }
}

fn object(fate: Fate, wants: &[u32], used: &[u32]) -> Object {
    Object {
        wanted: fate.wanted,
        make: step(fate.make),
        remove: step(fate.remove),
        only_records: fate.only_records,
        wants: wants.to_vec(),
        used: used.to_vec(),
        ..Object::default()
    }
}

/// Shows every case of three objects, and which of them are recorded.
pub(super) fn every_case(mut look: impl FnMut(&[Object], &[bool])) {
    let (fates, graphs) = (fates(), graphs());
    for number in 0..fates.len().pow(3) {
        let chosen = [0, 1, 2].map(|at| fates[number / fates.len().pow(at) % fates.len()]);
        let flags = chosen.map(|fate| fate.flag);
        // Edges that would say nothing make no further cases.
        let says = |graph: &[Vec<u32>; 3], may: &dyn Fn(usize, usize) -> bool| {
            (0..3).all(|from| graph[from].iter().all(|&to| may(from, to as usize)))
        };
        for wants in graphs.iter().filter(|graph| says(graph, &|from, to| chosen[from].wanted && chosen[to].wanted)) {
            for used in graphs.iter().filter(|graph| says(graph, &|from, _| chosen[from].recorded)) {
                let mut objects = [0, 1, 2].map(|at| object(chosen[at], &wants[at], &used[at]));
                inherit(&mut objects, &flags);
                look(&objects, &chosen.map(|fate| fate.recorded));
            }
        }
    }
}

#[test]
fn every_case_of_three_objects_follows_the_rules() {
    let mut cases = 0_usize;
    every_case(|objects, _| {
        cases += 1;
        if let Err(broken) = judge(objects) {
            panic!("{broken}\n{objects:#?}");
        }
    });
    eprintln!("{cases} cases");
    assert!(cases > 172_840);
}

/// A small generator of its own: the same cases on every machine, each named by its seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % sides
    }

    pub(super) fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    /// A random graph without rings: edges go down a random order.
    fn graph(&mut self, count: usize) -> Vec<Vec<u32>> {
        let mut order: Vec<u32> = (0..count as u32).collect();
        for at in (1..count).rev() {
            order.swap(at, self.roll(at as u64 + 1) as usize);
        }
        let density = 2 + self.roll(4);
        let mut lists = vec![Vec::new(); count];
        for from in 0..count {
            for &to in &order[..from] {
                if self.one_in(density) {
                    lists[order[from] as usize].push(to);
                }
            }
        }
        lists
    }
}

/// A random situation of four to seven objects, the flags that they have of their own, and which are recorded.
pub(super) fn situation(seed: u64, with_leftovers: bool, with_running: bool) -> (Vec<Object>, Vec<bool>, Vec<bool>) {
    let mut dice = Dice(seed);
    let count = 4 + dice.roll(4) as usize;
    let fates = fates();
    let chosen: Vec<Fate> = (0..count).map(|_| fates[dice.roll(fates.len() as u64) as usize]).collect();
    let used = dice.graph(count);
    // Configuration and records agree mostly, as they do in life, or not at all.
    let wants = if dice.one_in(2) { used.clone() } else { dice.graph(count) };
    let mut objects = Vec::new();
    for at in 0..count {
        let used: &[u32] = if chosen[at].recorded { &used[at] } else { &[] };
        let mut object = object(chosen[at], &wants[at], used);
        object.wants.retain(|_| !dice.one_in(8));
        for _ in 0..if with_leftovers { dice.roll(3).saturating_sub(dice.roll(2)) } else { 0 } {
            let others = (0..count as u32).filter(|&other| other as usize != at);
            let used = others.filter(|_| dice.one_in(4)).collect();
            object.leftovers.push(Leftover { remove: step(!dice.one_in(5)), used });
        }
        if with_running {
            let leftovers = object.leftovers.iter_mut().map(|left| &mut left.remove);
            for presence in [&mut object.make, &mut object.remove].into_iter().chain(leftovers) {
                if *presence == Presence::Planned && dice.one_in(4) {
                    *presence = Presence::Running;
                }
            }
            // A new object is made once the old one is gone, or it is a leftover by then.
            if object.wanted && object.make == Presence::Running {
                object.remove = Presence::Absent;
            }
        }
        if chosen[at].recorded && object.make == Presence::Absent && dice.one_in(4) {
            object.make = Presence::Apart;
        }
        objects.push(object);
    }
    let flags: Vec<bool> = chosen.iter().map(|fate| fate.flag && dice.one_in(2)).collect();
    inherit(&mut objects, &flags);
    (objects, flags, chosen.iter().map(|fate| fate.recorded).collect())
}

fn check(seeds: std::ops::Range<u64>, with_leftovers: bool, with_running: bool) {
    for seed in seeds {
        let (objects, ..) = situation(seed, with_leftovers, with_running);
        if let Err(broken) = judge(&objects) {
            panic!("seed {seed}: {broken}\n{objects:#?}");
        }
    }
}

#[test]
fn random_situations_follow_the_rules() {
    check(0..10_000, false, false);
}

#[test]
fn random_situations_with_leftovers_follow_the_rules() {
    check(100_000..120_000, true, false);
}

#[test]
fn random_situations_with_running_steps_follow_the_rules() {
    check(200_000..210_000, true, true);
}

/// In a hurry more objects fall back than need to; but for these every rule holds, and there is no ring.
#[test]
fn in_a_hurry_there_is_no_ring_either() {
    let mut fell_back = 0;
    for seed in 0..5_000 {
        let (objects, ..) = situation(seed, seed % 2 == 0, false);
        let ordering = super::super::order_within(&objects, 0);
        let reach = super::judge::reach(&ordering);
        fell_back += ordering.fell_back.len();
        let fallen = |at: usize| ordering.fell_back.iter().any(|fell| fell.object as usize == at);
        let terms = super::plain::Terms::new(&objects);
        if let Err(broken) = super::judge::check_rules(&terms, &reach, &fallen) {
            panic!("seed {seed}: {broken}\n{objects:#?}");
        }
    }
    assert!(fell_back > 0);
}
