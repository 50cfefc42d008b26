//! Migrates a state that Terraform 1.11 wrote, and exports it again. `terraform-1.11/README.md` describes how it was
//! created.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::{MIGRATE, changes, mirror, run, sandbox};
use crate::cli::sandbox::Sandbox;

const STATE: &str = include_str!("terraform-1.11/terraform.tfstate");
const PLAN: &str = include_str!("terraform-1.11/plan.json");

/// A sandbox with the migrated state.
fn migrated(arguments: &[&str]) -> Sandbox {
    let sandbox = sandbox(STATE);
    mirror(&sandbox, &[("hashicorp", "time"), ("purlin", "corner")]);
    sandbox.write("plan.json", PLAN);
    let ran = run(&sandbox, MIGRATE, arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    sandbox
}

/// As in Terraform's plan, tainted objects are replaced and deposed objects destroyed. Terraform 1.11 writes no
/// identities, so an identity is recorded at the first read.
const CHANGES: [&str; 3] = [
    "odd[1] Replace (tainted)",
    "place Record (sensitive marks or provider data changed)",
    "stuck Destroy (deposed by a replacement)",
];

#[test]
fn the_plan_after_a_migration_matches_terraform() {
    let sandbox = migrated(&["--config", "plan.json"]);
    assert_eq!(changes(&sandbox), CHANGES);
    // Sensitive arguments of the provider configuration are only in a Secret.
    let read = |name: &str| std::fs::read_to_string(sandbox.path("infra").join(name)).unwrap();
    assert!(!read("providers.yaml").contains("of-the-settings") && !read("resources.yaml").contains("of-the-"));
    assert!(read("secrets.yaml").contains("secret: of-the-settings"));
}

#[test]
fn without_the_configuration_the_plan_is_the_same() {
    let sandbox = migrated(&[]);
    // The provider configuration is only in the Terraform configuration, not in the state.
    let providers = std::fs::read_to_string(sandbox.path("infra/providers.yaml")).unwrap();
    assert!(providers.contains("name: corner-east"), "{providers}");
    assert_eq!(changes(&sandbox), CHANGES);
}

/// Type, name, instance key and deposed key.
type Key = (String, String, String, String);

/// The objects of a state. `name` returns the name of a resource.
fn objects(state: &Json, name: impl Fn(&Json) -> String) -> BTreeMap<Key, Json> {
    let mut found = BTreeMap::new();
    for resource in state["resources"].as_array().unwrap().iter().filter(|one| one["mode"] == "managed") {
        for object in resource["instances"].as_array().unwrap() {
            let text = |value: &Json| if value.is_null() { String::new() } else { value.to_string() };
            let (key, deposed) = (text(&object["index_key"]), text(&object["deposed"]));
            let mut object = object.clone();
            object["provider"] = resource["provider"].clone();
            found.insert((resource["type"].as_str().unwrap().to_owned(), name(resource), key, deposed), object);
        }
    }
    found
}

/// The non-null sensitive paths of an object, in a form in which map and object steps are equal.
fn sensitive(object: &Json) -> BTreeSet<String> {
    let step = |step: &Json| match step["type"].as_str() {
        Some("get_attr") => step["value"].to_string(),
        _ => step["value"]["value"].to_string(),
    };
    let path = |path: &Json| path.as_array().unwrap().iter().map(step).collect::<Vec<_>>().join(".");
    let all = object["sensitive_attributes"].as_array().unwrap().iter();
    let set = |path: &&Json| !object["attributes"][path[0]["value"].as_str().unwrap()].is_null();
    all.filter(set).map(path).collect()
}

#[test]
fn the_exported_state_matches_the_original() {
    let sandbox = migrated(&["--config", "plan.json"]);
    let ran = sandbox.run(&["state", "export", "--terraform", "--state", "purlin.db"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (before, after): (Json, Json) =
        (serde_json::from_str(STATE).unwrap(), serde_json::from_str(&ran.stdout).unwrap());
    // The module path becomes a part of the name.
    let renamed = |module: Option<&str>, name: &str| {
        let module = module.map(|module| module.replace("module.", "").replace(['[', '"'], "_").replace(']', ""));
        let whole = module.map_or_else(|| name.to_owned(), |module| format!("{module}_{name}"));
        whole.replace("__", "_")
    };
    let own = |one: &Json| renamed(one["module"].as_str(), one["name"].as_str().unwrap());
    let before_all = objects(&before, own);
    let after_all = objects(&after, |one| one["name"].as_str().unwrap().to_owned());
    assert_eq!(before_all.keys().collect::<Vec<_>>(), after_all.keys().collect::<Vec<_>>());
    for (key, before) in &before_all {
        let after = &after_all[key];
        for field in ["attributes", "schema_version", "status", "private", "create_before_destroy"] {
            assert_eq!(before[field], after[field], "{field} of {key:?}");
        }
        assert_eq!(sensitive(before), sensitive(after), "{key:?}");
        // Terraform's dependencies do not contain the instance keys of modules.
        let within = |name: &str| {
            let name = name.rsplit('.').take(2).collect::<Vec<_>>();
            (name[1].to_owned(), name[0].to_owned())
        };
        let named = |list: &Json| -> BTreeSet<(String, String)> {
            let all = list.as_array().into_iter().flatten().map(|one| one.as_str().unwrap());
            all.filter(|one| !one.starts_with("data.")).map(within).collect()
        };
        let last = |(type_name, name): &(String, String)| {
            let end = name.strip_prefix("site_blue_").or(name.strip_prefix("site_green_")).unwrap_or(name);
            (type_name.clone(), end.to_owned())
        };
        let made_from: BTreeSet<_> = named(&after["dependencies"]).iter().map(last).collect();
        assert_eq!(named(&before["dependencies"]), made_from, "{key:?}");
        let provider = |object: &Json| {
            object["provider"].as_str().unwrap().replace("registry.terraform.io", "registry.opentofu.org")
        };
        assert_eq!(provider(before), provider(after), "{key:?}");
    }
    assert_eq!(before["version"], after["version"]);
    assert_eq!(after["check_results"], json!(null));
}
