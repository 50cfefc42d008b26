//! The chart: lint, install, upgrade and uninstall, what an uninstall keeps, and the HTTP endpoints of the controller.

use crate::controlplane::wait_until;
use crate::installation::*;

#[test]
fn the_chart_passes_lint_and_rejects_unknown_values() {
    let plane = plane();
    plane.helm_ok(&["lint", "--strict", chart()]);
    let all =
        ["--set", "metrics.serviceMonitor.enabled=true,podDisruptionBudget.enabled=true,networkPolicy.enabled=true"];
    let more = ["--set", "typeAuthorization.enabled=true,controller.watchNamespaces={a,b}"];
    let shown = plane.helm_ok(&[&["template", "purlin", chart()], &all[..], &more[..]].concat());
    assert!(shown.contains("--watch-namespace=b"));
    assert_eq!(shown.matches("kind: ValidatingAdmissionPolicy\n").count(), 5);
    let none = "protectRecords=false,serviceAccountAuthorization.enabled=false";
    let shown = plane.helm_ok(&["template", "purlin", chart(), "--set", none]);
    assert!(!shown.contains("ValidatingAdmissionPolicy"), "every policy can be left out");
    let typo = plane.helm(&["template", "purlin", chart(), "--set", "replica=2"]);
    assert!(!typo.status.success(), "an unknown value is rejected");
}

#[test]
fn crds_and_records_survive_an_uninstall() {
    let _guard = exclusive();
    let plane = plane();
    let ns = plane.namespace("survive");
    let controller = crate::controller::Controller::start(plane);
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    let id = resource(&ns, "item").unwrap()["status"]["id"].clone();
    controller.kill(plane);
    plane.helm_ok(&[
        "upgrade",
        "purlin",
        chart(),
        "-n",
        NAMESPACE,
        "--set",
        "replicas=0,controller.concurrency=64",
        "--wait",
    ]);
    plane.helm_ok(&["uninstall", "purlin", "-n", NAMESPACE, "--wait"]);
    assert_eq!(resource(&ns, "item").unwrap()["status"]["id"], id);
    assert_eq!(records(&ns).len(), 1);
    plane.helm_ok(&[
        "install",
        "purlin",
        chart(),
        "-n",
        NAMESPACE,
        "--set",
        "replicas=0",
        "--wait",
        "--take-ownership",
    ]);
    let _again = crate::controller::Controller::start(plane);
    plane.apply(&["-n", &ns], &data("item", "two", ""));
    wait_until("the change is applied", LIMIT, || {
        resource(&ns, "item").is_some_and(|item| is_ready(&item) && item["status"]["attributes"]["output"] == "two")
    });
    assert_eq!(resource(&ns, "item").unwrap()["status"]["id"], id);
}

#[test]
fn health_and_metrics_are_served() {
    let _guard = exclusive();
    let plane = plane();
    let ns = plane.namespace("metrics");
    let controller = crate::controller::Controller::start(plane);
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    wait_ready(&ns, &["item"]);
    assert_eq!(controller.http("/healthz").map(|(status, _)| status), Some(200));
    assert_eq!(controller.http("/readyz").map(|(status, _)| status), Some(200));
    let metrics = controller.metrics();
    assert!(metrics.contains("purlin_steps_total") && metrics.contains("create"), "{metrics}");
    let line = controller.log();
    let line = line.lines().last().unwrap_or_default();
    assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "logs are JSON: {line}");
}
