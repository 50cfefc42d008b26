//! How objects are called where people read: the ID of a Kubernetes object is a UID, which says nothing.

use super::text::one_line;
use super::{Path, Value};

/// The ID of an object as lists show it: `KIND/NAME` of a Kubernetes object, otherwise its `id`. `None` if there is none
/// that may be seen.
pub fn display_id(value: &Value) -> Option<String> {
    kubernetes_name(value).or_else(|| visible(value, &["id"]))
}

/// `KIND/NAME` of the Kubernetes object that a value describes, as it is on the API server or as the configuration has
/// it; only the kind if the name is not known.
pub fn kubernetes_name(value: &Value) -> Option<String> {
    ["object", "manifest"].iter().find_map(|field| {
        let kind = visible(value, &[field, "kind"])?;
        Some(match visible(value, &[field, "metadata", "name"]) {
            Some(name) => format!("{kind}/{name}"),
            None => kind,
        })
    })
}

fn visible(value: &Value, path: &[&str]) -> Option<String> {
    match value.at(&Path::of(path))? {
        Value::String(text) => Some(one_line(&text).into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(json: serde_json::Value) -> Option<String> {
        display_id(&Value::from_json(json))
    }

    #[test]
    fn a_kubernetes_object_is_called_by_kind_and_name() {
        let manifest = json!({"kind": "Deployment", "metadata": {"name": "web"}});
        let object = json!({"kind": "Deployment", "metadata": {"name": "web-x7k", "uid": "u"}});
        assert_eq!(shown(json!({"id": "u", "manifest": manifest, "object": object})).unwrap(), "Deployment/web-x7k");
        assert_eq!(shown(json!({"manifest": manifest})).unwrap(), "Deployment/web");
        assert_eq!(shown(json!({"manifest": {"kind": "Job", "metadata": {"generateName": "a-"}}})).unwrap(), "Job");
        assert_eq!(shown(json!({"id": "i-1", "object": "a bucket object"})).unwrap(), "i-1");
        assert_eq!(shown(json!({})), None);
        let forged = json!({"manifest": {"kind": "Job", "metadata": {"name": "a\nprod  Available"}}});
        assert!(!shown(forged).unwrap().contains('\n'), "an author writes no line of a list");
        assert_eq!(display_id(&Value::from_json(json!({"id": "u", "object": object})).into_sensitive()), None);
    }
}
