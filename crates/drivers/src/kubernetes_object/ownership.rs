//! The owners of fields: which fields of the manifest other managers own too, and who owns them after Purlin took over
//! an object. Pure.
//!
//! Server-side apply removes a field that is no longer in the manifest only if no other manager owns it. Purlin takes
//! the fields of its manifest over from the tools with which users applied the object before. A field of a controller
//! stays, and is reported.

use std::fmt;

use serde_json::{Map, Value as Json, json};

use model::Value;

use super::FIELD_MANAGER;

/// The managers of tools that apply manifests, by prefix. `before-first-apply` is the manager of all fields of an object
/// that had no managers before its first server-side apply.
const TOOLS: [&str; 14] = [
    "kubectl",
    "before-first-apply",
    "helm",
    "Helm",
    "argocd",
    "kustomize-controller",
    "flux",
    "Terraform",
    "terraform",
    "HashiCorp",
    "OpenTofu",
    "pulumi",
    "kapp",
    "k9s",
];

/// A field that was removed from the manifest, and that the object keeps because another manager owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptField {
    pub path: FieldPath,
    pub manager: String,
    /// Purlin takes the field over, so that the next apply removes it.
    pub is_of_tool: bool,
}

/// A path of `fieldsV1`: the keys of its maps, such as `f:data` and `k:{"name":"web"}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// Parses the output of `keys`.
    pub fn from_keys(keys: Vec<String>) -> Self {
        Self(keys)
    }

    pub fn keys(&self) -> &[String] {
        &self.0
    }

    /// The value at the path. A key that an item of a list does not set counts as equal, because the server sets its
    /// default.
    pub fn find(&self, value: &Value) -> Option<Value> {
        self.0.iter().try_fold(value.clone(), |value, key| {
            let (form, text) = key.split_once(':')?;
            if form == "f" {
                return value.get(text).cloned();
            }
            let Value::List(items) = value.unmarked() else { return None };
            let item = match form {
                "i" => items.get(text.parse::<usize>().ok()?),
                "k" => {
                    let keys: Map<String, Json> = serde_json::from_str(text).ok()?;
                    items.iter().find(|item| {
                        keys.iter()
                            .all(|(key, expected)| item.get(key).is_none_or(|value| value.to_json() == *expected))
                    })
                }
                _ => {
                    let expected: Json = serde_json::from_str(text).ok()?;
                    items.iter().find(|item| item.to_json() == expected)
                }
            };
            item.cloned()
        })
    }
}

/// Displayed as a path of the manifest: `spec.containers[name="web"].image`.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, key) in self.0.iter().enumerate() {
            let (form, text) = key.split_once(':').unwrap_or(("f", key));
            match form {
                "f" if text.contains('.') => write!(f, "[{text:?}]")?,
                "f" => write!(f, "{}{text}", if place == 0 { "" } else { "." })?,
                "k" => {
                    let keys: Map<String, Json> = serde_json::from_str(text).unwrap_or_default();
                    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                    write!(f, "[{}]", keys.join(","))?;
                }
                _ => write!(f, "[{text}]")?,
            }
        }
        Ok(())
    }
}

/// The fields of `previous` that `desired` does not set any more, and that `object` has because another manager owns
/// them. `live` is the object with its managers.
pub fn kept_fields(live: &Json, previous: &Value, desired: &Value, object: &Value) -> Vec<KeptField> {
    let mut kept = Vec::new();
    for entry in entries(live).iter().filter(|entry| !is_own(entry)) {
        let paths = leaves(&entry["fieldsV1"]).into_iter().filter(|path| {
            path.find(previous).is_some() && path.find(desired).is_none() && path.find(object).is_some()
        });
        kept.extend(paths.map(|path| KeptField {
            path,
            manager: entry["manager"].as_str().unwrap_or_default().to_owned(),
            is_of_tool: is_tool(entry),
        }));
    }
    kept
}

/// Whether another manager owns a field of an object.
pub fn is_owned_by_other(live: &Json, path: &FieldPath) -> bool {
    entries(live).iter().any(|entry| !is_own(entry) && leaves(&entry["fieldsV1"]).contains(path))
}

/// `managedFields` after Purlin took fields over from tools: all fields that it owns too, if `all`, and the kept ones.
/// `None` if nothing changes.
pub fn taken_over(live: &Json, all: bool, kept: &[KeptField]) -> Option<Json> {
    let before = entries(live);
    let own_entry = before.iter().find(|entry| is_own(entry))?;
    let mut fields = own_entry["fieldsV1"].clone();
    let mut claimed = if all { fields.clone() } else { json!({}) };
    for KeptField { path, .. } in kept.iter().filter(|kept| kept.is_of_tool) {
        insert(&mut fields, path.keys());
        insert(&mut claimed, path.keys());
    }
    let after = before.iter().filter_map(|entry| {
        let mut entry = entry.clone();
        if is_own(&entry) {
            entry["fieldsV1"] = fields.clone();
        } else if is_tool(&entry) {
            entry["fieldsV1"] = without(&entry["fieldsV1"], &claimed);
        }
        (!is_empty(&entry["fieldsV1"])).then_some(entry)
    });
    let after: Vec<Json> = after.collect();
    (after != before).then_some(Json::Array(after))
}

