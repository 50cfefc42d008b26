//! The decoder agrees with the CRDs: with their types, and with the rules that `check` leaves to `decode`.

use std::collections::BTreeMap;

use crate::load::deserialize;
use crate::load::shape::{self, Shape};
use crate::load::source::read_strings;
use crate::load::tree::{Entry, Node, Tree};
use model::Number;
use serde_json::Value as Json;

/// A tree with every field of the shape, and one item in each list.
fn full(shape: &Shape) -> Tree {
    let entry = |key: &str, value| Entry { key: key.into(), line: 1, value };
    let node = match shape {
        Shape::Free { .. } | Shape::Strings { .. } => Node::Map(vec![entry("x", Tree::string("y"))]),
        Shape::Map(fields) => Node::Map(fields.all.iter().map(|(name, shape)| entry(name, full(shape))).collect()),
        Shape::List(items) => Node::List(vec![full(&items.shape)]),
        Shape::String { values, .. } => Node::String(values.first().map_or("x".into(), Clone::clone)),
        Shape::Boolean => Node::Bool(true),
        Shape::Integer { .. } => Node::Number(Number::Int(1)),
    };
    Tree { line: 1, node }
}

/// A tree with every field of the shape, each of a wrong type.
fn wrong(shape: &Shape) -> Tree {
    let Shape::Map(fields) = shape else { return Tree::list(&[]) };
    let entries = fields.all.iter().map(|(name, shape)| Entry {
        key: std::sync::Arc::clone(name),
        line: 1,
        value: match shape {
            Shape::List(items) => Tree { line: 1, node: Node::List(vec![wrong(&items.shape), Tree::string("?")]) },
            Shape::Map(_) => wrong(shape),
            _ => Tree::list(&[]),
        },
    });
    Tree { line: 1, node: Node::Map(entries.collect()) }
}

#[test]
fn every_spec_can_be_read_whatever_it_contains() {
    fn check<T: serde::de::DeserializeOwned + serde::Serialize>(kind: &str) {
        let shape = shape::of(kind).spec();
        for tree in [None, Some(Tree::string("x")), Some(wrong(shape))] {
            deserialize::read::<T>(tree.as_ref(), shape).unwrap_or_else(|error| panic!("{kind} {tree:?}: {error}"));
        }
        let read: T = deserialize::read(Some(&full(shape)), shape).unwrap();
        let Shape::Map(fields) = shape else { panic!("a spec is a map") };
        let written = serde_json::to_value(&read).unwrap();
        for name in fields.names().filter(|name| *name != "config") {
            assert!(written.get(name).is_some(), "{kind}: spec.{name} is not read");
        }
    }
    check::<api::ResourceSpec>(api::KIND);
    check::<api::ResourceSpec>(api::DATA_SOURCE_KIND);
    check::<api::ProviderSpec>(api::PROVIDER_KIND);
    check::<api::ProviderConfigSpec>(api::PROVIDER_CONFIG_KIND);
}

/// The patterns and CEL rules of a schema below `at`.
fn rules(schema: &Json, at: &str, found: &mut Vec<String>) {
    if schema["pattern"].is_string() {
        found.push(format!("{at}: pattern"));
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        found.push(format!("{at}: {}", rule["message"].as_str().unwrap()));
    }
    for key in ["not", "maxProperties"].into_iter().filter(|key| schema.get(key).is_some()) {
        found.push(format!("{at}: {key}"));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        rules(field, &format!("{at}.{name}"), found);
    }
    if schema["items"].is_object() {
        rules(&schema["items"], &format!("{at}[]"), found);
    }
}

