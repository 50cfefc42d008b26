//! Crashes, pauses, API errors, and lost or damaged records. Most tests have exclusive access to the control plane.

use std::sync::{Arc, Mutex};

use crate::controller::{Controller, SHARDS};
use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;
use crate::kubernetes_objects::{object, writes_of};
use crate::proxy::{Fault, Proxy};

/// A Deployment whose Pods become ready only when the test calls [`release`].
pub(crate) fn slow(name: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
         kubernetes_object\n  config:\n    manifest: {{ apiVersion: apps/v1, kind: Deployment, metadata: {{ \
         generateName: {name}- }}, spec: {{ replicas: 1, selector: {{ matchLabels: {{ app: {name} }} }}, template: {{ \
         metadata: {{ labels: {{ app: {name} }}, annotations: {{ test.purlin.dev/outcome: unready }} }}, spec: {{ \
         containers: [{{ name: c, image: x }}] }} }} }} }}\n"
    )
}

pub(crate) fn deployments(namespace: &str) -> Vec<String> {
    let list = plane().get(&["-n", namespace, "deployments"]);
    let names = list["items"].as_array().into_iter().flatten().filter_map(|item| item["metadata"]["uid"].as_str());
    names.map(str::to_owned).collect()
}

fn release(namespace: &str, name: &str) {
    let label = format!("app={name}");
    wait_until("a Pod can be released", LIMIT, || {
        let output = plane().kubectl(&[
            "-n",
            namespace,
            "annotate",
            "--overwrite",
            "pod",
            "-l",
            &label,
            "test.purlin.dev/outcome=running",
        ]);
        output.status.success() && !output.stdout.is_empty()
    });
}

#[test]
fn a_crash_during_a_create_does_not_create_the_object_twice() {
    let _guard = exclusive();
    let ns = with_rights("kill");
    let first = Controller::start(plane());
    plane().apply(&["-n", &ns], &slow("web"));
    wait_until("the call runs", LIMIT, || deployments(&ns).len() == 1);
    let created = deployments(&ns);
    first.kill(plane());

    let second = Controller::start(plane());
    release(&ns, "web");
    wait_ready(&ns, &["web"]);
    assert_eq!(deployments(&ns), created, "it is the object that was created before the crash");
    second.kill(plane());

    // Everything is complete now: a third controller finds nothing to do.
    let third = Controller::start(plane());
    let version = resource(&ns, "web").unwrap()["metadata"]["resourceVersion"].clone();
    plane().apply(&["-n", &ns], &data("other", "one", ""));
    wait_ready(&ns, &["other"]);
    assert_eq!(resource(&ns, "web").unwrap()["metadata"]["resourceVersion"], version);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(deployments(&ns).is_empty());
    drop(third);
}

#[test]
fn crashes_at_any_time_lose_nothing() {
    let _guard = exclusive();
    let ns = plane().namespace("kills");
    let all: Vec<String> = (0..60).map(|number| format!("item-{number}")).collect();
    let manifests: String = all
        .iter()
        .enumerate()
        .map(|(number, name)| match number {
            0..10 => data(name, "start", ""),
            _ => data(name, &format!("\"${{item_{}.id}}\"", number - 10), ""),
        })
        .collect();
    // The controller is killed each time the number of ready objects reaches the next goal.
    plane().kubectl_with_stdin(&["apply", "-n", &ns, "-f", "-"], &manifests);
    // An object that was ready at a crash must be the same object at the end.
    let ready = || {
        let list = plane().get(&["-n", &ns, "pres"]);
        let items = list["items"].as_array().cloned().unwrap_or_default().into_iter().filter(is_ready);
        items.map(|item| (item["metadata"]["name"].to_string(), item["status"]["id"].clone())).collect::<Vec<_>>()
    };
    let mut ids = std::collections::BTreeMap::new();
    for goal in [5, 15, 30, 45] {
        let controller = Controller::start(plane());
        wait_until("some are ready", LIMIT, || ready().len() >= goal);
        controller.kill(plane());
        for (name, id) in ready() {
            assert_eq!(ids.entry(name).or_insert_with(|| id.clone()), &id);
        }
    }
    let _last = Controller::start(plane());
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    wait_ready(&ns, &names);
    assert_eq!(records(&ns).len(), 60);
    let last: std::collections::BTreeMap<_, _> = ready().into_iter().collect();
    assert!(ids.iter().all(|(name, id)| last.get(name) == Some(id)), "{ids:?} {last:?}");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}

