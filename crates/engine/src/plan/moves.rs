//! Moves: an object gets another address without a change.
//!
//! Finds the records that belong to another address now, and computes the records after the moves. `execute` writes
//! them. A move is explicit (`spec.moved`, or the annotation `purlin.dev/moved-from`) or implied: between an object
//! without a key and `[0]`, or the only key of a `forEach`. An object that a Resource claims is not destroyed or replaced
//! unless it is moved. If the type differs, the driver of the new type must convert the object: the
//! result contains these takeovers, and the caller calls `find` again with their results.

mod claims;
mod conversion;
mod ambiguity;
mod entries;
mod records;
mod unfulfilled;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::records::{
    Redirections, apply_moves, has_arrived, is_copy, moved_record, references_any, rounds, unfinished,
};

use self::claims::Claim;
use self::entries::Entries;
use self::records::objects;
use super::{Mode, ObjectBlock, PlanOptions};
use crate::load::decode::concerns_moves;
use crate::load::{Config, Expansion, Family, Instance, MovedFrom};
use model::{Address, Diagnostics, InstanceKey, Reason, Record, Recorded, RecordedObject};

/// One record that belongs to another address or type now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub from: Address,
    pub to: Address,
    /// The UID of the Resource at `to`.
    pub uid: Arc<str>,
    /// An interrupted move that is reverted: the object stays at `from`.
    pub reverted: bool,
    /// Set if the object gets another type. `from` and `to` may be equal then.
    pub conversion: Option<Arc<Conversion>>,
}

/// The record of an object that a driver has converted to another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The record at the time of the driver call.
    pub before: Arc<Record>,
    /// The converted record, at the same address.
    pub after: Arc<Record>,
}

/// A call of the driver of an object's new type to convert the object.
#[derive(Clone, Debug)]
pub struct Takeover {
    pub from: Address,
    pub to: Address,
    pub record: Arc<Record>,
}

/// The results of takeovers by `from` and `to`: the converted record, or why the conversion failed.
pub type Takeovers = BTreeMap<(Address, Address), Result<Arc<Record>, ObjectBlock>>;

#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// In execution order.
    pub moves: Vec<Move>,
    /// Objects that wait for a move: nothing may be created or destroyed at these addresses.
    pub blocked: BTreeMap<Address, ObjectBlock>,
    /// Configured objects that another address claims: they may be updated, but not be replaced.
    pub claimed: BTreeMap<Address, ObjectBlock>,
    /// Warnings about claims without effect.
    pub diagnostics: Diagnostics,
    /// Driver calls that must come first. If there are any, the other fields are incomplete.
    pub takeovers: Vec<Takeover>,
}

impl Moves {
    /// Holds both addresses of a move.
    fn hold(&mut self, from: &Address, to: &Address, held: ObjectBlock) {
        self.blocked.extend([(from.clone(), held.clone()), (to.clone(), held)]);
    }
}

/// Finds the moves: first the interrupted ones, then, based on the records after those, the requested ones, in every
/// plan mode. `answers` are the results of the takeovers of earlier calls.
pub fn find(config: &Config, recorded: &Recorded, options: &PlanOptions, answers: &Takeovers) -> Moves {
    let mut found = Moves::default();
    for (from, stored) in recorded {
        let Some(to) = &stored.record.moving_to else { continue };
        let held = options.blocked.get(&**to).or_else(|| options.blocked.get(from)).cloned();
        let waits = || Some(waits_for_operation(from, to, running_user(recorded, options, [from, to])?));
        if let Some(held) = held.or_else(waits) {
            found.hold(from, to, held);
            continue;
        }
        let back = !is_continued(config, recorded, options, &stored.record, to);
        let uid = config.resource(to).map_or_else(|| Arc::from(""), |resource| resource.uid.clone());
        // A converted record was written together with `moving_to`, so no conversion is needed.
        found.moves.push(Move { from: from.clone(), to: Address::clone(to), uid, reverted: back, conversion: None });
    }
    let claims_none = || config.resources().all(|resource| resource.moved_from.is_empty());
    if recorded.is_empty() && options.indexed.is_empty() && claims_none() {
        return found;
    }
    let after = match found.moves.is_empty() {
        true => Cow::Borrowed(recorded),
        false => Cow::Owned(apply_moves(recorded, &found.moves)),
    };
    let said = entries::of_config(config, &after);
    let claimed_by_others = claimed_addresses(config, &after, &said);
    let running = options.running.iter().map(|running| &running.step.address).collect();
    let open = open_records(&after, &running);
    let mut search = Search {
        config,
        recorded: &after,
        options,
        answers,
        found,
        said: &said,
        claims: BTreeMap::new(),
        overridden: BTreeSet::new(),
        without_record: BTreeSet::new(),
        claimed_by_others,
        unfinished: unfinished(&after),
        running,
        open,
    };
    for (address, instance) in config.instances.iter().filter(|(_, instance)| instance.is_desired()) {
        search.find_origin(address, instance);
    }
    config.families.values().for_each(|family| search.block_claimed_by_family(family));
    search.check_targets();
    search.resolve_claims();
    search.keep_claimed();
    search.keep_unmoved_families();
    search.check_names();
    search.block_moved_to_other_sources();
    let mut found = search.found;
    if options.mode != Mode::Normal {
        // Nothing is created, so only recorded objects must wait.
        found.blocked.retain(|address, _| after.contains_key(address));
    }
    found
}

