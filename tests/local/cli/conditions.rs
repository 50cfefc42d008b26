//! Runs the example of `docs/conditions.md`.

use super::sandbox::Sandbox;

/// Returns the manifests of a documentation page.
fn example(page: &str) -> String {
    let path = format!("{}/docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect::<Vec<_>>().join("---\n")
}

#[test]
fn the_documented_conditions_are_checked() {
    let sandbox = Sandbox::new();
    let text = example("conditions.md");
    sandbox.write("files/objects.yaml", &text);
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let expected = "spec.lifecycle.preconditions[0]: the pool has 1 node, and the app needs two";
    // The attributes of the pool are unknown until it is created, so the step evaluates the condition.
    assert!(ran.stdout.contains(expected) || ran.stderr.contains(expected), "{ran:?}");
    assert_eq!(addresses(&sandbox), ["pool"]);
    // They are known now, so the plan reports the failure.
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains(expected) || ran.stderr.contains(expected), "{ran:?}");

    sandbox.write("files/objects.yaml", &text.replace("nodes: 1", "nodes: 2"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(addresses(&sandbox), ["app", "pool"]);

    // The result of the update is unknown until it is done, so the step fails.
    sandbox.write("files/objects.yaml", &text.replace("nodes: 1", "nodes: 2").replace("eu-west-1", "us-west-1"));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let expected = "the app must run in the EU";
    assert!(ran.stdout.contains(expected) || ran.stderr.contains(expected), "{ran:?}");
    // A destroy evaluates no conditions.
    sandbox.ok(&["destroy", "--yes"]);
}

fn addresses(sandbox: &Sandbox) -> Vec<String> {
    let state = sandbox.json(&["state", "list", "-o", "json"]);
    let objects = state["objects"].as_array().unwrap().iter();
    objects.map(|object| object["address"].as_str().unwrap().to_owned()).collect()
}
