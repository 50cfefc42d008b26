//! `plan --out` and `apply PLANFILE`.

use super::sandbox::{Sandbox, manifest};

fn planned() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &["a"])]);
    sandbox.ok(&["plan", "-f", "files", "--out", "saved.plan"]);
    sandbox
}

#[test]
fn a_saved_plan_is_applied_without_confirmation() {
    let sandbox = planned();
    assert!(!sandbox.path("purlin.db").exists(), "a plan creates no state file");
    sandbox.ok(&["apply", "saved.plan"]);
    assert_eq!(sandbox.recorded(), ["a", "b"]);
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0));
}

#[test]
fn a_saved_plan_is_the_plan_that_was_printed() {
    let sandbox = planned();
    sandbox.ok(&["apply", "saved.plan"]);
    sandbox.write("files/objects.yaml", &(manifest("a", &[]) + "  lifecycle: { createBeforeDestroy: true }\n"));
    let plan = sandbox.json(&["plan", "-f", "files", "--replace", "a", "--out", "saved.plan", "-o", "json"]);
    let ids = |nodes: &serde_json::Value, field: &str| -> std::collections::BTreeSet<String> {
        nodes.as_array().unwrap().iter().map(|node| node[field].as_str().unwrap().to_owned()).collect()
    };
    let events = sandbox.events(&["apply", "saved.plan", "-o", "json"]);
    let started: Vec<_> = events.into_iter().filter(|event| event["event"] == "finished").collect();
    assert_eq!(ids(&started.into(), "node"), ids(&plan["graph"]["nodes"], "id"));
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn a_saved_plan_is_stale_when_records_have_changed() {
    let sandbox = planned();
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let ran = sandbox.run(&["apply", "saved.plan"]);
    assert!(ran.one_error().contains("the records have changed since the plan was saved"), "{ran:?}");
    assert!(ran.stderr.contains("hint: plan again"), "{ran:?}");
}

#[test]
fn a_saved_plan_is_stale_when_files_have_changed() {
    let sandbox = planned();
    sandbox.write("files/more.yaml", &manifest("c", &[]));
    let ran = sandbox.run(&["apply", "saved.plan"]);
    assert!(ran.one_error().contains("the files have changed since the plan was saved"), "{ran:?}");
    assert!(!sandbox.path("purlin.db").exists(), "a stale plan changes nothing");
    sandbox.remove("files/more.yaml");
    sandbox.ok(&["apply", "saved.plan"]);
}

#[test]
fn a_saved_plan_is_applied_once() {
    let sandbox = planned();
    sandbox.ok(&["apply", "saved.plan"]);
    assert!(sandbox.run(&["apply", "saved.plan"]).one_error().contains("the records have changed"));
}

#[test]
fn other_files_and_formats_are_rejected() {
    let sandbox = planned();
    let saved = std::fs::read(sandbox.path("saved.plan")).unwrap();
    let header = saved.iter().position(|byte| *byte == b'\n').unwrap();
    let with_header = |old: &str, new: &str| {
        let text = std::str::from_utf8(&saved[..header]).unwrap();
        assert!(text.contains(old), "{text}");
        [text.replace(old, new).as_bytes(), &saved[header..]].concat()
    };
    let mut changed = saved.clone();
    *changed.last_mut().unwrap() ^= 1;
    let cases = [
        (with_header("\"format\":1", "\"format\":2"), "has format 2, not 1"),
        (with_header("\"purlin\":\"", "\"purlin\":\"9."), "was made by Purlin 9."),
        (changed, "is damaged"),
        (saved[..saved.len() - 1].to_vec(), "is damaged"),
        (saved[..header].to_vec(), "is damaged"),
        (manifest("a", &[]).into_bytes(), "is not a saved plan"),
    ];
    for (bytes, expected) in cases {
        std::fs::write(sandbox.path("other"), bytes).unwrap();
        let ran = sandbox.run(&["apply", "other"]);
        assert!(ran.one_error().contains(expected), "{expected}: {ran:?}");
    }
    assert!(sandbox.run(&["apply", "nothing"]).one_error().contains("cannot be read"));
    assert_eq!(sandbox.run(&["apply", "saved.plan", "-f", "files"]).code, Some(1));
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
    sandbox.ok(&["plan", "-f", "files", "--out", "saved.plan"]);
    let events = sandbox.events(&["apply", "saved.plan", "-o", "json"]);
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
    sandbox.ok(&["plan", "-f", "files", "--out", "saved.plan"]);
    let events = sandbox.events(&["apply", "saved.plan", "-o", "json"]);
    let finished: Vec<_> = events.iter().filter(|event| event["event"] == "finished").collect();
    assert_eq!(finished.len(), 1, "{events:?}");
    assert_eq!(finished[0]["operation"], "forget");
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn selection_and_refresh_are_saved_too() {
    let sandbox = planned();
    sandbox.ok(&["plan", "-f", "files", "--target", "a", "--out", "saved.plan"]);
    sandbox.ok(&["apply", "saved.plan"]);
    assert_eq!(sandbox.recorded(), ["a"]);
    sandbox.ok(&["plan", "-f", "files", "--refresh-only", "--out", "saved.plan"]);
    assert!(sandbox.ok(&["apply", "saved.plan"]).contains("No differences"));
}

#[cfg(unix)]
#[test]
fn a_saved_plan_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.write("saved.plan", "");
    sandbox.ok(&["plan", "-f", "files", "--out", "saved.plan"]);
    let mode = std::fs::metadata(sandbox.path("saved.plan")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_plan_from_standard_input_is_not_saved() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(&["plan", "-f", "-", "--out", "saved.plan"], &manifest("a", &[]));
    assert!(ran.one_error().contains("standard input"), "{ran:?}");
}

#[test]
fn a_saved_destroy_plan_is_applied() {
    let sandbox = planned();
    sandbox.ok(&["apply", "saved.plan"]);
    let plan = sandbox.json(&["plan", "--destroy", "--target", "b", "--out", "saved.plan", "-o", "json"]);
    let actions: Vec<_> = plan["changes"].as_array().unwrap().iter().map(|change| change["action"].clone()).collect();
    assert_eq!(actions, ["NoOp", "Destroy"], "{plan}");
    sandbox.ok(&["apply", "saved.plan"]);
    assert_eq!(sandbox.recorded(), ["a"]);
    sandbox.ok(&["plan", "--destroy", "-f", "files", "--out", "saved.plan"]);
    sandbox.ok(&["apply", "saved.plan"]);
    assert!(sandbox.recorded().is_empty());
    assert_ne!(sandbox.run(&["plan", "--destroy", "--replace", "a"]).code, Some(0));
}

#[test]
fn a_saved_plan_has_secrets_and_the_instances_that_other_objects_determine() {
    let sandbox = Sandbox::new();
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: login }\nstringData: { password: hunter2 }\n";
    let resource = |name: &str, spec: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\n\
             spec:\n  type: terraform_data\n{spec}"
        )
    };
    let base = "  inputs: [{ name: password, secretKeyRef: { name: login, key: password } }]\n  \
                config: { input: { names: [x, y], password: '${inputs.password}' } }\n";
    let each = "  forEach: '${base.input.names}'\n  config: { input: '${base.input.password}' }\n";
    let manifests = [secret, &resource("base", base), &resource("each", each)].concat();
    sandbox.write("files/objects.yaml", &manifests);
    sandbox.ok(&["plan", "-f", "files", "--out", "saved.plan"]);
    let shown = sandbox.ok(&["apply", "saved.plan", "--full"]);
    assert!(shown.contains("sensitive") && !shown.contains("hunter2"), "{shown}");
    assert_eq!(sandbox.recorded(), ["base", "each[\"x\"]", "each[\"y\"]"]);
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0));
    let values = &sandbox.json(&["state", "show", "base", "-o", "json"])["objects"][0]["values"];
    assert_eq!(values["input"]["password"], serde_json::json!({"sensitive": true}));
}
