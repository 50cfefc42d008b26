//! The readiness of Kubernetes objects: late, failed, crashing, deleted by another client, or in another cluster.

use std::fs;

use serde_json::{Value, json};

use crate::command_line::purlin;
use crate::controller::Controller;
use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;
use crate::kubernetes_objects::{may_edit, object};

/// A Deployment with one Pod of this outcome, which is late after a second.
fn deployment(name: &str, outcome: &str) -> String {
    let manifest = format!(
        "{{ apiVersion: apps/v1, kind: Deployment, metadata: {{ name: {name} }}, spec: {{ replicas: 1, \
         progressDeadlineSeconds: 1, selector: {{ matchLabels: {{ app: {name} }} }}, template: {{ metadata: {{ labels: {{ \
         app: {name} }}, annotations: {{ test.purlin.dev/outcome: {outcome} }} }}, spec: {{ containers: [{{ name: c, image: \
         x }}] }} }} }} }}"
    );
    object(name, &manifest, "")
}

fn config_map(name: &str, more: &str) -> String {
    object(name, &format!("{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name} }} }}"), more)
}

/// Gives the Pods with this label another outcome.
fn set_outcome(namespace: &str, label: &str, outcome: &str) {
    let annotation = format!("test.purlin.dev/outcome={outcome}");
    wait_until("a Pod exists", LIMIT, || {
        plane().kubectl(&["-n", namespace, "annotate", "--overwrite", "pod", "-l", label, &annotation]).status.success()
    });
}

fn uid(namespace: &str, kind: &str, name: &str) -> Value {
    plane().get(&["-n", namespace, kind, name])["metadata"]["uid"].clone()
}

fn exists(namespace: &str, kind: &str, name: &str) -> bool {
    plane().kubectl(&["-n", namespace, "get", kind, name]).status.success()
}

/// Waits until a Resource is degraded, and compares what kstatus reads from it.
fn wait_degraded(namespace: &str, name: &str, kind: &str) -> Value {
    wait_for(&format!("{name} is degraded, {kind}"), LIMIT, || {
        let found = resource(namespace, name)?;
        let is_degraded = |kind: &str| condition(&found, kind).is_some_and(|one| one["reason"] == "Degraded");
        (is_degraded("Ready") && is_degraded(kind) && !is_ready(&found)).then_some(found)
    })
}

#[test]
fn a_deployment_that_was_late_is_never_destroyed_and_becomes_ready_when_it_is() {
    let _guard = exclusive();
    let plane = plane();
    let ns = plane.namespace("late");
    may_edit(&ns);
    let mut first = Controller::start(plane);
    plane.apply(&["-n", &ns], &(deployment("web", "unready") + &config_map("after", "dependsOn: [{ name: web }]")));
    wait_degraded(&ns, "web", "Stalled");
    let before = uid(&ns, "deployment", "web");

    first.terminate(plane);
    let _second = Controller::start(plane);
    wait_until("the new controller waits for it too", LIMIT, || {
        resource(&ns, "web")
            .is_some_and(|web| condition(&web, "Stalled").is_some_and(|one| one["reason"] == "Degraded"))
    });
    plane.kubectl_ok(&["-n", &ns, "annotate", "pres", "web", "purlin.dev/reconcile-requested-at=now"]);
    wait_until("the request is handled", LIMIT, || {
        resource(&ns, "web").is_some_and(|web| web["status"]["lastHandledReconcileAt"] == "now")
    });
    assert!(!exists(&ns, "configmap", "after"), "the dependent waits");
    set_outcome(&ns, "app=web", "running");
    wait_ready(&ns, &["web", "after"]);
    assert_eq!(uid(&ns, "deployment", "web"), before, "it was not replaced");
}

