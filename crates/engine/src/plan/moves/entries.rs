//! What the Resources say about the former addresses of their objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::is_desired;
use crate::load::{Config, Instance, MovedFrom};
use model::{Address, InstanceKey, Record, Recorded, Stem, in_stem};

/// The former addresses of the objects of one Resource.
pub struct Entries<'a> {
    pub resource: &'a Arc<Instance>,
    of_key: BTreeMap<&'a InstanceKey, Vec<&'a MovedFrom>>,
    without_key: Vec<&'a MovedFrom>,
    /// The addresses from which a certain instance gets its object.
    pub exact: BTreeSet<&'a Address>,
    /// The recorded objects of the Resource that came from an address.
    came: BTreeMap<&'a Address, Vec<Arrival<'a>>>,
    /// The addresses whose objects went where the entry says, and came back.
    returned: BTreeSet<&'a Address>,
}

/// A recorded object that came from another address.
struct Arrival<'a> {
    record: &'a Record,
    /// Whether it is configured where it is.
    is_desired: bool,
}

/// The entries of all Resources that have any, by name.
pub fn of_config<'a>(config: &'a Config, recorded: &'a Recorded) -> BTreeMap<&'a Stem, Entries<'a>> {
    let named = config.resources().filter(|resource| !resource.moved_from.is_empty());
    named.map(|resource| (&resource.address.stem, Entries::new(resource, config, recorded))).collect()
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
            let to = resource.address.stem.clone().instance(key.clone());
            let came = recorded.get(&entry.from).is_some_and(|stored| stored.record.moved_from.contains(&to));
            if came && is_desired(config, &entry.from) {
                returned.insert(&entry.from);
            }
        }
        let mut came: BTreeMap<&Address, Vec<Arrival<'_>>> = BTreeMap::new();
        for (address, stored) in in_stem(recorded, &resource.address.stem) {
            for from in &stored.record.moved_from {
                let arrival = Arrival { record: &stored.record, is_desired: is_desired(config, address) };
                came.entry(from).or_default().push(arrival);
            }
        }
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
            true => entry.from.stem == old.stem && old.stem != self.resource.address.stem,
            false => entry.from == *old,
        })
    }

    /// Whether an object came from there to where the entry says, so that an object there now is unrelated, or has come back.
    /// One that went elsewhere by an earlier entry, and is not wanted there any more, fulfils none.
    pub fn is_fulfilled(&self, entry: &MovedFrom) -> bool {
        if entry.is_whole() {
            return self.came.keys().any(|old| old.stem == entry.from.stem && !self.names_instance(old));
        }
        let arrived = self.came.get(&entry.from).into_iter().flatten();
        let mut arrived = arrived.filter(|arrival| match &entry.to {
            Some(key) => arrival.has_been_at(&entry.from, key),
            None => arrival.is_desired,
        });
        arrived.next().is_some() || self.returned.contains(&entry.from)
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
        let entry = exact.or_else(|| self.all().find(|entry| entry.from.stem == from.stem));
        entry.map(MovedFrom::field).unwrap_or_default()
    }
}

impl Arrival<'_> {
    /// Whether it is at this key of its Resource, or was after it had left an address.
    fn has_been_at(&self, left: &Address, key: &InstanceKey) -> bool {
        let since = self.record.moved_from.iter().skip_while(|former| *former != left).skip(1);
        let mut places = since.chain([&self.record.address]);
        places.any(|place| place.stem == self.record.address.stem && place.key == *key)
    }
}
