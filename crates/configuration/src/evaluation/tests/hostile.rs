//! Configurations that would take all time and memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use language::{Budget, NoFiles};

use super::{Evaluation, Manifest, Memory, Settings, Things, load};

/// The errors with small limits.
fn errors(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let (tree, diagnostics) = load(".", &Memory(files), &Manifest::default(), &BTreeMap::new());
    assert_eq!(diagnostics.errors, []);
    let tree = Arc::new(tree);
    let things = Things::new();
    let mut settings = Settings::new(Arc::new(NoFiles));
    settings.budget = Budget::new(100_000, 1 << 20);
    settings.max_instances = 1000;
    let evaluation = Evaluation::new(tree.clone(), Arc::new(things), settings);
    evaluation.advance();
    evaluation.diagnostics().errors.iter().map(|error| tree.sources.line(error)).collect()
}

fn one_error(files: &[(&str, &str)], expected: &str) {
    let errors = errors(files);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with(expected), "{}", errors[0]);
}

#[test]
fn values_that_take_too_long_stop_the_evaluation_once() {
    let bomb = r#"
        locals {
          a = range(1000)
          b = [for x in local.a : [for y in local.a : x + y]]
          c = [for x in local.b : x]
        }
        resource "thing_a" "a" { size = local.c[0][0] }
        resource "thing_a" "b" { size = 1 + 1 }
        output "o" { value = "${1 + 1}" }
        "#;
    one_error(&[("main.tf", bomb)], "main.tf:4:");
}

#[test]
fn there_are_only_so_many_objects() {
    one_error(
        &[("main.tf", "resource \"thing_a\" \"a\" {\n  count = 1001\n}\n")],
        "main.tf:2:11: Invalid count argument",
    );
    let many = "resource \"thing_a\" \"a\" {\n  for_each = toset([for n in range(1001) : tostring(n)])\n}\n";
    one_error(&[("main.tf", many)], "main.tf:2:14: Too many instances");
}

#[test]
fn modules_do_not_multiply_without_end() {
    let call = |next: &str| format!("module \"m\" {{\n  source = \"./{next}\"\n  count = 100\n}}\n");
    let nested = |next: &str| format!("module \"m\" {{\n  source = \"../{next}\"\n  count = 100\n}}\n");
    let (root, a, b) = (call("a"), nested("b"), nested("c"));
    let errors = errors(&[("main.tf", &root), ("a/main.tf", &a), ("b/main.tf", &b), ("c/main.tf", "")]);
    assert!(errors[0].contains("Too many instances: There are more than 1000"), "{errors:?}");
    assert!(errors.len() <= 2, "{errors:?}");
}

#[test]
fn blocks_inside_blocks_are_counted() {
    let text = r#"
        resource "thing_a" "a" {
          dynamic "rule" {
            for_each = range(1000)
            content {
              port = sum([for x in range(1000) : x + rule.value])
            }
          }
        }
        "#;
    one_error(&[("main.tf", text)], "main.tf:6:");
}
