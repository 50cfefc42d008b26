//! `purlin dev`: follows edits of a directory.

use super::provider_sandbox::ProviderSandbox;
use super::sandbox::{RunningCommand, Sandbox, manifest};

fn dev(sandbox: &Sandbox, objects: &[&str]) -> RunningCommand {
    let mut dev = sandbox.start(&["dev", "-f", "files"]);
    dev.wait_until("the first objects are created", |_| {
        sandbox.path("purlin.db").exists() && sandbox.recorded() == objects
    });
    dev
}

#[test]
fn edits_are_applied() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[])]);
    let mut dev = dev(&sandbox, &["a"]);
    sandbox.write("files/more.yaml", &manifest("b", &["a"]));
    dev.wait_until("b is created", |_| sandbox.recorded() == ["a", "b"]);
    sandbox.remove("files/more.yaml");
    dev.wait_until("b is destroyed", |_| sandbox.recorded() == ["a"]);
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
}

#[test]
fn a_protected_orphan_prints_hints() {
    let sandbox = Sandbox::new();
    let protected = manifest("a", &[]).replace("spec:", "spec:\n  lifecycle: { preventDestroy: true }");
    sandbox.write("files/a.yaml", &protected);
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    let mut dev = dev(&sandbox, &["a", "b"]);
    let output = |dev: &RunningCommand| dev.out() + &dev.err();
    sandbox.remove("files/a.yaml");
    dev.wait_until("the hints are printed", |dev| {
        let printed = output(dev);
        printed.contains("hint: restore the manifest to keep the object")
            && printed.contains("purlin state unprotect a")
    });
    dev.wait_until("it is idle", |dev| output(dev).contains("until the errors above are fixed. Watching for changes."));
    let refused = sandbox.run(&["state", "unprotect", "a"]);
    assert!(refused.stderr.contains("stop `purlin dev` with Ctrl-C"), "{}", refused.stderr);
    sandbox.write("files/a.yaml", &protected);
    dev.wait_until("it is kept", |dev| {
        output(dev).matches("All objects are up to date. Watching for changes.").count() == 2
    });
    assert_eq!(sandbox.recorded(), ["a", "b"]);
}

#[test]
fn reads_without_drift_print_nothing() {
    let bench = ProviderSandbox::new("corner");
    std::fs::write(bench.sandbox.path("world/release"), "").unwrap();
    bench.resources(&[("a", "type: corner_trouble, config: { on_read: slow }, drift: { interval: 1s }")]);
    let mut dev = dev(&bench.sandbox, &["a"]);
    // Each read leaves a marker file.
    let read = |_: &RunningCommand| std::fs::remove_file(bench.sandbox.path("world/started")).is_ok();
    for _ in 0..4 {
        dev.wait_until("it is read", read);
    }
    let output = dev.out() + &dev.err();
    assert_eq!(output.matches("All objects are up to date. Watching for changes.").count(), 1, "{output}");
}

#[test]
fn nothing_is_destroyed_while_a_file_cannot_be_read() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    sandbox.write("files/b.yaml", &manifest("b", &[]));
    let mut dev = dev(&sandbox, &["a", "b"]);
    sandbox.write("files/b.yaml", "not: [closed\n");
    dev.wait_until("the file is reported", |dev| dev.err().contains("files/b.yaml"));
    // Another edit shows that the loop continues: c is created after the decision about b.
    sandbox.write("files/c.yaml", &manifest("c", &[]));
    dev.wait_until("c is created", |_| sandbox.recorded() == ["a", "b", "c"]);
    sandbox.remove("files/b.yaml");
    dev.wait_until("b is destroyed", |_| sandbox.recorded() == ["a", "c"]);
}

