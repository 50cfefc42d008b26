//! Conditions, as `docs/conditions.md` shows them.

use super::sandbox::Sandbox;

/// The manifests of a page of the documentation.
fn example(page: &str) -> String {
    let path = format!("{}/docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect::<Vec<_>>().join("---\n")
}

#[test]
fn the_example_of_the_page_comes_out_as_it_says() {
    let sandbox = Sandbox::new();
    let text = example("conditions.md");
    sandbox.write("files/objects.yaml", &text);
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = "spec.lifecycle.preconditions[0]: the pool has 1 node, and the app needs two";
    // On a create nothing of the pool is known before the step, so it is the step that finds out.
    assert!(ran.stdout.contains(told) || ran.stderr.contains(told), "{ran:?}");
    assert_eq!(addresses(&sandbox), ["pool"]);
    // By now it is known, so the plan tells.
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains(told) || ran.stderr.contains(told), "{ran:?}");

    sandbox.write("files/objects.yaml", &text.replace("nodes: 1", "nodes: 2"));
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    assert_eq!(addresses(&sandbox), ["app", "pool"]);

    // What the app becomes is known only after its update, so it is the step that fails.
    sandbox.write("files/objects.yaml", &text.replace("nodes: 1", "nodes: 2").replace("eu-west-1", "us-west-1"));
    let ran = sandbox.run(&["apply", "-f", "files", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = "the app must run in the EU";
    assert!(ran.stdout.contains(told) || ran.stderr.contains(told), "{ran:?}");
    // The destroy of everything asks for none of it.
    sandbox.ok(&["destroy", "--yes"]);
}

fn addresses(sandbox: &Sandbox) -> Vec<String> {
    let state = sandbox.json(&["state", "list", "-o", "json"]);
    let objects = state["objects"].as_array().unwrap().iter();
    objects.map(|object| object["address"].as_str().unwrap().to_owned()).collect()
}
