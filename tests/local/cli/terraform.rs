//! Terraform configurations on files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::sandbox::{CommandResult, Sandbox, manifest};
use crate::providers;

fn sandbox(main: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", main);
    sandbox
}

/// Runs a command in the directory of the configuration.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> CommandResult {
    sandbox.run_in("tf", arguments)
}

#[track_caller]
fn ok(sandbox: &Sandbox, arguments: &[&str]) -> CommandResult {
    let ran = run(sandbox, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran
}

fn recorded(sandbox: &Sandbox) -> Vec<String> {
    let ran = ok(sandbox, &["state", "list", "-o", "json"]);
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    list["objects"].as_array().unwrap().iter().map(|object| object["address"].as_str().unwrap().to_owned()).collect()
}

/// The lines that begin with a word.
fn lines<'t>(text: &'t str, begin: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.starts_with(begin)).collect()
}

const UP_TO_DATE: &str = "No changes: every object is up to date.\n";

const MODULES: &str = r#"
variable "prefix" { default = "p" }
locals { names = { for name in ["a", "b"] : name => "${var.prefix}-${name}" } }
resource "terraform_data" "first" { input = var.prefix }
resource "terraform_data" "each" {
  for_each = local.names
  input    = { value = each.value, first = terraform_data.first.output }
}
module "net" {
  source   = "./net"
  for_each = local.names
  name     = terraform_data.each[each.key].output.value
}
resource "terraform_data" "last" {
  count = length(module.net)
  input = [for key, net in module.net : net.name][count.index]
}
output "last" { value = terraform_data.last[*].output }
output "hidden" {
  value     = { for key, own in terraform_data.each : key => own.output.value }
  sensitive = true
}
"#;

const NET: &str = r#"
variable "name" {}
resource "terraform_data" "subnet" {
  count = 2
  input = "${var.name}-${count.index}"
}
output "name" { value = join(",", terraform_data.subnet[*].output) }
"#;

