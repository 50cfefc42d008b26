use std::collections::BTreeMap;

use super::{Directories, Installed, Manifest, Tree, load};
use crate::directory::File;

struct Memory(BTreeMap<&'static str, &'static str>);

impl Directories for Memory {
    fn files(&self, directory: &str) -> Result<Vec<File>, String> {
        let text = self.0.get(directory).ok_or_else(|| "it does not exist".to_owned())?;
        Ok(vec![File { name: "main.tf".to_owned(), content: (*text).into() }])
    }
}

fn tree(directories: &[(&'static str, &'static str)], installed: &[(&str, &str, &str)]) -> (Tree, Vec<String>) {
    let manifest: Manifest = installed
        .iter()
        .map(|(key, source, directory)| {
            let installed = Installed {
                source: (*source).to_owned(),
                version: Some("1.0.0".to_owned()),
                directory: (*directory).to_owned(),
            };
            ((*key).to_owned(), installed)
        })
        .collect();
    let (tree, diagnostics) = load(".", &Memory(directories.iter().copied().collect()), &manifest, &BTreeMap::new());
    let errors = diagnostics.errors.iter().map(|error| tree.sources.line(error)).collect();
    (tree, errors)
}

#[test]
fn calls_are_followed_to_local_and_installed_modules() {
    let (tree, errors) = tree(
        &[
            (".", "module \"a\" {\n  source = \"./mods/a\"\n}\nmodule \"v\" {\n  source = \"x/v/aws\"\n}\n"),
            ("mods/a", "module \"b\" {\n  source = \"../b\"\n}\n"),
            ("mods/b", ""),
            (".terraform/modules/v", "module \"b\" {\n  source = \"./b\"\n}\n"),
            (".terraform/modules/v/b", ""),
        ],
        &[("v", "registry.opentofu.org/x/v/aws", ".terraform/modules/v")],
    );
    assert_eq!(errors, [""; 0]);
    let paths: Vec<String> =
        tree.nodes.iter().map(|node| format!("{} {}", node.path.join("."), node.module.directory)).collect();
    assert_eq!(paths, [" .", "a mods/a", "v .terraform/modules/v", "a.b mods/b", "v.b .terraform/modules/v/b"]);
}

#[test]
fn modules_that_cannot_be_loaded_are_errors_at_their_source() {
    let (_, errors) = tree(
        &[
            (
                ".",
                "module \"a\" {\n  source = \"./a\"\n}\nmodule \"b\" {\n  source = \"x/b/aws\"\n}\nmodule \"c\" {\n  source = \"x/c/aws\"\n}\nmodule \"d\" {\n  source = \"./d\"\n}\n",
            ),
            ("d", "module \"e\" {\n  source = \"../d\"\n}\n"),
            (".terraform/c", ""),
        ],
        &[("c", "registry.opentofu.org/y/c/aws", ".terraform/c")],
    );
    assert_eq!(
        errors,
        [
            "main.tf:2:12: Unreadable module directory: The directory `a` of module.a cannot be read: it does not exist.",
            "main.tf:5:12: Module not installed: The module \"registry.opentofu.org/x/b/aws\" of module.b is not installed. hint: run `purlin init`",
            "main.tf:8:12: Module source has changed: The source is \"registry.opentofu.org/x/c/aws\" now, but \"registry.opentofu.org/y/c/aws\" is installed. hint: run `purlin init`",
            "d/main.tf:2:12: Module calls itself: The module in `d` calls itself, through module.e.",
        ]
    );
}

#[test]
fn a_module_that_is_called_twice_has_its_errors_once() {
    let (tree, errors) = tree(
        &[(".", "module \"a\" {\n  source = \"./m\"\n}\nmodule \"b\" {\n  source = \"./m\"\n}\n"), ("m", "nope {}\n")],
        &[],
    );
    assert_eq!((tree.nodes.len(), errors.len()), (3, 1), "{errors:?}");
}

