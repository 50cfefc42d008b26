//! Converts objects of the server to the value of the attribute `object`, and compares them.

use std::sync::Arc;

use serde_json::Value as Json;

use model::{ObjectState, Value};

use super::kstatus;
use super::manifest::{entries, is_secret};
use super::target::Target;

/// kubectl stores a copy of the whole manifest in this annotation, including secrets.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The state of an object: `manifest` as configured, `object` as returned by the server.
pub(crate) fn state(live: &Json, manifest: &Value) -> ObjectState {
    let object = value(live, manifest);
    let id = live["metadata"]["uid"].as_str().map_or(Value::Null, Value::from);
    let identity = Target::of_object(&object).map(|target| target.identity());
    let value = Value::map([("id", id), ("manifest", manifest.clone()), ("object", object)]);
    ObjectState { value, private: Arc::from([]), identity, health: Some(kstatus::of_live(live)) }
}

/// The attribute `object`: without `managedFields` and `resourceVersion` (which changes with every write to the
/// object), and with the sensitive marks of the manifest.
pub(crate) fn value(live: &Json, manifest: &Value) -> Value {
    let mut live = live.clone();
    if let Some(metadata) = live.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    let object = Value::from_json(live);
    let object = match object.get("data") {
        Some(data) if is_secret(&object) => object.with("data", data.clone().into_sensitive()),
        _ => object,
    };
    with_marks_of(object, manifest)
}

/// Copies the marks of `pattern` to `value`. A list that contains a mark is marked as a whole, since the server may
/// reorder its items.
fn with_marks_of(value: Value, pattern: &Value) -> Value {
    match (pattern, value) {
        (Value::Sensitive(_), value) => value.into_sensitive(),
        (Value::List(_), value) if pattern.has_sensitive() => value.into_sensitive(),
        (Value::Map(pattern), Value::Map(map)) if pattern.values().any(Value::has_sensitive) => {
            Value::map(map.iter().map(|(key, item)| {
                let item = item.clone();
                (Arc::clone(key), pattern.get(key).map_or(item.clone(), |pattern| with_marks_of(item, pattern)))
            }))
        }
        (_, value) => value,
    }
}

/// The value of an object after a wait, if another client has changed a field of its manifest meanwhile: with these fields
/// and the generation as in `written`, the value before the wait.
pub(crate) fn as_written(written: &Value, now: &Value) -> Option<Value> {
    let (before, after) = (written.get("object")?, now.get("object")?);
    let mut pattern = entries(written.get("manifest"));
    pattern.remove("status");
    let kept = with_fields_of(before, after, &Value::map(pattern));
    if kept.equals_unmarked(after) {
        return None;
    }
    let generation = before.get("metadata")?.get("generation").cloned();
    let metadata = kept.get("metadata")?;
    let metadata = generation.map_or_else(|| metadata.clone(), |generation| metadata.with("generation", generation));
    Some(now.with("object", kept.with("metadata", metadata)))
}

/// `after` with those fields of `before` that the pattern has.
fn with_fields_of(before: &Value, after: &Value, pattern: &Value) -> Value {
    match (before, after, pattern) {
        (Value::Map(before), Value::Map(after), Value::Map(pattern)) => {
            let mut fields = after.to_tree();
            for (name, pattern) in pattern.iter() {
                let Some(before) = before.get(name) else { continue };
                let after = fields.get(name).unwrap_or(&Value::Null);
                let field = with_fields_of(before, after, pattern);
                fields.insert(name.clone(), field);
            }
            Value::map(fields)
        }
        (Value::List(before), Value::List(after), Value::List(pattern))
            if before.len() == after.len() && after.len() == pattern.len() =>
        {
            let items = before.iter().zip(after.iter()).zip(pattern.iter());
            Value::list(items.map(|((before, after), pattern)| with_fields_of(before, after, pattern)))
        }
        _ => before.clone(),
    }
}

/// The object without status, generation and resource version.
pub(crate) fn comparable(object: &Value) -> Value {
    let mut top = entries(Some(object));
    top.remove("status");
    let mut metadata = entries(top.get("metadata"));
    for name in ["generation", "managedFields", "resourceVersion"] {
        metadata.remove(name);
    }
    // An empty map and a missing map are equivalent.
    metadata.retain(|_, value| !matches!(value.unmarked(), Value::Map(map) if map.is_empty()));
    top.insert("metadata".into(), Value::map(metadata));
    Value::map(top)
}

/// The object without `metadata` and `status`.
pub(crate) fn body(object: &Value) -> Value {
    let mut top = entries(Some(object));
    top.remove("status");
    top.remove("metadata");
    Value::map(top)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn volatile_and_secret_metadata_is_removed() {
        let live = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA=="}, "metadata": {
            "name": "site", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "managedFields": [],
            "annotations": {LAST_APPLIED: "{\"data\":{\"a\":\"eA==\"}}", "x": "y"}}});
        let state = state(&live, &Value::Null);
        assert_eq!(
            state.value.to_public_json(),
            json!({"id": "u-1", "manifest": null, "object": {"apiVersion": "v1", "kind": "Secret",
                "data": {"sensitive": true},
                "metadata": {"annotations": {"x": "y"}, "name": "site", "namespace": "shop", "uid": "u-1"}}})
        );
        assert_eq!(state.identity.unwrap().get("name"), Some(&Value::from("site")));
    }

    #[test]
    fn marks_of_the_manifest_are_copied_to_the_object() {
        let secret = || Value::from("s").into_sensitive();
        let manifest = Value::map([
            ("data", Value::map([("a", secret()), ("b", Value::from("t"))])),
            ("list", Value::list([Value::map([("value", secret())])])),
        ]);
        let live = json!({"data": {"a": "s", "b": "t", "c": "u"}, "list": [{"value": "s", "more": 1}]});
        assert_eq!(
            value(&live, &manifest).to_public_json(),
            json!({"data": {"a": {"sensitive": true}, "b": "t", "c": "u"}, "list": {"sensitive": true}})
        );
    }

    fn compared(generation: u64, status: &str) -> Value {
        comparable(&Value::from_json(json!({"kind": "X", "status": {"a": status},
            "metadata": {"name": "x", "generation": generation, "labels": {}}})))
    }

    #[test]
    fn status_and_generation_are_not_compared() {
        assert_eq!(compared(1, "x"), compared(2, "y"));
    }

    /// A controller fills in what the manifest does not set; another client changes what it sets.
    #[test]
    fn only_a_changed_field_of_the_manifest_is_as_it_was_written() {
        let value = |generation: u64, label: &str, image: &str, tag: &str, ready: u64| {
            let manifest = json!({"metadata": {"labels": {"a": "x"}}, "spec": {"containers": [{"image": "web:1"}]},
                "status": {"ready": 7}});
            let metadata = json!({"generation": generation, "labels": {"a": label, "of": tag}});
            let spec = json!({"containers": [{"image": image, "terminationMessagePath": tag}]});
            let object = json!({"metadata": metadata, "spec": spec, "status": {"ready": ready}});
            Value::from_json(json!({"id": "u", "manifest": manifest, "object": object}))
        };
        let written = value(1, "x", "web:1", "", 0);
        assert_eq!(as_written(&written, &value(2, "x", "web:1", "filled", 1)), None);
        let expected = Some(value(1, "x", "web:1", "filled", 1));
        assert_eq!(as_written(&written, &value(2, "x", "other", "filled", 1)), expected);
        assert_eq!(as_written(&written, &value(1, "other", "web:1", "filled", 1)), expected);
    }
}
