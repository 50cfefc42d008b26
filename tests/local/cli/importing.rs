//! `purlin import`, `purlin tree`, and the switches of a cluster.

use super::sandbox::{Sandbox, manifest};

#[test]
fn an_object_is_taken_into_the_record_of_its_manifest() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &["a"])]);
    let told = sandbox.ok(&["import", "b", "some-id", "-f", "files"]);
    assert!(told.contains("# b will be updated in place"), "{told}");
    assert_eq!(sandbox.recorded(), ["b"]);
    let shown = sandbox.json(&["state", "show", "b", "-o", "json"]);
    assert_eq!(shown["objects"][0]["values"]["id"], "some-id");
    assert_eq!(shown["objects"][0]["dependencies"], serde_json::json!(["a"]));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.json(&["state", "show", "b", "-o", "json"])["objects"][0]["values"]["id"], "some-id");
}

#[test]
fn what_is_recorded_is_not_imported_again() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let ran = sandbox.run(&["import", "a", "other", "-f", "files"]);
    assert!(ran.one_error().contains("an object is recorded of `a` already"), "{ran:?}");
}

#[test]
fn an_object_has_one_address() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &[])]);
    sandbox.ok(&["import", "a", "it", "-f", "files"]);
    let ran = sandbox.run(&["import", "b", "it", "-f", "files"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("already belongs to `a`") && ran.stderr.contains("Nothing was imported."), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn without_a_manifest_one_is_printed() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    let ran = sandbox.run(&["import", "new", "it", "-f", "files"]);
    assert!(ran.one_error().contains("its type is not known") && ran.stderr.contains("--type"), "{ran:?}");
    let text = sandbox.ok(&["import", "new", "it", "-f", "files", "--type", "terraform_data"]);
    sandbox.write("files/new.yaml", &text);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.json(&["state", "show", "new", "-o", "json"])["objects"][0]["values"]["id"], "it");
    sandbox.ok(&["import", "more", "it2", "-f", "files", "--type", "terraform_data", "--out", "files/more.yaml"]);
    let again = ["import", "most", "it3", "-f", "files", "--type", "terraform_data", "--out", "files/more.yaml"];
    assert!(sandbox.run(&again).one_error().contains("cannot be written"));
    assert_eq!(sandbox.json(&["plan", "-f", "files", "-o", "json"])["changes"][1]["reason"], "imported");
}

#[test]
fn bad_imports_are_told() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    assert!(sandbox.run(&["import", "a", "", "-f", "files"]).one_error().contains("the id is empty"));
    assert!(sandbox.run(&["import", "a[", "x", "-f", "files"]).one_error().contains("is no address"));
    assert!(sandbox.run(&["import", "a", "x", "--state", "purlin.db"]).one_error().contains("no files are given"));
    let ran = sandbox.run(&["import", "new", "x", "-f", "files", "--type", "nothing"]);
    assert!(ran.one_error().contains("no provider serves the type `nothing`"), "{ran:?}");
    assert_eq!(sandbox.recorded(), [""; 0]);
}

#[test]
fn a_tree_has_what_objects_depend_on_below_them() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"])]);
    let expected = "c  to create\n├─ a  to create\n└─ b  to create\n   └─ a  to create\n";
    assert_eq!(sandbox.ok(&["tree", "-f", "files"]), expected);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.ok(&["tree", "b"]), "b  ready\n└─ a  ready\n");
    let json: serde_json::Value = serde_json::from_str(&sandbox.ok(&["tree", "b", "-o", "json"])).unwrap();
    assert_eq!(json["roots"], serde_json::json!(["b"]));
    assert_eq!(
        json["objects"][1],
        serde_json::json!({"address": "b", "state": "ready", "isGood": true, "dependencies": ["a"]})
    );
    sandbox.run(&["tree", "none"]).one_error();
}

#[test]
fn the_switches_of_a_cluster_are_no_switches_of_files() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    for command in ["suspend", "resume", "reconcile"] {
        let ran = sandbox.run(&[command, "a", "-f", "files"]);
        assert!(ran.one_error().contains("Resources of a cluster"), "{ran:?}");
    }
}

#[test]
fn a_refresh_changes_records_only() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.objects(&[("b", &[])]);
    let plan = sandbox.ok(&["plan", "-f", "files", "--refresh-only"]);
    assert_eq!(plan, "No differences: every object that could be read is as it is recorded.\n");
    sandbox.ok(&["apply", "-f", "files", "--refresh-only", "--yes"]);
    assert_eq!(sandbox.recorded(), ["a"]);
    let ran = sandbox.run(&["plan", "-f", "files", "--refresh-only", "--refresh", "none"]);
    assert!(ran.one_error().contains("exclude each other"), "{ran:?}");
}
