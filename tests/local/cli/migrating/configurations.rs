//! Migrates the configurations in `configurations`, each with the state that OpenTofu wrote, and exports them again.
//! `configurations/README.md` describes how they were created.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::{changes, mirror, objects};
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
        sandbox.copy(&directory().join(&name), &name);
        let state = fs::read_to_string(directory().join(&name).join("terraform.tfstate")).unwrap();
        for object in objects(&state) {
            if let (Some(file), Some(content)) = (object["filename"].as_str(), object["content"].as_str()) {
                sandbox.write(&format!("{name}/{file}"), content);
            }
        }
    }
    sandbox
}

#[test]
fn each_configuration_goes_on_without_changes_and_back() {
    let sandbox = sandbox();
    for name in all() {
        let [state, records] = ["terraform.tfstate", "purlin.db"].map(|file| format!("{name}/{file}"));
        sandbox.ok(&[&["init", "-f", &name], MIRROR].concat());
        let ran = sandbox.run(&[&["migrate", "-f", &name, "--records", &records], MIRROR].concat());
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        assert_eq!(changes(&sandbox, &name, &["--plugin-dir", "../mirror"]), [""; 0], "{name}");

        let export = ["state", "export", "--terraform", "-f", &name, "--state", &records, "--base", &state];
        let back = sandbox.json(&[&export, MIRROR].concat());
        let before: Json = serde_json::from_str(&fs::read_to_string(sandbox.path(&state)).unwrap()).unwrap();
        for field in ["outputs", "lineage", "terraform_version", "check_results"] {
            assert_eq!(before[field], back[field], "{name}: {field}");
        }
        assert_eq!(instances(&before), instances(&back), "{name}");
    }
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
