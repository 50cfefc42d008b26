//! What a configuration with errors changes: nothing, or with `--keep-going`, what is valid.

use super::sandbox::{Sandbox, manifest};

/// A reference to an object that does not exist.
const FAULTY: &str = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: faulty }\nspec: { type: \
                      terraform_data, config: { input: \"${nothing.id}\" } }\n";

const NOTHING: &str = "Nothing was changed, because the plan has errors. --keep-going applies the rest of it.";

fn protected(name: &str, trigger: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
         terraform_data\n  config: {{ triggers_replace: {trigger} }}\n  lifecycle: {{ preventDestroy: true }}\n"
    )
}

fn ids(sandbox: &Sandbox) -> Vec<String> {
    let list = sandbox.json(&["state", "list", "-o", "json"]);
    let objects = list["objects"].as_array().unwrap();
    objects.iter().map(|object| format!("{} {}", object["address"], object["values"]["id"])).collect()
}

#[test]
fn apply_changes_nothing_while_the_configuration_has_errors() {
    let sandbox = Sandbox::new();
    sandbox.objects(&[("database", &[]), ("app", &["database"])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let before = ids(&sandbox);
    // A new name with a mistake in the same save, and a new object.
    sandbox.write("files/objects.yaml", &(manifest("new", &[]) + FAULTY));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!((ran.code, ran.stderr.contains(NOTHING)), (Some(1), true), "{ran:?}");
    assert!(ran.one_error().contains("references `nothing`, which does not exist"), "{ran:?}");
    assert!(ran.stderr.contains("  2 objects wait for this: app, database\n"), "{ran:?}");
    assert_eq!(ids(&sandbox), before);
    let events = sandbox.events(&["apply", "-f", "files", "--yes", "-o", "json"]);
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["created"], &last["destroyed"]), (&"summary".into(), &0.into(), &0.into()));
    assert_eq!(ids(&sandbox), before);
    // What is valid is created, and nothing is destroyed because its manifest is missing.
    let ran = sandbox.run(&["apply", "-f", "files", "--yes", "--keep-going"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["app", "database", "new"]);
    sandbox.write("files/objects.yaml", &manifest("new", &[]));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.recorded(), ["new"]);
}

#[test]
fn an_error_outside_of_a_resource_keeps_objects_without_a_manifest() {
    let sandbox = Sandbox::new();
    let provider = "---\napiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: { name: random }\nspec: { source: \
                    hashicorp/random, version: 3.6.0 }\n";
    sandbox.objects(&[("a", &[]), ("b", &[])]);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.write("files/objects.yaml", &(manifest("a", &[]) + provider + provider));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes", "--keep-going"]);
    assert!(ran.stderr.contains("the Provider `random` is already defined"), "{ran:?}");
    assert_eq!((ran.code, sandbox.recorded()), (Some(1), vec!["a".to_owned(), "b".to_owned()]), "{ran:?}");
}

#[test]
fn destroy_destroys_nothing_if_something_is_protected() {
    let sandbox = Sandbox::new();
    sandbox.write("files/objects.yaml", &(manifest("a", &[]) + &protected("database", "1")));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let ran = sandbox.run(&["destroy", "--yes"]);
    assert!(ran.one_error().contains("`preventDestroy` forbids it") || ran.stderr.contains(NOTHING), "{ran:?}");
    assert_eq!(sandbox.recorded(), ["a", "database"]);
    let ran = sandbox.run(&["destroy", "--yes", "--keep-going"]);
    assert_eq!((ran.code, sandbox.recorded()), (Some(1), vec!["database".to_owned()]), "{ran:?}");
}

#[test]
fn a_plan_with_errors_is_not_saved() {
    let sandbox = Sandbox::new();
    sandbox.write("files/objects.yaml", &(manifest("new", &[]) + FAULTY));
    let ran = sandbox.run(&["plan", "-f", "files", "--out", "saved.plan"]);
    assert!(ran.stderr.contains("The plan was not saved, because it has errors."), "{ran:?}");
    assert_eq!((ran.code, sandbox.path("saved.plan").exists()), (Some(1), false));
}

#[test]
fn an_object_that_waits_does_not_stop_the_others() {
    let sandbox = Sandbox::new();
    let waits = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: waits }\nspec: { type: \
                 terraform_data, count: \"${size(a.id)}\", config: { input: 1 } }\n";
    let suspended = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: suspended }\nspec: { \
                     type: terraform_data, suspend: true, config: { input: 1 } }\n";
    sandbox.write("files/objects.yaml", &(manifest("a", &[]) + waits + suspended));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(sandbox.recorded(), ["a"]);
}

#[test]
fn dev_destroys_nothing_while_a_manifest_has_an_error() {
    let sandbox = Sandbox::new();
    sandbox.write("files/database.yaml", &manifest("database", &[]));
    sandbox.write("files/other.yaml", &manifest("other", &[]));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.write("files/new.yaml", FAULTY);
    let mut dev = sandbox.start(&["dev", "-f", "files"]);
    dev.wait_until("the error is shown", |dev| dev.err().contains("references `nothing`"));
    sandbox.remove("files/database.yaml");
    dev.wait_until("the removal is held", |dev| dev.out().contains("They are kept until the errors above are fixed."));
    // The removal is planned: a later change is carried out, and the object is still there.
    sandbox.write("files/later.yaml", &manifest("later", &[]));
    dev.wait_until("the later object exists", |_| sandbox.recorded().contains(&"later".to_owned()));
    assert_eq!(sandbox.recorded(), ["database", "later", "other"]);
    sandbox.remove("files/new.yaml");
    dev.wait_until("the object is destroyed", |_| sandbox.recorded() == ["later", "other"]);
    dev.signal("INT");
    dev.end();
}

#[test]
fn an_edit_that_protection_stops_is_not_half_applied() {
    let sandbox = Sandbox::new();
    let objects = |version: &str| {
        let key = format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: key }}\nspec:\n  type: \
             terraform_data\n  config: {{ triggers_replace: {version} }}\n"
        );
        let database = protected("database", "\"${key.id}\"")
            .replace("preventDestroy", "createBeforeDestroy: true, preventDestroy");
        key + &database + &manifest("other", &[])
    };
    sandbox.write("files/objects.yaml", &objects("1"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let before = ids(&sandbox);
    sandbox.write("files/objects.yaml", &objects("2"));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes", "--keep-going"]);
    assert!(ran.one_error().contains("key: must be replaced, but `database`, which has to follow, cannot"), "{ran:?}");
    assert!(
        ran.stderr.contains("hint: revert the change, or resolve the problem of `database`: set `spec.lifecycle"),
        "{ran:?}"
    );
    assert_eq!(ids(&sandbox), before);
    // Reverting it costs nothing.
    sandbox.write("files/objects.yaml", &objects("1"));
    assert!(sandbox.ok(&["plan", "-f", "files"]).contains("No changes"));
    // The hint works.
    sandbox.write("files/objects.yaml", &objects("2").replace("preventDestroy: true", "preventDestroy: false"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_ne!(ids(&sandbox), before);
}
