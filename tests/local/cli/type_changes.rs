//! Objects whose type, or the schema of their type, changes.

use std::fs;

use super::provider_sandbox::ProviderSandbox;
use super::sandbox::Sandbox;
use crate::providers;

/// The only change of the plan, with its reason.
fn planned(bench: &ProviderSandbox) -> (String, String) {
    let plan = bench.sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let changes: Vec<_> = plan["changes"].as_array().unwrap().iter().filter(|one| one["action"] != "NoOp").collect();
    let [change] = &changes[..] else { panic!("{plan}") };
    (change["action"].as_str().unwrap().into(), change["reason"].as_str().unwrap_or_default().into())
}

fn assert_no_changes(sandbox: &Sandbox) {
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let rest: Vec<_> = plan["changes"].as_array().unwrap().iter().filter(|one| one["action"] != "NoOp").collect();
    assert!(rest.is_empty(), "{rest:?}");
}

fn resource(bench: &ProviderSandbox, name: &str, moved_from: &str, spec: &str) {
    let text = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:\n  name: {name}\n  annotations: {{ \
         purlin.dev/moved-from: '{moved_from}' }}\nspec: {{ {spec} }}\n"
    );
    bench.sandbox.write("files/resources.yaml", &text);
}

#[test]
fn a_provider_moves_an_object_to_another_type() {
    let bench = ProviderSandbox::new("corner");
    let applied = |expected: &str| assert_eq!(bench.apply(), expected);
    bench.resources(&[("old", "type: corner_thing, config: { name: first, text: x }")]);
    applied("old create finished\nrecorded: old ready; exist: 1\n");
    let id = bench.id_of("x");

    // Under another name.
    resource(&bench, "new", "old", "type: corner_versioned, config: { title: first }");
    assert_eq!(planned(&bench), ("Record".into(), "moved from `old`, of type `corner_thing`".into()));
    applied(
        "new record finished\nnew warning: Of the thing only the name is kept: first ()\nrecorded: new ready; exist: 1\n",
    );
    assert_eq!(bench.objects(), std::slice::from_ref(&id));
    let row = bench.sandbox.json(&["state", "show", "new", "--state", "purlin.db", "-o", "json"]);
    assert_eq!(row["objects"][0]["type"], "corner_versioned");
    assert_eq!(row["objects"][0]["values"], serde_json::json!({ "id": id, "title": "first" }));
    assert_no_changes(&bench.sandbox);

    // The provider does not support the reverse move, which is one error, and the object is kept.
    resource(&bench, "new", "new", "type: corner_thing, config: { name: first }");
    let ran = bench.sandbox.run(&["apply", "-f", "files", "--yes"]);
    let error = ran.one_error();
    assert!(error.contains("`new` claims `new`, which has the type `corner_versioned`, so nothing is moved"));
    assert!(error.contains("the provider cannot move a `corner_versioned` to a `corner_thing`: "), "{error}");
    assert_eq!(bench.objects(), std::slice::from_ref(&id));
    resource(&bench, "newest", "new", "type: terraform_data, config: {}");
    let ran = bench.sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("an object of type `corner_versioned` cannot be moved to type `terraform_data`"),
        "{ran:?}"
    );
    assert_eq!(bench.objects(), std::slice::from_ref(&id));

    // It is destroyed as an object of its new type.
    resource(&bench, "new", "old", "type: corner_versioned, config: { title: second }");
    applied("new update finished\nrecorded: new ready; exist: 1\n");
    bench.sandbox.ok(&["destroy", "-f", "files", "--yes"]);
    assert!(bench.objects().is_empty());
}

#[test]
fn a_saved_plan_can_change_the_type_of_an_object() {
    let bench = ProviderSandbox::new("corner");
    bench.resources(&[("it", "type: corner_thing, config: { name: a, text: x }")]);
    bench.apply();
    let id = bench.id_of("x");
    bench.resources(&[("it", "type: corner_versioned, config: { title: a }")]);
    let ran = bench.sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("has the type `corner_thing`, not `corner_versioned`"), "{ran:?}");
    assert!(ran.stderr.contains("add the annotation `purlin.dev/moved-from: it`"), "{ran:?}");
    resource(&bench, "it", "it", "type: corner_versioned, config: { title: a }");
    bench.sandbox.ok(&["plan", "-f", "files", "--out", "saved"]);
    bench.sandbox.ok(&["apply", "saved", "--yes"]);
    assert_eq!(bench.objects(), [id]);
    assert_no_changes(&bench.sandbox);
    let row = bench.sandbox.json(&["state", "show", "it", "--state", "purlin.db", "-o", "json"]);
    assert_eq!(row["objects"][0]["type"], "corner_versioned");
}