/// A running step whose record changes with a move between two addresses: it has one of them, or references one. Its write
/// of the result and the move would be in each other's way.
fn running_user<'a>(recorded: &Recorded, options: &'a PlanOptions, ends: [&Address; 2]) -> Option<&'a Address> {
    let names = ends.iter().map(|end| &*end.name).collect();
    let uses = |address: &Address| recorded.get(address).is_some_and(|stored| references_any(&stored.record, &names));
    let mut running = options.running.iter().map(|running| &running.step.address);
    running.find(|address| ends.contains(address) || uses(address))
}

fn waits_for_operation(from: &Address, to: &Address, open: &Address) -> ObjectBlock {
    let message = format!("`{from}` is moved to `{to}` once the open operation of `{open}` is resolved");
    ObjectBlock { reason: Reason::OperationInProgress, message }
}

/// Whether an interrupted move is finished. Otherwise the record stays at its address, because the new address is no
/// longer desired.
fn is_continued(config: &Config, recorded: &Recorded, options: &PlanOptions, record: &Record, to: &Address) -> bool {
    let there = recorded.get(to).map(|stored| &stored.record).filter(|there| there.has_objects());
    if there.is_some_and(|there| !is_copy(record, there)) {
        // Another object was created at the new address.
        return false;
    }
    let is_there = there.is_some();
    let resource = config.resource(to);
    // In a cluster, a Resource with the finalizer is not deleted without Purlin, and decides about the object.
    let protects = is_there && resource.is_some_and(|resource| resource.is_marked());
    let same_type = resource.is_some_and(|resource| resource.type_name == record.type_name);
    options.mode != Mode::Normal || protects || (is_desired(config, to) && same_type)
}

struct Search<'a> {
    config: &'a Config,
    recorded: &'a Recorded,
    options: &'a PlanOptions,
    answers: &'a Takeovers,
    found: Moves,
    said: &'a BTreeMap<&'a Arc<str>, Entries<'a>>,
    claims: BTreeMap<Address, Vec<Claim>>,
    /// Implied claims, as pairs of claimant and object, that an explicit claim overrides.
    overridden: BTreeSet<(Address, Address)>,
    /// Instances without an object whose former addresses have no record.
    without_record: BTreeSet<Address>,
    /// Addresses that Resources of other names claim.
    claimed_by_others: BTreeSet<Address>,
    /// The moves that cannot be finished yet, by both of their addresses.
    unfinished: BTreeMap<&'a Address, (&'a Address, &'a Address)>,
    /// The addresses of running steps.
    running: BTreeSet<&'a Address>,
    open: Vec<&'a Arc<Record>>,
}

/// The records with an open intent or a running step.
fn open_records<'a>(recorded: &'a Recorded, running: &BTreeSet<&Address>) -> Vec<&'a Arc<Record>> {
    let is_open = |record: &&Arc<Record>| record.intent.is_some() || running.contains(&record.address);
    recorded.values().map(|stored| &stored.record).filter(is_open).collect()
}

