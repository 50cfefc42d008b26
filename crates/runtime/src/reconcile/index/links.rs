//! The connections between names, in both directions. A name need not exist: a reference to a missing Resource is a
//! link too, so that its dependents are found when it appears.

use std::collections::{BTreeMap, BTreeSet};

use model::{Address, Name, Stored};

#[derive(Clone, Debug, Default)]
pub struct Links {
    targets: BTreeMap<Name, Names>,
    sources: BTreeMap<Name, Names>,
}

/// A sorted list of names. Most objects have one or two connections, and a tree node allocates space for eleven.
#[derive(Clone, Debug, Default)]
struct Names(Vec<Name>);

impl Names {
    fn insert(&mut self, name: &Name) {
        if let Err(at) = self.0.binary_search(name) {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, name.clone());
        }
    }

    fn remove(&mut self, name: &Name) {
        if let Ok(at) = self.0.binary_search(name) {
            self.0.remove(at);
        }
    }

    fn contains(&self, name: &Name) -> bool {
        self.0.binary_search(name).is_ok()
    }
}

impl FromIterator<Name> for Names {
    fn from_iter<I: IntoIterator<Item = Name>>(names: I) -> Self {
        let mut list = Self::default();
        names.into_iter().for_each(|name| list.insert(&name));
        list
    }
}

impl Links {
    /// Sets the references and the recorded dependencies of a name.
    pub fn set(&mut self, source: &Name, targets: BTreeSet<Name>) {
        let old = self.targets.remove(source).unwrap_or_default();
        for removed in old.0.iter().filter(|target| !targets.contains(*target)) {
            let left = self.sources.get_mut(removed).is_some_and(|sources| {
                sources.remove(source);
                sources.0.is_empty()
            });
            if left {
                self.sources.remove(removed);
            }
        }
        for new in targets.iter().filter(|target| !old.contains(target)) {
            self.sources.entry(new.clone()).or_default().insert(source);
        }
        if !targets.is_empty() {
            self.targets.insert(source.clone(), targets.into_iter().collect());
        }
    }

    /// Adds references or recorded dependencies of a name.
    pub fn add(&mut self, source: &Name, targets: BTreeSet<Name>) {
        if targets.is_empty() {
            return;
        }
        let known = self.targets.entry(source.clone()).or_default();
        for target in targets {
            self.sources.entry(target.clone()).or_default().insert(source);
            known.insert(&target);
        }
    }

    /// The names with a direct connection.
    pub fn neighbours<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Name> + use<'a> {
        self.targets.get(name).into_iter().chain(self.sources.get(name)).flat_map(|names| &names.0)
    }

    /// The names of which this one is a target.
    pub fn sources(&self, name: &str) -> impl Iterator<Item = &Name> + use<'_> {
        self.sources.get(name).into_iter().flat_map(|names| &names.0)
    }

    /// All names that are connected with any of these, including these.
    pub fn component(&self, names: impl IntoIterator<Item = Name>) -> BTreeSet<Name> {
        let mut open: Vec<Name> = names.into_iter().collect();
        let mut component: BTreeSet<Name> = open.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for neighbour in self.neighbours(&name) {
                if component.insert(neighbour.clone()) {
                    open.push(neighbour.clone());
                }
            }
        }
        component
    }
}

/// The names that the objects of a record depend on, and the name that the record is moved to. The dependencies of an
/// open intent count too, because its object may exist.
pub fn dependency_names(stored: &Stored) -> BTreeSet<Name> {
    let record = &stored.record;
    let intended = record.intent.iter().filter_map(|intent| Some(&intent.planned.as_ref()?.recorded));
    let objects = record.current.iter().chain(record.deposed.values()).map(AsRef::as_ref);
    let used = objects.chain(intended.map(AsRef::as_ref)).flat_map(|object| object.dependencies.iter());
    let names = used.chain(record.moving_to.as_deref()).map(Address::name);
    names.filter(|name| *name != record.address.name()).cloned().collect()
}