#[test]
fn provider_configurations_have_to_be_there() {
    let aliased = "terraform {\n  required_providers {\n    aws = {\n      source = \"hashicorp/aws\"\n      configuration_aliases = [aws.west]\n    }\n  }\n}\n";
    let own = "provider \"aws\" {\n  region = \"x\"\n}\n";
    for (root, module, expected) in [
        (
            "resource \"aws_a\" \"b\" {\n  provider = aws.nope\n}\n",
            "",
            "main.tf:2:14: Provider configuration not present",
        ),
        ("module \"m\" {\n  source = \"./m\"\n}\n", aliased, "main.tf:1:1: Missing required provider configuration"),
        (
            "module \"m\" {\n  source = \"./m\"\n  providers = { aws.west = aws.no }\n}\n",
            aliased,
            "main.tf:3:28: Provider configuration not present",
        ),
        (
            "module \"m\" {\n  source = \"./m\"\n  providers = { aws.west = google }\n}\n",
            aliased,
            "main.tf:3:17: Provider type mismatch",
        ),
        (
            "terraform {\n  required_providers {\n    acme = { source = \"acme/acme\" }\n  }\n}\nmodule \"m\" {\n  source = \"./m\"\n  providers = { acme.x = acme }\n}\n",
            "terraform {\n  required_providers {\n    acme = { source = \"acme/acme\" }\n  }\n}\n",
            "main.tf:8:17: Reference to undefined provider",
        ),
        (
            "module \"m\" {\n  source = \"./m\"\n  count = 1\n}\n",
            own,
            "main.tf:1:1: Module is incompatible with count, for_each, and depends_on",
        ),
    ] {
        let (_, errors) = tree(&[(".", root), ("m", module)], &[]);
        assert_eq!(errors.len(), 1, "{root}: {errors:?}");
        assert!(errors[0].starts_with(expected), "{}", errors[0]);
    }
    let root = "provider \"aws\" {\n  alias = \"w\"\n}\nmodule \"m\" {\n  source = \"./m\"\n  providers = { aws.west = aws.w }\n}\n";
    assert_eq!(tree(&[(".", root), ("m", aliased)], &[]).1, [""; 0]);
    // Only a warning, as upstream.
    let undeclared = "module \"m\" {\n  source = \"./m\"\n  providers = { aws.x = aws }\n}\n";
    assert_eq!(tree(&[(".", undeclared), ("m", "")], &[]).1, [""; 0]);
}

#[test]
fn sources_may_come_from_variables_and_local_values() {
    let (loaded, errors) = tree(
        &[
            (
                ".",
                "variable \"dir\" {\n  default = \"m\"\n}\nlocals {\n  source = \"./${var.dir}\"\n}\nmodule \"a\" {\n  source = local.source\n  next = \"n\"\n}\n",
            ),
            ("m", "variable \"next\" {}\nmodule \"b\" {\n  source = \"../${var.next}\"\n}\n"),
            ("n", ""),
        ],
        &[],
    );
    assert_eq!((loaded.nodes.len(), errors), (3, Vec::new()));
    for (source, expected) in [
        ("local.a", "main.tf:2:7: Invalid module source or version: The references of a module's source go around"),
        ("thing.x.id", "main.tf:5:12: Variables not allowed"),
        ("\"\"", "main.tf:5:12: Invalid module source address"),
        ("sensitive(\"./m\")", "main.tf:5:12: Invalid module source or version: The value is sensitive"),
        ("var.short", "main.tf:5:12: Invalid module source or version: The value is sensitive or ephemeral"),
    ] {
        let root: &'static str =
            Box::leak(format!("locals {{\n  a = local.a\n}}\nmodule \"m\" {{\n  source = {source}\n}}\nvariable \"short\" {{\n  default   = \"./m\"\n  ephemeral = true\n}}\n").into());
        let (_, errors) = tree(&[(".", root), ("m", "")], &[]);
        assert_eq!(errors.len(), 1, "{source}: {errors:?}");
        assert!(errors[0].starts_with(expected), "{}", errors[0]);
    }
}

#[test]
fn an_installed_module_has_to_have_a_version_that_is_asked_for() {
    let call = |version: &str| {
        let text = format!("module \"a\" {{\n  source = \"x/a/aws\"\n  version = \"{version}\"\n}}\n");
        let root: &'static str = Box::leak(text.into());
        tree(&[(".", root), ("a", "")], &[("a", "x/a/aws", "a")])
    };
    assert_eq!(call("~> 1.0").1, [""; 0]);
    let (loaded, errors) = call(">= 2.0");
    assert_eq!(
        errors,
        [
            "main.tf:2:12: Module version requirements have changed: The version has to match `>= 2.0.0` now, but 1.0.0 is installed. hint: run `purlin init`"
        ]
    );
    assert_eq!((loaded.missing.len(), loaded.missing[0].version.to_string()), (1, ">= 2.0.0".to_owned()));
    let (_, errors) = call("latest");
    assert!(errors[0].starts_with("main.tf:3:13: Invalid version constraint: `latest` is not a valid"), "{errors:?}");
}

