//! Where an instance without an object gets its object from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::Claim;
use super::entries::Entries;
use super::records::objects;
use super::{Search, is_desired, running_user, waits_for_operation};
use crate::load::decode::concerns_moves;
use crate::load::{Config, Instance, MovedFrom};
use crate::plan::RunningStep;
use model::{Address, InstanceKey, Reason, Record, Recorded, RecordedObject};

/// The addresses of other Resources that instances without an object claim.
pub(super) fn claimed_addresses(
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
    /// Claims the object of an instance that has none, or blocks the instance while it is not certain which one that is.
    pub(super) fn find_origin(&mut self, address: &Address, instance: &Instance) {
        if instance.problems.iter().any(concerns_moves) {
            return self.block_all_named(instance);
        }
        let mut claims = self.named(address);
        if let Some(record) = self.record(address) {
            let names_itself = claims.iter().any(|(_, from)| from == address);
            if names_itself && record.type_name != instance.type_name {
                self.change_type(address, instance);
            }
            return;
        }
        if self.has_come(address) {
            claims.clear();
        }
        if instance.import.is_none() && (self.is_lost(address) || self.has_lost_all(instance)) {
            // The object of the lost record belongs here, so no other object is moved here.
            let message = format!("it is moved to `{address}` once the missing record there is resolved");
            for (_, from) in claims.iter().filter(|(_, from)| self.leaves(from)).cloned().collect::<Vec<_>>() {
                self.keep_for(instance, &from, message.clone());
            }
            return;
        }
        if self.block_several(address, instance, &claims) {
            return;
        }
        for (from, explicit) in self.candidates(address, instance, &claims) {
            if self.claim_from(address, instance, &from, explicit) {
                return;
            }
        }
        if instance.import.is_some() {
            return;
        }
        // As in Terraform, whose `moved` blocks must not name what is configured. Otherwise it would depend on which of
        // both is planned first whether an object is created here.
        let mut others = claims.iter().map(|(_, from)| from).filter(|from| *from != address);
        if let Some(from) = others.clone().find(|from| is_desired(self.config, from)) {
            self.block_until_removed(address, from);
        } else if others.next().is_some() {
            self.without_record.insert(address.clone());
        }
    }

    /// The addresses from which an instance may get its object, best first, each with whether its Resource says so.
    fn candidates(
        &self,
        address: &Address,
        instance: &Instance,
        claims: &[(&MovedFrom, Address)],
    ) -> Vec<(Address, bool)> {
        // As with a `moved` block, a claim overrides the implied moves. A claim that was already fulfilled does not: a
        // record under the Resource's own name takes precedence then.
        let entries = self.said.get(&address.name);
        let is_open = |entry| entries.is_some_and(|entries| !entries.is_fulfilled(entry));
        let is_said = claims.iter().any(|(entry, from)| is_open(entry) && self.record(from).is_some());
        // The keys of a Resource with errors are not known.
        let implied = match is_said || instance.has_errors() {
            true => Vec::new(),
            false => self.other_keys(&address.name, address),
        };
        let implied = implied.into_iter().filter(|from| entries.is_none_or(|entries| !entries.exact.contains(from)));
        implied.map(|from| (from, false)).chain(claims.iter().map(|(_, from)| (from.clone(), true))).collect()
    }

    /// Claims the object at `from` for an instance without one. Returns whether the search ends, because there is or may
    /// be such an object.
    fn claim_from(&mut self, address: &Address, instance: &Instance, from: &Address, explicit: bool) -> bool {
        if !self.recorded.contains_key(from) && self.is_unreadable(from) {
            let message = format!("the record of `{from}` cannot be read, so the object is not moved here yet");
            self.block(address, Reason::MoveBlocked, message);
            return true;
        }
        if instance.import.is_none() && self.may_be_lost(from) {
            let message = format!(
                "the record of `{from}` is missing: its object may belong here; if it does not exist, run `purlin state \
                 rm {}`",
                from.shell_word()
            );
            self.block(address, Reason::RecordMissing, message);
            return true;
        }
        let record = self.record(from);
        let is_converted = record.is_some_and(|record| record.type_name != instance.type_name);
        // While a first create is running, only the step is known.
        let exists = record.is_some() || self.is_running(from);
        if !exists || (is_converted && !explicit) {
            return false;
        }
        if let Some((start, end)) = self.unfinished.get(from) {
            let message = format!("the move of `{start}` to `{end}` must be completed before `{from}` is moved here");
            self.block(address, Reason::MoveBlocked, message);
            return true;
        }
        if is_desired(self.config, from) {
            self.block_until_removed(address, from);
            return true;
        }
        let mut claim = Claim { explicit, ..Claim::waiting(instance) };
        let unfinished = || self.found.blocked.get(address).filter(|_| self.unfinished.contains_key(address));
        if let Some(held) = self.options.blocked.get(address).or_else(unfinished).cloned() {
            self.found.blocked.insert(from.clone(), held);
        } else if instance.has_errors() {
            let message = format!("it is moved to `{address}` once the errors there are corrected");
            self.block(from, Reason::MoveBlocked, message);
        } else if let Some(open) = self.open_operation(from, address) {
            self.found.hold(from, address, waits_for_operation(from, address, open));
        } else {
            let converted = record.filter(|_| is_converted);
            claim.conversion = converted.and_then(|record| self.conversion(address, from, record));
            claim.possible = !is_converted || claim.conversion.is_some();
        }
        self.claim(from, claim);
        true
    }

    fn block_until_removed(&mut self, address: &Address, from: &Address) {
        let message = format!("`{from}` is still configured by a Resource, so it is not moved here yet");
        self.block(address, Reason::MoveBlocked, message);
    }

    /// The addresses that an instance claims, best first, each with the entry that names it. The address from which its
    /// object came is free again. An instance whose object has come gets no other one, but what its other entries name is
    /// kept.
    pub(super) fn named(&self, address: &Address) -> Vec<(&'a MovedFrom, Address)> {
        let Some(entries) = self.said.get(&address.name) else { return Vec::new() };
        let has_come = self.has_come(address);
        let came = self.recorded.get(address).map_or(&[][..], |stored| &stored.record.moved_from);
        let is_open = |entry: &MovedFrom| (entry.is_whole() && !has_come) || !entries.is_fulfilled(entry);
        let of_entry = |entry: &'a MovedFrom| self.places(entry, address).into_iter().map(move |from| (entry, from));
        let mut all: Vec<(&MovedFrom, Address)> = entries.of(&address.key).flat_map(of_entry).collect();
        // An entry can name the address itself, because its type changes.
        all.retain(|(entry, from)| from == address || (is_open(entry) && !came.contains(from)));
        all
    }

    fn has_come(&self, address: &Address) -> bool {
        self.said.get(&address.name).is_some_and(|entries| has_come(self.recorded, entries, address))
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
    pub(super) fn is_only_instance(&self, address: &Address) -> bool {
        self.config.instance_addresses(&address.name).nth(1).is_none()
    }

    /// An open operation on the record, or on a record that depends on it now or after the operation, or that changes with
    /// the move.
    pub(super) fn open_operation(&self, from: &Address, to: &Address) -> Option<&'a Address> {
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
        let coming = |running: &&'a RunningStep| running.recorded.as_ref().is_some_and(|object| names(object));
        let running = || self.options.running.iter().find(coming).map(|running| &running.step.address);
        let changes = || running_user(self.recorded, self.options, [from, to]);
        recorded.map(|record| &record.address).or_else(running).or_else(changes)
    }
}
