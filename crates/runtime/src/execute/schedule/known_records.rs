//! The records that a schedule knows, and what would be too expensive to find out for each plan of a large namespace.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use engine::plan::{ProviderConfigId, identity_hash};
use model::{Address, Record, Recorded, Stored};

#[derive(Debug, Default)]
pub struct KnownRecords {
    records: Recorded,
    /// The number of current objects of each provider configuration.
    objects: BTreeMap<ProviderConfigId, usize>,
    /// The current objects by the hash of their identity.
    identities: BTreeSet<(u64, Address)>,
}

impl KnownRecords {
    pub fn new(records: Recorded) -> Self {
        let mut known = Self::default();
        records.into_iter().for_each(|(address, stored)| known.set(&address, Some(stored)));
        known
    }

    pub fn all(&self) -> &Recorded {
        &self.records
    }

    /// The number of current objects of each provider configuration.
    pub fn objects(&self) -> &BTreeMap<ProviderConfigId, usize> {
        &self.objects
    }

    /// The records, except this one, that may have the same object as this one.
    pub fn others_of_object(&self, record: &Record) -> impl Iterator<Item = &Stored> {
        // No address is smaller than one with an empty name.
        let same =
            |hash| self.identities.range((hash, Address::single(""))..).take_while(move |(other, _)| *other == hash);
        let same = identity(record).into_iter().flat_map(same).map(|(_, address)| address);
        same.filter(|address| **address != record.address).filter_map(|address| self.records.get(address))
    }

    /// Replaces the record of an object, or removes it.
    pub fn set(&mut self, address: &Address, stored: Option<Stored>) {
        let before = self.records.remove(address);
        if let Some(Stored { record, .. }) = &before {
            if let Some(id) = ProviderConfigId::of_record(record) {
                // Each change of a configuration has another hash, so what nothing uses must not stay.
                if let Entry::Occupied(mut count) = self.objects.entry(id) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
            identity(record).into_iter().for_each(|hash| _ = self.identities.remove(&(hash, address.clone())));
        }
        let Some(stored) = stored else { return };
        if let Some(id) = ProviderConfigId::of_record(&stored.record) {
            *self.objects.entry(id).or_default() += 1;
        }
        self.identities.extend(identity(&stored.record).map(|hash| (hash, address.clone())));
        self.records.insert(address.clone(), stored);
    }
}

fn identity(record: &Record) -> Option<u64> {
    identity_hash(&record.type_name, record.current.as_ref()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use model::{RecordedObject, Value, Version};

    fn record(name: &str, id: &str) -> Stored {
        let mut record = Record::empty("shop".into(), Address::single(name), "u".into(), "terraform_data".into());
        let value = Value::map([("id", Value::String(id.into()))]);
        record.current = Some(Arc::new(RecordedObject { value, ..RecordedObject::default() }));
        Stored { record: Arc::new(record), version: Version(1) }
    }

    fn others(known: &KnownRecords, record: &Stored) -> Vec<String> {
        known.others_of_object(&record.record).map(|stored| stored.record.address.to_string()).collect()
    }

    #[test]
    fn records_of_the_same_object_are_found_until_their_object_changes() {
        let [a, b, c] = [("a", "1"), ("b", "2"), ("c", "1")].map(|(name, id)| record(name, id));
        let all = [&a, &b, &c].map(|stored| (stored.record.address.clone(), stored.clone()));
        let mut known = KnownRecords::new(all.into_iter().collect());
        assert_eq!((others(&known, &a), others(&known, &b)), (vec!["c".to_owned()], Vec::new()));
        known.set(&Address::single("b"), Some(record("b", "1")));
        known.set(&Address::single("c"), None);
        assert_eq!(others(&known, &a), ["b"]);
        let id = ProviderConfigId { provider: "terraform".into(), hash: "".into() };
        assert_eq!((known.objects().get(&id), known.all().len(), known.identities.len()), (Some(&2), 2, 2));
        ["a", "b"].into_iter().for_each(|name| known.set(&Address::single(name), None));
        assert!(known.objects().is_empty() && known.identities.is_empty());
    }
}
