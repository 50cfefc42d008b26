//! Changes that wait for the approval of a Plan.

use purlin::api::ChangeDigest;
use purlin::plan::approval::digest_of;
use serde_json::{Value, json};

use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;
use crate::kubernetes_objects::{may_edit, object};

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
    let role = format!("--clusterrole={role}");
    plane().bind(namespace, name, &role, name);
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

/// What was approved in Git reads another object, which needs no approval and becomes another one.
#[test]
fn an_approval_in_git_covers_what_an_unknown_value_is_made_of() {
    let _guard = shared();
    let namespace = plane().namespace("approval-unknown");
    plane().apply(&["-n", &namespace], &guarded("store", "1"));
    wait_ready(&namespace, &["store"]);
    let folder = tempfile::tempdir().expect("a folder");
    let reads = guarded("store", "\"${name.id}: ${name.output}\"");
    std::fs::write(folder.path().join("all.yaml"), data("name", "good", "") + &reads).expect("a file");
    let path = folder.path().display().to_string();
    let kubeconfig = plane().kubeconfig().display().to_string();
    let output = run(&["plan", "-f", &path, "-n", &namespace, "--kubeconfig", &kubeconfig, "-o", "approval"]);
    plane().apply(&["-n", &namespace], &String::from_utf8(output.stdout).unwrap());
    plane().apply(&["-n", &namespace], &(data("name", "evil", "") + &reads));
    wait_ready(&namespace, &["name"]);
    wait_reason(&namespace, "store", "Ready", "ApprovalRequired");
    assert_eq!(self::output(&namespace, "store"), 1);
}

/// Applies a Plan of an author.
fn write_plan(namespace: &str, metadata: &Value, spec: &Value) {
    let plan = json!({ "apiVersion": "purlin.dev/v1alpha1", "kind": "Plan", "metadata": metadata, "spec": spec });
    plane().apply(&["-n", namespace], &plan.to_string());
}

fn approve(namespace: &str, name: &str) {
    let kubeconfig = plane().kubeconfig().display().to_string();
    let approved = purlin(&["approve", name, "-n", namespace, "--yes", "--kubeconfig", &kubeconfig]);
    assert!(approved.0, "{}", approved.1);
}

fn output(namespace: &str, name: &str) -> Value {
    resource(namespace, name).unwrap_or_default()["status"]["attributes"]["output"].clone()
}

