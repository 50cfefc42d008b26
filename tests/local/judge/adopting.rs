//! Adopting: people describe what exists already, and now and then what is somebody else's.

use std::collections::BTreeMap;

use super::history::History;
use super::witness::known_ids;

impl History {
    /// Some of the new Resources are to adopt something: mostly what nobody has, sometimes what has an owner.
    pub(super) fn describe_what_exists(&mut self) {
        let records = self.records();
        let is_new = |name: &str| !records.keys().any(|x| *x.name == *name);
        let names: Vec<String> = self.wish.wants.keys().filter(|name| is_new(name)).cloned().collect();
        for name in names {
            if !self.dice.chance(self.trouble.imports) {
                continue;
            }
            let things = self.world.things();
            let owned = self.dice.pick(&things).filter(|_| self.dice.chance(25)).map(|thing| thing.id.clone());
            let id = owned.unwrap_or_else(|| self.world.put(self.dice.below(2), self.dice.below(2)));
            self.note(format!("{name} is to adopt {id}"));
            if let Some(want) = self.wish.wants.get_mut(&name) {
                want.import = Some(id);
            }
        }
    }

    /// What a person does in the end: nobody says that he was what has a record beside his own, or none.
    pub(super) fn say_what_was_followed(&mut self) {
        let records = self.records();
        let is_recorded = |name: &str| records.iter().any(|(x, one)| *x.name == *name && one.record.has_objects());
        for (name, want) in &mut self.wish.wants {
            want.moved_from.retain(|old| is_recorded(old) && !is_recorded(name));
        }
    }

    /// What a person does in the end: nobody is to adopt what does not exist, or what has an owner.
    pub(super) fn describe_what_is_free(&mut self) {
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for stored in self.records().values() {
            let ids = known_ids(&stored.record).into_iter();
            owners.extend(ids.map(|id| (id, stored.record.address.name.to_string())));
        }
        for (name, want) in &mut self.wish.wants {
            let exists = |id: &String| self.world.thing(id).is_some();
            want.import = want.import.take().filter(exists);
            let free = |id: &String| owners.entry(id.clone()).or_insert_with(|| name.clone()) == name;
            want.import = want.import.take().filter(free);
        }
    }
}
