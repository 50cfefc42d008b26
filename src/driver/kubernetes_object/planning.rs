//! What `object` will look like: known where the manifest or the present object tells, unknown where only the server
//! will. Pure.
//!
//! A map has no "and maybe more" in it, so a place that the server may add must either be there as unknown, or the
//! map that it is added to must be unknown as a whole. A dry run shows which places there will be; without one, only
//! kinds to which the server adds nothing are known in depth.

use std::sync::Arc;

use crate::model::{Path, Value};

use super::manifest::entries;
use super::object::{comparable, substance};
use super::target::{Target, group_of};

/// What is known about the places that the server adds to a new object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// None beside metadata.
    Closed,
    /// Those of this dry run.
    DryRun(&'a Value),
    /// Any.
    Open,
}

/// Whether the server adds nothing to objects of this kind, beside metadata.
pub(crate) fn is_closed(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "ConfigMap" | "ServiceAccount") | ("rbac.authorization.k8s.io", "Role" | "ClusterRole")
    )
}

/// A new object, from what will be sent.
pub(crate) fn created(desired: &Value, shape: Shape<'_>) -> Value {
    let mut object = entries(Some(desired));
    for (name, value) in &mut object {
        if !matches!(name.as_ref(), "apiVersion" | "kind" | "metadata") {
            *value = match shape {
                Shape::Closed => value.clone(),
                Shape::DryRun(dry) => known_where_set(value, dry.get(name).unwrap_or(&Value::Null)),
                Shape::Open if is_leaf(value) => value.clone(),
                Shape::Open => Value::Unknown,
            };
        }
    }
    if let Shape::DryRun(dry) = shape {
        for name in entries(Some(dry)).into_keys() {
            object.entry(name).or_insert(Value::Unknown);
        }
    }
    if !matches!(shape, Shape::Closed) {
        object.insert("status".into(), Value::Unknown);
    }
    let mut metadata = entries(desired.get("metadata"));
    for name in ["uid", "creationTimestamp", "generation"] {
        metadata.insert(name.into(), Value::Unknown);
    }
    if matches!(shape, Shape::Closed) {
        // Kinds without a spec have no generation; and what is empty is absent when the server gives it back.
        metadata.remove("generation");
        metadata.retain(|_, value| !is_empty_map(value));
        object.retain(|_, value| !is_empty_map(value));
    }
    object.insert("metadata".into(), Value::map(metadata));
    Value::map(object)
}

/// The server's value with everything unknown that was not asked for in just this form.
fn known_where_set(wanted: &Value, dry: &Value) -> Value {
    let sensitive = matches!(wanted, Value::Sensitive(_));
    let known = match (wanted.unmarked(), dry.unmarked()) {
        (Value::Map(wanted), Value::Map(dry)) => Value::map(dry.iter().map(|(key, dry)| {
            let value = wanted.get(key).map_or(Value::Unknown, |wanted| known_where_set(wanted, dry));
            (Arc::clone(key), value)
        })),
        (Value::List(wanted), Value::List(dry)) if wanted.len() == dry.len() => {
            Value::list(wanted.iter().zip(dry.iter()).map(|(wanted, dry)| known_where_set(wanted, dry)))
        }
        (wanted, dry) if wanted.same(dry) => wanted.clone(),
        _ => Value::Unknown,
    };
    if sensitive { known.into_sensitive() } else { known }
}

/// The object after an update, from a dry run of it.
pub(crate) fn updated(prior: &Value, dry: &Value, desired: &Value) -> Value {
    let mut object = entries(Some(&settled(prior, dry, desired)));
    if let Some(status) = prior.get("status") {
        let untouched = substance(prior).same(&substance(dry));
        object.insert("status".into(), if untouched { status.clone() } else { Value::Unknown });
    } else if dry.get("status").is_some() {
        object.insert("status".into(), Value::Unknown);
    }
    Value::map(object)
}

