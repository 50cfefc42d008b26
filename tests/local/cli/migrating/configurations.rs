//! Migrates the configurations in `configurations`, each with the state that OpenTofu wrote, and exports them again.
//! `configurations/README.md` describes how they were created.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::{mirror, objects};
use crate::cli::sandbox::Sandbox;

const MIRROR: &[&str] = &["--plugin-dir", "mirror"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/local/cli/migrating/configurations")
}

/// The names of the configurations.
fn all() -> Vec<String> {
    let entries = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> =
        entries.filter(|path| path.is_dir()).map(|path| path.file_name().unwrap().to_str().unwrap().into()).collect();
    names.sort();
    names
}

/// A sandbox with each configuration in a directory of its name, the files of their `local_file` objects, and a mirror
/// of all providers.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let published = ["random", "local", "time", "tls"].map(|name| ("hashicorp", name));
    mirror(&sandbox, &published);
    mirror(&sandbox, &[("purlin", "corner"), ("purlin", "legacy")]);
    for name in all() {
        copy(&sandbox, &directory().join(&name), &name);
        let state = fs::read_to_string(directory().join(&name).join("terraform.tfstate")).unwrap();
        for object in objects(&state) {
            if let (Some(file), Some(content)) = (object["filename"].as_str(), object["content"].as_str()) {
                sandbox.write(file, content);
            }
        }
    }
    sandbox
}

fn copy(sandbox: &Sandbox, from: &Path, to: &str) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{to}/{}", path.file_name().unwrap().to_str().unwrap());
        match path.is_dir() {
            true => copy(sandbox, &path, &name),
            false => sandbox.write(&name, &fs::read_to_string(&path).unwrap()),
        }
    }
}

/// The changes of the next plan.
fn changes(sandbox: &Sandbox, files: &str, records: &str) -> Vec<String> {
    let plan = sandbox.json(&[&["plan", "-o", "json", "-f", files, "--state", records], MIRROR].concat());
    let errors = plan["diagnostics"].as_array().unwrap().iter().filter(|one| one["severity"] == "error");
    assert_eq!(errors.count(), 0, "{files}: {plan}");
    let changes = plan["changes"].as_array().unwrap().iter().filter(|change| change["action"] != "NoOp");
    changes.map(|one| format!("{} {}", one["address"], one["action"])).collect()
}

fn lines<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.starts_with(prefix)).collect()
}

#[test]
fn each_configuration_migrates_to_no_changes_and_back() {
    let sandbox = sandbox();
    let mut notes = String::new();
    for name in all() {
        let [state, out, records] = ["terraform.tfstate", "infra", "purlin.db"].map(|file| format!("{name}/{file}"));
        let migrate = ["migrate", "--state", &state, "--config", &name, "--out", &out, "--records", &records];
        let ran = sandbox.run(&[&migrate, MIRROR].concat());
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        let manifests = fs::read_to_string(sandbox.path(&out).join("resources.yaml")).unwrap();
        assert_eq!(changes(&sandbox, &out, &records), [""; 0], "{name}: {manifests}");
        expect_test::expect_file![directory().join(&name).join("expected.yaml")].assert_eq(&manifests);
        let own = lines(&ran.stderr, "note: ");
        notes.extend([format!("{name}\n")].into_iter().chain(own.into_iter().map(|note| format!("  {note}\n"))));

        let export = ["state", "export", "--terraform", "--state", &records, "--base", &state, "--config", &name];
        let back = sandbox.json(&[&export, MIRROR].concat());
        let before: Json = serde_json::from_str(&fs::read_to_string(sandbox.path(&state)).unwrap()).unwrap();
        for field in ["outputs", "lineage", "terraform_version", "check_results"] {
            assert_eq!(before[field], back[field], "{name}: {field}");
        }
        if !has_moves(&sandbox, &name) {
            assert_eq!(instances(&before), instances(&back), "{name}");
        }
    }
    expect_test::expect_file![directory().join("notes.txt")].assert_eq(&notes);
}

fn has_moves(sandbox: &Sandbox, name: &str) -> bool {
    fs::read_to_string(sandbox.path(name).join("main.tf")).unwrap().contains("moved {")
}