#[test]
fn a_shutdown_ends_the_wait_for_the_end_of_an_object_and_the_next_controller_continues_it() {
    let _guard = exclusive();
    let ns = with_rights("stop");
    let mut controller = Controller::start(plane());
    let held = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: held, finalizers: [test.purlin.dev/hold] } }";
    plane().apply(&["-n", &ns], &object("held", held, ""));
    wait_ready(&ns, &["held"]);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "held", "--wait=false"]);
    let is_deleting = || plane().get(&["-n", &ns, "configmap", "held"])["metadata"]["deletionTimestamp"].is_string();
    wait_until("the call runs", LIMIT, is_deleting);
    assert_eq!(controller.terminate(plane()), Some(0));
    assert_eq!(records(&ns).len(), 1, "the object still exists");

    let next = Controller::start(plane());
    wait_until("the next one holds all shards", LIMIT, || next.shards_held() == SHARDS);
    let free = "[{\"op\": \"remove\", \"path\": \"/metadata/finalizers\"}]";
    plane().kubectl_ok(&["-n", &ns, "patch", "configmap", "held", "--type=json", "-p", free]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}

#[test]
fn a_shutdown_ends_the_wait_for_readiness_and_the_next_controller_continues_it() {
    let _guard = exclusive();
    let ns = with_rights("unready");
    let waits = || {
        resource(&ns, "web").and_then(|web| condition(&web, "Ready")).is_some_and(|ready| {
            ready["reason"] == "Progressing"
                && ready["message"]
                    .as_str()
                    .is_some_and(|message| message.contains("waiting for the object to become ready: "))
        })
    };
    let mut controller = Controller::start(plane());
    plane().apply(&["-n", &ns], &format!("{}{}", slow("web"), data("after", "\"${web.id}\"", "")));
    wait_until("the status shows what it waits for", LIMIT, waits);
    let began = std::time::Instant::now();
    assert_eq!(controller.terminate(plane()), Some(0));
    let took = began.elapsed();
    assert!(took < std::time::Duration::from_secs(20), "the wait was not ended: {took:?}");
    assert_eq!(records(&ns).len(), 1, "the object was recorded as created, and no new step started");
    let (created, written) = (deployments(&ns), writes_of(&ns));

    let next = Controller::start(plane());
    wait_until("the next one holds all shards", LIMIT, || next.shards_held() == SHARDS);
    release(&ns, "web");
    wait_ready(&ns, &["web", "after"]);
    assert_eq!((deployments(&ns), writes_of(&ns)), (created, written), "nothing was applied again");
}

#[test]
fn a_paused_controller_that_loses_its_lease_does_nothing_twice() {
    let _guard = exclusive();
    let ns = with_rights("two");
    let first = Controller::start(plane());
    plane().apply(&["-n", &ns], &slow("web"));
    wait_until("the call runs", LIMIT, || deployments(&ns).len() == 1);
    let created = deployments(&ns);
    // The first controller is paused during its call, long enough to lose its shards.
    first.signal("STOP");
    let second = Controller::launch(plane());
    wait_until("the second holds all shards", LIMIT, || second.shards_held() == SHARDS);
    plane().apply(&["-n", &ns], &data("other", "one", ""));
    wait_ready(&ns, &["other"]);
    release(&ns, "web");
    first.signal("CONT");
    wait_ready(&ns, &["web"]);
    assert_eq!(deployments(&ns), created, "nothing was created twice");
}

