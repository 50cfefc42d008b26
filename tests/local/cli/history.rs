//! `purlin history`.

use serde_json::Value;

use super::sandbox::{Sandbox, manifest};

/// The changes of an object, newest first.
fn changes(sandbox: &Sandbox, address: &str) -> Vec<Value> {
    sandbox.json(&["history", address, "-o", "json"])["changes"].as_array().unwrap().clone()
}

fn fields(change: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| change[*name].clone()).collect()
}

#[test]
fn changes_are_listed_with_their_causes() {
    let sandbox = Sandbox::new();
    sandbox.write("files/web.yaml", &manifest("web", &[]));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.write("files/web.yaml", &manifest("web", &[]).replace("      name: web", "      name: secret-value"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    // A change that changes nothing has no entry.
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.ok(&["state", "taint", "web"]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let found = changes(&sandbox, "web");
    let names = ["action", "replaces", "outcome", "reason"];
    let shown: Vec<_> = found.iter().map(|change| Value::from(fields(change, &names))).collect();
    let expected = serde_json::json!([
        ["create", true, "succeeded", "tainted"],
        ["destroy", true, "succeeded", "tainted"],
        ["update", false, "succeeded", "its spec changed"],
        ["create", false, "succeeded", "it is new"],
    ]);
    assert_eq!(Value::from(shown), expected);
    assert!(found[2]["attributes"].as_array().unwrap().contains(&"input.name".into()), "{:?}", found[2]);
    assert!(found.iter().all(|change| change["operationId"].as_str().unwrap().len() > 8));
    assert!(!Value::from(found).to_string().contains("secret-value"), "a history has no values");
    let text = sandbox.ok(&["history", "web"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("WHEN ") && lines[0].ends_with("WHY"), "{text}");
    assert!(lines[3].contains("   update   ") && lines[3].contains("its spec changed: `input.name`"), "{text}");
}

#[test]
fn a_repeated_failure_is_one_change() {
    let sandbox = Sandbox::new();
    let hook = "  hooks:\n  - name: check\n    when: AfterCreate\n    exec: { command: [sh, -c, \"exit 3\"] }\n";
    sandbox.write("files/web.yaml", &(manifest("web", &[]) + hook));
    for _ in 0..4 {
        assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes"]).code, Some(1));
    }
    let found = changes(&sandbox, "web");
    assert_eq!(fields(&found[0], &["action", "outcome", "count"]), ["create".into(), "failed".into(), Value::from(4)]);
    assert!(found[0]["error"].as_str().unwrap().contains("check"), "{:?}", found[0]);
    assert_ne!(found[0]["began"], found[0]["firstBegan"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(sandbox.ok(&["history", "web"]).contains("failed 4 times since "));
}

#[test]
fn the_history_moves_with_the_record_and_ends_with_it() {
    let sandbox = Sandbox::new();
    sandbox.write("files/web.yaml", &(manifest("web", &[]) + "  count: 2\n"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(changes(&sandbox, "web").len(), 2);
    assert!(sandbox.ok(&["history", "web"]).contains("web[1]"));
    sandbox.ok(&["state", "mv", "web[1]", "other"]);
    assert_eq!(changes(&sandbox, "other").len(), 1);
    let misspelled = sandbox.run(&["history", "othre"]);
    misspelled.one_error();
    assert!(misspelled.stderr.contains("did you mean `other`?"), "{misspelled:?}");
    sandbox.ok(&["state", "rm", "other", "--yes"]);
    sandbox.run(&["history", "other"]).one_error();
}
