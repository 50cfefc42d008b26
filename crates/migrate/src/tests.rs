//! Migrations of small configurations: what the manifests contain, and what the notes name.

use serde_json::{Value as Json, json};

use super::*;
use model::RecordedObject;

const RANDOM: &str = "provider[\"registry.opentofu.org/hashicorp/random\"]";
const BUILT_IN: &str = "provider[\"terraform.io/builtin/terraform\"]";

/// A resource of a state. An address in a module begins with `module.NAME.`.
fn resource(address: &str, provider: &str, instances: &Json) -> Json {
    let parts: Vec<&str> = address.split('.').collect();
    let (module, own) = parts.split_at(parts.len() - 2);
    let (module, is_data) = match module {
        [before @ .., "data"] => (before, true),
        all => (all, false),
    };
    json!({
        "module": module.join("."), "mode": if is_data { "data" } else { "managed" }, "type": own[0], "name": own[1],
        "provider": provider, "instances": instances,
    })
}

/// A `terraform_data` with one instance.
fn data(name: &str, input: &str) -> Json {
    let value = json!({"value": input, "type": "string"});
    let attributes = json!({"id": "1", "input": value, "output": value, "triggers_replace": null});
    resource(&format!("terraform_data.{name}"), BUILT_IN, &json!([{"attributes": attributes}]))
}

fn migration(files: &[(&str, &str)], resources: &[Json]) -> Result<Migration, Vec<Problem>> {
    let read = |_: &str| Ok(files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect());
    let configuration = Configuration::read(&read, &[]).unwrap();
    let state = json!({"version": 4, "serial": 1, "lineage": "x", "outputs": {}, "resources": resources});
    Migration::new(&state.to_string(), Some(configuration), Config::default(), &BTreeMap::new())
}

/// Migrates a state with its configuration. The attributes of the objects of a provider are all arguments.
fn gathered(files: &[(&str, &str)], resources: &[Json]) -> Gathered {
    let migration = migration(files, resources).unwrap();
    let adopted = |one: &Resource, object: &Object| {
        without_provider(one, object).unwrap_or_else(|| {
            let value = Value::from_json(serde_json::from_str(&object.content.attributes).unwrap());
            let object = RecordedObject { value: value.clone(), ..RecordedObject::default() };
            Ok(AdoptedObject { object, config: value.clone(), full: value, problems: Vec::new() })
        })
    };
    let answers =
        migration.resources().iter().map(|one| one.objects.iter().map(|object| adopted(one, object)).collect());
    let answers: Vec<Result<Vec<AdoptedObject>, Problem>> = answers.collect();
    migration.gather(answers).unwrap()
}

fn migrated(files: &[(&str, &str)], resources: &[Json]) -> MigrationResult {
    gathered(files, resources).write(&Adjustments::default(), |_, _| None).unwrap()
}

fn file<'r>(result: &'r MigrationResult, name: &str) -> &'r str {
    &result.files.iter().find(|file| file.name == name).unwrap().text
}

/// The `spec` of the Resource or `DataSource` with this name.
fn spec(result: &MigrationResult, name: &str) -> Json {
    let documents = file(result, RESOURCES).split("---\n").filter(|text| !text.is_empty());
    let mut documents = documents.map(|text| serde_saphyr::from_str::<Json>(text).unwrap());
    documents.find(|one| one["metadata"]["name"] == name).unwrap()["spec"].take()
}

