//! Replays `tests/configurations`: what Purlin plans and does with each configuration is what OpenTofu has planned and done.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Map, Value as Json};

use crate::cli::sandbox::{CommandResult, Sandbox};
use crate::providers;

const MIRROR: &[&str] = &["--plugin-dir", "../mirror"];

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configurations/cases")
}

/// The names of the directories in a directory, sorted.
fn directories(of: &Path) -> Vec<String> {
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap());
    let directories = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<String> = directories.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn configurations_are_planned_and_applied_as_by_opentofu() {
    let differences: Vec<String> = directories(&cases()).iter().flat_map(|name| replay(name)).collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// Returns the differences.
fn replay(name: &str) -> Vec<String> {
    let golden = fs::read_to_string(cases().join(name).join("golden.json")).unwrap();
    let golden: BTreeMap<String, Json> = serde_json::from_str(&golden).unwrap();
    let sandbox = Sandbox::new();
    let package = format!("mirror/example.com/purlin/cloud/1.0.0/{}", purlin::install::Platform::current());
    fs::create_dir_all(sandbox.path(&package)).unwrap();
    let program = sandbox.path(&package).join("terraform-provider-cloud");
    fs::copy(providers::program("cloud"), program).unwrap();
    let mut differences = Differences { place: String::new(), found: Vec::new() };
    for step in directories(&cases().join(name)) {
        sandbox.copy(&cases().join(name).join(&step), "tf");
        run(&sandbox, &["init"]);
        differences.place = format!("{name} {step}");
        replay_step(&sandbox, &golden[&step], &["apply", "--yes"], &[], &mut differences);
    }
    differences.place = format!("{name} destroy");
    replay_step(&sandbox, &golden["destroy"], &["destroy", "--yes"], &["--destroy"], &mut differences);
    let left = serde_json::json!(left(&sandbox.path("tf/objects")));
    differences.compare("left in the cloud", &left, &golden["destroy"]["left"]);
    differences.found
}

/// The objects that still exist.
fn left(objects: &Path) -> Vec<String> {
    let files = directories(objects).into_iter().flat_map(|kind| fs::read_dir(objects.join(kind)).unwrap());
    let mut names: Vec<String> = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs a command. Random IDs are all the same.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> CommandResult {
    let mut ran = sandbox.run_in("tf", &[arguments, MIRROR].concat());
    let random = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    ran.stdout = random.replace_all(&ran.stdout, "UUID").into_owned();
    ran
}

#[track_caller]
fn json(sandbox: &Sandbox, arguments: &[&str]) -> Json {
    let ran = run(sandbox, arguments);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {ran:?}"))
}

struct Differences {
    /// The case and its step.
    place: String,
    found: Vec<String>,
}

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, ours: T, theirs: T) {
        if ours != theirs {
            self.found.push(format!("{}: {what}:\n  Purlin   {ours:?}\n  OpenTofu {theirs:?}", self.place));
        }
    }

    /// Compares entries by name.
    fn compare_all(&mut self, ours: &Map<String, Json>, theirs: &Map<String, Json>) {
        let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for name in names {
            match (ours.get(name), theirs.get(name)) {
                (Some(Json::Object(one)), Some(Json::Object(other))) => {
                    let before = self.found.len();
                    self.compare_all(one, other);
                    for found in &mut self.found[before..] {
                        *found = found.replacen(&self.place, &format!("{}: {name}", self.place), 1);
                    }
                }
                (one, other) => self.compare(name, one.unwrap_or(&Json::Null), other.unwrap_or(&Json::Null)),
            }
        }
    }
}

/// `apply`: the command that makes the changes. `options`: those of its plan.
fn replay_step(sandbox: &Sandbox, golden: &Json, apply: &[&str], options: &[&str], differences: &mut Differences) {
    let plan = json(sandbox, &[&["plan", "-o", "json"], options].concat());
    let problems = problems(&plan);
    differences.compare("problems", &problems, &golden_problems(golden));
    if !problems.iter().any(|problem| problem.starts_with("error")) {
        differences.compare_all(&changes(&plan), &golden_changes(&golden["changes"]));
        differences.compare_all(&output_changes(&plan), &golden_output_changes(&golden["output_changes"]));
        let ran = run(sandbox, apply);
        differences.compare("exit code of the apply", ran.code, Some(0));
        let again = json(sandbox, &[&["plan", "-o", "json"], options].concat());
        differences.compare_all(&changes(&again), &Map::new());
        differences.compare_all(&output_changes(&again), &Map::new());
    }
    let shown = json(sandbox, &["show", "-o", "json"]);
    let objects = shown["objects"].as_array().unwrap().iter();
    let objects = objects.map(|one| (one["address"].as_str().unwrap().to_owned(), one["values"].clone())).collect();
    let mut theirs = golden["objects"].as_object().unwrap().clone();
    theirs.iter_mut().for_each(|(address, values)| hide_stored(address, values));
    differences.compare_all(&objects, &theirs);
    let ran = sandbox.run_in("tf", &["output", "-json"]);
    let mut outputs: Json = serde_json::from_str(&ran.stdout).unwrap();
    for output in outputs.as_object_mut().unwrap().values_mut().filter(|one| one["sensitive"] == true) {
        output.as_object_mut().unwrap().remove("value");
    }
    differences.compare_all(outputs.as_object().unwrap(), golden["outputs"].as_object().unwrap());
}

