//! Deleted namespaces: the objects in them are deleted in the order of the real namespace controller, which is
//! arbitrary.

use std::fs;

use serde_json::Value;

use crate::command_line::ok;
use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::installation::*;

fn example(file: &str) -> String {
    let path = format!("{}/examples/kubernetes/{file}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).expect("an example")
}

/// A `kubernetes_object` Resource over a manifest in flow style.
fn object(name: &str, manifest: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
         kubernetes_object\n  config:\n    manifest: {manifest}\n"
    )
}

fn exists(namespace: &str, what: &[&str]) -> bool {
    plane().kubectl(&[&["-n", namespace, "get"], what].concat()).status.success()
}

fn wait_gone(namespace: &str) {
    wait_until(&format!("the namespace {namespace} is deleted"), LIMIT, || {
        !exists("default", &["namespace", namespace])
    });
    wait_until("nothing of it is recorded", LIMIT, || records(namespace).is_empty());
}

#[test]
fn the_example_is_deleted_with_its_namespace_and_permissions() {
    let _guard = shared();
    let ns = plane().namespace("whole");
    plane().apply(&["-n", &ns], &example("rbac.yaml"));
    plane().apply(&["-n", &ns], &example("shop.yaml"));
    wait_ready(&ns, &["site", "web", "address"]);
    plane().kubectl_ok(&["delete", "namespace", &ns, "--wait=false"]);
    wait_gone(&ns);
}

/// Permissions and objects are deleted before Purlin destroys anything, and the outcome of one create is unknown.
#[test]
fn objects_deleted_while_no_controller_ran_are_detected_without_permissions() {
    let _guard = exclusive();
    let ns = plane().namespace("rightless");
    let first = Controller::start(plane());
    plane().apply(&["-n", &ns], &example("rbac.yaml"));
    plane().apply(&["-n", &ns], &example("shop.yaml"));
    wait_ready(&ns, &["site", "web", "address"]);
    let slow = "{ apiVersion: apps/v1, kind: Deployment, metadata: { name: slow }, spec: { replicas: 1, selector: { \
                matchLabels: { app: slow } }, template: { metadata: { labels: { app: slow }, annotations: { \
                test.purlin.dev/outcome: unready } }, spec: { containers: [{ name: c, image: x }] } } } }";
    plane().apply(&["-n", &ns], &object("slow", slow));
    wait_until("the Deployment is created", LIMIT, || exists(&ns, &["deployment", "slow"]));
    first.kill(plane());
    plane().kubectl_ok(&["delete", "namespace", &ns, "--wait=false"]);
    for kind in ["rolebindings", "roles", "deployments", "configmaps"] {
        wait_until(&format!("there are no {kind}"), LIMIT, || {
            plane().get(&["-n", &ns, kind])["items"].as_array().is_some_and(Vec::is_empty)
        });
    }
    assert!(resource(&ns, "web").is_some() && resource(&ns, "slow").is_some(), "the finalizers keep the Resources");
    let _second = Controller::start(plane());
    wait_gone(&ns);
}

/// The content of a namespace that is removed by force stays in the API server, which rejects every change of it.
/// Removes the finalizers of a namespace, as an administrator does who does not wait for its content.
fn finalize(ns: &str) {
    let Ok(mut namespace) =
        serde_json::from_slice::<Value>(&plane().kubectl(&["get", "-o", "json", "namespace", ns]).stdout)
    else {
        return;
    };
    namespace["spec"]["finalizers"] = serde_json::json!([]);
    let path = format!("/api/v1/namespaces/{ns}/finalize");
    plane().kubectl_with_stdin(&["replace", "--raw", &path, "-f", "-"], &namespace.to_string());
}

#[test]
fn a_namespace_that_was_removed_by_force_and_created_again_is_emptied() {
    let _guard = exclusive();
    let ns = plane().namespace("forced");
    let controller = Controller::start(plane());
    let config = "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: { name: random }\nspec: {}\n";
    plane().apply(&["-n", &ns], &[config, &data("base", "one", ""), &data("top", "\"${base.id}\"", "")].concat());
    wait_ready(&ns, &["base", "top"]);
    // Its Resources are deleted, and the controller cannot release them before the namespace is gone.
    controller.signal("STOP");
    plane().kubectl_ok(&["delete", "namespace", &ns, "--wait=false"]);
    wait_until("the Resources are being deleted", LIMIT, || {
        resource(&ns, "base").is_some_and(|base| base["metadata"]["deletionTimestamp"].is_string())
    });
    // The namespace controller writes the namespace at the same time, and the API server refuses an old version.
    wait_until("the namespace is gone", LIMIT, || {
        finalize(&ns);
        !exists("default", &["namespace", &ns])
    });
    assert!(resource(&ns, "base").is_some(), "its content stays");
    controller.signal("CONT");
    let attempts = || controller.log().matches("does not exist, but the object still does").count();
    wait_until("the controller tries to release them several times", LIMIT, || attempts() >= 4);
    assert!(!records(&ns).is_empty(), "what is recorded says that the objects are destroyed");
    // Neither the ProviderConfig nor the Resources are written in a hot loop.
    let metrics = controller.metrics();
    let failed = metrics.lines().filter(|line| line.starts_with("purlin_api_requests_total") && line.contains("404"));
    let failed: f64 = failed.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum();
    assert!(failed < 100.0, "{failed} requests failed");
    plane().kubectl_ok(&["create", "namespace", &ns]);
    wait_until("the Resources are deleted", 2 * LIMIT, || {
        resource(&ns, "base").is_none() && resource(&ns, "top").is_none()
    });
    wait_until("nothing of it is recorded", LIMIT, || records(&ns).is_empty());
    drop(controller);
}