/// Known where the dry run leaves what is there, or does what was asked for.
fn settled(prior: &Value, dry: &Value, desired: &Value) -> Value {
    if prior.same(dry) {
        return dry.clone();
    }
    let sensitive = matches!(dry, Value::Sensitive(_));
    let known = match (dry.unmarked(), prior.unmarked(), desired.unmarked()) {
        (Value::Map(dry), prior, desired) => Value::map(dry.iter().map(|(key, dry)| {
            let [prior, desired] = [prior, desired].map(|value| value.get(key).cloned().unwrap_or_default());
            (Arc::clone(key), settled(&prior, dry, &desired))
        })),
        (Value::List(dry), prior, Value::List(desired)) if dry.len() == desired.len() => {
            let prior = match prior {
                Value::List(prior) if prior.len() == dry.len() => prior.to_vec(),
                _ => vec![Value::Null; dry.len()],
            };
            Value::list(
                prior
                    .iter()
                    .zip(dry.iter())
                    .zip(desired.iter())
                    .map(|((prior, dry), desired)| settled(prior, dry, desired)),
            )
        }
        (dry, _, desired) if dry.same(desired) && *dry != Value::Null => dry.clone(),
        _ => Value::Unknown,
    };
    if sensitive { known.into_sensitive() } else { known }
}

/// The object after an update that cannot be tried yet, since places of the manifest are unknown, or the server
/// makes no dry runs: what is set just as before stays known, everything else does not.
pub(crate) fn unsettled(prior: &Value, desired: &Value, desired_before: &Value) -> Value {
    let mut object = entries(Some(prior));
    let mut changed = false;
    for (name, value) in entries(Some(desired)) {
        if name.as_ref() == "metadata" {
            let before = entries(desired_before.get("metadata"));
            let mut metadata = entries(prior.get("metadata"));
            for (key, value) in entries(Some(&value)) {
                if value.has_unknown() || before.get(&key).is_none_or(|before| !before.same(&value)) {
                    metadata.insert(key, Value::Unknown);
                }
            }
            // The place of the object is never in doubt.
            for key in ["name", "namespace"] {
                if let Some(value) = prior.get("metadata").and_then(|metadata| metadata.get(key)) {
                    metadata.insert(key.into(), value.clone());
                }
            }
            object.insert(name, Value::map(metadata));
        } else if value.has_unknown() || desired_before.get(&name).is_none_or(|before| !before.same(&value)) {
            changed = true;
            object.insert(name, Value::Unknown);
        }
    }
    if changed {
        object.insert("status".into(), Value::Unknown);
        let metadata = entries(object.get("metadata"));
        if metadata.contains_key("generation") {
            object.insert("metadata".into(), Value::map(metadata).with("generation", Value::Unknown));
        }
    }
    Value::map(object)
}

/// A second plan of the same step may only know more than the first one: where the first knew something, it stays.
pub(crate) fn narrowed(before: &Value, now: &Value) -> Value {
    match (before, now) {
        (Value::Unknown, now) => now.clone(),
        (Value::Sensitive(before), now) => narrowed(before, now.unmarked()).into_sensitive(),
        (Value::Map(before), now) => Value::map(before.iter().map(|(key, before)| {
            let now = now.get(key).cloned().unwrap_or(Value::Unknown);
            (Arc::clone(key), narrowed(before, &now))
        })),
        (Value::List(before), Value::List(now)) if before.len() == now.len() => {
            Value::list(before.iter().zip(now.iter()).map(|(before, now)| narrowed(before, now)))
        }
        (before, _) => before.clone(),
    }
}

/// Whether an update would leave the object as it is.
pub(crate) fn is_settled(live: &Value, dry: &Value) -> bool {
    comparable(live).same(&comparable(dry))
}