#[test]
fn the_controller_survives_an_outage_of_the_api_server() {
    let _guard = exclusive();
    let ns = plane().namespace("away");
    let controller = Controller::start(plane());
    plane().apply(&["-n", &ns], &data("before", "one", ""));
    wait_ready(&ns, &["before"]);
    plane().stop_api_server();
    wait_until("the outage is detected", LIMIT, || controller.log().to_lowercase().contains("error"));
    plane().start_api_server();
    plane().apply(&["-n", &ns], &data("after", "\"${before.id}\"", ""));
    wait_ready(&ns, &["before", "after"]);
}

#[test]
fn a_missing_record_never_means_that_the_object_was_not_created() {
    let _guard = exclusive();
    let ns = with_rights("lost");
    let controller = Controller::start(plane());
    plane().apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    let record = records(&ns)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    // The policy of the chart prevents the deletion of records, also by administrators.
    let refused = plane().kubectl(&["-n", NAMESPACE, "delete", "secret", &record]);
    assert!(!refused.status.success());
    plane().kubectl_ok(&["delete", "validatingadmissionpolicybinding", &format!("purlin-records-{NAMESPACE}")]);
    wait_until("the policy is off", LIMIT, || {
        plane().kubectl(&["-n", NAMESPACE, "delete", "secret", &record]).status.success()
    });
    wait_reason(&ns, "item", "Ready", "RecordMissing");
    assert!(records(&ns).is_empty(), "it was not created again");
    plane().helm_ok(&["upgrade", "purlin", chart(), "-n", NAMESPACE, "--set", "replicas=0", "--wait"]);
    drop(controller);
}

/// A family of ConfigMaps with fixed names.
fn config_maps(count: usize) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: web }}\nspec:\n  type: \
         kubernetes_object\n  count: {count}\n  config:\n    manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ \
         generateName: \"web-${{count.index}}-\", labels: {{ of: web }} }}, data: {{ a: b }} }}\n"
    )
}

fn created(namespace: &str) -> std::collections::BTreeSet<String> {
    let list = plane().get(&["-n", namespace, "configmaps", "-l", "of=web"]);
    let names = list["items"].as_array().into_iter().flatten().filter_map(|item| item["metadata"]["name"].as_str());
    names.map(str::to_owned).collect()
}

fn addresses(namespace: &str) -> Vec<String> {
    let address = |secret: &serde_json::Value| secret["metadata"]["annotations"]["purlin.dev/address"].to_string();
    let mut all: Vec<String> = records(namespace).iter().map(address).collect();
    all.sort();
    all
}

#[test]
fn a_missing_record_of_one_instance_blocks_only_that_instance() {
    let _guard = exclusive();
    let ns = with_rights("lostone");
    let _controller = Controller::start(plane());
    plane().apply(&["-n", &ns], &config_maps(3));
    wait_ready(&ns, &["web"]);
    let before = created(&ns);
    let is_second = |secret: &serde_json::Value| secret["metadata"]["annotations"]["purlin.dev/address"] == "web[1]";
    let record = records(&ns).into_iter().find(is_second).unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
    plane().kubectl_ok(&["delete", "validatingadmissionpolicybinding", &format!("purlin-records-{NAMESPACE}")]);
    wait_until("the policy is off", LIMIT, || {
        plane().kubectl(&["-n", NAMESPACE, "delete", "secret", &record]).status.success()
    });
    let lost = wait_reason(&ns, "web", "Ready", "RecordMissing");
    assert!(lost["message"].as_str().unwrap().starts_with("2 of 3 ready; web[1]: "), "{lost}");
    assert_eq!(created(&ns), before, "it was not created again");
    // The other instances and the family still change.
    plane().apply(&["-n", &ns], &config_maps(4));
    wait_until("a new one is created", LIMIT, || created(&ns).len() == 4);
    // To unblock it, the user deletes the object and then the record.
    let second = before.iter().find(|name| name.starts_with("web-1-")).unwrap();
    plane().kubectl_ok(&["-n", &ns, "delete", "configmap", second]);
    crate::command_line::ok(&["state", "rm", "web[1]", "--yes", "-n", &ns]);
    wait_ready(&ns, &["web"]);
    assert_eq!(created(&ns).len(), 4);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "web", "--timeout=60s"]);
    assert!(created(&ns).is_empty() && records(&ns).is_empty());
    plane().helm_ok(&["upgrade", "purlin", chart(), "-n", NAMESPACE, "--set", "replicas=0", "--wait"]);
}