#[test]
fn an_object_with_the_finalizer_of_another_controller_is_awaited_and_reported() {
    let _guard = exclusive();
    let ns = plane().namespace("held");
    let first = Controller::start(plane());
    plane().apply(&["-n", &ns], &example("rbac.yaml"));
    plane().apply(
        &["-n", &ns],
        &object("kept", "{ apiVersion: v1, kind: ConfigMap, metadata: { name: kept }, data: { a: b } }"),
    );
    wait_ready(&ns, &["kept"]);
    first.kill(plane());
    let finalizers = |list: &str| {
        let patch = format!(r#"{{"metadata":{{"finalizers":{list}}}}}"#);
        plane().kubectl_ok(&["-n", &ns, "patch", "configmap", "kept", "--type=merge", "-p", &patch]);
    };
    finalizers(r#"["example.com/hold"]"#);
    plane().kubectl_ok(&["delete", "namespace", &ns, "--wait=false"]);
    wait_until("the permissions are deleted", LIMIT, || !exists(&ns, &["rolebinding", "purlin"]));
    let _second = Controller::start(plane());
    let forbidden = wait_reason(&ns, "kept", "Ready", "Forbidden");
    let message = forbidden["message"].as_str().unwrap();
    assert!(message.contains("the namespace is being deleted"), "{message}");
    wait_until("the message lists the remaining objects", LIMIT, || {
        let resource = resource(&ns, "kept").unwrap_or_default();
        condition(&resource, "Ready").is_some_and(|ready| ready["message"].to_string().contains("configmaps. has 1"))
    });
    finalizers("null");
    wait_gone(&ns);
}

#[test]
fn an_object_in_another_namespace_does_not_count_as_deleted() {
    let _guard = shared();
    let (ns, far) = (plane().namespace("near"), plane().namespace("far"));
    let account = format!("--serviceaccount={ns}:default");
    let grant = || plane().kubectl_ok(&["-n", &far, "create", "rolebinding", "edit", "--clusterrole=edit", &account]);
    grant();
    let manifest = format!(
        "{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: away, namespace: {far} }}, data: {{ a: b }} }}"
    );
    plane().apply(&["-n", &ns], &object("away", &manifest));
    wait_ready(&ns, &["away"]);
    plane().kubectl_ok(&["-n", &far, "delete", "rolebinding", "edit"]);
    plane().kubectl_ok(&["delete", "namespace", &ns, "--wait=false"]);
    let forbidden = wait_reason(&ns, "away", "Ready", "Forbidden");
    let message = forbidden["message"].as_str().unwrap();
    assert!(message.contains(&format!("bind a Role in namespace `{far}` to the service account")), "{message}");
    assert!(exists(&far, &["configmap", "away"]) && exists("default", &["namespace", &ns]));
    // The user grants the permission again.
    grant();
    wait_gone(&ns);
    assert!(!exists(&far, &["configmap", "away"]), "it was destroyed");
}

/// A record without a Resource, of a create whose outcome the provider cannot determine: it keeps its ProviderConfig,
/// and the ProviderConfig keeps the namespace.
#[test]
fn an_interrupted_create_that_keeps_a_namespace_is_reported_with_a_hint() {
    let _guard = exclusive();
    let bench = crate::troubled::Bench::new("orphaned");
    let ns = &bench.ns;
    let first = Controller::start(plane());
    bench.trouble("cut", "on_create: slow", "");
    bench.wait_started();
    let corner = || plane().get(&["-n", ns, "ppc", "corner"]);
    wait_until("the ProviderConfig has its finalizer", LIMIT, || corner()["metadata"]["finalizers"].is_array());
    first.kill(plane());
    let none = r#"{"metadata":{"finalizers":null}}"#;
    plane().kubectl_ok(&["-n", ns, "patch", "pres", "cut", "--type=merge", "-p", none]);
    plane().kubectl_ok(&["-n", ns, "delete", "pres", "cut", "--timeout=30s"]);
    plane().kubectl_ok(&["delete", "namespace", ns, "--wait=false"]);
    let second = Controller::start(plane());
    wait_until("the ProviderConfig shows what uses it", LIMIT, || {
        let blocked = condition(&corner(), "DeletionBlocked").unwrap_or_default();
        blocked["message"]
            .as_str()
            .is_some_and(|message| message.contains(&format!("`purlin state rm cut --force -n {ns}`")))
    });
    wait_until("the record is reported", LIMIT, || {
        let log = second.log();
        let mut lines = log.lines();
        lines.any(|line| line.contains("Abandoned") && line.contains(&format!("`purlin state recover -n {ns}`")))
    });
    ok(&["state", "rm", "cut", "--force", "--yes", "-n", ns]);
    wait_gone(ns);
}
