//! Resources with former addresses, which may contain typos.
//!
//! A plan that destroys an object of a similar name holds both (`plan::moves`), but it sees only the names that are
//! planned together. So names that may be a rename are planned together.

use std::collections::BTreeSet;

use super::Index;
use super::links::Links;
use engine::load::Instance;
use model::{Name, Uid, suggest::is_similar};

type Names = BTreeSet<Name>;

#[derive(Clone, Debug, Default)]
pub struct RenameCandidates {
    /// Resources with former addresses that have no record.
    renamed: Names,
    /// Names with a record that are no longer desired.
    removed: Names,
    /// The names of the former addresses, for each Resource that is not being deleted. Unlike the sets above, it does not depend
    /// on records, so no step changes it.
    claims: Links,
}

impl Index {
    /// Updates the sets after any change of a name.
    pub fn update_renames(&mut self, name: &Name) {
        let entry = self.entries.get(name).map(|entry| &entry.instance);
        let is_recorded = self.is_recorded(name);
        let is_wanted = entry.is_some_and(|instance| !instance.deleting);
        let says_so = entry.is_some_and(|instance| !instance.moved_from.is_empty());
        let searches = is_wanted && says_so && !is_recorded;
        let leaves = is_recorded && !is_wanted;
        let claims = entry.filter(|_| is_wanted).into_iter().flat_map(|instance| instance.moved_from.iter());
        let claimed = claims.map(|moved| moved.from.name().clone()).collect();
        update(&mut self.renames.renamed, name, searches);
        update(&mut self.renames.removed, name, leaves);
        self.renames.claims.set(name, claimed);
    }

    /// The UIDs of the Resources of which this name is a former one.
    pub fn claimants(&self, name: &str) -> impl Iterator<Item = &Uid> + use<'_> {
        let entries = self.renames.claims.sources(name).filter_map(|claimant| self.entries.get(claimant));
        entries.map(|entry| &entry.instance.uid)
    }

    /// The removed names that are similar to a former one of a Resource without a record, if no record has one of its
    /// exact names.
    pub fn rename_candidates(&self, instance: &Instance) -> Vec<Name> {
        let former = instance.moved_from.iter().map(|moved| moved.from.name());
        // After a restart, nearly all names count as removed until their Resources are listed.
        let may_search = !instance.moved_from.is_empty() && !self.is_recorded(instance.address.name());
        if self.renames.removed.is_empty() || !may_search || former.clone().any(|name| self.is_recorded(name)) {
            return Vec::new();
        }
        let removed = self.renames.removed.iter();
        removed.filter(|removed| former.clone().any(|name| is_similar(name, removed))).cloned().collect()
    }

    /// The names that must be planned together with this one because of a possible rename.
    fn joined_by_rename(&self, name: &Name) -> Vec<Name> {
        if let Some(instance) = self.renamed(name) {
            return self.rename_candidates(instance);
        }
        // If a Resource names it exactly, no other Resource has misspelled it.
        if !self.renames.removed.contains(name) || self.is_former_name(name) {
            return Vec::new();
        }
        let renamed = self.renames.renamed.iter().filter(|renamed| {
            self.renamed(renamed).is_some_and(|instance| self.rename_candidates(instance).contains(name))
        });
        renamed.cloned().collect()
    }

    /// The Resource of this name, if it has former addresses and no record.
    fn renamed(&self, name: &Name) -> Option<&Instance> {
        let entry = self.entries.get(name).filter(|_| self.renames.renamed.contains(name))?;
        Some(&entry.instance)
    }

    /// Whether a Resource without a record has an address of this name as a former one.
    fn is_former_name(&self, name: &Name) -> bool {
        let neighbours = self.links.neighbours(name).filter_map(|neighbour| self.renamed(neighbour));
        neighbours.flat_map(|instance| instance.moved_from.iter()).any(|moved| moved.from.name() == name)
    }

    /// Adds the names that must be planned together because of possible renames.
    pub fn with_rename_candidates(&self, mut names: Names) -> Names {
        if self.renames.renamed.is_empty() || self.renames.removed.is_empty() {
            return names;
        }
        loop {
            let joined: Names = names.iter().flat_map(|name| self.joined_by_rename(name)).collect();
            if joined.is_subset(&names) {
                return names;
            }
            names = self.links.component(names.union(&joined).cloned());
        }
    }
}

fn update(names: &mut Names, name: &Name, is_member: bool) {
    if is_member {
        names.insert(name.clone());
    } else {
        names.remove(name);
    }
}
