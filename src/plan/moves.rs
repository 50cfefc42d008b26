//! Moves: an object gets another address and stays what it is.
//!
//! Takes what is wanted and what is recorded; gives the records that belong to another address now, and the records as
//! they are after that. Writing it is `execute`'s. A move happens because a Resource says so (the annotation
//! `purlin.dev/moved-from`), or because it goes without saying: between an object without a key and `[0]`, or the only
//! key of a `forEach`.
//!
//! Where the type differs, the driver of the new one has to take the object over. Only it can say what the object is
//! then, so this gives questions, and is called again with the answers.

mod claims;
mod conversion;
mod doubts;
mod records;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::records::{Redirections, carried, has_arrived, moved, rounds};

use self::claims::Claim;
use self::records::{is_copy, objects};
use super::{Held, Mode, PlanOptions};
use crate::api;
use crate::load::{Config, Expansion, Family, Instance};
use crate::model::{
    Address, Diagnostic, Diagnostics, InstanceKey, Reason, Record, Recorded, RecordedObject, Segment, Severity, of_name,
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
/// for, whatever the plan is for. `answers` are those to the questions of earlier calls.
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
    if recorded.is_empty() && options.indexed.is_empty() {
        return found;
    }
    let after = match found.moves.is_empty() {
        true => Cow::Borrowed(recorded),
        false => Cow::Owned(carried(recorded, &found.moves)),
    };
    let spoken_for = spoken_for(config, &after);
    let open = open_records(&after, options);
    let (claims, passed, in_vain) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let recorded = &*after;
    let mut search = Search { config, recorded, options, answers, found, claims, passed, in_vain, spoken_for, open };
    for (address, instance) in config.instances.iter().filter(|(_, instance)| instance.is_wanted()) {
        search.look_for(address, instance);
    }
    config.families.values().for_each(|family| search.hold_for(family));
    search.settle_claims();
    search.keep_named();
    search.doubt_names();
    let mut found = search.found;
    if options.mode != Mode::Normal {
        // Nothing is made, so only what is recorded has to wait.
        found.held.retain(|address, _| recorded.contains_key(address));
    }
    found
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

/// Whether nobody knows what the manifest is to say.
fn is_broken(instance: &Instance) -> bool {
    instance.problems.iter().any(|problem| problem.severity == Severity::Error)
}

/// Whether it is about the annotation.
fn concerns_moves(problem: &Diagnostic) -> bool {
    let is_annotation = |segment: &Segment| matches!(segment, Segment::Name(name) if **name == *api::MOVED_FROM);
    problem.path.as_ref().and_then(|path| path.0.last()).is_some_and(is_annotation)
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
    /// Records with an open operation.
    open: Vec<&'a Arc<Record>>,
}

/// The records of which an operation is open, or runs. Few, whatever is moved.
fn open_records<'a>(recorded: &'a Recorded, options: &PlanOptions) -> Vec<&'a Arc<Record>> {
    let running: BTreeSet<&Address> = options.running.iter().map(|running| &running.step.address).collect();
    let is_open = |record: &&Arc<Record>| record.intent.is_some() || running.contains(&record.address);
    recorded.values().map(|stored| &stored.record).filter(is_open).collect()
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
            return self.keep_all_named(instance);
        }
        let explicit = self.named(address, &instance.moved_from);
        if instance.import.is_none() && (self.is_lost(address) || self.has_lost_all(instance)) {
            // The object of the lost record belongs here, so nothing else does before somebody has looked for it.
            let leaves = |from: &&Address| self.record(from).is_some() && !lives(self.config, from);
            let leaving: Vec<&Address> = explicit.iter().filter(leaves).collect();
            for from in leaving {
                let message = format!("it is moved to `{address}` once it is settled what became of the record there");
                self.hold(from, Reason::MoveBlocked, message);
                self.claim(from, Claim { possible: false, ..Claim::by(instance) });
            }
            return;
        }
        if explicit.contains(address) && self.record(address).is_some_and(|own| own.type_name != instance.type_name) {
            return self.change_type(address, instance);
        }
        let occupied = self.record(address).is_some();
        let told = explicit.iter().map(|from| (from, true));
        // Of a Resource with an error nobody knows which keys it is to have.
        let broken = is_broken(instance);
        // As with a `moved` block, no key comes or goes without saying where an annotation says what the object was. One that
        // was followed says nothing any more: what is recorded under its own name is nearer than what has an old name.
        let is_said = explicit.iter().any(|from| self.record(from).is_some()) && !self.was_followed(instance);
        let implied = if occupied || broken || is_said { Vec::new() } else { self.other_keys(&address.name, address) };
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
                return self.claim(from, Claim { explicit, possible: false, ..Claim::by(instance) });
            }
            if broken {
                let message = format!("it is moved to `{address}` once the errors there are corrected");
                self.hold(from, Reason::MoveBlocked, message);
                return self.claim(from, Claim { explicit, possible: false, ..Claim::by(instance) });
            }
            let open = self.open_operation(from).or_else(|| self.is_running(address).then_some(address)).cloned();
            if let Some(open) = open {
                let message =
                    format!("`{from}` is moved to `{address}` once the open operation of `{open}` is settled");
                self.hold(address, Reason::OperationInProgress, message.clone());
                self.hold(from, Reason::OperationInProgress, message);
                return self.claim(from, Claim { explicit, possible: false, ..Claim::by(instance) });
            }
            let conversion = if is_converted { self.conversion(address, from, record) } else { None };
            let possible = !is_converted || conversion.is_some();
            return self.claim(from, Claim { explicit, possible, conversion, ..Claim::by(instance) });
        }
        if !occupied && instance.import.is_none() && !explicit.is_empty() {
            self.in_vain.insert(address.clone());
        }
    }

    /// Whether what is recorded of a Resource came from a place that its annotation names.
    fn was_followed(&self, resource: &Instance) -> bool {
        let mut own = of_name(self.recorded, &resource.address.name).flat_map(|(_, stored)| &stored.record.came_from);
        own.any(|old| resource.moved_from.iter().any(|named| named.name == old.name))
    }

    fn is_running(&self, address: &Address) -> bool {
        self.options.running.iter().any(|running| running.step.address == *address)
    }

    /// Something is recorded there, and nobody knows what.
    fn is_unreadable(&self, address: &Address) -> bool {
        let unread = |reason| matches!(reason, Reason::RecordUnreadable | Reason::RecordNotRead);
        self.options.held.get(address).is_some_and(|held| unread(held.reason))
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
        self.config.family(&address.name).nth(1).is_none()
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
        let mut open = self.open.iter().copied();
        let recorded = open
            .find(|record| record.address == *from || objects(record).any(|object| names(object)) || intended(record));
        let coming = |running: &&'a super::RunningStep| running.recorded.as_ref().is_some_and(|object| names(object));
        let running = || self.options.running.iter().find(coming).map(|running| &running.step.address);
        recorded.map(|record| &record.address).or_else(running)
    }
}

/// Whether an object is wanted at an address, or nobody can tell.
fn lives(config: &Config, address: &Address) -> bool {
    let unclear = |family: &Arc<Family>| family.shared.is_wanted() && !matches!(family.expansion, Expansion::Known(_));
    config.instances.get(address).is_some_and(|instance| instance.is_wanted())
        || config.families.get(&address.name).is_some_and(unclear)
}

#[cfg(test)]
mod tests;
