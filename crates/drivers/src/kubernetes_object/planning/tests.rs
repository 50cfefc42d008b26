use serde_json::{Value as Json, json};

use super::*;

fn value(json: Json) -> Value {
    Value::from_json(json)
}

/// The known and unknown parts of a value, as in the plan format.
fn shown(value: &Value) -> Json {
    json!({"known": value.to_public_json(), "unknown": value.unknown_json()})
}

fn service() -> Value {
    value(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}))
}

#[test]
fn a_new_object_is_known_where_the_manifest_sets_it() {
    let dry = value(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "uid": "dry"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "protocol": "TCP"}], "clusterIP": "10.0.0.9"}}));
    assert_eq!(
        shown(&plan_create(&service(), Shape::DryRun(&dry))),
        json!({
            "known": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}},
            "unknown": {"metadata": {"creationTimestamp": true, "generation": true, "uid": true},
                "spec": {"clusterIP": true, "ports": [{"protocol": true}]}, "status": true}
        })
    );
}

#[test]
fn without_a_dry_run_fields_that_the_server_may_extend_are_unknown() {
    assert_eq!(
        shown(&plan_create(&service(), Shape::Open)),
        json!({
            "known": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}},
            "unknown": {"metadata": {"creationTimestamp": true, "generation": true, "uid": true},
                "spec": true, "status": true}
        })
    );
}

#[test]
fn a_config_map_is_known_except_for_server_metadata() {
    let desired =
        value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}}));
    assert_eq!(
        plan_create(&desired, Shape::Closed).unknown_json(),
        Some(json!({"metadata": {"creationTimestamp": true, "uid": true}}))
    );
}

#[test]
fn fields_that_a_webhook_changes_are_unknown() {
    let dry = value(json!({"spec": {"selector": {"app": "other"}, "ports": []}}));
    let unknown = plan_create(&service(), Shape::DryRun(&dry)).unknown_json().unwrap();
    assert_eq!(unknown["spec"], json!({"selector": {"app": true}, "ports": true}));
}

fn deployment(image: &str, replicas: i64, generation: i64) -> Value {
    value(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": generation},
        "spec": {"replicas": replicas, "template": {"image": image}}, "status": {"replicas": replicas}}))
}

#[test]
fn fields_that_an_update_does_not_change_stay_known() {
    let desired = value(json!({"spec": {"template": {"image": "b"}}}));
    let planned = plan_update(&deployment("a", 2, 1), &deployment("b", 2, 2), &desired);
    assert_eq!(
        shown(&planned),
        json!({
            "known": {"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
                "spec": {"replicas": 2, "template": {"image": "b"}}},
            "unknown": {"metadata": {"generation": true}, "status": true}
        })
    );
}

#[test]
fn a_new_label_keeps_the_status_known() {
    let desired = value(json!({"metadata": {"labels": {"a": "b"}}}));
    let prior = deployment("a", 2, 1);
    let dry = prior.with("metadata", prior.get("metadata").unwrap().with("labels", value(json!({"a": "b"}))));
    assert!(!plan_update(&prior, &dry, &desired).has_unknown());
    assert!(!is_unchanged(&prior, &dry));
}

#[test]
fn a_changed_status_is_not_an_update() {
    let later = deployment("a", 2, 7).with("status", value(json!({"replicas": 1})));
    assert!(is_unchanged(&deployment("a", 2, 1), &later));
}

