//! Events and the log: one problem is reported once, and what is normal is no problem.

use std::collections::BTreeMap;

use crate::controlplane::wait_until;
use crate::installation::*;

/// How often each reason occurs among the events of a Resource.
fn reasons(namespace: &str, name: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in events(namespace, name) {
        *counts.entry(event.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn a_problem_has_one_event() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("events");
    let store = |input: &str| data("store", input, "approval: { requireFor: [Update] }");
    plane.apply(&["-n", &ns], &[store("1"), data("reader", "\"${store.output}\"", "")].concat());
    plane.apply(&["-n", &ns], &[data("base", "1", ""), data("top", "\"${base.id}\"", "")].concat());
    wait_ready(&ns, &["store", "reader", "base", "top"]);

    plane.apply(&["-n", &ns], &store("2"));
    wait_reason(&ns, "store", "Ready", "ApprovalRequired");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "base", "--wait=false"]);
    wait_reason(&ns, "base", "DeletionBlocked", "InUse");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "reader", "top", "--timeout=60s"]);
    wait_until("the object is destroyed", LIMIT, || resource(&ns, "base").is_none());

    let count = |name: &str, reason: &str| reasons(&ns, name).get(reason).copied().unwrap_or_default();
    wait_until("the events are written", LIMIT, || {
        count("base", "Destroyed") == 1 && count("store", "ApprovalRequired") == 1
    });
    assert_eq!(reasons(&ns, "store"), expected(&["Created", "ApprovalRequired"]), "{:?}", events(&ns, "store"));
    assert_eq!(
        reasons(&ns, "base"),
        expected(&["Created", "DeletionBlocked", "Destroyed"]),
        "{:?}",
        events(&ns, "base")
    );
    assert_eq!(reasons(&ns, "reader"), expected(&["Created", "Destroyed"]), "{:?}", events(&ns, "reader"));
}

fn expected(reasons: &[&str]) -> BTreeMap<String, usize> {
    reasons.iter().map(|reason| ((*reason).to_owned(), 1)).collect()
}

#[test]
fn the_normal_deletion_of_a_namespace_is_no_warning() {
    let guard = shared();
    let plane = plane();
    let ns = plane.namespace("normal-end");
    plane.bind(&ns, "edit", "--clusterrole=edit", "default");
    let map = |name: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
             kubernetes_object\n  config: {{ manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name} }} }} \
             }}\n"
        )
    };
    let chain: String =
        (1..=5).map(|at| data(&format!("link-{at}"), &format!("\"${{link_{}.id}}\"", at - 1), "")).collect();
    let maps: String = (0..6).map(|at| map(&format!("map-{at}"))).collect();
    let user = data("user", "\"${map_0.id} ${link_5.id}\"", "");
    plane.apply(&["-n", &ns], &[data("link-0", "1", ""), chain, maps, user].concat());
    wait_ready(&ns, &["link-5", "map-0", "map-5", "user"]);
    plane.kubectl_ok(&["delete", "namespace", &ns, "--timeout=120s"]);
    let log = guard.controller().log();
    let warnings: Vec<&str> =
        log.lines().filter(|line| line.contains(&ns) && (line.contains("WARN") || line.contains("ERROR"))).collect();
    assert!(warnings.is_empty(), "{} warnings:\n{}", warnings.len(), warnings.join("\n"));
}
