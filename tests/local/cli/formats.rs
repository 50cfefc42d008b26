//! The documented JSON formats (`docs/formats.md`), and the corresponding text output.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::sandbox::Sandbox;

#[track_caller]
fn assert_keys(value: &Json, expected: &[&str]) {
    let object = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    let found: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(found, expected.iter().copied().collect());
}

#[test]
fn a_plan_has_the_documented_fields() {
    let sandbox = Sandbox::from_example("quickstart");
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    assert_keys(&plan, &["formatVersion", "changes", "graph", "otherSources", "diagnostics"]);
    assert_eq!(plan["formatVersion"], "1");
    let change = &plan["changes"][0];
    assert_keys(
        change,
        &[
            "address",
            "type",
            "action",
            "order",
            "deposedKey",
            "reason",
            "replacePaths",
            "imported",
            "before",
            "after",
            "afterUnknown",
        ],
    );
    assert_eq!((&change["address"], &change["action"]), (&"app".into(), &"Create".into()));
    assert_eq!((&change["before"], &change["afterUnknown"]["id"]), (&Json::Null, &true.into()));
    assert_eq!(change["after"].get("id"), None, "`after` omits unknown values");
    assert_keys(&plan["graph"]["nodes"][0], &["id", "address", "operation", "deposedKey", "replaces"]);
    assert_keys(&plan["graph"]["edges"][0], &["from", "to", "because"]);
}

#[test]
fn numbers_of_any_size_are_numbers_everywhere() {
    let sandbox = Sandbox::new();
    let head = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: big }\n";
    let input = "{ whole: 123456789012345678901234, part: -3.14159265358979323846, odd: .12345678901234567890 }";
    sandbox.write("files/big.yaml", &format!("{head}spec: {{ type: terraform_data, config: {{ input: {input} }} }}\n"));
    let numbers = ["123456789012345678901234", "-3.14159265358979323846", "0.12345678901234567890"];
    let require = |text: &str, mark: &str| {
        for number in numbers {
            assert!(text.contains(&format!("{mark}{number}")) && !text.contains(&format!("\"{number}")), "{text}");
        }
    };
    require(&sandbox.ok(&["plan", "-f", "files"]), " = ");
    require(&sandbox.ok(&["plan", "-f", "files", "-o", "json"]), ":");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    require(&sandbox.ok(&["state", "show", "big", "-o", "json"]), ":");
    require(&sandbox.ok(&["state", "show", "big"]), " = ");
    require(&sandbox.ok(&["state", "export", "--terraform"]), ":");
    assert!(sandbox.ok(&["plan", "-f", "files"]).contains("No changes"));
}

#[test]
fn graph_and_plan_print_the_same_graph() {
    let sandbox = Sandbox::from_example("quickstart");
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    assert_eq!(plan["graph"], sandbox.json(&["graph", "-f", "files", "-o", "json"]));
    for format in ["text", "dot", "mermaid"] {
        assert!(sandbox.ok(&["graph", "-f", "files", "-o", format]).contains("load-balancer"), "{format}");
    }
}

#[test]
fn events_have_the_documented_fields() {
    let sandbox = Sandbox::from_example("quickstart");
    let events = sandbox.events(&["apply", "-f", "files", "--yes", "-o", "json"]);
    let (summary, steps) = events.split_last().unwrap();
    for event in steps {
        assert_keys(event, &["event", "node", "address", "operation", "deposedKey", "at", "error"]);
        let at = event["at"].as_str().unwrap();
        assert_eq!((at.len(), at.ends_with('Z')), ("2026-01-01T00:00:00.000000Z".len(), true), "{at}");
    }
    assert_keys(
        summary,
        &["event", "imported", "created", "updated", "destroyed", "failed", "skipped", "otherSources"],
    );
    let count = |kind: &str| steps.iter().filter(|event| event["event"] == kind).count();
    assert_eq!((count("started"), count("finished"), steps.len()), (8, 8, 16));
}

#[test]
fn states_have_the_documented_fields() {
    let sandbox = Sandbox::from_example("quickstart");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let list = sandbox.json(&["state", "list", "-o", "json"]);
    assert_keys(&list, &["formatVersion", "objects", "diagnostics"]);
    let fields = ["address", "type", "deposedKey", "status", "createBeforeDestroy", "source", "dependencies", "values"];
    assert_keys(&list["objects"][0], &fields);
    let shown = sandbox.json(&["state", "show", "image", "-o", "json"]);
    let image = &shown["objects"][0];
    assert_eq!(shown["objects"].as_array().unwrap().len(), 1);
    assert_eq!((&image["status"], &image["createBeforeDestroy"]), (&"ready".into(), &true.into()));
    assert_eq!(image["values"]["output"]["name"], "shop");
}

#[test]
fn get_and_explain_show_planned_changes() {
    let sandbox = Sandbox::from_example("quickstart");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.copy_example("quickstart-changed");
    let table = sandbox.ok(&["get", "-f", "files"]);
    assert!(table.starts_with("NAME"), "{table}");
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("network").contains("True"), "{table}");
    assert!(row("image").contains("False") && row("image").contains("Replace"), "{table}");
    let rows = sandbox.json(&["get", "image", "-f", "files", "-o", "json"]);
    assert_eq!(rows["objects"][0]["action"], "Replace");
    let text = sandbox.ok(&["explain", "image", "-f", "files"]);
    assert!(
        text.contains("create before destroy") && text.contains("`app`") && text.contains("`image destroy`"),
        "{text}"
    );
    sandbox.run(&["explain", "absent", "-f", "files"]).one_error();
}

#[test]
fn small_commands_work_without_any_target() {
    let sandbox = Sandbox::new();
    assert!(sandbox.ok(&["version"]).starts_with("purlin "));
    assert_eq!(sandbox.json(&["version", "-o", "json"])["formatVersion"], "1");
    assert!(sandbox.ok(&["crds"]).contains("resources.purlin.dev"));
    assert!(sandbox.ok(&["completion", "bash"]).contains("purlin"));
    assert!(sandbox.ok(&["--help"]).contains("validate"));
}

#[test]
fn a_graph_without_steps_prints_a_notice_to_standard_error() {
    let sandbox = Sandbox::from_example("quickstart");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let ran = sandbox.run(&["graph", "-f", "files"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.contains("No steps: "), "{ran:?}");
}