#[test]
fn a_missing_record_without_a_key_is_detected_although_one_with_a_key_exists() {
    let _guard = exclusive();
    let ns = with_rights("lostkeyless");
    let _controller = Controller::start(plane());
    let web = |more: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: web }}\nspec:\n  type: \
             kubernetes_object\n  lifecycle: {{ preventDestroy: true }}\n{more}  config:\n    manifest: {{ apiVersion: v1, kind: \
             ConfigMap, metadata: {{ generateName: web-, labels: {{ of: web }} }} }}\n"
        )
    };
    plane().apply(&["-n", &ns], &web("  count: 2\n"));
    wait_ready(&ns, &["web"]);
    let before = created(&ns);
    // `web[0]` loses its key, and `web[1]` is protected.
    plane().apply(&["-n", &ns], &web(""));
    wait_until("its object has no key", LIMIT, || !addresses(&ns).contains(&"\"web[0]\"".to_owned()));
    let is_single = |secret: &serde_json::Value| secret["metadata"]["annotations"]["purlin.dev/address"] == "web";
    let is_record = |secret: &serde_json::Value| secret["metadata"]["labels"]["purlin.dev/record"] == "head";
    let all = records(&ns);
    let record = all.iter().find(|secret| is_single(secret) && is_record(secret)).unwrap();
    let record = record["metadata"]["name"].as_str().unwrap().to_owned();
    plane().kubectl_ok(&["delete", "validatingadmissionpolicybinding", &format!("purlin-records-{NAMESPACE}")]);
    wait_until("the policy is off", LIMIT, || {
        plane().kubectl(&["-n", NAMESPACE, "delete", "secret", &record]).status.success()
    });
    wait_until("it is detected", LIMIT, || {
        resource(&ns, "web").unwrap()["status"].to_string().contains("RecordMissing")
    });
    // The first instance of a family is not created in its place either.
    plane().apply(&["-n", &ns], &web("  count: 2\n"));
    let lost = wait_for("web[0] is reported", LIMIT, || {
        let ready = condition(&resource(&ns, "web")?, "Ready")?;
        ready["message"].as_str().filter(|message| message.contains("web[0]")).map(str::to_owned)
    });
    assert!(lost.contains("the record of `web` is missing"), "{lost}");
    assert_eq!(created(&ns), before, "nothing was created");
    crate::command_line::ok(&["state", "rm", "web", "--yes", "-n", &ns]);
    wait_ready(&ns, &["web"]);
    assert_eq!(created(&ns).len(), 3, "only now a new one was created");
    plane().helm_ok(&["upgrade", "purlin", chart(), "-n", NAMESPACE, "--set", "replicas=0", "--wait"]);
}

#[test]
fn a_crash_between_the_record_of_an_instance_and_the_index_of_its_family_creates_it_once() {
    let _guard = exclusive();
    let ns = with_rights("between");
    let armed = Arc::new(Mutex::new(false));
    let shared = armed.clone();
    let proxy = Proxy::start(plane(), move |method, path| {
        let is_index = method == "PUT" && path.contains("/secrets/purlin-family-");
        (is_index && *shared.lock().unwrap()).then_some(Fault::TooManyRequests)
    });
    let first = Controller::launch_over(plane(), &[], proxy.kubeconfig());
    plane().apply(&["-n", &ns], &config_maps(1));
    wait_ready(&ns, &["web"]);
    let before = created(&ns);
    *armed.lock().unwrap() = true;
    plane().apply(&["-n", &ns], &config_maps(2));
    wait_until("the record of the second instance exists", LIMIT, || addresses(&ns).len() == 3);
    assert_eq!(created(&ns), before, "an instance is created only after the index lists it");
    first.kill(plane());
    drop(proxy);
    let _second = Controller::start(plane());
    wait_ready(&ns, &["web"]);
    assert_eq!(created(&ns).len(), 2);
    assert!(created(&ns).is_superset(&before));
    assert_eq!(addresses(&ns), ["\"web\"", "\"web[0]\"", "\"web[1]\""]);
}

