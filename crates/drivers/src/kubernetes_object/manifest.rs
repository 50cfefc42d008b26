//! The `manifest` argument: its validation, its sensitive fields, and the object that is sent to the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;

use crate::{CallContext, arguments};
use model::{Diagnostics, Path, Value, kube_names};

use super::target::{OWNER_ANNOTATION, Target};

/// If this annotation of a manifest is `"false"`, Purlin does not wait until the object is ready.
pub(crate) const WAIT_ANNOTATION: &str = "purlin.dev/wait";

/// Fields that only the API server sets.
const SERVER_METADATA: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// Validates a manifest without the server.
pub(crate) fn check(context: &CallContext, manifest: &Value) -> Diagnostics {
    let root = Path::default().name("manifest");
    let mut diagnostics = Diagnostics::new();
    if !matches!(manifest.unmarked(), Value::Map(_)) {
        return diagnostics;
    }
    for (name, is_valid) in
        [("apiVersion", kube_names::is_api_version as fn(&str) -> bool), ("kind", kube_names::is_kind)]
    {
        if !is_text_or_unknown(manifest.get(name)) {
            diagnostics.push(arguments::error(
                context,
                root.name(name),
                format!("the manifest must set `{name}` to a string"),
            ));
        } else if text(manifest.get(name)).is_some_and(|text| !is_valid(text)) {
            diagnostics.push(
                arguments::error(context, root.name(name), format!("`{name}` is not valid"))
                    .hint("for example `apiVersion: apps/v1` and `kind: Deployment`"),
            );
        }
    }
    if manifest.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && manifest.get("items").is_some()
    {
        diagnostics.push(
            arguments::error(context, root.name("items"), "the manifest must be a single object, not a list")
                .hint("create a separate Resource for each object, or use `forEach`"),
        );
    }
    if is_secret(manifest) {
        diagnostics.extend(check_secret_data(context, manifest, &root.name("data")));
    }
    if present(manifest.get("status")) {
        diagnostics.push(arguments::error(
            context,
            root.name("status"),
            "`status` is set by the controller of the object",
        ));
    }
    match manifest.get("metadata").map(Value::unmarked) {
        Some(Value::Unknown) => {}
        Some(metadata @ Value::Map(_)) => diagnostics.extend(check_metadata(context, metadata, &root.name("metadata"))),
        _ => diagnostics.push(arguments::error(
            context,
            root.name("metadata"),
            "the manifest must set `metadata` with a name",
        )),
    }
    diagnostics
}

/// Rejects invalid base64 here, because the server would quote the value in its error.
fn check_secret_data(context: &CallContext, manifest: &Value, path: &Path) -> Diagnostics {
    let invalid = entries(manifest.get("data")).into_iter().filter(|(_, value)| match value.unmarked() {
        Value::String(text) => base64::engine::general_purpose::STANDARD.decode(text.as_bytes()).is_err(),
        Value::Unknown | Value::Null => false,
        _ => true,
    });
    invalid
        .map(|(key, _)| {
            arguments::error(context, path.name(key), "`data` of a Secret must be base64-encoded")
                .hint("use `stringData` for plain text")
        })
        .collect()
}

