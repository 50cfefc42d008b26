//! Changes of Kubernetes objects by other clients: detected by watches, corrected, reported, ignored, or held.

use serde_json::Value;

use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::installation::*;

fn example(file: &str) -> String {
    let path = format!("{}/examples/kubernetes/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("an example")
}

/// A Resource for a ConfigMap of the same name.
fn config_map(name: &str, more: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
         kubernetes_object\n  config:\n    manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name} }}, \
         data: {{ color: green }} }}\n{more}"
    )
}

fn live(ns: &str, name: &str) -> Option<Value> {
    let output = plane().kubectl(&["-n", ns, "get", "configmap", name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON of kubectl"))
}

fn color(ns: &str, name: &str) -> String {
    live(ns, name).and_then(|live| live["data"]["color"].as_str().map(str::to_owned)).unwrap_or_default()
}

fn paint(ns: &str, name: &str, color: &str) {
    let patch = format!("{{\"data\":{{\"color\":\"{color}\"}}}}");
    plane().kubectl_ok(&["-n", ns, "patch", "configmap", name, "--type=merge", "-p", &patch]);
}

fn request_replacement(ns: &str, name: &str) {
    let annotation = "purlin.dev/replace-requested-at=now";
    plane().kubectl_ok(&["-n", ns, "annotate", "--overwrite", "pres", name, annotation]);
}

#[test]
fn drift_is_corrected_reported_or_ignored() {
    let _guard = shared();
    let (plane, ns) = (plane(), with_rights("drift"));
    plane.apply(&["-n", &ns], &example("drift.yaml"));
    wait_ready(&ns, &["corrected", "reported", "ignored"]);
    let version = |name: &str| resource(&ns, name).unwrap()["metadata"]["resourceVersion"].clone();
    let ignored = version("ignored");
    for name in ["ignored", "reported", "corrected"] {
        paint(&ns, name, "red");
    }
    wait_until("it is corrected", LIMIT, || color(&ns, "corrected") == "green");
    let drifted_condition = wait_reason(&ns, "reported", "Drifted", "Drifted");
    assert!(drifted_condition["message"].as_str().unwrap().contains("`object.data.color`"), "{drifted_condition}");
    let described = plane.kubectl_ok(&["-n", &ns, "describe", "pres", "reported"]);
    assert!(described.contains("Drifted") && described.contains("changed outside of Purlin"), "{described}");
    assert!(is_ready(&resource(&ns, "reported").unwrap()));
    wait_event(&ns, "reported", "Drifted:");
    assert_eq!((color(&ns, "reported").as_str(), color(&ns, "ignored").as_str()), ("red", "red"));
    assert_eq!(version("ignored"), ignored, "the controller did not write it");

    // The drift ends when a client reverts the change, and when the spec changes.
    paint(&ns, "reported", "green");
    wait_until("the drift is resolved", LIMIT, || condition(&resource(&ns, "reported").unwrap(), "Drifted").is_none());
    paint(&ns, "reported", "red");
    wait_reason(&ns, "reported", "Drifted", "Drifted");
    plane.apply(&["-n", &ns], &example("drift.yaml").replace("color: green", "color: blue"));
    wait_until("all match the new spec", LIMIT, || {
        ["corrected", "reported", "ignored"].iter().all(|name| color(&ns, name) == "blue")
    });
    wait_ready(&ns, &["corrected", "reported", "ignored"]);
    wait_until("the drift is no longer reported", LIMIT, || {
        condition(&resource(&ns, "reported").unwrap(), "Drifted").is_none()
    });
}

#[test]
fn a_missing_object_is_created_again_or_reported() {
    let _guard = shared();
    let (plane, ns) = (plane(), with_rights("gone"));
    let report = "  drift: { action: Report }\n";
    let user = data("user", "\"${corrected.id}\"", "");
    plane.apply(&["-n", &ns], &format!("{}{}{user}", config_map("corrected", ""), config_map("reported", report)));
    wait_ready(&ns, &["corrected", "reported", "user"]);
    let old = live(&ns, "corrected").unwrap()["metadata"]["uid"].clone();
    plane.kubectl_ok(&["-n", &ns, "delete", "configmap", "corrected", "reported"]);
    wait_until("it is created again", LIMIT, || {
        live(&ns, "corrected").is_some_and(|live| live["metadata"]["uid"] != old)
    });
    wait_until("its dependent is updated", LIMIT, || {
        let new = live(&ns, "corrected").map(|live| live["metadata"]["uid"].clone());
        resource(&ns, "user").map(|user| user["status"]["attributes"]["output"].clone()) == new
    });
    wait_reason(&ns, "reported", "Drifted", "ObjectMissing");
    assert_eq!(wait_reason(&ns, "reported", "Ready", "ObjectMissing")["status"], "False");
    assert!(live(&ns, "reported").is_none());
    request_replacement(&ns, "reported");
    wait_ready(&ns, &["reported"]);
    assert_eq!(color(&ns, "reported"), "green");
}

#[test]
fn own_writes_are_not_drift() {
    let _guard = shared();
    let (plane, ns) = (plane(), with_rights("own"));
    for shade in ["green", "blue", "white", "black"] {
        plane.apply(&["-n", &ns], &config_map("site", "").replace("green", shade));
        wait_until("it matches its Resource", LIMIT, || color(&ns, "site") == shade);
        wait_ready(&ns, &["site"]);
    }
    // A change by another client, reported after all of them, shows that the watch has delivered the own writes.
    paint(&ns, "site", "red");
    wait_until("it is corrected", LIMIT, || color(&ns, "site") == "black");
    wait_event(&ns, "site", "Drifted:");
    let drifted = events(&ns, "site").iter().filter(|event| event.starts_with("Drifted:")).count();
    assert_eq!(drifted, 1, "{:?}", events(&ns, "site"));
}

#[test]
fn repeated_drift_is_reported_as_contested() {
    let _guard = shared();
    let ns = with_rights("contest");
    plane().apply(&["-n", &ns], &config_map("site", ""));
    wait_ready(&ns, &["site"]);
    for round in 0..5 {
        paint(&ns, "site", &format!("red-{round}"));
        wait_until("it is corrected", LIMIT, || color(&ns, "site") == "green");
    }
    wait_event(&ns, "site", "DriftContested:");
}

#[test]
fn many_missing_objects_are_held() {
    let _guard = shared();
    let (plane, ns) = (plane(), with_rights("mass"));
    let names: Vec<String> = (0..8).map(|number| format!("site-{number}")).collect();
    let all: String = names.iter().map(|name| config_map(name, "")).collect();
    plane.apply(&["-n", &ns], &all);
    wait_ready(&ns, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let selected: Vec<&str> = names.iter().map(String::as_str).collect();
    plane.kubectl_ok(&[&["-n", &ns, "delete", "configmap", "--wait=false"], &selected[..]].concat());
    for name in &names {
        wait_reason(&ns, name, "Ready", "ManyObjectsMissing");
    }
    request_replacement(&ns, "site-3");
    wait_ready(&ns, &["site-3"]);
    let there: Vec<&String> = names.iter().filter(|name| live(&ns, name).is_some()).collect();
    assert_eq!(there, ["site-3"], "the others wait for a request");
    for name in &names {
        request_replacement(&ns, name);
    }
    wait_ready(&ns, &selected);
}

#[test]
fn drift_is_found_by_reading_when_the_account_may_not_watch() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("blind");
    let verbs = "--verb=get,create,patch,delete";
    plane.kubectl_ok(&["-n", &ns, "create", "role", "blind", verbs, "--resource=configmaps"]);
    plane.bind(&ns, "blind", "--role=blind", "default");
    plane.apply(&["-n", &ns], &config_map("site", "  drift: { interval: 2s }\n"));
    wait_ready(&ns, &["site"]);
    paint(&ns, "site", "red");
    wait_until("a refresh finds it", LIMIT, || color(&ns, "site") == "green");
}

#[test]
fn drift_that_occurs_while_no_controller_runs_is_corrected() {
    let _guard = exclusive();
    let (plane, ns) = (plane(), with_rights("away"));
    let mut first = Controller::start(plane);
    plane.apply(&["-n", &ns], &format!("{}{}", config_map("changed", ""), config_map("deleted", "")));
    wait_ready(&ns, &["changed", "deleted"]);
    first.terminate(plane);
    paint(&ns, "changed", "red");
    plane.kubectl_ok(&["-n", &ns, "delete", "configmap", "deleted"]);
    let _second = Controller::start(plane);
    wait_until("both are corrected", LIMIT, || color(&ns, "changed") == "green" && color(&ns, "deleted") == "green");
}

#[test]
fn an_object_whose_record_was_lost_is_adopted_by_the_same_resource_only() {
    let _guard = exclusive();
    let (plane, ns) = (plane(), with_rights("lost"));
    let mut first = Controller::start(plane);
    plane.apply(&["-n", &ns], &config_map("site", ""));
    wait_ready(&ns, &["site"]);
    let uid = live(&ns, "site").unwrap()["metadata"]["uid"].clone();
    first.terminate(plane);
    // The Resource and its record are deleted by force; the object stays, with its owner annotation.
    let bare = "{\"metadata\":{\"finalizers\":null}}";
    plane.kubectl_ok(&["-n", &ns, "patch", "pres", "site", "--type=merge", "-p", bare]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "site"]);
    let controller = format!("--as=system:serviceaccount:{NAMESPACE}:purlin");
    let selector = format!("purlin.dev/namespace={ns}");
    plane.kubectl_ok(&["-n", NAMESPACE, "delete", "secret", "-l", &selector, &controller]);

    let _second = Controller::start(plane);
    let other = config_map("other", "").replace("metadata: { name: other }, data", "metadata: { name: site }, data");
    plane.apply(&["-n", &ns], &other);
    wait_reason(&ns, "other", "Ready", "AlreadyExists");
    plane.apply(&["-n", &ns], &config_map("site", ""));
    wait_ready(&ns, &["site"]);
    assert_eq!(live(&ns, "site").unwrap()["metadata"]["uid"], uid, "it is the existing object");
}
