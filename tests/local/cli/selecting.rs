//! `--target` and `--replace`.

use super::sandbox::{Sandbox, manifest};

fn chain() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("other", &[])]);
    sandbox
}

#[test]
fn targets_are_created_with_their_dependencies() {
    let sandbox = chain();
    let ran = sandbox.run(&["apply", "-f", "files", "--target", "b", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: targeting is in effect: 2 object(s)"), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["a", "b"]);
    sandbox.ok(&["apply", "-f", "files", "--target", "b", "--target", "other", "--yes"]);
    assert_eq!(sandbox.recorded(), ["a", "b", "other"]);
}

#[test]
fn a_targeted_destroy_includes_dependents() {
    let sandbox = chain();
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.ok(&["destroy", "--target", "b", "--yes"]);
    assert_eq!(sandbox.recorded(), ["a", "other"]);
}

#[test]
fn objects_that_are_not_selected_have_no_changes() {
    let sandbox = chain();
    let plan = sandbox.json(&["plan", "-f", "files", "--target", "a", "-o", "json"]);
    let changes: Vec<(&str, &str)> = plan["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (change["action"].as_str().unwrap(), change["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(changes, [("Create", ""), ("NoOp", "not selected"), ("NoOp", "not selected"), ("NoOp", "not selected")]);
    assert_eq!(plan["diagnostics"][0]["severity"], "warning");
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--target", "a", "--detailed-exitcode"]).code, Some(2));
}

#[test]
fn an_unknown_address_is_an_error_with_a_suggestion() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("database", &[]));
    for flag in ["--target", "--replace"] {
        let ran = sandbox.run(&["plan", "-f", "files", flag, "databse"]);
        assert!(ran.one_error().contains(&format!("{flag} names `databse`")), "{ran:?}");
        assert!(ran.stderr.contains("did you mean `database`?"), "{ran:?}");
        assert_eq!(ran.stdout, "");
        sandbox.run(&["plan", "-f", "files", flag, "a["]).one_error();
    }
    assert!(sandbox.run(&["apply", "-f", "files", "--target", "x", "--yes"]).one_error().contains("`x`"));
    assert_eq!(sandbox.recorded(), [""; 0]);
}

#[test]
fn replaced_objects_must_be_selected() {
    let sandbox = chain();
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let ran = sandbox.run(&["plan", "-f", "files", "--replace", "other", "--target", "a"]);
    assert!(ran.one_error().contains("--replace names `other`, which --target excludes"), "{ran:?}");
    let plan = sandbox.json(&["plan", "-f", "files", "--replace", "other", "-o", "json"]);
    assert_eq!(plan["changes"][3]["action"], "Replace");
    sandbox.ok(&["apply", "-f", "files", "--replace", "other", "--target", "other", "--yes"]);
}
