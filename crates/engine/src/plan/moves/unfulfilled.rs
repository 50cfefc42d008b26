//! Claims that cannot be fulfilled: the claimed objects are kept, and no other object is created in their place.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::Claim;
use super::entries::Entries;
use super::{Mode, Move, Search, is_desired};
use crate::load::{Expansion, Instance, MovedFrom};
use crate::plan::ObjectBlock;
use model::{Address, Diagnostic, InstanceKey, Reason, in_family};

impl<'a> Search<'a> {
    /// Blocks an instance that names several existing objects, and these objects: a wrong guess would destroy one.
    pub(super) fn block_several(
        &mut self,
        address: &Address,
        instance: &Instance,
        claims: &[(&'a MovedFrom, Address)],
    ) -> bool {
        let mut several: BTreeSet<&Address> = BTreeSet::new();
        let mut entries: Vec<&MovedFrom> = Vec::new();
        for (entry, from) in claims {
            if from != address && self.leaves(from) && !entries.contains(entry) && several.insert(from) {
                entries.push(entry);
            }
        }
        if several.len() < 2 {
            return false;
        }
        let names: Vec<String> = several.iter().map(|from| format!("`{from}`")).collect();
        let message = format!(
            "`{address}` claims {}, which all exist, so nothing is moved or destroyed (hint: keep only the former \
             address of the object to move; the others are destroyed once no Resource names them)",
            names.join(" and ")
        );
        for from in several {
            self.block(from, Reason::MoveBlocked, message.clone());
            self.claim(from, Claim { possible: false, ..Claim::explicit(instance) });
        }
        self.block(address, Reason::MoveBlocked, message);
        true
    }

    /// Whether an object exists at an address that is no longer desired, and no interrupted move concerns it.
    fn leaves(&self, from: &Address) -> bool {
        self.record(from).is_some() && !is_desired(self.config, from) && !self.unfinished.contains_key(from)
    }

    /// Blocks what entries name if no instance can get the object: the key does not exist, or the entry does not say which
    /// one of several instances it means.
    pub(super) fn check_targets(&mut self) {
        for (name, entries) in self.said {
            let resource = entries.resource;
            let family = self.config.families.get(*name);
            let is_known = family.is_none_or(|family| matches!(family.expansion, Expansion::Known(_)));
            if !resource.is_desired() || !is_known || !self.concerns(resource) {
                continue;
            }
            let mut wrong = None;
            for entry in entries.all().filter(|entry| !entries.is_fulfilled(entry)) {
                if entry.is_whole() {
                    self.wait_for_standing(resource, entry);
                    self.check_whole(resource, entry);
                } else if let Some(why) = self.misses_target(resource, entry)
                    && self.hold_misdirected(resource, entry, &why)
                {
                    wrong.get_or_insert(why);
                }
            }
            // One of the new instances may be meant.
            let newcomers = if wrong.is_some() { self.newcomers(resource) } else { Vec::new() };
            for (address, why) in newcomers.iter().zip(wrong.iter().cycle()) {
                self.block(address, Reason::MoveBlocked, why.clone());
            }
        }
    }

    /// Why no instance can get the object of an entry. `None` if one can.
    fn misses_target(&self, resource: &Instance, entry: &MovedFrom) -> Option<String> {
        let name = &resource.address.name;
        let is_instance =
            |key: &InstanceKey| self.config.instances.contains_key(&Address { name: name.clone(), key: key.clone() });
        let mut own = self.config.instance_addresses(name);
        let (field, from) = (entry.field(), &entry.from);
        let is_self = from.name == *name && resource.repetition.as_ref().is_none_or(|one| one.repeat.is_none());
        // The object of the name itself is that of its own Resource, if there is one.
        let is_taken = self.record(from).is_none() || is_desired(self.config, from);
        let is_name = from.key == InstanceKey::None && is_taken && !is_self;
        if is_name && !self.instances_of(from).is_empty() {
            let what = format!("{field} names `{from}`, which has several instances");
            return Some(format!("{what} (hint: name one of them, such as `{}`)", self.instances_of(from)[0]));
        }
        match &entry.to {
            Some(key) if !is_instance(key) => {
                let what = format!("{field} moves `{from}` to `{name}{key}`, which is not configured");
                let hint = match own.next().map(|address| &address.key) {
                    Some(InstanceKey::None) => "omit `to`".to_owned(),
                    Some(key) => format!("correct the key: `{name}` has `{key}`"),
                    None => format!("`{name}` has no instances"),
                };
                Some(format!("{what} (hint: {hint}; to destroy the object, remove the entry)"))
            }
            None if own.next().is_none() || own.next().is_some() => Some(format!(
                "{field} names `{from}`, but not which instance of `{name}` gets the object (hint: use `spec.moved: [{{ \
                 from: '{from}', to: '[\"key\"]' }}]`; to destroy the object, remove the address)"
            )),
            _ => None,
        }
    }

    /// The instances without a configuration that have objects under a name.
    fn instances_of(&self, from: &Address) -> Vec<Address> {
        let all = in_family(self.recorded, &from.name).map(|(address, _)| address);
        all.filter(|address| address.is_instance() && self.leaves(address)).cloned().collect()
    }

    /// Creates nothing while an object is still configured that a Resource names as a whole, and to which none of its
    /// instances corresponds: any of them may be meant.
    fn wait_for_standing(&mut self, resource: &Instance, entry: &MovedFrom) {
        let (name, old) = (&resource.address.name, &entry.from.name);
        let own = self.config.instance_addresses(name);
        let mut named: BTreeSet<Address> = own.flat_map(|address| self.named(address)).map(|(_, from)| from).collect();
        named.extend(self.said[name].exact.iter().copied().cloned());
        let is_standing = |from: &&Address| is_desired(self.config, from) && !named.contains(*from);
        let Some(first) = self.config.instance_addresses(old).find(is_standing).filter(|_| name != old) else { return };
        for new in self.newcomers(resource) {
            let (field, key) = (entry.field(), &new.key);
            let to = if *key == InstanceKey::None { String::new() } else { format!(", to: '{key}'") };
            let message = format!(
                "{field} names `{old}`, which is still configured, but no instance of `{name}` corresponds to `{first}`; \
                 nothing is created (hint: say which object is moved: `spec.moved: [{{ from: '{first}'{to} }}]`; if \
                 `{old}` is another object, remove the entry)"
            );
            self.block(&new, Reason::MoveBlocked, message);
        }
    }

    /// Keeps what an entry names that no instance can get. Whether one of the new instances may be meant.
    fn hold_misdirected(&mut self, resource: &Instance, entry: &MovedFrom, why: &str) -> bool {
        let exists =
            |from: &Address| self.record(from).is_some() || self.is_running(from) || is_desired(self.config, from);
        let exact = Some(entry.from.clone()).filter(exists);
        // A configured object stays with its Resource, so another one of the name may be meant.
        let instances = match &exact {
            Some(from) if !is_desired(self.config, from) => Vec::new(),
            _ => self.instances_of(&entry.from),
        };
        let all: Vec<Address> = exact.into_iter().chain(instances).collect();
        let mut is_kept = false;
        for from in &all {
            if self.unfinished.contains_key(from) {
                continue;
            }
            if is_desired(self.config, from) {
                self.keep_configured(from, why.to_owned());
                is_kept |= from.name != resource.address.name;
                continue;
            }
            is_kept = true;
            self.block(from, Reason::MoveBlocked, why.to_owned());
            self.claim(from, Claim { possible: false, ..Claim::explicit(resource) });
        }
        is_kept
    }

    /// The instances of a Resource that would be created: they have no object, and claim none that exists.
    fn newcomers(&self, resource: &Instance) -> Vec<Address> {
        let claimants: BTreeSet<&Address> = self.claims.values().flatten().map(|claim| &claim.to).collect();
        let all = self.config.instance_addresses(&resource.address.name);
        let is_new = |address: &&Address| {
            self.record(address).is_none()
                && !self.is_running(address)
                && !claimants.contains(address)
                && !self.found.blocked.contains_key(*address)
        };
        all.filter(is_new).cloned().collect()
    }

    /// Checks an entry that names a Resource as a whole. Objects without a corresponding instance are destroyed like those
    /// of removed keys, but only if others correspond, and no instance would be created: its key may be a new one for the
    /// same object.
    fn check_whole(&mut self, resource: &Instance, entry: &MovedFrom) {
        let (name, old) = (&resource.address.name, &entry.from.name);
        if name != old && is_desired(self.config, &entry.from) && self.record(&entry.from).is_some() {
            self.keep_configured(&entry.from, claimed_by(resource, &entry.field()));
        }
        let all = in_family(self.recorded, old).map(|(address, _)| address);
        // The instances of its own name are configured, or their keys were removed.
        let is_named = |address: &&Address| name != old || **address == entry.from;
        let leaving: Vec<&Address> = all.filter(|address| is_named(address) && self.leaves(address)).collect();
        if leaving.is_empty() {
            return;
        }
        let own: Vec<&Address> = self.config.instance_addresses(name).collect();
        let (free, occupied): (Vec<&Address>, Vec<&Address>) =
            own.iter().copied().partition(|address| self.record(address).is_none());
        let names = |all: &[&Address]| -> BTreeSet<Address> {
            all.iter().flat_map(|address| self.named(address)).map(|(_, from)| from).collect()
        };
        let mut named = names(&free);
        named.extend(self.said[name].exact.iter().copied().cloned());
        let blocked = names(&occupied);
        let is_explicit =
            |from: &Address| self.claims.get(from).is_some_and(|claims| claims.iter().any(|claim| claim.explicit));
        let (matched, others): (Vec<&Address>, Vec<&Address>) =
            leaving.into_iter().partition(|from| named.contains(*from));
        // `keep_claimed` keeps what an instance with another object names.
        let mut rest: Vec<&Address> =
            others.into_iter().filter(|from| !is_explicit(from) && !blocked.contains(*from)).collect();
        let newcomers = self.newcomers(resource);
        let mut claims = matched.iter().filter_map(|from| self.claims.get(*from)).flatten();
        let is_applied = claims.any(|claim| claim.explicit && claim.possible && claim.to.name == *name);
        // The name is also that of one object, which is meant itself.
        rest.retain(|from| !is_applied || !newcomers.is_empty() || **from == entry.from);
        let Some(first) = rest.first() else { return };
        if !matched.is_empty() && newcomers.is_empty() {
            let message = format!("it is kept until the other objects of `{old}` are moved to `{name}`");
            return rest.iter().for_each(|from| self.block(from, Reason::MoveBlocked, message.clone()));
        }
        let field = entry.field();
        let what = format!("{field} of `{name}` names `{old}`, but no instance of `{name}` corresponds to `{first}`");
        let way_out = match matched.is_empty() {
            true => format!("to destroy the objects of `{old}`, remove the entry"),
            false => "to destroy the object, keep its key until the others are moved".to_owned(),
        };
        let to = match newcomers.first().or(own.first().copied()) {
            Some(Address { key: InstanceKey::None, .. }) | None => String::new(),
            Some(new) => format!(", to: '{}'", new.key),
        };
        let hint = format!("say which object is moved: `spec.moved: [{{ from: '{first}'{to} }}]`; {way_out}");
        let message = format!("{what}; nothing is moved, created or destroyed (hint: {hint})");
        for from in &rest {
            self.block(from, Reason::MoveBlocked, message.clone());
            self.claim(from, Claim { possible: false, ..Claim::explicit(resource) });
        }
        for from in matched {
            let Some(claims) = self.claims.get_mut(from) else { continue };
            for claim in claims.iter_mut().filter(|claim| claim.explicit && claim.to.name == *name) {
                claim.possible = false;
                let held = ObjectBlock { reason: Reason::MoveBlocked, message: message.clone() };
                self.found.blocked.extend([(from.clone(), held.clone()), (claim.to.clone(), held)]);
            }
        }
        newcomers.iter().for_each(|new| self.block(new, Reason::MoveBlocked, message.clone()));
    }

    /// Keeps the claimed objects that are not moved.
    pub(super) fn keep_claimed(&mut self) {
        let moves = std::mem::take(&mut self.found.moves);
        let arriving: BTreeMap<&Address, &Move> =
            moves.iter().filter(|one| !one.reverted).map(|one| (&one.to, one)).collect();
        let sources: BTreeSet<&Address> = moves.iter().map(|one| &one.from).collect();
        let mut swaps: BTreeMap<Address, Vec<Address>> = BTreeMap::new();
        for name in self.said.keys() {
            let instances = self.config.instance_addresses(name);
            for address in instances.filter(|address| self.config.instances[*address].is_desired()) {
                let arrives = arriving.get(address).map(|one| &one.from);
                let claimed = match arrives.is_some_and(|from| self.comes_as_said(address, from)) {
                    true => Vec::new(),
                    false => self.named(address).into_iter().map(|(_, from)| from).collect(),
                };
                for from in claimed.into_iter().chain(self.named_besides(address, arrives)) {
                    let is_there = self.record(&from).is_some_and(|record| record.moving_to.is_none());
                    if from != *address && is_there && !sources.contains(&from) {
                        self.keep(address, &from, arrives.is_some(), &mut swaps);
                    }
                }
            }
        }
        self.found.moves = moves;
        self.block_swaps(&swaps);
    }

    /// Keeps the objects under a name that a Resource names as a whole, if none of them is moved to it: the objects went
    /// to another Resource.
    pub(super) fn keep_unmoved_families(&mut self) {
        for (name, entries) in self.said {
            let resource = entries.resource;
            if !resource.is_desired() || !self.concerns(resource) {
                continue;
            }
            for entry in entries.all().filter(|entry| entry.is_whole() && !entries.is_fulfilled(entry)) {
                let old = &entry.from.name;
                let is_moved = self.found.moves.iter().any(|one| one.from.name == *old && one.to.name == **name);
                if old == *name || is_moved {
                    continue;
                }
                let field = entry.field();
                let message = format!(
                    "`{name}` claims this object, but no object of `{old}` is moved to `{name}` (hint: remove {field} of \
                     `{name}` to destroy the object)"
                );
                for from in self.instances_of(&entry.from) {
                    let goes = self.found.moves.iter().any(|one| one.from == from);
                    if !goes && !self.found.blocked.contains_key(&from) {
                        self.block(&from, Reason::MoveBlocked, message.clone());
                    }
                }
            }
        }
    }

    /// The objects that are no longer configured and from which an instance would get its object, if it had not come from
    /// another address that the Resource names. The claim to them may be new.
    fn named_besides(&self, address: &Address, arrives: Option<&Address>) -> Vec<Address> {
        let entries = &self.said[&address.name];
        let came = |from: &Address| {
            let own = arrives.unwrap_or(address);
            arrives == Some(from) || self.record(own).is_some_and(|record| record.moved_from.contains(from))
        };
        let open = entries.of(&address.key).filter(|entry| !entries.is_fulfilled(entry));
        open.flat_map(|entry| self.places(entry, address)).filter(|from| !came(from) && self.leaves(from)).collect()
    }

    /// Whether the object that arrives from an address is one that the Resource names, or came from one.
    fn comes_as_said(&self, address: &Address, from: &Address) -> bool {
        let entries = &self.said[&address.name];
        let came = self.record(from).into_iter().flat_map(|record| &record.moved_from);
        came.chain([from]).any(|old| entries.names(&address.key, old))
    }

    fn keep(&mut self, address: &Address, from: &Address, arrives: bool, swaps: &mut BTreeMap<Address, Vec<Address>>) {
        let is_occupied = arrives || self.record(address).is_some();
        let field = self.said[&address.name].field(from);
        if is_desired(self.config, from) {
            if is_occupied {
                swaps.entry(address.clone()).or_default().push(from.clone());
                let what = format!("{field} claims `{from}`, which is still configured, so nothing is moved");
                let warning = Diagnostic::warning(address, Reason::MoveBlocked, what);
                let hint = format!("remove {field} if `{from}` is another object");
                self.found.diagnostics.push(warning.because(format!("`{address}` has another object")).hint(hint));
            }
            let message = match from.name == address.name {
                true => format!("`{address}` claims this object (hint: remove its key to move it, or remove {field})"),
                false => claimed_by(self.said[&address.name].resource, &field),
            };
            return self.keep_configured(from, message);
        }
        if self.found.blocked.contains_key(from) {
            return;
        }
        let message = match is_occupied {
            true => format!(
                "`{address}` claims this object, but already has another one; the object is kept until this is \
                 resolved (hint: remove {field} to destroy it, or {})",
                self.way_to_free(address)
            ),
            false => format!("`{address}` claims this object, and cannot be planned yet"),
        };
        self.block(from, Reason::MoveBlocked, message);
    }

    /// How the object at an address makes room for another one, without losing an object that is claimed in turn.
    fn way_to_free(&self, address: &Address) -> String {
        let claims = |other: &&Address| self.named(other).iter().any(|(_, from)| from == address);
        let names = self.said.keys().flat_map(|name| self.config.instance_addresses(name));
        match names.filter(|other| *other != address).find(claims) {
            Some(other) => format!("run `purlin state mv {address} {other}` first, because `{other}` claims that one"),
            None => format!("run `purlin state rm {address}` to move it there"),
        }
    }

    /// Blocks configured objects that claim each other.
    fn block_swaps(&mut self, claims: &BTreeMap<Address, Vec<Address>>) {
        for start in claims.keys() {
            let mut reached: BTreeSet<&Address> = BTreeSet::new();
            let mut open: Vec<&Address> = claims[start].iter().collect();
            while let Some(next) = open.pop() {
                if reached.insert(next) {
                    open.extend(claims.get(next).into_iter().flatten());
                }
            }
            if reached.contains(start) && self.options.mode == Mode::Normal {
                let message = format!(
                    "`{start}` and `{}` claim each other's objects, and Purlin does not swap objects, so nothing is \
                     moved or changed (hint: move one of them to a third name first, with three `purlin state mv`, and \
                     remove the claims)",
                    claims[start][0]
                );
                self.block(start, Reason::MoveBlocked, message);
            }
        }
    }

    /// Creates no second object for a manifest whose object was moved to a Resource of a source that is not given.
    pub(super) fn block_moved_to_other_sources(&mut self) {
        let is_other = |instance: &&std::sync::Arc<Instance>| instance.only_recorded;
        let others = self.config.resources().filter(is_other);
        let records = others.flat_map(|resource| in_family(self.recorded, &resource.address.name));
        let came: BTreeMap<&Address, &Address> =
            records.flat_map(|(to, stored)| stored.record.moved_from.iter().map(move |from| (from, to))).collect();
        if came.is_empty() {
            return;
        }
        let wanted = self
            .config
            .instances
            .iter()
            .filter(|(_, instance)| instance.is_desired() && !instance.only_recorded && instance.import.is_none());
        let mut held = Vec::new();
        for (address, to) in wanted.filter_map(|(address, _)| Some((address, *came.get(address)?))) {
            let arrives = self.found.moves.iter().any(|one| one.to == *address);
            if self.record(address).is_none() && !arrives && !self.found.blocked.contains_key(address) {
                let source = self.recorded.get(to).and_then(|stored| stored.record.source.as_deref()).unwrap_or("-");
                let message = format!(
                    "the object of this name was moved to `{to}`, whose manifest is in `{source}` (hint: remove this \
                     manifest; to create another object with this name, plan both sources in one command, with `-f` for \
                     each)"
                );
                held.push((address.clone(), message));
            }
        }
        held.into_iter().for_each(|(address, message)| self.block(&address, Reason::MoveBlocked, message));
    }

    /// Whether a plan of this mode moves objects to a Resource, or its protection keeps them.
    pub(super) fn concerns(&self, resource: &Instance) -> bool {
        let keeps = resource.prevent_destroy || resource.prevent_destroy_when.is_some() || resource.keeps_object();
        match self.options.mode {
            Mode::Normal => true,
            Mode::Destroy => keeps,
            Mode::RefreshOnly => false,
        }
    }
}

fn claimed_by(resource: &Instance, field: &str) -> String {
    let name = &resource.address.name;
    format!("`{name}` claims this object (hint: remove its Resource to move it, or remove {field} of `{name}`)")
}

impl Entries<'_> {
    /// How to correct the field that names an address.
    pub(super) fn fix(&self, from: &Address) -> String {
        format!("correct {}, or remove it", self.field(from))
    }
}
