//! Copies of outputs, as files beside the state file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value as Json;

use super::sandbox::{Sandbox, fenced};

fn example() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("files/app.yaml", fenced(include_str!("../../../docs/publish.md"), "yaml")[0]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox
}

fn copy(sandbox: &Sandbox, name: &str) -> Json {
    serde_json::from_str(&fs::read_to_string(sandbox.path(name)).unwrap()).unwrap()
}

#[test]
fn the_example_of_the_documentation_publishes_what_it_says() {
    let sandbox = example();
    for name in fenced(include_str!("../../../docs/publish.md"), "text")[0].lines() {
        let mode = fs::metadata(sandbox.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let public = copy(&sandbox, "published/configmap-database.json");
    assert_eq!(public["data"], serde_json::json!({"HOST": "db.example", "PORT": "5432"}));
    let secret = copy(&sandbox, "published/secret-database.json");
    assert_eq!(secret["stringData"]["URL"], "postgres://app:correct-horse@db.example:5432/");
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0), "nothing more to do");
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("published").exists());
}

#[test]
fn the_instances_of_the_example_publish_under_names_of_their_own() {
    let sandbox = Sandbox::new();
    sandbox.write("files/tenant.yaml", fenced(include_str!("../../../docs/publish.md"), "yaml")[1]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    for (key, quota) in [("blue", "10 GiB"), ("green", "20 GiB")] {
        let copy = copy(&sandbox, &format!("published/configmap-tenant-{key}.json"));
        assert_eq!(copy["data"], serde_json::json!({"QUOTA": quota, "NAME": key}));
    }
    assert_eq!(sandbox.run(&["plan", "-f", "files", "--detailed-exitcode"]).code, Some(0), "nothing more to do");
}

#[test]
fn a_file_that_is_not_ours_is_left_alone() {
    let sandbox = example();
    sandbox.ok(&["destroy", "--yes"]);
    fs::create_dir(sandbox.path("published")).unwrap();
    sandbox.write("published/secret-database.json", "{}");
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1));
    assert!(format!("{ran:?}").contains("is there and is not ours"), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["database"], "the object was made");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(fs::read_to_string(sandbox.path("published/secret-database.json")).unwrap(), "{}");
}

#[test]
fn each_mistake_is_told_at_its_place() {
    let cases = [
        ("[{ data: { a: b } }]", "spec.publish[0]: it has no target"),
        (
            "[{ configMapRef: { name: a }, secretRef: { name: a }, data: { a: b } }]",
            "spec.publish[0]: it has two targets",
        ),
        ("[{ configMapRef: { name: A_b }, data: { a: b } }]", "spec.publish[0].configMapRef.name: `A_b` cannot be"),
        ("[{ secretRef: { name: a } }]", "spec.publish[0].data: nothing is published"),
        ("[{ secretRef: { name: a }, data: { 'a b': c } }]", "`a b` cannot be a key of a Secret"),
        (
            "[{ secretRef: { name: a }, data: { a: 1 } }]",
            "spec.publish[0].data.a: a number stands where a text is needed",
        ),
        ("[{ secretRef: { name: a }, data: { a: '${inputs.x}' } }]", "spec.publish[0].data.a: there is no input `x`"),
        (
            "[{ secretRef: { name: a }, data: { a: b } }, { secretRef: { name: a }, data: { c: d } }]",
            "spec.publish[1].secretRef.name: Secret `a` is published twice",
        ),
        ("[{ secretRef: { name: a }, data: { a: '${self.no}' } }]", "spec.publish[0].data.a: `${self.no}`"),
    ];
    for (publish, told) in cases {
        let sandbox = Sandbox::new();
        let text = format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: app }}\nspec:\n  type: terraform_data\n  \
             publish: {publish}\n"
        );
        sandbox.write("files/app.yaml", &text);
        let ran = sandbox.run(&["validate", "-f", "files"]);
        assert!(ran.one_error().contains(told), "{publish}: {ran:?}");
    }
}

#[test]
fn forgetting_an_object_tells_what_it_leaves_behind() {
    let sandbox = example();
    let ran = sandbox.run(&["state", "rm", "database", "--yes"]);
    assert!(ran.stderr.contains("ConfigMap `database`, Secret `database`"), "{ran:?}");
    assert!(sandbox.path("published/secret-database.json").exists());
}