#[test]
fn crashes_at_any_time_create_every_instance_of_a_family_once() {
    let _guard = exclusive();
    let ns = with_rights("killfamily");
    plane().apply(&["-n", &ns], &config_maps(60));
    for goal in [3, 20, 40] {
        let controller = Controller::start(plane());
        wait_until("some are created", LIMIT, || created(&ns).len() >= goal);
        controller.kill(plane());
    }
    let _last = Controller::start(plane());
    wait_ready(&ns, &["web"]);
    assert_eq!(created(&ns).len(), 60);
    assert_eq!(resource(&ns, "web").unwrap()["status"]["instances"]["ready"], 60);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "web", "--timeout=60s"]);
    assert!(created(&ns).is_empty() && records(&ns).is_empty());
}

#[test]
fn the_record_of_a_force_deleted_resource_is_abandoned_and_can_be_adopted() {
    let _guard = exclusive();
    let ns = with_rights("force");
    let controller = Controller::start(plane());
    let manifest = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: item }\nspec:\n  type: \
                    kubernetes_object\n  config:\n    manifest: { apiVersion: v1, kind: ConfigMap, metadata: { name: \
                    item }, data: { a: b } }\n";
    plane().apply(&["-n", &ns], manifest);
    wait_ready(&ns, &["item"]);
    let uid = plane().get(&["-n", &ns, "configmap", "item"])["metadata"]["uid"].clone();
    controller.kill(plane());
    plane().kubectl_ok(&[
        "-n",
        &ns,
        "patch",
        "pres",
        "item",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "item", "--timeout=30s"]);
    let controller = Controller::start(plane());
    wait_until("it is reported", LIMIT, || controller.log().contains("Abandoned"));
    assert_eq!(plane().get(&["-n", &ns, "configmap", "item"])["metadata"]["uid"], uid, "it is not destroyed");
    plane().apply(&["-n", &ns], manifest);
    wait_ready(&ns, &["item"]);
    assert_eq!(plane().get(&["-n", &ns, "configmap", "item"])["metadata"]["uid"], uid, "it is the same object");
    wait_event(&ns, "item", "Adopted");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "item", "--timeout=60s"]);
    assert!(records(&ns).is_empty());
}

#[test]
fn a_deleted_crd_destroys_nothing() {
    let _guard = exclusive();
    let ns = with_rights("crd");
    let controller = Controller::start(plane());
    let manifest = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: item }\nspec:\n  type: \
                    kubernetes_object\n  config:\n    manifest: { apiVersion: v1, kind: ConfigMap, metadata: { name: \
                    item }, data: { a: b } }\n";
    plane().apply(&["-n", &ns], manifest);
    wait_ready(&ns, &["item"]);
    let uid = plane().get(&["-n", &ns, "configmap", "item"])["metadata"]["uid"].clone();
    plane().kubectl_ok(&["delete", "crd", "resources.purlin.dev", "--wait=false"]);
    wait_reason(&ns, "item", "DeletionBlocked", "CustomResourceDefinitionTerminating");
    assert_eq!(plane().get(&["-n", &ns, "configmap", "item"])["metadata"]["uid"], uid, "nothing is destroyed");
    // The documented procedure: release the Resources, which keeps the records, and install again.
    let released = std::process::Command::new(env!("CARGO_BIN_EXE_purlin"))
        .args(["state", "release", "--all", "--yes", "-n", &ns])
        .env("KUBECONFIG", plane().kubeconfig())
        .env("PURLIN_NAMESPACE", NAMESPACE)
        .output()
        .unwrap();
    assert!(released.status.success(), "{}", String::from_utf8_lossy(&released.stderr));
    plane().kubectl_ok(&["get", "pres", "-A"]);
    let others: Vec<serde_json::Value> = plane().get(&["pres", "-A"])["items"].as_array().cloned().unwrap_or_default();
    for other in others {
        let (ns, name) =
            (other["metadata"]["namespace"].as_str().unwrap(), other["metadata"]["name"].as_str().unwrap());
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        plane().kubectl(&["-n", ns, "patch", "pres", name, "--type=merge", "-p", patch]);
    }
    plane().kubectl_ok(&["wait", "--for=delete", "crd/resources.purlin.dev", "--timeout=60s"]);
    controller.kill(plane());
    plane().helm_ok(&["upgrade", "purlin", chart(), "-n", NAMESPACE, "--set", "replicas=0", "--wait"]);
    plane().kubectl_ok(&["wait", "--for=condition=Established", "crd/resources.purlin.dev", "--timeout=60s"]);
    let _controller = Controller::start(plane());
    plane().apply(&["-n", &ns], manifest);
    wait_ready(&ns, &["item"]);
    assert_eq!(plane().get(&["-n", &ns, "configmap", "item"])["metadata"]["uid"], uid, "it was adopted");
}

