//! Resources that say what they were, and may have misspelt it.
//!
//! Planning holds both when something of nearly that name is about to go (`plan::moves`), and it sees only what is planned
//! together. So they belong together as if the name were right.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Index;
use crate::load::Instance;
use crate::model::suggest::is_near;

type Names = BTreeSet<Arc<str>>;

/// Both are empty most of the time.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// Resources that say what they were, and of which nothing is recorded.
    searching: Names,
    /// What is recorded and not wanted any more.
    leaving: Names,
}

impl Index {
    /// To be called after anything has changed about a name.
    pub(super) fn sort_out(&mut self, name: &Arc<str>) {
        let entry = self.entries.get(name).map(|entry| &entry.instance);
        let is_recorded = self.addresses(name).next().is_some();
        let is_wanted = entry.is_some_and(|instance| !instance.deleting);
        let says_so = entry.is_some_and(|instance| !instance.moved_from.is_empty());
        let searches = is_wanted && says_so && !is_recorded;
        let leaves = is_recorded && !is_wanted;
        let keep = |all: &mut Names, is_one| if is_one { all.insert(name.clone()) } else { all.remove(name) };
        keep(&mut self.former.searching, searches);
        keep(&mut self.former.leaving, leaves);
    }

    /// What a Resource may mean by names that nothing has: what is about to go and has nearly such a name.
    pub(super) fn meant(&self, instance: &Instance) -> Vec<Arc<str>> {
        let named = || instance.moved_from.iter().map(|address| &address.name);
        if self.former.leaving.is_empty() || named().any(|name| self.addresses(name).next().is_some()) {
            return Vec::new();
        }
        let near = |leaving: &&Arc<str>| named().any(|name| is_near(name, leaving));
        self.former.leaving.iter().filter(near).cloned().collect()
    }

    /// The names that have to be planned together with one because of a doubt.
    fn in_doubt(&self, name: &Arc<str>) -> Vec<Arc<str>> {
        let searching = |name: &Arc<str>| {
            let is_one = self.former.searching.contains(name);
            self.entries.get(name).filter(|_| is_one).map(|entry| &entry.instance)
        };
        if let Some(instance) = searching(name) {
            return self.meant(instance);
        }
        // Whom somebody names in so many words, nobody else has misspelt.
        let names_it = |other: &Arc<str>| {
            searching(other).is_some_and(|instance| instance.moved_from.iter().any(|named| named.name == *name))
        };
        if !self.former.leaving.contains(name) || self.links.neighbours(name).any(names_it) {
            return Vec::new();
        }
        let means_it = |other: &&Arc<str>| searching(other).is_some_and(|instance| self.meant(instance).contains(name));
        self.former.searching.iter().filter(means_it).cloned().collect()
    }

    /// Adds what has to be planned together with names that are connected.
    pub(super) fn with_doubts(&self, mut names: Names) -> Names {
        if self.former.searching.is_empty() || self.former.leaving.is_empty() {
            return names;
        }
        loop {
            let all: Names = names.iter().flat_map(|name| self.in_doubt(name)).collect();
            if all.is_subset(&names) {
                return names;
            }
            names = self.links.component(names.union(&all).cloned());
        }
    }
}
