//! The server's object as the value of the attribute `object`, and how two of them compare.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::model::{ObjectState, Value};

use super::manifest::{entries, is_secret};
use super::target::Target;

/// What kubectl leaves at objects: a copy of the whole manifest, and so of everything secret in it.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The recorded state of an object: `manifest` as it was configured, `object` as the server has it.
pub(crate) fn state(live: &Json, manifest: &Value) -> ObjectState {
    let object = value(live, manifest);
    let id = live["metadata"]["uid"].as_str().map_or(Value::Null, Value::from);
    let identity = Target::of_object(&object).map(|target| target.identity());
    let value = Value::map([("id", id), ("manifest", manifest.clone()), ("object", object)]);
    ObjectState { value, private: Arc::from([]), identity }
}

/// The attribute `object`: without `managedFields`, without `resourceVersion` (which changes with every heartbeat
/// of whoever writes to the object), and with everything marked that the manifest marks.
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

/// `value` with a mark at each place that is marked in `pattern`. A list that holds a mark anywhere is marked as a
/// whole, since the server may have put its items into another order.
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

/// An object without what changes though nobody asked for it: status, generation, versions.
pub(crate) fn comparable(object: &Value) -> Value {
    let mut top = entries(Some(object));
    top.remove("status");
    let mut metadata = entries(top.get("metadata"));
    for name in ["generation", "managedFields", "resourceVersion"] {
        metadata.remove(name);
    }
    // A map that holds nothing and a map that is absent are the same to every client of the API.
    metadata.retain(|_, value| !matches!(value.unmarked(), Value::Map(map) if map.is_empty()));
    top.insert("metadata".into(), Value::map(metadata));
    Value::map(top)
}

/// Everything but `metadata` and `status`: what a controller of this kind acts upon.
pub(crate) fn substance(object: &Value) -> Value {
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
    fn volatile_and_secret_metadata_stay_out_of_the_object() {
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
    fn marks_of_the_manifest_reach_the_object() {
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
    fn heartbeats_make_no_difference() {
        let object = |generation: u64, status: &str| {
            comparable(&Value::from_json(json!({"kind": "X", "status": {"a": status},
                "metadata": {"name": "x", "generation": generation, "labels": {}}})))
        };
        assert_eq!(object(1, "x"), object(2, "y"));
    }
}