#[test]
fn a_damaged_record_blocks_only_its_object() {
    let _guard = shared();
    let ns = with_rights("damaged");
    let manifest = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: item }\nspec:\n  type: \
                    kubernetes_object\n  config:\n    manifest: { apiVersion: v1, kind: ConfigMap, metadata: { name: \
                    item }, data: { a: b } }\n";
    plane().apply(&["-n", &ns], &format!("{manifest}{}", data("other", "one", "")));
    wait_ready(&ns, &["item", "other"]);
    let uid = plane().get(&["-n", &ns, "configmap", "item"])["metadata"]["uid"].clone();
    let record =
        records(&ns).into_iter().find(|record| record["metadata"]["annotations"]["purlin.dev/address"] == "item");
    let record = record.expect("the record of `item`");
    let name = record["metadata"]["name"].as_str().unwrap();
    let key = record["data"].as_object().unwrap().keys().next().unwrap().clone();
    let write = |value: &serde_json::Value| {
        let patch = serde_json::json!({ "data": { (key.clone()): value } }).to_string();
        plane().kubectl_ok(&["-n", NAMESPACE, "patch", "secret", name, "--type=merge", "-p", &patch]);
    };
    write(&"Z2FyYmFnZQ==".into());
    let unreadable = wait_reason(&ns, "item", "Ready", "RecordUnreadable");
    assert!(!unreadable["message"].as_str().unwrap().contains("garbage"), "{unreadable}");
    // Neither an edit nor a deletion changes the object; other objects proceed.
    plane().apply(&["-n", &ns], &format!("{}{}", manifest.replace("a: b", "a: c"), data("other", "two", "")));
    wait_until("the other object is updated", LIMIT, || {
        resource(&ns, "other").is_some_and(|other| is_ready(&other) && other["status"]["attributes"]["output"] == "two")
    });
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "item", "--wait=false"]);
    wait_reason(&ns, "item", "DeletionBlocked", "RecordUnreadable");
    let live = plane().get(&["-n", &ns, "configmap", "item"]);
    assert_eq!((&live["metadata"]["uid"], &live["data"]["a"]), (&uid, &"b".into()));
    // After the record is restored, the deletion completes.
    write(&record["data"][&key]);
    wait_until("the deletion completes", LIMIT, || resource(&ns, "item").is_none());
    assert!(!plane().kubectl(&["-n", &ns, "get", "configmap", "item"]).status.success());
}

#[test]
fn two_controllers_without_a_lease_create_nothing_twice() {
    let _guard = exclusive();
    let ns = with_rights("fence");
    let both: Vec<Controller> = (0..2).map(|_| Controller::launch_with(plane(), &["--leader-elect=false"])).collect();
    for controller in &both {
        wait_until("both are ready", LIMIT, || controller.http("/readyz").is_some_and(|(status, _)| status == 200));
    }
    let all: Vec<String> = (0..20).map(|number| format!("item-{number}")).collect();
    let manifests: String = all
        .iter()
        .map(|name| {
            format!(
                "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
                 kubernetes_object\n  config:\n    manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ \
                 generateName: {name}- }}, data: {{ a: b }} }}\n"
            )
        })
        .collect();
    plane().apply(&["-n", &ns], &manifests);
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    wait_ready(&ns, &names);
    let created = plane().get(&["-n", &ns, "configmaps"])["items"].as_array().unwrap().clone();
    let ours =
        created.iter().filter(|object| object["metadata"]["name"].as_str().unwrap().starts_with("item-")).count();
    assert_eq!(ours, all.len(), "the compare-and-swap of records prevents duplicates");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}

