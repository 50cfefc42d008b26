//! The paths of sensitive values in a state.

use serde_json::{Value as Json, json};

use cty::Type;
use model::Value;

/// Returns the paths of sensitive values. Records do not distinguish maps from objects, but their steps differ in a
/// state. Without a type, both are written; Terraform and OpenTofu ignore a path that does not exist.
pub fn paths(value: &Value, ty: Option<&Type>) -> Vec<Json> {
    let mut collector = Collector::default();
    if let Value::Map(entries) = value {
        for (key, item) in entries.iter() {
            collector.collect_at(attribute(key), item, ty.and_then(|ty| ty.entry(key)));
        }
    }
    collector.paths
}

fn attribute(key: &str) -> Json {
    json!({"type": "get_attr", "value": key})
}

fn index(key: &str) -> Json {
    json!({"type": "index", "value": {"value": key, "type": "string"}})
}

#[derive(Default)]
struct Collector {
    /// The steps to the value that is looked at.
    steps: Vec<Json>,
    paths: Vec<Json>,
}

impl Collector {
    fn collect_at(&mut self, step: Json, value: &Value, ty: Option<&Type>) {
        self.steps.push(step);
        self.collect(value, ty);
        self.steps.pop();
    }

    fn collect(&mut self, value: &Value, ty: Option<&Type>) {
        match (value, ty) {
            (Value::Sensitive(_), _) => self.paths.push(Json::Array(self.steps.clone())),
            (Value::Map(entries), ty) => {
                for (key, item) in entries.iter() {
                    let inner = ty.and_then(|ty| ty.entry(key));
                    if !matches!(ty, Some(Type::Map(_))) {
                        self.collect_at(attribute(key), item, inner);
                    }
                    if !matches!(ty, Some(Type::Object(_))) {
                        self.collect_at(index(key), item, inner);
                    }
                }
            }
            // Terraform marks the whole set.
            (Value::List(_), Some(Type::Set(_))) if value.has_sensitive() => {
                self.paths.push(Json::Array(self.steps.clone()));
            }
            (Value::List(items), ty) => {
                for (place, item) in items.iter().enumerate() {
                    let step = json!({"type": "index", "value": {"value": place, "type": "number"}});
                    self.collect_at(step, item, ty.and_then(|ty| ty.item(place)));
                }
            }
            _ => {}
        }
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
