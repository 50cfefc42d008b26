//! `purlin output`.

use super::sandbox::{CommandResult, Sandbox};

const MAIN: &str = r#"
variable "size" { default = 2 }
resource "terraform_data" "a" { input = "value-${var.size}" }
output "text" { value = terraform_data.a.output }
output "list" { value = [var.size, true] }
output "names" { value = toset(["b", "a"]) }
output "secret" {
  value     = { key = "hidden" }
  sensitive = true
}
output "nothing" { value = null }
"#;

fn applied() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", MAIN);
    ok(&sandbox, &["apply", "--yes"]);
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> CommandResult {
    sandbox.run_in("tf", arguments)
}

#[track_caller]
fn ok(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let ran = run(sandbox, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran.stdout
}

#[test]
fn outputs_are_those_of_the_last_apply() {
    let sandbox = applied();
    expect_test::expect![[r#"
        list = [
          2,
          true,
        ]
        names = [
          "a",
          "b",
        ]
        secret = <sensitive>
        text = "value-2"
    "#]]
    .assert_eq(&ok(&sandbox, &["output"]));
    sandbox.write("tf/main.tf", &MAIN.replace("default = 2", "default = 3"));
    assert_eq!(ok(&sandbox, &["output", "-raw", "text"]), "value-2", "nothing is evaluated");
    ok(&sandbox, &["apply", "--yes"]);
    assert_eq!(ok(&sandbox, &["output", "text"]), "\"value-3\"\n");
    let elsewhere = sandbox.run(&["output", "-f", "tf", "--state", "tf/purlin.db", "--raw", "text"]);
    assert_eq!((elsewhere.code, elsewhere.stdout.as_str()), (Some(0), "value-3"));
}

#[test]
fn outputs_as_json_have_their_types() {
    let sandbox = applied();
    let all: serde_json::Value = serde_json::from_str(&ok(&sandbox, &["output", "-json"])).unwrap();
    let expected = serde_json::json!({
        "list": {"sensitive": false, "type": ["tuple", ["number", "bool"]], "value": [2, true]},
        "names": {"sensitive": false, "type": ["set", "string"], "value": ["a", "b"]},
        "secret": {"sensitive": true, "type": ["object", {"key": "string"}], "value": {"key": "hidden"}},
        "text": {"sensitive": false, "type": "string", "value": "value-2"},
    });
    assert_eq!(all, expected);
    assert_eq!(ok(&sandbox, &["output", "-json", "secret"]), "{\"key\":\"hidden\"}\n");
}

#[test]
fn an_output_that_cannot_be_shown_is_an_error() {
    let sandbox = applied();
    let ran = run(&sandbox, &["output", "txt"]);
    assert!(
        ran.one_error().contains("there is no output `txt`") && ran.stderr.contains("did you mean `text`?"),
        "{ran:?}"
    );
    let ran = run(&sandbox, &["output", "-raw", "list"]);
    assert!(ran.one_error().contains("`list` is neither a text, a number nor a boolean"), "{ran:?}");
    ok(&sandbox, &["destroy", "--yes"]);
    let ran = run(&sandbox, &["output"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.contains("No outputs are recorded"), "{ran:?}");
}

#[test]
fn changes_of_outputs_are_shown() {
    let sandbox = applied();
    assert_eq!(ok(&sandbox, &["plan", "-detailed-exitcode"]), "No changes: every object is up to date.\n");
    let changed =
        MAIN.replace(r#"["b", "a"]"#, r#"["b", "c"]"#).replace("hidden", "other").replace("\"list\"", "\"added\"");
    sandbox.write("tf/main.tf", &changed);
    let ran = run(&sandbox, &["plan", "-detailed-exitcode"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    expect_test::expect![[r#"
        Changes to Outputs:
          + added  = [2, true]
          - list   = [2, true]
          ~ names  = [
              - "a"
                "b"
              + "c"
            ]
          ~ secret = (sensitive value)

        No changes: every object is up to date.
    "#]]
    .assert_eq(&ran.stdout);
    let planned: serde_json::Value = serde_json::from_str(&ok(&sandbox, &["plan", "-o", "json"])).unwrap();
    let expected = serde_json::json!([
        {"name": "added", "after": [2, true]},
        {"name": "list", "before": [2, true]},
        {"name": "names", "before": ["a", "b"], "after": ["b", "c"]},
        {"name": "secret", "before": {"sensitive": true}, "after": {"sensitive": true}},
    ]);
    assert_eq!(planned["outputs"], expected);
    ok(&sandbox, &["apply", "--yes"]);
    assert_eq!(ok(&sandbox, &["plan", "-detailed-exitcode"]), "No changes: every object is up to date.\n");
}

#[test]
fn outputs_go_away_with_all_objects() {
    let sandbox = applied();
    let planned = ok(&sandbox, &["plan", "-destroy"]);
    expect_test::expect![[r#"
        Changes to Outputs:
          - list   = [2, true]
          - names  = ["a", "b"]
          - secret = (sensitive value)
          - text   = "value-2"

        Plan: 0 to create, 0 to update, 0 to replace, 1 to destroy.
    "#]]
    .assert_eq(&planned[planned.find("Changes to Outputs").unwrap()..]);
    let planned: serde_json::Value = serde_json::from_str(&ok(&sandbox, &["plan", "-destroy", "-o", "json"])).unwrap();
    let names: Vec<_> =
        planned["outputs"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list", "names", "secret", "text"]);
    ok(&sandbox, &["destroy", "-target", "terraform_data.a", "--yes"]);
    assert_eq!(ok(&sandbox, &["output", "-raw", "text"]), "value-2", "the outputs were not selected");
    assert_eq!(run(&sandbox, &["plan", "-destroy", "-detailed-exitcode"]).code, Some(2), "outputs are left");
    ok(&sandbox, &["plan", "-destroy", "-out", "plan.bin"]);
    ok(&sandbox, &["apply", "plan.bin"]);
    assert!(run(&sandbox, &["output"]).stderr.contains("No outputs are recorded"));
    assert_eq!(run(&sandbox, &["plan", "-destroy", "-detailed-exitcode"]).code, Some(0));
}

#[test]
fn an_output_with_sensitive_parts_is_sensitive_as_a_whole() {
    let sandbox = Sandbox::new();
    let main = r#"
        resource "terraform_data" "a" { input = { open = 1, closed = sensitive("x") } }
        output "parts" {
          value     = [terraform_data.a.input, terraform_data.a.output]
          sensitive = true
        }
        output "stored" { value = terraform_data.a.output.closed }
        "#;
    sandbox.write("tf/main.tf", main);
    ok(&sandbox, &["apply", "--yes"]);
    assert_eq!(ok(&sandbox, &["plan", "-detailed-exitcode"]), "No changes: every object is up to date.\n");
    assert_eq!(ok(&sandbox, &["output", "-raw", "stored"]), "x", "as upstream, only the input is sensitive");
    let planned = ok(&sandbox, &["plan", "-destroy", "-o", "json"]);
    let planned: serde_json::Value = serde_json::from_str(&planned).unwrap();
    let hidden = serde_json::json!({"closed": {"sensitive": true}, "open": 1});
    assert_eq!(planned["changes"][0]["before"]["output"], hidden, "plans still hide it");
    assert_eq!(planned["outputs"][0]["before"], serde_json::json!({"sensitive": true}));
}

#[test]
fn a_saved_plan_of_a_configuration_is_applied() {
    let sandbox = applied();
    let sizes = ["-var", "size=5"];
    ok(&sandbox, &[&["plan", "-out", "plan.bin"], &sizes[..]].concat());
    let applied = ok(&sandbox, &["apply", "plan.bin"]);
    assert!(applied.contains("Applied: 0 created, 1 updated, 0 destroyed."), "{applied}");
    assert_eq!(ok(&sandbox, &["output", "-raw", "text"]), "value-5", "the plan has the values of its variables");
    ok(&sandbox, &["plan", "--out", "plan.bin"]);
    sandbox.write("tf/main.tf", &MAIN.replace("value-", "other-"));
    let ran = run(&sandbox, &["apply", "plan.bin"]);
    assert!(ran.one_error().contains("the files have changed since the plan was saved"), "{ran:?}");
}

#[test]
fn values_of_built_in_objects_keep_the_types_of_their_configuration() {
    let sandbox = Sandbox::new();
    let main = r#"
resource "terraform_data" "a" { input = { names = toset(["x"]), tags = tomap({ k = "v" }) } }
resource "terraform_data" "b" {
  for_each = terraform_data.a.output.names
  input    = each.key
}
output "a" { value = terraform_data.a.output }
"#;
    sandbox.write("tf/main.tf", main);
    for _ in 0..2 {
        ok(&sandbox, &["apply", "--yes"]);
        let all: serde_json::Value = serde_json::from_str(&ok(&sandbox, &["output", "-json"])).unwrap();
        assert_eq!(all["a"]["type"].to_string(), r#"["object",{"names":["set","string"],"tags":["map","string"]}]"#);
    }
}
