//! `purlin console` and `purlin show` on Terraform configurations, and the outputs of `apply -o json`.

use serde_json::json;

use super::sandbox::{CommandResult, Sandbox};

const MAIN: &str = r#"
variable "region" { default = "eu" }
variable "secret" {
  default   = "s3cret"
  sensitive = true
}
locals { names = toset(["b", "a"]) }
resource "terraform_data" "a" {
  input = { region = var.region, list = ["x"] }
}
module "net" {
  source = "./net"
}
output "region" { value = terraform_data.a.output.region }
output "secret" {
  value     = var.secret
  sensitive = true
}
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", MAIN);
    sandbox.write("tf/net/main.tf", "resource \"terraform_data\" \"n\" {\n  input = \"i\"\n}\noutput \"o\" {\n  value = terraform_data.n.output\n}\n");
    sandbox
}

fn ask(sandbox: &Sandbox, lines: &str) -> CommandResult {
    sandbox.run_with_input(&["console", "-f", "tf"], lines)
}

#[test]
fn expressions_are_evaluated_with_variables_locals_and_records() {
    let sandbox = sandbox();
    let before = ask(&sandbox, "var.region\nterraform_data.a.output\n\nterraform_data.a.input.list\nexit\n\"never\"\n");
    assert_eq!(before.code, Some(0), "{before:?}");
    assert_eq!(before.stdout, "\"eu\"\n(known after apply)\n(known after apply)\n");
    sandbox.ok(&["apply", "--yes", "-f", "tf"]);
    let lines = "terraform_data.a.output\nlocal.names\nmodule.net.o\nvar.secret\n{ for n in local.names : n => [var.secret, null] }\n1 + 1\n\"a\\nb\"\n";
    let expected = r#"{
  "list" = [
    "x",
  ]
  "region" = "eu"
}
toset([
  "a",
  "b",
])
"i"
(sensitive value)
{
  "a" = [
    (sensitive value),
    null,
  ]
  "b" = [
    (sensitive value),
    null,
  ]
}
2
<<EOT
a
b
EOT
"#;
    let after = ask(&sandbox, lines);
    assert_eq!((after.code, after.stdout.as_str()), (Some(0), expected), "{after:?}");
    let given = sandbox.run_with_input(&["console", "-f", "tf", "--var", "region=us"], "var.region\n");
    assert_eq!(given.stdout, "\"us\"\n", "{given:?}");
}

#[test]
fn a_wrong_expression_is_an_error_with_its_line_and_ends_a_script() {
    let sandbox = sandbox();
    for (lines, expected) in [
        ("1\nvar.nothing\n2\n", "error: console:2: Reference to undeclared input variable: "),
        ("1\n\n[1][2]\n2\n", "error: console:3: Invalid index: "),
        ("1\n1 +\n2\n", "error: console:2: "),
        ("1\nnone()\n2\n", "error: console:2: Call to unknown function: There is no function named \"none\""),
    ] {
        let ran = ask(&sandbox, lines);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "1\n"), "{lines}: {ran:?}");
        assert!(ran.one_error().starts_with(expected), "{lines}: {ran:?}");
    }
    let none = sandbox.run_in("files", &["console"]);
    assert!(none.one_error().contains("no files are specified"), "{none:?}");
}

#[test]
fn a_saved_plan_is_shown_as_it_was_printed() {
    let sandbox = sandbox();
    let planned = sandbox.run(&["plan", "-f", "tf", "--out", "saved.plan"]);
    assert_eq!(sandbox.ok(&["show", "saved.plan"]), planned.stdout);
    let planned = sandbox.json(&["plan", "-f", "tf", "-o", "json"]);
    for flags in [["show", "saved.plan", "-json"], ["show", "saved.plan", "-ojson"]] {
        assert_eq!(sandbox.json(&flags), planned);
    }
    assert!(!planned.to_string().contains("s3cret"));
    let none = sandbox.run(&["show", "none.plan"]);
    assert!(none.one_error().starts_with("error: the saved plan `none.plan` cannot be read"), "{none:?}");
}

#[test]
fn the_records_of_a_directory_are_shown_with_their_outputs() {
    let sandbox = sandbox();
    sandbox.ok(&["apply", "--yes", "-f", "tf"]);
    let shown = sandbox.ok(&["show", "-f", "tf"]);
    let one = sandbox.ok(&["state", "show", "module.net.terraform_data.n"]);
    assert!(shown.starts_with(&one), "{shown}");
    assert!(shown.contains("\nterraform_data.a\n"), "{shown}");
    assert!(shown.ends_with("\nOutputs:\n\nregion = \"eu\"\nsecret = <sensitive>\n"), "{shown}");
    assert_eq!(sandbox.json(&["show", "-f", "tf", "-json"]), sandbox.json(&["state", "list", "-o", "json"]));
}

#[test]
fn outputs_follow_the_summary_of_an_apply_as_json() {
    let sandbox = sandbox();
    let events = sandbox.events(&["apply", "--yes", "-f", "tf", "-o", "json"]);
    let [.., summary, outputs] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((&summary["event"], &summary["created"]), (&json!("summary"), &json!(2)));
    let expected = json!({ "event": "outputs", "outputs": {
        "region": { "sensitive": false, "type": "string", "value": "eu" },
        "secret": { "sensitive": true, "type": "string" },
    } });
    assert_eq!(*outputs, expected);
}

#[test]
fn of_variables_and_files_of_variables_the_last_on_the_command_line_counts() {
    let sandbox = sandbox();
    sandbox.write("a.tfvars", "region = \"file\"\n");
    let region = |flags: &[&str]| {
        let arguments = [&["console", "-f", "tf"][..], flags].concat();
        sandbox.run_with_input(&arguments, "var.region\n").stdout
    };
    assert_eq!(region(&["-var", "region=x", "-var-file=a.tfvars"]), "\"file\"\n");
    assert_eq!(region(&["-var-file", "a.tfvars", "-var", "region=x"]), "\"x\"\n");
    assert_eq!(region(&["-var", "region=x", "-var-file", "a.tfvars", "-var", "region=y"]), "\"y\"\n");
    // A saved plan keeps the order.
    let flags = ["plan", "-f", "tf", "-var", "region=x", "-var-file=a.tfvars", "--out", "saved.plan"];
    sandbox.ok(&flags);
    assert!(sandbox.ok(&["apply", "saved.plan"]).contains("region = \"file\""));
}