#[test]
fn the_environment_of_a_provisioner_is_translated_or_the_hook_is_left_out() {
    let main = r#"
        variable "env" { default = { REGION = "eu", EMPTY = null } }
        variable "directory" { default = null }
        variable "secret" {
          sensitive = true
          default   = { KEY = "k" }
        }
        resource "terraform_data" "server" {
          input = "v1"
          provisioner "local-exec" {
            command     = "start"
            environment = merge(var.env, { STAGE = "test", SIZE = 2 })
          }
          provisioner "local-exec" {
            command     = "link"
            environment = var.secret
          }
          provisioner "local-exec" {
            command     = "stop"
            working_dir = var.directory
            environment = null
          }
        }"#;
    let result = migrated(&[("main.tf", main)], &[data("server", "v1")]);
    let commands: Vec<Json> = spec(&result, "server")["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| hook["exec"]["command"].clone())
        .collect();
    let expected = [
        json!(["env", "REGION=eu", "SIZE=2", "STAGE=test", "/bin/sh", "-c", "start"]),
        json!(["/bin/sh", "-c", "stop"]),
    ];
    assert_eq!(commands, expected);
    let note = "`terraform_data.server`: the provisioner `local-exec` is left out: its environment is not known";
    assert_eq!(result.notes, [note]);
}

#[test]
fn enabled_is_an_argument_of_its_type_and_a_setting_of_the_lifecycle() {
    let main = r#"
        variable "wanted" { default = true }
        resource "terraform_data" "zone" { input = "x" }
        resource "random_site" "own" {
          for_each = { a = terraform_data.zone.output, b = "y" }
          enabled  = var.wanted
          title    = each.value
        }
        resource "random_site" "extra" {
          title = "z"
          lifecycle { enabled = var.wanted }
        }
        resource "random_site" "fixed" {
          title = "z"
          lifecycle { enabled = true }
        }"#;
    let own = |key: &str, title: &str| json!({"index_key": key, "attributes": {"enabled": true, "title": title}});
    let single = || json!([{"attributes": {"title": "z"}}]);
    let resources = [
        data("zone", "x"),
        resource("random_site.own", RANDOM, &json!([own("a", "x"), own("b", "y")])),
        resource("random_site.extra", RANDOM, &single()),
        resource("random_site.fixed", RANDOM, &single()),
    ];
    let gathered = gathered(&[("main.tf", main)], &resources);
    let result = gathered.write(&Adjustments::default(), |_, _| None).unwrap();
    let own = spec(&result, "own");
    assert_eq!(own["forEach"], json!({"a": "${zone.output}", "b": "y"}));
    assert_eq!(own["config"], json!({"enabled": "${inputs.wanted == \"true\"}", "title": "${each.value}"}));
    let extra = spec(&result, "extra");
    assert_eq!(extra["enabled"], json!("${inputs.wanted == \"true\"}"));
    assert_eq!(extra["config"], json!({"title": "z"}));
    assert_eq!(spec(&result, "fixed")["enabled"], json!(true));
    assert_eq!(result.notes, [""; 0]);

    let instances = BTreeSet::from(["own", "extra"].map(Arc::<str>::from));
    let result = gathered.write(&Adjustments { instances, ..Adjustments::default() }, |_, _| None).unwrap();
    assert_eq!(spec(&result, "own")["forEach"], json!({"a": {"title": "x"}, "b": {"title": "y"}}));
    assert_eq!(spec(&result, "extra")["enabled"], Json::Null);
    let note = |name: &str| {
        format!(
            "`random_site.{name}`: its instances are those of the state: with the expression, the next plan changes them"
        )
    };
    for name in ["own", "extra"] {
        assert!(result.notes.contains(&note(name)), "{:?}", result.notes);
    }
}

#[test]
fn instances_with_other_keys_than_in_the_state_are_named() {
    let main = r#"
        resource "terraform_data" "now_many" {
          count = 1
          input = "x"
        }"#;
    let result = migrated(&[("main.tf", main)], &[data("now_many", "x")]);
    assert_eq!(spec(&result, "now-many")["count"], Json::Null);
    let note = "`terraform_data.now_many`: its instances are those of the state: they have other keys";
    assert_eq!(result.notes, [note]);
}

#[test]
fn blocks_and_settings_without_counterpart_are_named() {
    let main = r#"
        variable "size" {
          default = 1
          validation {
            condition     = var.size > 0
            error_message = "too small"
          }
        }
        output "size" {
          value = var.size
          precondition {
            condition     = var.size < 9
            error_message = "too large"
          }
        }
        terraform {
          provider_meta "random" {}
        }
        check "health" {}
        action "cloud_call" "restart" {}
        removed {
          from = terraform_data.old
        }
        resource "terraform_data" "server" {
          input = "v1"
          lifecycle {
            prevent_destroy       = "true"
            create_before_destroy = "true"
            ignore_changes        = [rule.0.port]
            action_trigger {
              events  = [after_create]
              actions = [action.cloud_call.restart]
            }
          }
        }
        resource "terraform_data" "absent" { input = "x" }"#;
    let result = migrated(&[("main.tf", main)], &[data("server", "v1"), data("stray", "x")]);
    let expected = [
        "`action cloud_call.restart` is skipped: Purlin has no such block",
        "`check health` is skipped: Purlin has no such block",
        "`provider_meta random` is skipped: Purlin has no such block",
        "`terraform_data.absent` is skipped: the state does not contain it",
        "`terraform_data.server`: `action_trigger` is left out: Purlin has no such setting",
        "`terraform_data.stray` has the values of the state: the configuration does not contain it",
        "the conditions of the output `size` are left out: Purlin has only those of Resources",
        "the conditions of the variable `size` are left out: Purlin has only those of Resources",
    ];
    let mut notes = result.notes.clone();
    notes.sort();
    assert_eq!(notes, expected);
    let lifecycle = json!({"createBeforeDestroy": true, "ignoreChanges": ["rule[0].port"], "preventDestroy": true});
    assert_eq!(spec(&result, "server")["lifecycle"], lifecycle);
}

#[test]
fn dependencies_of_data_sources_include_modules() {
    let main = r#"
        resource "terraform_data" "base" { input = "x" }
        module "network" {
          source = "./network"
        }
        module "reader" {
          source     = "./reader"
          depends_on = [terraform_data.base]
        }
        data "random_list" "all" {
          depends_on = [module.network]
        }
        resource "terraform_data" "last" {
          input      = "x"
          depends_on = [data.random_list.all]
        }"#;
    let network = r#"resource "random_site" "net" {}"#;
    let reader = r#"data "random_list" "inner" {}"#;
    let files = [("main.tf", main), ("network/main.tf", network), ("reader/main.tf", reader)];
    let instances = || json!([{"attributes": {"names": []}}]);
    let resources = [
        data("base", "x"),
        data("last", "x"),
        resource("module.network.random_site.net", RANDOM, &instances()),
        resource("data.random_list.all", RANDOM, &instances()),
        resource("module.reader.data.random_list.inner", RANDOM, &instances()),
    ];
    let result = migrated(&files, &resources);
    assert_eq!(spec(&result, "all")["dependsOn"], json!([{"name": "network-net"}]));
    assert_eq!(spec(&result, "reader-inner")["dependsOn"], json!([{"name": "base"}]));
    assert_eq!(spec(&result, "last")["dependsOn"], json!([{"name": "data.all"}]));
}

#[test]
fn the_version_constraints_of_all_modules_apply() {
    let main = r#"
        terraform {
          required_providers {
            random = {
              source  = "hashicorp/random"
              version = ">= 3.0"
            }
          }
        }
        provider "random" { version = "!= 3.2.0" }
        module "inner" { source = "./inner" }"#;
    let inner = r#"
        terraform {
          required_providers {
            random = {
              source  = "hashicorp/random"
              version = "~> 3.1"
            }
            other = {
              source  = "example/other"
              version = "1.0"
            }
          }
        }"#;
    let pet = resource("random_pet.name", RANDOM, &json!([{"attributes": {"length": 2}}]));
    let result = migrated(&[("main.tf", main), ("inner/main.tf", inner)], &[pet]);
    let version = "version: \">= 3.0, != 3.2.0, ~> 3.1\"";
    assert!(file(&result, "providers.yaml").contains(version), "{}", file(&result, "providers.yaml"));
}

#[test]
fn instances_of_a_provider_configuration_are_an_error() {
    let provider = format!("{RANDOM}.by_region[\"eu\"]");
    let pet = resource("random_pet.name", &provider, &json!([{"attributes": {"length": 2}}]));
    let problems = migration(&[("main.tf", "")], &[pet]).unwrap_err();
    let expected = format!("resources[0]: random_pet.name: `{provider}` is an instance of a provider configuration");
    assert!(problems[0].message.contains(&expected), "{problems:?}");
}

#[test]
fn a_sensitive_collection_keeps_the_expressions_of_its_values() {
    let main = r#"
        resource "terraform_data" "source" { input = "x" }
        resource "random_secret" "login" {
          data = { password = terraform_data.source.output, user = "admin" }
          list = [terraform_data.source.output, "x"]
        }"#;
    let sensitive = json!([[{"type": "get_attr", "value": "data"}]]);
    let attributes = json!({"data": {"password": "x", "user": "admin"}, "list": ["x"]});
    let login = json!([{"attributes": attributes, "sensitive_attributes": sensitive}]);
    let result =
        migrated(&[("main.tf", main)], &[data("source", "x"), resource("random_secret.login", RANDOM, &login)]);
    let config = json!({
        "data": {"password": "${source.output}", "user": "${inputs.data_user}"},
        "list": ["${source.output}"],
    });
    assert_eq!(spec(&result, "login")["config"], config);
    assert!(file(&result, "secrets.yaml").contains("data_user: admin"), "{}", file(&result, "secrets.yaml"));
    let note = "`random_secret.login`: `list` has the value of the state: the state has another structure";
    assert_eq!(result.notes, [note]);
}

#[test]
fn write_only_arguments_have_their_expressions() {
    let main = r#"
        resource "terraform_data" "source" { input = "x" }
        resource "random_login" "translated" { secret_wo = terraform_data.source.output }
        resource "random_login" "left_out" { secret_wo = ephemeral.random_password.one.result }"#;
    let login = |name: &str| {
        let attributes = json!({"secret_wo": null});
        resource(&format!("random_login.{name}"), RANDOM, &json!([{"attributes": attributes}]))
    };
    let result = migrated(&[("main.tf", main)], &[data("source", "x"), login("translated"), login("left_out")]);
    assert_eq!(spec(&result, "translated")["config"], json!({"secret_wo": "${source.output}"}));
    assert_eq!(spec(&result, "left-out")["config"], json!({"secret_wo": null}));
    let note = "`random_login.left_out`: `secret_wo` is left out: `ephemeral.random_password` is not migrated";
    assert_eq!(result.notes, [note]);
}
