//! `purlin migrate` and `purlin state export` with real providers.

mod configurations;
mod terraform;

use std::fs;

use serde_json::Value as Json;

use super::sandbox::Sandbox;
use crate::providers;

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

/// The changes of the next plan of a directory.
fn changes(sandbox: &Sandbox, directory: &str, options: &[&str]) -> Vec<String> {
    let ran = sandbox.run_in(directory, &[&["plan", "-o", "json"], options].concat());
    let plan: Json = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let errors = plan["diagnostics"].as_array().unwrap().iter().filter(|one| one["severity"] == "error");
    assert_eq!(errors.count(), 0, "{directory}: {plan}");
    let unchanged = ["NoOp", "Record"].map(Json::from);
    let changes = plan["changes"].as_array().unwrap().iter().filter(|change| !unchanged.contains(&change["action"]));
    changes.map(|one| format!("{} {}", one["address"], one["action"]).replace(['"', '\\'], "")).collect()
}
