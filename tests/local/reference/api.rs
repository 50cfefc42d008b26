//! `docs/reference/api.md`: every kind and field of the CRDs.

use std::fmt::Write as _;

use expect_test::expect_file;
use serde_json::Value as Json;

use super::{anchor, cell, sentence};

const BEGIN: &str = "# API reference

The kinds of `purlin.dev/v1alpha1`, generated from the CRDs; a test checks that this page is up to date. `kubectl explain
resources.purlin.dev.spec` prints the same. Every field has an anchor: `#resource.spec.lifecycle.preventDestroy`. An expression
is written as `${...}` ([Expressions](../expressions.md)).

| Kind | Scope | Short name | |
|---|---|---|---|
";

#[test]
fn the_api_reference_is_up_to_date() {
    let mut page = BEGIN.to_owned();
    let mut kinds = String::new();
    for (_, text) in purlin::api::crds() {
        let crd: Json = serde_saphyr::from_str(&text).unwrap();
        let (names, kind) = (&crd["spec"]["names"], string(&crd["spec"]["names"]["kind"]));
        let version = &crd["spec"]["versions"][0];
        let schema = &version["schema"]["openAPIV3Schema"];
        let about = cell(&sentence(string(&schema["description"])));
        let short: Vec<_> = array(&names["shortNames"]).iter().map(|name| format!("`{}`", string(name))).collect();
        let scope = string(&crd["spec"]["scope"]);
        let _ = writeln!(page, "| [{kind}](#{}) | {scope} | {} | {about} |", anchor(kind), short.join(", "));
        let _ = write!(kinds, "\n## {kind}\n\n{about}\n");
        validations(schema, &mut kinds);
        for part in ["spec", "status"] {
            object(&format!("{kind}.{part}"), &schema["properties"][part], &mut kinds);
        }
        columns(version, &mut kinds);
    }
    page.push_str(&kinds);
    expect_file!["../../../docs/reference/api.md"].assert_eq(&page);
}

/// Writes the fields of an object, and then its nested objects.
fn object(path: &str, schema: &Json, out: &mut String) {
    let _ = write!(out, "\n### {path}\n\n{}\n", cell(&sentence(string(&schema["description"]))));
    validations(schema, out);
    out.push_str("\n| Field | Type | Description |\n|---|---|---|\n");
    let fields = || schema["properties"].as_object().into_iter().flatten();
    for (name, field) in fields() {
        let is_required = array(&schema["required"]).iter().any(|required| required == name);
        let (id, inner) = (lower_kind(&format!("{path}.{name}")), nested(field));
        let mut kind = type_of(field);
        if inner.is_some() {
            kind = format!("[{kind}](#{})", anchor(&format!("{path}.{name}")));
        }
        let _ = writeln!(out, "| <a id=\"{id}\"></a>`{name}` | {kind} | {} |", cell(&about(field, is_required)));
    }
    for (name, field) in fields() {
        if let Some(inner) = nested(field) {
            object(&format!("{path}.{name}"), &with_description(inner, field), out);
        }
    }
}

/// The schema of the fields of an object, or of the objects in a list.
fn nested(field: &Json) -> Option<&Json> {
    [field, &field["items"]].into_iter().find(|schema| schema["properties"].is_object())
}

fn with_description(inner: &Json, field: &Json) -> Json {
    let mut inner = inner.clone();
    if string(&inner["description"]).is_empty() {
        inner["description"] = field["description"].clone();
    }
    inner
}

fn type_of(field: &Json) -> String {
    if field["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match string(&field["type"]) {
        "" => "any".to_owned(),
        "array" => format!("list of {}s", type_of(&field["items"])),
        kind => kind.to_owned(),
    }
}

/// The description, and what the field allows.
fn about(field: &Json, is_required: bool) -> String {
    let mut parts = vec![sentence(string(&field["description"]))];
    if is_required {
        parts.insert(0, "**Required.**".to_owned());
    }
    let schemas = [field, &field["items"]];
    let find = |key: &str| schemas.iter().map(|schema| &schema[key]).find(|value| !value.is_null());
    if let Some(values) = find("enum") {
        let values: Vec<_> =
            array(values).iter().filter(|value| !value.is_null()).map(|value| format!("`{}`", string(value))).collect();
        parts.push(format!("One of {}.", values.join(", ")));
    }
    if let Some(default) = find("default") {
        parts.push(format!("Default: `{default}`."));
    }
    for (key, text) in [
        ("minimum", "At least"),
        ("maximum", "At most"),
        ("maxItems", "Maximum number of items:"),
        ("maxLength", "Maximum length:"),
    ] {
        // The CRDs have limits as floating-point numbers.
        if let Some(limit) = find(key).and_then(Json::as_f64) {
            parts.push(format!("{text} {limit}."));
        }
    }
    if let Some(pattern) = find("pattern") {
        parts.push(format!("Pattern: `{}`.", string(pattern)));
    }
    // A nested object shows its rules itself.
    if nested(field).is_none() {
        parts.extend(rules(field).into_iter().chain(rules(&field["items"])));
    }
    parts.join(" ")
}

/// The messages of validation rules, which say what must hold.
fn rules(schema: &Json) -> Vec<String> {
    let messages = array(&schema["x-kubernetes-validations"]).iter().map(|rule| string(&rule["message"]));
    messages.map(|message| format!("Validation: {}", sentence(message))).collect()
}

fn validations(schema: &Json, out: &mut String) {
    let all = rules(schema);
    if !all.is_empty() {
        out.push('\n');
        all.iter().for_each(|rule| out.push_str(&format!("- {}\n", cell(rule))));
    }
}

fn columns(version: &Json, out: &mut String) {
    out.push_str("\nColumns of `kubectl get`; those in italics only with `-o wide`:\n\n| Column | |\n|---|---|\n");
    for column in array(&version["additionalPrinterColumns"]) {
        let mark = if column["priority"].as_i64().unwrap_or_default() > 0 { "*" } else { "" };
        let _ = writeln!(out, "| {mark}{}{mark} | {} |", string(&column["name"]), cell(string(&column["description"])));
    }
}

/// `Resource.spec.type` as an anchor: only the kind is in lower case, because fields differ in case.
fn lower_kind(path: &str) -> String {
    let (kind, rest) = path.split_once('.').unwrap_or((path, ""));
    format!("{}.{rest}", kind.to_lowercase())
}

fn string(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn array(value: &Json) -> &[Json] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
