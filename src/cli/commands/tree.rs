//! `purlin tree`: shows objects and their dependencies as a tree.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::args::{Format, TreeArgs};
use crate::cli::cluster;
use crate::cli::failure::{Exit, Failure};
use crate::cli::inputs::PlanParameters;
use crate::cli::json::{self, FORMAT_VERSION};
use crate::cli::options::{Files, Planning, Target, matches_name};
use crate::cli::output::Console;
use crate::cli::view::View;
use api::conditions::{self, ConditionType};
use model::{Action, Address, Change, ChangeCause, Record, Text, Tone, kubernetes_name};
use serde_json::{Value as Json, json};

/// The state and direct dependencies of an object.
struct Entry {
    /// `KIND/NAME` of a Kubernetes object; empty for others.
    label: String,
    state: String,
    is_good: bool,
    dependencies: Vec<String>,
}

type Entries = BTreeMap<String, Entry>;

pub async fn run(args: TreeArgs, console: Console) -> anyhow::Result<Exit> {
    let entries = match Target::from_args(args.target) {
        Target::Files(files) => from_files(files, console).await?,
        Target::Cluster(target) => {
            let resources = cluster::resources(&target, console).await?;
            resources.iter().map(from_status).collect()
        }
    };
    let mut roots = roots(&entries, args.name.as_deref());
    // In a cluster, a family is one entry for all its instances.
    if roots.is_empty()
        && let Some(Ok(address)) = args.name.as_deref().map(str::parse::<Address>)
        && entries.contains_key(&**address.name())
    {
        roots.push(address.name().to_string());
    }
    if let Some(name) = args.name.filter(|_| roots.is_empty()) {
        return Err(Failure::hinted(format!("there is no object `{name}`"), "`purlin get` lists all objects"));
    }
    if args.output == Format::Json {
        console.result(|out| json::write_line(out, &listed(&entries, &roots)))?;
        return Ok(Exit::Success);
    }
    if roots.is_empty() {
        console.notice("No objects found.");
    }
    let mut writer = TreeWriter { entries: &entries, text: console.text(), shown: BTreeSet::new() };
    roots.iter().for_each(|root| writer.write(root, "", ""));
    console.print(&writer.text)?;
    Ok(Exit::Success)
}

/// The objects without dependents, or those that `name` selects. A cycle has no root; its first object is used.
fn roots(entries: &Entries, name: Option<&str>) -> Vec<String> {
    if let Some(name) = name {
        return entries
            .keys()
            .filter(|text| text.parse::<Address>().is_ok_and(|address| matches_name(name, &address)))
            .cloned()
            .collect();
    }
    let used: BTreeSet<&String> = entries.values().flat_map(|entry| &entry.dependencies).collect();
    let mut roots: Vec<String> = entries.keys().filter(|address| !used.contains(address)).cloned().collect();
    let mut reached = BTreeSet::new();
    roots.iter().for_each(|root| collect_reachable(entries, root, &mut reached));
    for address in entries.keys() {
        if !reached.contains(address) {
            roots.push(address.clone());
            collect_reachable(entries, address, &mut reached);
        }
    }
    roots
}

fn collect_reachable(entries: &Entries, from: &str, reached: &mut BTreeSet<String>) {
    let mut open = vec![from.to_owned()];
    while let Some(address) = open.pop() {
        if reached.insert(address.clone()) {
            open.extend(entries.get(&address).into_iter().flat_map(|entry| entry.dependencies.iter().cloned()));
        }
    }
}

/// Lists the roots and all their dependencies, each object once.
fn listed(entries: &Entries, roots: &[String]) -> Json {
    let mut reached = BTreeSet::new();
    roots.iter().for_each(|root| collect_reachable(entries, root, &mut reached));
    let objects: Vec<Json> = entries
        .iter()
        .filter(|(address, _)| reached.contains(*address))
        .map(|(address, entry)| {
            json!({
                "address": address, "label": entry.label, "state": entry.state, "isGood": entry.is_good,
                "dependencies": entry.dependencies
            })
        })
        .collect();
    json!({"formatVersion": FORMAT_VERSION, "roots": roots, "objects": objects})
}

