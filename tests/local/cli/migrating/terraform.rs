//! Takes a state over that Terraform 1.11 wrote, and exports it again. `terraform-1.11/README.md` describes how it was created.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::{changes, mirror, objects as attributes};
use crate::cli::sandbox::Sandbox;

const STATE: &str = include_str!("terraform-1.11/terraform.tfstate");
const MAIN: &str = include_str!("terraform-1.11/main.tf");
const SITE: &str = include_str!("terraform-1.11/site/main.tf");
const MIRROR: &[&str] = &["--plugin-dir", "../mirror"];

/// A sandbox with the configuration, its state, the files of its objects, and a mirror of the providers.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    mirror(&sandbox, &[("hashicorp", "random"), ("hashicorp", "local"), ("hashicorp", "time"), ("purlin", "corner")]);
    sandbox.write("tf/main.tf", MAIN);
    sandbox.write("tf/site/main.tf", SITE);
    sandbox.write("tf/terraform.tfstate", STATE);
    for object in attributes(STATE) {
        if let (Some(name), Some(content)) = (object["filename"].as_str(), object["content"].as_str()) {
            sandbox.write(&format!("tf/{name}"), content);
        }
    }
    let ran = sandbox.run_in("tf", &[&["init"], MIRROR].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    sandbox
}

