//! Which objects belong to the files of `-f`: only their objects are orphans.

use std::fs;

use serde_json::{Value as Json, json};

use super::sandbox::{Sandbox, manifest};

/// The directories `network`, with `net`, and `app`, with `app`, which references `net`. Both are applied.
fn two_directories() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("network/net.yaml", &manifest("net", &[]));
    sandbox.write("app/app.yaml", &manifest("app", &["net"]));
    sandbox.ok(&["apply", "-f", "network", "--yes"]);
    sandbox.ok(&["apply", "-f", "app", "--yes"]);
    sandbox
}

/// The source of each record.
fn sources(sandbox: &Sandbox) -> Json {
    let list = sandbox.json(&["state", "list", "-o", "json"]);
    let objects = list["objects"].as_array().unwrap().iter();
    objects.map(|object| (object["address"].as_str().unwrap().to_owned(), object["source"].clone())).collect()
}

/// Whether the plan has no changes and mentions none.
fn assert_quiet(sandbox: &Sandbox, arguments: &[&str]) {
    let ran = sandbox.run(&[arguments, &["--detailed-exitcode"]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "No changes: every object is up to date.\n"), "{ran:?}");
}

#[test]
fn objects_of_other_directories_are_left_unchanged_and_counted() {
    let sandbox = two_directories();
    assert_eq!(sandbox.recorded(), ["app", "net"]);
    assert_eq!(sources(&sandbox), json!({"app": "app/app.yaml", "net": "network/net.yaml"}));
    let line = "1 object from other sources is left unchanged (hint: --prune treats what is given as everything).";
    for command in ["plan", "apply"] {
        let text = sandbox.ok(&[&[command, "-f", "app"][..], &["--yes"][..usize::from(command == "apply")]].concat());
        assert!(text.lines().any(|found| found == line), "{text}");
    }
    let plan = sandbox.json(&["plan", "-f", "app", "-o", "json"]);
    assert_eq!(plan["otherSources"], json!({"unchanged": 1, "takenOver": 0}));
    let net = &plan["changes"][1];
    assert_eq!(
        (&net["address"], &net["action"], &net["reason"]),
        (&json!("net"), &json!("NoOp"), &json!("from another source"))
    );
    let events = sandbox.events(&["apply", "-f", "app", "--yes", "-o", "json"]);
    assert_eq!(events.last().unwrap()["otherSources"]["unchanged"], 1);
    assert_quiet(&sandbox, &["plan", "-f", "app", "-f", "network"]);
    assert_quiet(&sandbox, &["plan", "-f", "."]);
}

#[test]
fn an_object_is_destroyed_when_its_source_no_longer_contains_it() {
    let sandbox = two_directories();
    sandbox.write("app/more.yaml", &manifest("more", &["net"]));
    sandbox.ok(&["apply", "-f", "app", "--yes"]);
    sandbox.remove("app/more.yaml");
    assert!(!sandbox.ok(&["plan", "-f", "app/app.yaml"]).contains("more"), "a file covers only itself");
    let graph = sandbox.ok(&["graph", "-f", "app"]);
    assert_eq!(graph, "more destroy\n");
    sandbox.ok(&["apply", "-f", "app", "--yes"]);
    assert_eq!(sandbox.recorded(), ["app", "net"]);
}

#[test]
fn an_object_that_another_source_uses_is_kept() {
    let sandbox = two_directories();
    sandbox.write("network/net.yaml", &manifest("other", &[]));
    let ran = sandbox.run(&["apply", "-f", "network", "--yes", "--keep-going"]);
    let error = ran.one_error();
    assert!(error.contains("net: still used by `app`, which is from another source (`app/app.yaml`)"), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["app", "net", "other"]);
    sandbox.write("app/app.yaml", &manifest("app", &[]));
    sandbox.ok(&["apply", "-f", "network", "-f", "app", "--yes"]);
    assert_eq!(sandbox.recorded(), ["app", "other"]);
}

#[test]
fn prune_treats_the_given_files_as_everything() {
    let sandbox = two_directories();
    let plan = sandbox.json(&["plan", "-f", "network", "--prune", "-o", "json"]);
    assert_eq!((&plan["changes"][0]["action"], &plan["otherSources"]["unchanged"]), (&json!("Destroy"), &json!(0)));
    sandbox.ok(&["plan", "-f", "network", "--prune", "--out", "plan.bin"]);
    sandbox.ok(&["apply", "plan.bin"]);
    assert_eq!(sandbox.recorded(), ["net"]);
    sandbox.run(&["plan", "--state", "purlin.db", "--prune"]).one_error();
}

