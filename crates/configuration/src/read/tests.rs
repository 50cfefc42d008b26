use crate::address::{Mode, ResourceName};
use crate::diagnostics::Sources;
use crate::directory::File;
use crate::module::{IgnoreChanges, Module, Repetition};

use super::read_module;

fn read(files: &[(&str, &str)]) -> (Module, Vec<String>) {
    let files = files.iter().map(|(name, text)| File { name: (*name).to_owned(), content: (*text).into() });
    let mut sources = Sources::default();
    let (module, diagnostics) = read_module(".", files.collect(), &mut sources);
    let errors = diagnostics.errors.iter().map(|error| sources.line(error)).collect();
    (module, errors)
}

fn errors(text: &str) -> Vec<String> {
    read(&[("main.tf", text)]).1
}

fn thing(name: &str) -> ResourceName {
    ResourceName { mode: Mode::Managed, kind: "thing".into(), name: name.into() }
}

#[test]
fn all_kinds_of_blocks_are_read_from_both_syntaxes() {
    let native = r#"
        terraform {
          required_version = ">= 1.5"
          required_providers {
            aws = {
              source                = "hashicorp/aws"
              version               = "~> 5.0"
              configuration_aliases = [aws.west]
            }
          }
          backend "s3" {}
        }
        provider "aws" { region = "x" }
        variable "a" { type = string }
        locals { l = 1 }
        output "o" { value = 1 }
        module "m" { source = "./m" }
        resource "thing" "r" {
          count = 2
          lifecycle { ignore_changes = all }
          provisioner "local-exec" {
            when    = destroy
            command = "true"
          }
        }
        data "thing" "d" {}
        ephemeral "thing" "e" {}
        moved {
          from = thing.old
          to   = thing.r[0]
        }
        import {
          to = thing.r[0]
          id = "x"
        }
        removed {
          from = module.gone
          lifecycle { destroy = false }
        }
        check "c" {
          assert {
            condition     = true
            error_message = "no"
          }
        }
        "#;
    let json = r#"{
        "terraform": { "required_version": ">= 1.5", "backend": { "s3": {} }, "required_providers": { "aws": { "source": "hashicorp/aws", "version": "~> 5.0", "configuration_aliases": ["aws.west"] } } },
        "provider": { "aws": { "region": "x" } },
        "variable": { "a": { "type": "string" } },
        "locals": { "l": 1 },
        "output": { "o": { "value": 1 } },
        "module": { "m": { "source": "./m" } },
        "resource": { "thing": { "r": { "count": 2, "lifecycle": { "ignore_changes": "all" }, "provisioner": { "local-exec": { "when": "destroy", "command": "true" } } } } },
        "data": { "thing": { "d": {} } },
        "ephemeral": { "thing": { "e": {} } },
        "moved": { "from": "thing.old", "to": "thing.r[0]" },
        "import": { "to": "thing.r[0]", "id": "x" },
        "removed": { "from": "module.gone", "lifecycle": { "destroy": false } },
        "check": { "c": { "assert": { "condition": true, "error_message": "no" } } }
    }"#;
    for (name, text) in [("main.tf", native), ("main.tf.json", json)] {
        let (module, errors) = read(&[(name, text)]);
        assert_eq!(errors, [""; 0], "{name}");
        let aws = &module.required_providers["aws"];
        assert_eq!((aws.source.to_string().as_str(), aws.version.as_deref()), ("hashicorp/aws", Some("~> 5.0")));
        assert_eq!(aws.aliases[0].to_string(), "aws.west");
        assert_eq!((module.variables.len(), module.locals.len(), module.outputs.len()), (1, 1, 1));
        assert_eq!((module.providers.len(), module.calls.len(), module.resources.len()), (1, 1, 3));
        let resource = &module.resources[&thing("r")];
        assert!(matches!(resource.repetition, Repetition::Count(_)));
        assert!(matches!(resource.lifecycle.ignore_changes, IgnoreChanges::All));
        assert!(resource.provisioners[0].on_destroy);
        assert_eq!((module.moved.len(), module.imports.len(), module.removed[0].destroy), (1, 1, false));
        assert_eq!(module.checks["c"].assertions.len(), 1);
    }
}

#[test]
fn errors_of_all_files_are_reported_at_their_places() {
    let a = "variable \"x\" {\n  type = strin\n  defalt = 1\n}\nresorce \"a\" \"b\" {}\n";
    let b = "output \"o\" {}\nlocals {\n  a = \n}\nvariable \"count\" {}\n";
    let (_, errors) = read(&[("a.tf", a), ("b.tf", b)]);
    assert_eq!(errors.len(), 6, "{errors:#?}");
    for expected in [
        "a.tf:2:10: Invalid type specification",
        "a.tf:3:3: Unsupported argument: No argument named `defalt` is expected here. hint: did you mean `default`?",
        "a.tf:5:1: Unsupported block type: No block of type `resorce` is expected here. hint: did you mean `resource`?",
        "b.tf:1:14: Missing required argument",
        "b.tf:3:7: ",
        "b.tf:5:10: Invalid variable name",
    ] {
        assert!(errors.iter().any(|error| error.starts_with(expected)), "{expected}: {errors:#?}");
    }
}