struct TreeWriter<'e> {
    entries: &'e Entries,
    text: Text,
    shown: BTreeSet<String>,
}

impl TreeWriter<'_> {
    /// Writes an object and its dependencies. The dependencies of an object are written only once.
    fn write(&mut self, address: &str, branch: &str, indent: &str) {
        let entries = self.entries;
        self.text.put(branch).put(address);
        let label = entries.get(address).map(|entry| entry.label.as_str()).unwrap_or_default();
        if !label.is_empty() {
            self.text.put(format_args!(" ({label})"));
        }
        self.text.put("  ");
        let Some(entry) = entries.get(address) else {
            self.text.tone(Tone::Error, "does not exist").end_line();
            return;
        };
        self.text.tone(if entry.is_good { Tone::Faint } else { Tone::Warning }, &entry.state);
        let again = !self.shown.insert(address.to_owned()) && !entry.dependencies.is_empty();
        self.text.put(if again { " (as above)" } else { "" }).end_line();
        if again {
            return;
        }
        for (at, dependency) in entry.dependencies.iter().enumerate() {
            let is_last = at + 1 == entry.dependencies.len();
            let (corner, bar) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.write(dependency, &format!("{indent}{corner}"), &format!("{indent}{bar}"));
        }
    }
}

/// With manifests, returns the planned changes; without, the state of the records.
async fn from_files(files: Files, console: Console) -> anyhow::Result<Entries> {
    let planning = Planning::without_refresh();
    let has_sources = !files.sources.is_empty();
    let view = View::open(Target::Files(files), planning.limits, console).await?;
    let recorded = &view.inputs.recorded;
    if !has_sources {
        let addresses: Vec<Address> = recorded.keys().cloned().collect();
        return Ok(recorded
            .iter()
            .map(|(address, stored)| (address.to_string(), from_record(&stored.record, &addresses)))
            .collect());
    }
    let planned = view.inputs.plan(&view.engine, &planning, PlanParameters::default()).await?;
    let diagnostics = planned.diagnostics.into_iter().filter(|diagnostic| diagnostic.address.is_none());
    console.diagnostics(&diagnostics.collect::<Vec<_>>());
    let plan = planned.plan;
    let addresses: Vec<Address> = plan.current_changes().map(|change| change.address.clone()).collect();
    let mut entries = Entries::new();
    for change in plan.current_changes() {
        // No manifest of another source is read.
        let is_read = change.because != Some(ChangeCause::OtherSource);
        let planned = plan.objects.get(&change.address).filter(|_| is_read);
        let dependencies = match planned.and_then(|planned| planned.dependencies.as_ref()) {
            Some(dependencies) => dependencies.to_vec(),
            None => recorded.get(&change.address).map(|stored| used(&stored.record)).unwrap_or_default(),
        };
        entries.insert(change.address.to_string(), from_change(change, expand(&dependencies, &addresses)));
    }
    Ok(entries)
}

fn from_record(record: &Record, addresses: &[Address]) -> Entry {
    let current = record.current.as_ref();
    let status = current.map(|object| engine::plan::options::state_word(object));
    let state = match (&record.intent, status) {
        (Some(intent), _) => format!("{} is open", intent.operation.as_str()),
        (None, status) => status.unwrap_or("no object").to_owned(),
    };
    let dependencies = expand(&used(record), addresses);
    let label = current.and_then(|object| kubernetes_name(&object.value)).unwrap_or_default();
    Entry { label, is_good: state == "ready", state, dependencies }
}

/// The dependencies of the recorded object.
fn used(record: &Record) -> Vec<Address> {
    record.current.as_ref().map(|object| object.dependencies.to_vec()).unwrap_or_default()
}

