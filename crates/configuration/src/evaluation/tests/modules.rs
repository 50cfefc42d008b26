use std::collections::BTreeMap;
use std::sync::Arc;

use language::NoFiles;

use crate::address::{Mode, ModulePath, ResourceAddress, ResourceName};

use super::{Evaluation, Manifest, Memory, Settings, Things, load, planned, run, run_with, text, uses};

#[test]
fn values_go_through_modules() {
    let run = run(&[
        (
            "main.tf",
            r#"
            module "net" {
              source   = "./net"
              for_each = { a = "10.0", b = "10.1" }
              prefix   = each.value
            }
            module "one" {
              source = "./net"
              count  = 1
              prefix = module.net["a"].id
            }
            resource "thing_a" "last" { tags = { for key, net in module.net : key => net.name } }
            output "names" { value = module.one[*].name }
            "#,
        ),
        (
            "net/main.tf",
            r#"
            variable "prefix" { type = string }
            resource "thing_a" "this" { name = "${var.prefix}-${path.module}" }
            output "id" { value = thing_a.this.id }
            output "name" { value = thing_a.this.name }
            "#,
        ),
    ]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(
        run.objects,
        [
            r#"module.net["a"].thing_a.this {name: "10.0-net"}"#,
            r#"module.net["b"].thing_a.this {name: "10.1-net"}"#,
            r#"thing_a.last {tags: {a: "10.0-net", b: "10.1-net"}}"#,
            "module.one[0].thing_a.this {name: ?}",
        ]
    );
    assert_eq!(uses(&run, "module.one[0].thing_a.this"), [r#"module.net["a"].thing_a.this"#]);
    assert_eq!(run.outputs["names"], "[?]");
}

#[test]
fn a_module_whose_keys_are_unknown_waits() {
    let run = run(&[
        (
            "main.tf",
            r#"
            resource "thing_a" "a" {}
            module "m" {
              source   = "./m"
              for_each = toset([thing_a.a.id])
            }
            output "o" { value = [for m in module.m : m.x] }
            "#,
        ),
        ("m/main.tf", "resource \"thing_a\" \"a\" {}\noutput \"x\" {\n  value = 1\n}\n"),
    ]);
    assert_eq!(run.errors, [""; 0]);
    assert_eq!(run.waiting, ["module.m waits for thing_a.a"]);
    assert_eq!(run.objects, ["thing_a.a {}"]);
    assert_eq!(run.outputs["o"], "?");
}

#[test]
fn depends_on_of_a_module_is_that_of_everything_in_it() {
    let run = run(&[
        (
            "main.tf",
            r#"
            resource "thing_a" "a" {}
            module "m" {
              source     = "./m"
              depends_on = [thing_a.a]
            }
            resource "thing_a" "after" { depends_on = [module.m] }
            "#,
        ),
        ("m/main.tf", "module \"deep\" {\n  source = \"../deep\"\n}\n"),
        ("deep/main.tf", "resource \"thing_a\" \"d\" {}\n"),
    ]);
    assert_eq!(run.errors, [""; 0]);
    let depends_on = |address: &str| -> Vec<String> {
        let object = run.all.iter().find(|object| object.address.to_string() == address).unwrap();
        object.depends_on.iter().map(ToString::to_string).collect()
    };
    assert_eq!(depends_on("module.m.module.deep.thing_a.d"), ["thing_a.a"]);
    assert_eq!(depends_on("thing_a.after"), ["module.m"]);
}

#[test]
fn variables_have_types_defaults_and_marks() {
    let main = r#"
        variable "object" {
          type = object({ name = string, size = optional(number, 3), extra = optional(list(string), []) })
        }
        variable "list" { type = list(number) }
        variable "text" {}
        variable "secret" {
          type      = string
          sensitive = true
        }
        variable "required" {
          type     = string
          nullable = false
          default  = "given"
        }
        resource "thing_a" "a" {
          name = var.secret
          size = var.object.size
          tags = { text = var.text, first = var.list[0], required = var.required }
        }
        output "secret" { value = thing_a.a.name }
        output "fine" {
          value     = var.secret
          sensitive = true
        }
        "#;
    let variables =
        [("object", "{ name = \"x\" }"), ("list", "[\"1\", 2]"), ("text", "[1]"), ("secret", "s"), ("nope", "1")];
    let run = run_with(&[("main.tf", main)], &variables, &[]);
    assert_eq!(
        run.objects,
        [r#"thing_a.a {name: (sensitive), size: 3, tags: {first: "1", required: "given", text: "[1]"}}"#]
    );
    assert_eq!(run.errors.len(), 1, "{:?}", run.errors);
    assert!(run.errors[0].contains("Output refers to sensitive values"), "{}", run.errors[0]);
    assert_eq!(run.outputs["fine"], "(sensitive)");
    assert!(run.warnings[0].contains("Value for undeclared variable"), "{:?}", run.warnings);
}

#[test]
fn variables_that_are_wrong_are_errors() {
    let main = r#"
        variable "missing" {}
        variable "wrong" { type = list(number) }
        output "o" { value = [var.missing, var.wrong] }
        "#;
    let run = run_with(&[("main.tf", main)], &[("wrong", "[\"x\"]")], &[]);
    let errors = run.errors;
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("main.tf:2:9: No value for required variable"), "{}", errors[0]);
    assert!(errors[1].starts_with("main.tf:3:9: Invalid value for input variable"), "{}", errors[1]);
    assert!(run.outputs.is_empty());
}

#[test]
fn arguments_of_a_call_are_the_variables_of_the_module() {
    let run =
        run(&[("main.tf", "module \"m\" {\n  source = \"./m\"\n  b = 1\n}\n"), ("m/main.tf", "variable \"a\" {}\n")]);
    assert_eq!(
        run.errors,
        [
            "main.tf:1:1: Missing required argument: The variable \"a\" of the module has no default, so it has to be set. hint: add `a = ...`",
            "main.tf:3:3: Unsupported argument: The module has no variable \"b\".",
        ]
    );
}

#[test]
fn provider_configurations_are_passed_on() {
    let run = run(&[
        (
            "main.tf",
            r#"
            provider "thing" { name = "default" }
            provider "thing" {
              alias = "west"
              name  = "w"
            }
            provider "thing" {
              alias    = "by"
              for_each = toset(["a", "b"])
              name     = each.value
            }
            module "inherits" { source = "./m" }
            module "passed" {
              source    = "./m"
              providers = { thing = thing.west }
            }
            module "keyed" {
              source    = "./m"
              for_each  = toset(["a", "b"])
              providers = { thing = thing.by[each.key] }
            }
            "#,
        ),
        ("m/main.tf", "resource \"thing_a\" \"a\" {}\nmodule \"inner\" {\n  source = \"../inner\"\n}\n"),
        ("inner/main.tf", "resource \"thing_a\" \"i\" {}\n"),
    ]);
    assert_eq!(run.errors, [""; 0]);
    let mut providers: Vec<String> = run
        .all
        .iter()
        .map(|object| {
            let key = object.provider.key.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {}{key}", object.address, object.provider.local)
        })
        .collect();
    providers.sort();
    assert_eq!(
        providers,
        [
            "module.inherits.module.inner.thing_a.i thing",
            "module.inherits.thing_a.a thing",
            r#"module.keyed["a"].module.inner.thing_a.i thing.by["a"]"#,
            r#"module.keyed["a"].thing_a.a thing.by["a"]"#,
            r#"module.keyed["b"].module.inner.thing_a.i thing.by["b"]"#,
            r#"module.keyed["b"].thing_a.a thing.by["b"]"#,
            "module.passed.module.inner.thing_a.i thing.west",
            "module.passed.thing_a.a thing.west",
        ]
    );
}

#[test]
fn functions_of_providers_are_called() {
    let required = "terraform {\n  required_providers {\n    own = { source = \"acme/thing\" }\n  }\n}\n";
    let called = |call: &str| run(&[("main.tf", &format!("{required}output \"o\" {{\n  value = {call}\n}}\n"))]);
    let ran = called("provider::own::echo(1, 2)");
    assert_eq!(ran.errors, [""; 0]);
    assert_eq!(ran.outputs["o"], "\"acme/thing echo 2\"");
    assert_eq!(called("provider::own::west::echo(1)").outputs["o"], "\"acme/thing echo 1\"");
    assert_eq!(
        called("provider::thing::echo()").errors,
        [
            "main.tf:7:11: Error in function call: Call to function \"provider::thing::echo\" failed: the module does not require a provider \"thing\". hint: add `thing` to `required_providers` of this module"
        ]
    );
    assert_eq!(
        called("provider::own::no()").errors,
        ["main.tf:7:11: Call to unknown function: There is no function named \"provider::own::no\"."]
    );
}

#[test]
fn imports_are_evaluated() {
    let main = r#"
        locals { ids = { a = "i-a", b = "i-b" } }
        import {
          for_each = local.ids
          to       = thing_a.x[each.key]
          id       = each.value
        }
        import {
          to = module.m["k"].thing_a.y
          id = thing_a.other.name
        }
        import {
          to = module.m["no"].thing_a.y
          id = "x"
        }
        module "m" {
          source   = "./m"
          for_each = toset(["k"])
        }
        import {
          to = thing_a.other
          id = thing_a.x["a"].id
        }
        import {
          to = ephemeral.thing_a.open
          id = "x"
        }
        resource "thing_a" "x" { for_each = local.ids }
        resource "thing_a" "other" { name = "o" }
        "#;
    let files = [("main.tf", main), ("m/main.tf", "resource \"thing_a\" \"y\" {}\n")];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let (tree, _) = load(".", &Memory(files.into()), &Manifest::default(), &BTreeMap::new());
    let things = Things::new();
    let evaluation = Evaluation::new(Arc::new(tree), Arc::new(things), Settings::new(Arc::new(NoFiles)));
    for object in evaluation.advance().objects {
        evaluation.give(&object.address, &planned(&object.config, false));
    }
    let imports = evaluation.imports().unwrap();
    let requests = imports.iter().flat_map(|import| &import.requests);
    let shown: Vec<String> =
        requests.map(|import| format!("{} {}", import.to, text(import.id.as_ref().unwrap()))).collect();
    assert_eq!(shown, [r#"thing_a.x["a"] "i-a""#, r#"thing_a.x["b"] "i-b""#, r#"module.m["k"].thing_a.y "o""#]);
    let errors = imports.iter().flat_map(|import| &import.problems.errors);
    let details: Vec<&str> = errors.map(|error| error.detail.as_str()).collect();
    assert_eq!(
        details,
        [
            "There is no object `module.m[\"no\"].thing_a.y` in the configuration to import into.",
            "The identifier is not known before other objects are changed.",
            "Only what a block `resource` has is imported, and this is a block `ephemeral`.",
        ]
    );
    let open: Vec<bool> = imports.iter().map(|import| import.is_open).collect();
    assert_eq!(open, [false, false, true, true, true]);
    let block = evaluation.advance();
    assert!(block.objects.is_empty());
    let other = ResourceAddress {
        module: ModulePath::default(),
        resource: ResourceName { mode: Mode::Managed, kind: "thing_a".into(), name: "other".into() },
    };
    let into: Vec<bool> = imports.iter().map(|import| import.is_into(&other)).collect();
    assert_eq!(into, [false, false, false, true, false]);
    assert_eq!(imports[3].uses.len(), 1);
}

#[test]
fn provider_meta_goes_with_the_objects() {
    let meta = "terraform {\n  provider_meta \"thing\" {\n    name = \"m\"\n  }\n}\nresource \"thing_a\" \"a\" {}\n";
    let run = run(&[("main.tf", meta)]);
    assert_eq!(text(run.all[0].provider_meta.as_ref().unwrap()), r#"{name: "m"}"#);
    let other = run_with(&[("main.tf", &meta.replace("thing", "other"))], &[], &[]);
    assert!(other.errors[0].starts_with("main.tf:2:3: Provider does not support provider_meta"), "{:?}", other.errors);
}

#[test]
fn a_provider_that_only_a_module_inside_requires_has_an_empty_configuration() {
    let main = "module \"m\" {\n  source = \"./m\"\n}\n";
    let module = "terraform {\n  required_providers {\n    own = {\n      source = \"acme/own\"\n    }\n  }\n}\nresource \"own_a\" \"a\" {}\n";
    let files = [("main.tf", main), ("m/main.tf", module)].map(|(path, text)| (path.to_owned(), text.to_owned()));
    let (tree, _) = load(".", &Memory(files.into()), &Manifest::default(), &BTreeMap::new());
    let things = Things::new();
    let evaluation = Evaluation::new(Arc::new(tree), Arc::new(things), Settings::new(Arc::new(NoFiles)));
    let object = evaluation.advance().objects.remove(0);
    let provider = evaluation.provider(&object.provider).unwrap().unwrap();
    assert_eq!(
        (provider.address.source.to_string(), provider.address.module.to_string()),
        ("acme/own".into(), String::new())
    );
    assert_eq!((text(&provider.config), provider.failed), ("{}".to_owned(), false));
}

#[test]
fn what_is_recorded_is_absent_only_if_that_is_sure() {
    use super::super::Presence::{Absent, Desired, Undecided};
    let main = r#"
        resource "thing_a" "one" {}
        resource "thing_a" "many" { count = 2 }
        resource "thing_a" "unknown" { for_each = toset([thing_a.one.id]) }
        resource "thing_a" "failed" { count = -1 }
        resource "thing_a" "later" { count = thing_a.never.size }
        resource "thing_a" "never" {}
        module "m" {
          source   = "./m"
          for_each = toset(["k"])
        }
        module "u" {
          source = "./m"
          count  = length(thing_a.one.id)
        }
        module "gone" { source = "./gone" }
        "#;
    let files = [("main.tf", main), ("m/main.tf", "resource \"thing_a\" \"y\" {}\n")];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let (tree, _) = load(".", &Memory(files.into()), &Manifest::default(), &BTreeMap::new());
    let things = Things::new();
    let evaluation = Evaluation::new(Arc::new(tree), Arc::new(things), Settings::new(Arc::new(NoFiles)));
    for object in evaluation.advance().objects {
        if object.address.to_string() != "thing_a.never" {
            evaluation.give(&object.address, &planned(&object.config, false));
        }
    }
    evaluation.advance();
    let presence = |text: &str| {
        let parsed = hcl::parse_traversal(hcl::Source::new(hcl::FileId(0), "", text)).value.unwrap();
        let crate::Target { module, resource: Some((resource, key)) } = crate::Target::parse(&parsed).unwrap() else {
            panic!("{text} is no resource");
        };
        evaluation.presence(&crate::InstanceAddress { resource: crate::ResourceAddress { module, resource }, key })
    };
    for (address, expected) in [
        ("thing_a.one", Desired),
        ("thing_a.one[0]", Absent),
        ("thing_a.other", Absent),
        ("thing_a.many[1]", Desired),
        ("thing_a.many[2]", Absent),
        ("thing_a.many", Absent),
        ("thing_a.unknown[\"x\"]", Undecided),
        ("thing_a.failed[0]", Undecided),
        ("thing_a.later[0]", Undecided),
        ("module.m[\"k\"].thing_a.y", Desired),
        ("module.m[\"k\"].thing_a.z", Absent),
        ("module.m[\"l\"].thing_a.y", Absent),
        ("module.u[0].thing_a.y", Undecided),
        ("module.gone.thing_a.y", Undecided),
        ("module.removed.thing_a.y", Absent),
    ] {
        assert_eq!(presence(address), expected, "{address}");
    }
}