/// The addresses of other Resources that instances without an object claim.
fn claimed_addresses(
    config: &Config,
    recorded: &Recorded,
    said: &BTreeMap<&Arc<str>, Entries<'_>>,
) -> BTreeSet<Address> {
    let lacks = |address: &Address| recorded.get(address).is_none_or(|stored| !stored.record.has_objects());
    let mut claimed = BTreeSet::new();
    for (name, entries) in said {
        let own = config.instance_addresses(name).filter(|address| config.instances[*address].is_desired());
        for address in own.filter(|address| lacks(address) && !has_come(recorded, entries, address)) {
            let others = entries.of(&address.key).filter(|entry| entry.from.name != address.name);
            claimed.extend(others.map(|entry| exact(entry, address)));
        }
    }
    claimed
}

/// Whether the object of an address came from one that its Resource names. It may have no object at the moment, because
/// it is being replaced. Objects that are at the named addresses now are unrelated.
fn has_come(recorded: &Recorded, entries: &Entries<'_>, address: &Address) -> bool {
    let came = recorded.get(address).into_iter().flat_map(|stored| &stored.record.moved_from);
    came.into_iter().any(|old| entries.names(&address.key, old))
}

/// The former address of an instance: that of the entry, with the key of the instance if the entry names a whole family.
fn exact(entry: &MovedFrom, address: &Address) -> Address {
    let key = if entry.is_whole() { &address.key } else { &entry.from.key };
    Address { name: entry.from.name.clone(), key: key.clone() }
}

