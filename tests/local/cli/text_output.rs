//! Text output: hidden characters of names and values are escaped, and failures are reported once, at the end.

use super::sandbox::{Sandbox, manifest};

/// A name with a control of the text direction, and values with a terminal sequence.
const HIDDEN: &str = r#"
apiVersion: purlin.dev/v1alpha1
kind: Resource
metadata: { name: web }
spec:
  type: terraform_data
  forEach: { "a\u202eb": "x\e[2Jy\u009bz" }
  config: { input: "${each.value}" }
---
apiVersion: purlin.dev/v1alpha1
kind: Resource
metadata: { name: app }
spec:
  type: terraform_data
  config: { input: '${web["a\u202eb"].id}' }
"#;

const COMMANDS: &[&[&str]] = &[
    &["plan", "-f", "files", "--color", "always"],
    &["plan", "-f", "files", "--full"],
    &["graph", "-f", "files"],
    &["graph", "-f", "files", "-o", "dot"],
    &["graph", "-f", "files", "-o", "mermaid"],
    &["explain", "web", "-f", "files"],
    &["get", "-f", "files"],
    &["tree", "-f", "files"],
    &["apply", "-f", "files", "--yes"],
    &["state", "list"],
    &["state", "show", "web"],
    &["get"],
    &["tree"],
    &["explain", "web"],
    &["destroy", "--yes"],
];

#[test]
fn hidden_characters_are_escaped_in_every_text() {
    let sandbox = Sandbox::new();
    sandbox.write("files/web.yaml", HIDDEN);
    for command in COMMANDS {
        let ran = sandbox.run(command);
        assert_eq!(ran.code, Some(0), "{command:?}: {ran:?}");
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!text.contains(['\u{202e}', '\u{9b}']) && !text.contains("\u{1b}[2J"), "{command:?}: {text:?}");
        assert!(text.contains("u202e"), "{command:?}: {text:?}");
    }
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let change = plan["changes"].as_array().unwrap().iter().find(|change| change["address"] != "app").unwrap();
    assert_eq!(change["address"], "web[\"a\u{202e}b\"]");
    assert_eq!(change["after"]["input"], "x\u{1b}[2Jy\u{9b}z", "JSON is exact");
}

#[test]
fn errors_escape_what_they_quote() {
    let sandbox = Sandbox::new();
    let resource = manifest("a", &[]).replace("terraform_data", "\"evil\\e[2J\\u202e\"");
    sandbox.write("files/a.yaml", &resource);
    for command in ["plan", "validate"] {
        let ran = sandbox.run(&[command, "-f", "files"]);
        assert!(ran.one_error().contains("evil\\u001b[2J\\u202e"), "{ran:?}");
    }
}

#[test]
fn a_failure_is_reported_once_with_the_objects_that_wait_for_it() {
    let sandbox = Sandbox::new();
    let hook = "  hooks:\n  - { name: check, when: AfterCreate, exec: { command: [sh, -c, 'echo broken; exit 1'] } }\n";
    let dependents: String = ["b", "c", "d"].iter().map(|name| manifest(name, &["a"])).collect();
    sandbox.write("files/objects.yaml", &format!("{}{hook}{dependents}{}", manifest("a", &[]), manifest("e", &["d"])));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    let error = ran.one_error();
    assert!(error.starts_with("error: a: create failed: the hook `check` failed"), "{ran:?}");
    assert!(ran.stderr.ends_with("\n  4 objects wait for this: b, c, d, e\n"), "{ran:?}");
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!((all.matches("broken").count(), all.contains("skipped (")), (1, false), "{all}");
    assert!(ran.stdout.ends_with("Incomplete: 0 created, 0 updated, 0 destroyed, 1 failed, 4 skipped.\n"), "{ran:?}");
}

#[test]
fn errors_follow_the_plan_and_have_one_cause() {
    let sandbox = Sandbox::new();
    let broken = manifest("b", &["a"]).replace("${a.id}", "${absent.id}");
    let dependents: String = ["c", "d"].iter().map(|name| manifest(name, &["b"])).collect();
    sandbox.write("files/objects.yaml", &format!("{}{broken}{dependents}", manifest("a", &[])));
    let apply = &["apply", "-f", "files", "--yes", "--keep-going"];
    for command in [&["plan", "-f", "files"][..], &["validate", "-f", "files"], apply] {
        let ran = sandbox.run(command);
        assert!(ran.one_error().contains("references `absent`, which does not exist"), "{ran:?}");
        assert!(ran.stderr.contains("  2 objects wait for this: c, d\n"), "{ran:?}");
    }
    let ran = sandbox.run(&["plan", "-f", "files"]);
    let headline = "1 object has errors, 2 objects wait for others, nothing else to do.\n";
    assert_eq!(ran.stdout, headline, "{ran:?}");
}
