//! `charts/purlin/README.md`: every value of the chart, from the comments of `values.yaml`. Also checks that the schema
//! has the same values.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use expect_test::expect_file;
use serde_json::Value as Json;

use super::{cell, sentence};
use crate::tidy::root;

const BEGIN: &str = "# Helm chart of Purlin

Installs the controller, its CRDs, its roles and its admission policies. It needs Kubernetes 1.32 or later, and Helm
3.14 or later.

- [Quick start on a cluster](../../docs/quick-start-cluster.md) installs it.
- [Installation](../../docs/installation.md) explains replicas, proxies, certificates, the cache and alerts.
- [Upgrade](../../docs/upgrade.md) explains upgrades, and what remains after an uninstall.

This page is made from `values.yaml`; a test checks that it is up to date. `values.schema.json` rejects values that are
not listed here.
";

/// A value that has a description. What is inside of it belongs to it.
struct Described {
    path: String,
    about: String,
    section: String,
}

/// Returns the described values of `values.yaml`, in order.
fn described(text: &str) -> Vec<Described> {
    let mut found = Vec::new();
    let (mut parents, mut section): (Vec<(usize, &str)>, &str) = (Vec::new(), "");
    let mut about: Option<String> = None;
    for line in text.lines() {
        let content = line.trim_start();
        let indentation = line.len() - content.len();
        if let Some(heading) = content.strip_prefix("## ") {
            section = heading;
        } else if let Some(begins) = content.strip_prefix("# -- ") {
            about = Some(begins.to_owned());
        } else if let (Some(more), Some(about)) = (content.strip_prefix("# "), &mut about) {
            about.push_str(&format!(" {more}"));
        } else if let Some((key, _)) = content.split_once(':').filter(|(key, _)| is_name(key)) {
            parents.retain(|(depth, _)| *depth < indentation);
            parents.push((indentation, key));
            let path = parents.iter().map(|(_, key)| *key).collect::<Vec<_>>().join(".");
            found.extend(about.take().map(|about| Described { path, about, section: section.to_owned() }));
        }
    }
    found
}

fn is_name(key: &str) -> bool {
    !key.is_empty() && key.chars().all(char::is_alphanumeric)
}

/// The paths of an object and of the objects in it, which are not described as a whole.
fn undescribed(path: &str, value: &Json, described: &BTreeSet<&str>, found: &mut Vec<String>) {
    if described.contains(path) {
        return;
    }
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => fields.iter().for_each(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            undescribed(&path, value, described, found);
        }),
        None => found.push(path.to_owned()),
    }
}

fn values() -> (String, Json) {
    let text = fs::read_to_string(root().join("charts/purlin/values.yaml")).unwrap();
    let values = serde_saphyr::from_str(&text).unwrap();
    (text, values)
}

fn at<'a>(values: &'a Json, path: &str) -> Option<&'a Json> {
    values.pointer(&format!("/{}", path.replace('.', "/")))
}

#[test]
fn the_readme_of_the_chart_is_up_to_date() {
    let (text, values) = values();
    let rows = described(&text);
    let paths: BTreeSet<&str> = rows.iter().map(|row| &*row.path).collect();
    let mut missing = Vec::new();
    undescribed("", &values, &paths, &mut missing);
    assert!(missing.is_empty(), "describe these values with a comment `# --`: {missing:?}");
    let mut page = BEGIN.to_owned();
    let mut section = "";
    for row in &rows {
        if row.section != section {
            section = &row.section;
            let _ = write!(page, "\n## {section}\n\n| Value | Default | |\n|---|---|---|\n");
        }
        let default = at(&values, &row.path).unwrap_or_else(|| panic!("{} is not read as YAML reads it", row.path));
        let _ =
            writeln!(page, "| `{}` | `{}` | {} |", row.path, cell(&default.to_string()), cell(&sentence(&row.about)));
    }
    expect_file!["../../../charts/purlin/README.md"].assert_eq(&page);
}

/// The paths that a schema allows, without those of objects with any keys.
fn allowed(path: &str, schema: &Json, all: &Json, found: &mut BTreeSet<String>) {
    let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    let schema = reference.map_or(schema, |pointer| all.pointer(pointer).expect("a definition of the schema"));
    match schema["properties"].as_object() {
        Some(fields) => fields.iter().for_each(|(key, field)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            found.insert(path.clone());
            allowed(&path, field, all, found);
        }),
        None => assert!(!path.is_empty(), "the schema has properties"),
    }
    let is_closed = schema["properties"].is_null() || schema["additionalProperties"] == false;
    assert!(is_closed, "{path}: the schema must reject unknown values");
}

#[test]
fn the_schema_of_the_chart_has_exactly_the_values() {
    let (text, values) = values();
    let schema = fs::read_to_string(root().join("charts/purlin/values.schema.json")).unwrap();
    let schema: Json = serde_json::from_str(&schema).unwrap();
    let mut known = BTreeSet::new();
    allowed("", &schema, &schema, &mut known);
    let rows = described(&text);
    let missing: Vec<&str> = rows.iter().map(|row| &*row.path).filter(|path| !known.contains(*path)).collect();
    assert!(missing.is_empty(), "not in the schema: {missing:?}");
    // Helm passes the values `global` of a parent chart to every chart. A described value can allow more fields.
    let is_inside = |path: &str| rows.iter().any(|row| path.starts_with(&format!("{}.", row.path)));
    let unknown = known.iter().filter(|path| at(&values, path).is_none() && !is_inside(path) && *path != "global");
    // Kubernetes has no default for it.
    let unknown: Vec<&String> = unknown.filter(|path| *path != "resources.claims").collect();
    assert!(unknown.is_empty(), "in the schema, but not in values.yaml: {unknown:?}");
}