#[test]
fn a_package_that_calls_itself_is_not_installed_again_and_again() {
    let text = "module \"a\" {\n  source = \"x/a/aws\"\n}\n";
    let (loaded, errors) = tree(&[(".", text), ("a", text)], &[("a", "x/a/aws", "a")]);
    let expected = "a/main.tf:2:12: Module calls itself: The module in \"registry.opentofu.org/x/a/aws\" calls itself, through module.a.";
    assert_eq!((errors, loaded.missing.len()), (vec![expected.to_owned()], 0));
}

#[test]
fn a_module_that_is_no_module_of_a_registry_has_no_version() {
    for source in ["./m", "git::https://example.com/m.git"] {
        let text = format!("module \"a\" {{\n  source = \"{source}\"\n  version = \"1\"\n}}\n");
        let (_, errors) = tree(&[(".", Box::leak(text.into())), ("m", "")], &[("a", source, "m")]);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].starts_with("main.tf:3:13: Invalid registry module source address: Only"), "{errors:?}");
    }
}

#[test]
fn a_module_takes_those_that_it_calls_out_of_the_list() {
    let json = r#"{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"a","Source":"x/a/aws","Version":"1.0.0","Dir":"a"},{"Key":"a.b","Source":"./b","Dir":"a/b"},{"Key":"ab","Source":"./ab","Dir":"ab"}]}"#;
    let mut manifest = Manifest::parse(json).unwrap();
    assert_eq!(manifest.to_json(), json);
    manifest.remove("a");
    assert_eq!(["", "a", "a.b", "ab"].map(|key| manifest.get(key).is_some()), [true, false, false, true]);
}

#[test]
fn the_providers_of_all_modules_are_known_with_their_versions() {
    let root = "terraform {\n  required_providers {\n    cloud = {\n      source = \"acme/cloud\"\n      version = \"~> 1.0\"\n    }\n  }\n}\nresource \"cloud_a\" \"x\" {}\nresource \"random_pet\" \"x\" {}\nresource \"terraform_data\" \"x\" {}\nmodule \"m\" {\n  source = \"./m\"\n}\n";
    let module = "terraform {\n  required_providers {\n    own = {\n      source = \"acme/cloud\"\n      version = \">= 1.2\"\n    }\n  }\n}\nprovider \"null\" {}\n";
    let (loaded, errors) = tree(&[(".", root), ("m", module)], &[]);
    assert_eq!(errors, [""; 0]);
    let required: Vec<String> = loaded
        .required_providers()
        .iter()
        .filter(|(source, _)| !source.is_built_in())
        .map(|(source, all)| {
            let of =
                |one: &super::ProviderRequirement| format!(" {}:{}", one.node, one.version.as_deref().unwrap_or("any"));
            format!("{source}{}", all.iter().map(of).collect::<String>())
        })
        .collect();
    assert_eq!(required, ["acme/cloud 0:~> 1.0 1:>= 1.2", "hashicorp/null 1:any", "hashicorp/random 0:any"]);
}

#[test]
fn references_to_what_is_not_declared_are_found_without_an_instance() {
    let root = r#"
variable "known" {}
locals {
  a = [for known in var.known : known.x if local.gone]
  b = var.nope
}
resource "cloud_a" "x" {
  count = 0
  name  = data.cloud_b.gone.id
  dynamic "rule" {
    for_each = rule.value.list
    content {
      port = rule.value + inner.value
      dynamic "part" {
        for_each = rule.value.parts
        iterator = inner
        labels   = [inner.key]
        content {
          size = inner.value * rule.key * part.value.x
        }
      }
    }
  }
  provisioner "local-exec" {
    command = "${self.id} ${each.key} ${module.gone.x}"
  }
  lifecycle {
    replace_triggered_by = [cloud_a.gone]
  }
}
output "o" {
  value      = cloud_a.x
  depends_on = [module.other]
}
"#;
    let (loaded, errors) = tree(&[(".", root)], &[]);
    assert_eq!(errors, [""; 0]);
    let mut found: Vec<String> = loaded
        .undeclared()
        .errors
        .iter()
        .map(|error| {
            let source = loaded.sources.get(error.range.file).unwrap();
            format!("{}: {}", source.position(error.range.start).line, source.slice(error.range))
        })
        .collect();
    found.dedup();
    assert_eq!(
        found,
        [
            "4: local.gone",
            "5: var.nope",
            "9: data.cloud_b.gone.id",
            "11: rule.value.list",
            "13: inner.value",
            "19: part.value.x",
            "25: module.gone.x",
            "28: cloud_a.gone",
            "33: module.other",
        ]
    );
}
