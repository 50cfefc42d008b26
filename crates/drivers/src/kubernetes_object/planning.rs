//! Plans the attribute `object`: values from the manifest or the current object are known, values that only the server
//! sets are unknown. Pure.
//!
//! A field that the server may add must be planned as unknown, or the map that contains it must be unknown as a whole.
//! A dry run shows which fields the server adds. Without one, only kinds to which the server adds no fields are planned
//! in depth.

use std::sync::Arc;

use model::{Path, Value};

use super::manifest::entries;
use super::object::{body, comparable};
use super::target::{Target, group_of};

/// The fields that the server adds to a new object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// None except in metadata.
    Closed,
    /// The fields in the result of this dry run.
    DryRun(&'a Value),
    Open,
}

/// Whether the server adds no fields to objects of this kind, except in metadata.
pub(crate) fn is_closed(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "ConfigMap" | "ServiceAccount") | ("rbac.authorization.k8s.io", "Role" | "ClusterRole")
    )
}

/// Plans a new object from the object that will be applied.
pub(crate) fn plan_create(desired: &Value, shape: Shape<'_>) -> Value {
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
        // Kinds without a spec have no generation, and the server omits empty maps.
        metadata.remove("generation");
        metadata.retain(|_, value| !is_empty_map(value));
        object.retain(|_, value| !is_empty_map(value));
    }
    object.insert("metadata".into(), Value::map(metadata));
    Value::map(object)
}

/// The dry-run value, unknown wherever it differs from the desired value.
fn known_where_set(desired: &Value, dry: &Value) -> Value {
    let sensitive = matches!(desired, Value::Sensitive(_));
    let known = match (desired.unmarked(), dry.unmarked()) {
        (Value::Map(desired), Value::Map(dry)) => Value::map(dry.iter().map(|(key, dry)| {
            let value = desired.get(key).map_or(Value::Unknown, |desired| known_where_set(desired, dry));
            (Arc::clone(key), value)
        })),
        (Value::List(desired), Value::List(dry)) if desired.len() == dry.len() => {
            Value::list(desired.iter().zip(dry.iter()).map(|(desired, dry)| known_where_set(desired, dry)))
        }
        (desired, dry) if desired.equals_unmarked(dry) => desired.clone(),
        _ => Value::Unknown,
    };
    if sensitive { known.into_sensitive() } else { known }
}

/// Plans an update from its dry run.
pub(crate) fn plan_update(prior: &Value, dry: &Value, desired: &Value) -> Value {
    let mut object = entries(Some(&known_after_update(prior, dry, desired)));
    if let Some(status) = prior.get("status") {
        let untouched = body(prior).equals_unmarked(&body(dry));
        object.insert("status".into(), if untouched { status.clone() } else { Value::Unknown });
    } else if dry.get("status").is_some() {
        object.insert("status".into(), Value::Unknown);
    }
    Value::map(object)
}

