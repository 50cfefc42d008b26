//! Plans whose changes are too large to be shown completely.

use std::fmt::Write as _;

use serde_json::Value;

use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;

/// A Resource with thousands of unknown places while `key` changes, a value that is nested deep, and a large text.
fn store(text: char) -> String {
    let places: String = (0..3_000).map(|_| "\"${key.output}\", ").collect();
    let deep = format!("{}1{}", "{a: ".repeat(60), "}".repeat(60));
    let mut manifest = data("store", "null", "approval: { requireFor: [Update] }");
    let input = format!("{{ places: [{places}], deep: {deep}, text: \"{}\" }}", text.to_string().repeat(280_000));
    manifest = manifest.replace("input: null", &format!("input: {input}"));
    assert!(manifest.contains("places"), "{manifest:.300}");
    manifest
}

#[test]
fn a_change_that_is_too_large_to_be_shown_can_be_approved_and_everybody_says_what_is_left_out() {
    let _guard = shared();
    let namespace = plane().namespace("large-plans");
    // A client-side apply would copy the manifest into an annotation.
    let apply = |manifest: &str| plane().apply(&["-n", &namespace, "--server-side"], manifest);
    apply(&data("key", "1", ""));
    apply(&store('x'));
    wait_ready(&namespace, &["key", "store"]);
    apply(&data("key", "2", ""));
    apply(&store('y'));
    let waiting = || {
        let plans = plane().get(&["-n", &namespace, "plans"]);
        plans["items"].as_array()?.iter().find(|plan| plan["status"]["approval"] == "Waiting").cloned()
    };
    let plan: Value = wait_for("a Plan waits", LIMIT, waiting);
    let name = plan["metadata"]["name"].as_str().unwrap();
    let status = &plan["status"];
    assert_eq!(
        (&status["use"], &status["omitted"]["values"]),
        (&"Approval".into(), &1.into()),
        "{}",
        status["omitted"]
    );
    assert_eq!(plan["metadata"]["labels"]["purlin.dev/plan-use"], "Approval");
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("not shown because of its size: the values of 1 change"), "{message}");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_purlin"));
    let kubeconfig = plane().kubeconfig().display().to_string();
    command.args(["approve", name, "-n", &namespace, "--yes", "--kubeconfig", &kubeconfig]);
    let output = command.output().expect("the command runs");
    let mut text = String::new();
    write!(text, "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)).unwrap();
    assert!(output.status.success() && text.contains("Changes whose values are not shown: store."), "{text:.2000}");
    wait_until("the change is made", LIMIT, || {
        plane().get(&["-n", &namespace, "plan", name])["status"]["approval"] == "Applied"
    });
    wait_ready(&namespace, &["key", "store"]);
}