impl<'a> Search<'a> {
    fn record(&self, address: &Address) -> Option<&'a Arc<Record>> {
        let record = self.recorded.get(address).map(|stored| &stored.record)?;
        (record.has_objects() || record.intent.is_some()).then_some(record)
    }

    fn block(&mut self, address: &Address, reason: Reason, message: String) {
        self.found.blocked.insert(address.clone(), ObjectBlock { reason, message });
    }

    /// A configured object that another address claims may be updated, but not be replaced.
    fn keep_configured(&mut self, from: &Address, message: String) {
        if self.options.mode == Mode::Normal {
            let held = ObjectBlock { reason: Reason::MoveBlocked, message };
            self.found.claimed.entry(from.clone()).or_insert(held);
        }
    }

    fn find_origin(&mut self, address: &Address, instance: &Instance) {
        if instance.problems.iter().any(concerns_moves) {
            return self.block_all_named(instance);
        }
        let occupied = self.record(address).is_some();
        let claims = self.named(address);
        let mut explicit: Vec<Address> = Vec::with_capacity(claims.len());
        for (_, from) in &claims {
            if !explicit.contains(from) {
                explicit.push(from.clone());
            }
        }
        if instance.import.is_none() && (self.is_lost(address) || self.has_lost_all(instance)) {
            // The object of the lost record belongs here, so no other object is moved here.
            let leaves = |from: &&Address| self.record(from).is_some() && !is_desired(self.config, from);
            let undesired: Vec<&Address> = explicit.iter().filter(leaves).collect();
            for from in undesired {
                let message = format!("it is moved to `{address}` once the missing record there is resolved");
                self.block(from, Reason::MoveBlocked, message);
                self.claim(from, Claim { possible: false, ..Claim::explicit(instance) });
            }
            return;
        }
        if explicit.contains(address) && self.record(address).is_some_and(|own| own.type_name != instance.type_name) {
            return self.change_type(address, instance);
        }
        if !occupied && self.block_several(address, instance, &claims) {
            return;
        }
        let named = explicit.iter().map(|from| (from, true));
        // The keys of a Resource with errors are not known.
        let broken = instance.has_errors();
        // As with a `moved` block, a claim overrides the implied moves. A claim that was already fulfilled does not: a
        // record under the Resource's own name takes precedence then.
        let entries = self.said.get(&address.name);
        let was_applied = entries.is_some_and(|entries| entries.is_applied);
        let is_open = |entry: &MovedFrom| !entry.is_whole() || !was_applied;
        let is_said = claims.iter().any(|(entry, from)| is_open(entry) && self.record(from).is_some());
        let mut implied =
            if occupied || broken || is_said { Vec::new() } else { self.other_keys(&address.name, address) };
        implied.retain(|from| entries.is_none_or(|entries| !entries.exact.contains(from)));
        for (from, explicit) in implied.iter().map(|from| (from, false)).chain(named) {
            if self.overridden.contains(&(address.clone(), from.clone())) {
                continue;
            }
            if !occupied && !self.recorded.contains_key(from) && self.is_unreadable(from) {
                let message = format!("the record of `{from}` cannot be read, so the object is not moved here yet");
                return self.block(address, Reason::MoveBlocked, message);
            }
            if !occupied && instance.import.is_none() && self.may_be_lost(from) {
                let message = format!(
                    "the record of `{from}` is missing: its object may belong here; if it does not exist, run `purlin \
                     state rm {from}`"
                );
                return self.block(address, Reason::RecordMissing, message);
            }
            let record = self.record(from);
            // While a first create is running, only the step is known.
            let exists = record.is_some() || self.is_running(from);
            if occupied || !exists {
                continue;
            }
            let is_converted = record.is_some_and(|record| record.type_name != instance.type_name);
            if is_converted && !explicit {
                continue;
            }
            if let Some((start, end)) = self.unfinished.get(from) {
                let message =
                    format!("the move of `{start}` to `{end}` must be completed before `{from}` is moved here");
                return self.block(address, Reason::MoveBlocked, message);
            }
            if is_desired(self.config, from) {
                return self.block_until_removed(address, from);
            }
            let unfinished = || self.found.blocked.get(address).filter(|_| self.unfinished.contains_key(address));
            if let Some(held) = self.options.blocked.get(address).or_else(unfinished).cloned() {
                self.found.blocked.insert(from.clone(), held);
                return self.claim(from, Claim { explicit, possible: false, ..Claim::explicit(instance) });
            }
            if broken {
                let message = format!("it is moved to `{address}` once the errors there are corrected");
                self.block(from, Reason::MoveBlocked, message);
                return self.claim(from, Claim { explicit, possible: false, ..Claim::explicit(instance) });
            }
            if let Some(open) = self.open_operation(from, address) {
                let held = waits_for_operation(from, address, open);
                self.found.hold(from, address, held);
                return self.claim(from, Claim { explicit, possible: false, ..Claim::explicit(instance) });
            }
            let converted = record.filter(|_| is_converted);
            let conversion = converted.and_then(|record| self.conversion(address, from, record));
            let possible = !is_converted || conversion.is_some();
            return self.claim(from, Claim { explicit, possible, conversion, ..Claim::explicit(instance) });
        }
        if occupied || instance.import.is_some() {
            return;
        }
        // As in Terraform, whose `moved` blocks must not name what is configured. Otherwise it would depend on which of
        // both is planned first whether an object is created here.
        let others = || explicit.iter().filter(|from| *from != address);
        if let Some(from) = others().find(|from| is_desired(self.config, from)) {
            return self.block_until_removed(address, from);
        }
        if others().next().is_some() {
            self.without_record.insert(address.clone());
        }
    }

    fn block_until_removed(&mut self, address: &Address, from: &Address) {
        let message = format!("`{from}` is still configured by a Resource, so it is not moved here yet");
        self.block(address, Reason::MoveBlocked, message);
    }

    fn is_running(&self, address: &Address) -> bool {
        self.running.contains(address)
    }

    /// Whether the record exists but cannot be read.
    fn is_unreadable(&self, address: &Address) -> bool {
        let unread = |reason| matches!(reason, Reason::RecordUnreadable | Reason::RecordUnavailable);
        self.options.blocked.get(address).is_some_and(|held| unread(held.reason))
    }

    /// Whether the record is missing although the index of the family lists it.
    fn is_lost(&self, address: &Address) -> bool {
        self.options.indexed.contains(address) && !self.recorded.contains_key(address)
    }

    /// Whether an object of this address may have had a record that is missing now.
    fn may_be_lost(&self, address: &Address) -> bool {
        self.is_lost(address) || self.config.resource(address).is_some_and(|resource| self.has_lost_all(resource))
    }

    /// Whether the Resource is marked as recorded, but no instance has a record.
    fn has_lost_all(&self, instance: &Instance) -> bool {
        let name = &instance.address.name;
        let is_own = |address: &Address| address.name == *name;
        let from = || Address::single(name.clone())..;
        let has_traces = self.recorded.range(from()).next().is_some_and(|(address, _)| is_own(address))
            || self.options.indexed.range(from()).next().is_some_and(is_own)
            || self.running.iter().copied().any(is_own);
        instance.has_record_annotation() && !has_traces
    }

    /// The addresses from which an instance may get its object, best first, each with the entry that names it.
    fn named(&self, address: &Address) -> Vec<(&'a MovedFrom, Address)> {
        let Some(entries) = self.said.get(&address.name) else { return Vec::new() };
        let has_come = has_come(self.recorded, entries, address);
        let of_entry = |entry: &'a MovedFrom| self.places(entry, address).into_iter().map(move |from| (entry, from));
        let mut all: Vec<(&MovedFrom, Address)> = entries.of(&address.key).flat_map(of_entry).collect();
        // An entry can name the address itself, because its type changes.
        let is_open = |entry: &MovedFrom| !has_come && (entry.is_whole() || !entries.is_fulfilled(entry));
        all.retain(|(entry, from)| from == address || is_open(entry));
        all
    }

    /// The addresses from which an entry gives an instance its object, best first.
    fn places(&self, entry: &MovedFrom, address: &Address) -> Vec<Address> {
        if entry.is_whole() {
            let is_free = |place: &Address| !self.said[&address.name].exact.contains(place);
            let places = std::iter::once(exact(entry, address)).chain(self.other_keys(&entry.from.name, address));
            places.filter(is_free).collect()
        } else if entry.to.is_some() || address.key == InstanceKey::None || self.is_only_instance(address) {
            vec![entry.from.clone()]
        } else {
            Vec::new()
        }
    }

    /// The addresses in `name` from which an instance may be moved because a key was added or removed.
    fn other_keys(&self, name: &Arc<str>, address: &Address) -> Vec<Address> {
        let at = |key| Address { name: name.clone(), key };
        match &address.key {
            InstanceKey::Index(0) => vec![at(InstanceKey::None)],
            InstanceKey::Key(_) if self.is_only_instance(address) => vec![at(InstanceKey::None)],
            InstanceKey::All | InstanceKey::Index(_) | InstanceKey::Key(_) => Vec::new(),
            InstanceKey::None => {
                // A record without objects is not moved.
                let from = at(InstanceKey::None);
                let recorded = self.recorded.range(from.clone()..).map(|(address, _)| address);
                let indexed = self.options.indexed.range(from.clone()..);
                let running = self.running.range::<&Address, _>(&from..).copied();
                let keyed = |a: &&Address| {
                    a.is_instance() && (self.record(a).is_some() || self.is_lost(a) || self.is_running(a))
                };
                let of_name = |a: &&Address| a.name == *name;
                let known = recorded.take_while(of_name).chain(indexed.take_while(of_name));
                let all: BTreeSet<&Address> = known.chain(running.take_while(of_name)).filter(keyed).collect();
                // Prefer records with a current object to those with only deposed objects.
                let lives = |a: &&Address| {
                    let is_current = |record: &Record| record.current.is_some() || record.intent.is_some();
                    self.is_lost(a) || self.is_running(a) || self.record(a).is_some_and(|record| is_current(record))
                };
                let living: Vec<&Address> = all.iter().copied().filter(lives).collect();
                let of_those = if living.is_empty() { all.into_iter().collect() } else { living };
                // Ignore addresses that another Resource claims, if others are left.
                let free = |a: &&Address| !self.claimed_by_others.contains(a);
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

    /// Whether it is the only configured instance of its Resource.
    fn is_only_instance(&self, address: &Address) -> bool {
        self.config.instance_addresses(&address.name).nth(1).is_none()
    }

    /// An open operation on the record, or on a record that depends on it now or after the operation, or that changes with
    /// the move.
    fn open_operation(&self, from: &Address, to: &Address) -> Option<&'a Address> {
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
        let changes = || running_user(self.recorded, self.options, [from, to]);
        recorded.map(|record| &record.address).or_else(running).or_else(changes)
    }
}

/// Whether an object is desired at an address, or this is not known.
fn is_desired(config: &Config, address: &Address) -> bool {
    let unclear = |family: &Arc<Family>| family.shared.is_desired() && !matches!(family.expansion, Expansion::Known(_));
    config.instances.get(address).is_some_and(|instance| instance.is_desired())
        || config.families.get(&address.name).is_some_and(unclear)
}

#[cfg(test)]
mod tests;
