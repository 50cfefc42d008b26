//! At every moment of a change, kstatus says what is true of the objects.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

use serde::Deserialize;
use serde_json::Value;

use super::program;
use crate::controlplane::wait_until;
use crate::installation::*;
use crate::kubernetes_objects::{may_edit, object};
use crate::pages::root;

/// Computes the kstatus of every version of every Resource of a namespace.
struct Watcher {
    process: Child,
    output: BufReader<ChildStdout>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    statuses: BTreeMap<String, Vec<String>>,
    too_early: Vec<String>,
    compared: usize,
}

impl Watcher {
    fn start(namespace: &str) -> Self {
        let mut command = plane().command(&program());
        let health = root().join("examples/argocd/resource_customizations/purlin.dev/Resource/health.lua");
        command.args(["watch", "-n", namespace, "-l"]).arg(health).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let mut output = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "watching\n");
        Self { process, output }
    }

    /// Ends it, and checks that no status was `Current` too early.
    fn finish(mut self) -> Report {
        drop(self.process.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("a report");
        assert!(self.process.wait().expect("it ends").success(), "{text}");
        let report: Report = serde_json::from_str(&text).expect("a report");
        assert!(report.too_early.is_empty(), "{}", report.too_early.join("\n"));
        report
    }
}

fn settings(n: u32) -> String {
    let manifest = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: settings }, data: { number: \"N\" } }";
    object("settings", &manifest.replace('N', &n.to_string()), "")
}

fn is_ready_with(namespace: &str, name: &str, n: u32) -> bool {
    let number = Value::from(n.to_string());
    resource(namespace, name)
        .is_some_and(|found| is_ready(&found) && found["status"]["attributes"]["object"]["data"]["number"] == number)
}

#[test]
fn a_resource_is_current_only_when_its_newest_generation_was_carried_out() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("kstatus");
    may_edit(&ns);
    let watcher = Watcher::start(&ns);
    let immutable = "{ apiVersion: v1, kind: ConfigMap, metadata: { NAME }, immutable: true, data: { number: \"N\" } }";
    let fixed = |n: &str| object("fixed", &immutable.replace("NAME", "name: fixed").replace("\"N\"", n), "");
    let first = "lifecycle: { createBeforeDestroy: true }";
    let named = |n: &str| object("named", &immutable.replace("NAME", "generateName: n-").replace("\"N\"", n), first);

    // Updates without waiting for the previous one.
    for n in 1..=12 {
        plane.apply(&["-n", &ns], &settings(n));
    }
    wait_until("the last update is made", LIMIT, || is_ready_with(&ns, "settings", 12));
    // Both orders of a replacement.
    for n in ["'1'", "'2'", "'3'"] {
        plane.apply(&["-n", &ns], &format!("{}{}", fixed(n), named(n)));
        wait_until("the objects are replaced", LIMIT, || {
            let n = n.trim_matches('\'').parse().unwrap();
            is_ready_with(&ns, "fixed", n) && is_ready_with(&ns, "named", n)
        });
    }
    // A change that is refused, and then corrected.
    plane.apply(&["-n", &ns], &settings(13).replace("config:\n", "config:\n    manifests: []\n"));
    wait_reason(&ns, "settings", "Stalled", "InvalidConfig");
    plane.apply(&["-n", &ns], &settings(14));
    wait_until("the correction is made", LIMIT, || is_ready_with(&ns, "settings", 14));

    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    let report = watcher.finish();
    assert!(report.compared > 10, "{report:?}");
    for (name, seen) in &report.statuses {
        assert!(seen.starts_with(&["InProgress".into(), "Current".into()]), "{name}: {seen:?}");
        assert!(seen.ends_with(&["Terminating".into(), "NotFound".into()]), "{name}: {seen:?}");
    }
    assert!(report.statuses["settings"].contains(&"Failed".to_owned()), "{report:?}");
}

#[test]
fn a_change_that_waits_for_an_object_an_approval_or_a_user_is_in_progress() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("kstatus-waits");
    may_edit(&ns);
    let watcher = Watcher::start(&ns);
    let deployment = "{ apiVersion: apps/v1, kind: Deployment, metadata: { name: web }, spec: { replicas: 1, selector: { \
                      matchLabels: { app: web } }, template: { metadata: { labels: { app: web }, annotations: { \
                      test.purlin.dev/outcome: unready } }, spec: { containers: [{ name: c, image: x }] } } } }";
    let guarded =
        |input: &str, more: &str| data("guarded", input, &format!("approval: {{ requireFor: [Update] }}\n{more}"));
    plane.apply(&["-n", &ns], &(object("web", deployment, "") + &guarded("one", "")));
    wait_ready(&ns, &["guarded"]);
    let ready = |label: &str| {
        let annotate = ["annotate", "--overwrite", "pod", "-l", label, "test.purlin.dev/outcome=running"];
        wait_until("the Pod runs", LIMIT, || plane.kubectl(&[&["-n", &ns][..], &annotate].concat()).status.success());
    };
    ready("app=web");
    wait_ready(&ns, &["web"]);

    plane.apply(&["-n", &ns], &guarded("two", ""));
    wait_reason(&ns, "guarded", "Ready", "ApprovalRequired");
    plane.apply(&["-n", &ns], &guarded("three", "suspend: true"));
    wait_reason(&ns, "guarded", "Synced", "Suspended");
    // Back to the state that is recorded: there is nothing to approve.
    plane.apply(&["-n", &ns], &guarded("one", "suspend: false"));
    wait_ready(&ns, &["guarded"]);
    let report = watcher.finish();
    for name in ["web", "guarded"] {
        let seen = &report.statuses[name];
        assert!(!seen.contains(&"Failed".to_owned()), "{name}: {seen:?}");
    }
    assert_eq!(report.statuses["web"], ["InProgress", "Current"]);
    assert_eq!(report.statuses["guarded"], ["InProgress", "Current", "InProgress", "Current"]);
}

#[test]
fn all_resources_are_current_only_when_the_dependents_of_a_change_have_followed_it() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("kstatus-all");
    may_edit(&ns);
    let copies: Vec<String> = (0..40).map(|number| format!("copy-{number}")).collect();
    let copy = |name: &String| {
        let manifest = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: NAME }, data: { number: \
                        \"${settings.object.data.number}\" } }";
        object(name, &manifest.replace("NAME", name), "")
    };
    plane.apply(&["-n", &ns], &(settings(1) + &copies.iter().map(copy).collect::<String>()));
    let follow = |n: u32| {
        let number = Value::from(n.to_string());
        wait_until("all have followed", LIMIT, || {
            let list = plane.get(&["-n", &ns, "configmaps"]);
            let items = list["items"].as_array().cloned().unwrap_or_default();
            items.iter().filter(|item| item["data"]["number"] == number).count() == copies.len() + 1
        });
        wait_ready(&ns, &copies.iter().map(String::as_str).collect::<Vec<_>>());
    };
    follow(1);
    let watcher = Watcher::start(&ns);
    for n in 2..=4 {
        plane.apply(&["-n", &ns], &settings(n));
        follow(n);
    }
    let report = watcher.finish();
    assert!(report.compared > copies.len(), "{report:?}");
    for name in &copies {
        assert!(report.statuses[name].contains(&"InProgress".to_owned()), "{name}: {report:?}");
    }
}
