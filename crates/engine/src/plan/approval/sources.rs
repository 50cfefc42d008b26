//! What gives the values of unknown places: the expressions of the arguments that contain them, and the configuration of
//! everything that these read, directly and through others. Without the latter, the author of another object would decide
//! what the approved change makes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::digest::{feed, feed_value};
use crate::load::expression::{Scope, Template};
use crate::load::{Config, Instance, Reference};
use crate::plan::Plan;
use model::{Address, InstanceKey, Path, Segment, Value};

type Hash = [u8; 32];

pub struct Sources<'a> {
    config: &'a Config,
    outside: Outside<'a>,
    /// The digest of what gives the attributes of an object. `None` while it is computed.
    known: RefCell<BTreeMap<&'a Address, Option<Hash>>>,
}

impl<'a> Sources<'a> {
    /// `plan`: with the readings of data sources. `namespace`: the value of `ns`.
    pub fn of(config: &'a Config, plan: &'a Plan, namespace: &'a Value) -> Self {
        Self { config, outside: Outside { plan, namespace }, known: RefCell::default() }
    }

    /// Adds what gives the values of an object at `unknown`.
    pub fn feed(&self, hasher: &mut Sha256, instance: &'a Instance, unknown: &[Path]) {
        if unknown.is_empty() {
            return;
        }
        let is_whole = unknown.iter().any(|path| path.0.is_empty());
        if is_whole {
            feed(hasher, instance.config.source().as_bytes());
            self.feed_outside(hasher, &instance.config);
        }
        let arguments: BTreeSet<&Arc<str>> = unknown.iter().filter_map(|path| name(path, 0)).collect();
        for argument in &arguments {
            feed(hasher, argument.as_bytes());
            match instance.config.attribute(argument) {
                Some(configured) => {
                    feed(hasher, configured.source().as_bytes());
                    self.feed_outside(hasher, &configured);
                }
                None => feed(hasher, b"not configured"),
            }
        }
        let read = self.read_by(instance, |reference| {
            is_whole || name(&reference.at, 2).is_none_or(|argument| arguments.contains(argument))
        });
        read.iter().for_each(|other| self.compute(other));
        feed_own(hasher, instance);
        self.feed_others(hasher, &read);
    }

    /// Adds what an expression reads beside unknown values: its text and the values of the inputs are not all that decides
    /// what it gives.
    fn feed_outside(&self, hasher: &mut Sha256, template: &Template) {
        template.outside_values(&self.outside).iter().for_each(|value| feed_value(hasher, value, &[]));
    }

    fn feed_others(&self, hasher: &mut Sha256, others: &BTreeSet<&Address>) {
        let known = self.known.borrow();
        // One that is still computed is part of a cycle, which is an error of its own.
        others.iter().for_each(|other| hasher.update(known.get(other).copied().flatten().unwrap_or_default()));
    }

    /// What the configuration of an object and the keys of its family read: objects, and whole families.
    fn read_by(&self, instance: &'a Instance, gives: impl Fn(&Reference) -> bool) -> BTreeSet<&'a Address> {
        let of_config = instance.references.iter().filter(|reference| is_of_config(reference) && gives(reference));
        let family = self.config.families.get(&instance.address.stem);
        let of_keys = family.into_iter().flat_map(|family| family.repetition().references.iter());
        of_config.chain(of_keys).map(|reference| &reference.target).collect()
    }

    /// As [`Self::read_by`], of an object or of all objects of a family.
    fn read_of(&self, address: &'a Address) -> BTreeSet<&'a Address> {
        match self.config.instances.get(address) {
            Some(instance) => self.read_by(instance, |_| true),
            None => self.config.instance_addresses(&address.stem).collect(),
        }
    }

    /// Computes the digest of what gives the attributes of an object. Not by recursion, because a chain can be long.
    fn compute(&self, first: &'a Address) {
        let mut open = vec![first];
        while let Some(address) = open.last().copied() {
            let known = self.known.borrow().get(address).copied();
            match known {
                Some(Some(_)) => drop(open.pop()),
                Some(None) => {
                    let digest = self.digest(address);
                    self.known.borrow_mut().insert(address, Some(digest));
                }
                None => {
                    self.known.borrow_mut().insert(address, None);
                    let known = self.known.borrow();
                    open.extend(self.read_of(address).into_iter().filter(|other| !known.contains_key(other)));
                }
            }
        }
    }

    fn digest(&self, address: &'a Address) -> Hash {
        let mut hasher = Sha256::new();
        feed(&mut hasher, address.to_string().as_bytes());
        if let Some(instance) = self.config.instances.get(address) {
            let import = instance.import.as_ref().map(ToString::to_string).unwrap_or_default();
            let provider_config = instance.provider_config.as_deref().unwrap_or_default();
            for part in [&*instance.type_name, provider_config, &*instance.service_account, &*import] {
                feed(&mut hasher, part.as_bytes());
            }
            feed(&mut hasher, instance.config.source().as_bytes());
            self.feed_outside(&mut hasher, &instance.config);
            feed_own(&mut hasher, instance);
        }
        self.feed_others(&mut hasher, &self.read_of(address));
        hasher.finalize().into()
    }
}

/// What is known and belongs to no object that Purlin manages: the namespace, and the readings of data sources.
struct Outside<'a> {
    plan: &'a Plan,
    namespace: &'a Value,
}

impl Scope for Outside<'_> {
    fn object(&self, address: &Address) -> Option<Value> {
        let reading = self.plan.objects.get(address)?.reading.as_ref();
        reading.filter(|_| address.is_data()).map(|reading| reading.value.clone())
    }

    fn namespace(&self) -> Value {
        self.namespace.clone()
    }
}

/// Adds the values of `each` and of the inputs, which an expression can read beside an unknown value.
fn feed_own(hasher: &mut Sha256, instance: &Instance) {
    if let Some(each) = &instance.each {
        let entry = match &instance.address.key {
            InstanceKey::Key(key) => each.source.attribute(key),
            _ => None,
        };
        feed(hasher, entry.unwrap_or_else(|| each.source.clone()).source().as_bytes());
    }
    feed_value(hasher, instance.inputs.values(), &[]);
}

/// The name at a position of a path.
fn name(path: &Path, position: usize) -> Option<&Arc<str>> {
    match path.0.get(position)? {
        Segment::Name(name) => Some(name),
        Segment::Index(_) => None,
    }
}

/// Whether an expression of `spec.config` has this reference.
fn is_of_config(reference: &Reference) -> bool {
    let is_in_config = matches!(
        &reference.at.0[..],
        [Segment::Name(spec), Segment::Name(config), ..] if &**spec == "spec" && &**config == "config"
    );
    is_in_config && !reference.explicit
}
