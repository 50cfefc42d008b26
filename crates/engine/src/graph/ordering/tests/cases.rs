//! All cases of three objects, and random cases of more objects.

use super::super::{Deposed, Object, Presence};
use super::judge::judge;
use crate::plan::inherit::{FlagNode, effective};

/// The state of an object: whether it is recorded and desired, its steps and its flag.
#[derive(Clone, Copy, Debug)]
struct ObjectState {
    recorded: bool,
    wanted: bool,
    make: bool,
    remove: bool,
    /// Its step `C` is record-only.
    only_records: bool,
    flag: bool,
}

/// Returns all states. Other records can depend on an object that is neither recorded nor desired.
fn fates() -> Vec<ObjectState> {
    let plain = [
        (true, true, false, false),
        (true, true, true, false),
        (true, true, true, true),
        (true, false, false, false),
        (true, false, false, true),
        (false, true, false, false),
        (false, true, true, false),
    ]
    .map(|(recorded, wanted, make, remove)| ObjectState {
        recorded,
        wanted,
        make,
        remove,
        only_records: false,
        flag: false,
    });
    let records = ObjectState { only_records: true, ..plain[1] };
    let unflagged = || plain.into_iter().chain([records]);
    let nowhere = ObjectState { recorded: false, wanted: false, ..plain[0] };
    unflagged().chain(unflagged().map(|fate| ObjectState { flag: true, ..fate })).chain([nowhere]).collect()
}

