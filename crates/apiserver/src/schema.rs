//! Checks custom objects against the schema of their CRD: drops unknown fields, and reports invalid values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, OnceLock, PoisonError};

use regex::Regex;
use serde_json::Value;

use super::kinds::Kind;
use super::refusal::Cause;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Drops the fields that are not in the schema.
pub fn prune(kind: &Kind, object: &mut Value) {
    if let (true, Some(map)) = (kind.custom, object.as_object_mut()) {
        let properties = &kind.schema["properties"];
        map.retain(|name, _| {
            matches!(name.as_str(), "apiVersion" | "kind" | "metadata") || !properties[name].is_null()
        });
        for (name, value) in map.iter_mut().filter(|(name, _)| *name != "metadata") {
            prune_in(&properties[name], value);
        }
    }
}

fn prune_in(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let properties = schema["properties"].as_object();
            let values = schema.get("additionalProperties").filter(|values| values.is_object());
            if schema[PRESERVE] != true && values.is_none() && schema["additionalProperties"] != true {
                map.retain(|name, _| properties.is_some_and(|properties| properties.contains_key(name)));
            }
            for (name, value) in map.iter_mut() {
                match (properties.and_then(|properties| properties.get(name)), values) {
                    (Some(schema), _) | (None, Some(schema)) => prune_in(schema, value),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) if schema["items"].is_object() => {
            items.iter_mut().for_each(|item| prune_in(&schema["items"], item));
        }
        _ => {}
    }
}

/// Returns the violations of the schema.
pub fn check(kind: &Kind, object: &Value, is_update: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    if kind.custom {
        check_in(&kind.schema, object, "", is_update, &mut causes);
    }
    // CEL rules are only checked for objects without other errors.
    if !causes.is_empty() && kind.schema.to_string().contains("x-kubernetes-validations") {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                   complete validation";
        causes.push(Cause::invalid("<nil>", &Value::Null, why));
    }
    causes
}

fn check_in(schema: &Value, value: &Value, path: &str, is_update: bool, causes: &mut Vec<Cause>) {
    if path == "metadata" || schema.is_null() || (value.is_null() && schema["nullable"] == true) {
        return;
    }
    if let Some(wanted) = wrong_type(schema, value) {
        let found = type_of(value);
        // The real server validates the parts of an update separately, and names only the last segment of the path.
        let named = if is_update { path.rsplit('.').next().unwrap_or(path) } else { path };
        let why = format!("Invalid value: \"{found}\": {named} in body must be of type {wanted}: \"{found}\"");
        return causes.push(Cause::new("FieldValueTypeInvalid", path, why));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let why = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        causes.push(Cause::new("FieldValueNotSupported", path, why));
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let known = schema["properties"].get(name);
                let known = known.or(schema.get("additionalProperties").filter(|values| values.is_object()));
                if let Some(schema) = known {
                    check_in(schema, value, &below(path, name), is_update, causes);
                }
            }
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !map.contains_key(name) {
                    causes.push(Cause::required(below(path, name), ""));
                }
            }
        }
        Value::Array(items) => list(schema, items, path, is_update, causes),
        Value::String(text) => string(schema, text, path, causes),
        Value::Number(number) => {
            if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), number.as_f64())
                && number < least
            {
                let why = format!("{path} in body should be greater than or equal to {least}");
                causes.push(Cause::invalid(path, value, &why));
            }
        }
        _ => {}
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn list(schema: &Value, items: &[Value], path: &str, is_update: bool, causes: &mut Vec<Cause>) {
    for (at, item) in items.iter().enumerate() {
        check_in(&schema["items"], item, &format!("{path}[{at}]"), is_update, causes);
    }
    if let Some(most) = schema["maxItems"].as_u64().filter(|most| items.len() as u64 > *most) {
        let why = format!("Too many: {}: must have at most {most} items", items.len());
        causes.push(Cause::new("FieldValueTooMany", path, why));
    }
    let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array() else { return };
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let key: BTreeMap<&str, &Value> = keys.iter().filter_map(Value::as_str).map(|key| (key, &item[key])).collect();
        let key = serde_json::to_string(&key).expect("a map of strings");
        if !seen.insert(key.clone()) {
            let why = format!("Duplicate value: {key}");
            causes.push(Cause::new("FieldValueDuplicate", format!("{path}[{at}]"), why));
        }
    }
}

fn string(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        causes.push(Cause::new("FieldValueTooLong", path, format!("Too long: may not be more than {most} bytes")));
    }
    if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        let why = format!("{path} in body should be at least {least} chars long");
        causes.push(Cause::invalid(path, &text.into(), &why));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && !matches(pattern, text)
    {
        let why = format!("{path} in body should match '{pattern}'");
        causes.push(Cause::invalid(path, &text.into(), &why));
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    static KNOWN: OnceLock<Mutex<BTreeMap<String, Regex>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if !known.contains_key(pattern) {
        known.insert(pattern.to_owned(), Regex::new(pattern).expect("a pattern of the CRDs"));
    }
    known[pattern].is_match(text)
}

/// Returns the expected type if the value has another one.
fn wrong_type<'s>(schema: &'s Value, value: &Value) -> Option<&'s str> {
    if schema["x-kubernetes-int-or-string"] == true {
        return (!value.is_i64() && !value.is_string()).then_some("integer,string");
    }
    let wanted = schema["type"].as_str()?;
    let fits = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    };
    (!fits).then_some(wanted)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
