//! The paths of sensitive values in a state.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use cty::Type;
use model::Value;

/// Returns the paths of sensitive values. Records do not distinguish maps from objects, but their steps differ in a
/// state. Without a type, both are written; Terraform and OpenTofu ignore a path that does not exist.
pub fn paths(value: &Value, ty: Option<&Type>) -> Vec<Json> {
    let mut found = Vec::new();
    let Value::Map(entries) = value else { return found };
    for (key, item) in entries.iter() {
        let mut at = vec![attribute(key)];
        collect(item, ty.and_then(|ty| ty.entry(key)), &mut at, &mut found);
    }
    found
}

fn attribute(key: &str) -> Json {
    json!({"type": "get_attr", "value": key})
}

fn index(key: &str) -> Json {
    json!({"type": "index", "value": {"value": key, "type": "string"}})
}

fn collect(value: &Value, ty: Option<&Type>, at: &mut Vec<Json>, found: &mut Vec<Json>) {
    let mut below = |step: Json, item: &Value, ty: Option<&Type>| {
        at.push(step);
        collect(item, ty, at, found);
        at.pop();
    };
    match (value, ty) {
        (Value::Sensitive(_), _) => found.push(Json::Array(at.clone())),
        (Value::Map(entries), ty) => {
            let each = |(key, item): (&Arc<str>, &Value)| {
                let inner = ty.and_then(|ty| ty.entry(key));
                if !matches!(ty, Some(Type::Map(_))) {
                    below(attribute(key), item, inner);
                }
                if !matches!(ty, Some(Type::Object(_))) {
                    below(index(key), item, inner);
                }
            };
            entries.iter().for_each(each);
        }
        // Terraform marks the whole set.
        (Value::List(_), Some(Type::Set(_))) if value.has_sensitive() => found.push(Json::Array(at.clone())),
        (Value::List(items), ty) => {
            for (place, item) in items.iter().enumerate() {
                let inner = ty.and_then(|ty| ty.item(place));
                below(json!({"type": "index", "value": {"value": place, "type": "number"}}), item, inner);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &Value, ty: Option<&Type>) -> Vec<String> {
        let step = |step: &Json| match step["type"].as_str() {
            Some("get_attr") => format!(".{}", step["value"].as_str().unwrap()),
            _ => format!("[{}]", step["value"]["value"]),
        };
        let path = |path: &Json| path.as_array().unwrap().iter().map(step).collect::<String>();
        paths(value, ty).iter().map(path).collect()
    }

    #[test]
    fn each_sensitive_path_is_written_once() {
        let secret = || Value::from("s").into_sensitive();
        let one = Value::map([("key", secret())]);
        let value = Value::map([
            ("object", one.clone()),
            ("map", one.clone()),
            ("list", Value::list([one.clone()])),
            ("set", Value::list([one])),
        ]);
        let object = || Type::object([("key", Type::String)]);
        let ty = Type::object([
            ("object", object()),
            ("map", Type::map(Type::String)),
            ("list", Type::list(object())),
            ("set", Type::set(object())),
        ]);
        assert_eq!(shown(&value, Some(&ty)), [".list[0].key", ".map[\"key\"]", ".object.key", ".set"]);
        assert_eq!(shown(&Value::map([("a", Value::map([("b", secret())]))]), None), [".a.b", ".a[\"b\"]"]);
    }
}
