//! The digest of a change: it is the same whenever the same change is planned, and another one for any other change.
//!
//! It covers what the change does, to which object, with whose rights, and the attributes before and after. A value that
//! is unknown counts as a placeholder together with what gives it ([`super::sources`]): it may become known, and only from
//! there. All of this is sealed with a salt; what users see of it is covered once more without a salt ([`super::shown`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::shown;
use super::sources::Sources;
use crate::load::Config;
use crate::plan::Plan;
use crate::plan::published::publish;
use api::{ChangeDigest, ChangeProof};
use model::kube_names::generated_suffix;
use model::text::hex;
use model::{Action, Address, Change, Path, Segment, Value};

/// Replaces the random part of a name.
pub const GENERATED: &str = "\u{0}generated\u{0}";

/// The greatest number of unknown places of a change. Beyond it, the groups that contain them count as unknown.
const MAX_UNKNOWN: usize = 100;

/// The maximum length of the text of a place. The schema accepts no longer one.
const MAX_PATH: usize = 1000;

/// The digest of changes, which does not depend on their order. It covers everything that is said about them.
pub fn digest_of<'a>(changes: impl IntoIterator<Item = &'a ChangeDigest> + 'a) -> String {
    let mut parts: BTreeSet<(&Address, &str, String, &[Path])> = BTreeSet::new();
    for change in changes {
        parts.insert((&change.address, &change.digest, format!("{:?}", change.action), &change.unknown_paths));
    }
    let mut hasher = Sha256::new();
    feed(&mut hasher, b"purlin changes 2");
    for (address, digest, action, unknown) in parts {
        feed(&mut hasher, address.to_string().as_bytes());
        feed(&mut hasher, digest.as_bytes());
        feed(&mut hasher, action.as_bytes());
        feed_paths(&mut hasher, unknown);
    }
    hex(&hasher.finalize())
}

fn feed_paths(hasher: &mut Sha256, paths: &[Path]) {
    hasher.update((paths.len() as u64).to_le_bytes());
    paths.iter().for_each(|path| feed(hasher, path.to_string().as_bytes()));
}

pub struct Digester<'a> {
    salt: &'a [u8],
    pub plan: &'a Plan,
    pub config: &'a Config,
    sources: Sources<'a>,
    /// The random parts of the names that this plan generates, sorted.
    suffixes: Vec<String>,
}

impl<'a> Digester<'a> {
    /// `namespace`: the value of `ns`.
    pub fn new(salt: &'a [u8], plan: &'a Plan, config: &'a Config, namespace: &'a Value) -> Self {
        let prepared = plan.objects.values().filter_map(|object| object.prepared.as_ref());
        let new = prepared.filter(|prepared| prepared.prior.is_none() && !prepared.record_only);
        let mut suffixes: Vec<String> = new.map(|prepared| generated_suffix(prepared.entropy)).collect();
        suffixes.sort();
        Self { salt, plan, config, sources: Sources::of(config, plan, namespace), suffixes }
    }

    pub fn change(&self, change: &Change) -> (ChangeDigest, ChangeProof) {
        let mut unknown_paths = Vec::new();
        collect_unknown(&self.result(change), &Path::default(), &mut unknown_paths);
        let unknown_paths = grouped(unknown_paths);
        let (digest, proof) = self.digest(change, &unknown_paths);
        let (address, action) = (change.address.clone(), change.action);
        (ChangeDigest { address, action, digest, unknown_paths, applied: false }, proof)
    }

    /// The digest of a change whose attributes at `unknown` have any value, and what proves that it is shown as it is.
    pub fn digest(&self, change: &Change, unknown: &[Path]) -> (String, ChangeProof) {
        let shown = publish(change);
        let proof = shown::proof(&shown, unknown, self.sealed(change, unknown), &self.suffixes);
        (shown::digest(&shown, unknown, &proof), proof)
    }

    /// The part of the digest that cannot be computed without the salt.
    fn sealed(&self, change: &Change, unknown: &[Path]) -> String {
        let null = Value::Null;
        let before = change.before.as_ref().unwrap_or(&null);
        let mut after = self.result(change);
        for path in unknown {
            after = with_unknown(&after, &path.0, false);
        }
        let mut hasher = Sha256::new();
        feed(&mut hasher, b"purlin change 4");
        feed(&mut hasher, self.salt);
        let what = format!("{:?} {:?} {}", change.action, change.order, change.forget);
        for part in [&self.config.namespace, change.address.to_string().as_str(), &change.type_name, &what] {
            feed(&mut hasher, part.as_bytes());
        }
        for part in self.credentials(change) {
            feed(&mut hasher, part.as_bytes());
        }
        // The same attributes of another object are another change.
        feed_value(&mut hasher, before.get("id").unwrap_or(&null), &self.suffixes);
        feed_paths(&mut hasher, unknown);
        if let Some(instance) = self.config.instances.get(&change.address) {
            self.sources.feed(&mut hasher, instance, unknown);
        }
        let mut paths = before.differences(&after);
        paths.sort();
        for path in paths {
            feed(&mut hasher, path.to_string().as_bytes());
            let (old, new) = (before.at(&path).unwrap_or_default(), after.at(&path).unwrap_or_default());
            // The old value of an attribute that the service sets, such as a version, may differ at each time.
            if *new.unmarked() != Value::Unknown {
                feed_value(&mut hasher, &old, &self.suffixes);
            }
            feed_value(&mut hasher, &new, &self.suffixes);
        }
        hex(&hasher.finalize())
    }

