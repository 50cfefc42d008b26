//! What the specs of users reference.

use std::collections::BTreeSet;

use purlin::model::{Address, InstanceKey};
use serde_json::Value;

use super::is_family;
use crate::judge::has_instance;

/// Selects the instance with the same index.
pub(super) const SAME_INDEX: &str = "count.index";

/// The object or the instance that a spec references.
pub(super) struct Reference<'a> {
    name: &'a str,
    key: Option<&'a str>,
}

impl Reference<'_> {
    /// Whether every object of this spec can reference this Resource.
    pub(super) fn fits(&self, (name, resource): &(String, Value), spec: &Value) -> bool {
        let last = spec["count"].as_u64().map_or(0, |count| count.saturating_sub(1));
        let key = match self.key {
            None => InstanceKey::None,
            Some(SAME_INDEX) => InstanceKey::Index(last),
            Some(key) => InstanceKey::Index(key.parse().unwrap()),
        };
        name == self.name && has_instance(resource, &key)
    }
}

/// What the value of a spec references.
pub(super) fn value_reference(spec: &Value) -> Option<Reference<'_>> {
    let target = spec["config"]["value"].as_str()?.strip_prefix("${")?;
    let target = target.strip_suffix(".id}").or_else(|| target.strip_suffix(".value}"))?;
    let Some((name, key)) = target.split_once('[') else { return Some(Reference { name: target, key: None }) };
    Some(Reference { name, key: key.strip_suffix(']') })
}

/// The name of the Resource from which the value of a spec comes.
pub(crate) fn source_of(spec: &Value) -> Option<&str> {
    value_reference(spec).map(|reference| reference.name)
}

/// The names that a spec references.
pub(super) fn references(spec: &Value) -> BTreeSet<String> {
    let value = source_of(spec);
    let depends = spec["dependsOn"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
    value.into_iter().chain(depends).map(str::to_owned).collect()
}

/// The spec after the object at `from` has got the name `to`. If only an instance leaves its family, dependencies on the family
/// stay.
pub(super) fn renamed(spec: &Value, from: &Address, to: &str) -> Value {
    let (before, after) = match (is_family(from.name()), is_family(to)) {
        (true, true) => (format!("${{{}[", from.name()), format!("${{{to}[")),
        (false, true) => (format!("${{{from}."), format!("${{{to}[0].")),
        _ => (format!("${{{from}."), format!("${{{to}.")),
    };
    let mut text = spec.to_string().replace(&before, &after);
    if from.key == InstanceKey::None {
        text = text.replace(&format!("\"name\":\"{}\"", from.name()), &format!("\"name\":\"{to}\""));
    }
    text.parse().unwrap()
}