/// A Terraform configuration with a file, a module beside it, and keys that are known only when other objects are there.
const CONFIGURATION: &str = r#"
variable "n" { default = 1 }
resource "terraform_data" "base" { input = file("${path.module}/base.txt") }
resource "terraform_data" "many" {
  count = var.n
  input = "${terraform_data.base.output}-${count.index}"
}
resource "terraform_data" "later" {
  for_each = toset(terraform_data.many[*].output)
  input    = each.key
}
module "inner" {
  source = "../inner"
  from   = terraform_data.base.id
}
"#;

/// The objects of the configuration.
const OBJECTS: [&str; 4] =
    ["module.inner.terraform_data.a", "terraform_data.base", "terraform_data.later[\"x-0\"]", "terraform_data.many[0]"];

const INNER: &str = "variable \"from\" {}\nresource \"terraform_data\" \"a\" { input = var.from }\n";

fn configuration() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", CONFIGURATION);
    sandbox.write("tf/base.txt", "x");
    sandbox.write("inner/main.tf", INNER);
    sandbox
}

fn wait_recorded(sandbox: &Sandbox, dev: &mut RunningCommand, objects: &[&str]) {
    dev.wait_until(&format!("the objects are {objects:?}"), |_| {
        sandbox.path("purlin.db").exists() && sandbox.recorded() == objects
    });
}

#[test]
fn a_terraform_configuration_is_followed_with_all_its_files() {
    let sandbox = configuration();
    let mut dev = sandbox.start(&["dev", "-f", "tf"]);
    let [inner, other] = ["module.inner.terraform_data.a", "module.inner.terraform_data.b"];
    let [base, first, second] = ["terraform_data.base", "terraform_data.many[0]", "terraform_data.many[1]"];
    let later = |key: &str| format!("terraform_data.later[\"{key}\"]");
    wait_recorded(&sandbox, &mut dev, &[inner, base, &later("x-0"), first]);

    sandbox.write("tf/main.tf", &CONFIGURATION.replace("default = 1", "default = 2"));
    wait_recorded(&sandbox, &mut dev, &[inner, base, &later("x-0"), &later("x-1"), first, second]);
    sandbox.write("tf/base.txt", "y");
    wait_recorded(&sandbox, &mut dev, &[inner, base, &later("y-0"), &later("y-1"), first, second]);
    sandbox.write("inner/main.tf", &(INNER.to_owned() + "resource \"terraform_data\" \"b\" {}\n"));
    wait_recorded(&sandbox, &mut dev, &[inner, other, base, &later("y-0"), &later("y-1"), first, second]);
    dev.wait_until("it is idle", |dev| dev.out().ends_with("All objects are up to date. Watching for changes.\n"));
    assert!(!dev.err().contains("run apply again"), "it goes on by itself: {}", dev.err());
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
    assert!(sandbox.ok(&["plan", "-f", "tf"]).contains("No changes"));
}

#[test]
fn an_error_in_a_terraform_configuration_changes_nothing() {
    let sandbox = configuration();
    let mut dev = sandbox.start(&["dev", "-f", "tf"]);
    let [inner, base, later, many] = OBJECTS;
    wait_recorded(&sandbox, &mut dev, &[inner, base, later, many]);

    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"base\" {\n");
    dev.wait_until("the error is printed", |dev| dev.err().contains("tf/main.tf:1: Unclosed configuration block"));
    // What Terraform would refuse only when it evaluates it is no reason to destroy anything either.
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"base\" {\n  count = tonumber(\"x\")\n}\n");
    dev.wait_until("the error is printed", |dev| dev.err().contains("tf/main.tf:2:"));
    sandbox.write("tf/more.tf", "resource \"terraform_data\" \"more\" {}\n");
    wait_recorded(&sandbox, &mut dev, &[inner, base, later, many, "terraform_data.more"]);
    let without_module = CONFIGURATION.split("module \"inner\"").next().unwrap();
    sandbox.write("tf/main.tf", without_module);
    wait_recorded(&sandbox, &mut dev, &[base, later, many, "terraform_data.more"]);
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
}