fn entries(live: &Json) -> &[Json] {
    live["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_own(entry: &Json) -> bool {
    entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply"
}

fn is_tool(entry: &Json) -> bool {
    let manager = entry["manager"].as_str().unwrap_or_default();
    let is_whole = entry["subresource"].as_str().unwrap_or_default().is_empty();
    is_whole && (manager == FIELD_MANAGER || TOOLS.iter().any(|tool| manager.starts_with(tool)))
}

fn is_empty(fields: &Json) -> bool {
    fields.as_object().is_none_or(Map::is_empty)
}

/// The paths that own a value. A map or an item that is owned together with fields in it is left out.
fn leaves(fields: &Json) -> Vec<FieldPath> {
    let mut paths = Vec::new();
    let mut open: Vec<(Vec<String>, &Json)> = vec![(Vec::new(), fields)];
    while let Some((path, fields)) = open.pop() {
        let below: Vec<(&String, &Json)> =
            fields.as_object().into_iter().flatten().filter(|(key, _)| *key != ".").collect();
        if below.is_empty() && !path.is_empty() {
            paths.push(FieldPath(path));
            continue;
        }
        open.extend(below.into_iter().rev().map(|(key, fields)| {
            let path = path.iter().chain([key]).cloned().collect();
            (path, fields)
        }));
    }
    paths
}

fn insert(fields: &mut Json, path: &[String]) {
    let mut here = fields;
    for key in path {
        here = &mut here[key.as_str()];
        if here.is_null() {
            *here = json!({});
        }
    }
}

/// The paths of `fields` that are not in `claimed`.
fn without(fields: &Json, claimed: &Json) -> Json {
    let Some(map) = fields.as_object() else { return fields.clone() };
    let rest = map.iter().filter_map(|(key, below)| match claimed.get(key) {
        None => Some((key.clone(), below.clone())),
        Some(_) if is_empty(below) => None,
        Some(claimed) => {
            let rest = without(below, claimed);
            (!is_empty(&rest)).then(|| (key.clone(), rest))
        }
    });
    Json::Object(rest.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: Json) -> Json {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    fn live(entries: Vec<Json>) -> Json {
        json!({"metadata": {"managedFields": entries}})
    }

    fn value(json: Json) -> Value {
        Value::from_json(json)
    }

    #[test]
    fn a_removed_field_of_another_manager_is_kept() {
        let fields = json!({"f:data": {".": {}, "f:keep": {}, "f:drop": {}}, "f:metadata": {"f:labels": {"f:a.b/c": {}}},
            "f:spec": {"f:ports": {r#"k:{"port":80,"protocol":"TCP"}"#: {".": {}, "f:name": {}}}},
            "f:finalizers": {r#"v:"x""#: {}}});
        let all = json!({"data": {"keep": "1", "drop": "2"}, "metadata": {"labels": {"a.b/c": "x"}},
            "spec": {"ports": [{"port": 80, "name": "web"}]}, "finalizers": ["x"]});
        let left = json!({"data": {"keep": "1"}, "spec": {"ports": [{"port": 80}]}});
        let live = live(vec![entry("purlin", "Apply", fields.clone()), entry("scaler", "Update", fields)]);
        let kept = kept_fields(&live, &value(all.clone()), &value(left.clone()), &value(all.clone()));
        let shown: Vec<String> = kept.iter().map(|kept| format!("{} {}", kept.path, kept.manager)).collect();
        assert_eq!(
            shown,
            [
                "data.drop scaler",
                r#"finalizers["x"] scaler"#,
                r#"metadata.labels["a.b/c"] scaler"#,
                r#"spec.ports[port=80,protocol="TCP"].name scaler"#
            ]
        );
        assert!(kept.iter().all(|kept| !kept.is_of_tool && is_owned_by_other(&live, &kept.path)));
        assert!(kept_fields(&live, &value(all.clone()), &value(left.clone()), &value(left)).is_empty(), "it is gone");
        assert!(kept_fields(&live, &value(all.clone()), &value(all.clone()), &value(all)).is_empty());
    }

    #[test]
    fn the_fields_of_the_manifest_are_taken_over_from_tools_only() {
        let own = json!({"f:data": {"f:keep": {}, "f:drop": {}}});
        let theirs = json!({"f:data": {".": {}, "f:keep": {}, "f:drop": {}, "f:other": {}}});
        let live = live(vec![
            entry("purlin", "Apply", own.clone()),
            entry("kubectl-client-side-apply", "Update", theirs.clone()),
            entry("helm", "Update", own.clone()),
            entry("scaler", "Apply", own.clone()),
        ]);
        let rest = json!({"f:data": {".": {}, "f:other": {}}});
        assert_eq!(
            taken_over(&live, true, &[]).unwrap(),
            json!([
                entry("purlin", "Apply", own.clone()),
                entry("kubectl-client-side-apply", "Update", rest),
                entry("scaler", "Apply", own)
            ])
        );
        assert_eq!(taken_over(&live, false, &[]), None);
    }

    #[test]
    fn a_kept_field_of_a_tool_is_taken_over_to_be_removed() {
        let live = live(vec![
            entry("purlin", "Apply", json!({"f:data": {"f:keep": {}}})),
            entry("kubectl-edit", "Update", json!({"f:data": {"f:drop": {}}})),
        ]);
        let data = |data: Json| value(json!({"data": data}));
        let all = data(json!({"keep": "1", "drop": "2"}));
        let kept = kept_fields(&live, &all, &data(json!({"keep": "1"})), &all);
        assert_eq!(
            taken_over(&live, false, &kept).unwrap(),
            json!([entry("purlin", "Apply", json!({"f:data": {"f:keep": {}, "f:drop": {}}}))])
        );
    }
}
