//! The fields that the server adds to objects, as far as Purlin or its tests use them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// Sets the defaults of an object.
pub fn fill(kind: &Kind, object: &mut Value) {
    match (&*kind.group, &*kind.plural) {
        ("", "secrets") => secret(object),
        ("", "services") => service(object),
        ("", "namespaces") => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        _ if kind.custom => from_schema(&kind.schema, object),
        _ => {}
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        drop_empty(metadata, &["labels", "annotations", "finalizers", "ownerReferences"]);
    }
    if !kind.custom {
        drop_nulls(object);
        if let Some(map) = object.as_object_mut() {
            drop_empty(map, &["data", "stringData", "binaryData"]);
        }
    }
}

/// Removes fields whose value is empty or null.
fn drop_empty(map: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        let empty = map.get(*name).is_some_and(|value| match value {
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            value => value.is_null(),
        });
        if empty {
            map.remove(*name);
        }
    }
}

/// Removes null values, which built-in kinds do not store.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn secret(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    map.entry("type").or_insert_with(|| json!("Opaque"));
    if let Some(Value::Object(strings)) = map.remove("stringData") {
        let data = map.entry("data").or_insert_with(|| json!({}));
        for (key, text) in strings {
            data[key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
        }
    }
}

fn service(object: &mut Value) {
    let Some(spec) = object["spec"].as_object_mut() else { return };
    for (name, value) in [
        ("type", json!("ClusterIP")),
        ("sessionAffinity", json!("None")),
        ("internalTrafficPolicy", json!("Cluster")),
        ("ipFamilies", json!(["IPv4"])),
        ("ipFamilyPolicy", json!("SingleStack")),
    ] {
        spec.entry(name).or_insert(value);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let number = port["port"].clone();
        if let Some(port) = port.as_object_mut() {
            port.entry("protocol").or_insert_with(|| json!("TCP"));
            port.entry("targetPort").or_insert(number);
        }
    }
}

/// Sets the defaults of a schema at all levels.
fn from_schema(schema: &Value, value: &mut Value) {
    if let (Some(properties), Value::Object(map)) = (schema["properties"].as_object(), &mut *value) {
        for (name, schema) in properties {
            if name == "metadata" {
                continue;
            }
            if let Some(default) = schema.get("default").filter(|_| map.get(name).is_none_or(Value::is_null)) {
                map.insert(name.clone(), default.clone());
            }
            if let Some(below) = map.get_mut(name) {
                from_schema(schema, below);
            }
        }
    }
    if let (Some(items), Value::Array(list)) = (schema.get("items"), &mut *value) {
        list.iter_mut().for_each(|item| from_schema(items, item));
    }
    if let (Some(values), Value::Object(map)) = (schema.get("additionalProperties"), value)
        && values.is_object()
    {
        map.values_mut().for_each(|item| from_schema(values, item));
    }
}