/// Whether everything that `wanted` sets is so in `object`: all that can be told without a dry run.
pub(crate) fn contains(object: &Value, wanted: &Value) -> bool {
    match (object.unmarked(), wanted.unmarked()) {
        (Value::Map(object), Value::Map(wanted)) => {
            wanted.iter().all(|(key, wanted)| object.get(key).is_some_and(|object| contains(object, wanted)))
        }
        (Value::List(object), Value::List(wanted)) => {
            object.len() == wanted.len()
                && object.iter().zip(wanted.iter()).all(|(object, wanted)| contains(object, wanted))
        }
        (object, wanted) => object.same(wanted),
    }
}

/// Which changes make it another object: the paths below `spec.config`. `prior` is the object as it is, `before` the
/// manifest that it was made from (null for an imported one), `namespace` where the manifest asks for it to be.
pub(crate) fn moved(prior: &Target, before: &Value, manifest: &Value, namespace: Option<&str>) -> Vec<Path> {
    let mut paths = Vec::new();
    let root = Path::default().name("manifest");
    let differs = |value: Option<&Value>, now: &str| value.is_some_and(|value| value.as_str() != Some(now));
    if differs(manifest.get("apiVersion"), &prior.api_version) {
        paths.push(root.name("apiVersion"));
    }
    if differs(manifest.get("kind"), &prior.kind) {
        paths.push(root.name("kind"));
    }
    let root = root.name("metadata");
    let metadata = manifest.get("metadata");
    let asked = |name: &str| metadata.and_then(|m| m.get(name)).filter(|value| *value.unmarked() != Value::Null);
    if namespace.is_some_and(|namespace| namespace != prior.namespace)
        || matches!(asked("namespace").map(Value::unmarked), Some(Value::Unknown))
    {
        paths.push(root.name("namespace"));
    }
    if differs(asked("name"), &prior.name) {
        paths.push(root.name("name"));
    }
    if let Some(prefix) = asked("generateName") {
        let before = before.get("metadata").and_then(|m| m.get("generateName"));
        let kept = match before.filter(|value| **value != Value::Null) {
            Some(before) => before.same(prefix),
            // An object that was imported, or had a name of its own, may go on under the prefix that it fits.
            None => prefix.as_str().is_some_and(|prefix| prior.name.starts_with(prefix)),
        };
        if !kept || prefix.has_unknown() {
            paths.push(root.name("generateName"));
        }
    }
    paths
}

/// Unknown places of fields that are known to be immutable: whatever comes there, it will not be an update.
pub(crate) fn unknown_immutable(manifest: &Value, prior: &Value) -> Vec<Path> {
    let text = |name: &str| manifest.get(name).and_then(Value::as_str).unwrap_or_default();
    let frozen = prior.get("immutable") == Some(&Value::Bool(true));
    let fields: &[&[&str]] = match (group_of(text("apiVersion")), text("kind")) {
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet") => &[&["spec", "selector"]],
        ("apps", "StatefulSet") => {
            &[&["spec", "selector"], &["spec", "serviceName"], &["spec", "volumeClaimTemplates"]]
        }
        ("batch", "Job") => &[&["spec", "template"], &["spec", "selector"]],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &[&["roleRef"]],
        ("", "Secret") if frozen => &[&["data"], &["stringData"], &["type"]],
        ("", "Secret") => &[&["type"]],
        ("", "ConfigMap") if frozen => &[&["data"], &["binaryData"]],
        ("", "PersistentVolumeClaim") => &[&["spec", "storageClassName"], &["spec", "volumeName"]],
        _ => &[],
    };
    let paths = fields.iter().map(|names| names.iter().fold(Path::default(), |path, name| path.name(*name)));
    paths
        .filter(|path| manifest.at(path).is_some_and(|value| value.has_unknown()))
        .map(|path| path.0.into_iter().fold(Path::default().name("manifest"), |path, segment| path.join(segment)))
        .collect()
}

fn is_empty_map(value: &Value) -> bool {
    matches!(value.unmarked(), Value::Map(map) if map.is_empty())
}

fn is_leaf(value: &Value) -> bool {
    !matches!(value.unmarked(), Value::Map(_) | Value::List(_))
}

#[cfg(test)]
mod tests;
