//! Published outputs, as files next to the state file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value as Json;

use super::sandbox::{Sandbox, fenced_blocks};

fn example() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("files/app.yaml", fenced_blocks(include_str!("../../../docs/publish.md"), "yaml")[0]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox
}

fn copy(sandbox: &Sandbox, name: &str) -> Json {
    serde_json::from_str(&fs::read_to_string(sandbox.path(name)).unwrap()).unwrap()
}

#[test]
fn the_documented_example_publishes_its_outputs() {
    let sandbox = example();
    for name in fenced_blocks(include_str!("../../../docs/publish.md"), "text")[0].lines() {
        let mode = fs::metadata(sandbox.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let public = copy(&sandbox, "published/configmap-database.json");
    assert_eq!(public["data"], serde_json::json!({"HOST": "db.example", "PORT": "5432"}));
    let secret = copy(&sandbox, "published/secret-database.json");
    assert_eq!(secret["stringData"]["URL"], "postgres://app:correct-horse@db.example:5432/");
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0), "no changes are left");
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("published").exists());
}

#[test]
fn instances_publish_under_separate_names() {
    let sandbox = Sandbox::new();
    sandbox.write("files/tenant.yaml", fenced_blocks(include_str!("../../../docs/publish.md"), "yaml")[1]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    for (key, quota) in [("blue", "10 GiB"), ("green", "20 GiB")] {
        let copy = copy(&sandbox, &format!("published/configmap-tenant-{key}.json"));
        assert_eq!(copy["data"], serde_json::json!({"QUOTA": quota, "NAME": key}));
    }
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0), "no changes are left");
}

#[test]
fn foreign_files_are_not_overwritten() {
    let sandbox = example();
    sandbox.ok(&["destroy", "--yes"]);
    fs::create_dir(sandbox.path("published")).unwrap();
    sandbox.write("published/secret-database.json", "{}");
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1));
    assert!(format!("{ran:?}").contains("exists and is not managed by this Resource"), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["database"], "the object was created");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(fs::read_to_string(sandbox.path("published/secret-database.json")).unwrap(), "{}");
}

#[test]
fn each_error_names_its_place() {
    let cases = [
        ("[{ data: { a: b } }]", "spec.publish[0]: the entry has no target"),
        (
            "[{ configMapRef: { name: a }, secretRef: { name: a }, data: { a: b } }]",
            "spec.publish[0]: the entry has two targets",
        ),
        (
            "[{ configMapRef: { name: A_b }, data: { a: b } }]",
            "spec.publish[0].configMapRef.name: `A_b` is not a valid",
        ),
        ("[{ secretRef: { name: a } }]", "spec.publish[0].data: the entry publishes nothing"),
        ("[{ secretRef: { name: a }, data: { 'a b': c } }]", "`a b` is not a valid Secret key"),
        ("[{ secretRef: { name: a }, data: { a: 1 } }]", "spec.publish[0].data.a: expected a string, found a number"),
        ("[{ secretRef: { name: a }, data: { a: '${inputs.x}' } }]", "spec.publish[0].data.a: there is no input `x`"),
        (
            "[{ secretRef: { name: a }, data: { a: b } }, { secretRef: { name: a }, data: { c: d } }]",
            "spec.publish[1].secretRef.name: Secret `a` is published twice",
        ),
        ("[{ secretRef: { name: a }, data: { a: '${self.no}' } }]", "spec.publish[0].data.a: `${self.no}`"),
    ];
    for (publish, expected) in cases {
        let sandbox = Sandbox::new();
        let text = format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: app }}\nspec:\n  type: terraform_data\n  \
             publish: {publish}\n"
        );
        sandbox.write("files/app.yaml", &text);
        let ran = sandbox.run(&["validate", "-f", "files"]);
        assert!(ran.one_error().contains(expected), "{publish}: {ran:?}");
    }
}

#[test]
fn forgetting_an_object_lists_its_published_objects() {
    let sandbox = example();
    let ran = sandbox.run(&["state", "rm", "database", "--yes"]);
    assert!(ran.stderr.contains("ConfigMap `database`, Secret `database`"), "{ran:?}");
    assert!(sandbox.path("published/secret-database.json").exists());
}
