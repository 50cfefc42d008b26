//! `purlin state`.

use super::sandbox::{Sandbox, manifest};

/// A protected object, and another object that depends on it.
fn protected() -> Sandbox {
    let sandbox = Sandbox::new();
    let text = manifest("keep", &[]) + "  lifecycle: { preventDestroy: true }\n";
    sandbox.write("files/keep.yaml", &text);
    sandbox.write("files/other.yaml", &manifest("other", &["keep"]));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox
}

#[test]
fn a_tainted_object_is_replaced() {
    let sandbox = protected();
    sandbox.ok(&["state", "taint", "other"]);
    assert_eq!(sandbox.json(&["state", "show", "other", "-o", "json"])["objects"][0]["status"], "tainted");
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    assert_eq!(plan["changes"][1]["action"], "Replace");
    // An interrupted script can be repeated.
    let again = sandbox.run(&["state", "taint", "other"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.contains("`other` is already tainted") && again.stderr.contains("hint: "), "{again:?}");
    sandbox.ok(&["state", "untaint", "other"]);
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0));
    sandbox.run(&["state", "untaint", "other"]).one_error();
}

#[test]
fn a_forgotten_object_has_no_record() {
    let sandbox = protected();
    let refused = sandbox.run(&["state", "rm", "other"]);
    refused.one_error();
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    sandbox.ok(&["state", "rm", "other", "--yes"]);
    assert_eq!(sandbox.recorded(), ["keep"]);
    sandbox.run(&["state", "show", "other"]).one_error();
}

#[test]
fn a_record_that_cannot_be_read_can_be_forgotten() {
    let sandbox = protected();
    let file = rusqlite::Connection::open(sandbox.path("purlin.db")).unwrap();
    file.execute("UPDATE record SET body = x'00' WHERE address = 'other'", []).unwrap();
    drop(file);
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains(" other: "), "{ran:?}");
    sandbox.run(&["state", "rm", "other"]).one_error();
    sandbox.ok(&["state", "rm", "other", "--yes"]);
    assert_eq!(sandbox.recorded(), ["keep"]);
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(2));
}

/// Its object may use any other one.
#[test]
fn nothing_is_destroyed_while_a_record_without_a_manifest_cannot_be_read() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &["a"]), ("c", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let file = rusqlite::Connection::open(sandbox.path("purlin.db")).unwrap();
    file.execute("UPDATE record SET body = x'00ff' WHERE address = 'b'", []).unwrap();
    drop(file);
    let what = " b: the record cannot be read, and no manifest has this object, so nothing is destroyed";
    let ran = sandbox.run(&["destroy", "--yes"]);
    assert!(ran.one_error().contains(what), "{ran:?}");
    sandbox.objects(&[("c", &[])]);
    for arguments in [&["apply", "-f", "files", "--yes"][..], &["apply", "-f", "files", "--yes", "--keep-going"]] {
        let ran = sandbox.run(arguments);
        assert!(ran.one_error().contains(what), "{ran:?}");
    }
    sandbox.ok(&["state", "rm", "b", "--yes"]);
    assert_eq!(sandbox.recorded(), ["a", "c"]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.recorded(), ["c"]);
}

#[test]
fn an_unprotected_orphan_is_destroyed() {
    let sandbox = protected();
    sandbox.remove("files/keep.yaml");
    sandbox.write("files/other.yaml", &manifest("other", &[]));
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes"]).code, Some(1));
    assert_eq!(sandbox.recorded(), ["keep", "other"]);
    sandbox.ok(&["state", "unprotect", "keep"]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.recorded(), ["other"]);
}

#[test]
fn release_requires_a_cluster() {
    let sandbox = protected();
    let ran = sandbox.run(&["state", "release", "--all"]);
    ran.one_error();
    assert!(ran.stderr.contains("state rm"), "{ran:?}");
}

