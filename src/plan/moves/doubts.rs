//! What annotations say that cannot be, or that is doubtful: instead of destroying what may have been meant, it is held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Held, LET_GO, Search, lives};
use crate::load::Instance;
use crate::model::suggest::is_near;
use crate::model::{Address, Diagnostic, Reason, of_name};

impl Search<'_> {
    /// Who has an object, and says that it was another one, which nobody wants: one of them is not what was meant. When the
    /// object came from a place that the annotation names, all that it names were names of this object: the
    /// annotation stays when it was followed, and what has an old name now has nothing to do with it.
    pub(super) fn keep_named(&mut self) {
        let named =
            |(_, instance): &(&Address, &Arc<Instance>)| !instance.moved_from.is_empty() && instance.is_wanted();
        let moves = std::mem::take(&mut self.found.moves);
        let arriving = moves.iter().filter(|one| !one.back);
        let arriving: BTreeMap<&Address, &Address> = arriving.map(|one| (&one.to, &one.from)).collect();
        let leaving: BTreeSet<&Address> = moves.iter().map(|one| &one.from).collect();
        for (address, instance) in self.config.instances.iter().filter(named) {
            let arrives = arriving.get(address).copied();
            let Some(own) = self.record(address).or_else(|| self.record(arrives?)) else { continue };
            let is_named = |old: &Address| instance.moved_from.iter().any(|named| named.name == old.name);
            if own.came_from.iter().chain(arrives).any(is_named) {
                continue;
            }
            for from in self.named(address, &instance.moved_from) {
                let leaves = self.record(&from).is_some_and(|record| record.moving_to.is_none());
                if leaves
                    && !leaving.contains(&from)
                    && !lives(self.config, &from)
                    && !self.found.held.contains_key(&from)
                {
                    let message = format!(
                        "`{address}` says that it was this object, and has one of its own: it stays until that is \
                         settled (hint: remove the annotation `purlin.dev/moved-from` to let it go, or run `purlin \
                         state rm {address}` to move it there)"
                    );
                    self.hold(&from, Reason::MoveBlocked, message);
                }
            }
        }
        self.found.moves = moves;
    }

    /// What was never recorded under the name that it is said to have had. That is what an annotation says wherever its
    /// manifest is applied for the first time, so nothing is said of it; but not when something of its type is about
    /// to go. If that has nearly the name, the annotation may be misspelt: then nothing is made and nothing destroyed.
    pub(super) fn doubt_names(&mut self) {
        if self.in_vain.is_empty() {
            return;
        }
        let mut doubts: Vec<(Address, String)> = Vec::new();
        let leaving = self.leaving();
        let came: BTreeSet<&Arc<str>> = self.found.moves.iter().map(|one| &one.from.name).collect();
        // Instances of a family name the same, and a family that goes has one name.
        let mut nearest: BTreeMap<(&str, &Arc<str>), Option<&Arc<str>>> = BTreeMap::new();
        for address in &self.in_vain {
            let Some(instance) = self.config.instances.get(address) else { continue };
            // What got other keys, or comes to a family that has objects, was not misnamed.
            let is_known = |name: &Arc<str>| {
                came.contains(name) || of_name(self.recorded, name).any(|(_, stored)| stored.record.has_objects())
            };
            if is_known(&address.name) || instance.moved_from.iter().any(|named| is_known(&named.name)) {
                continue;
            }
            let Some(leaving) = leaving.get(&*instance.type_name) else { continue };
            let why = |named| format!("`{address}` says that it was `{named}`, of which there is no record");
            let mut meant = None;
            for named in instance.moved_from.iter() {
                let near = nearest.entry((&instance.type_name, &named.name)).or_insert_with(|| {
                    let near = || leaving.iter().filter(|(name, _)| is_near(&named.name, name));
                    for from in near().flat_map(|(_, all)| all) {
                        let kept = format!(
                            "{}, and may mean this one: it stays until that is settled (hint: {LET_GO})",
                            why(named)
                        );
                        doubts.push(((*from).clone(), kept));
                    }
                    near().next().map(|(name, _)| *name)
                });
                meant = meant.or_else(|| near.map(|name| (named, &leaving[name])));
            }
            if let Some((named, all)) = meant {
                let from = all.iter().find(|from| from.key == address.key).unwrap_or(&all[0]);
                let hint = "correct the annotation `purlin.dev/moved-from`, or remove it to make a new object";
                doubts.push((address.clone(), format!("{}; did you mean `{from}`? (hint: {hint})", why(named))));
            } else if let Some(first) = leaving.values().flatten().next() {
                let names: Vec<String> = instance.moved_from.iter().map(|named| format!("`{named}`")).collect();
                let what = format!("there is no record of {}, so nothing is moved here", names.join(", "));
                let others = format!("`{first}`, of the same type, is not wanted any more");
                let hint = "correct the annotation `purlin.dev/moved-from` when that one was meant";
                let warning = Diagnostic::warning(address, Reason::MoveBlocked, what).because(others).hint(hint);
                self.found.diagnostics.push(warning);
            }
        }
        for (address, message) in doubts {
            self.found.held.entry(address).or_insert(Held { reason: Reason::MoveBlocked, message });
        }
    }
}

impl<'a> Search<'a> {
    /// What is about to go, by its type and by its name.
    fn leaving(&self) -> BTreeMap<&'a str, BTreeMap<&'a Arc<str>, Vec<&'a Address>>> {
        let moving: BTreeSet<&Address> = self.found.moves.iter().flat_map(|one| [&one.from, &one.to]).collect();
        let goes = |x: &Address| !lives(self.config, x) && !self.found.held.contains_key(x) && !moving.contains(x);
        let mut leaving: BTreeMap<&'a str, BTreeMap<&'a Arc<str>, Vec<&'a Address>>> = BTreeMap::new();
        for (address, stored) in self.recorded.iter().filter(|(x, stored)| stored.record.has_objects() && goes(x)) {
            let of_type = leaving.entry(&*stored.record.type_name).or_default();
            of_type.entry(&address.name).or_default().push(address);
        }
        leaving
    }
}
