//! Families of many instances.

use serde_json::Value as Json;

use super::sandbox::Sandbox;

fn addresses(plan: &Json, action: &str) -> Vec<String> {
    let changes = plan["changes"].as_array().unwrap().iter();
    let of_action = changes.filter(|change| change["action"] == action);
    of_action.map(|change| change["address"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn dependencies_between_large_families_need_few_edges() {
    let sandbox = Sandbox::new();
    let family = |name: &str, after: &str| {
        format!(
            "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\n\
             spec: {{ type: terraform_data, count: 1000, dependsOn: [{after}] }}\n---\n"
        )
    };
    sandbox.write("files/all.yaml", &(family("a", "") + &family("b", "{ name: a }")));
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    assert_eq!(addresses(&plan, "Create").len(), 2000);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let plan = sandbox.json(&["plan", "-f", "files", "-o", "json"]);
    assert_eq!(addresses(&plan, "NoOp").len(), 2000);
}

#[test]
fn explain_shows_the_instances_of_a_family() {
    let sandbox = Sandbox::new();
    let one = |name: &str, spec: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\n\
             spec: {{ type: terraform_data, {spec} }}\n"
        )
    };
    let files = one("web", "count: 30") + &one("all", "config: { input: \"${size(web)}\" }");
    sandbox.write("files/objects.yaml", &files);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    sandbox.write("files/objects.yaml", &files.replace("count: 30", "count: 29"));

    let output = sandbox.ok(&["explain", "web", "-f", "files"]);
    assert!(output.starts_with("web[29] "), "instances with changes come first: {output}");
    assert!(output.contains("`web` has 30 instances, 1 with changes or blocked; 10 are not shown."), "{output}");
    let one = sandbox.ok(&["explain", "web[3]", "-f", "files"]);
    assert!(one.contains("Used by:     `all`"), "{one}");

    let rows = sandbox.json(&["state", "show", "web", "-o", "json"]);
    assert_eq!(rows["objects"].as_array().unwrap().len(), 30);
    let ran = sandbox.run(&["state", "taint", "web[77]"]);
    assert_eq!(ran.one_error(), "error: `web[77]` has no record");
    assert!(ran.stderr.contains("hint: specify an instance with a record, such as `web[0]`"), "{ran:?}");
}

#[test]
fn a_family_is_replaced_instance_by_instance() {
    let sandbox = Sandbox::new();
    let family = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: web }\n\
                  spec: { type: terraform_data, forEach: [blue, green] }\n";
    sandbox.write("files/web.yaml", family);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let ran = sandbox.run(&["plan", "-f", "files", "--replace", "web"]);
    assert!(ran.one_error().contains("--replace names `web`, which is a family of 2 objects"), "{ran:?}");
    assert!(ran.stderr.contains("--replace 'web[\"blue\"]' --replace 'web[\"green\"]'"), "{ran:?}");
    let plan = sandbox.json(&["plan", "-f", "files", "--replace", "web[\"blue\"]", "-o", "json"]);
    assert_eq!(addresses(&plan, "Replace"), ["web[\"blue\"]"]);
}