    /// The digest of the second half of a replacement: the create of its new object after the destroy of the old one.
    pub fn second_half(&self, change: &Change, unknown: &[Path]) -> String {
        let create =
            Change { action: Action::Create, order: None, forget: false, before: None, drift: None, ..change.clone() };
        self.digest(&create, unknown).0
    }

    /// The object after the change, with the arguments that the driver writes and does not return.
    fn result(&self, change: &Change) -> Value {
        let Some(after) = &change.after else { return Value::Null };
        let prepared = self.plan.prepared(&change.address).filter(|prepared| !prepared.record_only);
        prepared.map_or_else(|| after.clone(), |prepared| with_write_only(after, &prepared.config))
    }

    /// With whose rights the change is made: the names of the ProviderConfig and of the ServiceAccount. Not those of a
    /// destroy, whose digest is the same with and without the Resource.
    fn credentials(&self, change: &Change) -> [&str; 2] {
        let resource = self.config.instances.get(&change.address);
        let resource = resource.filter(|_| change.action != Action::Destroy);
        let provider_config = resource.and_then(|resource| resource.provider_config.as_deref());
        [provider_config.unwrap_or_default(), resource.map_or("", |resource| &resource.service_account)]
    }
}

/// A sensitive value with an unknown part counts as unknown: its keys are as secret as the value.
fn collect_unknown(value: &Value, at: &Path, found: &mut Vec<Path>) {
    match value {
        Value::Unknown => found.push(at.clone()),
        Value::Sensitive(inner) if inner.has_unknown() => found.push(at.clone()),
        Value::Map(map) => map.iter().for_each(|(name, item)| collect_unknown(item, &at.name(Arc::clone(name)), found)),
        Value::List(items) => {
            items.iter().enumerate().for_each(|(position, item)| collect_unknown(item, &at.index(position), found));
        }
        _ => {}
    }
}

/// Not more than [`MAX_UNKNOWN`] places: if there are more, the groups that contain them.
/// A place with a longer text counts as the group that contains it.
fn grouped(mut places: Vec<Path>) -> Vec<Path> {
    for place in &mut places {
        while place.to_string().len() > MAX_PATH {
            place.0.pop();
        }
    }
    places.sort();
    places.dedup();
    let mut depth = places.iter().map(|path| path.0.len()).max().unwrap_or_default();
    while places.len() > MAX_UNKNOWN && depth > 0 {
        depth -= 1;
        places.iter_mut().for_each(|path| path.0.truncate(depth));
        places.sort();
        places.dedup();
    }
    places
}

/// The value with an unknown value at a path, if it has a value there. `without_null`: the value lacks the attributes that
/// are null, so the last one of the path is added.
pub fn with_unknown(value: &Value, path: &[Segment], without_null: bool) -> Value {
    let Some((first, rest)) = path.split_first() else { return Value::Unknown };
    match (value.unmarked(), first) {
        (group @ Value::Map(_), Segment::Name(name)) if without_null && rest.is_empty() => {
            group.with(Arc::clone(name), Value::Unknown)
        }
        (Value::Map(map), Segment::Name(name)) if map.contains_key(name) => {
            Value::map(map.iter().map(|(key, item)| {
                (Arc::clone(key), if key == name { with_unknown(item, rest, without_null) } else { item.clone() })
            }))
        }
        (Value::List(items), Segment::Index(index)) => Value::list(items.iter().enumerate().map(|(position, item)| {
            if position == *index { with_unknown(item, rest, without_null) } else { item.clone() }
        })),
        _ => value.clone(),
    }
}

/// The object with the arguments that it does not have, such as a password that the service does not return.
fn with_write_only(object: &Value, config: &Value) -> Value {
    match (object, config.unmarked()) {
        (Value::Null, _) => config.clone(),
        (Value::Map(map), Value::Map(arguments)) => {
            let missing = arguments.iter().filter(|(name, _)| !map.contains_key(name));
            let missing = missing.map(|(name, argument)| (Arc::clone(name), argument.clone()));
            let null = Value::Null;
            let present = map
                .iter()
                .map(|(name, item)| (Arc::clone(name), with_write_only(item, arguments.get(name).unwrap_or(&null))));
            Value::map(present.chain(missing))
        }
        (Value::List(items), Value::List(arguments)) if items.len() == arguments.len() => {
            Value::list(items.iter().zip(arguments.iter()).map(|(item, argument)| with_write_only(item, argument)))
        }
        _ => object.clone(),
    }
}

/// Adds bytes so that two lists of them never look the same.
pub fn feed(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// Adds a value. `random`: the parts of strings that count as a placeholder.
pub fn feed_value(hasher: &mut Sha256, value: &Value, random: &[String]) {
    match value.unmarked() {
        Value::Null => feed(hasher, b"null"),
        Value::Unknown => feed(hasher, b"unknown"),
        Value::String(text) => {
            feed(hasher, b"string");
            let random = random.iter().filter(|part| text.contains(part.as_str()));
            let fixed = random.fold(text.to_string(), |text, part| text.replace(part.as_str(), GENERATED));
            feed(hasher, fixed.as_bytes());
        }
        Value::List(items) => {
            feed(hasher, b"list");
            hasher.update((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| feed_value(hasher, item, random));
        }
        Value::Map(map) => {
            let set: Vec<_> = map.iter().filter(|(_, item)| *item.unmarked() != Value::Null).collect();
            feed(hasher, b"map");
            hasher.update((set.len() as u64).to_le_bytes());
            for (name, item) in set {
                feed(hasher, name.as_bytes());
                feed_value(hasher, item, random);
            }
        }
        other => {
            feed(hasher, b"scalar");
            feed(hasher, other.to_json_text().as_bytes());
        }
    }
}
