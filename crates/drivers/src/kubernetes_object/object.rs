//! Converts objects of the server to the value of the attribute `object`, and compares them.

use std::sync::Arc;

use serde_json::Value as Json;

use model::{ObjectState, Value};

use super::kstatus;
use super::manifest::{entries, is_secret};
use super::target::Target;

/// kubectl stores a copy of the whole manifest in this annotation, including secrets.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

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

    #[test]
    fn status_and_generation_are_not_compared() {
        let object = |generation: u64, status: &str| {
            comparable(&Value::from_json(json!({"kind": "X", "status": {"a": status},
                "metadata": {"name": "x", "generation": generation, "labels": {}}})))
        };
        assert_eq!(object(1, "x"), object(2, "y"));
    }
}
