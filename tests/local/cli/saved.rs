//! `plan --out` and `apply PLANFILE`.

use super::sandbox::{Sandbox, manifest};

fn planned() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &["a"])]);
    sandbox.ok(&["plan", "-f", "files", "--out", "plan.json"]);
    sandbox
}

#[test]
fn a_saved_plan_is_applied_without_confirmation() {
    let sandbox = planned();
    assert!(!sandbox.path("purlin.db").exists(), "a plan creates no state file");
    sandbox.ok(&["apply", "plan.json"]);
    assert_eq!(sandbox.recorded(), ["a", "b"]);
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0));
}

#[test]
fn a_saved_plan_is_the_plan_that_was_printed() {
    let sandbox = planned();
    sandbox.ok(&["apply", "plan.json"]);
    sandbox.write("files/objects.yaml", &(manifest("a", &[]) + "  lifecycle: { createBeforeDestroy: true }\n"));
    let plan = sandbox.json(&["plan", "-f", "files", "--replace", "a", "--out", "plan.json", "-o", "json"]);
    let ids = |nodes: &serde_json::Value, field: &str| -> std::collections::BTreeSet<String> {
        nodes.as_array().unwrap().iter().map(|node| node[field].as_str().unwrap().to_owned()).collect()
    };
    let events = sandbox.events(&["apply", "plan.json", "-o", "json"]);
    let started: Vec<_> = events.into_iter().filter(|event| event["event"] == "finished").collect();
    assert_eq!(ids(&started.into(), "node"), ids(&plan["graph"]["nodes"], "id"));
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn a_saved_plan_is_stale_when_records_have_changed() {
    let sandbox = planned();
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let ran = sandbox.run(&["apply", "plan.json"]);
    assert!(ran.one_error().contains("the records have changed since the plan was saved"), "{ran:?}");
    assert!(ran.stderr.contains("hint: plan again"), "{ran:?}");
}

#[test]
fn a_saved_plan_is_stale_when_files_have_changed() {
    let sandbox = planned();
    sandbox.write("files/more.yaml", &manifest("c", &[]));
    let ran = sandbox.run(&["apply", "plan.json"]);
    assert!(ran.one_error().contains("the files have changed since the plan was saved"), "{ran:?}");
    assert!(!sandbox.path("purlin.db").exists(), "a stale plan changes nothing");
    sandbox.remove("files/more.yaml");
    sandbox.ok(&["apply", "plan.json"]);
}

#[test]
fn a_saved_plan_is_applied_once() {
    let sandbox = planned();
    sandbox.ok(&["apply", "plan.json"]);
    assert!(sandbox.run(&["apply", "plan.json"]).one_error().contains("the records have changed"));
}

#[test]
fn other_files_and_formats_are_rejected() {
    let sandbox = planned();
    let text = std::fs::read_to_string(sandbox.path("plan.json")).unwrap();
    let cases = [
        (text.replace("\"format\":1", "\"format\":2"), "has format 2, not 1"),
        (text.replace("\"purlin\":\"", "\"purlin\":\"9."), "was made by Purlin 9."),
        (text.replace("\"records\"", "\"recrods\""), "is damaged"),
        (manifest("a", &[]), "is not a saved plan"),
    ];
    for (text, expected) in cases {
        sandbox.write("other", &text);
        let ran = sandbox.run(&["apply", "other"]);
        assert!(ran.one_error().contains(expected), "{expected}: {ran:?}");
    }
    assert!(sandbox.run(&["apply", "nothing"]).one_error().contains("cannot be read"));
    assert_eq!(sandbox.run(&["apply", "plan.json", "-f", "files"]).code, Some(1));
}

#[test]
fn modified_replies_are_rejected() {
    let sandbox = planned();
    let text = std::fs::read_to_string(sandbox.path("plan.json")).unwrap();
    let mut saved: serde_json::Value = serde_json::from_str(&text).unwrap();
    saved["replies"].as_object_mut().unwrap().clear();
    sandbox.write("plan.json", &saved.to_string());
    let ran = sandbox.run(&["apply", "plan.json"]);
    assert!(ran.one_error().contains("cannot be reproduced"), "{ran:?}");
    assert_eq!(sandbox.recorded(), [""; 0]);
}

/// A triangle of create-before-destroy objects, all of them replaced when the version changes.
fn triangle(version: u32) -> String {
    let one = |name: &str, value: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  \
             type: terraform_data\n  config: {{ triggers_replace: \"{value}\" }}\n  \
             lifecycle: {{ createBeforeDestroy: true }}\n"
        )
    };
    one("a", &version.to_string()) + &one("b", "${a.id}") + &one("c", "${a.id + b.id}")
}

#[test]
fn a_saved_plan_contains_both_steps_of_create_before_destroy() {
    let sandbox = Sandbox::new();
    sandbox.write("files/objects.yaml", &triangle(1));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.write("files/objects.yaml", &triangle(2));
    sandbox.ok(&["plan", "-f", "files", "--out", "plan.json"]);
    let events = sandbox.events(&["apply", "plan.json", "-o", "json"]);
    let finished: Vec<_> = events.iter().filter(|event| event["event"] == "finished").collect();
    let steps: Vec<_> = finished.iter().map(|event| event["node"].as_str().unwrap()).collect();
    assert_eq!(steps, ["a create", "b create", "c create", "c destroy", "b destroy", "a destroy"]);
    assert_eq!(sandbox.recorded(), ["a", "b", "c"]);
}

#[test]
fn a_saved_plan_can_forget_objects() {
    let sandbox = Sandbox::new();
    let orphaned = manifest("b", &[]) + "  deletionPolicy: Orphan\n";
    sandbox.write("files/objects.yaml", &(manifest("a", &[]) + &orphaned));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.write("files/objects.yaml", &manifest("a", &[]));
    sandbox.ok(&["plan", "-f", "files", "--out", "plan.json"]);
    let events = sandbox.events(&["apply", "plan.json", "-o", "json"]);
    let finished: Vec<_> = events.iter().filter(|event| event["event"] == "finished").collect();
    assert_eq!(finished.len(), 1, "{events:?}");
    assert_eq!(finished[0]["operation"], "forget");
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn selection_and_refresh_are_saved_too() {
    let sandbox = planned();
    sandbox.ok(&["plan", "-f", "files", "--target", "a", "--out", "plan.json"]);
    sandbox.ok(&["apply", "plan.json"]);
    assert_eq!(sandbox.recorded(), ["a"]);
    sandbox.ok(&["plan", "-f", "files", "--refresh-only", "--out", "plan.json"]);
    assert!(sandbox.ok(&["apply", "plan.json"]).contains("No differences"));
}

#[cfg(unix)]
#[test]
fn a_saved_plan_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.write("plan.json", "");
    sandbox.ok(&["plan", "-f", "files", "--out", "plan.json"]);
    let mode = std::fs::metadata(sandbox.path("plan.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_plan_from_standard_input_is_not_saved() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(&["plan", "-f", "-", "--out", "plan.json"], &manifest("a", &[]));
    assert!(ran.one_error().contains("standard input"), "{ran:?}");
}

#[test]
fn a_saved_destroy_plan_is_applied() {
    let sandbox = planned();
    sandbox.ok(&["apply", "plan.json"]);
    let plan = sandbox.json(&["plan", "--destroy", "--target", "b", "--out", "plan.json", "-o", "json"]);
    let actions: Vec<_> = plan["changes"].as_array().unwrap().iter().map(|change| change["action"].clone()).collect();
    assert_eq!(actions, ["NoOp", "Destroy"], "{plan}");
    sandbox.ok(&["apply", "plan.json"]);
    assert_eq!(sandbox.recorded(), ["a"]);
    sandbox.ok(&["plan", "--destroy", "-f", "files", "--out", "plan.json"]);
    sandbox.ok(&["apply", "plan.json"]);
    assert!(sandbox.recorded().is_empty());
    assert_ne!(sandbox.run(&["plan", "--destroy", "--replace", "a"]).code, Some(0));
}