#[test]
fn a_manifest_that_moves_changes_nothing() {
    let sandbox = two_directories();
    fs::create_dir_all(sandbox.path("app/deep/er")).unwrap();
    fs::rename(sandbox.path("app/app.yaml"), sandbox.path("app/deep/er/renamed.yml")).unwrap();
    assert_quiet(&sandbox, &["plan", "-f", "."]);
    assert_quiet(&sandbox, &["apply", "-f", ".", "--yes"]);
    assert_eq!(sources(&sandbox), json!({"app": "app/deep/er/renamed.yml", "net": "network/net.yaml"}));
    let events = sandbox.events(&["apply", "-f", ".", "--yes", "-o", "json"]);
    assert_eq!(events.len(), 1, "{events:?}");
}

#[test]
fn a_manifest_in_another_source_takes_the_object_over() {
    let sandbox = two_directories();
    fs::rename(sandbox.path("network/net.yaml"), sandbox.path("app/net.yaml")).unwrap();
    let text = sandbox.ok(&["apply", "-f", "app", "--yes"]);
    assert!(text.starts_with("1 object from other sources now belongs to the given sources.\n"), "{text}");
    assert_eq!(sources(&sandbox), json!({"app": "app/app.yaml", "net": "app/net.yaml"}));
    assert_quiet(&sandbox, &["apply", "-f", "app", "--yes"]);
}

#[test]
fn a_directory_is_the_same_source_however_it_is_given() {
    let sandbox = two_directories();
    sandbox.write("app/more.yaml", &manifest("more", &[]));
    sandbox.ok(&["apply", "-f", "./app/", "--yes"]);
    sandbox.remove("app/more.yaml");
    let absolute = sandbox.path("app");
    for given in ["app", "./app", "app/", "network/../app", absolute.to_str().unwrap()] {
        let plan = sandbox.json(&["plan", "-f", given, "-o", "json"]);
        assert_eq!(plan["changes"][1]["action"], "Destroy", "{given}");
    }
    // Everything moves together.
    let moved = Sandbox::new();
    for directory in ["app", "network"] {
        fs::rename(sandbox.path(directory), moved.path(directory)).unwrap();
    }
    fs::rename(sandbox.path("purlin.db"), moved.path("purlin.db")).unwrap();
    assert_eq!(moved.json(&["plan", "-f", "app", "-o", "json"])["changes"][1]["action"], "Destroy");
    // Another working directory.
    let state = moved.path("purlin.db");
    let (app, state) = (moved.path("app"), state.to_str().unwrap());
    let plan = sandbox.json(&["plan", "-f", app.to_str().unwrap(), "--state", state, "-o", "json"]);
    assert_eq!(plan["changes"][1]["action"], "Destroy");
}

#[test]
fn standard_input_is_a_source_of_its_own() {
    let sandbox = two_directories();
    let apply = |text: &str| sandbox.run_with_input(&["apply", "-f", "-", "--yes"], text);
    assert_eq!(apply(&(manifest("a", &[]) + &manifest("b", &[]))).code, Some(0));
    assert_eq!(sources(&sandbox)["a"], "-");
    assert_eq!(apply(&manifest("a", &[])).code, Some(0));
    assert_eq!(sandbox.recorded(), ["a", "app", "net"]);
}

#[test]
fn a_directory_without_resources_destroys_nothing_and_says_how() {
    let sandbox = two_directories();
    sandbox.remove("app/app.yaml");
    let ran = sandbox.run(&["apply", "-f", "app", "--yes"]);
    assert_eq!((ran.code, ran.errors().len()), (Some(0), 0), "{ran:?}");
    let warning = "warning: `app` contains no Resource: the recorded object from it is left unchanged\nhint: `purlin \
                   destroy -f app` destroys the objects that were created from it\n";
    assert!(ran.stderr.ends_with(warning), "{ran:?}");
    // Neither with another source, nor as everything.
    for more in [&["-f", "network"][..], &["--prune"]] {
        let ran = sandbox.run(&[&["plan", "-f", "app", "--detailed-exitcode"], more].concat());
        assert_eq!(ran.code, Some(0), "{more:?}: {ran:?}");
    }
    // A directory that does not exist is an error.
    fs::remove_dir(sandbox.path("app")).unwrap();
    let ran = sandbox.run(&["apply", "-f", "app", "--yes"]);
    assert!(ran.code == Some(1) && ran.errors()[0].contains("app cannot be read"), "{ran:?}");
    assert!(ran.stderr.contains("hint: `purlin destroy -f app`"), "{ran:?}");
    let ran = sandbox.run(&["destroy", "-f", "app", "--yes"]);
    assert_eq!((ran.code, ran.errors().len()), (Some(0), 0), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["net"]);
    // Nothing was created from it, so it is probably misspelled.
    assert!(sandbox.run(&["destroy", "-f", "app", "--yes"]).one_error().contains("app cannot be read"));
    assert_eq!(sandbox.recorded(), ["net"]);
}