/// Uses a provider whose schema of `corner_versioned` has this version.
fn serve(bench: &ProviderSandbox, version: &str) {
    let environment = format!(", environment: [{{ name: CORNER_SCHEMA, value: '{version}' }}]");
    bench.provider_in(&providers::program("corner").display().to_string(), &environment);
}

#[test]
fn a_schema_upgrade_changes_no_object() {
    let bench = ProviderSandbox::new("corner");
    serve(&bench, "0");
    let typed = |argument: &str, value: &str| format!("type: corner_versioned, config: {{ {argument}: {value} }}");
    bench.resources(&[
        ("one", &typed("label", "a")),
        ("stuck", &typed("label", "stuck")),
        ("user", "type: terraform_data, config: { input: '${one.id}' }"),
    ]);
    bench.apply();
    let before = bench.objects();
    let version = || {
        let shown = bench.sandbox.ok(&["state", "export", "--terraform", "--state", "purlin.db", "-f", "files"]);
        let state: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let all = state["resources"].as_array().unwrap().iter();
        let mut one = all.filter(|one| one["name"] == "one").map(|one| one["instances"][0]["schema_version"].clone());
        one.next().unwrap()
    };
    assert_eq!(version(), 0);

    // Only the object that cannot be upgraded is held, with the error of its provider.
    serve(&bench, "1");
    bench.resources(&[
        ("one", &typed("title", "a")),
        ("stuck", &typed("title", "stuck")),
        ("user", "type: terraform_data, config: { input: '${one.id}' }"),
    ]);
    let ran = bench.sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("The state cannot be upgraded: it is stuck"), "{ran:?}");
    let output = bench.apply();
    assert!(output.contains("recorded: one ready, stuck ready, user ready; exist: 2"), "{output}");
    assert!(!output.contains("create") && !output.contains("update") && !output.contains("destroy"), "{output}");
    assert_eq!(version(), 1, "the object is recorded with the new schema");
    let row = bench.sandbox.json(&["state", "show", "one", "--state", "purlin.db", "-o", "json"]);
    assert_eq!(row["objects"][0]["values"]["title"], "a", "{row}");

    // Updates and destroys use the new schema.
    bench.resources(&[
        ("one", &typed("title", "b")),
        ("stuck", &typed("title", "stuck")),
        ("user", "type: terraform_data, config: { input: '${one.id}' }"),
    ]);
    let output = bench.apply();
    assert!(output.contains("one update finished") && output.contains("exist: 2"), "{output}");

    // A provider that is older than the record reports an error, and changes nothing.
    serve(&bench, "0");
    bench.resources(&[("one", &typed("label", "c"))]);
    let ran = bench.sandbox.run(&["apply", "-f", "files", "--yes", "--target", "one"]);
    let error = ran.one_error();
    assert!(error.contains("recorded by a newer version of the provider (schema version 1, supported: 0)"), "{error}");
    let mut now = bench.objects();
    now.sort();
    assert_eq!(now.len(), 2);
    assert!(before.iter().all(|id| now.contains(id)));
}

#[test]
fn providers_generate_the_configuration_of_imported_objects() {
    let bench = ProviderSandbox::new("corner");
    for (id, text) in [("first", "some text"), ("second", "no config")] {
        fs::write(bench.sandbox.path("world").join(id), text).unwrap();
        let path = format!("files/{id}.yaml");
        bench.sandbox.ok(&["import", id, id, "-f", "files", "--type", "corner_thing", "--out", &path]);
    }
    let manifest = |id: &str| fs::read_to_string(bench.sandbox.path(&format!("files/{id}.yaml"))).unwrap();
    // The provider omits defaults.
    let first = manifest("first");
    assert!(first.contains("text: some text") && !first.contains("count_of"), "{first}");
    // If the provider generates no configuration, Purlin derives it from the state.
    let second = manifest("second");
    assert!(second.contains("text: no config") && second.contains("count_of: 3"), "{second}");
    bench.sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_no_changes(&bench.sandbox);
    assert_eq!(bench.objects().len(), 2);
}
