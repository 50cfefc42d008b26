//! The last failure of an object, which the state file keeps for `explain` and `get`.

use super::sandbox::Sandbox;

const FAILING: &str = "\
apiVersion: purlin.dev/v1alpha1
kind: Resource
metadata: { name: a }
spec:
  type: terraform_data
  config: { input: 1 }
  hooks: [{ name: check, when: AfterCreate, exec: { command: [sh, -c, 'echo no route; exit 7'] } }]
";

/// `b` cannot be created, and then has no record.
const REFUSED: &str = "\
---
apiVersion: purlin.dev/v1alpha1
kind: Resource
metadata: { name: c }
spec: { type: terraform_data, config: { input: closed } }
---
apiVersion: purlin.dev/v1alpha1
kind: Resource
metadata: { name: b }
spec:
  type: terraform_data
  config: { input: \"${c.output}\" }
  lifecycle: { preconditions: [{ condition: \"${c.output == 'open'}\", errorMessage: \"c is ${c.output}\" }] }
";

#[test]
fn explain_and_get_show_the_last_failure_until_the_object_is_up_to_date() {
    let sandbox = Sandbox::new();
    sandbox.write("files/objects.yaml", FAILING);
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes"]).code, Some(1));
    for files in [&[][..], &["-f", "files"]] {
        let explained = sandbox.ok(&[&["explain", "a"], files].concat());
        let line =
            explained.lines().find(|line| line.starts_with("  Failure:")).unwrap_or_else(|| panic!("{explained}"));
        assert!(line.starts_with("  Failure:     create failed at ") && line.contains("no route"), "{line}");
        assert!(line.contains(" (HookFailed): "), "{line}");
        let row = &sandbox.json(&[&["get", "-o", "json"], files].concat())["objects"][0];
        let message = row["message"].as_str().unwrap();
        assert!(message.contains("; create failed: ") && message.contains("no route"), "{row}");
        assert_eq!(row["ready"], false, "{row}");
    }
    sandbox.write("files/objects.yaml", &FAILING.replace("exit 7", "exit 0"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(!sandbox.ok(&["explain", "a"]).contains("Failure"));
    assert_eq!(sandbox.json(&["get", "-o", "json"])["objects"][0]["message"], "");
}

#[test]
fn an_object_that_could_not_be_created_has_its_failure_without_a_record() {
    let sandbox = Sandbox::new();
    sandbox.write("files/objects.yaml", REFUSED);
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes"]).code, Some(1));
    assert_eq!(sandbox.recorded(), ["c"]);
    let explained = sandbox.ok(&["explain", "b"]);
    assert!(explained.contains("not created yet") && explained.contains("c is closed"), "{explained}");
    let rows = sandbox.json(&["get", "-o", "json"]);
    let row = &rows["objects"][0];
    assert_eq!((&row["address"], &row["type"]), (&"b".into(), &"terraform_data".into()));
    assert_eq!((&row["ready"], &row["reason"]), (&false.into(), &"PreconditionFailed".into()));
    let message = sandbox.json(&["get", "-f", "files", "-o", "json"])["objects"][0]["message"].clone();
    assert_eq!(message.as_str().unwrap().matches("c is closed").count(), 1, "{message}");
    // Nothing is known about an object without a manifest and a record.
    sandbox.write("files/objects.yaml", REFUSED.rsplit_once("---").unwrap().0);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.run(&["explain", "b"]).one_error();
}

#[test]
fn an_object_that_is_up_to_date_again_has_no_failure() {
    let sandbox = Sandbox::new();
    let hook = "hooks: [{ name: check, when: BeforeDestroy, exec: { command: [sh, -c, 'exit 7'] } }]";
    let with_trigger = |trigger: &str| {
        format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: a }}\nspec:\n  type: terraform_data\n  \
             config: {{ triggers_replace: {trigger} }}\n  {hook}\n"
        )
    };
    sandbox.write("files/objects.yaml", &with_trigger("1"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.write("files/objects.yaml", &with_trigger("2"));
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes"]).code, Some(1));
    assert!(sandbox.ok(&["explain", "a"]).contains("  Failure:     destroy failed at "));
    sandbox.write("files/objects.yaml", &with_trigger("1"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert!(!sandbox.ok(&["explain", "a"]).contains("Failure"));
}

#[test]
fn dev_keeps_the_last_failure() {
    let sandbox = Sandbox::new();
    sandbox.write("files/objects.yaml", FAILING);
    let mut dev = sandbox.start(&["dev", "-f", "files"]);
    dev.wait_until("the failure is kept", |_| {
        sandbox.path("purlin.db").exists() && sandbox.run(&["explain", "a"]).stdout.contains("no route")
    });
    dev.signal("INT");
    dev.end();
}
