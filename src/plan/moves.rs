//! Moves: an object gets another address and stays what it is.
//!
//! Takes what is wanted and what is recorded; gives the records that belong to another address now, and the records as
//! they are after that. Writing it is `execute`'s. A move happens because a Resource says so (the annotation
//! `purlin.dev/moved-from`), or because it goes without saying: between an object without a key and `[0]`, or the only
//! key of a `forEach`.
//!
//! Where the type differs, the driver of the new one has to take the object over. Only it can say what the object is
//! then, so this gives questions, and is called again with the answers.

mod conversion;
mod doubts;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Held, Mode, PlanOptions};
use crate::api;
use crate::load::{Config, Expansion, Family, Instance};
use crate::model::{
    Address, Diagnostic, Diagnostics, InstanceKey, Reason, Record, Recorded, RecordedObject, Segment, Severity, Stored,
    of_name,
};

/// One record that belongs to another address now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where it was.
    pub from: Address,
    /// Where it belongs.
    pub to: Address,
    /// The UID of the Resource that it belongs to.
    pub uid: Arc<str>,
    /// It was on its way, and nobody wants it there any more: it stays at `from`.
    pub back: bool,
    /// It becomes an object of another type. `from` and `to` may be the same then.
    pub conversion: Option<Arc<Conversion>>,
}

/// The record of an object that a driver has taken over from another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// As it was when the driver was asked.
    pub before: Arc<Record>,
    /// As it is from now on, at the same address.
    pub after: Arc<Record>,
}

/// To ask the driver of the type that an object gets, whether it takes the object over.
#[derive(Clone, Debug)]
pub struct Takeover {
    /// Where it is recorded.
    pub from: Address,
    /// Where it belongs.
    pub to: Address,
    /// Its record.
    pub record: Arc<Record>,
}

/// What became of questions, by where the object is recorded and where it belongs. What is held there says why not.
pub type Takeovers = BTreeMap<(Address, Address), Result<Arc<Record>, Held>>;

/// What is to be moved.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// In the order in which they are carried out.
    pub moves: Vec<Move>,
    /// Objects that wait for a move that is not possible yet: nothing may be created in their place.
    pub held: BTreeMap<Address, Held>,
    /// Moves that do not happen.
    pub diagnostics: Diagnostics,
    /// What has to be asked first; while there is any, the rest says nothing.
    pub questions: Vec<Takeover>,
}

/// Finds the moves: first those that a crash cut, then, on the records as they are after that, those that are asked
/// for. A plan towards nothing only finishes what was cut. `answers` are those to the questions of earlier calls.
pub fn find(config: &Config, recorded: &Recorded, options: &PlanOptions, answers: &Takeovers) -> Moves {
    let mut found = Moves::default();
    for (from, stored) in recorded {
        let Some(to) = &stored.record.moving_to else { continue };
        if let Some(held) = options.held.get(&**to).or_else(|| options.held.get(from)) {
            found.held.insert(from.clone(), held.clone());
            found.held.insert(Address::clone(to), held.clone());
            continue;
        }
        let back = !goes_on(config, recorded, options, &stored.record, to);
        let uid = config.resource(to).map_or_else(|| Arc::from(""), |resource| resource.uid.clone());
        // What was to get another type has it since the write that says where it goes.
        found.moves.push(Move { from: from.clone(), to: Address::clone(to), uid, back, conversion: None });
    }
    if options.mode != Mode::Normal || (recorded.is_empty() && options.indexed.is_empty()) {
        return found;
    }
    let after = match found.moves.is_empty() {
        true => Cow::Borrowed(recorded),
        false => Cow::Owned(carried(recorded, &found.moves)),
    };
    let spoken_for = spoken_for(config, &after);
    let (claims, passed, in_vain) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let mut search = Search { config, recorded: &after, options, answers, found, claims, passed, in_vain, spoken_for };
    for (address, instance) in config.instances.iter().filter(|(_, instance)| instance.is_wanted()) {
        search.look_for(address, instance);
    }
    search.settle_claims();
    search.keep_named();
    search.doubt_names();
    config.families.values().for_each(|family| search.hold_for(family));
    search.found
}

