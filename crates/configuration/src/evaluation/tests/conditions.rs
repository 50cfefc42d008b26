use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Value;
use language::NoFiles;

use super::{Evaluation, Manifest, Memory, Settings, Things, load, run, run_with, text};

#[test]
fn validations_are_checked_and_their_message_is_shown() {
    let main = r#"
        variable "size" {
          type = number
          validation {
            condition     = var.size > var.least
            error_message = "The size ${var.size} is too small."
          }
        }
        variable "least" { default = 3 }
        resource "thing_a" "a" { size = var.size }
        "#;
    let good = run_with(&[("main.tf", main)], &[("size", "4")], &[]);
    assert_eq!((good.errors, good.objects), (vec![], vec!["thing_a.a {size: 4}".to_owned()]));
    let bad = run_with(&[("main.tf", main)], &[("size", "2")], &[]);
    assert_eq!(bad.errors, ["main.tf:5:29: Invalid value for variable: The size 2 is too small."]);
    assert_eq!(bad.objects, [""; 0]);
}

#[test]
fn pre_and_postconditions_are_checked_around_the_object() {
    let run = run(&[(
        "main.tf",
        r#"
        resource "thing_a" "a" {
          name = "x"
          lifecycle {
            precondition {
              condition     = path.module == "x"
              error_message = "Never."
            }
          }
        }
        resource "thing_a" "b" {
          for_each = toset(["x", "y"])
          name     = each.key
          lifecycle {
            postcondition {
              condition     = self.name != "y" && self.id != "1"
              error_message = "Wrong: ${self.name} of ${each.key}."
            }
          }
        }
        "#,
    )]);
    assert_eq!(
        run.errors,
        [
            "main.tf:6:31: Resource precondition failed: Never.",
            "main.tf:16:31: Resource postcondition failed: Wrong: y of y.",
        ]
    );
    assert_eq!(run.objects, [r#"thing_a.b["x"] {name: "x"}"#, r#"thing_a.b["y"] {name: "y"}"#]);
}

#[test]
fn assertions_of_checks_are_warnings() {
    let run = run(&[(
        "main.tf",
        r#"
        check "healthy" {
          data "thing_a" "probe" { name = "p" }
          assert {
            condition     = data.thing_a.probe.name == "q"
            error_message = "The name is ${data.thing_a.probe.name}."
          }
        }
        "#,
    )]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(run.warnings, ["main.tf:5:29: Check block assertion failed: The name is p."]);
    assert_eq!(run.objects, [r#"data.thing_a.probe {name: "p"}"#]);
}

#[test]
fn preconditions_of_outputs_take_their_value_away() {
    let run = run(&[(
        "main.tf",
        r#"
        output "o" {
          value = 1
          precondition {
            condition     = path.module == "x"
            error_message = "No."
          }
        }
        "#,
    )]);
    assert_eq!(run.errors, ["main.tf:5:29: Module output value precondition failed: No."]);
    assert!(run.outputs.is_empty());
}

#[test]
fn provisioners_see_the_object() {
    let main = r#"
        resource "thing_a" "a" {
          name = "x"
          connection { host = self.name }
          provisioner "local-exec" { command = "echo ${self.name}" }
          provisioner "local-exec" {
            when       = destroy
            on_failure = continue
            command    = self.id
          }
        }
        "#;
    let files = [("main.tf".to_owned(), main.to_owned())];
    let (tree, _) = load(".", &Memory(files.into()), &Manifest::default(), &BTreeMap::default());
    let things = Things::new();
    let evaluation = Evaluation::new(Arc::new(tree), Arc::new(things), Settings::new(Arc::new(NoFiles)));
    let object = evaluation.advance().objects.remove(0);
    let this = Value::object([("name", Value::string("x")), ("id", Value::string("1"))]);
    let shown = |on_destroy: bool| {
        let (all, problems) = evaluation.provisioners(&object.address, &this, on_destroy).unwrap();
        assert_eq!(problems.errors.len(), 0);
        let all = all.iter().map(|own| {
            format!("{} {} {}", text(&own.config), text(own.connection.as_ref().unwrap()), own.continue_on_failure)
        });
        all.collect::<Vec<_>>()
    };
    assert_eq!(shown(false), [r#"{command: "echo x"} {host: "x"} false"#]);
    assert_eq!(shown(true), [r#"{command: "1"} {host: "x"} true"#]);
}
