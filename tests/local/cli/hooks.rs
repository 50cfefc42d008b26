//! Hooks that are programs, as `docs/hooks.md` shows them and when things go wrong.

use std::fs;
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
fn the_example_of_the_page_runs_both_hooks_in_its_folder() {
    let sandbox = Sandbox::new();
    sandbox.write("files/objects.yaml", &example());
    let out = sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(out.contains("hook `warm-up` ran"), "{out}");
    let log = || fs::read_to_string(sandbox.path("files/log.txt")).unwrap();
    assert_eq!(log(), "v1 is up\n");
    // The manifest is gone, so the record has the hook; without files it runs where we are.
    sandbox.remove("files/objects.yaml");
    let events = sandbox.events(&["destroy", "-f", "files", "--yes", "-o", "json"]);
    assert_eq!(log(), "v1 is up\nv1 drains\n");
    let warning = events.iter().find(|event| event["event"] == "diagnostic" && event["severity"] == "warning");
    let warning = warning.unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!((&warning["address"], &warning["summary"]), (&"server".into(), &"the hook `drain` failed".into()));
    assert_eq!(status(&sandbox, "server"), "none");
}

#[test]
fn a_failed_hook_taints_and_tells_the_end_of_its_output_without_secrets() {
    let sandbox = Sandbox::new();
    let hook = "{ name: check, when: AfterCreate, exec: { command: [sh, -c, 'echo one; echo two >&2; exit 7'] } }";
    sandbox.write("files/objects.yaml", &with_hook("a", "1", hook));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("the hook `check` failed: exit status 7: "), "{ran:?}");
    assert!(ran.stdout.contains("one") && ran.stdout.contains("two"), "{ran:?}");
    assert_eq!(status(&sandbox, "a"), "tainted");
    // Once it works, the object is made anew.
    sandbox.write("files/objects.yaml", &with_hook("a", "1", &hook.replace("exit 7", "exit 0")));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(status(&sandbox, "a"), "ready");
}

#[test]
fn a_hook_that_takes_too_long_is_killed_with_all_it_started() {
    let sandbox = Sandbox::new();
    let hook =
        "{ name: slow, when: AfterCreate, exec: { command: [sh, -c, 'sleep 1000 & echo waiting; sleep 1000'] } }";
    let text = with_hook("a", "1", hook) + "  timeouts: { create: 200ms }\n";
    sandbox.write("files/objects.yaml", &text);
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("it did not end within"), "{ran:?}");
    assert!(ran.stdout.contains("waiting"), "{ran:?}");
    assert_eq!(status(&sandbox, "a"), "tainted");
}

#[test]
fn a_hook_that_a_stop_for_good_has_cut_runs_again_for_the_same_object() {
    let sandbox = Sandbox::new();
    // The first run tells that it is there and waits for ever; the second ends.
    let script = "if [ -e began ]; then echo again >> log.txt; else echo $$ > pid; touch began; sleep 1000; fi";
    let hook = format!("{{ name: once, when: AfterCreate, exec: {{ command: [sh, -c, '{script}'] }} }}");
    sandbox.write("files/objects.yaml", &with_hook("a", "1", &hook));
    let mut started = sandbox.start(&["apply", "-f", "files", "--yes"]);
    started.until("the hook runs", |_| sandbox.path("files/began").exists());
    started.signal("TERM");
    started.until("the first signal is answered", |started| started.err().contains("Stopping"));
    started.signal("TERM");
    started.end();
    let pid = fs::read_to_string(sandbox.path("files/pid")).unwrap();
    // The hook goes with the process that runs it; a signal takes its moment to arrive.
    let alive = || Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status().unwrap().success();
    let begin = Instant::now();
    while alive() {
        assert!(begin.elapsed() < Duration::from_secs(30), "the hook is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = |sandbox: &Sandbox| {
        let state = sandbox.json(&["state", "list", "-o", "json"]);
        state["objects"][0]["values"]["id"].as_str().unwrap().to_owned()
    };
    let made = id(&sandbox);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(fs::read_to_string(sandbox.path("files/log.txt")).unwrap(), "again\n");
    assert_eq!(id(&sandbox), made, "nothing was made twice");
    assert_eq!(status(&sandbox, "a"), "ready");
}

#[test]
fn jobs_are_refused_on_files() {
    let sandbox = Sandbox::new();
    let hook = "{ name: x, when: AfterCreate, job: { template: { spec: { containers: [] } } } }";
    let other =
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: b }\nspec: { type: terraform_data }\n";
    sandbox.write("files/objects.yaml", &(with_hook("a", "1", hook) + other));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = "a: spec.hooks[0].job.template: Jobs are run only in a cluster, by the controller\nhint: use `exec`";
    assert!(ran.stderr.contains(told), "{ran:?}");
    assert_eq!(status(&sandbox, "b"), "ready");
}
