//! Misspelled former addresses: blocks the objects that they may mean instead of destroying these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ObjectBlock, Search, is_desired};
use model::suggest::is_similar;
use model::{Address, Diagnostic, Reason, in_family};

impl Search<'_> {
    /// Checks former addresses without a record. This is normal when a manifest is applied for the first time, unless an
    /// object of the same type is about to be destroyed. If that object has a similar name, the address may be
    /// misspelled, and both objects are blocked. Otherwise this only warns.
    pub(super) fn check_names(&mut self) {
        if self.without_record.is_empty() {
            return;
        }
        let mut doubts: Vec<(Address, String)> = Vec::new();
        let to_destroy = self.to_destroy();
        let former = self.recorded.values().flat_map(|stored| &stored.record.moved_from);
        let came: BTreeSet<&Arc<str>> = former.map(|old| &old.name).collect();
        // All instances of a family have the same name and former names.
        let mut nearest: BTreeMap<(&str, &Arc<str>), Option<&Arc<str>>> = BTreeMap::new();
        for address in &self.without_record {
            let (Some(instance), Some(entries)) = (self.config.instances.get(address), self.said.get(&address.name))
            else {
                continue;
            };
            let Some(to_destroy) = to_destroy.get(&*instance.type_name) else { continue };
            let named: Vec<&Address> = entries.of(&address.key).map(|entry| &entry.from).collect();
            if let Some((named, near)) =
                named.iter().find_map(|from| Some((*from, Self::other_keys_of(from, to_destroy)?)))
            {
                let fix = entries.fix(named);
                for from in near {
                    let kept = format!(
                        "`{address}` claims `{named}`, which has no record, and may mean this object; it is kept until \
                         this is resolved (hint: {fix})"
                    );
                    doubts.push(((*from).clone(), kept));
                }
                let what = format!("`{address}` claims `{named}`, which has no record; did you mean `{}`?", near[0]);
                doubts.push((address.clone(), format!("{what} (hint: {fix} to create a new object)")));
                continue;
            }
            // A Resource with changed keys, or one that joins a family with objects, is not misspelled.
            let is_known = |name: &Arc<str>| {
                came.contains(name) || in_family(self.recorded, name).any(|(_, stored)| stored.record.has_objects())
            };
            let named: Vec<&Address> = named.into_iter().filter(|named| named.name != address.name).collect();
            if named.is_empty() || is_known(&address.name) || named.iter().any(|named| is_known(&named.name)) {
                continue;
            }
            let why = |named: &Address| format!("`{address}` claims `{named}`, which has no record");
            let mut meant = None;
            for named in named.iter().copied() {
                let near = nearest.entry((&instance.type_name, &named.name)).or_insert_with(|| {
                    let near = || to_destroy.iter().filter(|(name, _)| is_similar(&named.name, name));
                    for from in near().flat_map(|(_, all)| all) {
                        let kept = format!(
                            "{}, and may mean this object; it is kept until this is resolved (hint: {})",
                            why(named),
                            entries.fix(named)
                        );
                        doubts.push(((*from).clone(), kept));
                    }
                    near().next().map(|(name, _)| *name)
                });
                meant = meant.or_else(|| near.map(|name| (named, &to_destroy[name])));
            }
            if let Some((named, all)) = meant {
                let from = all.iter().find(|from| from.key == address.key).unwrap_or(&all[0]);
                let hint = format!("{} to create a new object", entries.fix(named));
                doubts.push((address.clone(), format!("{}; did you mean `{from}`? (hint: {hint})", why(named))));
            } else if let Some(first) = to_destroy.values().flatten().next() {
                let names: Vec<String> = named.iter().map(|named| format!("`{named}`")).collect();
                let what = format!("no record of {} exists, so nothing is moved here", names.join(", "));
                let others = format!("`{first}`, which has the same type, is no longer configured");
                let hint = format!("correct {} if you meant that object", entries.field(named[0]));
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
    /// The objects that are about to be destroyed in the family of a named instance, which does not exist. One of them may
    /// be meant.
    fn other_keys_of<'b>(
        named: &Address,
        to_destroy: &'b BTreeMap<&'a Arc<str>, Vec<&'a Address>>,
    ) -> Option<&'b Vec<&'a Address>> {
        to_destroy.get(&named.name).filter(|all| named.is_instance() && !all.contains(&named))
    }

    /// The objects about to be destroyed, by type and name.
    fn to_destroy(&self) -> BTreeMap<&'a str, BTreeMap<&'a Arc<str>, Vec<&'a Address>>> {
        let goes = |x: &Address| !is_desired(self.config, x) && !self.found.blocked.contains_key(x);
        let mut leaving: BTreeMap<&'a str, BTreeMap<&'a Arc<str>, Vec<&'a Address>>> = BTreeMap::new();
        for (address, stored) in self.recorded.iter().filter(|(x, stored)| stored.record.has_objects() && goes(x)) {
            let of_type = leaving.entry(&*stored.record.type_name).or_default();
            of_type.entry(&address.name).or_default().push(address);
        }
        leaving
    }
}
