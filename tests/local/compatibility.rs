//! The CRDs stay compatible with those of the last release, which `crds/released` contains. CONTRIBUTING.md describes
//! how a release freezes them, and docs/compatibility.md what users can rely on.

mod cases;
mod definition;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};

use definition::incompatible_changes;
use serde::Deserialize;
use serde_json::Value as Json;

/// An incompatible change that is made on purpose.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// The line that the test reports.
    change: String,
    /// Why the change is necessary, and why it breaks few users or none.
    reason: String,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crds/released")
}

/// The version of the last release, and its CRDs.
fn released() -> (semver::Version, Vec<Json>) {
    let entries = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let versions: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    let [only] = versions.as_slice() else { panic!("crds/released must have one directory, not {versions:?}") };
    let name = only.file_name().unwrap().to_str().unwrap();
    let version = name.strip_prefix('v').unwrap_or(name).parse();
    let mut files: Vec<PathBuf> = fs::read_dir(only).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    (version.unwrap(), files.iter().map(|file| parse(&fs::read_to_string(file).unwrap())).collect())
}

fn current() -> Vec<Json> {
    purlin::api::crds().iter().map(|(_, text)| parse(text)).collect()
}

fn parse(yaml: &str) -> Json {
    serde_saphyr::from_str(yaml).unwrap()
}

/// Returns the changes without an exception, and the exceptions that are of no use.
fn unexplained(changes: Vec<String>, exceptions: &[Exception]) -> Vec<String> {
    let stale = exceptions.iter().filter(|exception| !changes.contains(&exception.change));
    let stale = stale.map(|exception| format!("an exception without a change: {}", exception.change));
    let silent = exceptions.iter().filter(|exception| exception.reason.trim().is_empty());
    let silent = silent.map(|exception| format!("an exception without a reason: {}", exception.change));
    let listed = |change: &String| exceptions.iter().any(|exception| &exception.change == change);
    let found: Vec<String> = stale.chain(silent).collect();
    changes.iter().filter(|change| !listed(change)).cloned().chain(found).collect()
}

#[test]
fn the_crds_are_compatible_with_the_last_release() {
    let (version, released) = released();
    let file = fs::read_to_string(directory().join("exceptions.yaml")).unwrap();
    let exceptions: Vec<Exception> = serde_saphyr::from_str(&file).unwrap();
    let problems = unexplained(incompatible_changes(&released, &current()), &exceptions);
    assert!(
        problems.is_empty(),
        "the CRDs are not compatible with those of {version} (hint: see CONTRIBUTING.md, `Changes of the CRDs`):\n{}",
        problems.join("\n")
    );
}

#[test]
fn the_released_crds_are_complete() {
    let (version, released) = released();
    let this: semver::Version = env!("CARGO_PKG_VERSION").parse().unwrap();
    assert!(version <= this, "crds/released has {version}, which is newer than {this}");
    assert!(released.iter().all(|crd| crd["kind"] == "CustomResourceDefinition"));
    let names: Vec<&str> = released.iter().map(|crd| crd["metadata"]["name"].as_str().unwrap()).collect();
    let kinds = ["datasources", "plans", "providerconfigs", "providers", "resources"];
    assert_eq!(names, kinds.map(|kind| format!("{kind}.purlin.dev")));
}

#[test]
fn an_exception_names_a_change_and_has_a_reason() {
    let exception = |change: &str, reason: &str| Exception { change: change.into(), reason: reason.into() };
    let left = |changes: &[&str], exceptions: &[Exception]| {
        unexplained(changes.iter().map(|&change| change.to_owned()).collect(), exceptions)
    };
    assert_eq!(left(&["a", "b"], &[exception("a", "no client used it")]), ["b"]);
    assert_eq!(left(&[], &[exception("a", "old")]), ["an exception without a change: a"]);
    assert_eq!(left(&["a"], &[exception("a", " ")]), ["an exception without a reason: a"]);
}
