//! What the Resources say about the former addresses of their objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::is_desired;
use crate::load::{Config, Instance, MovedFrom};
use model::{Address, InstanceKey, Recorded, in_family};

/// The former addresses of the objects of one Resource.
pub struct Entries<'a> {
    pub resource: &'a Arc<Instance>,
    of_key: BTreeMap<&'a InstanceKey, Vec<&'a MovedFrom>>,
    without_key: Vec<&'a MovedFrom>,
    /// The addresses from which a certain instance gets its object.
    pub exact: BTreeSet<&'a Address>,
    /// The addresses from which recorded objects of the Resource came.
    pub came: BTreeSet<&'a Address>,
    /// The addresses whose objects went where the entry says, and came back.
    returned: BTreeSet<&'a Address>,
}

/// The entries of all Resources that have any, by name.
pub fn of_config<'a>(config: &'a Config, recorded: &'a Recorded) -> BTreeMap<&'a Arc<str>, Entries<'a>> {
    let named = config.resources().filter(|resource| !resource.moved_from.is_empty());
    named.map(|resource| (&resource.address.name, Entries::new(resource, config, recorded))).collect()
}

impl<'a> Entries<'a> {
    fn new(resource: &'a Arc<Instance>, config: &Config, recorded: &'a Recorded) -> Self {
        let mut of_key: BTreeMap<&InstanceKey, Vec<&MovedFrom>> = BTreeMap::new();
        let mut without_key = Vec::new();
        let (mut exact, mut returned) = (BTreeSet::new(), BTreeSet::new());
        for entry in resource.moved_from.iter() {
            let Some(key) = &entry.to else {
                without_key.push(entry);
                continue;
            };
            of_key.entry(key).or_default().push(entry);
            exact.insert(&entry.from);
            // An object that came from there, and whose address is no longer configured, is to go back.
            let to = Address { name: resource.address.name.clone(), key: key.clone() };
            let came = recorded.get(&entry.from).is_some_and(|stored| stored.record.moved_from.contains(&to));
            if came && is_desired(config, &entry.from) {
                returned.insert(&entry.from);
            }
        }
        let instances = in_family(recorded, &resource.address.name);
        let came = instances.flat_map(|(_, stored)| &stored.record.moved_from).collect();
        Self { resource, of_key, without_key, exact, came, returned }
    }

    pub fn all(&self) -> std::slice::Iter<'a, MovedFrom> {
        self.resource.moved_from.iter()
    }

    /// The entries from which an instance may get its object, best first.
    pub fn of(&self, key: &InstanceKey) -> impl Iterator<Item = &'a MovedFrom> + use<'_, 'a> {
        self.of_key.get(key).into_iter().flatten().chain(&self.without_key).copied()
    }

    /// Whether an instance has its object because of an entry, if the object came from `old`.
    pub fn names(&self, key: &InstanceKey, old: &Address) -> bool {
        self.of(key).any(|entry| match entry.is_whole() {
            true => entry.from.name == old.name && old.name != self.resource.address.name,
            false => entry.from == *old,
        })
    }

    /// Whether an object of this Resource came from there, so that an object there now is unrelated, or has come back.
    pub fn is_fulfilled(&self, entry: &MovedFrom) -> bool {
        match entry.is_whole() {
            true => self.came.iter().any(|old| old.name == entry.from.name && !self.names_instance(old)),
            false => self.came.contains(&entry.from) || self.returned.contains(&entry.from),
        }
    }

    /// The entries that got no object, and may be slips.
    pub fn in_doubt(&self) -> impl Iterator<Item = &'a MovedFrom> {
        self.all().filter(|entry| !entry.is_literal() && !self.is_fulfilled(entry))
    }

    /// Whether an entry of its own names the address, and not one for the Resource as a whole.
    fn names_instance(&self, old: &Address) -> bool {
        self.all().any(|entry| !entry.is_whole() && entry.from == *old)
    }

    /// The field that names an address, in words.
    pub fn field(&self, from: &Address) -> String {
        let exact = self.all().find(|entry| entry.from == *from);
        let entry = exact.or_else(|| self.all().find(|entry| entry.from.name == from.name));
        entry.map(MovedFrom::field).unwrap_or_default()
    }
}