fn check_metadata(context: &CallContext, metadata: &Value, path: &Path) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    for name in SERVER_METADATA.iter().filter(|name| present(metadata.get(name))) {
        diagnostics.push(arguments::error(
            context,
            path.name(*name),
            format!("`metadata.{name}` is set by the API server and cannot be configured"),
        ));
    }
    let (name, prefix) = (metadata.get("name"), metadata.get("generateName"));
    if present(name) && present(prefix) {
        diagnostics.push(arguments::error(
            context,
            path.name("generateName"),
            "the manifest must not set both `metadata.name` and `metadata.generateName`",
        ));
    } else if !present(name) && !present(prefix) {
        diagnostics.push(
            arguments::error(
                context,
                path.name("name"),
                "the manifest must set `metadata.name` or `metadata.generateName`",
            )
            .hint("with `generateName`, the object supports create-before-destroy replacement"),
        );
    }
    for key in ["name", "generateName", "namespace"] {
        let is_valid = if key == "namespace" { kube_names::is_label } else { kube_names::is_name };
        let value = metadata.get(key);
        if text(value).is_some_and(str::is_empty) {
            diagnostics.push(arguments::error(context, path.name(key), format!("`metadata.{key}` is empty")));
        } else if present(value) && !is_text_or_unknown(value) {
            diagnostics.push(arguments::error(context, path.name(key), format!("`metadata.{key}` must be a string")));
        } else if text(value).is_some_and(|text| !is_valid(text)) {
            diagnostics.push(arguments::error(
                context,
                path.name(key),
                format!("`metadata.{key}` is not a valid name"),
            ));
        }
    }
    let labels = entries(metadata.get("labels"));
    let invalid =
        labels.iter().filter(|(_, value)| text(Some(*value)).is_some_and(|text| !kube_names::is_label_value(text)));
    diagnostics.extend(invalid.map(|(key, _)| {
        arguments::error(context, path.name("labels").name(key.clone()), "the value of a label is not valid").hint(
            "a label has at most 63 letters, digits, `-`, `_` and `.`, and starts and ends with a letter or a digit",
        )
    }));
    if metadata.get("annotations").is_some_and(|annotations| present(annotations.get(OWNER_ANNOTATION))) {
        let path = path.name("annotations").name(OWNER_ANNOTATION);
        diagnostics.push(arguments::error(
            context,
            path,
            format!("the annotation `{OWNER_ANNOTATION}` is set by Purlin"),
        ));
    }
    diagnostics
}

/// Marks the contents of a Secret as sensitive.
pub(crate) fn mark_secret(manifest: &Value) -> Value {
    if !is_secret(manifest) {
        return manifest.clone();
    }
    ["data", "stringData"].into_iter().fold(manifest.clone(), |manifest, name| match manifest.get(name) {
        Some(contents) if *contents != Value::Null => {
            let contents = contents.clone().into_sensitive();
            manifest.unmarked().with(name, contents)
        }
        _ => manifest,
    })
}

pub(crate) fn is_secret(object: &Value) -> bool {
    object.get("apiVersion").and_then(Value::as_str) == Some("v1")
        && object.get("kind").and_then(Value::as_str) == Some("Secret")
}

/// The object for server-side apply: without nulls, with name, namespace and owner annotation, and with the
/// `stringData` of a Secret encoded into `data`. If the server merged `stringData`, a key that is removed from the
/// manifest would stay in the Secret. Unknown values and sensitive marks are preserved.
pub(crate) fn desired_object(manifest: &Value, target: &Target, owner: &str) -> Value {
    let manifest = without_nulls(manifest);
    let mut metadata = entries(manifest.get("metadata"));
    metadata.remove("generateName");
    metadata.insert("name".into(), target.name.as_str().into());
    if !target.namespace.is_empty() {
        metadata.insert("namespace".into(), target.namespace.as_str().into());
    }
    let annotations = match metadata.get("annotations") {
        Some(Value::Unknown) => Value::Unknown,
        other => Value::map(entries(other)).with(OWNER_ANNOTATION, owner.into()),
    };
    metadata.insert("annotations".into(), annotations);
    let mut object = entries(Some(&manifest));
    object.insert("metadata".into(), Value::map(metadata));
    if is_secret(&manifest) {
        let texts = object.remove("stringData");
        if let Some(data) = secret_data(object.get("data"), texts.as_ref()) {
            object.insert("data".into(), data);
        }
    }
    Value::map(object)
}

fn secret_data(data: Option<&Value>, texts: Option<&Value>) -> Option<Value> {
    if [data, texts].into_iter().flatten().any(|value| *value.unmarked() == Value::Unknown) {
        return Some(Value::Unknown.into_sensitive());
    }
    if data.is_none() && texts.is_none() {
        return None;
    }
    let mut encoded = entries(data);
    encoded.extend(entries(texts).into_iter().map(|(key, text)| (key, encode(&text))));
    Some(Value::map(encoded).into_sensitive())
}

