//! Plans, applies and destroys the quick start example.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::sandbox::{Sandbox, manifest};

const OBJECTS: [&str; 8] =
    ["app", "database", "dns-record", "image", "load-balancer", "migrations", "network", "subnet"];

/// Asserts that each step finishes before the next one starts.
#[track_caller]
fn assert_order(events: &[Json], nodes: &[&str]) {
    let at = |kind: &str, node: &str| {
        let found = events.iter().position(|event| event["event"] == kind && event["node"] == node);
        found.unwrap_or_else(|| panic!("{node} has no {kind}: {events:#?}"))
    };
    for pair in nodes.windows(2) {
        assert!(at("finished", pair[0]) < at("started", pair[1]), "{} must finish before {} starts", pair[0], pair[1]);
    }
}

fn applied_quickstart() -> Sandbox {
    let sandbox = Sandbox::from_example("quickstart");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox
}

#[test]
fn a_plan_changes_nothing() {
    let sandbox = Sandbox::from_example("quickstart");
    let text = sandbox.ok(&["plan", "-f", "files"]);
    assert!(OBJECTS.iter().all(|name| text.contains(name)), "{text}");
    let names: Vec<_> = std::fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["files"], "plan creates no state file");
}

#[test]
fn a_plan_does_not_change_the_state_file() {
    let sandbox = applied_quickstart();
    let before = std::fs::read(sandbox.path("purlin.db")).unwrap();
    sandbox.ok(&["plan", "-f", "files"]);
    assert!(std::fs::read(sandbox.path("purlin.db")).unwrap() == before);
}

#[test]
fn apply_creates_dependencies_first() {
    let sandbox = Sandbox::from_example("quickstart");
    let events = sandbox.events(&["apply", "-f", "files", "--yes", "-o", "json"]);
    let chain = ["network", "subnet", "database", "migrations", "app", "load-balancer", "dns-record"];
    let nodes = chain.map(|name| format!("{name} create"));
    assert_order(&events, &nodes.each_ref().map(String::as_str));
    let summary = events.last().unwrap();
    assert_eq!((&summary["event"], &summary["created"]), (&"summary".into(), &8.into()));
    assert_eq!(sandbox.recorded(), OBJECTS);
}

#[test]
fn a_second_apply_has_no_changes() {
    let sandbox = applied_quickstart();
    let ran = sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = sandbox.events(&["apply", "-f", "files", "--yes", "-o", "json"]);
    assert_eq!(events.len(), 1, "only the summary: {events:?}");
}

#[test]
fn detailed_exit_codes_require_the_flag() {
    let sandbox = Sandbox::from_example("quickstart");
    assert_eq!(sandbox.run(&["plan", "-f", "files"]).code, Some(0));
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(2));
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes", "--detailed-exitcode"]).code, Some(2));
    assert_eq!(sandbox.run(&["apply", "-f", "files", "--yes", "--detailed-exitcode"]).code, Some(0));
}

#[test]
fn a_replacement_creates_first_where_a_dependent_requires_it() {
    let sandbox = applied_quickstart();
    sandbox.copy_example("quickstart-changed");
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let planned = |address: &str| {
        let change = plan["changes"].as_array().unwrap().iter().find(|change| change["address"] == address).unwrap();
        (change["action"].clone(), change["order"].clone())
    };
    assert_eq!(planned("image"), ("Replace".into(), "CreateFirst".into()));
    assert_eq!(planned("app"), ("Replace".into(), "CreateFirst".into()));
    assert_eq!(planned("database"), ("Update".into(), Json::Null));
    assert_eq!(planned("load-balancer"), ("Update".into(), Json::Null));
    assert_eq!(planned("network"), ("NoOp".into(), Json::Null));

    let events = sandbox.events(&["apply", "-f", "files", "--yes", "-o", "json"]);
    assert_order(&events, &["image create", "app create", "load-balancer update", "app destroy", "image destroy"]);
    let started = events.iter().filter(|event| event["event"] == "started");
    let started: BTreeSet<&str> = started.map(|event| event["node"].as_str().unwrap()).collect();
    let nodes = plan["graph"]["nodes"].as_array().unwrap();
    let planned: BTreeSet<&str> = nodes.iter().map(|node| node["id"].as_str().unwrap()).collect();
    assert_eq!(started, planned, "apply uses the ids that plan printed");
    assert_eq!(sandbox.recorded(), OBJECTS, "no deposed object remains");
}

#[test]
fn one_object_can_be_replaced_on_request() {
    let sandbox = applied_quickstart();
    let plan = sandbox.json(&["plan", "-f", "files", "--replace", "dns-record", "-o", "json"]);
    let nodes = plan["graph"]["nodes"].as_array().unwrap();
    assert!(nodes.iter().all(|node| node["address"] == "dns-record" && node["replaces"] == true), "{nodes:?}");
    assert_eq!(nodes.len(), 2);
    sandbox.run(&["plan", "-f", "files", "--replace", "absent"]).one_error();
}

#[test]
fn destroy_uses_the_reverse_order() {
    let sandbox = applied_quickstart();
    let events = sandbox.events(&["destroy", "-f", "files", "--yes", "-o", "json"]);
    let chain = ["dns-record", "load-balancer", "app", "migrations", "database", "subnet", "network"];
    let nodes = chain.map(|name| format!("{name} destroy"));
    assert_order(&events, &nodes.each_ref().map(String::as_str));
    assert_eq!(events.last().unwrap()["destroyed"], 8);
    assert!(sandbox.recorded().is_empty());
}

#[test]
fn destroy_needs_no_files() {
    let sandbox = applied_quickstart();
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.recorded().is_empty());
}

#[test]
fn orphans_are_destroyed() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("a", &[]), ("b", &["a"])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.objects(&[("a", &[])]);
    let events = sandbox.events(&["apply", "-f", "files", "--yes", "-o", "json"]);
    assert_eq!(events.last().unwrap()["destroyed"], 1);
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn manifests_can_come_from_standard_input() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(&["apply", "-f", "-", "--yes"], &manifest("a", &[]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn an_interrupted_run_records_its_results() {
    const COUNT: u64 = 3000;
    let sandbox = Sandbox::new();
    // Each step of the chain waits for the one before, so that the signal arrives during the run.
    let name = |index: u64| format!("item-{index}");
    let link = |index: u64| match index {
        0 => manifest(&name(0), &[]),
        _ => manifest(&name(index), &[&name(index - 1)]),
    };
    sandbox.write("files/chain.yaml", &(0..COUNT).map(link).collect::<String>());
    let mut apply = sandbox.start(&["apply", "-f", "files", "--yes", "-o", "json"]);
    apply.wait_until("the first step is finished", |apply| apply.out().contains("\"finished\""));
    apply.signal("INT");
    assert_eq!(apply.end().code(), Some(1), "the run ends itself");
    let out = std::fs::read_to_string(sandbox.path("out.txt")).unwrap();
    let summary: Json = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let (created, skipped) = (summary["created"].as_u64().unwrap(), summary["skipped"].as_u64().unwrap());
    assert!(created > 0 && skipped > 0 && created + skipped == COUNT, "{summary}");
    assert_eq!(sandbox.recorded().len() as u64, created);
}
