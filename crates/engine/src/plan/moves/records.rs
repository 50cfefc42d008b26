//! Computes the records after moves, with the new addresses of objects and dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Move;
use model::{Address, InstanceKey, Record, Recorded, RecordedObject, Stem, Stored, in_stem};

pub fn objects(record: &Record) -> impl Iterator<Item = &Arc<RecordedObject>> {
    record.current.iter().chain(record.deposed.values())
}

/// Whether an object of the record references one of these, so that moves from or to them can change the record.
pub fn references_any(record: &Record, stems: &BTreeSet<&Stem>) -> bool {
    objects(record).flat_map(|object| object.dependencies.iter()).any(|address| stems.contains(&address.stem))
}

/// The interrupted moves, as old and new address, by both of them. Until such a move is finished, two records can name its
/// object, so the record at neither address may be moved.
pub fn unfinished(recorded: &Recorded) -> BTreeMap<&Address, (&Address, &Address)> {
    let moving = recorded.iter().filter_map(|(from, stored)| Some((from, stored.record.moving_to.as_deref()?)));
    moving.flat_map(|(from, to)| [(from, (from, to)), (to, (from, to))]).collect()
}

/// The record with its new address and type.
pub fn moved_record(record: &Record, to: &Move) -> Record {
    let record = to.conversion.as_ref().map_or(record, |conversion| &conversion.after);
    let mut came_from = record.moved_from.clone();
    came_from.retain(|old| *old != to.from && *old != to.to);
    came_from.push(to.from.clone());
    Record { address: to.to.clone(), uid: to.uid.clone(), moving_to: None, moved_from: came_from, ..record.clone() }
}

/// Splits moves into groups that can run concurrently. A second move of an object follows the first, and a move to an
/// address follows the one that removes the record of another object there.
pub fn rounds(moves: &[Move]) -> Vec<&[Move]> {
    let mut rounds = Vec::new();
    let mut start = 0;
    let mut touched: BTreeSet<&Address> = BTreeSet::new();
    for (at, next) in moves.iter().enumerate() {
        let is_touched = touched.contains(&next.from) || touched.contains(&next.to);
        if at > start && (next.reverted != moves[start].reverted || is_touched) {
            rounds.push(&moves[start..at]);
            start = at;
            touched.clear();
        }
        touched.extend([&next.from, &next.to]);
    }
    if start < moves.len() {
        rounds.push(&moves[start..]);
    }
    rounds
}

/// Whether both records hold the same object, so that a move wrote `new`.
pub fn is_copy(old: &Record, new: &Record) -> bool {
    objects(old).any(|a| {
        objects(new).any(|b| match (a.id(), b.id()) {
            (Some(a), Some(b)) => a == b,
            _ => a.value == b.value,
        })
    })
}

/// Whether the object of a move, and not another object, is recorded at the new address.
pub fn has_arrived(change: &Move, recorded: &Recorded) -> bool {
    let old_and_new = recorded.get(&change.from).zip(recorded.get(&change.to));
    old_and_new.is_some_and(|(old, new)| is_copy(&old.record, &new.record))
}

/// The addresses of dependencies after one round of moves.
#[derive(Debug)]
pub struct Redirections<'a> {
    /// The records before the round.
    recorded: &'a Recorded,
    /// Reverted moves by `to`.
    back: BTreeMap<&'a Address, &'a Move>,
    /// The targets of the other moves by `from`.
    from: BTreeMap<&'a Address, &'a Address>,
    /// The targets of the other moves.
    to: BTreeSet<&'a Address>,
    /// Names that instances leave or join.
    changing: BTreeSet<&'a Stem>,
    /// Names that instances of other names join.
    joined: BTreeSet<&'a Stem>,
    /// A cache, because many records have the same dependencies.
    known: BTreeMap<Address, Option<Vec<Address>>>,
}

impl<'a> Redirections<'a> {
    /// `recorded` are the records before the round.
    pub fn new(moves: &'a [Move], recorded: &'a Recorded) -> Self {
        let mut redirections = Self {
            recorded,
            back: BTreeMap::new(),
            from: BTreeMap::new(),
            to: BTreeSet::new(),
            changing: BTreeSet::new(),
            joined: BTreeSet::new(),
            known: BTreeMap::new(),
        };
        for change in moves {
            let (from, to) = (&change.from, &change.to);
            if change.reverted {
                if has_arrived(change, recorded) {
                    redirections.back.insert(to, change);
                }
                continue;
            }
            if from == to {
                continue;
            }
            redirections.from.insert(from, to);
            redirections.to.insert(to);
            if from.is_instance() {
                redirections.changing.insert(&from.stem);
            }
            let is_member = from.stem == to.stem && from.is_instance();
            if to.is_instance() && !is_member {
                redirections.joined.insert(&to.stem);
                redirections.changing.insert(&to.stem);
            }
        }
        redirections
    }