/// The dry-run value, known where it matches the prior or the desired value.
fn known_after_update(prior: &Value, dry: &Value, desired: &Value) -> Value {
    if prior.equals_unmarked(dry) {
        return dry.clone();
    }
    let sensitive = matches!(dry, Value::Sensitive(_));
    let known = match (dry.unmarked(), prior.unmarked(), desired.unmarked()) {
        (Value::Map(dry), prior, desired) => Value::map(dry.iter().map(|(key, dry)| {
            let [prior, desired] = [prior, desired].map(|value| value.get(key).cloned().unwrap_or_default());
            (Arc::clone(key), known_after_update(&prior, dry, &desired))
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
                    .map(|((prior, dry), desired)| known_after_update(prior, dry, desired)),
            )
        }
        (dry, _, desired) if dry.equals_unmarked(desired) && *dry != Value::Null => dry.clone(),
        _ => Value::Unknown,
    };
    if sensitive { known.into_sensitive() } else { known }
}

/// Plans an update without a dry run, because the manifest has unknown values or the server supports no dry run. Fields
/// that the manifest sets as before stay known.
pub(crate) fn plan_update_without_dry_run(prior: &Value, desired: &Value, desired_before: &Value) -> Value {
    let mut object = entries(Some(prior));
    let mut changed = false;
    for (name, value) in entries(Some(desired)) {
        if name.as_ref() == "metadata" {
            let before = entries(desired_before.get("metadata"));
            let mut metadata = entries(prior.get("metadata"));
            for (key, value) in entries(Some(&value)) {
                if value.has_unknown() || before.get(&key).is_none_or(|before| !before.equals_unmarked(&value)) {
                    metadata.insert(key, Value::Unknown);
                }
            }
            // Name and namespace are always known.
            for key in ["name", "namespace"] {
                if let Some(value) = prior.get("metadata").and_then(|metadata| metadata.get(key)) {
                    metadata.insert(key.into(), value.clone());
                }
            }
            object.insert(name, Value::map(metadata));
        } else if value.has_unknown() || desired_before.get(&name).is_none_or(|before| !before.equals_unmarked(&value))
        {
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

/// Merges the final plan of a step into its first plan: known values of the first plan are kept.
pub(crate) fn refine(before: &Value, now: &Value) -> Value {
    match (before, now) {
        (Value::Unknown, now) => now.clone(),
        (Value::Sensitive(before), now) => refine(before, now.unmarked()).into_sensitive(),
        (Value::Map(before), now) => Value::map(before.iter().map(|(key, before)| {
            let now = now.get(key).cloned().unwrap_or(Value::Unknown);
            (Arc::clone(key), refine(before, &now))
        })),
        (Value::List(before), Value::List(now)) if before.len() == now.len() => {
            Value::list(before.iter().zip(now.iter()).map(|(before, now)| refine(before, now)))
        }
        (before, _) => before.clone(),
    }
}

/// Whether the update of the dry run changes nothing.
pub(crate) fn is_unchanged(live: &Value, dry: &Value) -> bool {
    comparable(live).equals_unmarked(&comparable(dry))
}

/// Whether `object` has all fields of the desired object, for a comparison without a dry run.
pub(crate) fn contains(object: &Value, desired: &Value) -> bool {
    match (object.unmarked(), desired.unmarked()) {
        (Value::Map(object), Value::Map(desired)) => {
            desired.iter().all(|(key, desired)| object.get(key).is_some_and(|object| contains(object, desired)))
        }
        (Value::List(object), Value::List(desired)) => {
            object.len() == desired.len()
                && object.iter().zip(desired.iter()).all(|(object, desired)| contains(object, desired))
        }
        (object, desired) => object.equals_unmarked(desired),
    }
}

/// Returns the paths, relative to `spec.config`, whose change replaces the object. `before` is the manifest of the
/// prior object (null for an imported one), `namespace` the desired namespace.
pub(crate) fn replacing_paths(prior: &Target, before: &Value, manifest: &Value, namespace: Option<&str>) -> Vec<Path> {
    let mut paths = Vec::new();
    let root = Path::default().name("manifest");
    // Every version of a group shows the same object.
    let group = manifest.get("apiVersion").and_then(Value::as_str).map(group_of);
    if group.is_some_and(|group| group != prior.group()) {
        paths.push(root.name("apiVersion"));
    }
    if differs(manifest.get("kind"), &prior.kind) {
        paths.push(root.name("kind"));
    }
    let root = root.name("metadata");
    let metadata = manifest.get("metadata");
    let [configured_namespace, name, prefix] = ["namespace", "name", "generateName"]
        .map(|name| metadata.and_then(|m| m.get(name)).filter(|value| *value.unmarked() != Value::Null));
    if namespace.is_some_and(|namespace| namespace != prior.namespace)
        || matches!(configured_namespace.map(Value::unmarked), Some(Value::Unknown))
    {
        let unset = &Value::Null;
        let before = before.get("metadata").and_then(|m| m.get("namespace")).unwrap_or(unset);
        if !configured_namespace.unwrap_or(unset).equals_unmarked(before) {
            paths.push(root.name("namespace"));
        } else if paths.is_empty() {
            // No manifest names it: the scope of the kind has changed, or an object elsewhere was imported.
            paths.push(Path::default().name("object").name("metadata").name("namespace"));
        }
    }
    if differs(name, &prior.name) {
        paths.push(root.name("name"));
    }
    if let Some(prefix) = prefix {
        let before = before.get("metadata").and_then(|m| m.get("generateName"));
        let unchanged = match before.filter(|value| **value != Value::Null) {
            Some(before) => before.equals_unmarked(prefix),
            // An object that was imported or had a fixed name is kept if its name has the prefix.
            None => prefix.as_str().is_some_and(|prefix| prior.name.starts_with(prefix)),
        };
        if !unchanged || prefix.has_unknown() {
            paths.push(root.name("generateName"));
        }
    }
    paths
}

fn differs(value: Option<&Value>, prior: &str) -> bool {
    value.is_some_and(|value| value.as_str() != Some(prior))
}

/// The paths of immutable fields with unknown values: their change may not be an update.
pub(crate) fn unknown_immutable(manifest: &Value, prior: &Value) -> Vec<Path> {
    let [api_version, kind] =
        ["apiVersion", "kind"].map(|name| manifest.get(name).and_then(Value::as_str).unwrap_or_default());
    let frozen = prior.get("immutable") == Some(&Value::Bool(true));
    let fields: &[&[&str]] = match (group_of(api_version), kind) {
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