#[test]
fn unknown_values_make_their_field_of_the_object_unknown() {
    let before =
        value(json!({"apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"a": "x"}, "data": {"b": "y"}}));
    let prior = value(json!({"apiVersion": "v1", "metadata": {"name": "web", "generation": 1}, "spec": {"a": "x"},
        "data": {"b": "y"}}));
    let desired = before.with("spec", Value::map([("a", Value::Unknown)]));
    assert_eq!(
        plan_update_without_dry_run(&prior, &desired, &before).unknown_json(),
        Some(json!({"metadata": {"generation": true}, "spec": true, "status": true}))
    );
    assert_eq!(plan_update_without_dry_run(&prior, &before, &before), prior);
}

#[test]
fn a_final_plan_keeps_the_known_values_of_the_first_plan() {
    let before = Value::map([("a", "x".into()), ("b", Value::Unknown), ("c", Value::Unknown)]);
    let now = value(json!({"a": "z", "b": "y", "d": 1}));
    assert_eq!(refine(&before, &now), Value::map([("a", "x".into()), ("b", "y".into()), ("c", Value::Unknown)]));
}

fn moves(before: Json, manifest: Json) -> Vec<String> {
    let prior = Target::from_import_id("v1/ConfigMap/shop/web-x2x4x").unwrap();
    replacing_paths(&prior, &value(before), &value(manifest), Some("shop")).iter().map(ToString::to_string).collect()
}

fn manifest(name: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[test]
fn another_kind_or_name_replaces_the_object() {
    assert!(moves(manifest("web-x2x4x"), manifest("web-x2x4x")).is_empty());
    assert_eq!(moves(manifest("web-x2x4x"), manifest("db")), ["manifest.metadata.name"]);
    let other = json!({"apiVersion": "x.io/v1", "kind": "Secret", "metadata": {"name": "web-x2x4x"}});
    assert_eq!(moves(manifest("web-x2x4x"), other), ["manifest.apiVersion", "manifest.kind"]);
    let version = json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "web-x2x4x"}});
    assert!(moves(manifest("web-x2x4x"), version).is_empty(), "every version shows the same object");
}

fn role(kind: &str, metadata: Json) -> Json {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata})
}

#[test]
fn another_scope_replaces_the_object_with_or_without_a_namespace_in_the_manifest() {
    let (bare, placed) = (json!({"name": "reader"}), json!({"name": "reader", "namespace": "shop"}));
    let (kind, namespace) = ("manifest.kind", "manifest.metadata.namespace");
    let scope = "object.metadata.namespace";
    let (namespaced, wide) = ("Role/shop/reader", "ClusterRole/reader");
    for (prior, [before, after], place, expected) in [
        (namespaced, [role("Role", bare.clone()), role("ClusterRole", bare.clone())], "", vec![kind]),
        (wide, [role("ClusterRole", bare.clone()), role("Role", bare.clone())], "shop", vec![kind]),
        (namespaced, [role("Role", placed.clone()), role("ClusterRole", bare.clone())], "", vec![kind, namespace]),
        (wide, [role("ClusterRole", bare.clone()), role("Role", placed.clone())], "shop", vec![kind, namespace]),
        (namespaced, [role("Role", bare.clone()), role("Role", placed)], "shop", vec![]),
        // The definition of the kind was replaced by one with another scope.
        (namespaced, [role("Role", bare.clone()), role("Role", bare.clone())], "", vec![scope]),
        (wide, [role("ClusterRole", bare.clone()), role("ClusterRole", bare.clone())], "shop", vec![scope]),
        // An imported object has no manifest.
        (namespaced, [Json::Null, role("Role", bare)], "other", vec![scope]),
    ] {
        let target = Target::from_import_id(&format!("rbac.authorization.k8s.io/v1/{prior}")).unwrap();
        let paths = replacing_paths(&target, &value(before), &value(after.clone()), Some(place));
        let shown: Vec<String> = paths.iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected, "{prior} becomes {after} in `{place}`");
    }
}

fn drawn(prefix: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": prefix}})
}

#[test]
fn a_generated_name_is_kept_while_its_prefix_is_unchanged() {
    assert!(moves(drawn("web-"), drawn("web-")).is_empty());
    assert_eq!(moves(drawn("web-"), drawn("we")), ["manifest.metadata.generateName"]);
    assert!(moves(Json::Null, drawn("web-")).is_empty(), "an imported object that fits the prefix");
    assert_eq!(moves(Json::Null, drawn("db-")), ["manifest.metadata.generateName"]);
}

#[test]
fn an_unknown_value_in_an_immutable_field_replaces_the_object() {
    let manifest = Value::map([
        ("apiVersion", "batch/v1".into()),
        ("kind", "Job".into()),
        ("spec", Value::map([("template", Value::map([("image", Value::Unknown)])), ("ttl", Value::Unknown)])),
    ]);
    let paths: Vec<String> = unknown_immutable(&manifest, &Value::Null).iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["manifest.spec.template"]);
}
