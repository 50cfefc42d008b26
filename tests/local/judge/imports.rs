//! Adoption: users import existing objects, and sometimes objects that another Resource manages.

use std::collections::BTreeMap;

use super::history::History;
use super::witness::known_ids;

impl History {
    /// Adds imports to some of the new Resources: mostly of unmanaged objects, sometimes of managed ones.
    pub(super) fn add_imports(&mut self) {
        let records = self.records();
        let is_new = |name: &str| !records.keys().any(|x| **x.name() == *name);
        let names: Vec<String> = self.desired.resources.keys().filter(|name| is_new(name)).cloned().collect();
        for name in names {
            if !self.dice.chance(self.fault_rates.imports) {
                continue;
            }
            let things = self.driver.objects();
            let owned = self.dice.pick(&things).filter(|_| self.dice.chance(25)).map(|thing| thing.id.clone());
            let id = owned.unwrap_or_else(|| self.driver.put(self.dice.below(2), self.dice.below(2)));
            self.note(format!("{name} imports {id}"));
            if let Some(want) = self.desired.resources.get_mut(&name) {
                want.import = Some(id);
            }
        }
    }

    /// At the end of a history, removes annotations of moves that are complete or impossible.
    pub(super) fn drop_completed_moves(&mut self) {
        let records = self.records();
        let is_recorded = |name: &str| records.iter().any(|(x, one)| **x.name() == *name && one.record.has_objects());
        for (name, want) in &mut self.desired.resources {
            want.moved_from.retain(|old| is_recorded(old) && !is_recorded(name));
        }
    }

    /// At the end of a history, removes imports of objects that do not exist or have another owner.
    pub(super) fn drop_conflicting_imports(&mut self) {
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for stored in self.records().values() {
            let ids = known_ids(&stored.record).into_iter();
            owners.extend(ids.map(|id| (id, stored.record.address.name().to_string())));
        }
        for (name, want) in &mut self.desired.resources {
            let exists = |id: &String| self.driver.object(id).is_some();
            want.import = want.import.take().filter(exists);
            let free = |id: &String| owners.entry(id.clone()).or_insert_with(|| name.clone()) == name;
            want.import = want.import.take().filter(free);
        }
    }
}