#[test]
fn the_objects_of_another_terraform_configuration_are_left_as_they_are() {
    let sandbox = configuration();
    sandbox.write("other/main.tf", "resource \"terraform_data\" \"other\" {}\n");
    sandbox.ok(&["apply", "-f", "other", "--yes"]);
    let mut dev = sandbox.start(&["dev", "-f", "tf"]);
    let [inner, base, later, many] = OBJECTS;
    wait_recorded(&sandbox, &mut dev, &[inner, base, later, many, "terraform_data.other"]);
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"base\" {}\n");
    wait_recorded(&sandbox, &mut dev, &[base, "terraform_data.other"]);
    dev.wait_until("it is idle", |dev| dev.out().ends_with("All objects are up to date. Watching for changes.\n"));
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
    assert!(sandbox.ok(&["plan", "-f", "other"]).contains("No changes"));
}

#[test]
fn what_a_directory_no_longer_says_is_left_as_it_is() {
    let sandbox = Sandbox::new();
    sandbox
        .write("tf/main.tf", "resource \"terraform_data\" \"a\" {}\nresource \"terraform_data\" \"b\" { count = 1 }\n");
    let mut dev = sandbox.start(&["dev", "-f", "tf"]);
    let objects = ["terraform_data.a", "terraform_data.b[0]"];
    wait_recorded(&sandbox, &mut dev, &objects);
    let ids = |sandbox: &Sandbox| objects.map(|object| sandbox.ok(&["state", "show", object]));
    let before = ids(&sandbox);
    let main = std::fs::read_to_string(sandbox.path("tf/main.tf")).unwrap();
    sandbox.remove("tf/main.tf");
    let idle = "All objects are up to date. Watching for changes.\n";
    dev.wait_until("it is idle", |dev| dev.err().contains("left unchanged") && dev.out().matches(idle).count() == 2);
    sandbox.write("tf/other.tf", &(main + "resource \"terraform_data\" \"c\" {}\n"));
    wait_recorded(&sandbox, &mut dev, &[objects[0], objects[1], "terraform_data.c"]);
    assert_eq!(ids(&sandbox), before);
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
}

#[test]
fn manifests_leave_the_objects_of_a_terraform_configuration_as_they_are() {
    let sandbox = configuration();
    sandbox.ok(&["apply", "-f", "tf", "--yes"]);
    sandbox.ok(&["apply", "-f", "tf", "--yes"]);
    sandbox.objects(&[("a", &[])]);
    let mut dev = sandbox.start(&["dev", "-f", "files"]);
    let [inner, base, later, many] = OBJECTS;
    wait_recorded(&sandbox, &mut dev, &[inner, base, later, many, "a"]);
    sandbox.remove("files/objects.yaml");
    sandbox.objects(&[("b", &[])]);
    wait_recorded(&sandbox, &mut dev, &[inner, base, later, many, "b"]);
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
    assert!(sandbox.ok(&["plan", "-f", "tf"]).contains("No changes"));
}

#[test]
fn a_directory_that_was_empty_gets_a_terraform_configuration() {
    let sandbox = Sandbox::new();
    sandbox.write("tf/.keep", "");
    let mut dev = sandbox.start(&["dev", "-f", "tf"]);
    dev.wait_until("it is idle", |dev| dev.out().ends_with("Watching for changes.\n"));
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"a\" {}\n");
    wait_recorded(&sandbox, &mut dev, &["terraform_data.a"]);
    // What no function reads is no change.
    sandbox.write("tf/log.txt", "x");
    sandbox.write("tf/more.tf", "resource \"terraform_data\" \"b\" {}\n");
    wait_recorded(&sandbox, &mut dev, &["terraform_data.a", "terraform_data.b"]);
}

