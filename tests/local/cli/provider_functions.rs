//! Functions of providers in Terraform configurations, with the provider `corner`.

use super::sandbox::{CommandResult, Sandbox};
use super::terraform::mirror;
use crate::providers;

const REQUIRED: &str = r#"
terraform {
  required_providers {
    edge = { source = "example.com/purlin/corner", version = "~> 1.2" }
  }
}
variable "secret" {
  default   = "s3cret-word"
  sensitive = true
}
resource "terraform_data" "a" { input = ["x"] }
"#;

struct Bench {
    sandbox: Sandbox,
    flags: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let flags = mirror(&sandbox, &providers::program("corner"));
        let bench = Self { sandbox, flags };
        bench.outputs("");
        let ran = bench.run(&["init"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        bench
    }

    fn outputs(&self, text: &str) {
        self.sandbox.write("tf/main.tf", &format!("{REQUIRED}{text}"));
    }

    fn run(&self, command: &[&str]) -> CommandResult {
        let arguments: Vec<&str> = command.iter().copied().chain(self.flags.iter().map(String::as_str)).collect();
        self.sandbox.run_in("tf", &arguments)
    }

    /// The error of a plan with one output.
    fn error(&self, expression: &str) -> String {
        self.outputs(&format!("output \"o\" {{\n  sensitive = true\n  value = {expression}\n}}\n"));
        let ran = self.run(&["plan"]);
        assert!(!ran.stderr.contains("s3cret"), "{ran:?}");
        ran.one_error().to_owned()
    }
}

#[test]
fn functions_of_providers_are_called_with_their_arguments() {
    let bench = Bench::new();
    bench.outputs(
        r#"
locals { id = terraform_data.a.id }
output "joined" { value = provider::edge::joined("-", ["a", 2, true]...) }
output "kinds" {
  value = [
    provider::edge::kind_of(null),
    provider::edge::kind_of(["x"]),
    provider::edge::kind_of(terraform_data.a.output),
  ]
}
output "later" { value = provider::edge::joined("-", "id", local.id) }
output "hidden" {
  value     = provider::edge::joined("-", var.secret)
  sensitive = true
}
"#,
    );
    let plan = bench.run(&["plan"]).stdout;
    assert!(plan.contains("+ joined = \"a-2-true\""), "{plan}");
    assert!(plan.contains("later") && plan.contains("(known after apply)"), "{plan}");
    let applied = bench.run(&["apply", "--yes"]);
    let (_, outputs) = applied.stdout.split_once("\nOutputs:\n\n").unwrap_or_else(|| panic!("{applied:?}"));
    let (before, later) = outputs.split_once("later = ").unwrap();
    assert_eq!(
        before,
        "hidden = <sensitive>\njoined = \"a-2-true\"\nkinds = [\n  \"null\",\n  \"known\",\n  \"known\",\n]\n"
    );
    assert!(later.starts_with("\"id-") && later.len() > 30, "{later}");
    assert!(!applied.stdout.contains("s3cret"), "{applied:?}");
}

#[test]
fn a_wrong_call_is_an_error_at_its_argument() {
    let bench = Bench::new();
    for (expression, expected) in [
        (
            "provider::edge::joined(\"\", \"a\")",
            "Invalid function argument: In a call of provider::edge::joined: the separator is empty",
        ),
        (
            "provider::edge::joined(\n    \"-\",\n    \"a\",\n    \"\",\n  )",
            "Invalid function argument: In a call of provider::edge::joined: a word is empty",
        ),
        (
            "provider::edge::joined(null)",
            "Invalid function argument: In a call of provider::edge::joined: separator: the argument must not be null",
        ),
        (
            "provider::edge::joined()",
            "Error in function call: Call to function \"provider::edge::joined\" failed: joined takes at least 1 argument, not 0",
        ),
        (
            "provider::edge::refused(var.secret)",
            "Error in function call: Call to function \"provider::edge::refused\" failed: the service does not know (sensitive)",
        ),
        (
            "provider::edge::nothing()",
            "Call to unknown function: There is no function named \"provider::edge::nothing\"",
        ),
        (
            "provider::other::joined()",
            "Error in function call: Call to function \"provider::other::joined\" failed: the module does not require a provider \"other\"",
        ),
    ] {
        let line = if expression.contains("\"\",\n") { 17 } else { 14 };
        assert_eq!(bench.error(expression), format!("error: main.tf:{line}: {expected}"), "{expression}");
    }
}
