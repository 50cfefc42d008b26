//! Runs the shell blocks of all pages that need a cluster. `PAGE=docs/drift.md` runs one page.
//!
//! Each page has its own control plane, on which it installs the chart itself, or finds it installed. The control plane
//! starts no containers, so the test starts the controller when the chart is installed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::controller::Controller;
use crate::controlplane::{ControlPlane, tools};
use crate::installation::{NAMESPACE, chart, exclusive};
use crate::pages::{Part, Shell, check, pages, root};

/// Runs the part of a page that needs a cluster.
fn run(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let plane = ControlPlane::start();
    let other = text.contains("--context new").then(ControlPlane::start);
    let mut controller: Option<Controller> = None;
    if !text.contains("\nhelm install purlin") {
        plane.helm_ok(&["install", "purlin", chart(), "-n", NAMESPACE, "--create-namespace", "--wait"]);
        controller = Some(Controller::start(&plane));
    }
    let mut shell = Shell::start(&[("kubectl", &tools().kubectl), ("helm", &tools().helm)]);
    shell.export("KUBECONFIG", &other.as_ref().map_or(plane.kubeconfig(), |other| both(&plane, other)));
    shell.with_controller();
    check(page, Part::Cluster, &mut shell, &mut |block| {
        // What the kubelet would do.
        if block.contains("helm install purlin") {
            controller = Some(Controller::start(&plane));
        } else if block.contains("helm uninstall purlin") || block.contains("--context old scale deployment purlin") {
            controller.take().expect("a running controller").terminate(&plane);
        } else if block.contains("--kube-context new upgrade purlin")
            || block.contains("--kube-context new install purlin") && !block.contains("replicas=0")
        {
            controller = other.as_ref().map(Controller::start);
        } else if block.contains("--context new delete namespace purlin-system") {
            // The Pods of the controller go with their namespace.
            drop(controller.take());
        }
    })
}

/// A kubeconfig with the contexts `old` and `new`.
fn both(old: &ControlPlane, new: &ControlPlane) -> PathBuf {
    let lists = ["clusters", "users", "contexts"];
    let mut all = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "old" });
    for (name, plane) in [("old", old), ("new", new)] {
        let view = plane.kubectl_ok(&["config", "view", "--raw", "-o", "json"]);
        let config: Value = serde_json::from_str(&view).unwrap();
        for list in lists {
            let mut entry = config[list][0].clone();
            entry["name"] = name.into();
            if list == "contexts" {
                entry["context"] = json!({ "cluster": name, "user": name });
            }
            let entries = all.as_object_mut().unwrap().entry(list).or_insert_with(|| json!([]));
            entries.as_array_mut().unwrap().push(entry);
        }
    }
    let path = old.scratch().join("both.kubeconfig");
    fs::write(&path, all.to_string()).unwrap();
    path
}

#[test]
fn pages_for_a_cluster_do_what_they_show() {
    // Without other control planes and controllers, this machine is fast enough for the time limits of the pages.
    let _alone = exclusive();
    let selected = std::env::var("PAGE").ok();
    let pages = pages(Part::Cluster).into_iter();
    let pages: Vec<PathBuf> =
        pages.filter(|page| selected.as_deref().is_none_or(|one| page == Path::new(one))).collect();
    let problems: Vec<String> = pages.iter().flat_map(|page| run(page)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