/// Whether a move that a crash cut is to be finished. Otherwise the record stays where it was: whoever wanted it at the
/// new address has gone before anything could be done there.
fn goes_on(config: &Config, recorded: &Recorded, options: &PlanOptions, record: &Record, to: &Address) -> bool {
    let there = recorded.get(to).map(|stored| &stored.record).filter(|there| there.has_objects());
    if there.is_some_and(|there| !is_copy(record, there)) {
        // Somebody else was faster.
        return false;
    }
    let is_there = there.is_some();
    let resource = config.resource(to);
    // In a cluster a Resource that has our marks does not go without us, and what becomes of the object is up to it.
    let protects = is_there && resource.is_some_and(|resource| resource.is_marked());
    let same_type = resource.is_some_and(|resource| resource.type_name == record.type_name);
    options.mode != Mode::Normal || protects || (lives(config, to) && same_type)
}

/// How a move that cannot be made is given up.
const LET_GO: &str = "correct the annotation `purlin.dev/moved-from`, or remove it";

/// Whether it is about the annotation.
fn concerns_moves(problem: &Diagnostic) -> bool {
    let is_annotation = |segment: &Segment| matches!(segment, Segment::Name(name) if **name == *api::MOVED_FROM);
    problem.path.as_ref().and_then(|path| path.0.last()).is_some_and(is_annotation)
}

/// Who says that it was somewhere else before.
struct Claim {
    to: Address,
    uid: Arc<str>,
    /// By the annotation.
    explicit: bool,
    /// It is of another type there.
    conversion: Option<Arc<Conversion>>,
}

struct Search<'a> {
    config: &'a Config,
    recorded: &'a Recorded,
    options: &'a PlanOptions,
    answers: &'a Takeovers,
    found: Moves,
    claims: BTreeMap<Address, Vec<Claim>>,
    /// Objects, after the instances that took them for their own without being told so, which another one names.
    passed: BTreeSet<(Address, Address)>,
    /// Instances without an object that say that they were something of which there is no record.
    in_vain: BTreeSet<Address>,
    /// What Resources of other names say that they were.
    spoken_for: BTreeSet<Address>,
}

/// The addresses that instances without an object name, of other Resources than their own.
fn spoken_for(config: &Config, recorded: &Recorded) -> BTreeSet<Address> {
    let lack = |address: &&Address| recorded.get(address).is_none_or(|stored| !stored.record.has_objects());
    let wanted = config.instances.iter().filter(|(address, instance)| instance.is_wanted() && lack(address));
    let named = wanted.flat_map(|(address, instance)| instance.moved_from.iter().map(move |from| (address, from)));
    named.filter(|(address, from)| address.name != from.name).map(|(address, from)| exact(from, address)).collect()
}

/// What an instance names by an annotation with a key, or with its own key.
fn exact(from: &Address, address: &Address) -> Address {
    let key = if from.key == InstanceKey::None { &address.key } else { &from.key };
    Address { name: from.name.clone(), key: key.clone() }
}