#[test]
fn names_are_unique() {
    for text in [
        "variable \"a\" {}\nvariable \"a\" {}\n",
        "locals {\n  a = 1\n}\nlocals {\n  a = 2\n}\n",
        "output \"a\" {\n  value = 1\n}\noutput \"a\" {\n  value = 1\n}\n",
        "resource \"a\" \"a\" {}\nresource \"a\" \"a\" {}\n",
        "module \"a\" {\n  source = \"./a\"\n}\nmodule \"a\" {\n  source = \"./a\"\n}\n",
        "provider \"a\" {}\nprovider \"a\" {}\n",
    ] {
        let errors = errors(text);
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].contains(": Duplicate "), "{}", errors[0]);
    }
    assert_eq!(
        errors(
            "provider \"a\" {}\nprovider \"a\" {\n  alias = \"b\"\n}\ndata \"a\" \"a\" {}\nresource \"a\" \"a\" {}\n"
        ),
        [""; 0]
    );
}

#[test]
fn override_files_change_arguments_and_blocks() {
    let base = r#"
        terraform { required_version = ">= 1.0" }
        variable "v" {
          type    = string
          default = "a"
        }
        output "o" { value = "a" }
        module "m" { source = "./a" }
        resource "thing" "r" {
          name = "a"
          size = 1
          rule { port = 1 }
          rule { port = 2 }
          other {}
          lifecycle {
            create_before_destroy = true
            ignore_changes        = all
          }
        }
        locals {
          x = 1
          y = 2
        }
        provider "aws" {
          alias  = "b"
          region = "a"
        }
        "#;
    let over = r#"
        terraform { required_version = ">= 1.6" }
        variable "v" { default = "b" }
        output "o" { sensitive = true }
        module "m" { source = "./b" }
        resource "thing" "r" {
          name = "b"
          rule { port = 3 }
          lifecycle { create_before_destroy = false }
        }
        locals { x = 3 }
        provider "aws" {
          alias  = "b"
          region = "b"
        }
        "#;
    let (module, errors) = read(&[("main.tf", base), ("x_override.tf", over)]);
    assert_eq!(errors, [""; 0]);
    assert_eq!(module.variables["v"].default.as_ref().unwrap().as_str(), Some("b"));
    assert!(module.outputs["o"].sensitive);
    assert_eq!(module.calls["m"].source.as_ref().unwrap().as_text(), Some("./b"));
    let resource = &module.resources[&thing("r")];
    assert_eq!(resource.lifecycle.create_before_destroy, Some(false));
    assert!(matches!(resource.lifecycle.ignore_changes, IgnoreChanges::All));
    let schema = hcl::Schema::new(&["name", "size"], &[("rule", &[]), ("other", &[])]);
    let content = resource.body.clone().content(&schema, &mut crate::Diagnostics::default());
    assert_eq!(content.attribute("name").unwrap().value.as_text(), Some("b"));
    assert!(content.attribute("size").is_some());
    assert_eq!(content.blocks.iter().map(|block| block.kind.text.as_str()).collect::<Vec<_>>(), ["other", "rule"]);
}

