//! `purlin migrate` and `purlin state export` with real providers.

mod configurations;
mod terraform;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value as Json, json};

use super::sandbox::{CommandResult, Sandbox};
use crate::providers;

/// A state of Terraform 1.9, and the output of `terraform show -json` for its configuration.
const STATE: &str = include_str!("migrating/terraform.tfstate");
const PLAN: &str = include_str!("migrating/plan.json");

const MIGRATE: &[&str] = &["migrate", "--state", "terraform.tfstate", "--out", "infra", "--plugin-dir", "mirror"];
const FILES: &[&str] = &["-f", "infra", "--plugin-dir", "mirror"];

/// A sandbox with the state, the files of its `local_file` objects, and a mirror of the providers.
fn sandbox(state: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    mirror(&sandbox, &[("hashicorp", "random"), ("hashicorp", "local")]);
    fs::create_dir(sandbox.path("site")).unwrap();
    for object in objects(state) {
        if let (Some(name), Some(content)) = (object["filename"].as_str(), object["content"].as_str()) {
            sandbox.write(name, content);
        }
    }
    sandbox.write("terraform.tfstate", state);
    sandbox
}

/// Copies providers into the mirror.
fn mirror(sandbox: &Sandbox, packages: &[(&str, &str)]) {
    for (namespace, name) in packages {
        let platform = purlin::install::Platform::current().to_string();
        let directory = sandbox.path(&format!("mirror/registry.opentofu.org/{namespace}/{name}/9.9.9/{platform}"));
        fs::create_dir_all(&directory).unwrap();
        fs::copy(providers::program(name), directory.join(format!("terraform-provider-{name}"))).unwrap();
    }
}

/// The attributes of every object of a state.
fn objects(state: &str) -> Vec<Json> {
    let state: Json = serde_json::from_str(state).unwrap_or_default();
    let resources = state["resources"].as_array().cloned().unwrap_or_default();
    let instances = resources.iter().flat_map(|one| one["instances"].as_array().cloned().unwrap_or_default());
    instances.map(|one| one["attributes"].clone()).collect()
}

fn run(sandbox: &Sandbox, command: &[&str], arguments: &[&str]) -> CommandResult {
    sandbox.run(&[command, arguments].concat())
}

/// The changes of a plan, including record-only steps.
fn changes(sandbox: &Sandbox) -> Vec<String> {
    let plan = sandbox.json(&[&["plan", "-o", "json"], FILES].concat());
    assert_eq!(plan["diagnostics"], json!([]), "{plan}");
    let changes = plan["changes"].as_array().unwrap().iter().filter(|change| change["action"] != "NoOp");
    changes.map(|one| format!("{} {} ({})", one["address"], one["action"], one["reason"]).replace('"', "")).collect()
}