#[test]
fn a_rollback_of_a_failed_rollout_becomes_ready() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("rollback");
    may_edit(&ns);
    plane.apply(&["-n", &ns], &deployment("web", "running"));
    wait_ready(&ns, &["web"]);
    let before = uid(&ns, "deployment", "web");
    plane.apply(&["-n", &ns], &deployment("web", "unready"));
    let failed = wait_degraded(&ns, "web", "Stalled");
    let message = condition(&failed, "Ready").unwrap()["message"].to_string();
    assert!(message.contains("ProgressDeadlineExceeded"), "{message}");
    plane.apply(&["-n", &ns], &deployment("web", "running"));
    wait_ready(&ns, &["web"]);
    assert_eq!(uid(&ns, "deployment", "web"), before);
}

#[test]
fn ready_follows_the_object_and_nothing_is_changed_because_of_it() {
    let _guard = exclusive();
    let plane = plane();
    let ns = plane.namespace("follows");
    may_edit(&ns);
    let mut first = Controller::start(plane);
    let all = deployment("web", "running") + &config_map("old", "dependsOn: [{ name: web }]");
    plane.apply(&["-n", &ns], &all);
    wait_ready(&ns, &["web", "old"]);
    let generation = || plane.get(&["-n", &ns, "deployment", "web"])["metadata"]["generation"].clone();
    let (before, old) = (generation(), resource(&ns, "old").unwrap()["status"].clone());

    set_outcome(&ns, "app=web", "unready");
    let degraded = wait_degraded(&ns, "web", "Reconciling");
    assert_eq!(condition(&degraded, "Synced").unwrap()["status"], "True", "{degraded:#}");
    plane.apply(&["-n", &ns], &config_map("new", "dependsOn: [{ name: web }]"));
    let waits = wait_reason(&ns, "new", "Ready", "DependencyNotReady");
    assert!(waits["message"].as_str().unwrap().contains("0 of 1 Pods"), "{waits}");

    first.terminate(plane);
    let _second = Controller::start(plane);
    wait_reason(&ns, "new", "Ready", "DependencyNotReady");
    wait_degraded(&ns, "web", "Reconciling");
    assert!(!exists(&ns, "configmap", "new"));
    assert_eq!(resource(&ns, "old").unwrap()["status"], old, "the existing dependent stays as it is");
    set_outcome(&ns, "app=web", "running");
    wait_ready(&ns, &["web", "new"]);
    assert_eq!(generation(), before);
}

#[test]
fn a_job_that_fails_and_a_pod_that_crashes_are_degraded() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("fails");
    may_edit(&ns);
    let pod = "metadata: { labels: { app: NAME }, annotations: { test.purlin.dev/outcome: running } }, spec: { POLICY \
               containers: [{ name: c, image: x }] }";
    let job = format!(
        "{{ apiVersion: batch/v1, kind: Job, metadata: {{ name: job }}, spec: {{ backoffLimit: 0, template: {{ {} }} }} }}",
        pod.replace("NAME", "job").replace("POLICY", "restartPolicy: Never,")
    );
    let pod = pod.replace("labels", "name: alone, labels").replace("NAME", "alone").replace("POLICY", "");
    let alone = format!("{{ apiVersion: v1, kind: Pod, {pod} }}");
    plane.apply(&["-n", &ns], &(object("job", &job, "") + &object("alone", &alone, "")));
    wait_ready(&ns, &["job", "alone"]);
    set_outcome(&ns, "app=job", "failed");
    set_outcome(&ns, "app=alone", "failed");
    wait_degraded(&ns, "job", "Stalled");
    wait_degraded(&ns, "alone", "Stalled");
}

const HELD: &str =
    "{ apiVersion: v1, kind: ConfigMap, metadata: { name: fin, finalizers: [example.com/hold] }, data: { a: b } }";

fn release(namespace: &str) {
    let patch = "{\"metadata\":{\"finalizers\":null}}";
    plane().kubectl_ok(&["-n", namespace, "patch", "configmap", "fin", "--type=merge", "-p", patch]);
}

