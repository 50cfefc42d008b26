//! Changes of objects of providers that others made, and changes that only a read shows.

use std::fs;

use expect_test::expect;

use super::provider_sandbox::ProviderSandbox;

/// Blocks with default values and computed attributes, whose values the configuration does not set.
const OBJECTS: [(&str, &str); 2] = [
    ("nested", "type: legacy_named, config: { metadata: [{ name: n }], text: t }, drift: { action: Report }"),
    (
        "blocks",
        "type: legacy_thing, config: { name: b, text: t, one: [{ key: k }], as_attribute: [] }, drift: { action: Report }",
    ),
];

fn applied() -> ProviderSandbox {
    let bench = ProviderSandbox::new("legacy");
    bench.resources(&OBJECTS);
    assert!(bench.apply().ends_with("recorded: blocks ready, nested ready; exist: 2\n"));
    bench
}

#[test]
fn reported_drift_is_not_corrected() {
    let bench = applied();
    let blocks = bench.objects().into_iter().find(|id| id != "n").unwrap();
    fs::write(bench.sandbox.path("world/n"), "of another").unwrap();
    fs::write(bench.sandbox.path("world").join(&blocks), "of another").unwrap();
    expect![[r#"
        blocks warning: changed outside of Purlin: `text`; not corrected (`drift.action: Report`) (at files/resources.yaml:7; hint: set `spec.drift.action: Correct` to correct it, or change the configuration)
        nested warning: changed outside of Purlin: `text`; not corrected (`drift.action: Report`) (at files/resources.yaml:2; hint: set `spec.drift.action: Correct` to correct it, or change the configuration)
        recorded: blocks ready, nested ready; exist: 2
    "#]].assert_eq(&bench.apply());
    assert_eq!(fs::read_to_string(bench.sandbox.path("world/n")).unwrap(), "of another");

    fs::remove_file(bench.sandbox.path("world/n")).unwrap();
    fs::remove_file(bench.sandbox.path("world").join(&blocks)).unwrap();
    expect![[r#"
        blocks warning: the object no longer exists; not created again (`drift.action: Report`) (at files/resources.yaml:7; hint: set `spec.drift.action: Correct` to correct it, or change the configuration)
        nested warning: the object no longer exists; not created again (`drift.action: Report`) (at files/resources.yaml:2; hint: set `spec.drift.action: Correct` to correct it, or change the configuration)
        recorded: blocks ready, nested ready; exist: 0
    "#]].assert_eq(&bench.apply());
}

#[test]
fn a_value_that_only_a_read_shows_is_recorded_silently() {
    let bench = applied();
    let sandbox = &bench.sandbox;
    let version = || {
        let list = sandbox.json(&["state", "show", "nested", "-o", "json"]);
        list["objects"][0]["values"]["version"].as_str().unwrap().to_owned()
    };
    let first = version();
    expect![[r#"
        No changes: every object is up to date.
    "#]]
    .assert_eq(&sandbox.ok(&["plan", "-f", "files", "--detailed-exitcode"]));
    expect![[r#"
        No changes: every object is up to date.
    "#]]
    .assert_eq(&sandbox.ok(&["apply", "-f", "files", "--yes"]));
    assert_ne!(version(), first);

    // An object that depends on the value shows why it changes.
    let reader = ("reader", "type: terraform_data, config: { input: '${nested.version}' }");
    bench.resources(&[OBJECTS[0], OBJECTS[1], reader]);
    bench.apply();
    let plan = sandbox.ok(&["plan", "-f", "files"]);
    assert!(plan.contains("# nested is unchanged; only its record is updated"), "{plan}");
    assert!(plan.contains("# reader will be updated in place"), "{plan}");
    assert!(plan.contains("Plan: 0 to create, 1 to update, 0 to replace, 0 to destroy."), "{plan}");
}
