//! Variables without a value at a terminal.

use super::sandbox::Sandbox;

const MAIN: &str = r#"
variable "region" {
  description = "Where everything is."
}
variable "zones" { type = list(string) }
variable "secret" { sensitive = true }
variable "size" { default = 1 }
resource "terraform_data" "a" {
  input = { region = var.region, zones = var.zones, size = var.size, secret = sha256(var.secret) }
}
output "zone" { value = "${var.region}-${var.zones[1]}" }
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", MAIN);
    sandbox
}

#[test]
fn a_command_asks_for_the_values_of_variables_that_have_none() {
    let sandbox = sandbox();
    let region = ("var.region\r\n  Where everything is.\r\n  Enter a value: ", "eu");
    let secret = ("var.secret\r\n  Enter a value: ", "s3cret");
    let zones = ("var.zones\r\n  Enter a value: ", r#"["a", "b"]"#);
    let applied = sandbox.run_at_terminal(&["apply", "-f", "tf", "--yes"], &[region, secret, zones]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(applied.stdout.ends_with("\nOutputs:\n\nzone = \"eu-b\"\n"), "{applied:?}");
    assert!(!applied.stderr.contains("s3cret"), "a secret is not shown: {applied:?}");

    // A saved plan has the answers.
    let planned =
        sandbox.run_at_terminal(&["plan", "-f", "tf", "-var", "region=us", "-out", "saved"], &[secret, zones]);
    assert_eq!(planned.code, Some(0), "{planned:?}");
    assert!(sandbox.ok(&["apply", "saved"]).ends_with("\nOutputs:\n\nzone = \"us-b\"\n"));
}

#[test]
fn nothing_is_asked_without_a_terminal_or_where_it_is_not_wanted() {
    let sandbox = sandbox();
    let is_refused = |ran: super::sandbox::CommandResult| {
        assert_eq!((ran.code, ran.errors().len()), (Some(1), 3), "{ran:?}");
        assert!(ran.errors()[0].contains("No value for required variable"), "{ran:?}");
    };
    is_refused(sandbox.run(&["plan", "-f", "tf"]));
    is_refused(sandbox.run_at_terminal(&["plan", "-f", "tf", "-input=false"], &[]));
    is_refused(sandbox.run_with(&[("TF_INPUT", "0")], &["plan", "-f", "tf"]));
}
