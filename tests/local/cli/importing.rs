//! `purlin import`, `purlin tree`, and the commands that work only on a cluster.

use super::sandbox::{Sandbox, manifest};

#[test]
fn an_object_with_a_manifest_is_imported() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &["a"])]);
    let output = sandbox.ok(&["import", "b", "some-id", "-f", "files"]);
    assert!(output.contains("# b will be updated in place"), "{output}");
    assert_eq!(sandbox.recorded(), ["b"]);
    let shown = sandbox.json(&["state", "show", "b", "-o", "json"]);
    assert_eq!(shown["objects"][0]["values"]["id"], "some-id");
    assert_eq!(shown["objects"][0]["dependencies"], serde_json::json!(["a"]));
    let history = sandbox.json(&["history", "b", "-o", "json"]);
    assert_eq!(
        (&history["changes"][0]["action"], &history["changes"][0]["reason"]),
        (&"import".into(), &"imported".into())
    );
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.json(&["state", "show", "b", "-o", "json"])["objects"][0]["values"]["id"], "some-id");
}

#[test]
fn a_recorded_object_is_not_imported_again() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let ran = sandbox.run(&["import", "a", "other", "-f", "files"]);
    assert!(ran.one_error().contains("`a` already has a recorded object"), "{ran:?}");
}

#[test]
fn a_resource_that_only_observes_is_valid_and_follows_its_import() {
    let sandbox = Sandbox::new();
    let observed = |id: &str| {
        sandbox.write(
            "files/shared.yaml",
            &format!(
                "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: shared }}\nspec: {{ type: \
                 terraform_data, import: {{ id: {id} }}, managementPolicies: [Observe] }}\n"
            ),
        );
    };
    observed("first");
    sandbox.ok(&["validate", "-f", "files"]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    observed("second");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.json(&["state", "show", "shared", "-o", "json"])["objects"][0]["values"]["id"], "second");
    assert!(sandbox.ok(&["plan", "-f", "files"]).contains("No changes"));
}

#[test]
fn an_object_has_one_address() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &[])]);
    sandbox.ok(&["import", "a", "it", "-f", "files"]);
    let ran = sandbox.run(&["import", "b", "it", "-f", "files"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("already managed by `a`") && ran.stderr.contains("Nothing was imported."), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn import_without_a_manifest_prints_one() {
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
fn invalid_imports_are_reported() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    assert!(sandbox.run(&["import", "a", "", "-f", "files"]).stderr.contains("a value is required for '[ID]'"));
    assert!(sandbox.run(&["import", "a[", "x", "-f", "files"]).one_error().contains("is not a valid address"));
    assert!(sandbox.run(&["import", "a", "x", "--state", "purlin.db"]).one_error().contains("no files are specified"));
    let ran = sandbox.run(&["import", "new", "x", "-f", "files", "--type", "nothing"]);
    assert!(ran.one_error().contains("no provider serves the type `nothing`"), "{ran:?}");
    assert_eq!(sandbox.recorded(), [""; 0]);
}

#[test]
fn a_tree_shows_dependencies() {
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
        serde_json::json!({"address": "b", "state": "ready", "isGood": true, "label": "", "dependencies": ["a"]})
    );
    sandbox.run(&["tree", "none"]).one_error();
}

#[test]
fn suspend_resume_and_reconcile_require_a_cluster() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    for command in ["suspend", "resume", "reconcile"] {
        let ran = sandbox.run(&[command, "a", "-f", "files"]);
        assert!(ran.one_error().contains("only on Resources in a cluster"), "{ran:?}");
    }
}

#[test]
fn a_refresh_changes_records_only() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.objects(&[("b", &[])]);
    let plan = sandbox.ok(&["plan", "-f", "files", "--refresh-only"]);
    assert_eq!(plan, "No differences: all objects that could be read match their records.\n");
    sandbox.ok(&["apply", "-f", "files", "--refresh-only", "--yes"]);
    assert_eq!(sandbox.recorded(), ["a"]);
    let ran = sandbox.run(&["plan", "-f", "files", "--refresh-only", "--refresh", "none"]);
    assert!(ran.one_error().contains("cannot be combined"), "{ran:?}");
}