/// For each rule of the CRD of a Resource that `check` does not know: a spec that violates it.
const RESOURCES: &[(&str, &str)] = &[
    ("spec.count: must be between 0 and 10000", "count: -1"),
    ("spec.count: must be a whole number, or an expression such as ${size(zones.names)}", "count: many"),
    ("spec.dependsOn[].name: pattern", "dependsOn: [{name: A}]"),
    ("spec.drift.interval: must be a positive duration, such as 30m or 1h30m", "drift: {interval: 0s}"),
    ("spec.drift.interval: pattern", "drift: {interval: soon}"),
    ("spec.hooks[]: exactly one of exec and job must be set", "hooks: [{name: a, when: AfterCreate}]"),
    ("spec.hooks[].name: pattern", "hooks: [{name: A, when: AfterCreate, exec: {command: [x]}}]"),
    ("spec.import: exactly one of id and identity must be set", "import: {id: a, identity: {b: c}}"),
    ("spec.moved[].from: pattern", "moved: [{from: 'a['}]"),
    ("spec.moved[].to: pattern", "moved: [{from: a, to: b}]"),
    ("spec.inputs[]: exactly one of configMapKeyRef and secretKeyRef must be set", "inputs: [{name: a}]"),
    ("spec.inputs[].name: pattern", "inputs: [{name: a-b, secretKeyRef: {name: a, key: b}}]"),
    (
        "spec.managementPolicies: must contain Observe: Purlin reads an object before any other action",
        "managementPolicies: [Create]",
    ),
    ("spec.publish[]: exactly one of configMapRef and secretRef must be set", "publish: [{data: {a: b}}]"),
    ("spec.publish[].data: maxProperties", "publish: [{secretRef: {name: a}, data: {MANY}}]"),
    ("spec.timeouts.create: pattern", "timeouts: {create: 1d}"),
    ("spec.timeouts.create: must be a positive duration, such as 30m or 1h30m", "timeouts: {create: 0s}"),
    ("spec.timeouts.update: pattern", "timeouts: {update: 1d}"),
    ("spec.timeouts.update: must be a positive duration, such as 30m or 1h30m", "timeouts: {update: 0s}"),
    ("spec.timeouts.delete: pattern", "timeouts: {delete: 1d}"),
    ("spec.timeouts.delete: must be a positive duration, such as 30m or 1h30m", "timeouts: {delete: 0s}"),
    ("spec.timeouts.read: pattern", "timeouts: {read: 1d}"),
    ("spec.timeouts.read: must be a positive duration, such as 30m or 1h30m", "timeouts: {read: 0s}"),
    ("spec.type: pattern", "type: T"),
    (": spec.dependsOn must not name the Resource itself", "dependsOn: [{name: own}]"),
    ("spec.enabled: pattern", "enabled: 'true'"),
    ("spec.lifecycle.preventDestroy: pattern", "lifecycle: {preventDestroy: 'true'}"),
];

/// The same for a Provider.
const PROVIDERS: &[(&str, &str)] = &[
    ("spec.files.read[]: pattern", "files: {read: [data]}"),
    ("spec.files.write[]: pattern", "files: {write: [data]}"),
    ("spec.limits.memory: pattern", "limits: {memory: 1Ti}"),
    ("spec.package: maxProperties", "package: {path: a, ociMirror: b}"),
    (
        "spec.runner.idleTimeout: must be a positive duration, such as 30m or 1h30m",
        "runner: {kind: Pod, idleTimeout: 0s}",
    ),
    ("spec.runner.idleTimeout: pattern", "runner: {kind: Pod, idleTimeout: soon}"),
];

/// Rules that cannot be checked for a single manifest, or that the name of each test document satisfies.
fn is_elsewhere(rule: &str) -> bool {
    rule.starts_with("status") || rule.starts_with(": metadata.name must") || rule.contains("is immutable")
}

fn every_rule_is_checked(kind: &str, crd: &api::CustomResourceDefinition, samples: &[(&str, &str)]) {
    let crd = serde_json::to_value(crd).unwrap();
    let mut found = Vec::new();
    rules(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut found);
    let found = found.iter().map(|rule| rule.trim_start_matches('.')).filter(|rule| !is_elsewhere(rule));
    let samples: BTreeMap<&str, &str> = samples.iter().copied().collect();
    let found: Vec<&str> = found.collect();
    let unknown: Vec<_> = samples.keys().filter(|rule| !found.contains(rule)).collect();
    assert!(unknown.is_empty(), "{kind}: the CRD has no such rules: {unknown:?}");
    let many: Vec<String> = (0..101).map(|n| format!("k{n}: v")).collect();
    for rule in found {
        let sample = samples.get(rule).unwrap_or_else(|| panic!("{kind}: no sample violates {rule}"));
        let given = if rule == "spec.type: pattern" || kind != api::KIND { "" } else { "type: t, " };
        let spec = sample.replace("MANY", &many.join(", "));
        let text = format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: own}}\nspec: {{{given}{spec}}}\n"
        );
        let loaded = read_strings(&[("a.yaml", &text)]);
        let own = loaded.config.resource(&model::Address::single("own")).map(|own| own.problems.clone());
        let family = loaded.config.families.values().map(|family| format!("{:?}", family.expansion));
        let failed = family.into_iter().any(|expansion| expansion.starts_with("Failed"));
        let problems = own.unwrap_or(loaded.diagnostics);
        assert!(model::has_errors(&problems) || failed, "{kind}: nothing reports {rule} in {text}");
    }
}

#[test]
fn every_rule_of_the_crds_holds_for_files() {
    every_rule_is_checked(api::KIND, &api::resource_crd(), RESOURCES);
    every_rule_is_checked(api::PROVIDER_KIND, &api::provider_crd(), PROVIDERS);
}
