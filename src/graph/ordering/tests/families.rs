//! Families: one object without steps that wants and used its instances orders exactly like references to every
//! instance, written out. Over every case of three objects, and over random ones.

use super::super::{Leftover, Object};
use super::cases::{Dice, every_case, situation};
use super::judge::judge_against;
use super::plain::closure;

/// The objects, the instances of a family among them, and what somebody refers to written as a reference to the family
/// where it is to all of its instances. `None` when nobody does.
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
            let leftovers = object.leftovers.iter();
            let leftovers =
                leftovers.map(|left| Leftover { used: gather(&left.used, &used), ..left.clone() }).collect();
            let (wants, used) = (gather(&object.wants, &wanted), gather(&object.used, &used));
            Object { wants, used, leftovers, ..object.clone() }
        })
        .collect();
    compact.push(Object { wanted: true, wants: wanted, used, ..Object::default() });
    is_named.then_some(compact)
}

#[test]
fn every_case_of_three_objects_is_the_same_with_two_of_them_in_a_family() {
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

/// Makes some objects refer to all instances of a family, as far as that closes no ring.
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
fn random_situations_are_the_same_with_families() {
    let mut cases = 0_usize;
    for seed in 300_000..312_000 {
        let mut dice = Dice(seed);
        let (mut objects, flags, recorded) = situation(seed, seed % 2 == 0, seed % 3 == 0);
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