#[test]
fn a_configuration_with_modules_is_planned_applied_and_destroyed() {
    let sandbox = sandbox(MODULES);
    sandbox.write("tf/net/main.tf", NET);
    assert!(ok(&sandbox, &["plan"]).stdout.contains("Plan: 9 to create"), "without -f, the directory is the source");
    let applied = ok(&sandbox, &["apply", "--yes"]).stdout;
    let outputs = "\nOutputs:\n\nhidden = <sensitive>\nlast = [\n  \"p-a-0,p-a-1\",\n  \"p-b-0,p-b-1\",\n]\n";
    assert!(applied.ends_with(&format!("Applied: 9 created, 0 updated, 0 destroyed.\n{outputs}")), "{applied}");
    let objects = [
        "module.net[\"a\"].terraform_data.subnet[0]",
        "module.net[\"a\"].terraform_data.subnet[1]",
        "module.net[\"b\"].terraform_data.subnet[0]",
        "module.net[\"b\"].terraform_data.subnet[1]",
        "terraform_data.each[\"a\"]",
        "terraform_data.each[\"b\"]",
        "terraform_data.first",
        "terraform_data.last[0]",
        "terraform_data.last[1]",
    ];
    assert_eq!(recorded(&sandbox), objects);
    assert_eq!(ok(&sandbox, &["plan"]).stdout, UP_TO_DATE);
    let other = sandbox.run(&["plan", "-f", "tf", "--state", "tf/purlin.db"]);
    assert_eq!((other.code, other.stdout.as_str()), (Some(0), UP_TO_DATE), "the directory can be given");

    sandbox.write("tf/main.tf", &MODULES.replace(r#"["a", "b"]"#, r#"["b"]"#));
    let applied = ok(&sandbox, &["apply", "--yes"]).stdout;
    let destroyed: Vec<&str> = lines(&applied, "").into_iter().filter(|line| line.ends_with(": destroying")).collect();
    let expected = ["terraform_data.last[1]", objects[0], objects[1], "terraform_data.each[\"a\"]"];
    assert_eq!(destroyed, expected.map(|object| format!("{object}: destroying")), "{applied}");
    assert_eq!(ok(&sandbox, &["plan"]).stdout, UP_TO_DATE);

    ok(&sandbox, &["destroy", "--yes"]);
    assert_eq!(recorded(&sandbox), [""; 0]);
}

const PENDING: &str = r#"
variable "size" { type = number }
resource "terraform_data" "first" { input = var.size }
resource "terraform_data" "many" {
  count = terraform_data.first.output
  input = count.index
}
module "net" {
  source   = "./net"
  for_each = toset([for n in range(terraform_data.first.output) : "k${n}"])
  name     = each.value
}
resource "terraform_data" "last" { input = [for key, net in module.net : net.name] }
"#;

#[test]
fn what_waits_for_the_number_of_objects_follows_in_the_next_plan() {
    let sandbox = sandbox(PENDING);
    sandbox.write("tf/net/main.tf", NET);
    let plan = ok(&sandbox, &["plan", "--var", "size=2"]);
    assert!(plan.stdout.contains("Plan: 1 to create"), "{plan:?}");
    assert!(plan.stderr.contains("module.net: its instances are known only after its dependencies are applied"));
    assert!(plan.stderr.contains("terraform_data.many: its instances are known only after"), "{plan:?}");
    let applied = ok(&sandbox, &["apply", "--yes", "--var", "size=2"]);
    assert!(applied.stderr.contains("Planning again"), "{applied:?}");
    assert_eq!(recorded(&sandbox).len(), 8);
    assert_eq!(ok(&sandbox, &["plan", "--var", "size=2"]).stdout, UP_TO_DATE);

    // While the number is not known, nothing of it is given up.
    let plan = ok(&sandbox, &["plan", "--var", "size=1"]);
    assert!(plan.stdout.contains("0 to replace, 0 to destroy"), "{plan:?}");
    assert_eq!(plan.stderr.matches("its instances are known only after").count(), 2, "{plan:?}");
    ok(&sandbox, &["apply", "--yes", "--var", "size=1"]);
    let left = [
        "module.net[\"k0\"].terraform_data.subnet[0]",
        "module.net[\"k0\"].terraform_data.subnet[1]",
        "terraform_data.first",
        "terraform_data.last",
        "terraform_data.many[0]",
    ];
    assert_eq!(recorded(&sandbox), left);
}

const KEYS_OF_A_REPLACED_OBJECT: &str = r#"
variable "v" { default = 1 }
resource "terraform_data" "a" {
  triggers_replace = var.v
  lifecycle { create_before_destroy = false }
}
resource "terraform_data" "e" { for_each = toset([terraform_data.a.id]) }
module "m" {
  source   = "./m"
  for_each = toset([terraform_data.a.id])
  name     = each.key
}
"#;

#[test]
fn objects_whose_keys_come_from_a_replaced_object_follow_it_if_the_new_one_is_created_first() {
    let sandbox = sandbox(KEYS_OF_A_REPLACED_OBJECT);
    sandbox.write("tf/m/main.tf", "variable \"name\" {}\nresource \"terraform_data\" \"in\" { input = var.name }\n");
    ok(&sandbox, &["apply", "--yes"]);
    let before = recorded(&sandbox);
    assert_eq!(before.len(), 3, "{before:?}");
    let plan = run(&sandbox, &["plan", "--var", "v=2"]);
    let waits = "terraform_data.a: in use by `terraform_data.e[\"";
    assert!(plan.one_error().contains(waits) || plan.one_error().contains("in use by `module.m[\""), "{plan:?}");
    let hint = "hint: set `lifecycle { create_before_destroy = true }` so that the new object is created first";
    assert!(plan.stderr.contains(hint), "{plan:?}");

    let main = KEYS_OF_A_REPLACED_OBJECT.replace("create_before_destroy = false", "create_before_destroy = true");
    sandbox.write("tf/main.tf", &main);
    let plan = ok(&sandbox, &["plan", "--var", "v=2"]);
    assert!(plan.stdout.contains("1 to replace, 0 to destroy"), "{plan:?}");
    ok(&sandbox, &["apply", "--yes", "--var", "v=2"]);
    let after = recorded(&sandbox);
    assert_eq!(after.len(), 3, "{after:?}");
    assert!(!after.iter().any(|object| object.contains('[') && before.contains(object)), "{before:?} {after:?}");
    assert_eq!(ok(&sandbox, &["plan", "--var", "v=2"]).stdout, UP_TO_DATE);
}

#[test]
fn hints_are_in_the_words_of_a_configuration() {
    let main = |lifecycle: &str, version: u32| {
        format!("resource \"terraform_data\" \"a\" {{\n  triggers_replace = {version}\n  {lifecycle}\n}}\n")
    };
    let protected = "lifecycle { prevent_destroy = true }";
    let sandbox = sandbox(&main(protected, 1));
    ok(&sandbox, &["apply", "--yes"]);
    let unprotect = "run `purlin state unprotect terraform_data.a`";
    let check = |what: &str, hint: String| {
        let plan = run(&sandbox, &["plan"]);
        assert!(plan.one_error().contains(what) && plan.stderr.contains(&hint), "{plan:?}");
        for word in ["spec.", "manifest", "Resource", "annotation"] {
            assert!(!plan.stderr.contains(word) && !plan.stdout.contains(word), "{word}: {plan:?}");
        }
        plan.stdout
    };
    sandbox.write("tf/main.tf", &main(protected, 2));
    let set = "hint: set `lifecycle { prevent_destroy = false }`, or";
    check(
        "but `prevent_destroy` forbids destroying it",
        format!("{set} {unprotect} to destroy it without its block\n"),
    );
    sandbox.write("tf/main.tf", &main(protected, 2).replace("\"a\"", "\"b\""));
    let moved = check("but `prevent_destroy` forbids it", "hint: restore the block to keep the object; ".to_owned());
    let moved_hint = "keep it with a `moved` block from `terraform_data.a` to `terraform_data.b`.\n";
    assert!(moved.contains(moved_hint), "{moved}");
}

#[test]
fn an_error_of_a_provider_names_the_argument_of_the_block() {
    let sandbox = sandbox(
        r#"
terraform {
  required_providers {
    corner = { source = "example.com/purlin/corner" }
  }
}
provider "corner" { folder = "../world" }
resource "corner_trouble" "bad" { on_create = "error" }
"#,
    );
    std::fs::create_dir(sandbox.path("world")).unwrap();
    let flags = mirror(&sandbox, &providers::program("corner"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let applied = run(&sandbox, &[&["apply", "--yes"], &flags[..]].concat());
    assert_eq!(applied.code, Some(1), "{applied:?}");
    assert!(applied.stderr.contains("on_create: It failed as asked: nothing was done"), "{applied:?}");
    assert!(!applied.stderr.contains("spec.config"), "{applied:?}");
}

#[test]
fn values_of_variables_come_in_terraforms_order() {
    let main = r#"
variable "a" { type = list(string) }
variable "b" {}
variable "c" {}
variable "d" {}
output "all" { value = [var.a, var.b, var.c, var.d] }
resource "terraform_data" "x" {}
"#;
    let sandbox = sandbox(main);
    sandbox.write("tf/terraform.tfvars", "b = \"file\"\nc = \"file\"\nd = \"file\"\n");
    sandbox.write("tf/x.auto.tfvars.json", r#"{"c": "auto", "d": "auto"}"#);
    sandbox.write("tf/my.tfvars", "d = \"given\"\n");
    let variables = [("TF_VAR_a", "[\"environment\"]"), ("TF_VAR_b", "environment"), ("TF_VAR_other", "x")];
    let arguments = ["apply", "--yes", "-f", "tf", "--var-file", "tf/my.tfvars"];
    let ran = sandbox.run_with(&variables, &arguments);
    let expected = "all = [\n  [\n    \"environment\",\n  ],\n  \"file\",\n  \"auto\",\n  \"given\",\n]\n";
    assert!(ran.stdout.ends_with(expected), "{ran:?}");
    let ran = sandbox.run_with(&variables, &[&arguments[..], &["--var", "d=last"]].concat());
    assert!(ran.stdout.ends_with("  \"last\",\n]\n"), "{ran:?}");
    let missing = sandbox.run(&["plan", "-f", "tf"]);
    assert_eq!(
        missing.one_error(),
        "error: tf/main.tf:2: No value for required variable: The variable \"a\" has no default, and no value is assigned to it"
    );
    let unknown = sandbox.run_with(&variables, &["plan", "-f", "tf", "--var", "e=1"]);
    let expected = "error: --var assigns a value to `e`, which the configuration does not declare";
    assert_eq!(unknown.one_error(), expected);
}

#[test]
fn an_error_is_reported_once_at_its_place_and_nothing_is_given_up_beside_it() {
    let sandbox = sandbox("resource \"terraform_data\" \"a\" {}\nresource \"terraform_data\" \"old\" {}\n");
    ok(&sandbox, &["apply", "--yes"]);
    let broken = r#"
locals { second = split("-", "x")[1] }
resource "terraform_data" "a" { input = local.second }
resource "terraform_data" "b" { input = local.second }
resource "terraform_data" "c" { input = terraform_data.b.id }
"#;
    sandbox.write("tf/main.tf", broken);
    let plan = run(&sandbox, &["plan"]);
    assert!(plan.one_error().starts_with("error: main.tf:2: Invalid index"), "{plan:?}");
    let applied = run(&sandbox, &["apply", "--yes", "--keep-going"]);
    assert_eq!(applied.code, Some(1), "{applied:?}");
    assert_eq!(recorded(&sandbox), ["terraform_data.a", "terraform_data.old"], "{applied:?}");

    // An object with an error of its own.
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"a\" {\n  input = tonumber(\"x\")\n}\n");
    let plan = run(&sandbox, &["plan"]);
    assert!(plan.one_error().starts_with("error: main.tf:2: terraform_data.a: Invalid function argument"), "{plan:?}");

    // Files that cannot be read at all.
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"a\" {\n");
    let plan = run(&sandbox, &["apply", "--yes", "--keep-going"]);
    assert_eq!((plan.code, plan.errors().len()), (Some(1), 1), "{plan:?}");
    assert_eq!(recorded(&sandbox).len(), 2);
}

#[test]
fn what_cannot_be_run_is_refused_at_its_place() {
    let block = "resource \"terraform_data\" \"a\" {\n  provisioner \"remote-exec\" {\n    inline = [\"x\"]\n  }\n}\n";
    let expected = "error: main.tf:2: Unsupported provisioner: A provisioner \"remote-exec\" logs in to a machine, which Purlin does not do";
    assert_eq!(run(&sandbox(block), &["plan"]).one_error(), expected);
}

const LIFECYCLE: &str = r#"
variable "v" { default = "1" }
resource "terraform_data" "trigger" { input = var.v }
resource "terraform_data" "whole" {
  lifecycle { replace_triggered_by = [terraform_data.trigger] }
}
resource "terraform_data" "attribute" {
  input = "x"
  lifecycle {
    replace_triggered_by  = [terraform_data.trigger.output]
    create_before_destroy = true
  }
}
resource "terraform_data" "ignored" {
  input = var.v
  lifecycle { ignore_changes = [input] }
}
resource "terraform_data" "kept" {
  triggers_replace = "fixed"
  lifecycle { prevent_destroy = true }
}
resource "terraform_data" "checked" {
  input = var.v
  lifecycle {
    precondition {
      condition     = var.v != "3"
      error_message = "Three is not possible."
    }
    postcondition {
      condition     = self.output != "4"
      error_message = "Four is what came out."
    }
  }
}
"#;

#[test]
fn the_lifecycle_of_objects_is_terraforms() {
    let sandbox = sandbox(LIFECYCLE);
    ok(&sandbox, &["apply", "--yes"]);
    assert_eq!(ok(&sandbox, &["plan"]).stdout, UP_TO_DATE);
    let plan = ok(&sandbox, &["plan", "--var", "v=2"]).stdout;
    let changes = lines(&plan, "  # ");
    assert_eq!(
        changes,
        [
            "  # terraform_data.attribute will be replaced: created, then destroyed (triggered by `terraform_data.trigger.output`)",
            "  # terraform_data.checked will be updated in place",
            "  # terraform_data.trigger will be updated in place",
            "  # terraform_data.whole will be replaced: destroyed, then created (triggered by `terraform_data.trigger`)",
        ]
    );
    ok(&sandbox, &["apply", "--yes", "--var", "v=2"]);
    assert_eq!(ok(&sandbox, &["plan", "--var", "v=2"]).stdout, UP_TO_DATE);

    let refused = run(&sandbox, &["plan", "--var", "v=3"]);
    let expected = "error: main.tf:26: terraform_data.checked: Resource precondition failed: Three is not possible";
    assert_eq!(refused.one_error(), expected);
    let after = run(&sandbox, &["apply", "--yes", "--var", "v=4"]);
    assert_eq!(after.code, Some(1), "{after:?}");
    assert!(after.stderr.contains("Four is what came out"), "{after:?}");

    sandbox.write("tf/main.tf", &LIFECYCLE.replace("\"fixed\"", "\"other\""));
    let prevented = run(&sandbox, &["plan", "--var", "v=2"]);
    assert!(prevented.one_error().contains("terraform_data.kept: the object must be replaced"), "{prevented:?}");
}

#[test]
fn objects_of_another_configuration_in_the_same_records_stay() {
    let sandbox = sandbox("resource \"terraform_data\" \"a\" {}\n");
    sandbox.write("other/main.tf", PENDING);
    sandbox.write("other/net/main.tf", NET);
    sandbox.ok(&["apply", "--yes", "-f", "tf"]);
    sandbox.ok(&["apply", "--yes", "-f", "other", "--var", "size=1"]);
    assert_eq!(sandbox.recorded().len(), 6);
    sandbox.ok(&["destroy", "--yes", "-f", "other"]);
    assert_eq!(sandbox.recorded(), ["terraform_data.a"]);
}

/// A mirror with the provider of the configuration, as an administrator would make one.
pub(super) fn mirror(sandbox: &Sandbox, program: &Path) -> Vec<String> {
    mirror_of(sandbox, "corner", program)
}

/// The same for a provider of this name.
pub(super) fn mirror_of(sandbox: &Sandbox, name: &str, program: &Path) -> Vec<String> {
    let directory = format!("mirror/example.com/purlin/{name}/1.2.3/{}_{}", std::env::consts::OS, architecture());
    let directory = sandbox.path(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::copy(program, directory.join(format!("terraform-provider-{name}_v1.2.3"))).unwrap();
    vec!["--plugin-dir".to_owned(), sandbox.path("mirror").display().to_string()]
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

const PROVIDERS: &str = r#"
terraform {
  required_providers {
    edge   = { source = "example.com/purlin/corner", version = "~> 1.2" }
  }
}
variable "folder" {}
provider "edge" { folder = var.folder }
provider "edge" {
  alias  = "other"
  folder = terraform_data.folder.output
}
resource "terraform_data" "folder" { input = "${var.folder}/." }
resource "corner_thing" "a" {
  provider = edge
  name     = "a"
  tags     = { Owner = "x" }
  names    = ["b", "a"]
  amount   = 1.5
  password = "s3cret"
  any      = { list = [1, "2"], text = "t" }
  many     = [{ key = "k1" }, { key = "k2", value = "v" }]
  dynamic "rule" {
    for_each = ["r1", "r2"]
    content { key = rule.value }
  }
}
data "corner_lookup" "a" {
  provider = edge
  id       = corner_thing.a.id
}
module "inside" {
  source = "./inside"
  providers = { edge = edge.other }
  text      = data.corner_lookup.a.text
}
output "rules" { value = corner_thing.a.rule[*].made }
"#;

const INSIDE: &str = r#"
terraform {
  required_providers {
    edge = { source = "example.com/purlin/corner", version = ">= 1.0" }
  }
}
variable "text" {}
resource "corner_thing" "b" {
  provider = edge
  name     = "b"
  text     = var.text
}
"#;

#[test]
fn objects_of_providers_are_managed_with_their_configurations() {
    let sandbox = sandbox(PROVIDERS);
    sandbox.write("tf/inside/main.tf", INSIDE);
    std::fs::create_dir(sandbox.path("world")).unwrap();
    let mut flags = mirror(&sandbox, &providers::program("corner"));
    flags.extend(["--var".to_owned(), format!("folder={}", sandbox.path("world").display())]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let with =
        |command: &[&'static str]| -> Vec<&str> { command.iter().copied().chain(flags.iter().copied()).collect() };
    ok(&sandbox, &with(&["init"]));
    let applied = ok(&sandbox, &with(&["apply", "--yes"]));
    // The object of the second configuration waits until that is known.
    assert_eq!(lines(&applied.stdout, "Applied: ").len(), 2, "{applied:?}");
    assert!(!applied.stdout.contains("s3cret"), "{applied:?}");
    assert_eq!(ok(&sandbox, &with(&["plan"])).stdout, UP_TO_DATE);
    assert_eq!(recorded(&sandbox), ["corner_thing.a", "module.inside.corner_thing.b", "terraform_data.folder"]);

    sandbox.write(
        "tf/main.tf",
        &PROVIDERS.replace("[\"r1\", \"r2\"]", "[\"r1\"]").replace("Owner = \"x\"", "Owner = \"y\""),
    );
    let plan = ok(&sandbox, &with(&["plan"]));
    assert!(plan.stdout.contains("# corner_thing.a will be updated in place"), "{plan:?}");
    ok(&sandbox, &with(&["apply", "--yes"]));
    assert_eq!(ok(&sandbox, &with(&["plan"])).stdout, UP_TO_DATE);

    sandbox.write("tf/main.tf", &PROVIDERS.replace("amount   = 1.5", "amuont   = 1.5"));
    let wrong = run(&sandbox, &with(&["plan"]));
    assert!(wrong.one_error().starts_with("error: main.tf:19: Unsupported argument"), "{wrong:?}");
    sandbox.write("tf/main.tf", PROVIDERS);
    ok(&sandbox, &with(&["destroy", "--yes"]));
    assert_eq!(recorded(&sandbox), [""; 0]);
}

const READS: &str = r#"
terraform {
  required_providers {
    corner = { source = "example.com/purlin/corner" }
  }
}
variable "folder" {}
variable "owner" { default = "x" }
provider "corner" { folder = var.folder }
resource "corner_thing" "a" {
  name = "a"
  tags = { Owner = var.owner }
}
locals { id = corner_thing.a.id }
data "corner_lookup" "through" { id = local.id }
data "corner_lookup" "named" { id = corner_thing.a.id }
resource "terraform_data" "through" { triggers_replace = data.corner_lookup.through.text }
resource "terraform_data" "named" { input = data.corner_lookup.named.text }
"#;

#[test]
fn data_sources_wait_for_changes_of_what_their_blocks_name() {
    let sandbox = sandbox(READS);
    std::fs::create_dir(sandbox.path("world")).unwrap();
    let mut flags = mirror(&sandbox, &providers::program("corner"));
    flags.extend(["--var".to_owned(), format!("folder={}", sandbox.path("world").display())]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let with =
        |command: &[&'static str]| -> Vec<&str> { command.iter().copied().chain(flags.iter().copied()).collect() };
    ok(&sandbox, &with(&["init"]));
    ok(&sandbox, &with(&["apply", "--yes"]));
    assert_eq!(ok(&sandbox, &with(&["plan"])).stdout, UP_TO_DATE);
    // What a local hands on is known, so it is read, and nothing is replaced.
    let plan = ok(&sandbox, &with(&["plan", "--var", "owner=y"])).stdout;
    let expected = [
        "  # corner_thing.a will be updated in place",
        "  # data.corner_lookup.named will be read during apply (`corner_thing.a` changes first)",
        "  # terraform_data.named will be updated in place",
    ];
    assert_eq!(lines(&plan, "  # "), expected, "{plan}");
}

#[test]
fn moved_blocks_keep_objects() {
    let main = r#"
resource "terraform_data" "a" { count = 2 }
resource "terraform_data" "single" {}
module "old" {
  source = "./net"
  name   = "n"
}
"#;
    let sandbox = sandbox(main);
    sandbox.write("tf/net/main.tf", NET);
    ok(&sandbox, &["apply", "--yes"]);
    let moved = r#"
resource "terraform_data" "b" { for_each = toset(["x", "y"]) }
resource "terraform_data" "many" { count = 1 }
module "new" {
  source   = "./net"
  for_each = toset(["k"])
  name     = "n"
}
moved {
  from = terraform_data.a[0]
  to   = terraform_data.middle["x"]
}
moved {
  from = terraform_data.a[1]
  to   = terraform_data.middle["y"]
}
moved {
  from = terraform_data.middle
  to   = terraform_data.b
}
moved {
  from = terraform_data.single
  to   = terraform_data.many[0]
}
moved {
  from = module.old
  to   = module.new["k"]
}
"#;
    sandbox.write("tf/main.tf", moved);
    let net = NET.replace("\"subnet\"", "\"part\"").replace("terraform_data.subnet", "terraform_data.part");
    let net = format!("{net}moved {{\n  from = terraform_data.subnet\n  to   = terraform_data.part\n}}\n");
    sandbox.write("tf/net/main.tf", &net);
    let plan = ok(&sandbox, &["plan"]);
    assert!(!plan.stdout.contains("to destroy") || plan.stdout.contains("0 to destroy"), "{plan:?}");
    ok(&sandbox, &["apply", "--yes"]);
    let objects = [
        "module.new[\"k\"].terraform_data.part[0]",
        "module.new[\"k\"].terraform_data.part[1]",
        "terraform_data.b[\"x\"]",
        "terraform_data.b[\"y\"]",
        "terraform_data.many[0]",
    ];
    assert_eq!(recorded(&sandbox), objects);
    let history = ok(&sandbox, &["apply", "--yes"]).stdout;
    assert_eq!(history, UP_TO_DATE);
}

#[test]
fn import_blocks_take_over_objects() {
    let main = r#"
resource "terraform_data" "a" {
  for_each = toset(["x", "y"])
}
import {
  for_each = { x = "id-x", y = "id-y" }
  to       = terraform_data.a[each.key]
  id       = each.value
}
output "ids" { value = [for key, a in terraform_data.a : a.id] }
"#;
    let sandbox = sandbox(main);
    let applied = ok(&sandbox, &["apply", "--yes"]);
    assert!(applied.stdout.ends_with("ids = [\n  \"id-x\",\n  \"id-y\",\n]\n"), "{applied:?}");
    let ran = run(&sandbox, &["import", "terraform_data.a", "id"]);
    assert_eq!(ran.one_error(), "error: `purlin import` cannot import into a Terraform configuration yet");
    let wrong = main.replace("each.value", "terraform_data.b.id") + "resource \"terraform_data\" \"b\" {}\n";
    let sandbox = self::sandbox(&wrong);
    let plan = run(&sandbox, &["plan"]);
    assert!(plan.errors()[0].contains("The identifier is not known before other objects are changed"), "{plan:?}");
    assert_eq!(plan.code, Some(1));
}

#[test]
fn a_provider_that_cannot_be_used_is_one_error() {
    let sandbox = sandbox(PROVIDERS);
    sandbox.write("tf/inside/main.tf", INSIDE);
    sandbox.write("broken", "#!/bin/sh\nexit 1\n");
    let executable = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(sandbox.path("broken"), executable(0o755)).unwrap();
    let flags = mirror(&sandbox, &sandbox.path("broken"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    ok(&sandbox, &[&["init"], &flags[..]].concat());
    let package = format!("mirror/example.com/purlin/corner/1.2.3/{}_{}", std::env::consts::OS, architecture());
    let program = sandbox.path(&package).join("terraform-provider-corner_v1.2.3");
    std::fs::set_permissions(program, executable(0o644)).unwrap();
    let plan = run(&sandbox, &[&["plan", "--var", "folder=x"], &flags[..]].concat());
    let expected = "error: main.tf:4: the program of the provider `corner` is not available: ";
    assert!(plan.one_error().starts_with(expected), "{plan:?}");
}

#[test]
fn modules_that_are_not_installed_are_one_error() {
    let sandbox =
        sandbox("module \"a\" {\n  source = \"acme/a/aws\"\n}\nmodule \"b\" {\n  source = \"acme/b/aws\"\n}\n");
    for (directory, arguments, expected, hint) in [
        ("tf", &["validate", "-f", "."][..], "error: main.tf:2: Module not installed", "hint: run `purlin init`\n"),
        ("", &["validate", "-f", "tf"], "error: tf/main.tf:2: Module not", "hint: run `purlin init -f tf`\n"),
    ] {
        let ran = sandbox.run_in(directory, arguments);
        assert!(ran.one_error().starts_with(expected), "{ran:?}");
        assert!(ran.one_error().ends_with("is not installed. The same goes for 1 other module"), "{ran:?}");
        assert!(ran.stderr.contains(hint), "{ran:?}");
    }
    let validate = || run(&sandbox, &["validate", "-f", "."]);
    // A module whose directory is gone is installed again.
    let list = r#"{"Modules":[{"Key":"a","Source":"acme/a/aws","Dir":".terraform/modules/a"}]}"#;
    sandbox.write("tf/.terraform/modules/modules.json", list);
    assert!(validate().one_error().ends_with("1 other module"));
    std::fs::create_dir(sandbox.path("tf/.terraform/modules/a")).unwrap();
    let expected = "error: main.tf:5: Module not installed: The module \"registry.opentofu.org/acme/b/aws\" of module.b is not installed";
    assert_eq!(validate().one_error(), expected);
    sandbox.write("tf/.terraform/modules/modules.json", "{");
    let ran = run(&sandbox, &["plan"]);
    assert!(ran.one_error().starts_with("error: ./.terraform/modules/modules.json: "), "{ran:?}");
}

#[test]
fn plan_and_apply_install_modules_and_providers() {
    let sandbox =
        sandbox(&PROVIDERS.replace("var.folder", "\"../world\"").replace("\"./inside\"", "\"../package//inside\""));
    sandbox.write("package/inside/main.tf", INSIDE);
    std::fs::create_dir(sandbox.path("world")).unwrap();
    let flags = mirror(&sandbox, &providers::program("corner"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let arguments = |command: &'static [&str]| [command, &["--var", "folder=x"], &flags[..]].concat();

    // What cannot be installed is one error, and nothing is planned.
    let ran = run(&sandbox, &["plan", "--var", "folder=x", "--plugin-dir", "../world"]);
    assert!(
        ran.one_error().starts_with("error: the provider example.com/purlin/corner cannot be installed: "),
        "{ran:?}"
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(!sandbox.path("tf/.terraform.lock.hcl").exists());

    let planned = ok(&sandbox, &arguments(&["plan", "-o", "json"]));
    let json: serde_json::Value = serde_json::from_str(&planned.stdout).unwrap();
    assert!(!json["changes"].as_array().unwrap().is_empty(), "{planned:?}");
    assert!(planned.stderr.contains("- Installed example.com/purlin/corner 1.2.3 "), "{planned:?}");
    assert!(sandbox.path("tf/.terraform.lock.hcl").exists());
    assert!(!ok(&sandbox, &arguments(&["plan"])).stderr.contains("Initializing"), "everything is there");

    // A provider that the configuration gets later is installed by the apply.
    std::fs::remove_file(sandbox.path("tf/.terraform.lock.hcl")).unwrap();
    assert!(ok(&sandbox, &arguments(&["apply", "--yes"])).stderr.contains("- Installed example.com/purlin/corner"));
}

#[test]
fn providers_are_those_that_init_has_locked() {
    let sandbox = sandbox(&PROVIDERS.replace("var.folder", "\"../world\""));
    sandbox.write("tf/inside/main.tf", INSIDE);
    std::fs::create_dir(sandbox.path("world")).unwrap();
    let flags = mirror(&sandbox, &providers::program("corner"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let plan = [&["plan", "--var", "folder=x"], &flags[..]].concat();
    let ran = run(&sandbox, &["graph", "-f", "."]);
    let expected = "error: the provider example.com/purlin/corner is not installed: it is not in .terraform.lock.hcl";
    assert_eq!((ran.one_error(), ran.stderr.contains("hint: run `purlin init`\n")), (expected, true), "{ran:?}");
    ok(&sandbox, &[&["init"], &flags[..]].concat());
    ok(&sandbox, &plan);
    let lock = std::fs::read_to_string(sandbox.path("tf/.terraform.lock.hcl")).unwrap();

    // A newer version is not selected.
    let platform = format!("{}_{}", std::env::consts::OS, architecture());
    let packages = sandbox.path("mirror/example.com/purlin/corner");
    std::fs::create_dir_all(packages.join("1.3.0").join(&platform)).unwrap();
    std::fs::write(packages.join("1.3.0").join(&platform).join("terraform-provider-corner"), "other").unwrap();
    ok(&sandbox, &plan);
    assert_eq!(std::fs::read_to_string(sandbox.path("tf/.terraform.lock.hcl")).unwrap(), lock);
    assert!(!sandbox.path("tf/.purlin.lock").exists());

    // What another program has installed is used in place.
    let installed = sandbox.path("tf/.terraform/providers/example.com/purlin/corner");
    std::fs::create_dir_all(&installed).unwrap();
    std::fs::rename(packages.join("1.2.3"), installed.join("1.2.3")).unwrap();
    ok(&sandbox, &["apply", "--yes", "--var", "folder=x"]);

    sandbox.write("tf/inside/main.tf", &INSIDE.replace(">= 1.0", ">= 1.3"));
    let ran = run(&sandbox, &plan);
    assert!(ran.one_error().contains("the lock file has example.com/purlin/corner 1.2.3, which does not"), "{ran:?}");
    assert!(ran.stderr.contains("hint: `purlin init -upgrade` selects versions again\n"), "{ran:?}");
    sandbox.write("tf/inside/main.tf", INSIDE);
    ok(&sandbox, &["destroy", "--yes", "--var", "folder=x"]);
    assert_eq!(recorded(&sandbox), [""; 0]);
}

#[test]
fn objects_of_a_state_of_terraform_are_not_created_again() {
    let sandbox = sandbox("resource \"terraform_data\" \"a\" {}\n");
    let state = r#"{"version": 4, "resources": [{"mode": "managed", "type": "terraform_data", "name": "a"}]}"#;
    sandbox.write("tf/terraform.tfstate", state);
    for command in [&["plan"][..], &["apply", "--yes", "--keep-going"]] {
        let ran = run(&sandbox, command);
        let expected = "error: terraform.tfstate has objects that Purlin has no records of, and would create again";
        assert_eq!(ran.one_error(), expected);
    }
    // The state of what was destroyed, and one beside records.
    sandbox.write("tf/terraform.tfstate", r#"{"version": 4, "resources": []}"#);
    ok(&sandbox, &["apply", "--yes"]);
    sandbox.write("tf/terraform.tfstate", state);
    assert_eq!(ok(&sandbox, &["plan"]).stdout, UP_TO_DATE);
}

#[test]
fn modules_are_selected_as_in_terraform() {
    let sandbox = sandbox(MODULES);
    sandbox.write("tf/net/main.tf", NET);
    let plan = ok(&sandbox, &["plan", "-target=module.net"]).stdout;
    assert!(plan.contains("Plan: 7 to create"), "{plan}");
    let plan = ok(&sandbox, &["plan", "-target", "module.net[\"a\"]", "-var", "prefix=q"]).stdout;
    assert!(plan.contains("Plan: 5 to create") && plan.contains("\"q-a\""), "{plan}");
    ok(&sandbox, &["apply", "-auto-approve", "-no-color", "-input=false"]);
    let plan = ok(&sandbox, &["plan", "-replace=module.net[\"a\"].terraform_data.subnet[0]"]).stdout;
    assert!(plan.contains("# module.net[\"a\"].terraform_data.subnet[0] will be replaced"), "{plan}");
}

#[test]
fn checks_are_warnings_with_the_values_of_the_plan() {
    let main = r#"
resource "terraform_data" "a" { input = "x" }
check "value" {
  assert {
    condition     = terraform_data.a.output == "y"
    error_message = "It is ${terraform_data.a.output}."
  }
}
"#;
    let sandbox = sandbox(main);
    ok(&sandbox, &["apply", "--yes"]);
    let plan = ok(&sandbox, &["plan"]);
    assert!(plan.stderr.contains("warning: main.tf:5: Check block assertion failed: It is x"), "{plan:?}");
}

#[test]
fn manifests_beside_a_configuration_are_neither_left_out_nor_given_up() {
    let sandbox = Sandbox::new();
    sandbox.write("tf/objects.yaml", &manifest("web", &[]));
    sandbox.ok(&["apply", "--yes", "-f", "tf"]);
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"a\" {}\n");
    let both = sandbox.run(&["apply", "--yes", "-f", "tf"]);
    assert_eq!(both.one_error(), "error: `tf/objects.yaml` is a manifest beside a Terraform configuration");
    std::fs::create_dir(sandbox.path("other")).unwrap();
    std::fs::rename(sandbox.path("tf/objects.yaml"), sandbox.path("other/objects.yaml")).unwrap();
    sandbox.ok(&["apply", "--yes", "-f", "tf"]);
    assert_eq!(sandbox.recorded(), ["terraform_data.a", "web"], "the object of the manifest is left unchanged");
    sandbox.ok(&["apply", "--yes", "-f", "tf", "-f", "other"]);
    assert_eq!(sandbox.ok(&["plan", "-f", "tf", "-f", "other"]), UP_TO_DATE);
}

const READ_LATE: &str = r#"
terraform {
  required_providers {
    corner = { source = "example.com/purlin/corner" }
  }
  provider_meta "corner" { module = "late" }
}
variable "folder" {}
provider "corner" { folder = var.folder }
resource "corner_thing" "a" {
  name = "a"
  text = "t"
}
data "corner_lookup" "a" { id = corner_thing.a.id }
output "found" { value = data.corner_lookup.a.text }
"#;

#[test]
fn outputs_have_what_steps_read() {
    let sandbox = sandbox(READ_LATE);
    std::fs::create_dir(sandbox.path("world")).unwrap();
    let mut flags = mirror(&sandbox, &providers::program("corner"));
    flags.extend(["--var".to_owned(), format!("folder={}", sandbox.path("world").display())]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    ok(&sandbox, &[&["init"], &flags[..]].concat());
    let applied = ok(&sandbox, &[&["apply", "--yes"], &flags[..]].concat());
    assert!(applied.stdout.ends_with("\nOutputs:\n\nfound = \"t\"\n"), "{applied:?}");
    sandbox.write("tf/main.tf", &READ_LATE.replace("module = \"late\"", "place = \"late\""));
    let wrong = run(&sandbox, &[&["plan"], &flags[..]].concat());
    assert!(wrong.one_error().starts_with("error: main.tf:6: Unsupported argument"), "{wrong:?}");
}

#[test]
fn absolute_paths_are_short() {
    let main = r#"
output "paths" { value = [basename(abspath(path.root)), basename(abspath("a/../b/."))] }
output "nothing" { value = null }
"#;
    let sandbox = sandbox(main);
    assert!(ok(&sandbox, &["apply", "--yes"]).stdout.ends_with("\nOutputs:\n\npaths = [\n  \"tf\",\n  \"b\",\n]\n"));
}

#[test]
fn what_has_another_result_each_time_is_known_when_changes_are_made() {
    let sandbox = sandbox(
        r#"
        locals { id = uuid() }
        resource "terraform_data" "first" { input = "${timestamp()} ${local.id}" }
        resource "terraform_data" "second" { input = { id = local.id, planned = plantimestamp() } }
        output "is_one" { value = strcontains(terraform_data.first.output, terraform_data.second.output.id) }
        output "is_later" { value = timecmp(timestamp(), terraform_data.second.output.planned) >= 0 }
        "#,
    );
    let planned = ok(&sandbox, &["plan", "--out", "saved"]).stdout;
    assert!(planned.contains("+ input  = (known after apply)"), "{planned}");
    let applied = ok(&sandbox, &["apply", "saved"]).stdout;
    assert!(applied.ends_with("\nOutputs:\n\nis_later = true\nis_one = true\n"), "{applied}");
    assert_eq!(ok(&sandbox, &["output", "is_one"]).stdout, "true\n");
    // As upstream, they are other ones in the next plan.
    assert!(ok(&sandbox, &["plan"]).stdout.contains("2 to update"));
}

/// Most providers read credentials from variables.
#[test]
fn providers_get_the_environment_of_the_command() {
    let main = r#"
        terraform {
          required_providers {
            corner = { source = "example.com/purlin/corner" }
          }
        }
        resource "corner_versioned" "a" { label = "x" }
        "#;
    let sandbox = sandbox(main);
    let flags = mirror(&sandbox, &providers::program("corner"));
    let command: Vec<&str> = ["plan", "-f", "tf"].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let ran = sandbox.run_with(&[("CORNER_SCHEMA", "0")], &command);
    assert!(ran.stdout.contains("Plan: 1 to create"), "{ran:?}");
    // The provider has another schema without the variable.
    assert!(sandbox.run(&command).one_error().contains("label"));
}
