//! Hooks that run as Jobs. The test control plane acts as scheduler and kubelet; an annotation of the Pod sets its
//! outcome.

use serde_json::Value;

use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::installation::*;

/// A hook in flow style whose Pod ends with this outcome.
fn hook(name: &str, when: &str, more: &str, outcome: &str, message: &str) -> String {
    format!(
        "- {{ name: {name}, when: {when}, {more} job: {{ template: {{ metadata: {{ annotations: {{ \
         test.purlin.dev/outcome: {outcome}, test.purlin.dev/termination-message: \"{message}\" }} }}, spec: {{ \
         containers: [{{ name: c, image: x, args: [\"${{self.id}}\"] }}] }} }} }} }}\n"
    )
}

fn with_hooks(name: &str, input: &str, hooks: &[String]) -> String {
    data(name, input, &format!("hooks:\n{}", hooks.concat().trim_end()))
}

fn jobs(namespace: &str) -> Vec<Value> {
    let list = plane().get(&["-n", namespace, "jobs"]);
    list["items"].as_array().cloned().unwrap_or_default()
}

fn finish(namespace: &str, outcome: &str) {
    let outcome = format!("test.purlin.dev/outcome={outcome}");
    wait_until("the outcome of the Pod is set", LIMIT, || {
        let args = ["-n", namespace, "annotate", "--overwrite", "pod", "-l", "job-name", &outcome];
        let output = plane().kubectl(&args);
        output.status.success() && !output.stdout.is_empty()
    });
}

#[test]
fn hooks_run_as_jobs_in_the_namespace_and_their_messages_are_reported() {
    let _guard = shared();
    let plane = plane();
    let ns = with_rights("hooks");
    let warm = hook("warm-up", "AfterCreate", "", "running", "caches are warm");
    let drain = hook("drain", "BeforeDestroy", "", "succeeded", "no client is left");
    let both = with_hooks("server", "one", &[warm, drain]);
    plane.apply(&["-n", &ns], &[both, data("behind", "\"${server.id}\"", "")].concat());
    wait_until("the Job exists", LIMIT, || jobs(&ns).len() == 1);
    let job = jobs(&ns).remove(0);
    let id = resource(&ns, "server").unwrap();
    assert_eq!(job["metadata"]["ownerReferences"][0]["uid"], id["metadata"]["uid"]);
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert!(job["spec"]["template"]["spec"]["containers"][0]["args"][0].as_str().is_some_and(|id| id.len() > 8));
    assert!(!is_ready(&resource(&ns, "behind").unwrap()), "the dependent waits for the hook");
    finish(&ns, "succeeded");
    wait_ready(&ns, &["server", "behind"]);
    wait_event(&ns, "server", "the hook `warm-up` ran: caches are warm");
    wait_until("a Job that succeeded is deleted", LIMIT, || jobs(&ns).is_empty());

    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    wait_event(&ns, "server", "the hook `drain` ran: no client is left");
}

#[test]
fn a_failed_job_blocks_the_destroy_until_the_hook_is_corrected() {
    let _guard = shared();
    let plane = plane();
    let ns = with_rights("hooks-fail");
    let with = |outcome: &str| with_hooks("a", "one", &[hook("drain", "BeforeDestroy", "", outcome, "no way")]);
    plane.apply(&["-n", &ns], &with("failed"));
    wait_ready(&ns, &["a"]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "a", "--wait=false"]);
    let failed = wait_reason(&ns, "a", "Ready", "HookFailed");
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("the hook `drain` failed: the Job `a-drain-") && message.contains("no way"), "{message}");
    assert_eq!(records(&ns).len(), 1, "the object still exists");
    assert!(!jobs(&ns).is_empty(), "the Job of a failed hook is kept");
    // The spec can be edited while the Resource is being deleted.
    plane.apply(&["-n", &ns], &with("succeeded"));
    wait_empty(&ns);
}

#[test]
fn in_a_deleted_namespace_a_hook_that_may_fail_is_skipped_and_another_one_blocks() {
    let _guard = shared();
    let plane = plane();
    let ns = with_rights("hooks-gone");
    let may_fail = with_hooks("a", "one", &[hook("drain", "BeforeDestroy", "onFailure: Continue,", "succeeded", "")]);
    let must_run = with_hooks("b", "one", &[hook("drain", "BeforeDestroy", "", "succeeded", "")]);
    plane.apply(&["-n", &ns], &[may_fail, must_run].concat());
    wait_ready(&ns, &["a", "b"]);
    plane.kubectl_ok(&["delete", "namespace", &ns, "--wait=false"]);
    let failed = wait_reason(&ns, "b", "Ready", "HookFailed");
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("the hook `drain` failed") && message.contains("`b-drain-"), "{message}");
    wait_until("the object whose hook may fail is destroyed", LIMIT, || resource(&ns, "a").is_none());
    assert!(resource(&ns, "b").is_some(), "the other object stays");
    // To unblock the deletion, the user removes the hook; the spec can be edited while the Resource is being deleted.
    let patch = r#"[{"op": "remove", "path": "/spec/hooks"}]"#;
    plane.kubectl_ok(&["-n", &ns, "patch", "pres", "b", "--type=json", "-p", patch]);
    wait_until("the namespace is deleted", LIMIT, || !plane.kubectl(&["get", "namespace", &ns]).status.success());
    wait_until("nothing is recorded", LIMIT, || records(&ns).is_empty());
}

#[test]
fn a_job_that_still_runs_after_a_crash_is_awaited_and_not_started_again() {
    let _guard = exclusive();
    let ns = with_rights("hooks-kill");
    let first = Controller::start(plane());
    plane().apply(&["-n", &ns], &with_hooks("a", "one", &[hook("slow", "AfterCreate", "", "running", "done")]));
    wait_until("the Job runs", LIMIT, || jobs(&ns).len() == 1);
    let uid = jobs(&ns)[0]["metadata"]["uid"].clone();
    first.kill(plane());

    let _second = Controller::start(plane());
    wait_until("the status shows the pending step", LIMIT, || {
        resource(&ns, "a").is_some_and(|resource| resource["status"]["pending"]["action"] == "Record")
    });
    assert_eq!(jobs(&ns).iter().map(|job| &job["metadata"]["uid"]).collect::<Vec<_>>(), [&uid]);
    finish(&ns, "succeeded");
    wait_ready(&ns, &["a"]);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
}

#[test]
fn an_exec_hook_is_rejected_in_a_cluster() {
    let _guard = shared();
    let ns = plane().namespace("hooks-exec");
    let exec = "- { name: x, when: AfterCreate, exec: { command: [touch, /tmp/x] } }".to_owned();
    plane().apply(&["-n", &ns], &[with_hooks("a", "one", &[exec]), data("b", "one", "")].concat());
    let refused = wait_reason(&ns, "a", "Ready", "InvalidManifest");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("spec.hooks[0].exec.command: `exec` hooks run only on files"), "{message}");
    wait_ready(&ns, &["b"]);
    let both =
        data("c", "one", "hooks: [{ name: x, when: AfterCreate, exec: { command: [a] }, job: { template: {} } }]");
    let output = plane().kubectl_with_stdin(&["apply", "-n", &ns, "-f", "-"], &both);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("exactly one of exec and job"));
}