/// The severities and places of the problems of a plan, without warnings about the order of changes and about what uses a value
/// with an error, which only Purlin has.
fn problems(plan: &Json) -> BTreeSet<String> {
    let all = plan["diagnostics"].as_array().unwrap().iter();
    all.filter_map(|one| {
        let [severity, summary, detail] = ["severity", "summary", "detail"].map(|name| one[name].as_str().unwrap());
        let place = detail.strip_prefix("at ").unwrap_or_default().split(';').next().unwrap();
        let is_own =
            severity == "warning" && (place.is_empty() || summary.contains("a value that it uses has an error"));
        (!is_own).then(|| problem(severity, place, summary))
    })
    .collect()
}

/// Without warnings that have no place, and what OpenTofu says about checks that it cannot make yet.
fn golden_problems(golden: &Json) -> BTreeSet<String> {
    let all = golden["problems"].as_array().into_iter().flatten().map(|one| one.as_str().unwrap());
    all.filter(|one| !one.ends_with("known after apply") && !one.starts_with("warning: :"))
        .map(|one| {
            let [severity, file, line, summary] = one.splitn(4, ':').collect::<Vec<_>>().try_into().unwrap();
            problem(severity, format!("{file}:{line}").trim(), summary.trim())
        })
        .collect()
}

/// A variable's error is at its block for OpenTofu, and at its condition for Purlin.
fn problem(severity: &str, place: &str, summary: &str) -> String {
    let of_variable = summary.contains("Invalid value for variable");
    let place = if of_variable { place.split(':').next().unwrap_or_default() } else { place };
    format!("{severity}: {place}")
}

/// What a plan changes, by address.
fn changes(plan: &Json) -> Map<String, Json> {
    let mut found = Map::new();
    for change in plan["changes"].as_array().unwrap() {
        let actions = match (change["action"].as_str().unwrap(), change["order"].as_str()) {
            ("NoOp" | "Record" | "Wait", _) => continue,
            ("Replace", Some("CreateFirst")) => "create,delete".to_owned(),
            ("Replace", _) => "delete,create".to_owned(),
            ("Destroy", _) => "delete".to_owned(),
            (other, _) => other.to_lowercase(),
        };
        let mut one = both_sides(change);
        one.insert("actions".to_owned(), actions.into());
        one.insert("unknown".to_owned(), marks(&change["afterUnknown"]));
        one.insert("imported".to_owned(), change["imported"].clone());
        one.insert("replace_paths".to_owned(), change["replacePaths"].clone());
        found.insert(change["address"].as_str().unwrap().to_owned(), one.into());
    }
    found
}

/// Without objects that only move, which no step changes. An object that is destroyed is not moved before.
fn golden_changes(golden: &Json) -> Map<String, Json> {
    let mut found = Map::new();
    for (address, one) in golden.as_object().unwrap().iter().filter(|(_, one)| one["actions"] != "no-op") {
        let mut one = one.as_object().unwrap().clone();
        for name in ["before", "after"] {
            hide_stored(address, one.entry(name).or_insert(Json::Null));
        }
        let unknown = one.get("unknown").map(marks);
        one.insert("unknown".to_owned(), unknown.unwrap_or_default());
        one.entry("imported").or_insert(Json::Bool(false));
        let paths = one.get("replace_paths").and_then(Json::as_array).into_iter().flatten();
        let names: Vec<Json> = paths.map(|path| path[0].clone()).collect();
        one.insert("replace_paths".to_owned(), names.into());
        let former = one.remove("previous_address").filter(|_| one["actions"] == "delete");
        let address = former.as_ref().and_then(Json::as_str).unwrap_or(address);
        found.insert(address.to_owned(), one.into());
    }
    found
}

/// Purlin also hides in the `output` of `terraform_data` what is sensitive in its `input`.
fn hide_stored(address: &str, values: &mut Json) {
    let is_stored = address.contains("terraform_data.");
    if let Some(fields) = values.as_object_mut().filter(|_| is_stored)
        && let (Some(input), Some(output)) = (fields.get("input").cloned(), fields.get_mut("output"))
    {
        hide(&input, output);
    }
}

/// Hides what is hidden in `other`.
fn hide(other: &Json, value: &mut Json) {
    match (other, value) {
        (Json::Object(fields), value) if fields.get("sensitive") == Some(&Json::Bool(true)) => *value = other.clone(),
        (Json::Object(fields), Json::Object(own)) => {
            own.iter_mut().for_each(|(name, inner)| hide(fields.get(name).unwrap_or(&Json::Null), inner));
        }
        (Json::Array(items), Json::Array(own)) => items.iter().zip(own).for_each(|(one, inner)| hide(one, inner)),
        _ => {}
    }
}

fn output_changes(plan: &Json) -> Map<String, Json> {
    let all = plan["outputs"].as_array().into_iter().flatten();
    all.map(|one| (one["name"].as_str().unwrap().to_owned(), both_sides(one).into())).collect()
}

fn golden_output_changes(golden: &Json) -> Map<String, Json> {
    golden.as_object().unwrap().iter().map(|(name, one)| (name.clone(), both_sides(one).into())).collect()
}

/// What is there before a change and after it.
fn both_sides(change: &Json) -> Map<String, Json> {
    ["before", "after"].map(|side| (side.to_owned(), change[side].clone())).into_iter().collect()
}

/// Leaves out what is not marked.
fn marks(value: &Json) -> Json {
    match value {
        Json::Bool(true) => Json::Bool(true),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, inner)| (name.clone(), marks(inner)));
            let fields: Map<String, Json> = fields.filter(|(_, inner)| !inner.is_null()).collect();
            if fields.is_empty() { Json::Null } else { fields.into() }
        }
        Json::Array(items) => {
            let items: Vec<Json> = items.iter().map(marks).collect();
            if items.iter().all(Json::is_null) { Json::Null } else { items.into() }
        }
        _ => Json::Null,
    }
}