fn migrated() -> Sandbox {
    let sandbox = sandbox();
    let ran = sandbox.run_in("tf", &[&["migrate"], MIRROR].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    expect_test::expect![[r#"
        Took over 24 objects of 20 resources: records in purlin.db.
        The state is unchanged. Keep it as a backup, and change these objects only with Purlin from now on.
        Next: purlin plan
    "#]]
    .assert_eq(&ran.stderr);
    sandbox
}

/// As in Terraform's plan, tainted objects are replaced and deposed objects destroyed.
#[test]
fn the_plan_is_that_of_terraform() {
    let sandbox = migrated();
    let expected = ["corner_trouble.stuck Destroy", "random_pet.odd[1] Replace"];
    assert_eq!(changes(&sandbox, "tf", MIRROR), expected);
    let again = sandbox.run_in("tf", &[&["migrate"], MIRROR].concat());
    let error = "the objects of this state are taken over already: `purlin.db` has 23 records";
    assert!(again.one_error().contains(error), "{again:?}");
}

#[test]
fn objects_that_are_only_in_a_state_are_not_created_again() {
    let sandbox = sandbox();
    let plan = sandbox.run_in("tf", &[&["plan"], MIRROR].concat());
    assert!(plan.one_error().contains("terraform.tfstate has objects that Purlin has no records of"), "{plan:?}");
    assert!(plan.stderr.contains("hint: take them over with `purlin migrate`"), "{plan:?}");
}

/// One object that cannot be taken over is enough.
#[test]
fn all_is_taken_over_or_nothing() {
    let sandbox = sandbox();
    let odd = STATE.replace("\"type\": \"random_shuffle\"", "\"type\": \"random_gone\"");
    assert_ne!(odd, STATE);
    sandbox.write("tf/terraform.tfstate", &odd);
    let ran = sandbox.run_in("tf", &[&["migrate"], MIRROR].concat());
    assert!(ran.one_error().contains("`random_gone.order`: "), "{ran:?}");
    assert!(ran.stderr.contains("Nothing was taken over.") && !sandbox.path("tf/purlin.db").exists(), "{ran:?}");
}

/// What is destroyed is not taken over again, although the state still has it.
#[test]
fn a_state_that_was_taken_over_is_no_error_after_a_destroy() {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"a\" {\n  input = 1\n}\n");
    sandbox.write("tf/terraform.tfstate", DATA);
    for command in [&["migrate"][..], &["destroy", "--yes"]] {
        let ran = sandbox.run_in("tf", command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let plan = sandbox.run_in("tf", &["plan"]);
    assert!(plan.stdout.contains("Plan: 1 to create"), "{plan:?}");
    sandbox.write("tf/terraform.tfstate", &DATA.replace("\"serial\": 2", "\"serial\": 3"));
    let plan = sandbox.run_in("tf", &["plan"]);
    assert!(plan.one_error().contains("has objects that Purlin has no records of"), "{plan:?}");
}

/// An object that the configuration no longer has is destroyed after what depended on it.
#[test]
fn what_the_configuration_no_longer_has_is_destroyed_in_order() {
    let sandbox = Sandbox::new();
    sandbox.write("tf/main.tf", "resource \"terraform_data\" \"other\" {}\n");
    let state: Json = serde_json::from_str(DATA).unwrap();
    let named = |name: &str, dependencies: Json| {
        let mut one = state["resources"][0].clone();
        one["name"] = json!(name);
        one["module"] = json!("module.old[\"x.y\"]");
        one["instances"][0]["attributes"]["id"] = json!(name);
        one["instances"][0]["dependencies"] = dependencies;
        one
    };
    let mut all = state.clone();
    all["resources"] = json!([
        named("a", json!([])),
        named("b", json!(["module.old.terraform_data.a"])),
        named("c", json!(["module.old.terraform_data.a", "module.old.terraform_data.b"])),
    ]);
    sandbox.write("tf/terraform.tfstate", &all.to_string());
    let ran = sandbox.run_in("tf", &["migrate"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let applied = sandbox.run_in("tf", &["apply", "--yes"]);
    let destroyed: Vec<&str> = applied.stdout.lines().filter(|line| line.ends_with(": destroying")).collect();
    let expected = ["c", "b", "a"].map(|name| format!("module.old[\"x.y\"].terraform_data.{name}: destroying"));
    assert_eq!(destroyed, expected, "{applied:?}");
}

/// A state with one object.
const DATA: &str = r#"{"version": 4, "terraform_version": "1.12.6", "serial": 2, "lineage": "l", "outputs": {}, "resources": [
    {"mode": "managed", "type": "terraform_data", "name": "a", "provider": "provider[\"terraform.io/builtin/terraform\"]",
     "instances": [{"schema_version": 0, "attributes": {"id": "1", "input": {"value": 1, "type": "number"},
        "output": {"value": 1, "type": "number"}, "triggers_replace": null}, "sensitive_attributes": []}]}]}"#;

/// Module, type, name, instance key and deposed key.
type Key = [String; 5];

/// The objects of a state.
fn objects(state: &Json) -> BTreeMap<Key, Json> {
    let mut found = BTreeMap::new();
    for resource in state["resources"].as_array().unwrap().iter().filter(|one| one["mode"] == "managed") {
        for object in resource["instances"].as_array().unwrap() {
            let of = |name: &str| resource[name].to_string();
            let key =
                [of("module"), of("type"), of("name"), object["index_key"].to_string(), object["deposed"].to_string()];
            let mut object = object.clone();
            object["provider"] = resource["provider"].clone();
            found.insert(key, object);
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
    let sandbox = migrated();
    let ran = sandbox.run_in("tf", &["state", "export", "--terraform"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (before, after): (Json, Json) =
        (serde_json::from_str(STATE).unwrap(), serde_json::from_str(&ran.stdout).unwrap());
    let (before_all, after_all) = (objects(&before), objects(&after));
    assert_eq!(before_all.keys().collect::<Vec<_>>(), after_all.keys().collect::<Vec<_>>());
    for (key, before) in &before_all {
        let after = &after_all[key];
        for field in ["attributes", "schema_version", "status", "private", "create_before_destroy"] {
            assert_eq!(before[field], after[field], "{field} of {key:?}");
        }
        assert_eq!(sensitive(before), sensitive(after), "{key:?}");
        let named = |list: &Json| -> BTreeSet<String> {
            let all = list.as_array().into_iter().flatten().map(|one| one.as_str().unwrap());
            all.filter(|one| !one.starts_with("data.")).map(str::to_owned).collect()
        };
        assert_eq!(named(&before["dependencies"]), named(&after["dependencies"]), "{key:?}");
        let provider = |object: &Json| {
            object["provider"].as_str().unwrap().replace("registry.terraform.io", "registry.opentofu.org")
        };
        assert_eq!(provider(before), provider(after), "{key:?}");
    }
    let continues = (&after["lineage"], after["serial"].as_u64());
    assert_eq!(continues, (&before["lineage"], before["serial"].as_u64().map(|serial| serial + 1)));
    assert_eq!((&before["version"], &before["outputs"]), (&after["version"], &after["outputs"]));
}
