//! Objects whose type, or the schema of whose type, is another one than before.

use super::bench::Bench;
use super::sandbox::Sandbox;

/// The only change of the plan, with its reason.
fn planned(bench: &Bench) -> (String, String) {
    let plan = bench.sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let changes: Vec<_> = plan["changes"].as_array().unwrap().iter().filter(|one| one["action"] != "NoOp").collect();
    let [change] = &changes[..] else { panic!("{plan}") };
    (change["action"].as_str().unwrap().into(), change["reason"].as_str().unwrap_or_default().into())
}

fn has_nothing_to_do(sandbox: &Sandbox) {
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    let rest: Vec<_> = plan["changes"].as_array().unwrap().iter().filter(|one| one["action"] != "NoOp").collect();
    assert!(rest.is_empty(), "{rest:?}");
}

fn resource(bench: &Bench, name: &str, moved_from: &str, spec: &str) {
    let text = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:\n  name: {name}\n  annotations: {{ \
         purlin.dev/moved-from: '{moved_from}' }}\nspec: {{ {spec} }}\n"
    );
    bench.sandbox.write("files/resources.yaml", &text);
}

#[test]
fn a_provider_takes_an_object_over_from_another_type() {
    let bench = Bench::new("corner");
    let applied = |expected: &str| assert_eq!(bench.apply(), expected);
    bench.resources(&[("old", "type: corner_thing, config: { name: first, text: x }")]);
    applied("old create finished\nrecorded: old ready; exist: 1\n");
    let id = bench.id_of("x");

    // Under another name.
    resource(&bench, "new", "old", "type: corner_versioned, config: { title: first }");
    assert_eq!(planned(&bench), ("Record".into(), "moved from `old`, of type `corner_thing`".into()));
    applied("new record finished\nrecorded: new ready; exist: 1\n");
    assert_eq!(bench.objects(), [id.clone()]);
    let row = bench.sandbox.json(&["state", "show", "new", "--state", "purlin.db", "-o", "json"]);
    assert_eq!(row["objects"][0]["type"], "corner_versioned");
    assert_eq!(row["objects"][0]["values"], serde_json::json!({ "id": id, "title": "first" }));
    has_nothing_to_do(&bench.sandbox);

    // And not back: the provider knows no such way, which is one error, and the object stays.
    resource(&bench, "new", "new", "type: corner_thing, config: { name: first }");
    let ran = bench.sandbox.run(&["apply", "-f", "files", "--yes"]);
    let error = ran.one_error();
    assert!(error.contains("`new` says that it was `new`, which is of type `corner_versioned`, so nothing is moved"));
    assert!(error.contains("the provider does not make a `corner_thing` of a `corner_versioned`: "), "{error}");
    assert_eq!(bench.objects(), [id.clone()]);
    resource(&bench, "newest", "new", "type: terraform_data, config: {}");
    let ran = bench.sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("`corner_versioned` cannot become one of the type `terraform_data`"), "{ran:?}");
    assert_eq!(bench.objects(), [id.clone()]);

    // It is destroyed as what it is now.
    resource(&bench, "new", "old", "type: corner_versioned, config: { title: second }");
    applied("new update finished\nrecorded: new ready; exist: 1\n");
    bench.sandbox.ok(&["destroy", "-f", "files", "--yes"]);
    assert!(bench.objects().is_empty());
}

#[test]
fn an_object_changes_its_type_where_it_is_also_by_a_saved_plan() {
    let bench = Bench::new("corner");
    bench.resources(&[("it", "type: corner_thing, config: { name: a, text: x }")]);
    bench.apply();
    let id = bench.id_of("x");
    bench.resources(&[("it", "type: corner_versioned, config: { title: a }")]);
    let ran = bench.sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().contains("is of type `corner_thing`, not `corner_versioned`"), "{ran:?}");
    assert!(ran.stderr.contains("annotate with `purlin.dev/moved-from: it`"), "{ran:?}");
    resource(&bench, "it", "it", "type: corner_versioned, config: { title: a }");
    bench.sandbox.ok(&["plan", "-f", "files", "--out", "saved"]);
    bench.sandbox.ok(&["apply", "saved", "--yes"]);
    assert_eq!(bench.objects(), [id]);
    has_nothing_to_do(&bench.sandbox);
    let row = bench.sandbox.json(&["state", "show", "it", "--state", "purlin.db", "-o", "json"]);
    assert_eq!(row["objects"][0]["type"], "corner_versioned");
}
