//! Resources with former addresses, which may contain typos.
//!
//! A plan that destroys an object of a similar name holds both (`plan::moves`), but it sees only the names that are
//! planned together. So names that may be a rename are planned together.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Index;
use super::links::Links;
use engine::load::Instance;
use model::suggest::is_similar;

type Names = BTreeSet<Arc<str>>;

#[derive(Clone, Debug, Default)]
pub(super) struct RenameCandidates {
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
    pub(super) fn update_renames(&mut self, name: &Arc<str>) {
        let entry = self.entries.get(name).map(|entry| &entry.instance);
        let is_recorded = self.addresses(name).next().is_some();
        let is_wanted = entry.is_some_and(|instance| !instance.deleting);
        let says_so = entry.is_some_and(|instance| !instance.moved_from.is_empty());
        let searches = is_wanted && says_so && !is_recorded;
        let leaves = is_recorded && !is_wanted;
        let claims = entry.filter(|_| is_wanted).into_iter().flat_map(|instance| instance.moved_from.iter());
        let claimed = claims.map(|moved| moved.from.name.clone()).collect();
        let update = |all: &mut Names, is_one| if is_one { all.insert(name.clone()) } else { all.remove(name) };
        update(&mut self.renames.renamed, searches);
        update(&mut self.renames.removed, leaves);
        self.renames.claims.set(name, claimed);
    }

    /// The UIDs of the Resources of which this name is a former one.
    pub(super) fn claimants(&self, name: &str) -> impl Iterator<Item = &Arc<str>> + use<'_> {
        let entries = self.renames.claims.sources(name).filter_map(|claimant| self.entries.get(claimant));
        entries.map(|entry| &entry.instance.uid)
    }

    /// The removed names that are similar to a former one of a Resource without a record, if no record has one of its
    /// exact names.
    pub(super) fn rename_candidates(&self, instance: &Instance) -> Vec<Arc<str>> {
        let named = || instance.moved_from.iter().map(|moved| &moved.from.name);
        let is_recorded = |name: &Arc<str>| self.addresses(name).next().is_some();
        // After a restart, nearly all names count as removed until their Resources are listed.
        let may_search = !instance.moved_from.is_empty() && !is_recorded(&instance.address.name);
        if self.renames.removed.is_empty() || !may_search || named().any(is_recorded) {
            return Vec::new();
        }
        let near = |removed: &&Arc<str>| named().any(|name| is_similar(name, removed));
        self.renames.removed.iter().filter(near).cloned().collect()
    }

    /// The names that must be planned together with this one because of a possible rename.
    fn joined_by_rename(&self, name: &Arc<str>) -> Vec<Arc<str>> {
        let searching = |name: &Arc<str>| {
            let is_one = self.renames.renamed.contains(name);
            self.entries.get(name).filter(|_| is_one).map(|entry| &entry.instance)
        };
        if let Some(instance) = searching(name) {
            return self.rename_candidates(instance);
        }
        // If a Resource names it exactly, no other Resource has misspelled it.
        let names_it = |other: &Arc<str>| {
            searching(other).is_some_and(|instance| instance.moved_from.iter().any(|moved| moved.from.name == *name))
        };
        if !self.renames.removed.contains(name) || self.links.neighbours(name).any(names_it) {
            return Vec::new();
        }
        let means_it = |other: &&Arc<str>| {
            searching(other).is_some_and(|instance| self.rename_candidates(instance).contains(name))
        };
        self.renames.renamed.iter().filter(means_it).cloned().collect()
    }

    /// Adds the names that must be planned together because of possible renames.
    pub(super) fn with_rename_candidates(&self, mut names: Names) -> Names {
        if self.renames.renamed.is_empty() || self.renames.removed.is_empty() {
            return names;
        }
        loop {
            let all: Names = names.iter().flat_map(|name| self.joined_by_rename(name)).collect();
            if all.is_subset(&names) {
                return names;
            }
            names = self.links.component(names.union(&all).cloned());
        }
    }
}
