//! Claims that cannot be fulfilled: the claimed objects are kept, and no other object is created in their place.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::Claim;
use super::entries::Entries;
use super::{Mode, Search, is_desired};
use crate::load::{Expansion, Instance, MovedFrom};
use crate::plan::ObjectBlock;
use model::{Address, Diagnostic, InstanceKey, Reason, Record, Words, in_stem};

impl Search<'_> {
    /// Blocks an instance that names several existing objects, and these objects: a wrong guess would destroy one.
    pub fn block_several(&mut self, address: &Address, instance: &Instance, claims: &[(&MovedFrom, Address)]) -> bool {
        let several: BTreeSet<&Address> = claims
            .chunk_by(|(entry, _), (next, _)| entry == next)
            .filter_map(|claims| claims.iter().map(|(_, from)| from).find(|from| *from != address && self.leaves(from)))
            .collect();
        if several.len() < 2 {
            return false;
        }
        let names: Vec<String> = several.iter().map(|from| format!("`{from}`")).collect();
        let message = format!(
            "`{address}` claims {}, which all exist, so nothing is moved or destroyed (hint: keep only the former \
             address of the object to move; the others are destroyed once no {} names them)",
            names.join(" and "),
            Words::of(address).owner()
        );
        for from in several {
            self.keep_for(instance, from, message.clone());
        }
        self.block(address, Reason::MoveBlocked, message);
        true
    }

    /// Whether an object exists at an address that is no longer desired, and no interrupted move concerns it.
    pub fn leaves(&self, from: &Address) -> bool {
        self.record(from).is_some() && !is_desired(self.config, from) && !self.unfinished.contains_key(from)
    }

    /// Blocks what entries name if no instance can get the object: the key does not exist, or the entry does not say which
    /// one of several instances it means.
    pub fn check_targets(&mut self) {
        for (name, entries) in self.said {
            let resource = entries.resource;
            let family = self.config.families.get(*name);
            let is_known = family.is_none_or(|family| matches!(family.expansion, Expansion::Known(_)));
            if !resource.is_desired() || !is_known || !self.concerns(resource) {
                continue;
            }
            let (named, newcomers) = (self.named_by(resource), self.newcomers(resource));
            for entry in entries.in_doubt() {
                let why = match entry.is_whole() {
                    true => self.check_whole(resource, entry, &named, &newcomers),
                    false => self.check_exact(resource, entry),
                };
                // One of the new instances may be meant.
                if let Some(why) = why {
                    newcomers.iter().for_each(|new| self.block_first(new, &why));
                }
            }
        }
    }

    /// Why no instance can get the object of an entry. `None` if one can.
    fn misses_target(&self, resource: &Instance, entry: &MovedFrom) -> Option<String> {
        let name = &resource.address.stem;
        let first = self.config.instance_addresses(name).next();
        let (field, from) = (entry.field(), &entry.from);
        let is_repeated = resource.repetition.as_ref().is_some_and(|repetition| repetition.repeat.is_some());
        let is_self = from.stem == *name && !is_repeated;
        // The object of the name itself is that of its own Resource, if there is one.
        let is_taken = self.record(from).is_none() || is_desired(self.config, from);
        let is_name = from.key == InstanceKey::None && is_taken && !is_self;
        if is_name && !self.instances_of(from).is_empty() {
            let what = format!("{field} names `{from}`, which has several instances");
            return Some(format!("{what} (hint: name one of them, such as `{}`)", self.instances_of(from)[0]));
        }
        let to = entry.to.as_ref().map(|key| name.clone().instance(key.clone()));
        match to {
            Some(to) if !self.config.instances.contains_key(&to) => {
                let key = &to.key;
                let what = format!("{field} moves `{from}` to `{name}{key}`, which is not configured");
                let hint = match first.map(|address| &address.key) {
                    Some(InstanceKey::None) => "omit `to`".to_owned(),
                    Some(key) => format!("correct the key: `{name}` has `{key}`"),
                    None => format!("`{name}` has no instances"),
                };
                Some(format!("{what} (hint: {hint}; to destroy the object, remove the entry)"))
            }
            None if first.is_none_or(|first| !self.is_only_instance(first)) => Some(format!(
                "{field} names `{from}`, but not which instance of `{name}` gets the object (hint: use `spec.moved: [{{ \
                 from: '{from}', to: '[\"key\"]' }}]`; to destroy the object, remove the address)"
            )),
            _ => None,
        }
    }

    /// The instances without a configuration that have objects under a name.
    fn instances_of(&self, from: &Address) -> Vec<Address> {
        in_stem(self.recorded, &from.stem)
            .map(|(address, _)| address)
            .filter(|address| address.is_instance() && self.leaves(address))
            .cloned()
            .collect()
    }

    /// Keeps what an entry names that no instance can get. Returns why the new instances are not created: one of them may be
    /// meant.
    fn check_exact(&mut self, resource: &Instance, entry: &MovedFrom) -> Option<String> {
        let why = self.misses_target(resource, entry)?;
        let mut objects: Vec<Address> = Vec::new();
        let is_configured = is_desired(self.config, &entry.from);
        let exists = is_configured || self.record(&entry.from).is_some() || self.is_running(&entry.from);
        if exists {
            objects.push(entry.from.clone());
        }
        // A configured object stays with its Resource, so another one of the name may be meant.
        if !exists || is_configured {
            objects.extend(self.instances_of(&entry.from));
        }
        objects.retain(|from| !self.unfinished.contains_key(from));
        let mut is_kept = false;
        for from in objects {
            if is_desired(self.config, &from) {
                is_kept |= from.stem != resource.address.stem;
                self.keep_configured(&from, why.clone());
            } else {
                is_kept = true;
                self.keep_for(resource, &from, why.clone());
            }
        }
        is_kept.then_some(why)
    }

    /// The addresses that a Resource claims for certain instances, each with whether that instance has no object yet, or is
    /// said in the entry.
    fn named_by(&self, resource: &Instance) -> BTreeMap<Address, bool> {
        let name = &resource.address.stem;
        let mut named: BTreeMap<Address, bool> = BTreeMap::new();
        for address in self.config.instance_addresses(name) {
            let is_free = self.record(address).is_none();
            for (_, from) in self.named(address) {
                *named.entry(from).or_default() |= is_free;
            }
        }
        named.extend(self.said[name].exact.iter().map(|from| (Address::clone(from), true)));
        named
    }

    /// The instances of a Resource that would be created: they have no object, and claim none that exists.
    fn newcomers(&self, resource: &Instance) -> Vec<Address> {
        let claimants: BTreeSet<&Address> = self.claims.values().flatten().map(|claim| &claim.to).collect();
        self.config
            .instance_addresses(&resource.address.stem)
            .filter(|address| self.record(address).is_none() && !self.is_running(address))
            .filter(|address| !claimants.contains(address) && !self.found.blocked.contains_key(*address))
            .cloned()
            .collect()
    }

    /// Checks an entry that names a Resource as a whole. Objects without a corresponding instance are destroyed like those
    /// of removed keys, but only if others correspond, and no instance would be created: its key may be a new one for the
    /// same object. Returns why the newcomers are not created.
    fn check_whole(
        &mut self,
        resource: &Instance,
        entry: &MovedFrom,
        named: &BTreeMap<Address, bool>,
        newcomers: &[Address],
    ) -> Option<String> {
        let (name, old) = (&resource.address.stem, &entry.from.stem);
        if name != old && is_desired(self.config, &entry.from) && self.record(&entry.from).is_some() {
            self.keep_configured(&entry.from, claimed_by(resource, &entry.field()));
        }
        // The instances of its own name are configured, or their keys were removed.
        let leaving = in_stem(self.recorded, old)
            .map(|(address, _)| address)
            .filter(|address| (name != old || **address == entry.from) && self.leaves(address));
        let (matched, mut rest): (Vec<&Address>, Vec<&Address>) =
            leaving.partition(|from| named.get(*from) == Some(&true));
        let is_applied =
            matched.iter().any(|from| self.explicit_claims(from).any(|claim| claim.possible && claim.to.stem == *name));
        // `keep_claimed` keeps what an instance with another object names.
        rest.retain(|from| !named.contains_key(*from) && self.explicit_claims(from).next().is_none());
        // The name is also that of one object, which is meant itself.
        rest.retain(|from| !is_applied || !newcomers.is_empty() || **from == entry.from);
        let Some(first) = rest.first() else { return self.waits_for(resource, entry, named, newcomers) };
        if !matched.is_empty() && newcomers.is_empty() {
            let message = format!("it is kept until the other objects of `{old}` are moved to `{name}`");
            rest.iter().for_each(|from| self.block(from, Reason::MoveBlocked, message.clone()));
            return None;
        }
        let field = entry.field();
        let what = format!("{field} of `{name}` names `{old}`, but no instance of `{name}` corresponds to `{first}`");
        let way_out = match matched.is_empty() {
            true => format!("to destroy the objects of `{old}`, remove the entry"),
            false => "to destroy the object, keep its key until the others are moved".to_owned(),
        };
        let hint = match newcomers.first().or(self.config.instance_addresses(name).next()) {
            Some(to) => {
                let to = target(Some(to));
                format!("say which object is moved: `spec.moved: [{{ from: '{first}'{to} }}]`; {way_out}")
            }
            None => format!("give `{name}` an instance for it; {way_out}"),
        };
        let message = format!("{what}; nothing is moved, created or destroyed (hint: {hint})");
        for from in &rest {
            self.keep_for(resource, from, message.clone());
        }
        for from in matched {
            let Some(claims) = self.claims.get_mut(from) else { continue };
            for claim in claims.iter_mut().filter(|claim| claim.explicit && claim.to.stem == *name) {
                claim.possible = false;
                let held = ObjectBlock { reason: Reason::MoveBlocked, message: message.clone() };
                self.found.hold(from, &claim.to, held);
            }
        }
        Some(message)
    }

    fn explicit_claims(&self, from: &Address) -> impl Iterator<Item = &Claim> {
        self.claims.get(from).into_iter().flatten().filter(|claim| claim.explicit)
    }

    /// Why nothing is created while an object is still configured that a Resource names as a whole, and to which none of
    /// its instances corresponds: any of them may be meant.
    fn waits_for(
        &self,
        resource: &Instance,
        entry: &MovedFrom,
        named: &BTreeMap<Address, bool>,
        newcomers: &[Address],
    ) -> Option<String> {
        let (name, old, field) = (&resource.address.stem, &entry.from.stem, entry.field());
        let first = self
            .config
            .instance_addresses(old)
            .filter(|_| name != old)
            .find(|from| is_desired(self.config, from) && !named.contains_key(*from))?;
        let to = target(newcomers.first());
        Some(format!(
            "{field} names `{old}`, which is still configured, but no instance of `{name}` corresponds to `{first}`; \
             nothing is created (hint: say which object is moved: `spec.moved: [{{ from: '{first}'{to} }}]`; if `{old}` \
             is another object, remove the entry)"
        ))
    }

    /// Keeps the claimed objects.
    pub fn keep_claimed(&mut self) {
        let mut swaps: BTreeMap<Address, Vec<Address>> = BTreeMap::new();
        for name in self.said.keys() {
            let instances = self.config.instance_addresses(name);
            for address in instances.filter(|address| self.config.instances[*address].is_desired()) {
                for (_, from) in self.named(address) {
                    let is_there = self.record(&from).is_some_and(|record| record.moving_to.is_none());
                    if from != *address && is_there {
                        self.keep(address, &from, &mut swaps);
                    }
                }
            }
        }
        self.block_swaps(&swaps);
    }

    /// Keeps the objects under a name that a Resource names as a whole, if none of them is moved to it: the objects went
    /// to another Resource.
    pub fn keep_unmoved_families(&mut self) {
        for (name, entries) in self.said {
            if !entries.resource.is_desired() || !self.concerns(entries.resource) {
                continue;
            }
            for entry in entries.in_doubt().filter(|entry| entry.is_whole() && entry.from.stem != **name) {
                let (old, field) = (&entry.from.stem, entry.field());
                let message = format!(
                    "`{name}` claims this object, but no object of `{old}` is moved to `{name}` (hint: remove {field} of \
                     `{name}` to destroy the object)"
                );
                for from in self.instances_of(&entry.from) {
                    self.block_first(&from, &message);
                }
            }
        }
    }

    fn keep(&mut self, address: &Address, from: &Address, swaps: &mut BTreeMap<Address, Vec<Address>>) {
        let is_occupied = self.record(address).is_some();
        let field = self.said[&address.stem].field(from);
        if is_desired(self.config, from) {
            if is_occupied {
                swaps.entry(address.clone()).or_default().push(from.clone());
                let what = format!("{field} claims `{from}`, which is still configured, so nothing is moved");
                let warning = Diagnostic::warning(address, Reason::MoveBlocked, what);
                let hint = format!("remove {field} if `{from}` is another object");
                self.found.diagnostics.push(warning.because(format!("`{address}` has another object")).hint(hint));
            }
            let message = match from.stem == address.stem {
                true => format!("`{address}` claims this object (hint: remove its key to move it, or remove {field})"),
                false => claimed_by(self.said[&address.stem].resource, &field),
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

    /// How the object at an address makes room for another one, without losing an object that is claimed in turn: the last
    /// one of a chain of claims moves first.
    fn way_to_free(&self, address: &Address) -> String {
        let mut chain = vec![address];
        while let Some(next) = self.claimant(chain[chain.len() - 1]) {
            if chain.contains(&next) {
                return "move one of the objects that claim each other to a third name first".to_owned();
            }
            chain.push(next);
            if self.record(next).is_none() {
                break;
            }
        }
        let moves: Vec<String> = chain
            .windows(2)
            .rev()
            .map(|pair| format!("`purlin state mv {} {}`", pair[0].shell_word(), pair[1].shell_word()))
            .collect();
        let last = chain[chain.len() - 1];
        let rm = format!("`purlin state rm {}`", last.shell_word());
        match (moves.is_empty(), self.record(last).is_some()) {
            (true, _) => format!("run {rm} to move it there"),
            (false, true) => format!("run {rm}, then {}", moves.join(", then ")),
            (false, false) => {
                let owner = Words::of(address).owner();
                format!("run {} first, because other {owner}s claim these objects", moves.join(", then "))
            }
        }
    }

    /// The instance that claims an address as well.
    fn claimant(&self, address: &Address) -> Option<&Address> {
        let instances = self.said.keys().flat_map(|name| self.config.instance_addresses(name));
        instances
            .filter(|other| *other != address)
            .find(|other| self.named(other).iter().any(|(_, from)| from == address))
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
    pub fn block_moved_to_other_sources(&mut self) {
        let (config, recorded) = (self.config, self.recorded);
        let others = config.resources().filter(|resource| resource.only_recorded);
        let records = others.flat_map(|other| in_stem(recorded, &other.address.stem)).map(|(_, stored)| &stored.record);
        let came: BTreeMap<&Address, &Record> =
            records.flat_map(|record| record.moved_from.iter().map(move |from| (from, &**record))).collect();
        if came.is_empty() {
            return;
        }
        for (address, instance) in &config.instances {
            if !instance.is_desired() || instance.only_recorded || instance.import.is_some() {
                continue;
            }
            let Some(there) = came.get(address).filter(|_| self.record(address).is_none()) else { continue };
            let (to, source) = (&there.address, there.source.as_deref().unwrap_or("-"));
            let block = Words::of(address).source();
            let message = format!(
                "the object of this name was moved to `{to}`, whose {block} is in `{source}` (hint: remove this {block}; to \
                 create another object with this name, plan both sources in one command, with `-f` for each)"
            );
            self.block_first(address, &message);
        }
    }

    /// Whether a plan of this mode moves objects to a Resource, or its protection keeps them.
    pub fn concerns(&self, resource: &Instance) -> bool {
        let keeps = resource.prevent_destroy || resource.prevent_destroy_when.is_some() || resource.keeps_object();
        match self.options.mode {
            Mode::Normal => true,
            Mode::Destroy => keeps,
            Mode::RefreshOnly => false,
        }
    }
}

/// The end of an entry that moves an object to an instance.
fn target(new: Option<&Address>) -> String {
    match new {
        Some(Address { key: InstanceKey::None, .. }) | None => String::new(),
        Some(new) => format!(", to: '{}'", new.key),
    }
}

fn claimed_by(resource: &Instance, field: &str) -> String {
    let name = &resource.address.stem;
    let owner = Words::of(&resource.address).owner();
    format!("`{name}` claims this object (hint: remove its {owner} to move it, or remove {field} of `{name}`)")
}

impl Entries<'_> {
    /// How to correct the field that names an address.
    pub fn fix(&self, from: &Address) -> String {
        format!("correct {}, or remove it", self.field(from))
    }
}
