//! Misspelled former addresses: blocks the objects that they may mean instead of destroying these.

use std::collections::{BTreeMap, BTreeSet};

use super::{ObjectBlock, Search, is_desired};
use crate::load::MovedFrom;
use model::suggest::is_similar;
use model::{Address, Diagnostic, Reason, Recorded, Stem, in_stem};

impl Search<'_> {
    /// Checks former addresses without a record. This is normal when a manifest is applied for the first time, unless an
    /// object of the same type is about to be destroyed. If that object has a similar name, the address may be
    /// misspelled, and both objects are blocked. Otherwise this only warns.
    pub fn check_names(&mut self) {
        if self.without_record.is_empty() {
            return;
        }
        let mut doubts: Vec<(Address, String)> = Vec::new();
        let to_destroy = self.to_destroy();
        let former = self.recorded.values().flat_map(|stored| &stored.record.moved_from);
        let known = KnownNames { recorded: self.recorded, came: former.map(|old| &old.stem).collect() };
        // All instances of a family have the same name and former names.
        let mut nearest = Nearest::new();
        for address in &self.without_record {
            let (Some(instance), Some(entries)) = (self.config.instances.get(address), self.said.get(&address.stem))
            else {
                continue;
            };
            let Some(to_destroy) = to_destroy.get(&*instance.type_name) else { continue };
            let named: Vec<&Address> = entries.of(&address.key).map(|entry| &entry.from).collect();
            let exact = entries.of(&address.key).filter(|entry| !entry.is_whole()).map(|entry| &entry.from);
            let meant = exact.into_iter().find_map(|from| Some((from, known.near(address, from, to_destroy)?)));
            if let Some((named, near)) = meant {
                doubts.extend(doubt_key(address, named, near, &entries.fix(named)));
                continue;
            }
            let named: Vec<&Address> = named.into_iter().filter(|named| named.stem != address.stem).collect();
            if named.is_empty() || named.iter().any(|named| known.contains(&named.stem)) {
                continue;
            }
            // If the family has its objects already, an entry for all of it has nothing to do with a new key.
            let is_joined = known.contains(&address.stem) && entries.of(&address.key).all(MovedFrom::is_whole);
            let mut meant = None;
            for named in named.iter().copied() {
                let near = nearest.entry((&address.stem, &named.stem)).or_insert_with(|| {
                    // A removed key of the Resource itself is not meant.
                    let others = to_destroy.iter().filter(|(name, _)| ***name != address.stem);
                    let near: Vec<_> = others.filter(|(name, _)| is_similar(named.stem.text(), name.text())).collect();
                    for from in near.iter().flat_map(|(_, objects)| *objects) {
                        doubts.push(((*from).clone(), kept(address, named, &entries.fix(named))));
                    }
                    near.first().map(|(name, _)| **name)
                });
                meant = meant.or_else(|| near.map(|name| (named, &to_destroy[name])));
            }
            if let Some((named, objects)) = meant {
                let from = objects.iter().find(|from| from.key == address.key).unwrap_or(&objects[0]);
                doubts.push((address.clone(), question(address, named, from, &entries.fix(named))));
            } else if let Some(first) = to_destroy.values().flatten().next().filter(|_| !is_joined) {
                let field = entries.field(named[0]);
                self.found.diagnostics.push(nothing_is_moved(address, &named, first, &field));
            }
        }
        for (address, message) in doubts {
            self.found.blocked.entry(address).or_insert(ObjectBlock { reason: Reason::MoveBlocked, message });
        }
    }
}

/// The objects of one type that are about to be destroyed, by name.
type Leaving<'a> = BTreeMap<&'a Stem, Vec<&'a Address>>;

/// The name that one of a Resource may mean, by the name of the Resource and the one that it names.
type Nearest<'a> = BTreeMap<(&'a Stem, &'a Stem), Option<&'a Stem>>;

/// The names that are not misspelled: those of objects, and those that objects came from.
struct KnownNames<'a> {
    recorded: &'a Recorded,
    /// The names that objects came from.
    came: BTreeSet<&'a Stem>,
}

impl KnownNames<'_> {
    fn contains(&self, name: &Stem) -> bool {
        self.came.contains(name) || in_stem(self.recorded, name).any(|(_, stored)| stored.record.has_objects())
    }

    /// The objects of which one may be meant: of the family that is named, or of the Resource itself, by a misspelled name.
    fn near<'b, 'a>(
        &self,
        address: &Address,
        from: &Address,
        to_destroy: &'b Leaving<'a>,
    ) -> Option<&'b Vec<&'a Address>> {
        if let Some(near) = to_destroy.get(&from.stem)
            && from.is_instance()
            && !near.contains(&from)
        {
            // The named instance does not exist.
            return Some(near);
        }
        let near = to_destroy.get(&address.stem)?;
        let is_meant =
            is_similar(from.stem.text(), address.stem.text()) || near.iter().any(|near| near.key == from.key);
        (from.stem != address.stem && is_meant && !self.contains(&from.stem)).then_some(near)
    }
}

/// Blocks an instance and the objects of which it may mean one, with the reasons.
fn doubt_key(address: &Address, named: &Address, near: &[&Address], fix: &str) -> Vec<(Address, String)> {
    let meant = near.iter().find(|meant| meant.key == named.key).unwrap_or(&near[0]);
    let objects = near.iter().map(|from| ((*from).clone(), kept(address, named, fix)));
    objects.chain([(address.clone(), question(address, named, meant, fix))]).collect()
}

/// Why an object is kept that an instance may mean.
fn kept(address: &Address, named: &Address, fix: &str) -> String {
    format!(
        "`{address}` claims `{named}`, which has no record, and may mean this object; it is kept until this is resolved \
         (hint: {fix})"
    )
}

/// Why an instance is not created that may mean an object.
fn question(address: &Address, named: &Address, meant: &Address, fix: &str) -> String {
    format!(
        "`{address}` claims `{named}`, which has no record; did you mean `{meant}`? (hint: {fix} to create a new object)"
    )
}

/// The warning that nothing is moved, although an object of the same type is about to be destroyed.
fn nothing_is_moved(address: &Address, named: &[&Address], first: &Address, field: &str) -> Diagnostic {
    let names: Vec<String> = named.iter().map(|named| format!("`{named}`")).collect();
    let what = format!("no record of {} exists, so nothing is moved here", names.join(", "));
    let others = format!("`{first}`, which has the same type, is no longer configured");
    let hint = format!("correct {field} if you meant that object");
    Diagnostic::warning(address, Reason::MoveBlocked, what).because(others).hint(hint)
}

impl<'a> Search<'a> {
    /// The objects about to be destroyed, by type and name.
    fn to_destroy(&self) -> BTreeMap<&'a str, Leaving<'a>> {
        let mut leaving: BTreeMap<&'a str, Leaving<'a>> = BTreeMap::new();
        for (address, stored) in self.recorded {
            let stays = is_desired(self.config, address) || self.found.blocked.contains_key(address);
            if stored.record.has_objects() && !stays {
                let of_type = leaving.entry(&*stored.record.type_name).or_default();
                of_type.entry(&address.stem).or_default().push(address);
            }
        }
        leaving
    }
}