/// The instances of a state by address, without the order of paths, and without dependencies that no state has: data
/// sources, and resources without objects.
fn instances(state: &Json) -> BTreeMap<String, Json> {
    let mut found = BTreeMap::new();
    let text = |resource: &Json, field: &str| resource[field].as_str().unwrap_or_default().to_owned();
    let last = |resource: &Json| format!("{}.{}\"", text(resource, "type"), text(resource, "name"));
    let managed = state["resources"].as_array().unwrap().iter().filter(|one| one["mode"] == "managed");
    let in_module = |resource: &Json| {
        let module = text(resource, "module");
        let steps = module.split("module.").skip(1).map(|step| step.split(['[', '.']).next().unwrap());
        let modules: String = steps.map(|step| format!("module.{step}.")).collect();
        format!("\"{modules}{}", last(resource))
    };
    let existing: Vec<String> = managed.map(in_module).collect();
    for resource in state["resources"].as_array().unwrap() {
        let text = |field: &str| resource[field].as_str().unwrap_or_default();
        let address = [text("module"), text("mode"), text("type"), text("name"), text("provider")].join(" ");
        for instance in resource["instances"].as_array().unwrap() {
            let mut instance = instance.clone();
            for field in ["sensitive_attributes", "dependencies"] {
                let mut sorted: Vec<String> =
                    instance[field].as_array().into_iter().flatten().map(ToString::to_string).collect();
                sorted.retain(|one| field != "dependencies" || existing.contains(one));
                sorted.sort();
                instance[field] = json!(sorted);
            }
            found.insert(format!("{address} {}", instance["index_key"]), instance);
        }
    }
    found
}

#[test]
fn each_state_migrates_without_its_configuration() {
    let sandbox = sandbox();
    for name in all() {
        let [state, out, records] = ["terraform.tfstate", "plain", "plain.db"].map(|file| format!("{name}/{file}"));
        let migrate = ["migrate", "--state", &state, "--out", &out, "--records", &records];
        let ran = sandbox.run(&[&migrate, MIRROR].concat());
        if name == "09-nested" {
            // A state contains no write-only arguments.
            let error = "`legacy_nested.secret`: the next plan updates it (`secret_wo_version`)";
            assert!(ran.one_error().contains(error), "{ran:?}");
            assert!(!sandbox.path(&out).exists() && !sandbox.path(&records).exists());
            let ran = sandbox.run(&[&migrate, MIRROR, &["--allow-changes"]].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(ran.stderr.contains(&format!("warning: {error}")), "{ran:?}");
            let manifests = fs::read_to_string(sandbox.path(&out).join("resources.yaml")).unwrap();
            assert!(manifests.contains("wait: false") && !manifests.contains("uid"), "{manifests}");
            continue;
        }
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        let manifests = fs::read_to_string(sandbox.path(&out).join("resources.yaml")).unwrap();
        assert_eq!(changes(&sandbox, &out, &records), [""; 0], "{name}: {manifests}");
    }
}

/// The configuration of a plan as JSON contains neither expressions nor `dynamic` blocks.
#[test]
fn a_plan_as_json_names_the_arguments() {
    let sandbox = sandbox();
    for name in ["08-dynamic", "09-nested", "23-write-only"] {
        let [state, out, records] = ["terraform.tfstate", "plan", "plan.db"].map(|file| format!("{name}/{file}"));
        let plan = format!("{name}/plan.json");
        let migrate = ["migrate", "--state", &state, "--config", &plan, "--out", &out, "--records", &records];
        let ran = sandbox.run(&[&migrate, MIRROR].concat());
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        let manifests = fs::read_to_string(sandbox.path(&out).join("resources.yaml")).unwrap();
        assert_eq!(changes(&sandbox, &out, &records), [""; 0], "{name}: {manifests}");
        for absent in ["uid", "annotations", "{}", "TCP", "\"\""] {
            assert!(name == "08-dynamic" || !manifests.contains(absent), "{absent}: {manifests}");
        }
        assert!(name == "08-dynamic" || !manifests.contains("open-sesame"), "{manifests}");
    }
}