#[test]
fn overrides_need_something_to_override() {
    let over = "variable \"v\" {}\nlocals {\n  x = 1\n}\nmoved {\n  from = a.b\n  to = a.c\n}\nresource \"a\" \"b\" {\n  depends_on = []\n}\n";
    let (_, errors) = read(&[("override.tf", over)]);
    for expected in [
        "override.tf:1:1: Missing variable to override",
        "override.tf:3:3: Missing base local value definition to override",
        "override.tf:5:1: Cannot override 'moved' blocks",
        "override.tf:9:1: Missing resource to override",
        "override.tf:10:3: Unsupported override",
    ] {
        assert!(errors.iter().any(|error| error.starts_with(expected)), "{expected}: {errors:#?}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    for (text, expected) in [
        (
            "resource \"a\" \"b\" {\n  count = 1\n  for_each = {}\n}\n",
            "main.tf:3:3: Invalid combination of `count` and `for_each`",
        ),
        (
            "data \"a\" \"b\" {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n",
            "main.tf:3:5: Invalid data lifecycle argument",
        ),
        ("provider \"a\" {\n  for_each = {}\n}\n", "main.tf:2:14: Alias required when using \"for_each\""),
        ("import {\n  to = a.b\n}\nresource \"a\" \"b\" {}\n", "main.tf:1:1: Invalid import arguments"),
        (
            "variable \"a\" {\n  validation {\n    condition = true\n    error_message = \"x\"\n  }\n}\n",
            "main.tf:3:17: Invalid variable validation condition",
        ),
        (
            "resource \"a\" \"b\" {\n  lifecycle {\n    precondition {\n      condition = a.b.c\n      error_message = \"x\"\n    }\n  }\n}\n",
            "main.tf:4:19: Invalid reference in precondition",
        ),
        (
            "resource \"a\" \"b\" {\n  provisioner \"local-exec\" {\n    when = destroy\n    command = local.x\n  }\n}\n",
            "main.tf:4:15: Invalid reference from destroy provisioner",
        ),
        (
            "resource \"a\" \"b\" {\n  lifecycle {\n    replace_triggered_by = [a.c[each.val]]\n  }\n}\n",
            "main.tf:3:33: Invalid \"each\" attribute",
        ),
        (
            "resource \"a\" \"b\" {\n  lifecycle {\n    replace_triggered_by = [var.x]\n  }\n}\n",
            "main.tf:3:29: Invalid replace_triggered_by expression",
        ),
        ("provider \"AWS\" {}\n", "main.tf:1:10: Invalid provider local name"),
        (
            "terraform {\n  required_providers {\n    a = {\n      source = \"x/terraform-provider-a\"\n    }\n  }\n}\n",
            "main.tf:4:16: Invalid provider type",
        ),
        (
            "terraform {\n  required_providers {}\n  required_providers {}\n}\n",
            "main.tf:3:3: Duplicate required providers configuration",
        ),
        ("terraform {\n  provider_meta \"a\" {\n    x = var.a\n  }\n}\n", "main.tf:3:9: Variables not allowed"),
        ("moved {\n  from = var.a\n  to = a.b\n}\n", "main.tf:2:10: Invalid \"moved\" address"),
        ("moved {\n  from = ephemeral.a.b\n  to = a.b\n}\n", "main.tf:2:10: Invalid \"moved\" address"),
        ("check \"a\" {}\n", "main.tf:1:1: Zero assert blocks"),
        (
            "variable \"a\" {\n  type = number\n  default = \"x\"\n}\n",
            "main.tf:3:13: Invalid default value for variable",
        ),
        (
            "variable \"a\" {\n  nullable = false\n  default = null\n}\n",
            "main.tf:3:13: Invalid default value for variable",
        ),
        ("variable \"a\" {\n  type = \"string\"\n}\n", "main.tf:2:10: Invalid quoted type constraints"),
        ("module \"a\" {}\n", "main.tf:1:14: Missing required argument"),
        ("required_providers {}\n", "main.tf:1:1: Invalid required_providers block"),
        (
            "terraform {\n  required_providers {\n    a = {\n      source = \"a b\"\n    }\n  }\n}\n",
            "main.tf:4:16: Invalid provider source string",
        ),
        (
            "resource \"a\" \"b\" {\n  provisioner \"local-exec\" {\n    when = never\n  }\n}\n",
            "main.tf:3:12: Invalid \"when\" keyword",
        ),
        (
            "resource \"a\" \"b\" {\n  lifecycle {\n    ignore_changes = [\"*\"]\n  }\n}\n",
            "main.tf:3:23: Invalid ignore_changes wildcard",
        ),
        ("variable \"0\" {}\n", "main.tf:1:10: Invalid variable name"),
    ] {
        let errors = errors(text);
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].starts_with(expected), "{expected}: {}", errors[0]);
    }
}

#[test]
fn a_module_for_another_version_has_one_error() {
    for constraint in ["~> 1.12", ">= 0.13", "< 2.0, != 1.11.0", "1.12.6"] {
        let text = format!("terraform {{\n  required_version = \"{constraint}\"\n}}\n");
        assert_eq!(read(&[("main.tofu", &text)]).1, [""; 0], "{constraint}");
    }
    // What is new in that version is not reported too.
    let newer = "terraform {\n  required_version = \">= 1.13\"\n}\nnovelty \"a\" {}\n";
    assert_eq!(
        read(&[("main.tofu", newer)]).1,
        [
            "main.tofu:2:22: Incompatible module: The module requires a version \">= 1.13\" of OpenTofu. Purlin has the language of OpenTofu 1.12.6. hint: if the module works with 1.12.6, write a constraint that includes it"
        ]
    );
    let invalid = read(&[("main.tofu", "terraform {\n  required_version = \"newest\"\n}\n")]).1;
    assert!(invalid[0].starts_with("main.tofu:2:22: Invalid version constraint: `newest` is not"), "{invalid:?}");
    // In a file for both programs, it is a version of the other one.
    assert_eq!(errors("terraform {\n  required_version = \"999.9\"\n}\n"), [""; 0]);
}

#[test]
fn the_block_about_the_language_is_checked() {
    let valid = "language {\n  compatible_with {\n    opentofu = \">= 1.12\"\n    other    = \"x\"\n    own {}\n  }\n  edition     = tofu2024\n  experiments = []\n}\n";
    assert_eq!(errors(valid), [""; 0]);
    for (text, expected) in [
        ("edition = \"tofu2024\"", "main.tf:2:11: Invalid language edition"),
        ("edition = tofu2038", "main.tf:2:11: Unsupported language edition"),
        ("experiments = [more]", "main.tf:2:16: Unknown experiment keyword"),
        ("compatible_with {\n opentofu = \"999.9\"\n}", "main.tf:3:13: Incompatible module"),
    ] {
        let errors = errors(&format!("language {{\n{text}\n}}\n"));
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].starts_with(expected), "{expected}: {}", errors[0]);
    }
}
