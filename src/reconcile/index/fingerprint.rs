//! Digests of what is known: of all that the state of an object depends on, and of what somebody wishes of a Resource.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Index;
use crate::model::Address;

impl Index {
    /// Digest of all that the state of an object depends on: its Resource, its record, the records of what it refers
    /// to, its inputs, the namespace. While it is as it was when the object was found settled, nobody needs to be asked
    /// about it. What becomes of the other instances of a family is no concern of it.
    pub fn fingerprint(&self, address: &Address) -> u64 {
        self.fingerprint_of(address, self.shared_fingerprint(&address.name))
    }

    /// The same, when what all instances of the Resource share is known already.
    pub fn fingerprint_of(&self, address: &Address, shared: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (shared, address, self.version(address)).hash(&mut hasher);
        hasher.finish()
    }

    /// Digest of what somebody wishes of a Resource, and of nothing that steps change: while it is the same, a plan that
    /// was made for it may still give objects up.
    pub fn wish(&self, name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.namespace_version.hash(&mut hasher);
        if let Some(entry) = self.entries.get(name) {
            let instance = &entry.instance;
            (&instance.uid, instance.generation, instance.deleting, instance.suspended).hash(&mut hasher);
            (&instance.replace_requested, &instance.moved_from).hash(&mut hasher);
            self.inputs.versions(instance).for_each(|version| version.hash(&mut hasher));
            self.providers.version_for(instance).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// What [`Self::fingerprint`] takes from the Resource, from its inputs and from what it refers to.
    pub fn shared_fingerprint(&self, name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.wish(name).hash(&mut hasher);
        if let Some(entry) = self.entries.get(name) {
            let instance = &entry.instance;
            instance.reconcile_requested.hash(&mut hasher);
            let before = instance.moved_from.iter().map(|address| &address.name);
            let settings = self.providers.config_of(instance).into_iter().flat_map(|config| config.references.iter());
            let targets = instance.references.iter().chain(settings).map(|reference| &reference.target.name);
            for target in targets.chain(before) {
                target.hash(&mut hasher);
                let wanted = self.entries.get(target).map(|entry| (entry.instance.deleting, &entry.instance.uid));
                wanted.hash(&mut hasher);
                self.hash_records(target, &mut hasher);
            }
        }
        hasher.finish()
    }

    fn hash_records(&self, name: &str, hasher: &mut DefaultHasher) {
        for (address, stored) in self.records.range(Address::single(name)..).take_while(|(a, _)| *a.name == *name) {
            (address, stored.version).hash(hasher);
        }
    }
}