#[test]
fn the_plan_after_a_migration_says_no_changes() {
    let sandbox = sandbox(STATE);
    let ran = run(&sandbox, MIGRATE, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let manifests = fs::read_to_string(sandbox.path("infra/resources.yaml")).unwrap();
    assert_eq!(changes(&sandbox), [""; 0], "{manifests}");
    let secrets = fs::metadata(sandbox.path("infra/secrets.yaml")).unwrap().permissions().mode();
    assert_eq!(secrets & 0o777, 0o600);
    assert!(!manifests.contains("tok_en") && !manifests.contains("unguessable"));
    expect_test::expect_file!["migrating/plain.yaml"].assert_eq(&manifests);
    expect_test::expect![[r#"
        note: `registry.terraform.io/hashicorp/local` is installed from registry.opentofu.org
        note: `registry.terraform.io/hashicorp/random` is installed from registry.opentofu.org
        note: `data.local_file.motd` is skipped: its arguments are only in the configuration: pass it with --config
        note: the output `url` is skipped; use `spec.publish` instead
        warning: infra/secrets.yaml contains sensitive values in plain text and is readable only by you
        Migrated 10 resources with 12 objects: manifests in infra, records in purlin.db.
        Next: purlin plan -f infra
    "#]]
    .assert_eq(&ran.stderr);
}

#[test]
fn the_configuration_restores_references() {
    let sandbox = sandbox(STATE);
    sandbox.write("plan.json", PLAN);
    let ran = run(&sandbox, MIGRATE, &["--config", "plan.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let manifests = fs::read_to_string(sandbox.path("infra/resources.yaml")).unwrap();
    assert_eq!(changes(&sandbox), [""; 0], "{manifests}");
    expect_test::expect_file!["migrating/configured.yaml"].assert_eq(&manifests);
    expect_test::expect![[r#"
        ---
        apiVersion: purlin.dev/v1alpha1
        kind: Provider
        metadata:
          name: local
        spec:
          source: registry.opentofu.org/hashicorp/local
        ---
        apiVersion: purlin.dev/v1alpha1
        kind: Provider
        metadata:
          name: random
        spec:
          source: registry.opentofu.org/hashicorp/random
          version: ">= 3.0"
    "#]]
    .assert_eq(&fs::read_to_string(sandbox.path("infra/providers.yaml")).unwrap());
}

/// The state and the configuration with a data source and a resource that depends on it.
fn with_data() -> (String, String) {
    let (mut state, mut plan): (Json, Json) =
        (serde_json::from_str(STATE).unwrap(), serde_json::from_str(PLAN).unwrap());
    let resources = state["resources"].as_array_mut().unwrap();
    let motd = resources.iter_mut().find(|one| one["mode"] == "data").unwrap();
    motd["instances"] = json!([{
        "schema_version": 0,
        "attributes": {"filename": "site/motd", "content": "welcome", "id": "c0ffee"},
        "sensitive_attributes": [],
    }]);
    resources.push(json!({
        "mode": "managed", "type": "terraform_data", "name": "banner",
        "provider": "provider[\"terraform.io/builtin/terraform\"]",
        "instances": [{
            "schema_version": 0,
            "attributes": {
                "id": "5f3a", "input": {"value": "welcome!", "type": "string"},
                "output": {"value": "welcome!", "type": "string"}, "triggers_replace": null,
            },
            "sensitive_attributes": [], "dependencies": ["random_pet.name"],
        }],
    }));
    let configured = plan["configuration"]["root_module"]["resources"].as_array_mut().unwrap();
    configured.extend([
        json!({
            "address": "data.local_file.motd", "mode": "data", "type": "local_file", "name": "motd",
            "expressions": {"filename": {"constant_value": "site/motd"}}, "depends_on": ["random_pet.name"],
        }),
        json!({
            "address": "terraform_data.banner", "mode": "managed", "type": "terraform_data", "name": "banner",
            "expressions": {"input": {"references": ["data.local_file.motd.content", "data.local_file.motd"]}},
        }),
    ]);
    (state.to_string(), plan.to_string())
}

#[test]
fn configured_data_sources_are_migrated() {
    let (state, plan) = with_data();
    let sandbox = sandbox(&state);
    sandbox.write("plan.json", &plan);
    let ran = run(&sandbox, MIGRATE, &["--config", "plan.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("skipped: data") && ran.stderr.contains(", 1 data source:"), "{}", ran.stderr);
    let manifests = fs::read_to_string(sandbox.path("infra/resources.yaml")).unwrap();
    let of = |address: &str| {
        let from = manifests.find(&format!("# {address}\n")).unwrap();
        manifests[from..].split("---").next().unwrap().to_owned()
    };
    expect_test::expect![[r#"
        # data.local_file.motd
        apiVersion: purlin.dev/v1alpha1
        kind: DataSource
        metadata:
          name: motd
        spec:
          config:
            filename: site/motd
          dependsOn:
          - name: name
          type: local_file
    "#]]
    .assert_eq(&of("data.local_file.motd"));
    expect_test::expect![[r#"
        # terraform_data.banner
        apiVersion: purlin.dev/v1alpha1
        kind: Resource
        metadata:
          name: banner
        spec:
          config:
            input: ${data.motd.content}!
          type: terraform_data
    "#]]
    .assert_eq(&of("terraform_data.banner"));
    assert_eq!(changes(&sandbox), [""; 0], "{manifests}");
    // The data source has no record, and its dependent depends on the dependencies of the data source.
    let shown = sandbox.json(&["state", "list", "-o", "json"]);
    let objects = shown["objects"].as_array().unwrap();
    assert!(objects.iter().all(|one| !one["address"].as_str().unwrap().starts_with("data.")));
    let banner = objects.iter().find(|one| one["address"] == "banner").unwrap();
    assert_eq!(banner["dependencies"], json!(["name"]));
    sandbox.write("site/motd", "farewell");
    assert_eq!(changes(&sandbox), ["banner Update ()"]);
}

#[test]
fn unknown_data_sources_are_skipped() {
    let (state, plan) = with_data();
    let (mut state, mut plan): (Json, Json) =
        (serde_json::from_str(&state).unwrap(), serde_json::from_str(&plan).unwrap());
    // No registry exists at the second address.
    for (type_name, provider) in
        [("local_folder", "registry.terraform.io/hashicorp/local"), ("http", "localhost:1/hashicorp/http")]
    {
        state["resources"].as_array_mut().unwrap().push(json!({
            "mode": "data", "type": type_name, "name": "old",
            "provider": format!("provider[\"{provider}\"]"),
            "instances": [{"schema_version": 0, "attributes": {"id": "x", "content": "welcome"}, "sensitive_attributes": []}],
        }));
        plan["configuration"]["root_module"]["resources"].as_array_mut().unwrap().push(json!({
            "address": format!("data.{type_name}.old"), "mode": "data", "type": type_name, "name": "old",
            "expressions": {"id": {"constant_value": "x"}},
        }));
    }
    let all = plan["configuration"]["root_module"]["resources"].as_array_mut().unwrap();
    let banner = all.iter_mut().find(|one| one["name"] == "banner").unwrap();
    banner["expressions"]["input"] = json!({"references": ["data.http.old.content", "data.http.old"]});
    let sandbox = sandbox(&state.to_string());
    sandbox.write("plan.json", &plan.to_string());
    let ran = run(&sandbox, MIGRATE, &["--config", "plan.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let assert_reported = |part: &str| assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    assert_reported(
        "note: `data.local_folder.old`: the provider `local` has no data source `local_folder`; it is skipped",
    );
    assert_reported("note: `data.http.old`: ");
    assert_reported(", 1 data source:");
    let providers = fs::read_to_string(sandbox.path("infra/providers.yaml")).unwrap();
    assert!(!providers.contains("http"), "{providers}");
    let manifests = fs::read_to_string(sandbox.path("infra/resources.yaml")).unwrap();
    assert!(manifests.contains("input: welcome!"), "{manifests}");
    assert_eq!(changes(&sandbox), [""; 0], "{manifests}");
}

#[test]
fn changes_after_a_migration_are_planned() {
    let sandbox = sandbox(STATE);
    assert_eq!(run(&sandbox, MIGRATE, &[]).code, Some(0));
    let manifests = fs::read_to_string(sandbox.path("infra/resources.yaml")).unwrap();
    let changed = manifests.replace("filename: site/token", "filename: site/secret").replace("length: 3", "length: 4");
    sandbox.write("infra/resources.yaml", &changed);
    let forced =
        ["token Replace (attributes force replacement)", "zone[\\south\\] Replace (attributes force replacement)"];
    assert_eq!(changes(&sandbox), forced);
    let applied = run(&sandbox, &["apply", "--yes"], FILES);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(sandbox.path("site/secret").is_file() && !sandbox.path("site/token").exists());
    assert_eq!(changes(&sandbox), [""; 0]);
}

#[test]
fn an_exported_state_migrates_to_the_same_records() {
    let sandbox = sandbox(STATE);
    assert_eq!(run(&sandbox, MIGRATE, &[]).code, Some(0));
    let export = ["state", "export", "--terraform", "--lineage", "x", "--serial", "8"];
    let first = run(&sandbox, &export, &["--state", "purlin.db"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    sandbox.write("back.tfstate", &first.stdout);
    let again =
        ["migrate", "--state", "back.tfstate", "--out", "again", "--records", "again.db", "--plugin-dir", "mirror"];
    let ran = sandbox.run(&again);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let list = |file: &str, directory: &str| {
        let mut list = sandbox.json(&["state", "list", "-o", "json", "--state", file]);
        for object in list["objects"].as_array_mut().unwrap() {
            assert_eq!(object["source"].take(), format!("{directory}/resources.yaml"));
        }
        list
    };
    assert_eq!(list("again.db", "again"), list("purlin.db", "infra"));
    assert_eq!(run(&sandbox, &export, &["--state", "again.db"]).stdout, first.stdout);

    let written: Json = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!((&written["version"], &written["serial"], &written["lineage"]), (&json!(4), &json!(8), &json!("x")));
    let before: Json = serde_json::from_str(STATE).unwrap();
    let pet = |state: &Json| {
        let all = state["resources"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["type"] == "random_pet" && one["name"] == "zone").unwrap()["instances"].clone()
    };
    let (before, after) = (pet(&before), pet(&written));
    for (before, after) in before.as_array().unwrap().iter().zip(after.as_array().unwrap()) {
        assert_eq!((&before["attributes"], &before["index_key"]), (&after["attributes"], &after["index_key"]));
    }
    let out = run(&sandbox, &export, &["--state", "purlin.db", "--out", "out.tfstate"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(fs::metadata(sandbox.path("out.tfstate")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn skip_destroy_is_migrated_and_exported() {
    let kept = pet("kept", "", &[instance("calm-cat", &json!({"skip_destroy": true}))]);
    let sandbox = sandbox(&state(&json!([kept, pet("other", "", &[instance("odd-yak", &json!({}))])])));
    assert_eq!(run(&sandbox, MIGRATE, &[]).code, Some(0));
    assert_eq!(changes(&sandbox), [""; 0]);
    let manifests = fs::read_to_string(sandbox.path("infra/resources.yaml")).unwrap();
    assert_eq!(manifests.matches("deletionPolicy: Orphan").count(), 1, "{manifests}");
    let back = sandbox.json(&["state", "export", "--terraform", "--state", "purlin.db"]);
    let skip_destroy = |at: usize| back["resources"][at]["instances"][0]["skip_destroy"].clone();
    assert_eq!((skip_destroy(0), skip_destroy(1)), (json!(true), Json::Null));
}

#[test]
fn a_resource_that_is_not_always_enabled_is_migrated() {
    let main = r#"
        variable "wanted" { default = true }
        resource "random_pet" "extra" {
          lifecycle { enabled = var.wanted }
        }
    "#;
    let sandbox = sandbox(&state(&json!([pet("extra", "", &[instance("odd-yak", &json!({}))])])));
    sandbox.write("config/main.tf", main);
    let ran = run(&sandbox, MIGRATE, &["--config", "config"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("note: "), "{ran:?}");
    assert_eq!(changes(&sandbox), [""; 0]);
    let variables = fs::read_to_string(sandbox.path("infra/variables.yaml")).unwrap();
    sandbox.write("infra/variables.yaml", &variables.replace("true", "false"));
    let planned = changes(&sandbox);
    assert!(planned.len() == 1 && planned[0].starts_with("extra Destroy"), "{planned:?}");

    // The configuration has changed since the last apply.
    let main = main.replace("default = true", "default = false");
    sandbox.write("config/main.tf", &main);
    let again = ["migrate", "--state", "terraform.tfstate", "--out", "again", "--records", "again.db"];
    let ran = run(&sandbox, &again, &["--config", "config", "--plugin-dir", "mirror"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let note = "note: `random_pet.extra`: its instances are those of the state: with the expression, the next plan changes them";
    assert!(ran.stderr.contains(note), "{ran:?}");
}

/// A state with these resources.
fn state(resources: &Json) -> String {
    json!({"version": 4, "serial": 1, "lineage": "x", "resources": resources}).to_string()
}

/// A `random_pet`.
fn pet(name: &str, alias: &str, instances: &[Json]) -> Json {
    let provider = format!("provider[\"registry.opentofu.org/hashicorp/random\"]{alias}");
    json!({"mode": "managed", "type": "random_pet", "name": name, "provider": provider, "instances": instances})
}

fn instance(id: &str, more: &Json) -> Json {
    let attributes = json!({"id": id, "keepers": null, "length": 2, "prefix": null, "separator": "-"});
    let mut instance =
        json!({"schema_version": 0, "attributes": attributes, "private": "eyJub3RlIjoiZXlKaElqb3hmUT09In0="});
    instance.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    instance
}

#[test]
fn tainted_and_deposed_objects_and_provider_aliases_are_migrated() {
    let old = json!({"deposed": "8e7cdf03"});
    let resources = json!([
        pet("bad", "", &[instance("odd-yak", &json!({"status": "tainted"}))]),
        pet("left", "", &[instance("new-cat", &json!({})), instance("old-cat", &old)]),
        pet("gone", "", &[instance("last-cat", &old)]),
        pet("far", ".east", &[instance("far-cat", &json!({"dependencies": ["random_pet.left", "random_pet.bad"]}))]),
    ]);
    let sandbox = sandbox(&state(&resources));
    let ran = run(&sandbox, MIGRATE, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("does not contain the configuration of the ProviderConfig `random-east`"), "{ran:?}");
    let manifests = fs::read_to_string(sandbox.path("infra/resources.yaml")).unwrap();
    assert!(manifests.contains("name: random-east"), "{manifests}");
    let planned = changes(&sandbox);
    let expected =
        ["bad Replace (tainted)", "gone Destroy (deposed by a replacement)", "left Destroy (deposed by a replacement)"];
    assert_eq!(planned, expected, "{manifests}");
    let export = run(&sandbox, &["state", "export", "--terraform"], &["--state", "purlin.db"]);
    for part in [
        r#""deposed":"8e7cdf03""#,
        r#""status":"tainted""#,
        r#"random\"].east"#,
        r#""private":"eyJub3RlIjoiZXlKaElqb3hmUT09In0=""#,
    ] {
        assert!(export.stdout.contains(part), "{part}: {export:?}");
    }
}

#[test]
fn migration_errors_are_reported_and_write_nothing() {
    let one = || pet("a", "", &[instance("odd-yak", &json!({}))]);
    let broken = json!([{"mode": "managed", "type": "random_pet", "name": "a", "provider": "x", "instances": []}]);
    let mut cat = one();
    cat["type"] = json!("random_cat");
    let mut newer = one();
    newer["instances"][0]["schema_version"] = json!(7);
    let clash = json!([pet("a_b", "", &[]), pet("a-b", "", &[])]);
    let cases = [
        (json!({"version": 3}).to_string(), "has version 3, not 4"),
        (json!({"serial": 1, "encrypted_data": "x", "encryption_version": "v0"}).to_string(), "the state is encrypted"),
        ("<html>".to_owned(), "the state cannot be read"),
        (state(&broken), "resources[0]: `x` is not a valid provider address"),
        (state(&json!([cat])), "`random_cat.a`: the provider `random` has no type `random_cat`"),
        (state(&json!([newer])), "written by a newer version of the provider (schema version 7, supported: 0)"),
        (state(&clash), "`random_pet.a-b` and `random_pet.a_b` would both be named `random-pet-a-b`"),
    ];
    for (text, expected) in cases {
        let sandbox = sandbox(&text);
        let ran = run(&sandbox, MIGRATE, &[]);
        assert!(ran.one_error().contains(expected), "{ran:?}");
        assert!(!sandbox.path("infra").exists() && !sandbox.path("infra.part").exists(), "{expected}");
        assert!(!sandbox.path("purlin.db").exists(), "{expected}");
    }

    let sandbox = sandbox(&state(&json!([one()])));
    let provider = "apiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: { name: random }\nspec: { package: { path: nowhere } }\n";
    sandbox.write("files/random.yaml", provider);
    let ran = sandbox.run(&["migrate", "--state", "terraform.tfstate", "--out", "infra", "-f", "files"]);
    assert!(
        ran.one_error().contains(
            "`registry.opentofu.org/hashicorp/random`: the program of the provider `random` is not available"
        ),
        "{ran:?}"
    );
    assert!(
        run(&sandbox, MIGRATE, &["--config", "terraform.tfstate"]).one_error().contains("contains no `configuration`")
    );
    let ran = run(&sandbox, MIGRATE, &["--name", "random_pet.a=Big"]);
    assert!(ran.one_error().contains("cannot be named `Big`"), "{ran:?}");
    assert_eq!(run(&sandbox, MIGRATE, &["--name", "random_pet.a=big"]).code, Some(0));
    assert_eq!(sandbox.recorded(), ["big"]);

    // Existing files are never overwritten.
    let ran = run(&sandbox, MIGRATE, &[]);
    assert!(ran.one_error().contains("`purlin.db` already contains records"), "{ran:?}");
    let ran = run(&sandbox, MIGRATE, &["--records", "other.db"]);
    assert!(ran.one_error().contains("`infra` already exists"), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["big"]);
    assert!(!sandbox.path("other.db").exists());
}