/// An author knows the name that the Plan of a change will have, and puts the digest of a harmless change under it.
#[test]
fn a_plan_of_the_right_name_with_another_digest_approves_nothing() {
    let _guard = shared();
    let namespace = plane().namespace("approval-forged");
    plane().apply(&["-n", &namespace], &guarded("store", "1"));
    wait_ready(&namespace, &["store"]);
    let revert = || {
        plane().apply(&["-n", &namespace], &guarded("store", "1"));
        wait_ready(&namespace, &["store"]);
    };
    plane().apply(&["-n", &namespace], &guarded("store", "6"));
    let evil = waiting_plan(&namespace);
    revert();
    wait_state(&namespace, &evil, "Superseded");
    plane().apply(&["-n", &namespace], &guarded("store", "2"));
    let harmless = waiting_plan(&namespace);
    let seen = plan(&namespace, &harmless);
    revert();
    plane().kubectl_ok(&["-n", &namespace, "delete", "plans", "--all"]);
    let labels = json!({ "app.kubernetes.io/managed-by": "purlin" });
    let spec = json!({ "digest": seen["spec"]["digest"], "changes": seen["status"]["approvals"][0]["changes"] });
    write_plan(&namespace, &json!({ "name": evil, "labels": labels }), &spec);
    // It shows nothing, so only a patch can approve it.
    let kubeconfig = plane().kubeconfig().display().to_string();
    let refused = purlin(&["approve", &evil, "-n", &namespace, "--yes", "--kubeconfig", &kubeconfig]);
    assert!(!refused.0 && refused.1.contains("does not show what it would approve"), "{}", refused.1);
    let patch = ["patch", "plan", &evil, "--type=merge", "-p", r#"{"spec":{"approved":true}}"#];
    plane().kubectl_ok(&[&["-n", &namespace][..], &patch].concat());

    plane().apply(&["-n", &namespace], &guarded("store", "6"));
    let offered = wait_for("the change is offered under another name", LIMIT, || {
        let plans = plane().get(&["-n", &namespace, "plans"]);
        let names = plans["items"].as_array()?.iter().filter(|plan| plan["status"]["approval"] == "Waiting");
        let mut names = names.filter_map(|plan| plan["metadata"]["name"].as_str().map(str::to_owned));
        names.find(|name| *name != evil)
    });
    wait_until("the message names it", LIMIT, || {
        let ready = wait_reason(&namespace, "store", "Ready", "ApprovalRequired");
        ready["message"].as_str().is_some_and(|message| message.contains(&format!("`purlin approve {offered} ")))
    });
    assert_eq!(output(&namespace, "store"), 1);
    approve(&namespace, &offered);
    wait_until("the change that was seen is made", LIMIT, || output(&namespace, "store") == 6);
    wait_state(&namespace, &offered, "Applied");
}

/// A Plan that shows other changes than those of its digest.
#[test]
fn a_plan_whose_changes_are_not_those_of_its_digest_is_invalid() {
    let _guard = shared();
    let namespace = plane().namespace("approval-lie");
    plane().apply(&["-n", &namespace], &guarded("store", "1"));
    wait_ready(&namespace, &["store"]);
    plane().apply(&["-n", &namespace], &guarded("store", "6"));
    let name = waiting_plan(&namespace);
    let seen = plan(&namespace, &name);
    let mut changes = seen["status"]["approvals"][0]["changes"].clone();
    changes[0]["action"] = "Create".into();
    let spec = json!({ "digest": seen["spec"]["digest"], "changes": changes, "approved": true });
    write_plan(&namespace, &json!({ "name": "lie" }), &spec);
    wait_state(&namespace, "lie", "Invalid");
    let kubeconfig = plane().kubeconfig().display().to_string();
    let refused = purlin(&["approve", "lie", "-n", &namespace, "--yes", "--kubeconfig", &kubeconfig]);
    assert!(!refused.0 && refused.1.contains("is invalid"), "{}", refused.1);
    assert_eq!((output(&namespace, "store"), waiting_plan(&namespace)), (1.into(), name));
    // A Plan with the digest alone, which comes while the change waits, counts at once.
    write_plan(
        &namespace,
        &json!({ "name": "digest" }),
        &json!({ "digest": seen["spec"]["digest"], "approved": true }),
    );
    wait_until("the approved change is made", LIMIT, || output(&namespace, "store") == 6);
    wait_state(&namespace, "digest", "Applied");
}

/// Someone who may write the status shows a harmless change beside the digest of another one.
#[test]
fn a_status_that_shows_another_change_cannot_be_approved() {
    let _guard = shared();
    let namespace = plane().namespace("approval-shown");
    plane().apply(&["-n", &namespace], &guarded("store", "1"));
    wait_ready(&namespace, &["store"]);
    plane().apply(&["-n", &namespace], &guarded("store", "6"));
    let name = waiting_plan(&namespace);
    let mut changes = plan(&namespace, &name)["status"]["changes"].clone();
    changes[0]["after"]["input"] = json!(2);
    forge(&namespace, &name, &json!({ "changes": changes }));
    let kubeconfig = plane().kubeconfig().display().to_string();
    for verb in ["approve", "reject"] {
        let refused = purlin(&[verb, &name, "-n", &namespace, "--yes", "--kubeconfig", &kubeconfig]);
        assert!(!refused.0 && refused.1.contains("shows a change of `store` that is not the one"), "{}", refused.1);
    }
    // Without the list of what the digest covers, nothing is proved.
    forge(&namespace, &name, &json!({ "changes": [], "approvals": [] }));
    let refused = purlin(&["approve", &name, "-n", &namespace, "--yes", "--kubeconfig", &kubeconfig]);
    assert!(!refused.0 && refused.1.contains("is invalid"), "{}", refused.1);
    assert_eq!(output(&namespace, "store"), 1);
    // As the hint says.
    plane().kubectl_ok(&["-n", &namespace, "delete", "pplan", &name]);
    approve(&namespace, &waiting_plan(&namespace));
    wait_until("the change is made", LIMIT, || output(&namespace, "store") == 6);
}

/// Writes fields of the status of a Plan, as only the controller should.
fn forge(namespace: &str, name: &str, fields: &Value) {
    let patch = json!({ "status": fields }).to_string();
    plane().kubectl_ok(&["-n", namespace, "patch", "plan", name, "--subresource=status", "--type=merge", "-p", &patch]);
}

/// A status that no version of Purlin has written approves nothing, and a deletion of the Plan is the way out.
#[test]
fn a_plan_with_a_status_that_cannot_be_read_can_be_replaced() {
    let _guard = shared();
    let namespace = plane().namespace("approval-unreadable");
    plane().apply(&["-n", &namespace], &guarded("store", "1"));
    wait_ready(&namespace, &["store"]);
    plane().apply(&["-n", &namespace], &guarded("store", "6"));
    let kubeconfig = plane().kubeconfig().display().to_string();
    let deep = (0..200).fold(json!(1), |inner, _| json!({ "a": inner }));
    let diagnostic = json!({ "severity": "error", "reason": "Bogus", "summary": "no reason" });
    let change = json!([{ "address": "store", "type": "terraform_data", "action": "Bogus", "after": deep }]);
    for forged in [json!({ "diagnostics": [diagnostic] }), json!({ "changes": change, "approvals": [] })] {
        let name = waiting_plan(&namespace);
        forge(&namespace, &name, &forged);
        let refused = purlin(&["approve", &name, "-n", &namespace, "--yes", "--kubeconfig", &kubeconfig]);
        let hint = format!("kubectl -n {namespace} delete pplan {name}");
        assert!(!refused.0 && refused.1.contains(&hint), "{}", refused.1);
        plane().kubectl_ok(&["-n", &namespace, "delete", "pplan", &name]);
    }
    approve(&namespace, &waiting_plan(&namespace));
    wait_until("the change is made", LIMIT, || output(&namespace, "store") == 6);
}

/// A ConfigMap that is replaced when its data change.
fn immutable(name: &str, data: &str) -> String {
    let manifest = format!(
        "{{ apiVersion: v1, kind: ConfigMap, metadata: {{ generateName: {name}- }}, immutable: true, data: {{ value: \
         \"{data}\" }} }}"
    );
    object(name, &manifest, "")
}

/// The data of the ConfigMaps of a Resource.
fn config_maps(namespace: &str, name: &str) -> Vec<(String, String)> {
    let list = plane().get(&["-n", namespace, "configmaps"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = list["items"].as_array().into_iter().flatten();
    let all = all.map(|item| (text(&item["metadata"]["name"]), text(&item["data"]["value"])));
    all.filter(|(own, _)| own.starts_with(&format!("{name}-"))).collect()
}

/// Every change in the namespace needs an approval, except for creates.
fn require_approvals(namespace: &str) {
    let annotation = "purlin.dev/require-approval=Update,Replace,Destroy";
    plane().kubectl_ok(&["annotate", "namespace", namespace, annotation]);
}

/// The old object is about to go when the author wants another new one.
#[test]
fn the_second_half_of_a_replacement_creates_only_what_was_approved() {
    let _guard = shared();
    let namespace = plane().namespace("approval-half");
    may_edit(&namespace);
    plane().apply(&["-n", &namespace], &immutable("store", "one"));
    wait_ready(&namespace, &["store"]);
    require_approvals(&namespace);
    let old = config_maps(&namespace, "store").remove(0).0;
    let keep = |finalizers: &str| {
        let patch = format!(r#"{{"metadata":{{"finalizers":{finalizers}}}}}"#);
        plane().kubectl_ok(&["-n", &namespace, "patch", "configmap", &old, "--type=merge", "-p", &patch]);
    };
    keep(r#"["example.com/keep"]"#);
    plane().apply(&["-n", &namespace], &immutable("store", "two"));
    let replacement = waiting_plan(&namespace);
    approve(&namespace, &replacement);
    wait_until("the old object is being deleted", LIMIT, || {
        let old = plane().get(&["-n", &namespace, "configmap", &old]);
        !old["metadata"]["deletionTimestamp"].is_null()
    });
    plane().apply(&["-n", &namespace], &immutable("store", "evil"));
    keep("null");
    wait_until("the old object is gone", LIMIT, || config_maps(&namespace, "store").is_empty());
    let create = waiting_plan(&namespace);
    wait_reason(&namespace, "store", "Ready", "ApprovalRequired");
    assert_eq!(plan(&namespace, &create)["status"]["approvals"][0]["changes"][0]["action"], "Create");
    assert!(config_maps(&namespace, "store").is_empty());
    // What was approved is created without another approval.
    plane().apply(&["-n", &namespace], &immutable("store", "two"));
    wait_ready(&namespace, &["store"]);
    assert_eq!(config_maps(&namespace, "store").remove(0).1, "two");
    wait_state(&namespace, &replacement, "Applied");
    wait_state(&namespace, &create, "Superseded");
}

/// `n2` and `n5` follow the replacement of `n0`, and `n2` has no approval.
#[test]
fn an_approval_is_used_up_only_by_its_own_change() {
    let _guard = shared();
    let namespace = plane().namespace("approval-parts");
    may_edit(&namespace);
    plane().apply(&["-n", &namespace], &immutable("n0", "one"));
    plane().apply(&["-n", &namespace], &data("n2", "{ up: '${n0.id}' }", ""));
    plane().apply(&["-n", &namespace], &immutable("n5", "${n0.id}"));
    wait_ready(&namespace, &["n0", "n2", "n5"]);
    require_approvals(&namespace);
    plane().apply(&["-n", &namespace], &immutable("n0", "two"));
    let whole = waiting_plan(&namespace);
    let seen = plan(&namespace, &whole)["status"]["approvals"][0]["changes"].clone();
    let mut part: Vec<ChangeDigest> = serde_json::from_value(seen).expect("changes");
    assert_eq!(part.len(), 3);
    part.retain(|change| &**change.address.name() != "n2");
    let spec = json!({ "digest": digest_of(&part), "changes": part, "approved": true });
    write_plan(&namespace, &json!({ "name": "part" }), &spec);
    wait_state(&namespace, "part", "Approved");
    wait_state(&namespace, &whole, "Superseded");
    let missing = waiting_plan(&namespace);
    let missing_changes = plan(&namespace, &missing)["status"]["approvals"][0]["changes"].clone();
    assert_eq!((missing_changes.as_array().map(Vec::len), &missing_changes[0]["address"]), (Some(1), &json!("n2")));
    wait_reason(&namespace, "n0", "Ready", "Waiting");
    wait_reason(&namespace, "n5", "Ready", "Waiting");
    assert_eq!(config_maps(&namespace, "n0").remove(0).1, "one");
    approve(&namespace, &missing);
    wait_state(&namespace, &missing, "Applied");
    wait_state(&namespace, "part", "Applied");
    wait_ready(&namespace, &["n0", "n2", "n5"]);
    let id = resource(&namespace, "n0").unwrap()["status"]["id"].clone();
    assert_eq!(config_maps(&namespace, "n0").remove(0).1, "two");
    assert_eq!(output(&namespace, "n2")["up"], id);
    assert_eq!(config_maps(&namespace, "n5").remove(0).1, id);
}

#[test]
fn a_rejected_change_says_what_to_do() {
    let _guard = shared();
    let namespace = plane().namespace("approval-rejected");
    plane().apply(&["-n", &namespace], &guarded("store", "1"));
    wait_ready(&namespace, &["store"]);
    plane().apply(&["-n", &namespace], &guarded("store", "2"));
    let name = waiting_plan(&namespace);
    let kubeconfig = plane().kubeconfig().display().to_string();
    let rejected = purlin(&["reject", &name, "-n", &namespace, "--yes", "--kubeconfig", &kubeconfig]);
    assert!(rejected.0, "{}", rejected.1);
    let stalled = wait_reason(&namespace, "store", "Stalled", "Rejected");
    let hint = format!("`kubectl delete plan {name} -n {namespace}`");
    assert!(stalled["message"].as_str().is_some_and(|message| message.contains(&hint)), "{stalled}");
    let store = resource(&namespace, "store").unwrap();
    let conditions = store["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|condition| condition["type"] != "Reconciling"), "{conditions:?}");
    plane().kubectl_ok(&["-n", &namespace, "delete", "plan", &name]);
    approve(&namespace, &waiting_plan(&namespace));
    wait_ready(&namespace, &["store"]);
    assert_eq!(output(&namespace, "store"), 2);
}

#[test]
fn a_resource_with_the_longest_name_can_be_approved() {
    let _guard = shared();
    let namespace = plane().namespace("approval-long");
    let name = "n".repeat(63);
    plane().apply(&["-n", &namespace], &guarded(&name, "1"));
    wait_ready(&namespace, &[&name]);
    plane().apply(&["-n", &namespace], &guarded(&name, "2"));
    approve(&namespace, &waiting_plan(&namespace));
    wait_until("it is updated", LIMIT, || output(&namespace, &name) == 2);
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
