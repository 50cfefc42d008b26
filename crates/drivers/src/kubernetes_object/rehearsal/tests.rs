use serde_json::json;

use super::*;
use crate::tests::recorded;

fn service(name: &str, port: i64) -> Value {
    Value::from_json(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"clusterIP": "10.0.0.5", "ports": [{"port": 80, "nodePort": port}]}}))
}

fn freed(api_error: &ApiError, old: Value, new: &Value) -> bool {
    let kind = ApiKind { api_version: "v1".into(), plural: "services".into(), namespaced: true };
    let target = Target::of_object(new).unwrap();
    let old = recorded(Value::map([("object", old)]));
    is_freed(api_error, &NewObject { kind: &kind, target: &target, desired: new, owner: "", replaces: Some(&old) })
}

fn quota(requested: &str, used: u32, limited: u32) -> ApiError {
    let message = format!(
        "services \"b\" is forbidden: exceeded quota: few, requested: {requested}=1, used: {requested}={used}, limited: \
         {requested}={limited}"
    );
    ApiError::new(403, &json!({"message": message}), None)
}

#[test]
fn a_quota_of_objects_is_kept_when_one_object_replaces_another() {
    let (old, new) = (service("a", 1), service("b", 2));
    for resource in ["services", "count/services"] {
        assert!(freed(&quota(resource, 1, 1), old.clone(), &new));
    }
    assert!(!freed(&quota("services.nodeports", 1, 1), old.clone(), &new), "the old object may use none");
    assert!(!freed(&quota("services", 2, 1), old.clone(), &new), "the limit was lowered");
    let elsewhere = service("a", 1).with("metadata", Value::from_json(json!({"name": "a", "namespace": "other"})));
    assert!(!freed(&quota("services", 1, 1), elsewhere, &new), "the quota of another namespace");
    let storage = "persistentvolumeclaims \"b\" is forbidden: exceeded quota: q, requested: requests.storage=20Gi, used: \
                   requests.storage=5Gi, limited: requests.storage=10Gi";
    assert!(!freed(&ApiError::new(403, &json!({"message": storage}), None), old, &new));
}

#[test]
fn a_port_of_the_old_object_is_free_after_its_destroy() {
    let taken = ApiError::new(
        422,
        &json!({"reason": "Invalid", "details": {"causes": [{"reason": "FieldValueInvalid", "field":
            "spec.ports[0].nodePort", "message": "Invalid value: 30080: provided port is already allocated"}]}}),
        None,
    );
    assert!(freed(&taken, service("a", 30080), &service("b", 30080)));
    assert!(!freed(&taken, service("a", 30081), &service("b", 30080)));
    assert!(!is_invalid_manifest(&taken));
}

#[test]
fn a_refusal_names_the_steps_that_may_resolve_it() {
    let target = Target::from_import_id("v1/ConfigMap/shop/site").unwrap();
    let resolved = |code: u16, message: &str| -> Vec<String> {
        let remedies = remedies(&ApiError::new(code, &json!({"message": message}), None), &target);
        let shown = remedies.iter().map(|remedy| match remedy {
            Remedy::Applied(part) => format!("applied {}", part.to_json()["manifest"]),
            Remedy::Removed(part) => format!("removed {}", part.to_json()),
        });
        shown.collect()
    };
    assert_eq!(
        resolved(404, "namespaces \"shop\" not found"),
        [r#"applied {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}"#]
    );
    let forbidden = "configmaps is forbidden: User \"x\" cannot create resource \"configmaps\" in API group \"\"";
    assert_eq!(resolved(403, forbidden).len(), 4);
    assert!(resolved(403, "admission webhook \"x\" denied the request: no").is_empty());
    let definition = unknown_kind("example.com/v1", "Widget");
    let crd = json!({"manifest": {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "names": {"kind": "Widget"}}}});
    let [Remedy::Applied(part)] = definition.remedies.as_slice() else { panic!("{definition:?}") };
    assert!(Remedy::contains(&Value::from_json(crd), part));
}

#[test]
fn an_object_of_a_neighbor_is_taken_over_with_a_move() {
    assert_eq!(neighbor("c/shop/x/", "c/shop/z/"), Some("x"));
    for mark in ["c/shop/x/a", "c/other/x/", "d/shop/x/", "c/shop/x/y/", "c/shop/`x`/", "é", ""] {
        assert_eq!(neighbor(mark, "c/shop/z/"), None, "{mark}");
    }
    let target = Target::of_object(&Value::from_json(serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dup", "namespace": "shop"}
    })));
    let live = serde_json::json!({"metadata": {"annotations": {OWNER_ANNOTATION: "c/shop/x/"}}});
    let error = already_exists(&target.unwrap(), &live, "c/shop/z/", false);
    assert!(error.message.contains("the object of the Resource `x`"), "{}", error.message);
    let hint = error.hint.unwrap();
    assert!(hint.contains("`purlin.dev/moved-from: x`") && hint.contains("`v1/ConfigMap/shop/dup`"), "{hint}");
}

#[test]
fn an_object_of_another_namespace_is_given_up_before_it_is_imported() {
    for (mark, is_expected) in
        [("c/other/x/", true), ("c/other/x/0", true), ("c/shop/x/0", false), ("d/other/x/", false), ("", false)]
    {
        let name = "v1/ConfigMap/shop/dup";
        let live = json!({"metadata": {"annotations": {OWNER_ANNOTATION: mark}}});
        let error = already_exists(&Target::from_import_id(name).unwrap(), &live, "c/shop/z/", false);
        let hint = error.hint.unwrap();
        assert_eq!(hint.contains("`deletionPolicy: Orphan`"), is_expected, "{mark}: {hint}");
        assert!(hint.contains(name), "{mark}: {hint}");
    }
}
