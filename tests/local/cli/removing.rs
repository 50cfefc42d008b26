//! `removed` blocks, and `import` blocks whose values come from other objects.

use std::fs;

use super::sandbox::{CommandResult, Sandbox};

fn sandbox(main: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", main);
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> CommandResult {
    sandbox.run_in("tf", arguments)
}

#[track_caller]
fn ok(sandbox: &Sandbox, arguments: &[&str]) -> CommandResult {
    let ran = run(sandbox, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran
}

fn changes(plan: &CommandResult) -> Vec<&str> {
    plan.stdout.lines().filter(|line| line.starts_with("  # ")).collect()
}

const UP_TO_DATE: &str = "No changes: every object is up to date.\n";

const MAIN: &str = r#"
resource "terraform_data" "a" {
  count = 2
  input = count.index
  provisioner "local-exec" {
    when    = destroy
    command = "echo recorded ${self.input} >> log.txt"
  }
}
resource "terraform_data" "b" { input = terraform_data.a[0].id }
module "m" {
  source = "./m"
}
"#;

const M: &str = "resource \"terraform_data\" \"x\" {}\nmodule \"n\" {\n  source = \"./n\"\n}\n";

fn created() -> Sandbox {
    let sandbox = sandbox(MAIN);
    sandbox.write("tf/m/main.tf", M);
    sandbox.write("tf/m/n/main.tf", "resource \"terraform_data\" \"y\" {}\n");
    ok(&sandbox, &["apply", "--yes"]);
    sandbox
}

fn removed(from: &str, rest: &str) -> String {
    format!("removed {{\n  from = {from}\n{rest}}}\n")
}

const FORGET: &str = "  lifecycle {\n    destroy = false\n  }\n";
const DESTROY: &str = "  lifecycle {\n    destroy = true\n  }\n";

#[test]
fn removed_objects_are_forgotten_or_destroyed() {
    let sandbox = created();
    let kept = "resource \"terraform_data\" \"kept\" {}\n";
    let main = [
        kept.to_owned(),
        removed("terraform_data.a", FORGET),
        removed("module.m", DESTROY),
        removed("terraform_data.b", ""),
    ];
    sandbox.write("tf/main.tf", &main.concat());
    let plan = ok(&sandbox, &["plan"]);
    let all = changes(&plan);
    let expected = [
        ("module.m.module.n.terraform_data.y will be destroyed", "removed by a block `removed`"),
        ("module.m.terraform_data.x will be destroyed", "removed by a block `removed`"),
        ("terraform_data.a[0] will be forgotten", "`destroy = false`"),
        ("terraform_data.a[1] will be forgotten", "`destroy = false`"),
        ("terraform_data.b will be forgotten", "`destroy = false`"),
        ("terraform_data.kept will be created", ""),
    ];
    assert_eq!(all.len(), expected.len(), "{plan:?}");
    for (line, (what, why)) in all.iter().zip(expected) {
        assert!(line.contains(what) && line.contains(why), "{line}: {what} {why}");
    }
    assert!(plan.stderr.contains("Missing lifecycle from the removed block"), "{plan:?}");
    ok(&sandbox, &["apply", "--yes"]);
    assert!(!sandbox.path("tf/log.txt").exists(), "what is forgotten is not destroyed");
    assert_eq!(ok(&sandbox, &["plan"]).stdout, UP_TO_DATE);
    assert!(!ok(&sandbox, &["state", "list"]).stdout.contains("terraform_data.a"));
}

#[test]
fn provisioners_of_a_removed_block_run_instead_of_those_of_the_resource() {
    let rest = "resource \"terraform_data\" \"b\" {}\nmodule \"m\" {\n  source = \"./m\"\n}\n";
    let own = "  provisioner \"local-exec\" {\n    when    = destroy\n    command = \"echo own ${self.input} ${count.index} >> log.txt\"\n  }\n";
    for (provisioner, expected) in [(own, "own 0 0\nown 1 1\n"), ("", "recorded 0\nrecorded 1\n")] {
        let sandbox = created();
        sandbox
            .write("tf/main.tf", &format!("{rest}{}", removed("terraform_data.a", &format!("{DESTROY}{provisioner}"))));
        ok(&sandbox, &["apply", "--yes"]);
        let text = fs::read_to_string(sandbox.path("tf/log.txt")).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, expected.lines().collect::<Vec<_>>());
    }
}

#[test]
fn what_is_still_in_the_configuration_cannot_be_removed() {
    let sandbox = created();
    for (block, expected) in [
        (removed("terraform_data.b", FORGET), "Removed resource block still exists"),
        (removed("module.m", FORGET), "Removed module block still exists"),
        (removed("module.m.terraform_data.x", FORGET), "Removed resource block still exists"),
        (removed("terraform_data.a[0]", FORGET), "Invalid \"removed\" address"),
        (
            removed(
                "terraform_data.z",
                &format!("{DESTROY}  provisioner \"local-exec\" {{\n    command = \"x\"\n  }}\n"),
            ),
            "Invalid \"removed.provisioner\" block",
        ),
    ] {
        sandbox.write("tf/main.tf", &format!("{MAIN}{block}"));
        let plan = run(&sandbox, &["plan"]);
        assert!(plan.one_error().contains(expected), "{block}: {plan:?}");
    }
}

const IMPORT: &str = r#"
variable "prefix" { default = "id" }
resource "terraform_data" "names" { input = { x = "1", y = "2" } }
locals { ids = { for key, name in terraform_data.names.output : key => "${var.prefix}-${name}" } }
"#;

const IMPORTS: &str = r#"
resource "terraform_data" "a" { for_each = toset(["x", "y", "new"]) }
resource "terraform_data" "single" {}
import {
  for_each = local.ids
  to       = terraform_data.a[each.key]
  id       = each.value
}
import {
  to = terraform_data.single
  id = "${terraform_data.names.id}-2"
}
output "ids" { value = [for key, a in terraform_data.a : a.id if key != "new"] }
"#;

#[test]
fn imports_take_their_values_from_objects_that_exist() {
    let sandbox = sandbox(&format!("{IMPORT}{IMPORTS}"));
    // Before the other object exists, its values are not known, and nothing is created instead.
    let plan = run(&sandbox, &["plan"]);
    assert_eq!(plan.code, Some(1), "{plan:?}");
    let errors = plan.errors();
    assert_eq!(errors.len(), 2, "{plan:?}");
    assert!(errors[0].contains("The keys of an import have to be known"), "{plan:?}");
    assert!(errors[1].contains("The identifier is not known before other objects are changed"), "{plan:?}");
    let applied = run(&sandbox, &["apply", "--yes", "--keep-going"]);
    let listed = ok(&sandbox, &["state", "list"]).stdout;
    assert!(!listed.contains("terraform_data.a[") && !listed.contains("terraform_data.single"), "{applied:?} {listed}");

    sandbox.write("tf/main.tf", IMPORT);
    ok(&sandbox, &["apply", "--yes"]);
    sandbox.write("tf/main.tf", &format!("{IMPORT}{IMPORTS}"));
    let plan = ok(&sandbox, &["plan"]);
    assert!(plan.stdout.contains("3 to import, 1 to create"), "{plan:?}");
    let applied = ok(&sandbox, &["apply", "--yes"]);
    assert!(applied.stdout.ends_with("ids = [\n  \"id-1\",\n  \"id-2\",\n]\n"), "{applied:?}");
    assert_eq!(ok(&sandbox, &["plan"]).stdout, UP_TO_DATE);
}