fn encode(text: &Value) -> Value {
    match text.unmarked() {
        Value::String(text) => Value::from(base64::engine::general_purpose::STANDARD.encode(text.as_bytes()).as_str()),
        value => value.clone(),
    }
}

/// The entries of a map; empty for any other value.
pub(crate) fn entries(value: Option<&Value>) -> BTreeMap<Arc<str>, Value> {
    match value.map(Value::unmarked) {
        Some(Value::Map(map)) => map.to_tree(),
        _ => BTreeMap::new(),
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::map(
            map.iter()
                .filter(|(_, item)| *item.unmarked() != Value::Null)
                .map(|(key, item)| (Arc::clone(key), without_nulls(item))),
        ),
        Value::List(items) => Value::list(items.iter().map(without_nulls)),
        Value::Sensitive(inner) => without_nulls(inner).into_sensitive(),
        other => other.clone(),
    }
}

fn text(value: Option<&Value>) -> Option<&str> {
    value.map(Value::unmarked).and_then(Value::as_str)
}

fn present(value: Option<&Value>) -> bool {
    value.is_some_and(|value| *value.unmarked() != Value::Null)
}

fn is_text_or_unknown(value: Option<&Value>) -> bool {
    match value.map(Value::unmarked) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Unknown) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::context;

    fn target() -> Target {
        Target::from_import_id("v1/Secret/shop/site").unwrap()
    }

    #[track_caller]
    fn problems(manifest: serde_json::Value) -> Vec<String> {
        let found = check(&context("kubernetes_object"), &Value::from_json(manifest));
        found.iter().map(|diagnostic| format!("{}", diagnostic.path.as_ref().unwrap())).collect()
    }

    #[test]
    fn errors_of_a_manifest_name_the_field() {
        let good = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        assert!(problems(good).is_empty());
        assert_eq!(problems(json!({})), ["manifest.apiVersion", "manifest.kind", "manifest.metadata"]);
        assert_eq!(
            problems(json!({"apiVersion": "v1", "kind": "X", "status": {}, "metadata": {"uid": "x"}})),
            ["manifest.status", "manifest.metadata.uid", "manifest.metadata.name"]
        );
        assert_eq!(
            problems(json!({"apiVersion": "v1", "kind": "X", "metadata": {
                "name": "a", "generateName": "a-", "annotations": {"purlin.dev/owner": "me"}}})),
            ["manifest.metadata.generateName", r#"manifest.metadata.annotations["purlin.dev/owner"]"#]
        );
    }

    #[test]
    fn an_empty_name_is_said_to_be_empty() {
        for (name, said) in [(json!(""), "`metadata.name` is empty"), (json!(1), "`metadata.name` must be a string")] {
            let manifest = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": name}});
            let found = check(&context("kubernetes_object"), &Value::from_json(manifest));
            assert_eq!(found.iter().map(|one| &*one.summary).collect::<Vec<_>>(), [said]);
        }
    }

    #[test]
    fn invalid_base64_is_reported_without_quoting_it() {
        let manifest =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"p": "hunter2!"}});
        let found = check(&context("kubernetes_object"), &Value::from_json(manifest));
        let text = found[0].to_string();
        assert!(text.contains("manifest.data.p") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn unknown_values_are_valid() {
        let metadata = Value::map([("name", Value::Unknown)]);
        let manifest = Value::map([("apiVersion", "v1".into()), ("kind", Value::Unknown), ("metadata", metadata)]);
        assert!(check(&context("kubernetes_object"), &manifest).is_empty());
    }

    #[test]
    fn string_data_of_a_secret_is_sent_as_sensitive_data() {
        let manifest = Value::from_json(json!({"apiVersion": "v1", "kind": "Secret", "immutable": null,
            "metadata": {"generateName": "site-"}, "data": {"a": "eA=="}, "stringData": {"b": "y"}}));
        let sent = desired_object(&mark_secret(&manifest), &target(), "mark");
        assert!(matches!(sent.get("data"), Some(Value::Sensitive(_))));
        assert_eq!(
            sent.to_json(),
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}, "metadata": {
                "name": "site", "namespace": "shop", "annotations": {"purlin.dev/owner": "mark"}}})
        );
    }
}
