//! Where an instance without an object gets its object from.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::Claim;
use super::entries::Entries;
use super::records::objects;
use super::{Search, is_desired, running_user, waits_for_operation};
use crate::load::decode::concerns_moves;
use crate::load::{Config, Instance, MovedFrom};
use model::{Address, InstanceKey, Reason, Recorded, RecordedObject, Stem, Words};

/// The addresses of other Resources that instances without an object claim.
pub fn claimed_addresses(
    config: &Config,
    recorded: &Recorded,
    said: &BTreeMap<&Stem, Entries<'_>>,
) -> BTreeSet<Address> {
    let mut claimed = BTreeSet::new();
    for (name, entries) in said {
        for address in config.instance_addresses(name).filter(|address| config.instances[*address].is_desired()) {
            let has_object = recorded.get(address).is_some_and(|stored| stored.record.has_objects());
            if has_object || has_come(recorded, entries, address) {
                continue;
            }
            let others = entries.of(&address.key).filter(|entry| entry.from.stem != address.stem);
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
    entry.from.stem.clone().instance(key.clone())
}

impl<'a> Search<'a> {
    /// Claims the object of an instance that has none, or blocks the instance while it is not certain which one that is.
    pub fn find_origin(&mut self, address: &Address, instance: &Instance) {
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
        let mut others = claims.iter().filter(|(_, from)| from != address);
        if let Some((_, from)) = others.clone().find(|(_, from)| is_desired(self.config, from)) {
            self.block_until_removed(address, from);
        } else if others.any(|(entry, _)| !entry.is_literal()) {
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
        let entries = self.said.get(&address.stem);
        let is_said = claims.iter().any(|(entry, from)| {
            let is_open = entries.is_some_and(|entries| !entries.is_fulfilled(entry));
            is_open && self.record(from).is_some()
        });
        // The keys of a Resource with errors are not known.
        let implied = match is_said || instance.has_errors() {
            true => Vec::new(),
            false => self.other_keys(&address.stem, address),
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
        let mut held = self.options.blocked.get(address);
        if self.unfinished.contains_key(address) {
            held = held.or_else(|| self.found.blocked.get(address));
        }
        if let Some(held) = held.cloned() {
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
        let (owner, sources) = match Words::of(from) {
            Words::Manifest => ("Resource", "manifests"),
            Words::Terraform => ("block", "configuration"),
        };
        let message = format!(
            "`{from}` is still configured by a {owner}, so it is not moved here yet (hint: remove it from the {sources}; if \
             it takes another object itself, move one after another, the last one first)"
        );
        self.block(address, Reason::MoveBlocked, message);
    }

    /// The addresses that an instance claims, best first, each with the entry that names it. The address from which its
    /// object came is free again. An instance whose object has come gets no other one, but what its other entries name is
    /// kept.
    pub fn named(&self, address: &Address) -> Vec<(&'a MovedFrom, Address)> {
        let Some(entries) = self.said.get(&address.stem) else { return Vec::new() };
        let has_come = self.has_come(address);
        let came = self.recorded.get(address).map_or(&[][..], |stored| &stored.record.moved_from);
        let mut named: Vec<(&MovedFrom, Address)> = Vec::new();
        for entry in entries.of(&address.key) {
            named.extend(self.places(entry, address).into_iter().map(|from| (entry, from)));
        }
        named.retain(|(entry, from)| {
            let is_open = (entry.is_whole() && !has_come) || !entries.is_fulfilled(entry);
            // An entry can name the address itself, because its type changes.
            from == address || (is_open && !came.contains(from))
        });
        named
    }

    fn has_come(&self, address: &Address) -> bool {
        self.said.get(&address.stem).is_some_and(|entries| has_come(self.recorded, entries, address))
    }

    /// The addresses from which an entry gives an instance its object, best first.
    fn places(&self, entry: &MovedFrom, address: &Address) -> Vec<Address> {
        if entry.is_whole() {
            let said = &self.said[&address.stem].exact;
            let places = std::iter::once(exact(entry, address)).chain(self.other_keys(&entry.from.stem, address));
            places.filter(|place| !said.contains(place)).collect()
        } else if entry.to.is_some() || address.key == InstanceKey::None || self.is_only_instance(address) {
            vec![entry.from.clone()]
        } else {
            Vec::new()
        }
    }

    /// The addresses in `name` from which an instance may be moved because a key was added or removed.
    fn other_keys(&self, name: &Stem, address: &Address) -> Vec<Address> {
        match &address.key {
            InstanceKey::Index(0) => vec![Address::single(name.clone())],
            InstanceKey::Key(_) if self.is_only_instance(address) => vec![Address::single(name.clone())],
            InstanceKey::All | InstanceKey::Index(_) | InstanceKey::Key(_) => Vec::new(),
            InstanceKey::None => self.single_key(name).into_iter().collect(),
        }
    }

    /// The only instance of a name, or its first one, from which an instance without a key may be moved.
    fn single_key(&self, name: &Stem) -> Option<Address> {
        let whole = Address::single(name.clone());
        let mut keyed: Vec<&Address> = self.instances_with_object(&whole).into_iter().collect();
        // Prefer records with a current object to those with only deposed objects.
        let living: Vec<&Address> = keyed
            .iter()
            .copied()
            .filter(|address| {
                let record = self.record(address);
                let is_current = record.is_some_and(|record| record.current.is_some() || record.intent.is_some());
                is_current || self.is_lost(address) || self.is_running(address)
            })
            .collect();
        if !living.is_empty() {
            keyed = living;
        }
        // Ignore addresses that another Resource claims, if others are left.
        if keyed.iter().any(|address| !self.claimed_by_others.contains(*address)) {
            keyed.retain(|address| !self.claimed_by_others.contains(*address));
        }
        let first = name.clone().instance(InstanceKey::Index(0));
        match keyed[..] {
            [only] => Some(only.clone()),
            _ => keyed.contains(&&first).then_some(first),
        }
    }

    /// The instances of a Resource with a record of objects, a lost record or a running step.
    fn instances_with_object<'b>(&'b self, whole: &'b Address) -> BTreeSet<&'b Address> {
        let recorded = self.recorded.range(whole.clone()..).map(|(address, _)| address);
        let indexed = self.options.indexed.range(whole.clone()..);
        let running = self.running.range::<&Address, _>(whole..).copied();
        recorded
            .take_while(|address| address.stem == whole.stem)
            .chain(indexed.take_while(|address| address.stem == whole.stem))
            .chain(running.take_while(|address| address.stem == whole.stem))
            .filter(|address| address.is_instance())
            // A record without objects is not moved.
            .filter(|address| self.record(address).is_some() || self.is_lost(address) || self.is_running(address))
            .collect()
    }

    /// Whether it is the only configured instance of its Resource.
    pub fn is_only_instance(&self, address: &Address) -> bool {
        self.config.instance_addresses(&address.stem).nth(1).is_none()
    }

    /// An open operation on the record, or on a record that depends on it now or after the operation, or that changes with
    /// the move.
    pub fn open_operation(&self, from: &Address, to: &Address) -> Option<&'a Address> {
        for record in self.open.iter().copied() {
            let planned = record.intent.as_ref().and_then(|intent| intent.planned.as_ref());
            let depends = objects(record).any(|object| depends_on(object, from))
                || planned.is_some_and(|planned| depends_on(&planned.recorded, from));
            if depends || record.address == *from {
                return Some(&record.address);
            }
        }
        for running in &self.options.running {
            if running.recorded.as_ref().is_some_and(|object| depends_on(object, from)) {
                return Some(&running.step.address);
            }
        }
        running_user(self.recorded, self.options, [from, to])
    }
}

/// Whether an object depends on an address or its family.
fn depends_on(object: &RecordedObject, address: &Address) -> bool {
    object
        .dependencies
        .iter()
        .any(|dependency| dependency == address || (dependency.stem == address.stem && !dependency.is_instance()))
}
