//! An object without steps that depends on all instances of a family has the same effect as dependencies on every
//! instance: for all cases of three objects, and random ones.

use super::super::{Deposed, Object};
use super::cases::{Dice, every_case, random_case};
use super::judge::judge_against;
use super::plain::closure;

/// Returns the objects, where dependencies on all instances are replaced by a dependency on the family. Returns `None`
/// if there are none.
fn gathered(objects: &[Object], recorded: &[bool], members: &[u32]) -> Option<Vec<Object>> {
    let family = objects.len() as u32;
    let chosen = |of: &dyn Fn(usize) -> bool| -> Vec<u32> {
        members.iter().copied().filter(|&member| of(member as usize)).collect()
    };
    let (wanted, used) = (chosen(&|at| objects[at].wanted), chosen(&|at| recorded[at]));
    let mut is_named = false;
    let mut gather = |list: &[u32], all: &[u32]| -> Vec<u32> {
        if all.is_empty() || !all.iter().all(|member| list.contains(member)) {
            return list.to_vec();
        }
        is_named = true;
        list.iter().copied().filter(|at| !all.contains(at)).chain([family]).collect()
    };
    let mut compact: Vec<Object> = objects
        .iter()
        .zip(0..)
        .map(|(object, at)| {
            if members.contains(&at) {
                return object.clone();
            }
            let deposed = object.deposed.iter();
            let deposed = deposed.map(|left| Deposed { used: gather(&left.used, &used), ..left.clone() }).collect();
            let (wants, used) = (gather(&object.wants, &wanted), gather(&object.used, &used));
            Object { wants, used, deposed, ..object.clone() }
        })
        .collect();
    compact.push(Object { wanted: true, wants: wanted, used, ..Object::default() });
    is_named.then_some(compact)
}

#[test]
fn all_cases_of_three_objects_are_the_same_with_two_of_them_in_a_family() {
    let mut cases = 0_usize;
    every_case(|objects, recorded| {
        for members in [[0, 1], [1, 2]] {
            let Some(compact) = gathered(objects, recorded, &members) else { continue };
            cases += 1;
            if let Err(broken) = judge_against(&compact, objects) {
                panic!("{broken}\n{objects:#?}\nas\n{compact:#?}");
            }
        }
    });
    assert!(cases > 50_000, "{cases}");
}

/// Adds dependencies of some objects on all instances of a family, unless that causes a cycle.
fn refer_to_all(dice: &mut Dice, objects: &mut [Object], recorded: &[bool], members: &[u32]) {
    let wanted: Vec<u32> = members.iter().copied().filter(|&member| objects[member as usize].wanted).collect();
    let bits = |list: &[u32]| list.iter().fold(0_u64, |set, at| set | 1 << at);
    for at in (0..objects.len()).filter(|at| !members.contains(&(*at as u32))) {
        if dice.one_in(2) {
            let below = closure(&objects.iter().map(|object| bits(&object.wants)).collect::<Vec<_>>());
            if members.iter().all(|&member| below[member as usize] >> at & 1 == 0) {
                objects[at].wants.extend(&wanted);
            }
        }
        if recorded[at] && dice.one_in(2) {
            let below = closure(&objects.iter().map(|object| bits(&object.used)).collect::<Vec<_>>());
            if members.iter().all(|&member| below[member as usize] >> at & 1 == 0) {
                objects[at].used.extend(members.iter().copied().filter(|&member| recorded[member as usize]));
            }
        }
    }
}

#[test]
fn random_cases_are_the_same_with_families() {
    let mut cases = 0_usize;
    for seed in 300_000..312_000 {
        let mut dice = Dice(seed);
        let (mut objects, flags, recorded) = random_case(seed, seed % 2 == 0, seed % 3 == 0);
        let count = objects.len() as u64;
        let mut members: Vec<u32> = (0..count as u32).filter(|_| dice.one_in(2)).collect();
        members.truncate(3);
        refer_to_all(&mut dice, &mut objects, &recorded, &members);
        super::cases::inherit(&mut objects, &flags);
        let Some(compact) = gathered(&objects, &recorded, &members) else { continue };
        cases += 1;
        if let Err(broken) = judge_against(&compact, &objects) {
            panic!("seed {seed}: {broken}\n{objects:#?}\nas\n{compact:#?}");
        }
    }
    assert!(cases > 6_000, "{cases}");
}