fn from_change(change: &Change, dependencies: Vec<String>) -> Entry {
    let state = match (change.action, change.blocked) {
        (Action::NoOp | Action::Record, _) => "ready".to_owned(),
        (Action::Wait, _) => "not ready yet".to_owned(),
        (_, Some(reason)) => reason.to_string(),
        (action, None) => format!("to {}", format!("{action:?}").to_lowercase()),
    };
    let is_good = !change.is_change() && !matches!(change.action, Action::Blocked | Action::Wait);
    let label = change.after.as_ref().or(change.before.as_ref()).and_then(kubernetes_name).unwrap_or_default();
    Entry { label, state, is_good, dependencies }
}

/// Replaces a dependency on a whole family by one on each of its instances.
fn expand(dependencies: &[Address], addresses: &[Address]) -> Vec<String> {
    let mut expanded = Vec::new();
    for dependency in dependencies {
        let before = expanded.len();
        if !dependency.is_instance() && !addresses.contains(dependency) {
            let instances = addresses.iter().filter(|address| address.stem == dependency.stem);
            expanded.extend(instances.map(ToString::to_string));
        }
        if expanded.len() == before {
            expanded.push(dependency.to_string());
        }
    }
    expanded
}

fn from_status(resource: &api::Resource) -> (String, Entry) {
    let status = resource.status.clone().unwrap_or_default();
    let current = Some(status.observed_generation) == resource.metadata.generation;
    let ready = conditions::find(&status.conditions, ConditionType::Ready);
    let is_good = current && ready.is_some_and(|ready| ready.status == "True");
    let state = match ready {
        Some(ready) if current && !is_good => ready.reason.clone(),
        Some(_) if is_good => "ready".to_owned(),
        _ => "not observed yet".to_owned(),
    };
    let name = resource.metadata.name.clone().unwrap_or_default();
    let config = serde_json::to_value(&resource.spec.config).unwrap_or_default();
    let label = status.kubernetes_name(&config).unwrap_or_default();
    (name, Entry { label, state, is_good, dependencies: status.dependencies })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(edges: &[(&str, &[&str])], name: Option<&str>) -> String {
        let entry = |dependencies: &[&str]| Entry {
            label: String::new(),
            state: "ready".to_owned(),
            is_good: true,
            dependencies: dependencies.iter().map(|&text| text.to_owned()).collect(),
        };
        let entries: Entries = edges.iter().map(|(name, below)| ((*name).to_owned(), entry(below))).collect();
        let mut writer = TreeWriter { entries: &entries, text: Text::new(false), shown: BTreeSet::new() };
        roots(&entries, name).iter().for_each(|root| writer.write(root, "", ""));
        writer.text.as_str().to_owned()
    }

    #[test]
    fn shared_dependencies_are_written_once() {
        let edges: &[(&str, &[&str])] = &[("a", &["b", "c"]), ("b", &["d"]), ("c", &["b"]), ("d", &[])];
        expect_test::expect![[r#"
            a  ready
            ├─ b  ready
            │  └─ d  ready
            └─ c  ready
               └─ b  ready (as above)
        "#]]
        .assert_eq(&rendered(edges, None));
    }

    #[test]
    fn a_list_contains_only_reachable_objects_once() {
        let entry = |dependencies: &[&str]| Entry {
            label: String::new(),
            state: "ready".to_owned(),
            is_good: true,
            dependencies: dependencies.iter().map(|&text| text.to_owned()).collect(),
        };
        let entries: Entries = [("a", entry(&["b"])), ("b", entry(&["none"])), ("c", entry(&["b"]))]
            .map(|(n, e)| (n.to_owned(), e))
            .into();
        let object = |name: &str, below: &str| json!({"address": name, "label": "", "state": "ready", "isGood": true, "dependencies": [below]});
        assert_eq!(
            listed(&entries, &roots(&entries, Some("a"))),
            json!({"formatVersion": "1", "roots": ["a"], "objects": [object("a", "b"), object("b", "none")]})
        );
    }

    #[test]
    fn cycles_and_missing_objects_are_supported() {
        let edges: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["a", "none"])];
        expect_test::expect![[r#"
            a  ready
            └─ b  ready
               ├─ a  ready (as above)
               └─ none  does not exist
        "#]]
        .assert_eq(&rendered(edges, None));
        assert!(rendered(edges, Some("none")).is_empty());
    }
}