/// Checks that the object whose key comes from another one gets its new key when that one is replaced.
fn check_follows(file: &str, text: impl Fn(u32) -> String) {
    let sandbox = Sandbox::new();
    sandbox.write(file, &text(1));
    let directory = file.split('/').next().unwrap();
    let mut dev = sandbox.start(&["dev", "-f", directory]);
    dev.wait_until("both exist", |_| sandbox.recorded().len() == 2);
    let before = sandbox.recorded();
    sandbox.write(file, &text(2));
    dev.wait_until("it has the new key", |_| {
        let now = sandbox.recorded();
        now.len() == 2 && now != before
    });
    assert!(!dev.err().contains("error:"), "{}", dev.err());
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
    assert!(sandbox.ok(&["plan", "-f", directory]).contains("No changes"));
}

#[test]
fn blocks_whose_keys_come_from_a_replaced_object_follow_it() {
    check_follows("tf/main.tf", |version| {
        let lifecycle = "lifecycle { create_before_destroy = true }";
        format!(
            "resource \"terraform_data\" \"a\" {{\n  triggers_replace = {version}\n  {lifecycle}\n}}\n\
             resource \"terraform_data\" \"e\" {{\n  for_each = toset([terraform_data.a.id])\n}}\n"
        )
    });
}

#[test]
fn resources_whose_keys_come_from_a_replaced_object_follow_it() {
    check_follows("files/a.yaml", |version| {
        let lifecycle = "  lifecycle: { createBeforeDestroy: true }\n";
        let replaced = manifest("a", &[]).replace("spec:\n", &format!("spec:\n{lifecycle}"));
        let replaced = replaced.replace("config:\n", &format!("config:\n    triggers_replace: {version}\n"));
        replaced + &manifest("e", &[]).replace("spec:\n", "spec:\n  forEach: \"${[a.id]}\"\n")
    });
}

#[test]
fn outputs_are_recorded_when_their_objects_are_applied() {
    let sandbox = Sandbox::new();
    let main = |value: &str| {
        format!(
            "resource \"terraform_data\" \"a\" {{ input = \"{value}\" }}\noutput \"o\" {{ value = terraform_data.a.output }}\n"
        )
    };
    sandbox.write("tf/main.tf", &(main("x") + "output \"old\" { value = 1 }\n"));
    let mut dev = sandbox.start(&["dev", "-f", "tf"]);
    dev.wait_until("the outputs are printed", |dev| dev.out().contains("Output o = \"x\"\nOutput old = 1\n"));
    sandbox.write("tf/main.tf", &main("y"));
    dev.wait_until("what differs is printed", |dev| dev.out().contains("Output o = \"y\"\nOutput old is removed\n"));
    dev.signal("INT");
    assert_eq!(dev.end().code(), Some(0));
    assert!(sandbox.ok(&["plan", "-f", "tf"]).contains("No changes"));
}

#[test]
fn objects_are_not_called_up_to_date_after_a_failed_step() {
    let bench = ProviderSandbox::new("corner");
    bench.resources(&[("bad", "type: corner_trouble, config: { on_create: error }")]);
    let mut dev = bench.sandbox.start(&["dev", "-f", "files"]);
    let (failed, up_to_date) = ("Some changes have failed.", "All objects are up to date.");
    dev.wait_until("it says so", |dev| dev.out().contains(failed));
    assert!(!dev.out().contains(up_to_date), "{}", dev.out());
    bench.resources(&[("bad", "type: corner_trouble, config: {}")]);
    dev.wait_until("the object is created", |dev| dev.out().contains(up_to_date));
    assert_eq!(bench.sandbox.recorded(), ["bad"]);
}

#[test]
fn a_move_is_printed() {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"a\" {}\n");
    let mut dev = sandbox.start(&["dev", "-f", "tf"]);
    wait_recorded(&sandbox, &mut dev, &["terraform_data.a"]);
    let moved = "moved {\n  from = terraform_data.a\n  to   = terraform_data.b\n}\n";
    sandbox.write("tf/main.tf", &format!("resource \"terraform_data\" \"b\" {{}}\n{moved}"));
    dev.wait_until("the move is printed", |dev| {
        dev.out().contains("terraform_data.b: moved from `terraform_data.a`\n")
    });
    wait_recorded(&sandbox, &mut dev, &["terraform_data.b"]);
}
