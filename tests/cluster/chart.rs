//! The chart: lint, install, upgrade and uninstall, what an uninstall keeps, and the HTTP endpoints of the controller.

use std::path::Path;
use std::process::Command;

use crate::controlplane::{tools, wait_until};
use crate::installation::*;

#[test]
fn the_chart_passes_lint_and_rejects_unknown_values() {
    let plane = plane();
    plane.helm_ok(&["lint", "--strict", chart()]);
    let all =
        ["--set", "metrics.serviceMonitor.enabled=true,podDisruptionBudget.enabled=true,networkPolicy.enabled=true"];
    let more = ["--set", "typeAuthorization.enabled=true,controller.watchNamespaces={a,b}"];
    let shown = plane.helm_ok(&[&["template", "purlin", chart()], &all[..], &more[..]].concat());
    assert!(shown.contains("--watch-namespace=b") && !shown.contains("--ui"));
    assert_eq!(shown.matches("kind: ValidatingAdmissionPolicy\n").count(), 7);
    let shown = plane.helm_ok(&["template", "purlin", chart(), "--set", "ui.enabled=true"]);
    assert!(shown.contains("- --ui\n"));
    let none = "protectRecords=false,serviceAccountAuthorization.enabled=false,approvalAuthorization.enabled=false";
    let shown = plane.helm_ok(&["template", "purlin", chart(), "--set", none]);
    assert!(!shown.contains("ValidatingAdmissionPolicy"), "every policy can be left out");
    let typo = plane.helm(&["template", "purlin", chart(), "--set", "replica=2"]);
    assert!(!typo.status.success(), "an unknown value is rejected");
}

/// Runs a script of `.ci/release` with the Helm of the tests, and returns its output.
fn release_script(name: &str, args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/release").join(name);
    let output = Command::new(script).args(args).env("HELM", &tools().helm).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn install_yaml_contains_what_the_chart_installs() {
    let directory = tempfile::tempdir().unwrap();
    let digest = format!("sha256:{:064x}", 7);
    let packaged = release_script("chart", &[&digest, directory.path().to_str().unwrap()]);
    let manifests = release_script("install-yaml", &[&packaged]);
    assert!(manifests.contains(&format!("image: ghcr.io/purlin-dev/purlin@{digest}\n")), "the image is not pinned");
    assert!(!manifests.contains("helm.sh") && !manifests.contains("managed-by"), "Helm manages none of these objects");
    // The API server accepts all of them. It has the objects of the chart already.
    let apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-o", "name", "-f", "-"];
    let applied = plane().kubectl_with_stdin(&apply, &manifests);
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    let rendered = plane().helm_ok(&["template", "purlin", &packaged, "-n", NAMESPACE, "--no-hooks"]);
    let names = plane().kubectl_with_stdin(&apply, &rendered);
    let lines = |output: &[u8]| String::from_utf8_lossy(output).lines().map(str::to_owned).collect::<Vec<_>>();
    let namespace = format!("namespace/{NAMESPACE}");
    assert_eq!(lines(&applied.stdout), [vec![namespace], lines(&names.stdout)].concat());
    let wrong =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/release/chart")).args(["latest", "."]).output();
    let error = String::from_utf8(wrong.unwrap().stderr).unwrap();
    assert!(error.starts_with("error: `latest` is not the digest of an image"), "{error}");
}

/// The networks that the egress policy of the chart allows for all ports, each with its exceptions.
fn allowed_networks(values: &str) -> Vec<(String, Vec<String>)> {
    let plane = plane();
    let rendered =
        plane.helm_ok(&["template", "purlin", chart(), "-s", "templates/networkpolicy.yaml", "--set", values]);
    // The API server checks the policy, too.
    let created = plane.kubectl_with_stdin(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &rendered);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let policy: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
    assert_eq!(policy["spec"]["policyTypes"], serde_json::json!(["Egress"]));
    let rules = policy["spec"]["egress"].as_array().unwrap();
    let open = rules.iter().filter(|rule| rule.get("ports").is_none());
    let blocks = open.flat_map(|rule| rule["to"].as_array().expect("a rule without peers allows everything"));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let network = |peer: &serde_json::Value| {
        let block = peer.get("ipBlock").expect("no rule allows Pods on all ports");
        let except = block["except"].as_array().map(|all| all.iter().map(text).collect());
        (text(&block["cidr"]), except.unwrap_or_default())
    };
    blocks.map(network).collect()
}

#[test]
fn the_egress_policy_keeps_the_pod_from_the_metadata_service_and_from_private_networks() {
    let enabled = "networkPolicy.egress.enabled=true";
    let without = plane().helm(&["template", "purlin", chart(), "--set", enabled]);
    let error = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(!without.status.success() && error.contains("networkPolicy.egress.apiServer.cidrs is empty"), "{error}");
    let values = format!("{enabled},networkPolicy.egress.apiServer.cidrs={{10.96.0.1/32,192.168.1.10/32}}");
    let networks = allowed_networks(&values);
    let cidrs: Vec<&str> = networks.iter().map(|(cidr, _)| cidr.as_str()).collect();
    assert_eq!(cidrs, ["0.0.0.0/0", "::/0"]);
    // Metadata services are at 169.254.169.254, 168.63.129.16, 100.100.100.200, fd00:ec2::254 and fd20:ce::254.
    let private =
        ["10.0.0.0/8", "100.64.0.0/10", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"];
    assert_eq!(networks[0].1, private);
    assert_eq!(networks[1].1, ["fc00::/7", "fe80::/10"]);
    let more = "networkPolicy.egress.additional[0].to[0].ipBlock.cidr=10.1.2.3/32";
    assert_eq!(allowed_networks(&format!("{values},{more}"))[2].0, "10.1.2.3/32");
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
