//! Creates that a crash interrupted: what is found without help, and `purlin state recover` for the rest.

use std::fs;

use expect_test::expect;

use super::provider_sandbox::ProviderSandbox;

/// A sandbox in which the provider has crashed during every create of these Resources. `when`: `before` or `after` the
/// object was created.
fn crashed(kind: &'static str, when: &str, resources: &[(&str, &str)]) -> ProviderSandbox {
    let bench = ProviderSandbox::new(kind);
    bench.resources(resources);
    let marker = bench.sandbox.path(&format!("world/crash-{when}"));
    fs::write(&marker, "").unwrap();
    let output = bench.apply();
    assert!(output.contains("the outcome of the call is unknown"), "{output}");
    fs::remove_file(marker).unwrap();
    bench
}

/// Removes the times, which differ between runs.
fn without_times(text: &str) -> String {
    let word = |word: &str| match word.parse::<jiff::Timestamp>() {
        Ok(_) => "TIME".to_owned(),
        Err(_) => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

#[test]
fn a_created_object_is_found_by_its_identity() {
    let bench = crashed("corner", "after", &[("a", "type: corner_identified, config: { region: home, name: a }")]);
    expect![[r#"
        recorded: a ready; exist: 1
    "#]]
    .assert_eq(&bench.apply());
}

#[test]
fn dev_resolves_an_interrupted_operation_without_an_error() {
    let bench = crashed("corner", "after", &[("a", "type: corner_identified, config: { region: home, name: a }")]);
    let mut dev = bench.sandbox.start(&["dev", "-f", "files"]);
    dev.wait_until("the object is found", |dev| dev.out().contains("All objects are up to date."));
    assert!(!dev.err().contains("error:"), "{}", dev.err());
}

#[test]
fn an_object_without_the_identity_counts_as_not_created_after_the_deadline() {
    let spec = "type: corner_identified, config: { region: home, name: a }, timeouts: { create: 2s }";
    let bench = crashed("corner", "before", &[("a", spec)]);
    let mut output = bench.apply();
    while output.contains("it counts as not created from") {
        output = bench.apply();
    }
    expect![[r#"
        a create finished
        recorded: a ready; exist: 1
    "#]]
    .assert_eq(&output);
}

const NAMED: &str = "type: legacy_named, config: { metadata: [{ name: a }], text: t }";

#[test]
fn a_created_object_is_found_by_its_namespace_and_name() {
    let bench = crashed("legacy", "after", &[("a", NAMED)]);
    expect![[r#"
        a record finished
        recorded: a ready; exist: 1
    "#]]
    .assert_eq(&bench.apply());
}

#[test]
fn an_object_that_differs_is_not_adopted_without_the_user() {
    let bench = crashed("legacy", "after", &[("a", NAMED)]);
    fs::write(bench.sandbox.path("world/a"), "of another").unwrap();
    expect![[r#"
        a error: a create was interrupted and it is unknown whether the object was created; the object `a` exists, but its `text` is not the planned one (at files/resources.yaml:2; hint: set spec.import.id if it exists, or run `purlin state recover`)
        recorded: a creating; exist: 1
    "#]].assert_eq(&bench.apply());
    expect![[r#"
        Working on the records in purlin.db
        `a` is imported by the next apply or the controller.
    "#]]
    .assert_eq(&bench.sandbox.run(&["state", "recover", "--import", "a=default/a"]).stderr);
    expect![[r#"
        a update finished
        recorded: a ready; exist: 1
    "#]]
    .assert_eq(&bench.apply());
}

#[test]
fn one_command_resolves_the_creates_whose_objects_cannot_be_found() {
    let named = |name: &str| format!("type: corner_trouble, config: {{ text: {name}, on_create: exit }}");
    let bench = ProviderSandbox::new("corner");
    let specs = ["a", "b", "c"].map(|name| (name, named(name)));
    let specs = specs.each_ref().map(|(name, spec)| (*name, spec.as_str()));
    // A crash would interrupt the creates of the others too.
    for count in 1..=specs.len() {
        bench.resources(&specs[..count]);
        bench.apply();
    }
    bench.disable_failures();
    let sandbox = &bench.sandbox;
    expect![[r#"
        ADDRESS   TYPE             STARTED                IMPORT   PLANNED
        a         corner_trouble   TIME   -        on_create = exit, text = a
        b         corner_trouble   TIME   -        on_create = exit, text = b
        c         corner_trouble   TIME   -        on_create = exit, text = c
    "#]]
    .assert_eq(&without_times(&sandbox.ok(&["state", "recover"])));
    let json = sandbox.json(&["state", "recover", "-o", "json"]);
    assert_eq!(json["creates"][1]["address"], "b", "{json}");
    assert_eq!(json["creates"][1]["planned"]["text"], "b", "{json}");

    let id = bench.id_of("a");
    for (wrong, expected) in [
        (&["--import", "a=1", "--absent", "a"][..], "`a` is in both --import and --absent"),
        (&["--absent", "d"], "`d` has no interrupted create"),
        (&["--import", "a"], "write ADDRESS=ID"),
        (&["--all-absent"], "cannot ask for confirmation without a terminal"),
    ] {
        let ran = sandbox.run(&[&["state", "recover"], wrong].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains(expected), "{wrong:?}: {ran:?}");
    }
    let before = bench.summary();
    assert!(before.contains("a creating, b creating, c creating"), "{before}");
    let import = format!("a={id}");
    expect![[r#"
        Working on the records in purlin.db
        `a` is imported by the next apply or the controller.
        `b` counts as not created.
        `c` counts as not created.
    "#]]
    .assert_eq(&sandbox.run(&["state", "recover", "--import", &import, "--all-absent", "--yes"]).stderr);
    expect![[r#"
        ADDRESS   TYPE             STARTED                IMPORT             PLANNED
        a         corner_trouble   TIME   ID   on_create = exit, text = a
    "#]]
    .assert_eq(&without_times(&sandbox.ok(&["state", "recover"])).replace(&id, "ID"));
    expect![[r#"
        b create finished
        c create finished
        recorded: a ready, b ready, c ready; exist: 5
    "#]]
    .assert_eq(&bench.apply());
    assert_eq!(bench.id_of("a"), id);
    assert!(sandbox.run(&["state", "recover"]).stderr.contains("No create has an unknown outcome."));
}
