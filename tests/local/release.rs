//! The version is the same everywhere, and the workflows and scripts of a release fit together. `.ci/lint-workflows`
//! checks the syntax of the workflows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use regex::Regex;
use serde_json::Value as Json;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Json {
    serde_saphyr::from_str(&read(path)).unwrap()
}

fn run(script: &str, args: &[&str]) -> Output {
    Command::new(root().join(script)).args(args).output().unwrap()
}

fn stdout(script: &str, args: &[&str]) -> String {
    let output = run(script, args);
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn workflows() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(".github/workflows")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_version_is_that_of_cargo_toml() {
    assert_eq!(stdout(".ci/version", &[]).trim(), VERSION);
    let chart = yaml("charts/purlin/Chart.yaml");
    assert_eq!((chart["version"].as_str(), chart["appVersion"].as_str()), (Some(VERSION), Some(VERSION)));
    let values = yaml("charts/purlin/values.yaml");
    assert_eq!(Some(stdout(".ci/release/repository", &[]).trim()), values["image"]["repository"].as_str());
    assert_eq!((values["image"]["tag"].as_str(), values["image"]["digest"].as_str()), (Some(""), Some("")));
}

#[test]
fn the_documented_formats_are_those_of_the_code() {
    let sentence = format!("The formats today are {} for records,", purlin::store::codec::FORMAT);
    assert!(read("docs/upgrade.md").contains(&sentence), "docs/upgrade.md: {sentence}");
}

#[test]
fn every_action_is_pinned_by_its_commit() {
    let pinned = Regex::new(r"^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$").unwrap();
    let mut uses = 0;
    for workflow in workflows() {
        let text = fs::read_to_string(&workflow).unwrap();
        let actions = text.lines().filter_map(|line| line.split_once("uses: ").map(|(_, action)| action));
        for action in actions.filter(|action| !action.starts_with("./")) {
            assert!(pinned.is_match(action), "{}: {action}", workflow.display());
            uses += 1;
        }
    }
    assert!(uses > 10, "{uses}");
}

#[test]
fn every_job_has_a_limit_and_only_the_permissions_that_it_names() {
    for workflow in workflows() {
        let text = fs::read_to_string(&workflow).unwrap();
        let content: Json = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(content["permissions"], serde_json::json!({}), "{}", workflow.display());
        for (name, job) in content["jobs"].as_object().unwrap() {
            let at = format!("{}: {name}", workflow.display());
            assert!(job["permissions"].is_object(), "{at} has no permissions");
            assert!(job["uses"].is_string() || job["timeout-minutes"].is_number(), "{at} has no limit");
        }
        assert!(!text.contains("secrets."), "{}: only the token of the job is available", workflow.display());
    }
}

#[test]
fn the_scripts_of_the_workflows_exist() {
    let called = Regex::new(r"\.ci/[a-z/-]+").unwrap();
    let mut scripts = 0;
    for workflow in workflows() {
        let text = fs::read_to_string(&workflow).unwrap();
        let commands = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        for script in commands.flat_map(|line| called.find_iter(line)) {
            assert!(root().join(script.as_str()).is_file(), "{}: {}", workflow.display(), script.as_str());
            scripts += 1;
        }
    }
    assert!(scripts > 8, "{scripts}");
}

#[test]
fn a_tag_of_another_version_is_not_released() {
    let output = run(".ci/release/check", &["v0.0.1-other"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = format!("error: the tag is v0.0.1-other and the version in Cargo.toml is {VERSION} (hint:");
    assert!(!output.status.success() && stderr.contains(&expected), "{stderr}");
}

#[test]
fn the_notes_name_what_to_install_by_digest() {
    let (image, chart) = (format!("sha256:{:064x}", 1), format!("sha256:{:064x}", 2));
    let notes = stdout(".ci/release/notes", &[&image, &chart]);
    assert!(notes.contains(&format!("`ghcr.io/purlin-dev/purlin:{VERSION}@{image}`")), "{notes}");
    assert!(notes.contains(&format!("`ghcr.io/purlin-dev/charts/purlin:{VERSION}@{chart}`")), "{notes}");
}

#[test]
fn the_changes_of_a_version_are_its_section_of_the_changelog() {
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")?.split(' ').next()).unwrap();
    let changes = stdout(".ci/release/changes", &[newest]);
    assert!(changes.contains("\n- ") && !changes.contains("\n## "), "{changes}");
    assert_eq!(stdout(".ci/release/changes", &["0.0.1-other"]), "");
}