    /// The record with the new addresses of its dependencies. `None` if none of them is moved.
    pub fn of(&mut self, record: &Record) -> Option<Record> {
        let mut changes = false;
        for dependency in objects(record).flat_map(|object| object.dependencies.iter()) {
            if !self.known.contains_key(dependency) {
                let places = self.places(dependency);
                self.known.insert(dependency.clone(), places);
            }
            changes |= self.known[dependency].is_some();
        }
        if !changes {
            return None;
        }
        let mut record = record.clone();
        for object in record.current.iter_mut().chain(record.deposed.values_mut()) {
            let mut dependencies: BTreeSet<Address> = BTreeSet::new();
            for dependency in object.dependencies.iter() {
                dependencies.extend(self.known[dependency].clone().unwrap_or_else(|| vec![dependency.clone()]));
            }
            Arc::make_mut(object).dependencies = dependencies.into_iter().collect();
        }
        Some(record)
    }

    /// The new addresses of a dependency. `None` if it is not moved. A family whose instances are moved to different
    /// names is replaced with its single instances.
    fn places(&self, dependency: &Address) -> Option<Vec<Address>> {
        if let Some(reverted) = self.back.get(dependency) {
            return Some(vec![reverted.from.clone()]);
        }
        if self.to.contains(dependency)
            && !in_stem(self.recorded, &dependency.stem)
                .any(|(_, stored)| stored.record.has_objects() || stored.record.intent.is_some())
        {
            // The dependency had no object before, so it is unrelated to the object moved there.
            return Some(Vec::new());
        }
        if let Some(exact) = self.from.get(dependency) {
            return Some(vec![Address::clone(exact)]);
        }
        // Earlier versions recorded a whole family by its bare name.
        let is_bare = dependency.key == InstanceKey::None && !self.recorded.contains_key(dependency);
        if !is_bare && dependency.key != InstanceKey::All {
            return None;
        }
        if !self.changing.contains(&dependency.stem) {
            return None;
        }
        let mut places: BTreeSet<Address> = BTreeSet::new();
        for (address, _) in in_stem(self.recorded, &dependency.stem) {
            if let Some(to) = self.from.get(address) {
                places.insert(Address::clone(to));
            } else if address.is_instance() && !self.to.contains(address) {
                // An object moved to this name was not part of the family.
                places.insert(address.clone());
            }
        }
        let Some(first) = places.first().filter(|_| !self.joined.contains(&dependency.stem)) else {
            return Some(places.into_iter().collect());
        };
        let together = places.iter().all(|place| place.is_instance() && place.stem == first.stem);
        let alone = together
            && !in_stem(self.recorded, &first.stem)
                .any(|(address, _)| address.is_instance() && !places.contains(address));
        Some(if alone { vec![Address::family(first.stem.clone())] } else { places.into_iter().collect() })
    }
}

/// The records after the moves, with their previous versions.
pub fn apply_moves(recorded: &Recorded, moves: &[Move]) -> Recorded {
    let mut after = recorded.clone();
    for round in rounds(moves) {
        let before = after.clone();
        let mut redirections = Redirections::new(round, &before);
        for change in round {
            if change.reverted {
                if has_arrived(change, &before) {
                    after.remove(&change.to);
                }
                if let Some(stored) = after.get_mut(&change.from) {
                    stored.record = Arc::new(Record { moving_to: None, ..Record::clone(&stored.record) });
                }
                continue;
            }
            let Some(old) = after.remove(&change.from) else { continue };
            // After a crash, the new record may have been written already.
            if !after.get(&change.to).is_some_and(|stored| stored.record.has_objects()) {
                let record = Arc::new(moved_record(&old.record, change));
                after.insert(change.to.clone(), Stored { record, version: old.version });
            }
        }
        for stored in after.values_mut() {
            if let Some(record) = redirections.of(&stored.record) {
                stored.record = Arc::new(record);
            }
        }
    }
    after
}
