//! Ambiguous or misspelled annotations: blocks the objects that they may refer to instead of destroying these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{FIX_ANNOTATION, ObjectBlock, Search, is_desired};
use crate::load::Instance;
use crate::model::suggest::is_similar;
use crate::model::{Address, Diagnostic, Reason, in_family};

impl Search<'_> {
    /// Blocks the objects that are no longer desired and are claimed by an instance that already has an object. If that
    /// object came from an address in the annotation, the annotation was already applied, and objects that now exist at
    /// these addresses are unrelated.
    pub(super) fn block_claimed(&mut self) {
        let named =
            |(_, instance): &(&Address, &Arc<Instance>)| !instance.moved_from.is_empty() && instance.is_desired();
        let moves = std::mem::take(&mut self.found.moves);
        let arriving = moves.iter().filter(|one| !one.reverted);
        let arriving: BTreeMap<&Address, &Address> = arriving.map(|one| (&one.to, &one.from)).collect();
        let sources: BTreeSet<&Address> = moves.iter().map(|one| &one.from).collect();
        for (address, instance) in self.config.instances.iter().filter(named) {
            let arrives = arriving.get(address).copied();
            let Some(own) = self.record(address).or_else(|| self.record(arrives?)) else { continue };
            let is_named = |old: &Address| instance.moved_from.iter().any(|named| named.name == old.name);
            if own.moved_from.iter().chain(arrives).any(is_named) {
                continue;
            }
            for from in self.named(address, &instance.moved_from) {
                let leaves = self.record(&from).is_some_and(|record| record.moving_to.is_none());
                if leaves
                    && !sources.contains(&from)
                    && !is_desired(self.config, &from)
                    && !self.found.blocked.contains_key(&from)
                {
                    let message = format!(
                        "`{address}` claims this object, but already has another one; the object is kept until this is \
                         resolved (hint: remove the annotation `purlin.dev/moved-from` to destroy it, or run `purlin \
                         state rm {address}` to move it there)"
                    );
                    self.block(&from, Reason::MoveBlocked, message);
                }
            }
        }
        self.found.moves = moves;
    }

    /// Checks annotations that name no record. This is normal when a manifest is applied for the first time, unless an
    /// object of the same type is about to be destroyed. If that object has a similar name, the annotation may be
    /// misspelled, and both objects are blocked. Otherwise this only warns.
    pub(super) fn check_names(&mut self) {
        if self.without_record.is_empty() {
            return;
        }
        let mut doubts: Vec<(Address, String)> = Vec::new();
        let to_destroy = self.to_destroy();
        let came: BTreeSet<&Arc<str>> = self.found.moves.iter().map(|one| &one.from.name).collect();
        // All instances of a family have the same name and annotation.
        let mut nearest: BTreeMap<(&str, &Arc<str>), Option<&Arc<str>>> = BTreeMap::new();
        for address in &self.without_record {
            let Some(instance) = self.config.instances.get(address) else { continue };
            // A Resource with changed keys, or one that joins a family with objects, is not misspelled.
            let is_known = |name: &Arc<str>| {
                came.contains(name) || in_family(self.recorded, name).any(|(_, stored)| stored.record.has_objects())
            };
            if is_known(&address.name) || instance.moved_from.iter().any(|named| is_known(&named.name)) {
                continue;
            }
            let Some(to_destroy) = to_destroy.get(&*instance.type_name) else { continue };
            let why = |named| format!("`{address}` claims `{named}`, which has no record");
            let mut meant = None;
            for named in instance.moved_from.iter() {
                let near = nearest.entry((&instance.type_name, &named.name)).or_insert_with(|| {
                    let near = || to_destroy.iter().filter(|(name, _)| is_similar(&named.name, name));
                    for from in near().flat_map(|(_, all)| all) {
                        let kept = format!(
                            "{}, and may mean this object; it is kept until this is resolved (hint: {FIX_ANNOTATION})",
                            why(named)
                        );
                        doubts.push(((*from).clone(), kept));
                    }
                    near().next().map(|(name, _)| *name)
                });
                meant = meant.or_else(|| near.map(|name| (named, &to_destroy[name])));
            }
            if let Some((named, all)) = meant {
                let from = all.iter().find(|from| from.key == address.key).unwrap_or(&all[0]);
                let hint = "correct the annotation `purlin.dev/moved-from`, or remove it to create a new object";
                doubts.push((address.clone(), format!("{}; did you mean `{from}`? (hint: {hint})", why(named))));
            } else if let Some(first) = to_destroy.values().flatten().next() {
                let names: Vec<String> = instance.moved_from.iter().map(|named| format!("`{named}`")).collect();
                let what = format!("no record of {} exists, so nothing is moved here", names.join(", "));
                let others = format!("`{first}`, which has the same type, is no longer configured");
                let hint = "correct the annotation `purlin.dev/moved-from` if you meant that object";
                let warning = Diagnostic::warning(address, Reason::MoveBlocked, what).because(others).hint(hint);
                self.found.diagnostics.push(warning);
            }
        }
        for (address, message) in doubts {
            self.found.blocked.entry(address).or_insert(ObjectBlock { reason: Reason::MoveBlocked, message });
        }
    }
}

impl<'a> Search<'a> {
    /// The objects about to be destroyed, by type and name.
    fn to_destroy(&self) -> BTreeMap<&'a str, BTreeMap<&'a Arc<str>, Vec<&'a Address>>> {
        let moving: BTreeSet<&Address> = self.found.moves.iter().flat_map(|one| [&one.from, &one.to]).collect();
        let goes =
            |x: &Address| !is_desired(self.config, x) && !self.found.blocked.contains_key(x) && !moving.contains(x);
        let mut leaving: BTreeMap<&'a str, BTreeMap<&'a Arc<str>, Vec<&'a Address>>> = BTreeMap::new();
        for (address, stored) in self.recorded.iter().filter(|(x, stored)| stored.record.has_objects() && goes(x)) {
            let of_type = leaving.entry(&*stored.record.type_name).or_default();
            of_type.entry(&address.name).or_default().push(address);
        }
        leaving
    }
}