#[test]
fn the_controller_survives_throttling_and_expired_watches() {
    let _guard = exclusive();
    let ns = with_rights("busy");
    let counts = Arc::new(Mutex::new([0_u32; 3]));
    let shared = Arc::clone(&counts);
    // Every third write is throttled. The first twelve watches fail because their version is too old, in either way.
    let proxy = Proxy::start(plane(), move |method, path| {
        let mut counts = shared.lock().unwrap();
        let count = |counts: &mut [u32; 3], which: usize| {
            counts[which] += 1;
            counts[which]
        };
        if path.contains("watch=") {
            let nth = count(&mut counts, 0);
            return (nth <= 12).then_some(if nth % 2 == 0 { Fault::Gone } else { Fault::GoneLater });
        }
        if matches!(method, "POST" | "PATCH" | "PUT" | "DELETE") && !path.contains("/leases") {
            return (count(&mut counts, 1) % 3 == 0).then_some(Fault::TooManyRequests);
        }
        (count(&mut counts, 2) % 5 == 0).then_some(Fault::TooManyRequests)
    });
    let controller = Controller::launch_over(plane(), &[], proxy.kubeconfig());
    let manifest = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: site }, data: { a: ours } }";
    let site = format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: site }}\nspec:\n  type: \
         kubernetes_object\n  config: {{ manifest: {manifest} }}\n"
    );
    plane().apply(&["-n", &ns], &format!("{site}{}", data("user", "\"${site.id}\"", "")));
    wait_ready(&ns, &["site", "user"]);
    assert_eq!(records(&ns).len(), 2, "each was created once");
    let value = |ns: &str| plane().get(&["-n", ns, "configmap", "site"])["data"]["a"].clone();
    plane().kubectl_ok(&["-n", &ns, "patch", "configmap", "site", "--type=merge", "-p", "{\"data\":{\"a\":\"b\"}}"]);
    // After several failures in a row, a watch waits up to half a minute before each retry.
    wait_until("drift is detected and corrected", 3 * LIMIT, || value(&ns) == "ours");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    // The record is deleted after the Resource, and its deletion is throttled too.
    wait_until("nothing is recorded", LIMIT, || records(&ns).is_empty());
    assert!(counts.lock().unwrap().iter().all(|count| *count > 3), "{counts:?}");
    drop(controller);
}

/// As after the loss of a role binding, or with an expired token.
#[test]
fn the_removal_of_a_finalizer_is_retried() {
    let _guard = exclusive();
    let ns = plane().namespace("stuck");
    let tried = Arc::new(Mutex::new(0));
    let shared = Arc::clone(&tried);
    let proxy = Proxy::start(plane(), move |method, path| {
        if method != "PATCH" || !path.contains("/resources/never?") {
            return None;
        }
        let mut tried = shared.lock().unwrap();
        *tried += 1;
        (*tried <= 2).then_some(Fault::Gone)
    });
    let _controller = Controller::launch_over(plane(), &[], proxy.kubeconfig());
    let never = data("never", "one", "dependsOn: [{ name: nothing }]");
    let never = never.replace("{ name: never }", "{ name: never, finalizers: [purlin.dev/destroy] }");
    plane().apply(&["-n", &ns], &never);
    wait_reason(&ns, "never", "Ready", "DependencyNotFound");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "never", "--wait=false"]);
    wait_empty(&ns);
    assert_eq!(*tried.lock().unwrap(), 3, "the removal fails twice, then succeeds");
}
