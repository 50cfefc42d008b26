//! Records after moves: under their new addresses, and naming others by theirs.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Move;
use crate::model::{Address, InstanceKey, Record, Recorded, RecordedObject, Stored, of_name};

pub(super) fn objects(record: &Record) -> impl Iterator<Item = &Arc<RecordedObject>> {
    record.current.iter().chain(record.deposed.values())
}

/// The record under its new address, and of its new type.
pub fn moved(record: &Record, to: &Move) -> Record {
    let record = to.conversion.as_ref().map_or(record, |conversion| &conversion.after);
    let mut came_from = record.came_from.clone();
    came_from.retain(|old| *old != to.from && *old != to.to);
    came_from.push(to.from.clone());
    Record { address: to.to.clone(), uid: to.uid.clone(), moving_to: None, came_from, ..record.clone() }
}

/// Splits moves into those that can be carried out side by side: an object that moves on has to arrive first.
pub fn rounds(moves: &[Move]) -> Vec<&[Move]> {
    let mut rounds = Vec::new();
    let mut start = 0;
    for at in 1..=moves.len() {
        let ends = moves.get(at).is_none_or(|next| {
            next.back != moves[start].back
                || moves[start..at].iter().any(|one| one.to == next.from || one.from == next.from)
        });
        if ends {
            rounds.push(&moves[start..at]);
            start = at;
        }
    }
    rounds
}

/// Whether one record holds an object of the other: it was written by a move.
pub(super) fn is_copy(old: &Record, new: &Record) -> bool {
    let same = |a: &RecordedObject, b: &RecordedObject| match (a.id(), b.id()) {
        (Some(a), Some(b)) => a == b,
        _ => a.value == b.value,
    };
    objects(old).any(|a| objects(new).any(|b| same(a, b)))
}

/// Whether the object of a move is recorded at the new address. Another object may be there when somebody was faster.
pub fn has_arrived(one: &Move, recorded: &Recorded) -> bool {
    let old_and_new = recorded.get(&one.from).zip(recorded.get(&one.to));
    old_and_new.is_some_and(|(old, new)| is_copy(&old.record, &new.record))
}

/// Where the objects of a dependency are found after one round of moves; `None` when they stay. Of a whole family some
/// instances may have gone to one place and others to another: then they are named one by one.
fn redirection(dependency: &Address, moves: &[Move], recorded: &Recorded) -> Option<Vec<Address>> {
    if let Some(one) = moves.iter().find(|one| one.back && one.to == *dependency && has_arrived(one, recorded)) {
        return Some(vec![one.from.clone()]);
    }
    let forth = || moves.iter().filter(|one| !one.back && one.from != one.to);
    let holds = |(_, stored): (&Address, &Stored)| stored.record.has_objects() || stored.record.intent.is_some();
    if forth().any(|one| one.to == *dependency) && !of_name(recorded, &dependency.name).any(holds) {
        // It named what was not there, which has nothing to do with what comes there now.
        return Some(Vec::new());
    }
    if let Some(exact) = forth().find(|one| one.from == *dependency) {
        return Some(vec![exact.to.clone()]);
    }
    // Earlier versions recorded a whole family by its bare name.
    let is_bare = dependency.key == InstanceKey::None && !recorded.contains_key(dependency);
    if !is_bare && dependency.key != InstanceKey::All {
        return None;
    }
    let is_member = |address: &Address| address.name == dependency.name && address.is_instance();
    let leaves = |one: &Move| is_member(&one.from);
    let joins = |one: &Move| is_member(&one.to) && !is_member(&one.from);
    if !forth().any(|one| leaves(one) || joins(one)) {
        return None;
    }
    let all = of_name(recorded, &dependency.name).map(|(address, _)| address);
    let places: Vec<Address> = all
        .filter_map(|address| {
            // What comes to this name by a move was no part of the family.
            let came = forth().any(|one| one.to == *address);
            let went = forth().find(|one| one.from == *address).map(|one| one.to.clone());
            went.or_else(|| (address.is_instance() && !came).then(|| address.clone()))
        })
        .collect();
    let Some(first) = places.first().filter(|_| !forth().any(joins)) else { return Some(places) };
    let together = places.iter().all(|place| place.is_instance() && place.name == first.name);
    let others = |other: &Address| other.name == first.name && other.is_instance() && !places.contains(other);
    let together = together && !recorded.keys().any(others);
    Some(if together { vec![Address::whole(first.name.clone())] } else { places })
}

/// The record with its dependencies under the addresses that they have after one round of moves; `None` when it names
/// none of them. `recorded` are the records before the round.
pub fn redirected(record: &Record, moves: &[Move], recorded: &Recorded) -> Option<Record> {
    let new = |dependency: &Address| redirection(dependency, moves, recorded);
    if !objects(record).any(|object| object.dependencies.iter().any(|dependency| new(dependency).is_some())) {
        return None;
    }
    let mut record = record.clone();
    for object in record.current.iter_mut().chain(record.deposed.values_mut()) {
        let all = object.dependencies.iter();
        let all = all.flat_map(|dependency| new(dependency).unwrap_or_else(|| vec![dependency.clone()]));
        let all: BTreeSet<Address> = all.collect();
        Arc::make_mut(object).dependencies = all.into_iter().collect();
    }
    Some(record)
}

/// The records as they are after the moves. Their versions are those of before.
pub fn carried(recorded: &Recorded, moves: &[Move]) -> Recorded {
    let mut after = recorded.clone();
    for round in rounds(moves) {
        let before = after.clone();
        for one in round {
            if one.back {
                if has_arrived(one, &before) {
                    after.remove(&one.to);
                }
                if let Some(stored) = after.get_mut(&one.from) {
                    stored.record = Arc::new(Record { moving_to: None, ..Record::clone(&stored.record) });
                }
                continue;
            }
            let Some(old) = after.remove(&one.from) else { continue };
            // A crash may have come after the new record was written.
            if !after.get(&one.to).is_some_and(|stored| stored.record.has_objects()) {
                let record = Arc::new(moved(&old.record, one));
                after.insert(one.to.clone(), Stored { record, version: old.version });
            }
        }
        for stored in after.values_mut() {
            if let Some(record) = redirected(&stored.record, round, &before) {
                stored.record = Arc::new(record);
            }
        }
    }
    after
}