/// Returns all acyclic graphs of three objects as adjacency lists.
fn graphs() -> Vec<[Vec<u32>; 3]> {
    let pairs: Vec<(u32, u32)> = (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    (0..64)
        .map(|set| {
            let mut lists: [Vec<u32>; 3] = Default::default();
            for (at, &(from, to)) in pairs.iter().enumerate() {
                if set >> at & 1 == 1 {
                    lists[from as usize].push(to);
                }
            }
            lists
        })
        .filter(|lists| is_acyclic(lists))
        .collect()
}

fn is_acyclic(lists: &[Vec<u32>]) -> bool {
    let direct: Vec<u64> = lists.iter().map(|list| list.iter().fold(0, |set, to| set | 1 << to)).collect();
    super::plain::closure(&direct).iter().enumerate().all(|(at, reach)| reach >> at & 1 == 0)
}

/// Sets the effective flags.
pub fn inherit(objects: &mut [Object], flags: &[bool]) {
    let wide = |list: &[u32]| list.iter().map(|&at| at as usize).collect::<Vec<_>>();
    let subjects: Vec<FlagNode> = objects
        .iter()
        .zip(flags)
        .map(|(object, &flag)| FlagNode {
            desired: object.wanted,
            sets_flag: object.wanted && flag,
            recorded_flag: flag,
            dependencies: wide(&object.wants),
            recorded_dependencies: wide(&object.used),
            deposed_dependencies: object.deposed.iter().flat_map(|left| wide(&left.used)).collect(),
        })
        .collect();
    let found = effective(&subjects);
    for (at, object) in objects.iter_mut().enumerate() {
        object.create_before_destroy = found.is_on(at);
    }
}

fn step(there: bool) -> Presence {
    if there { Presence::Planned } else { Presence::Absent }
}

fn object(fate: ObjectState, wants: &[u32], used: &[u32]) -> Object {
    Object {
        wanted: fate.wanted,
        apply: step(fate.make),
        remove: step(fate.remove),
        is_record_only: fate.only_records,
        wants: wants.to_vec(),
        used: used.to_vec(),
        ..Object::default()
    }
}

/// Calls a function with all cases of three objects, and which of them are recorded.
pub fn every_case(mut look: impl FnMut(&[Object], &[bool])) {
    let (fates, graphs) = (fates(), graphs());
    for number in 0..fates.len().pow(3) {
        let chosen = [0, 1, 2].map(|at| fates[number / fates.len().pow(at) % fates.len()]);
        let flags = chosen.map(|fate| fate.flag);
        // Skip graphs with edges that have no effect.
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
fn all_cases_of_three_objects_follow_the_rules() {
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

/// A random number generator with the same results on every machine.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % sides
    }

    pub fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    /// Returns a random acyclic graph: edges follow a random order.
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

/// Returns four to seven random objects, their own flags, and which of them are recorded.
pub fn random_case(seed: u64, with_deposed: bool, with_running: bool) -> (Vec<Object>, Vec<bool>, Vec<bool>) {
    let mut dice = Dice(seed);
    let count = 4 + dice.roll(4) as usize;
    let fates = fates();
    let chosen: Vec<ObjectState> = (0..count).map(|_| fates[dice.roll(fates.len() as u64) as usize]).collect();
    let used = dice.graph(count);
    // Configuration and records are mostly equal, or unrelated.
    let wants = if dice.one_in(2) { used.clone() } else { dice.graph(count) };
    let mut objects = Vec::new();
    for at in 0..count {
        let used: &[u32] = if chosen[at].recorded { &used[at] } else { &[] };
        let mut object = object(chosen[at], &wants[at], used);
        object.wants.retain(|_| !dice.one_in(8));
        for _ in 0..if with_deposed { dice.roll(3).saturating_sub(dice.roll(2)) } else { 0 } {
            let others = (0..count as u32).filter(|&other| other as usize != at);
            let used = others.filter(|_| dice.one_in(4)).collect();
            object.deposed.push(Deposed { remove: step(!dice.one_in(5)), used });
        }
        if with_running {
            let deposed = object.deposed.iter_mut().map(|left| &mut left.remove);
            for presence in [&mut object.apply, &mut object.remove].into_iter().chain(deposed) {
                if *presence == Presence::Planned && dice.one_in(4) {
                    *presence = Presence::Running;
                }
            }
            // When a create runs, the old object is destroyed or deposed already.
            if object.wanted && object.apply == Presence::Running {
                object.remove = Presence::Absent;
            }
        }
        if chosen[at].recorded && object.apply == Presence::Absent && dice.one_in(4) {
            object.apply = Presence::Detached;
        }
        objects.push(object);
    }
    let flags: Vec<bool> = chosen.iter().map(|fate| fate.flag && dice.one_in(2)).collect();
    inherit(&mut objects, &flags);
    (objects, flags, chosen.iter().map(|fate| fate.recorded).collect())
}

fn check(seeds: std::ops::Range<u64>, with_deposed: bool, with_running: bool) {
    for seed in seeds {
        let (objects, ..) = random_case(seed, with_deposed, with_running);
        if let Err(broken) = judge(&objects) {
            panic!("seed {seed}: {broken}\n{objects:#?}");
        }
    }
}

#[test]
fn random_cases_follow_the_rules() {
    check(0..10_000, false, false);
}

#[test]
fn random_cases_with_deposed_objects_follow_the_rules() {
    check(100_000..120_000, true, false);
}

#[test]
fn random_cases_with_running_steps_follow_the_rules() {
    check(200_000..210_000, true, true);
}

/// In a hurry, the fallback applies to more objects than necessary. All other rules hold, and there is no cycle.
#[test]
fn the_limit_of_work_causes_no_cycle() {
    let mut fallbacks = 0;
    for seed in 0..5_000 {
        let (objects, ..) = random_case(seed, seed % 2 == 0, false);
        let ordering = super::super::order_with_limit(&objects, 0);
        let reach = super::judge::reach(&ordering);
        fallbacks += ordering.fallbacks.len();
        let is_fallback = |at: usize| ordering.fallbacks.iter().any(|fell| fell.object as usize == at);
        let terms = super::plain::Terms::new(&objects);
        if let Err(broken) = super::judge::check_rules(&terms, &reach, &is_fallback) {
            panic!("seed {seed}: {broken}\n{objects:#?}");
        }
    }
    assert!(fallbacks > 0);
}
