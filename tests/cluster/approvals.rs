//! Changes that wait for the approval of a Plan.

use serde_json::Value;

use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;

fn guarded(name: &str, input: &str) -> String {
    data(name, input, "approval: { requireFor: [Update, Destroy] }")
}

/// The only Plan of a namespace that is not a preview.
fn waiting_plan(namespace: &str) -> String {
    wait_for("a Plan waits", LIMIT, || {
        let plans = plane().get(&["-n", namespace, "plans"]);
        let waiting = plans["items"].as_array()?.iter().find(|plan| plan["status"]["approval"] == "Waiting")?;
        Some(waiting["metadata"]["name"].as_str()?.to_owned())
    })
}

fn plan(namespace: &str, name: &str) -> Value {
    plane().get(&["-n", namespace, "plan", name])
}

fn wait_state(namespace: &str, name: &str, state: &str) {
    wait_until(&format!("the Plan {name} is {state}"), LIMIT, || plan(namespace, name)["status"]["approval"] == state);
}

/// A kubeconfig of a new ServiceAccount with a ClusterRole in the namespace.
fn user(namespace: &str, name: &str, role: &str) -> String {
    plane().kubectl_ok(&["-n", namespace, "create", "serviceaccount", name]);
    let account = format!("--serviceaccount={namespace}:{name}");
    let role = format!("--clusterrole={role}");
    plane().kubectl_ok(&["-n", namespace, "create", "rolebinding", name, &role, &account]);
    plane().service_account_kubeconfig(namespace, name).display().to_string()
}

#[test]
fn an_author_cannot_approve_and_an_approver_can() {
    let _guard = shared();
    let namespace = plane().namespace("approval");
    let author = user(&namespace, "author", "edit");
    let approver = user(&namespace, "approver", "purlin-approver");
    plane().apply(&["-n", &namespace], &guarded("store", "1"));
    plane().apply(&["-n", &namespace], &data("app", "${store.output}", ""));
    wait_ready(&namespace, &["store", "app"]);
    plane().apply(&["-n", &namespace, "--kubeconfig", &author], &guarded("store", "2"));
    let name = waiting_plan(&namespace);
    let ready = wait_reason(&namespace, "store", "Ready", "ApprovalRequired");
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains(&format!("`purlin approve {name} -n {namespace}`")), "{message}");
    wait_reason(&namespace, "app", "Ready", "Waiting");
    let owners = &plan(&namespace, &name)["metadata"]["ownerReferences"];
    assert_eq!(owners.as_array().map(Vec::len), Some(1), "{owners}");
    assert_eq!(owners[0]["uid"], resource(&namespace, "store").unwrap()["metadata"]["uid"]);

    let refused = purlin(&["approve", &name, "-n", &namespace, "--yes", "--kubeconfig", &author]);
    assert!(!refused.0 && refused.1.contains("you may not approve or reject changes here"), "{}", refused.1);
    let patch = ["patch", "plan", &name, "--type=merge", "-p", r#"{"spec":{"approved":true}}"#];
    let by_hand = plane().kubectl(&[&["-n", &namespace, "--kubeconfig", &author][..], &patch].concat());
    assert!(!by_hand.status.success());
    let someone = r#"{"metadata":{"annotations":{"purlin.dev/decided-by":"another"}},"spec":{"approved":true}}"#;
    let forged = ["patch", "plan", &name, "--type=merge", "-p", someone];
    let forged = plane().kubectl(&[&["-n", &namespace, "--kubeconfig", &approver][..], &forged].concat());
    assert!(!forged.status.success(), "the name of another user");

    let approved = purlin(&["approve", &name, "-n", &namespace, "--yes", "--kubeconfig", &approver]);
    assert!(approved.0 && approved.1.contains("store will be updated in place"), "{}", approved.1);
    wait_state(&namespace, &name, "Applied");
    wait_ready(&namespace, &["store", "app"]);
    let status = &plan(&namespace, &name)["status"];
    let user = format!("system:serviceaccount:{namespace}:approver");
    assert_eq!(status["decidedBy"], user);
    wait_event(&namespace, "store", &format!("Approved: the update approved by {user}"));
    let kubeconfig = plane().kubeconfig().display().to_string();
    let history = purlin(&["history", "store", "-n", &namespace, "--kubeconfig", &kubeconfig]);
    assert!(history.0 && history.1.contains(&format!("approved by {user}")), "{}", history.1);
    let again = purlin(&["approve", &name, "-n", &namespace, "--yes", "--kubeconfig", &approver]);
    assert!(again.0 && again.1.contains("were made"), "{}", again.1);
}

#[test]
fn a_preview_prints_a_manifest_that_approves_the_change_in_git() {
    let _guard = shared();
    let namespace = plane().namespace("approval-git");
    plane().apply(&["-n", &namespace], &guarded("store", "1"));
    wait_ready(&namespace, &["store"]);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("store.yaml"), guarded("store", "2")).expect("a file");
    let path = folder.path().display().to_string();
    let kubeconfig = plane().kubeconfig().display().to_string();
    let preview = ["plan", "-f", &path, "-n", &namespace, "--kubeconfig", &kubeconfig, "-o", "approval"];
    let output = run(&preview);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest = String::from_utf8(output.stdout).unwrap();
    plane().apply(&["-n", &namespace], &manifest);
    // An approval cannot be extended to other changes, or in time.
    let approved = manifest.lines().find_map(|line| line.trim().strip_prefix("name: ")).expect("a name");
    for spec in [r#"{"changes":null}"#, r#"{"approvalValidSeconds":31536000}"#, r#"{"approved":false}"#] {
        let patch = format!(r#"{{"spec":{spec}}}"#);
        let patched = plane().kubectl(&["-n", &namespace, "patch", "plan", approved, "--type=merge", "-p", &patch]);
        let error = String::from_utf8_lossy(&patched.stderr).into_owned();
        assert!(
            !patched.status.success() && (error.contains("create another Plan") || error.contains("delete the Plan")),
            "{error}"
        );
    }
    // Another change is not approved.
    plane().apply(&["-n", &namespace], &guarded("store", "3"));
    let other = waiting_plan_of(&namespace, "store-");
    plane().apply(&["-n", &namespace], &guarded("store", "2"));
    wait_ready(&namespace, &["store"]);
    wait_until("store has the approved value", LIMIT, || {
        resource(&namespace, "store").is_some_and(|store| store["status"]["attributes"]["output"] == 2)
    });
    wait_state(&namespace, &other, "Superseded");
}

fn waiting_plan_of(namespace: &str, prefix: &str) -> String {
    wait_for("a Plan waits", LIMIT, || {
        let plans = plane().get(&["-n", namespace, "plans"]);
        let names = plans["items"].as_array()?.iter().filter(|plan| plan["status"]["approval"] == "Waiting");
        let mut names = names.filter_map(|plan| plan["metadata"]["name"].as_str());
        names.find(|name| name.starts_with(prefix)).map(str::to_owned)
    })
}

/// Runs the command, and returns whether it succeeded, and its output with that on standard error.
fn purlin(arguments: &[&str]) -> (bool, String) {
    let output = run(arguments);
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn run(arguments: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_purlin"));
    command.args(arguments).env("PURLIN_NAMESPACE", NAMESPACE).output().expect("the command runs")
}