impl<'a> Search<'a> {
    fn record(&self, address: &Address) -> Option<&'a Arc<Record>> {
        let record = self.recorded.get(address).map(|stored| &stored.record)?;
        (record.has_objects() || record.intent.is_some()).then_some(record)
    }

    fn hold(&mut self, address: &Address, reason: Reason, message: String) {
        self.found.held.insert(address.clone(), Held { reason, message });
    }

    /// Holds what would be destroyed in the belief that it is nobody's.
    fn keep(&mut self, from: &Address, why: &str) {
        self.hold(from, Reason::MoveBlocked, format!("{why}: it stays until that is settled (hint: {LET_GO})"));
    }

    fn look_for(&mut self, address: &Address, instance: &Instance) {
        if instance.problems.iter().any(concerns_moves) {
            return self.keep_all_named(address, &instance.moved_from);
        }
        let explicit = self.named(address, &instance.moved_from);
        if instance.import.is_none() && (self.is_lost(address) || self.has_lost_all(instance)) {
            // The object of the lost record belongs here, so nothing else does before somebody has looked for it.
            let leaves = |from: &&Address| self.record(from).is_some() && !lives(self.config, from);
            let leaving: Vec<&Address> = explicit.iter().filter(leaves).collect();
            for from in leaving {
                let message = format!("it is moved to `{address}` once it is settled what became of the record there");
                self.hold(from, Reason::MoveBlocked, message);
            }
            return;
        }
        if explicit.contains(address) && self.record(address).is_some_and(|own| own.type_name != instance.type_name) {
            return self.change_type(address, instance);
        }
        let occupied = self.record(address).is_some();
        let told = explicit.iter().map(|from| (from, true));
        // Of a Resource with an error nobody knows which keys it is to have.
        let broken = instance.problems.iter().any(|problem| problem.severity == Severity::Error);
        let implied = if occupied || broken { Vec::new() } else { self.other_keys(&address.name, address) };
        // What is recorded under its own name is nearest, whatever it was called long ago.
        for (from, explicit) in implied.iter().map(|from| (from, false)).chain(told) {
            if self.passed.contains(&(address.clone(), from.clone())) {
                continue;
            }
            if !occupied && !self.recorded.contains_key(from) && self.is_unreadable(from) {
                let message = format!("what is recorded of `{from}` cannot be read, so it is not moved here yet");
                return self.hold(address, Reason::MoveBlocked, message);
            }
            if !occupied && instance.import.is_none() && self.is_lost(from) {
                let message = format!(
                    "the index of the family says that `{from}` has a record, and there is none: what belongs here may \
                     be its object; once it is sure that there is none, run `purlin state rm {from}`"
                );
                return self.hold(address, Reason::RecordMissing, message);
            }
            let Some(record) = self.record(from) else { continue };
            if occupied {
                continue;
            }
            let is_converted = record.type_name != instance.type_name;
            if is_converted && !explicit {
                continue;
            }
            if record.moving_to.is_some() {
                let message = format!("`{from}` is being moved elsewhere, so it is not moved here yet");
                return self.hold(address, Reason::MoveBlocked, message);
            }
            if lives(self.config, from) {
                let message = format!("`{from}` still has a Resource that wants it, so it is not moved here yet");
                return self.hold(address, Reason::MoveBlocked, message);
            }
            if let Some(held) = self.options.held.get(address).cloned() {
                self.found.held.insert(from.clone(), held);
                return;
            }
            let open = self.open_operation(from).or_else(|| self.is_running(address).then_some(address)).cloned();
            if let Some(open) = open {
                let message =
                    format!("`{from}` is moved to `{address}` once the open operation of `{open}` is settled");
                self.hold(address, Reason::OperationInProgress, message.clone());
                return self.hold(from, Reason::OperationInProgress, message);
            }
            let conversion = match is_converted {
                false => None,
                true => match self.conversion(address, from, record) {
                    Some(conversion) => Some(conversion),
                    None => return,
                },
            };
            let claim = Claim { to: address.clone(), uid: instance.uid.clone(), explicit, conversion };
            return self.claims.entry(from.clone()).or_default().push(claim);
        }
        if !occupied && instance.import.is_none() && !explicit.is_empty() {
            self.in_vain.insert(address.clone());
        }
    }

    fn is_running(&self, address: &Address) -> bool {
        self.options.running.iter().any(|running| running.step.address == *address)
    }

    /// Whoever claims an object alone gets it. When several do, nobody does: a wrong guess would destroy it.
    fn settle_claims(&mut self) {
        loop {
            let mut passed = Vec::new();
            for (from, claims) in self.claims.iter_mut().filter(|(_, claims)| claims.iter().any(|claim| claim.explicit))
            {
                let given_up = claims.extract_if(.., |claim| !claim.explicit);
                passed.extend(given_up.map(|claim| (claim.to, from.clone())));
            }
            if passed.is_empty() {
                break;
            }
            // Whoever took it for granted looks for what it is told of.
            for (to, from) in passed {
                self.passed.insert((to.clone(), from));
                if let Some(instance) = self.config.instances.get(&to) {
                    self.look_for(&to, instance);
                }
            }
        }
        for (from, claims) in std::mem::take(&mut self.claims) {
            let explicit = || claims.iter().filter(|claim| claim.explicit);
            if explicit().count() > 1 {
                let names: Vec<String> = explicit().map(|claim| format!("`{}`", claim.to)).collect();
                let message =
                    format!("`{from}` is to be moved to {}; only one of them can be what it was", names.join(" and "));
                for address in explicit().map(|claim| &claim.to).chain([&from]) {
                    self.hold(address, Reason::MoveBlocked, message.clone());
                }
            } else if let Some(Claim { to, uid, conversion, .. }) = claims.into_iter().next() {
                self.found.moves.push(Move { from, to, uid, back: false, conversion });
            }
        }
    }

    /// Something is recorded there, and nobody knows what.
    fn is_unreadable(&self, address: &Address) -> bool {
        self.options.held.get(address).is_some_and(|held| held.reason == Reason::RecordUnreadable)
    }

    /// It had a record, and has none any more.
    fn is_lost(&self, address: &Address) -> bool {
        self.options.indexed.contains(address) && !self.recorded.contains_key(address)
    }

    /// The Resource says that it has a record, and there is none of any of its instances.
    fn has_lost_all(&self, instance: &Instance) -> bool {
        let name = &instance.address.name;
        let is_own = |address: &Address| address.name == *name;
        let from = || Address::single(name.clone())..;
        let has_traces = self.recorded.range(from()).next().is_some_and(|(address, _)| is_own(address))
            || self.options.indexed.range(from()).next().is_some_and(is_own)
            || self.options.running.iter().any(|running| is_own(&running.step.address));
        instance.says_it_is_recorded() && !has_traces
    }

    /// While it is not known which instances a family has, nobody can tell what of the objects that are to be moved
    /// to it is still wanted.
    fn hold_for(&mut self, family: &Family) {
        if !family.shared.is_wanted() || matches!(family.expansion, Expansion::Known(_)) {
            return;
        }
        let to = &family.shared.address;
        for from in family.shared.moved_from.iter() {
            let all = of_name(self.recorded, &from.name).map(|(address, _)| address);
            for address in all.filter(|address| from.key == InstanceKey::None || *address == from) {
                let message =
                    format!("it is to be moved to `{to}`, of which it is not known which objects it stands for");
                let held = Held { reason: Reason::MoveBlocked, message };
                self.found.held.entry(address.clone()).or_insert(held);
            }
        }
    }

    /// Holds whatever an annotation may have meant that cannot be read.
    fn keep_all_named(&mut self, address: &Address, moved_from: &[Address]) {
        let recorded = self.recorded;
        for from in moved_from {
            let all = of_name(recorded, &from.name).map(|(address, _)| address);
            for found in all.filter(|found| !lives(self.config, found)) {
                self.keep(
                    found,
                    &format!("`{address}` seems to say that it was `{found}`, in a way that nobody can read"),
                );
            }
        }
    }

    /// The addresses that the annotation means, best first.
    fn named(&self, address: &Address, moved_from: &[Address]) -> Vec<Address> {
        let mut all = Vec::new();
        for from in moved_from {
            if from.key == InstanceKey::None {
                all.push(exact(from, address));
                all.extend(self.other_keys(&from.name, address));
            } else if address.key == InstanceKey::None || self.is_alone(address) {
                all.push(from.clone());
            }
        }
        all
    }

    /// Where the object of an instance may be recorded in `name` because the Resource got a key, or lost it.
    fn other_keys(&self, name: &Arc<str>, address: &Address) -> Vec<Address> {
        let at = |key| Address { name: name.clone(), key };
        match &address.key {
            InstanceKey::Index(0) => vec![at(InstanceKey::None)],
            InstanceKey::Key(_) if self.is_alone(address) => vec![at(InstanceKey::None)],
            InstanceKey::All | InstanceKey::Index(_) | InstanceKey::Key(_) => Vec::new(),
            InstanceKey::None => {
                // A record that holds nothing is nothing to be moved.
                let from = at(InstanceKey::None);
                let recorded = self.recorded.range(from.clone()..).map(|(address, _)| address);
                let indexed = self.options.indexed.range(from..);
                let keyed = |a: &&Address| a.is_instance() && (self.record(a).is_some() || self.is_lost(a));
                let of_name = |a: &&Address| a.name == *name;
                let all: BTreeSet<&Address> =
                    recorded.take_while(of_name).chain(indexed.take_while(of_name)).filter(keyed).collect();
                // Leftovers of an instance that is gone stay where they are: what lives is what moves.
                let lives = |a: &&Address| {
                    self.is_lost(a) || self.record(a).is_some_and(|r| r.current.is_some() || r.intent.is_some())
                };
                let living: Vec<&Address> = all.iter().copied().filter(lives).collect();
                let of_those = if living.is_empty() { all.into_iter().collect() } else { living };
                // What goes to another Resource leaves the rest to be told apart, if there is any.
                let free = |a: &&Address| !self.spoken_for.contains(a);
                let left: Vec<&Address> = of_those.iter().copied().filter(free).collect();
                let of_those = if left.is_empty() { of_those } else { left };
                let first = at(InstanceKey::Index(0));
                match of_those[..] {
                    [only] => vec![only.clone()],
                    _ if of_those.contains(&&first) => vec![first],
                    _ => Vec::new(),
                }
            }
        }
    }

    /// Whether it is the only instance that is wanted of its Resource.
    fn is_alone(&self, address: &Address) -> bool {
        self.config.family(&address.name).count() == 1
    }

    /// An operation that is open on the record, or on one that names it or is about to.
    fn open_operation(&self, from: &Address) -> Option<&'a Address> {
        let is_named =
            |dependency: &Address| dependency == from || (dependency.name == from.name && !dependency.is_instance());
        let names = |object: &RecordedObject| object.dependencies.iter().any(is_named);
        let intended = |record: &Record| {
            let planned = record.intent.as_ref().and_then(|intent| intent.planned.as_ref());
            planned.is_some_and(|planned| names(&planned.recorded))
        };
        let is_open = |address: &Address, record: &Record| record.intent.is_some() || self.is_running(address);
        let mut open = self.recorded.iter().filter(|(address, stored)| is_open(address, &stored.record));
        let recorded = open.find(|(address, Stored { record, .. })| {
            *address == from || objects(record).any(|object| names(object)) || intended(record)
        });
        let coming = |running: &&'a super::RunningStep| running.recorded.as_ref().is_some_and(|object| names(object));
        let running = || self.options.running.iter().find(coming).map(|running| &running.step.address);
        recorded.map(|(address, _)| address).or_else(running)
    }
}

/// Whether an object is wanted at an address, or nobody can tell.
fn lives(config: &Config, address: &Address) -> bool {
    let unclear = |family: &Arc<Family>| family.shared.is_wanted() && !matches!(family.expansion, Expansion::Known(_));
    config.instances.get(address).is_some_and(|instance| instance.is_wanted())
        || config.families.get(&address.name).is_some_and(unclear)
}

fn objects(record: &Record) -> impl Iterator<Item = &Arc<RecordedObject>> {
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
fn is_copy(old: &Record, new: &Record) -> bool {
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

#[cfg(test)]
mod tests;
