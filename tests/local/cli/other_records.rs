//! Records of the same manifests in another state file: nothing is created twice.

use std::fs;

use super::sandbox::{CommandResult, Sandbox};

const ONE: &[(&str, &[&str])] = &[("a", &[])];

/// Runs the command of the hint, which starts with `--state`.
fn follow(sandbox: &Sandbox, directory: &str, ran: &CommandResult, arguments: &[&str]) -> CommandResult {
    let hint = ran.stderr.lines().find(|line| line.starts_with("hint:")).unwrap();
    let state = hint.split('`').nth(1).unwrap().strip_prefix("--state ").unwrap();
    sandbox.run_in(directory, &[arguments, &["--state", state]].concat())
}

#[test]
fn the_records_of_a_directory_above_are_found() {
    let sandbox = Sandbox::new();
    sandbox.objects(ONE);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    for command in [&["plan", "-f", "."][..], &["apply", "-f", ".", "--yes"], &["get", "-f", "objects.yaml"]] {
        let ran = sandbox.run_in("files", command);
        let what = "1 object of these files is recorded in `../purlin.db`, and none in `purlin.db`";
        assert!(ran.one_error().contains(what), "{ran:?}");
        assert!(!sandbox.path("files/purlin.db").exists());
    }
    let ran = sandbox.run_in("files", &["plan", "-f", "."]);
    assert!(follow(&sandbox, "files", &ran, &["plan", "-f", "."]).stdout.contains("No changes"), "{ran:?}");
    // The other way of the hint.
    assert_eq!(sandbox.run_in("files", &["apply", "-f", ".", "--yes", "--state", "purlin.db"]).code, Some(0));
    assert_eq!(sandbox.run_in("files", &["plan", "-f", "."]).code, Some(0));
}

#[test]
fn the_records_of_a_given_directory_and_of_one_below_it_are_found() {
    let sandbox = Sandbox::new();
    sandbox.objects(ONE);
    assert_eq!(sandbox.run_in("files", &["apply", "-f", ".", "--yes"]).code, Some(0));
    for given in ["files", ".", "files/objects.yaml"] {
        let ran = sandbox.run(&["apply", "-f", given, "--yes"]);
        let what = "1 object of these files is recorded in `files/purlin.db`, and none in `purlin.db`";
        assert!(ran.one_error().contains(what), "{given}: {ran:?}");
        assert!(follow(&sandbox, "", &ran, &["plan", "-f", given]).stdout.contains("No changes"), "{given}");
    }
    // Other manifests have nothing to do with these records.
    sandbox.write("other/objects.yaml", &super::sandbox::manifest("b", &[]));
    sandbox.ok(&["apply", "-f", "other", "--yes"]);
    // Neither has a state file that is used already.
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(ran.one_error().contains("`files/purlin.db`, and none in `purlin.db`"), "{ran:?}");
}

#[test]
fn a_backup_without_its_state_file_is_found() {
    let sandbox = Sandbox::new();
    sandbox.objects(ONE);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.objects(&[("a", &[]), ("b", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    for file in ["purlin.db", "purlin.db-wal", "purlin.db-shm"] {
        let _ = fs::remove_file(sandbox.path(file));
    }
    for command in
        [&["apply", "-f", "files", "--yes"][..], &["destroy", "--yes"], &["state", "list", "--state", "purlin.db"]]
    {
        let ran = sandbox.run(command);
        let what = "the state file `purlin.db` is missing, but its backup `purlin.db.backup` has 1 record";
        assert!(ran.one_error().contains(what), "{ran:?}");
        assert!(ran.stderr.contains("hint: restore it with `cp purlin.db.backup purlin.db`"), "{ran:?}");
    }
    // The rest of a file that was cut off is no new state file.
    fs::write(sandbox.path("purlin.db"), "").unwrap();
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    let what = "the state file `purlin.db` is empty, but its backup `purlin.db.backup` has 1 record";
    assert!(ran.one_error().contains(what), "{ran:?}");
    fs::remove_file(sandbox.path("purlin.db")).unwrap();
    let backup = fs::read(sandbox.path("purlin.db.backup")).unwrap();
    fs::write(sandbox.path("purlin.db.backup"), &backup[..backup.len() / 2]).unwrap();
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    let what = "the state file `purlin.db` is missing, and its backup cannot be read: ";
    assert!(ran.one_error().contains(what), "{ran:?}");
    fs::write(sandbox.path("purlin.db.backup"), &backup).unwrap();
    fs::copy(sandbox.path("purlin.db.backup"), sandbox.path("purlin.db")).unwrap();
    let out = sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(out.contains("Applied: 1 created, 0 updated, 0 destroyed."), "{out}");
    // An empty state file is not missing: everything was destroyed.
    sandbox.ok(&["destroy", "--yes"]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
}

#[test]
fn in_a_directory_without_records_the_hint_names_those_above() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    for command in [&["get"][..], &["state", "list"], &["destroy", "--yes"]] {
        let ran = sandbox.run_in("files", command);
        assert!(
            ran.stderr.contains("hint: for the records of the directory above, use `--state ../purlin.db`"),
            "{ran:?}"
        );
        let followed = sandbox.run_in("files", &[command, &["--state", "../purlin.db"]].concat());
        assert_eq!(followed.code, Some(0), "{followed:?}");
    }
    assert!(sandbox.recorded().is_empty());
    let named = sandbox.run_in("files", &["get", "-n", "shop"]);
    assert!(!named.stderr.contains("../purlin.db"), "{named:?}");
}