#[test]
fn editing_creates_no_state_file() {
    let sandbox = Sandbox::new();
    sandbox.run(&["state", "taint", "a", "--state", "none.db"]).one_error();
    assert!(!sandbox.path("none.db").exists());
}

#[test]
fn a_record_is_moved_to_another_address() {
    let sandbox = protected();
    let id =
        |address: &str| sandbox.json(&["state", "show", address, "-o", "json"])["objects"][0]["values"]["id"].clone();
    let before = id("keep");
    sandbox.ok(&["state", "mv", "keep", "kept"]);
    assert_eq!(sandbox.recorded(), ["kept", "other"]);
    assert_eq!(id("kept"), before);
    let other = sandbox.json(&["state", "show", "other", "-o", "json"]);
    assert_eq!(other["objects"][0]["dependencies"], serde_json::json!(["kept"]));
    for wrong in [["kept", "other"], ["absent", "x"], ["kept", "No"]] {
        sandbox.run(&["state", "mv", wrong[0], wrong[1]]).one_error();
    }
    assert_eq!(sandbox.recorded(), ["kept", "other"]);
}

/// A family, and an object that depends on all of it.
fn family() -> Sandbox {
    let sandbox = Sandbox::new();
    let head = |name: &str| format!("apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\n");
    let sea =
        head("sea") + "spec: { type: terraform_data, forEach: [north, south], config: { input: \"${each.key}\" } }\n";
    sandbox.write("files/sea.yaml", &sea);
    let ship = head("ship") + "spec: { type: terraform_data, dependsOn: [{ name: sea }] }\n";
    sandbox.write("files/ship.yaml", &ship);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox
}

#[test]
fn the_name_of_a_family_selects_all_instances() {
    let sandbox = family();
    let ship = sandbox.json(&["state", "show", "ship", "-o", "json"]);
    assert_eq!(ship["objects"][0]["dependencies"], serde_json::json!(["sea[*]"]), "no object is called `sea`");
    assert!(sandbox.ok(&["state", "show", "ship"]).contains("sea[*]"));

    sandbox.ok(&["state", "taint", "sea"]);
    let all = sandbox.json(&["state", "list", "-o", "json"]);
    let tainted = all["objects"].as_array().unwrap().iter().filter(|one| one["status"] == "tainted").count();
    assert_eq!(tainted, 2);
    sandbox.ok(&["state", "untaint", r#"sea["north"]"#]);
    sandbox.ok(&["state", "untaint", "sea"]);
    sandbox.run(&["state", "untaint", "sea"]).one_error();

    assert!(sandbox.run(&["state", "mv", "sea", "ocean[0]"]).one_error().contains("`sea` is a family"));
    sandbox.ok(&["state", "mv", "sea", "ocean"]);
    assert_eq!(sandbox.recorded(), [r#"ocean["north"]"#, r#"ocean["south"]"#, "ship"]);
    sandbox.run(&["state", "mv", "ocean", "ocean"]).one_error();
    sandbox.ok(&["state", "rm", "ocean", "--yes"]);
    assert_eq!(sandbox.recorded(), ["ship"]);
    sandbox.run(&["state", "rm", "ocean", "--yes"]).one_error();
}

#[test]
fn the_list_of_given_sources_does_not_read_them() {
    let sandbox = Sandbox::new();
    let document = |name: &str| {
        format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec: {{ type: terraform_data }}\n"
        )
    };
    sandbox.write("one/a.yaml", &document("a"));
    sandbox.write("two/b.yaml", &document("b"));
    sandbox.ok(&["apply", "-f", "one", "-f", "two", "--yes"]);
    let listed = |source: &str| sandbox.ok(&["state", "list", "-f", source]);
    assert!(listed("one").contains("\na ") && !listed("one").contains("\nb "), "{}", listed("one"));
    // Its objects are listed when it no longer exists.
    std::fs::remove_dir_all(sandbox.path("two")).unwrap();
    assert!(listed("two").contains("\nb ") && !listed("two").contains("\na "), "{}", listed("two"));
}