#[test]
fn destroy_with_files_destroys_only_their_objects() {
    let sandbox = two_directories();
    let ran = sandbox.run(&["destroy", "-f", "network", "--yes"]);
    assert!(ran.one_error().contains("still used by `app`"), "{ran:?}");
    sandbox.ok(&["plan", "--destroy", "-f", "app", "--out", "plan.bin"]);
    let text = sandbox.ok(&["apply", "plan.bin"]);
    assert!(text.contains("left unchanged (hint: `purlin destroy` without -f destroys everything)"), "{text}");
    assert_eq!(sandbox.recorded(), ["net"]);
    sandbox.ok(&["apply", "-f", "app", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.recorded().is_empty());
}

#[test]
fn a_destroy_does_not_follow_a_name_to_another_source() {
    let sandbox = two_directories();
    sandbox.write("network/app.yaml", &manifest("app", &[]));
    let ran = sandbox.run(&["destroy", "-f", "network/app.yaml", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["app", "net"]);
}

#[test]
fn a_target_of_another_source_is_an_error() {
    let sandbox = two_directories();
    for flag in ["--target", "--replace"] {
        let ran = sandbox.run(&["plan", "-f", "app", flag, "net"]);
        assert!(ran.one_error().contains("`net`, whose manifest is not in the given sources"), "{ran:?}");
    }
    assert_eq!(sandbox.run(&["plan", "-f", "app", "--target", "app"]).code, Some(0));
}

#[test]
fn records_of_earlier_versions_are_left_unchanged() {
    let sandbox = two_directories();
    let file = rusqlite::Connection::open(sandbox.path("purlin.db")).unwrap();
    file.execute_batch("ALTER TABLE record DROP COLUMN source").unwrap();
    drop(file);
    assert_eq!(sources(&sandbox), json!({"app": null, "net": null}));
    sandbox.write("app/app.yaml", &manifest("new", &[]));
    sandbox.ok(&["apply", "-f", "app", "--yes"]);
    assert_eq!(sandbox.recorded(), ["app", "net", "new"]);
    sandbox.ok(&["apply", "-f", "network", "--yes"]);
    assert_eq!(sources(&sandbox), json!({"app": null, "net": "network/net.yaml", "new": "app/app.yaml"}));
    sandbox.ok(&["apply", "-f", "app", "--prune", "--yes"]);
    assert_eq!(sandbox.recorded(), ["new"]);
}

#[test]
fn an_object_is_recorded_with_its_source_before_it_is_created() {
    let sandbox = Sandbox::new();
    let hook = "  hooks: [{ name: stop, when: AfterCreate, exec: { command: [\"false\"] } }]\n";
    sandbox.write("files/a.yaml", &(manifest("a", &[]) + hook));
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes"]).code, Some(1));
    assert_eq!(sources(&sandbox), json!({"a": "files/a.yaml"}));
    sandbox.ok(&["state", "mv", "a", "b"]);
    assert_eq!(sources(&sandbox), json!({"b": "files/a.yaml"}));
}

#[test]
fn dev_watches_subdirectories_and_leaves_other_objects_unchanged() {
    let sandbox = two_directories();
    let mut dev = sandbox.start(&["dev", "-f", "app"]);
    dev.wait_until("the other object is counted", |dev| dev.out().contains("1 object from other sources is left"));
    sandbox.write("app/sub/more.yaml", &manifest("more", &["net", "app"]));
    dev.wait_until("more is created", |_| sandbox.recorded() == ["app", "more", "net"]);
    fs::rename(sandbox.path("app/sub/more.yaml"), sandbox.path("app/more.yaml")).unwrap();
    dev.wait_until("its source is recorded", |_| sources(&sandbox)["more"] == "app/more.yaml");
    sandbox.remove("app/more.yaml");
    dev.wait_until("more is destroyed", |_| sandbox.recorded() == ["app", "net"]);
    sandbox.write("app/net.yaml", &manifest("net", &[]));
    dev.wait_until("net is taken over", |_| sources(&sandbox)["net"] == "app/net.yaml");
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
    assert_eq!(sandbox.recorded(), ["app", "net"]);
}

#[test]
fn a_missing_state_file_is_an_error() {
    let sandbox = two_directories();
    let commands = [
        &["destroy", "--yes"][..],
        &["destroy", "-f", "app", "--yes"],
        &["plan", "--destroy"],
        &["state", "list"],
        &["state", "show", "app"],
        &["state", "rm", "app", "--yes"],
        &["state", "mv", "app", "b"],
        &["state", "export", "--terraform"],
        &["get"],
        &["tree"],
        &["explain", "app"],
    ];
    for command in commands {
        let ran = sandbox.run(&[command, &["--state", "prulin.db"]].concat());
        assert_eq!(ran.one_error(), "error: there is no state file `prulin.db`", "{command:?}");
        assert!(ran.stderr.contains("hint: specify the state file with --state"), "{ran:?}");
    }
    assert!(!sandbox.path("prulin.db").exists());
    sandbox.ok(&["plan", "-f", "app", "-f", "network", "--state", "new.db"]);
}

#[test]
fn the_state_file_is_copied_before_it_changes() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    let copy = sandbox.path("purlin.db.backup");
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(!copy.exists(), "there was nothing to go back to");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(!copy.exists(), "nothing has changed");
    sandbox.objects(&[("a", &[]), ("b", &["a"])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let recorded = |state: &str| {
        sandbox.json(&["state", "list", "--state", state, "-o", "json"])["objects"].as_array().unwrap().len()
    };
    assert_eq!((recorded("purlin.db.backup"), recorded("purlin.db")), (1, 2));
    sandbox.ok(&["state", "rm", "b", "--yes"]);
    assert_eq!((recorded("purlin.db.backup"), recorded("purlin.db")), (2, 1));
    assert!(!sandbox.path("purlin.db.backup.part").exists());
    // Nothing changes without the copy.
    fs::remove_file(&copy).unwrap();
    fs::create_dir(&copy).unwrap();
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(ran.code == Some(1) && (ran.stdout + &ran.stderr).contains("cannot be copied to `purlin.db.backup`"));
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn an_object_whose_manifest_is_still_in_another_source_is_not_moved() {
    let sandbox = two_directories();
    let metadata = "{ name: lan, annotations: { purlin.dev/moved-from: net } }";
    let renamed = manifest("lan", &[]).replace("{ name: lan }", metadata);
    assert!(renamed.contains("moved-from"), "{renamed}");
    sandbox.write("moved/lan.yaml", &renamed);
    let ran = sandbox.run(&["apply", "-f", "moved", "--yes"]);
    assert!(ran.stderr.contains("`net` is still configured by a Resource"), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["app", "net"]);

    // Once the manifest is removed, the object is moved. If it comes back alone, it creates no second object.
    let before = sandbox.json(&["state", "show", "net", "-o", "json"])["objects"][0]["values"]["id"].clone();
    let text = fs::read_to_string(sandbox.path("network/net.yaml")).unwrap();
    sandbox.remove("network/net.yaml");
    sandbox.ok(&["apply", "-f", "moved", "--yes"]);
    assert_eq!(sandbox.recorded(), ["app", "lan"]);
    let after = sandbox.json(&["state", "show", "lan", "-o", "json"])["objects"][0]["values"]["id"].clone();
    assert_eq!(before, after);
    sandbox.write("network/net.yaml", &text);
    let ran = sandbox.run(&["apply", "-f", "network", "--yes"]);
    assert!(ran.stderr.contains("was moved to `lan`, whose manifest is in `moved/lan.yaml`"), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["app", "lan"]);

    // Both sources together say that the name is another object.
    sandbox.ok(&["apply", "-f", "network", "-f", "moved", "--yes"]);
    assert_eq!(sandbox.recorded(), ["app", "lan", "net"]);
}
