//! Provisioners of Terraform configurations.

use std::fs;

use super::sandbox::{CommandResult, Sandbox};

/// A sandbox with a configuration, and what its provisioners write to a file.
struct Bench(Sandbox);

impl Bench {
    fn new(main: &str) -> Self {
        let bench = Self(Sandbox::new());
        bench.write(main);
        bench
    }

    fn write(&self, main: &str) {
        self.0.write("tf/main.tf", main);
    }

    fn run(&self, arguments: &[&str]) -> CommandResult {
        self.0.run_in("tf", arguments)
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> CommandResult {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran
    }

    /// What was written since the last call.
    fn log(&self) -> String {
        let text = fs::read_to_string(self.0.path("tf/log.txt")).unwrap_or_default();
        let _ = fs::remove_file(self.0.path("tf/log.txt"));
        text
    }
}

const UP_TO_DATE: &str = "No changes: every object is up to date.\n";

const MAIN: &str = r#"
variable "word" { default = "w" }
resource "terraform_data" "first" { input = "f" }
resource "terraform_data" "a" {
  for_each = toset(["x", "y"])
  input    = each.key
  triggers_replace = var.word
  provisioner "local-exec" {
    command     = "echo create $WORD ${self.output} ${each.value} ${terraform_data.first.output} >> ../log.txt"
    environment = { WORD = var.word }
    working_dir = "sub"
  }
  provisioner "local-exec" {
    interpreter = ["/bin/sh", "-e", "-c"]
    command     = "echo second $${HOME:+home} >> log.txt"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo destroy ${self.triggers_replace} ${self.input} ${each.key} $${HOME:+home} >> log.txt"
  }
}
"#;

#[test]
fn provisioners_run_after_a_create_and_before_a_destroy() {
    let bench = Bench::new(MAIN);
    bench.0.write("tf/sub/file", "");
    bench.ok(&["apply", "--yes", "--parallelism", "1"]);
    assert_eq!(bench.log(), "create w x x f\nsecond home\ncreate w y y f\nsecond home\n");
    assert_eq!(bench.ok(&["plan"]).stdout, UP_TO_DATE);

    // What the block is now runs for its instances, and what was recorded for one that it has no more.
    bench.write(&MAIN.replace(r#"["x", "y"]"#, r#"["x"]"#).replace("echo destroy", "echo gone"));
    bench.ok(&["apply", "--yes"]);
    assert_eq!(bench.log(), "destroy w y y home\n");
    assert_eq!(bench.ok(&["plan"]).stdout, UP_TO_DATE);

    bench.ok(&["apply", "--yes", "--var", "word=v"]);
    assert_eq!(bench.log(), "gone w x x home\ncreate v x x f\nsecond home\n");

    // Without the block, it is what was recorded.
    bench.write("variable \"word\" { default = \"w\" }\n");
    bench.ok(&["apply", "--yes"]);
    assert_eq!(bench.log(), "gone v x x home\n");
}

const FAILING: &str = r#"
variable "exit" { default = 1 }
variable "secret" {
  default   = "s3cret-word"
  sensitive = true
}
resource "terraform_data" "a" {
  provisioner "local-exec" {
    on_failure = continue
    command    = "echo first >> log.txt; exit 3"
  }
  provisioner "local-exec" {
    command     = "echo second >> log.txt; echo the $SECRET; exit ${var.exit}"
    environment = { SECRET = var.secret }
    quiet       = true
  }
  provisioner "local-exec" { command = "echo third >> log.txt" }
}
resource "terraform_data" "b" { input = terraform_data.a.id }
"#;

#[test]
fn a_failed_provisioner_taints_the_object() {
    let bench = Bench::new(FAILING);
    let failed = bench.run(&["apply", "--yes"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("`local-exec 2` failed: exit status 1: the "), "{failed:?}");
    assert!(!failed.stdout.contains("s3cret") && !failed.stderr.contains("s3cret"), "{failed:?}");
    assert_eq!(bench.log(), "first\nsecond\n");
    let plan = bench.ok(&["plan", "--var", "exit=0"]).stdout;
    assert!(plan.contains("terraform_data.a will be replaced") && plan.contains("tainted"), "{plan}");
    bench.ok(&["apply", "--yes", "--var", "exit=0"]);
    assert_eq!(bench.log(), "first\nsecond\nthird\n");
    assert_eq!(bench.ok(&["plan", "--var", "exit=0"]).stdout, UP_TO_DATE);
}

#[test]
fn a_failed_provisioner_before_a_destroy_keeps_the_object() {
    let main = |arguments: &str| {
        format!(
            "resource \"terraform_data\" \"a\" {{\n  provisioner \"local-exec\" {{\n    when = destroy\n{arguments}  }}\n}}\n"
        )
    };
    let bench = Bench::new(&main("    command = \"exit 1\"\n"));
    bench.ok(&["apply", "--yes"]);
    let failed = bench.run(&["destroy", "--yes"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(bench.ok(&["state", "list"]).stdout.contains("terraform_data.a"));
    bench.write(&main("    command = \"exit 1\"\n    on_failure = continue\n"));
    bench.ok(&["destroy", "--yes"]);
    assert!(!bench.ok(&["state", "list"]).stdout.contains("terraform_data.a"));
}

#[test]
fn provisioners_are_checked_before_anything_is_changed() {
    let block =
        |body: &str| format!("resource \"terraform_data\" \"a\" {{\n  provisioner \"local-exec\" {{\n{body}  }}\n}}\n");
    for (body, expected) in [
        ("    command = \"\"\n", "error: main.tf:2: terraform_data.a: Invalid local-exec provisioner command"),
        ("    command = self.nope\n", "error: main.tf:3: terraform_data.a: Unsupported attribute"),
        ("    cmd = \"x\"\n", "error: main.tf:3: Unsupported argument"),
        (
            "    when = destroy\n    command = terraform_data.b.id\n",
            "error: main.tf:4: Invalid reference from destroy provisioner",
        ),
    ] {
        let plan = Bench::new(&block(body)).run(&["plan"]);
        assert!(plan.stderr.contains(expected), "{body}: {plan:?}");
    }
}
