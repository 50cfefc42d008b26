use super::{run, run_with, uses};

#[test]
fn references_are_computed_before_what_uses_them() {
    let run = run(&[(
        "main.tf",
        r#"
        output "id" { value = thing_a.second.id }
        resource "thing_a" "second" { name = "${local.name}-2" }
        locals { name = thing_a.first.name }
        resource "thing_a" "first" { name = "x" }
        "#,
    )]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(run.objects, [r#"thing_a.first {name: "x"}"#, r#"thing_a.second {name: "x-2"}"#]);
    assert_eq!(uses(&run, "thing_a.second"), ["thing_a.first"]);
    assert_eq!(run.outputs["id"], "?");
}

#[test]
fn blocks_are_repeated_by_count_and_for_each_and_enabled() {
    let run = run(&[(
        "main.tf",
        r#"
        resource "thing_a" "c" {
          count = 2
          name  = "n${count.index}"
        }
        resource "thing_a" "f" {
          for_each = { a = 1, b = 2 }
          name     = each.key
          size     = each.value
        }
        resource "thing_a" "s" {
          for_each = toset(["y", "x"])
          name     = each.value
        }
        resource "thing_a" "off" {
          lifecycle { enabled = false }
        }
        resource "thing_a" "all" {
          name = join(",", thing_a.c[*].name)
          size = length(thing_a.f) + thing_a.f["b"].size
          tags = { off = thing_a.off == null, last = thing_a.c[1].name }
        }
        "#,
    )]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(
        run.objects,
        [
            r#"thing_a.c[0] {name: "n0"}"#,
            r#"thing_a.c[1] {name: "n1"}"#,
            r#"thing_a.f["a"] {name: "a", size: 1}"#,
            r#"thing_a.f["b"] {name: "b", size: 2}"#,
            r#"thing_a.s["x"] {name: "x"}"#,
            r#"thing_a.s["y"] {name: "y"}"#,
            r#"thing_a.all {name: "n0,n1", size: 4, tags: {last: "n1", off: "true"}}"#,
        ]
    );
    assert_eq!(
        uses(&run, "thing_a.all"),
        ["thing_a.c", "thing_a.c[1]", "thing_a.f", r#"thing_a.f["b"]"#, "thing_a.off"]
    );
}

#[test]
fn one_instance_of_a_block_may_use_another() {
    let run = run(&[(
        "main.tf",
        r#"
        resource "thing_a" "a" {
          count = 1
          name  = "x"
        }
        resource "thing_a" "b" {
          name = thing_a.a[0].name
        }
        "#,
    )]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(uses(&run, "thing_a.b"), ["thing_a.a[0]"]);
}

#[test]
fn a_block_with_unknown_keys_waits_and_says_for_what() {
    let run = run(&[(
        "main.tf",
        r#"
        resource "thing_a" "a" {}
        resource "thing_a" "b" {
          for_each = toset([thing_a.a.id])
        }
        resource "thing_a" "c" {
          count = length(thing_a.a.id)
        }
        resource "thing_a" "d" {
          name = join(",", [for x in thing_a.b : x.name])
        }
        "#,
    )]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(run.waiting, ["thing_a.b waits for thing_a.a", "thing_a.c waits for thing_a.a"]);
    assert_eq!(run.objects, ["thing_a.a {}", "thing_a.d {name: ?}"]);
}

#[test]
fn keys_that_cannot_be_are_refused() {
    let errors = |expression: &str| {
        let text = format!(
            "variable \"s\" {{\n  sensitive = true\n  default = [\"x\"]\n}}\nresource \"thing_a\" \"a\" {{\n  {expression}\n}}\n"
        );
        let run = run(&[("main.tf", &text)]);
        assert_eq!(run.objects, [""; 0], "{expression}");
        run.errors
    };
    for (expression, expected) in [
        ("for_each = toset(var.s)", "main.tf:6:14: Invalid for_each argument: The value is sensitive"),
        (
            "for_each = [\"a\"]",
            "main.tf:6:14: Invalid for_each argument: A map or a set of strings is required, and the value is a tuple. hint: use toset(...)",
        ),
        ("for_each = null", "main.tf:6:14: Invalid for_each argument: The value is null."),
        ("for_each = toset([1])", "main.tf:6:14: Invalid for_each set argument"),
        ("count = -1", "main.tf:6:11: Invalid count argument: The value has to be a whole number"),
        ("count = 1.5", "main.tf:6:11: Invalid count argument"),
        ("count = null", "main.tf:6:11: Invalid count argument: The value is null."),
        ("count = \"x\"", "main.tf:6:11: Incorrect value type"),
        ("count = 1e9", "main.tf:6:11: Invalid count argument"),
        ("count = length(each.key)", "main.tf:6:18: Reference to \"each\" in context without for_each"),
    ] {
        let errors = errors(expression);
        assert_eq!(errors.len(), 1, "{expression}: {errors:?}");
        assert!(errors[0].starts_with(expected), "{}", errors[0]);
    }
}

#[test]
fn a_cycle_is_reported_with_its_whole_way() {
    let run = run(&[(
        "main.tf",
        r#"
        locals {
          a = thing_a.x.name
          b = local.a
        }
        resource "thing_a" "x" { name = local.b }
        resource "thing_a" "y" { name = local.a }
        resource "thing_a" "z" { name = thing_a.z.id }
        output "o" { value = local.b }
        "#,
    )]);
    assert_eq!(
        run.errors,
        [
            "main.tf:3:11: Cycle: These refer to each other: local.a → thing_a.x → local.b → local.a. hint: remove one of the references",
            "main.tf:8:9: Cycle: thing_a.z refers to itself. hint: remove one of the references",
        ]
    );
    assert_eq!(run.objects, [""; 0]);
}

#[test]
fn a_long_chain_of_references_needs_no_stack() {
    let mut text = "locals {\n  n0 = 1\n".to_owned();
    (1..20_000).for_each(|n| text.push_str(&format!("  n{n} = local.n{} + 1\n", n - 1)));
    text.push_str("}\noutput \"last\" {\n  value = local.n19999\n}\n");
    assert_eq!(run(&[("main.tf", &text)]).outputs["last"], "20000");
}

#[test]
fn an_error_is_reported_once_and_blocks_what_uses_it() {
    let run = run(&[(
        "main.tf",
        r#"
        locals { broken = file("missing") }
        resource "thing_a" "a" {
          count = 3
          name  = local.broken
        }
        resource "thing_a" "b" { name = thing_a.a[0].name }
        resource "thing_a" "c" { name = "fine" }
        "#,
    )]);
    assert_eq!(run.errors.len(), 1, "{:?}", run.errors);
    assert!(run.errors[0].starts_with("main.tf:2:32: "), "{}", run.errors[0]);
    assert_eq!(run.objects, [r#"thing_a.c {name: "fine"}"#]);
}

#[test]
fn undeclared_names_are_errors_also_inside_try() {
    let run = run(&[(
        "main.tf",
        r#"
        resource "thing_a" "a" { any = {} }
        output "variable" { value = try(var.x, 1) }
        output "attribute" { value = try(thing_a.a.nope, 1) }
        output "value" { value = try(thing_a.a.any.nope, "caught") }
        output "resource" { value = can(thing_a.b) }
        output "word" { value = hello }
        "#,
    )]);
    let expected = [
        "main.tf:3:41: Reference to undeclared input variable: There is no variable \"x\" in this module.",
        "main.tf:4:51: Unsupported attribute: This object does not have an attribute named \"nope\".",
        "main.tf:6:41: Reference to undeclared resource: There is no resource \"thing_a.b\" in this module.",
        "main.tf:7:33: Invalid reference: `hello` is the name of nothing here.",
    ];
    assert_eq!(run.errors.len(), expected.len(), "{:?}", run.errors);
    run.errors.iter().zip(expected).for_each(|(error, expected)| assert!(error.starts_with(expected), "{error}"));
    assert_eq!(run.outputs["value"], "\"caught\"");
}

#[test]
fn blocks_become_values_by_the_schema() {
    let run = run(&[(
        "main.tf",
        r#"
        variable "ports" { default = [80, 443] }
        resource "thing_a" "a" {
          rule { port = 22 }
          dynamic "rule" {
            for_each = var.ports
            iterator = port
            content {
              port = port.value
              name = "p${port.key}"
            }
          }
          dynamic "limit" {
            for_each = { b = 2, a = 1 }
            content {
              port = limit.value
              name = limit.key
            }
          }
          dynamic "ingress" {
            for_each = [1]
            content { port = ingress.value }
          }
          ingress { cidr = "10.0.0.0/8" }
          timeouts { create = "5m" }
        }
        resource "thing_a" "none" {
          dynamic "ingress" {
            for_each = []
            content {}
          }
        }
        output "none" { value = thing_a.none.ingress == null }
        "#,
    )]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(
        run.objects,
        [
            r#"thing_a.a {ingress: [{cidr: "10.0.0.0/8"}, {port: 1}], limit: [{name: "a", port: 1}, {name: "b", port: 2}], rule: [{port: 22}, {name: "p0", port: 80}, {name: "p1", port: 443}], timeouts: {create: "5m"}}"#,
            "thing_a.none {}",
        ]
    );
    assert_eq!(run.outputs["none"], "?");
}

#[test]
fn dynamic_blocks_over_something_unknown_are_unknown() {
    let run = run_with(
        &[(
            "main.tf",
            r#"
            resource "thing_a" "a" {}
            resource "thing_a" "b" {
              dynamic "rule" {
                for_each = thing_a.a.ingress
                content { port = rule.value.port }
              }
            }
            "#,
        )],
        &[],
        &[],
    );
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(run.objects, ["thing_a.a {}", "thing_a.b {rule: ?}"]);
}

#[test]
fn what_a_schema_does_not_have_is_an_error_at_its_place() {
    let run = run(&[(
        "main.tf",
        r#"
        resource "thing_a" "a" {
          count = 3
          nam   = "x"
          rulle {}
          rule {}
        }
        resource "thing_a" "b" {
          size = "many"
          limit { port = 1 }
          limit { port = 2 }
          limit { port = 3 }
        }
        resource "thing_nothing" "c" {}
        "#,
    )]);
    let expected = [
        "main.tf:4:11: Unsupported argument: No argument named `nam` is expected here. hint: did you mean `name`?",
        "main.tf:5:11: Unsupported block type: No block of type `rulle` is expected here. hint: did you mean `rule`?",
        "main.tf:6:18: Missing required argument: The argument `port` has to be set.",
        "main.tf:9:18: Incorrect attribute value type: Inappropriate value for attribute \"size\": a number is required.",
        "main.tf:11:11: Too many limit blocks: No more than 2 `limit` blocks are allowed.",
        "main.tf:14:9: Invalid resource type: hashicorp/thing has no type \"thing_nothing\".",
    ];
    assert_eq!(run.errors, expected);
}

#[test]
fn lifecycle_and_depends_on_are_given_with_the_object() {
    let run = run(&[(
        "main.tf",
        r#"
        resource "thing_a" "a" {
          for_each = toset(["x"])
        }
        resource "thing_a" "b" {
          for_each   = toset(["x"])
          depends_on = [thing_a.c]
          lifecycle {
            create_before_destroy = true
            prevent_destroy       = each.key == "x"
            ignore_changes        = [tags["a"], rule[0].port]
            replace_triggered_by  = [thing_a.a[each.key].name, thing_a.c]
          }
        }
        resource "thing_a" "c" {
          lifecycle { ignore_changes = all }
        }
        "#,
    )]);
    assert_eq!(run.errors, [""; 0]);
    let b = run.all.iter().find(|object| object.address.to_string() == r#"thing_a.b["x"]"#).unwrap();
    assert!(b.lifecycle.prevent_destroy && b.lifecycle.create_before_destroy == Some(true));
    let triggers: Vec<String> = b
        .lifecycle
        .replace_triggered_by
        .iter()
        .map(|own| format!("{}{:?} {}", own.resource, own.key, own.path.len()))
        .collect();
    assert_eq!(triggers, [r#"thing_a.aSome(Text("x")) 1"#, "thing_a.cNone 0"]);
    assert_eq!(b.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>(), ["thing_a.c"]);
    assert_eq!(uses(&run, r#"thing_a.b["x"]"#), [r#"thing_a.a["x"]"#, "thing_a.c"]);
}

#[test]
fn json_syntax_has_the_same_meaning() {
    let json = r#"{
        "variable": { "ports": { "default": [80] } },
        "resource": { "thing_a": {
            "a": {
                "name": "n${1 + 1}",
                "rule": [{ "port": 1 }, { "port": "${2}" }],
                "dynamic": { "limit": { "for_each": "${var.ports}", "content": { "port": "${limit.value}" } } },
                "ingress": [{ "port": 1 }],
                "depends_on": ["thing_a.b"]
            },
            "b": { "ingress": "${[]}", "lifecycle": { "replace_triggered_by": ["thing_a.c[0].name"] } },
            "c": { "count": 1 }
        } }
    }"#;
    let run = run(&[("main.tf.json", json)]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(
        run.objects,
        [
            r#"thing_a.a {ingress: [{port: 1}], limit: [{port: 80}], name: "n2", rule: [{port: 1}, {port: 2}]}"#,
            "thing_a.b {}",
            "thing_a.c[0] {}",
        ]
    );
    assert_eq!(uses(&run, "thing_a.b"), ["thing_a.c[0]"]);
}

#[test]
fn references_in_quotes_are_accepted() {
    let text = "resource \"thing_a\" \"a\" {\n  depends_on = [\"thing_a.b\"]\n  lifecycle {\n    ignore_changes = [\"name\"]\n  }\n}\nresource \"thing_a\" \"b\" {}\n";
    let run = run(&[("main.tf", text)]);
    assert_eq!(run.errors, [""; 0]);
    let depends_on: Vec<String> = run.all[0].depends_on.iter().map(ToString::to_string).collect();
    assert_eq!(depends_on, ["thing_a.b"]);
}

#[test]
fn a_dynamic_block_without_elements_has_its_references() {
    let text = r#"
        resource "thing_a" "a" {}
        resource "thing_a" "b" {
          dynamic "rule" {
            for_each = []
            content {
              port = try(thing_a.a.size, rule.value)
              name = var.nope
            }
          }
        }
        resource "thing_a" "c" {
          dynamic "rule" {
            for_each = []
            content { port = thing_a.a.size + rule.value }
          }
        }
        "#;
    let run = run(&[("main.tf", text)]);
    assert_eq!(run.errors.len(), 1, "{:?}", run.errors);
    assert!(run.errors[0].starts_with("main.tf:8:22: Reference to undeclared input variable"), "{}", run.errors[0]);
    assert_eq!(uses(&run, "thing_a.c"), ["thing_a.a"]);
}
