//! The indexes of families, as the watch shows them: which instances have, or had, a record.
//!
//! An instance is entered before anything is made for it, and leaves before its record is removed. So one that is named
//! here and has no record has lost it, and an object may exist of which nobody knows any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::load::Instance;
use crate::model::{Address, Diagnostic, Reason, Version};
use crate::store::secrets::Family;

#[derive(Debug, Default)]
pub(super) struct KnownFamilies {
    known: BTreeMap<Arc<str>, Family>,
    /// Those that exist and cannot be read, with the reason.
    unreadable: BTreeMap<Arc<str>, String>,
    /// The names that are not listed again yet.
    before: Option<BTreeSet<Arc<str>>>,
}

/// Each change gives the names that it is news for.
impl KnownFamilies {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.unreadable.is_empty()
    }

    /// The instances that the index of a Resource names.
    pub(super) fn instances(&self, name: &str) -> impl Iterator<Item = &Address> {
        self.known.get(name).into_iter().flat_map(|family| &family.instances)
    }

    /// The Resource, with an error when its index cannot be read: then nobody knows what was made for it.
    pub(super) fn checked(&self, resource: Arc<Instance>) -> Arc<Instance> {
        let Some(why) = self.unreadable.get(&resource.address.name) else { return resource };
        let what = "the index of the family cannot be read, so nobody can tell what was made of it";
        let problem = Diagnostic::error(&resource.address, Reason::RecordUnreadable, what).because(why.clone());
        let mut resource = Instance::clone(&resource);
        resource.problems.push(problem);
        Arc::new(resource)
    }

    pub(super) fn applied(&mut self, family: Family) -> Vec<Arc<str>> {
        let name = family.name.clone();
        self.seen(&name);
        let readable_again = self.unreadable.remove(&name).is_some();
        let lost = |old: &Family| old.instances.difference(&family.instances).next().is_some();
        // Only an instance that left may be made anew; who enters is being made by us, or waits for nobody.
        let news = readable_again || self.known.get(&name).is_some_and(lost);
        self.known.insert(name.clone(), family);
        if news { vec![name] } else { Vec::new() }
    }

    pub(super) fn deleted(&mut self, name: Arc<str>, version: Version) -> Vec<Arc<str>> {
        let newer = self.known.get(&name).is_some_and(|family| family.version > Some(version));
        if newer {
            return Vec::new();
        }
        let was_there = self.known.remove(&name).is_some() | self.unreadable.remove(&name).is_some();
        if was_there { vec![name] } else { Vec::new() }
    }

    pub(super) fn unreadable(&mut self, name: Arc<str>, why: String) -> Vec<Arc<str>> {
        self.seen(&name);
        self.unreadable.insert(name.clone(), why);
        vec![name]
    }

    pub(super) fn relisting(&mut self) {
        self.before = Some(self.known.keys().chain(self.unreadable.keys()).cloned().collect());
    }

    pub(super) fn listed(&mut self) -> Vec<Arc<str>> {
        let gone = self.before.take().unwrap_or_default();
        gone.into_iter().flat_map(|name| self.deleted(name, Version(u64::MAX))).collect()
    }

    fn seen(&mut self, name: &str) {
        if let Some(before) = &mut self.before {
            before.remove(name);
        }
    }
}
