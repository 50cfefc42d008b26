//! Who is connected with whom, by name, in both directions. Names need not exist: a reference to one that does not
//! is a link too, so that whoever waits for it is found when it appears.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::Stored;

type Names = BTreeSet<Arc<str>>;

#[derive(Debug, Default)]
pub(super) struct Links {
    targets: BTreeMap<Arc<str>, Names>,
    sources: BTreeMap<Arc<str>, Names>,
}

impl Links {
    /// Sets what a name refers to, or used when it was last changed.
    pub(super) fn set(&mut self, source: &Arc<str>, targets: Names) {
        let old = self.targets.remove(source).unwrap_or_default();
        for gone in old.difference(&targets) {
            let left = self.sources.get_mut(gone).is_some_and(|sources| {
                sources.remove(source);
                sources.is_empty()
            });
            if left {
                self.sources.remove(gone);
            }
        }
        for new in targets.difference(&old) {
            self.sources.entry(new.clone()).or_default().insert(source.clone());
        }
        if !targets.is_empty() {
            self.targets.insert(source.clone(), targets);
        }
    }

    /// Adds to what a name refers to, or used.
    pub(super) fn add(&mut self, source: &Arc<str>, targets: Names) {
        if targets.is_empty() {
            return;
        }
        for target in &targets {
            self.sources.entry(target.clone()).or_default().insert(source.clone());
        }
        self.targets.entry(source.clone()).or_default().extend(targets);
    }

    /// What a name is directly connected with.
    pub(super) fn neighbours<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        self.targets.get(name).into_iter().chain(self.sources.get(name)).flatten()
    }

    /// All that is connected with any of the names, they themselves included.
    pub(super) fn component(&self, names: impl IntoIterator<Item = Arc<str>>) -> Names {
        let mut open: Vec<Arc<str>> = names.into_iter().collect();
        let mut found: Names = open.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for neighbour in self.neighbours(&name) {
                if found.insert(neighbour.clone()) {
                    open.push(neighbour.clone());
                }
            }
        }
        found
    }
}

/// The other Resources whose objects the objects of a record use, and the one that it is moved to.
pub(super) fn used_names(stored: &Stored) -> BTreeSet<Arc<str>> {
    let record = &stored.record;
    let objects = record.current.iter().chain(record.deposed.values());
    let used = objects.flat_map(|object| object.dependencies.iter());
    let names = used.chain(record.moving_to.as_deref()).map(|address| &address.name);
    names.filter(|name| **name != record.address.name).cloned().collect()
}
