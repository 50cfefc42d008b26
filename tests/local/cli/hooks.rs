//! `exec` hooks: the example of `docs/hooks.md`, and failures.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::sandbox::Sandbox;

fn example() -> String {
    let text = fs::read_to_string(format!("{}/docs/hooks.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap().to_owned()
}

fn with_hook(name: &str, input: &str, hook: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
         terraform_data\n  config: {{ input: {input} }}\n  hooks:\n  - {hook}\n"
    )
}

fn status(sandbox: &Sandbox, address: &str) -> String {
    let state = sandbox.json(&["state", "list", "-o", "json"]);
    let objects = state["objects"].as_array().unwrap();
    let found = objects.iter().find(|object| object["address"] == address);
    found.map_or_else(|| "none".to_owned(), |object| object["status"].as_str().unwrap().to_owned())
}

#[test]
fn the_documented_hooks_run_in_the_manifest_directory() {
    let sandbox = Sandbox::new();
    sandbox.write("files/objects.yaml", &example());
    let out = sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(out.contains("hook `warm-up` ran"), "{out}");
    let log = || fs::read_to_string(sandbox.path("files/log.txt")).unwrap();
    assert_eq!(log(), "v1 is up\n");
    // Without the manifest, the hook of the record runs, in the current directory.
    sandbox.remove("files/objects.yaml");
    let events = sandbox.events(&["destroy", "-f", "files", "--yes", "-o", "json"]);
    assert_eq!(log(), "v1 is up\nv1 drains\n");
    let warning = events.iter().find(|event| event["event"] == "diagnostic" && event["severity"] == "warning");
    let warning = warning.unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!((&warning["address"], &warning["summary"]), (&"server".into(), &"the hook `drain` failed".into()));
    assert_eq!(status(&sandbox, "server"), "none");
}

#[test]
fn hooks_run_in_the_same_directory_without_sources() {
    let sandbox = Sandbox::new();
    let hook = "{ name: drain, when: BeforeDestroy, exec: { command: [./drain.sh] } }";
    sandbox.write("files/objects.yaml", &with_hook("a", "1", hook));
    sandbox.write("files/drain.sh", "#!/bin/sh\necho drained > log.txt\n");
    fs::set_permissions(sandbox.path("files/drain.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(fs::read_to_string(sandbox.path("files/log.txt")).unwrap(), "drained\n");
    assert_eq!(status(&sandbox, "a"), "none");
}

#[test]
fn hooks_run_for_a_saved_plan() {
    let sandbox = Sandbox::new();
    let hook = |name: &str, when: &str| {
        format!("{{ name: {name}, when: {when}, exec: {{ command: [sh, -c, 'echo {name} >> log.txt'] }} }}")
    };
    let hooks = format!("{}\n  - {}", hook("warm", "AfterCreate"), hook("drain", "BeforeDestroy"));
    sandbox.write("files/objects.yaml", &with_hook("a", "1", &hooks));
    sandbox.ok(&["plan", "-f", "files", "--out", "saved.plan"]);
    sandbox.ok(&["apply", "saved.plan"]);
    assert_eq!(status(&sandbox, "a"), "ready");
    sandbox.ok(&["plan", "-f", "files", "--destroy", "--out", "saved.plan"]);
    sandbox.ok(&["apply", "saved.plan"]);
    assert_eq!(status(&sandbox, "a"), "none");
    assert_eq!(fs::read_to_string(sandbox.path("files/log.txt")).unwrap(), "warm\ndrain\n");
}

#[test]
fn an_interrupted_destroy_that_is_completed_is_reported() {
    let sandbox = Sandbox::new();
    // The first run creates a file and hangs; the second run ends.
    let script = "if [ -e began ]; then exit 0; fi; echo $$ > pid; touch began; sleep 1000";
    let hook = format!("{{ name: drain, when: BeforeDestroy, exec: {{ command: [sh, -c, '{script}'] }} }}");
    sandbox.write("files/objects.yaml", &with_hook("a", "1", &hook));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let mut started = sandbox.start(&["destroy", "-f", "files", "--yes"]);
    started.wait_until("the hook runs", |_| sandbox.path("files/began").exists());
    started.signal("KILL");
    started.end();
    wait_until_ended(&sandbox, "files/pid");
    // Without manifests, it is still to be destroyed.
    let ran = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(status(&sandbox, "a"), "none");
    let expected = "Recovering 1 operation of an interrupted run.\na: its interrupted destroy is to be resumed\na: its interrupted \
                    destroy is complete\n";
    assert!(ran.stderr.contains(expected), "{ran:?}");
}

#[test]
fn a_failed_hook_taints_the_object_and_reports_its_output() {
    let sandbox = Sandbox::new();
    let hook = "{ name: check, when: AfterCreate, exec: { command: [sh, -c, 'echo one; echo two >&2; exit 7'] } }";
    sandbox.write("files/objects.yaml", &with_hook("a", "1", hook));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("the hook `check` failed: exit status 7: "), "{ran:?}");
    assert!(ran.stderr.contains("one") && ran.stderr.contains("two"), "{ran:?}");
    assert_eq!(status(&sandbox, "a"), "tainted");
    // When the hook succeeds, the object is replaced.
    sandbox.write("files/objects.yaml", &with_hook("a", "1", &hook.replace("exit 7", "exit 0")));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(status(&sandbox, "a"), "ready");
}

#[test]
fn a_hook_that_exceeds_its_time_limit_is_killed_with_its_children() {
    let sandbox = Sandbox::new();
    let hook =
        "{ name: slow, when: AfterCreate, exec: { command: [sh, -c, 'sleep 1000 & echo waiting; sleep 1000'] } }";
    let text = with_hook("a", "1", hook) + "  timeouts: { create: 200ms }\n";
    sandbox.write("files/objects.yaml", &text);
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("it did not finish within"), "{ran:?}");
    assert!(ran.stderr.contains("waiting"), "{ran:?}");
    assert_eq!(status(&sandbox, "a"), "tainted");
}

/// Waits until the process whose id is in a file has ended.
fn wait_until_ended(sandbox: &Sandbox, file: &str) {
    let pid = fs::read_to_string(sandbox.path(file)).unwrap();
    let alive = || Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status().unwrap().success();
    let begin = Instant::now();
    while alive() {
        assert!(begin.elapsed() < Duration::from_secs(30), "the process of {file} is still running");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_hook_ends_with_purlin_whatever_has_ended_it() {
    for signal in ["KILL", "HUP"] {
        let sandbox = Sandbox::new();
        let script = "sleep 1000 & echo $! > child; echo $$ > pid; touch began; wait";
        let hook = format!("{{ name: long, when: AfterCreate, exec: {{ command: [sh, -c, '{script}'] }} }}");
        sandbox.write("files/objects.yaml", &with_hook("a", "1", &hook));
        let mut started = sandbox.start(&["apply", "-f", "files", "--yes"]);
        started.wait_until("the hook runs", |_| sandbox.path("files/began").exists());
        started.signal(signal);
        assert!(!started.end().success());
        ["files/pid", "files/child"].iter().for_each(|file| wait_until_ended(&sandbox, file));
        assert_eq!(status(&sandbox, "a"), "hooks pending");
        assert!(!sandbox.ok(&["tree"]).contains("ready"));
        let row = &sandbox.json(&["get", "-o", "json"])["objects"][0];
        assert_eq!(row["ready"], false, "{row}");
    }
}

#[test]
fn a_time_limit_is_reported_as_it_was_set() {
    let sandbox = Sandbox::new();
    let hook = "{ name: slow, when: AfterCreate, exec: { command: [sleep, '1000'] } }";
    sandbox.write("files/objects.yaml", &(with_hook("a", "1", hook) + "  timeouts: { create: 2s }\n"));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(ran.stderr.contains("it did not finish within 2.0 s and was killed"), "{ran:?}");
}

#[test]
fn a_program_that_does_not_exist_fails_its_hook() {
    let sandbox = Sandbox::new();
    let hook = "{ name: none, when: AfterCreate, exec: { command: [no-such-program] } }";
    sandbox.write("files/objects.yaml", &with_hook("a", "1", hook));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert!(
        ran.stderr.contains("the hook `none` failed: exit status 127: `no-such-program` cannot be started"),
        "{ran:?}"
    );
}

#[test]
fn an_interrupted_hook_runs_again_for_the_same_object() {
    let sandbox = Sandbox::new();
    // The first run creates a file and hangs; the second run ends.
    let script = "if [ -e began ]; then echo again >> log.txt; else echo $$ > pid; touch began; sleep 1000; fi";
    let hook = format!("{{ name: once, when: AfterCreate, exec: {{ command: [sh, -c, '{script}'] }} }}");
    sandbox.write("files/objects.yaml", &with_hook("a", "1", &hook));
    let mut started = sandbox.start(&["apply", "-f", "files", "--yes"]);
    started.wait_until("the hook runs", |_| sandbox.path("files/began").exists());
    started.signal("TERM");
    started.wait_until("the first signal is reported", |started| started.err().contains("Stopping"));
    started.signal("TERM");
    started.end();
    wait_until_ended(&sandbox, "files/pid");
    let id = |sandbox: &Sandbox| {
        let state = sandbox.json(&["state", "list", "-o", "json"]);
        state["objects"][0]["values"]["id"].as_str().unwrap().to_owned()
    };
    let made = id(&sandbox);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(fs::read_to_string(sandbox.path("files/log.txt")).unwrap(), "again\n");
    assert_eq!(id(&sandbox), made, "the object was not created twice");
    assert_eq!(status(&sandbox, "a"), "ready");
}

#[test]
fn job_hooks_are_rejected_for_files() {
    let sandbox = Sandbox::new();
    let hook = "{ name: x, when: AfterCreate, job: { template: { spec: { containers: [] } } } }";
    let other =
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: b }\nspec: { type: terraform_data }\n";
    sandbox.write("files/objects.yaml", &(with_hook("a", "1", hook) + other));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes", "--keep-going"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let expected = "a: spec.hooks[0].job.template: `job` hooks run only in a cluster\nhint: use `exec`";
    assert!(ran.stderr.contains(expected), "{ran:?}");
    assert_eq!(status(&sandbox, "b"), "ready");
}
