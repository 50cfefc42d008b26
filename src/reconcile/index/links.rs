//! Who is connected with whom, by name, in both directions. Names need not exist: a reference to one that does not
//! is a link too, so that whoever waits for it is found when it appears.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::Stored;

#[derive(Debug, Default)]
pub(super) struct Links {
    targets: BTreeMap<Arc<str>, Names>,
    sources: BTreeMap<Arc<str>, Names>,
}

/// Some names, in order. A list, since most objects are connected with one or two others, and a tree has room for eleven.
#[derive(Debug, Default)]
struct Names(Vec<Arc<str>>);

impl Names {
    fn insert(&mut self, name: &Arc<str>) {
        if let Err(at) = self.0.binary_search(name) {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, name.clone());
        }
    }

    fn remove(&mut self, name: &Arc<str>) {
        if let Ok(at) = self.0.binary_search(name) {
            self.0.remove(at);
        }
    }

    fn contains(&self, name: &Arc<str>) -> bool {
        self.0.binary_search(name).is_ok()
    }
}

impl FromIterator<Arc<str>> for Names {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        let mut all = Self::default();
        names.into_iter().for_each(|name| all.insert(&name));
        all
    }
}

impl Links {
    /// Sets what a name refers to, or used when it was last changed.
    pub(super) fn set(&mut self, source: &Arc<str>, targets: BTreeSet<Arc<str>>) {
        let old = self.targets.remove(source).unwrap_or_default();
        for gone in old.0.iter().filter(|target| !targets.contains(*target)) {
            let left = self.sources.get_mut(gone).is_some_and(|sources| {
                sources.remove(source);
                sources.0.is_empty()
            });
            if left {
                self.sources.remove(gone);
            }
        }
        for new in targets.iter().filter(|target| !old.contains(target)) {
            self.sources.entry(new.clone()).or_default().insert(source);
        }
        if !targets.is_empty() {
            self.targets.insert(source.clone(), targets.into_iter().collect());
        }
    }

    /// Adds to what a name refers to, or used.
    pub(super) fn add(&mut self, source: &Arc<str>, targets: BTreeSet<Arc<str>>) {
        if targets.is_empty() {
            return;
        }
        let known = self.targets.entry(source.clone()).or_default();
        for target in targets {
            self.sources.entry(target.clone()).or_default().insert(source);
            known.insert(&target);
        }
    }

    /// What a name is directly connected with.
    pub(super) fn neighbours<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        self.targets.get(name).into_iter().chain(self.sources.get(name)).flat_map(|names| &names.0)
    }

    /// All that is connected with any of the names, they themselves included.
    pub(super) fn component(&self, names: impl IntoIterator<Item = Arc<str>>) -> BTreeSet<Arc<str>> {
        let mut open: Vec<Arc<str>> = names.into_iter().collect();
        let mut found: BTreeSet<Arc<str>> = open.iter().cloned().collect();
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

/// The other Resources whose objects the objects of a record use, and the one that it is moved to. What an open intent
/// was about to make may be there, and uses what it was to use: planning counts it, too.
pub(super) fn used_names(stored: &Stored) -> BTreeSet<Arc<str>> {
    let record = &stored.record;
    let intended = record.intent.iter().filter_map(|intent| Some(&intent.planned.as_ref()?.recorded));
    let objects = record.current.iter().chain(record.deposed.values()).map(AsRef::as_ref);
    let used = objects.chain(intended.map(AsRef::as_ref)).flat_map(|object| object.dependencies.iter());
    let names = used.chain(record.moving_to.as_deref()).map(|address| &address.name);
    names.filter(|name| **name != record.address.name).cloned().collect()
}