#[test]
fn an_object_that_another_client_deletes_is_terminating_until_it_is_created_again() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("terminating");
    may_edit(&ns);
    plane.apply(&["-n", &ns], &(object("cm", HELD, "") + &config_map("old", "dependsOn: [{ name: cm }]")));
    wait_ready(&ns, &["cm", "old"]);
    let before = uid(&ns, "configmap", "fin");
    plane.kubectl_ok(&["-n", &ns, "delete", "configmap", "fin", "--wait=false"]);
    let terminating = wait_reason(&ns, "cm", "Ready", "Terminating");
    assert!(terminating["message"].as_str().unwrap().contains("`example.com/hold`"), "{terminating}");
    plane.apply(&["-n", &ns], &config_map("new", "dependsOn: [{ name: cm }]"));
    wait_reason(&ns, "new", "Ready", "DependencyNotReady");
    assert!(!exists(&ns, "configmap", "new") && is_ready(&resource(&ns, "old").unwrap()));
    release(&ns);
    wait_ready(&ns, &["cm", "new"]);
    assert_ne!(uid(&ns, "configmap", "fin"), before);

    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "cm", "new", "old", "--wait=false"]);
    wait_until("the deletion names the finalizer at once", LIMIT, || {
        let ready = resource(&ns, "cm").and_then(|cm| condition(&cm, "Ready"));
        ready
            .is_some_and(|one| one["reason"] == "Deleting" && one["message"].to_string().contains("`example.com/hold`"))
    });
    release(&ns);
    wait_empty(&ns);
}

#[test]
fn a_plan_on_files_says_that_another_client_deletes_an_object() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("deleting");
    let directory = tempfile::tempdir().unwrap();
    let place = |file: &str| directory.path().join(file).to_str().unwrap().to_owned();
    let held = HELD.replace("name: fin", &format!("name: fin, namespace: {ns}"));
    fs::write(place("cm.yaml"), object("cm", &held, "")).unwrap();
    let (file, state) = (place("cm.yaml"), place("purlin.db"));
    let run = |command: &[&str]| {
        let output = purlin(&[command, &["-f", &file, "--state", &state]].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let (applied, text) = run(&["apply", "--yes"]);
    assert!(applied, "{text}");
    plane.kubectl_ok(&["-n", &ns, "delete", "configmap", "fin", "--wait=false"]);
    let (_, text) = run(&["plan"]);
    assert!(text.contains("Terminating") || text.contains("`example.com/hold`"), "{text}");
    assert!(!text.contains("No changes"), "{text}");
    let (applied, text) = run(&["apply", "--yes"]);
    assert!(!applied && text.contains("`example.com/hold`"), "{text}");
    release(&ns);
    let (applied, text) = run(&["apply", "--yes"]);
    assert!(applied && text.contains("1 created"), "{text}");
    release(&ns);
}

#[test]
fn an_object_that_was_not_seen_in_this_cluster_is_not_ready() {
    let _guard = exclusive();
    let plane = plane();
    let [blind, ns] = ["blind", "elsewhere"].map(|prefix| plane.namespace(prefix));
    may_edit(&blind);
    may_edit(&ns);
    let mut first = Controller::start(plane);
    plane.apply(&["-n", &blind], &config_map("map", ""));
    plane.apply(&["-n", &ns], &config_map("ignored", "drift: { action: Ignore }"));
    wait_ready(&blind, &["map"]);
    wait_ready(&ns, &["ignored"]);
    first.terminate(plane);
    // As after a restore: Resources without status, records, and no objects. In one namespace, rights are missing too.
    plane.kubectl_ok(&["-n", &blind, "delete", "rolebinding", "edit"]);
    let bare = json!({"status": {"conditions": [], "observedGeneration": -1}}).to_string();
    for (ns, name) in [(&blind, "map"), (&ns, "ignored")] {
        plane.kubectl_ok(&["-n", ns, "delete", "configmap", name]);
        plane.kubectl_ok(&["-n", ns, "patch", "pres", name, "--subresource=status", "--type=merge", "-p", &bare]);
    }
    let _second = Controller::start(plane);
    wait_reason(&blind, "map", "Ready", "Forbidden");
    let ignored = wait_reason(&ns, "ignored", "Ready", "Degraded");
    assert!(ignored["message"].as_str().unwrap().contains("no longer exists"), "{ignored}");
    may_edit(&blind);
    wait_ready(&blind, &["map"]);
    assert!(exists(&blind, "configmap", "map"));
}
