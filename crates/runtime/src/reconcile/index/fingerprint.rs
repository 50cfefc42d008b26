//! Computes digests: of everything that the state of an object depends on, and of the desired state of a Resource.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Index;
use model::{Address, Name, in_family};

impl Index {
    /// A digest of everything that the state of an object depends on: its Resource, its record, the records that it
    /// references, its inputs, and the namespace. While it is unchanged, an up-to-date object needs no driver call.
    /// Other instances of the same family are not included.
    pub fn fingerprint(&self, address: &Address) -> u64 {
        self.fingerprint_of(address, self.shared_fingerprint(address.name()))
    }

    /// As [`Self::fingerprint`], with a known [`Self::shared_fingerprint`].
    pub fn fingerprint_of(&self, address: &Address, shared: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (shared, address, self.records.version(address)).hash(&mut hasher);
        hasher.finish()
    }

    /// A digest of the desired state of a Resource, and of the claims of other Resources to its objects, without anything
    /// that steps change. While it is unchanged, the destructive steps of a plan may still start. Every change of it
    /// must plan the name again: until then, these steps wait.
    pub fn desired_digest(&self, name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.namespace_version, self.approvals.withdrawals(name)).hash(&mut hasher);
        self.claimants(name).for_each(|uid| uid.hash(&mut hasher));
        if let Some(entry) = self.entries.get(name) {
            let instance = &entry.instance;
            (&instance.uid, instance.generation, instance.deleting, instance.suspended).hash(&mut hasher);
            (&instance.replace_requested, &instance.moved_from).hash(&mut hasher);
            // The files of a Module can change without its spec.
            let revision = instance.program.as_ref().and_then(|program| program.revision());
            revision.map(|revision| revision.digest).hash(&mut hasher);
            self.inputs.versions(instance).for_each(|version| version.hash(&mut hasher));
            self.providers.version_for(instance).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The part of [`Self::fingerprint`] that all instances of a Resource share.
    pub fn shared_fingerprint(&self, name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.desired_digest(name).hash(&mut hasher);
        if let Some(entry) = self.entries.get(name) {
            let instance = &entry.instance;
            instance.reconcile_requested.hash(&mut hasher);
            let before = instance.moved_from.iter().map(|moved| moved.from.name());
            let settings = self.providers.config_of(instance).into_iter().flat_map(|config| config.references.iter());
            let targets = instance.references.iter().chain(settings).map(|reference| reference.target.name());
            for target in targets.chain(before) {
                target.hash(&mut hasher);
                let desired = self.entries.get(target).map(|entry| (entry.instance.deleting, &entry.instance.uid));
                desired.hash(&mut hasher);
                self.hash_records(target, &mut hasher);
            }
        }
        hasher.finish()
    }

    fn hash_records(&self, name: &Name, hasher: &mut DefaultHasher) {
        for (address, stored) in in_family(&self.records, name) {
            (address, stored.version).hash(hasher);
        }
    }
}
