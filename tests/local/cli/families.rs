//! Families of many instances.

use serde_json::Value as Json;

use super::sandbox::Sandbox;

fn addresses(plan: &Json, action: &str) -> Vec<String> {
    let changes = plan["changes"].as_array().unwrap().iter();
    let of_action = changes.filter(|change| change["action"] == action);
    of_action.map(|change| change["address"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_thousand_instances_that_depend_on_a_thousand_others_are_no_million_edges() {
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
fn the_name_of_a_family_stands_for_its_instances() {
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

    let told = sandbox.ok(&["explain", "web", "-f", "files"]);
    assert!(told.starts_with("web[29] "), "what is to change comes first: {told}");
    assert!(told.contains("`web` has 30 instances, of which 1 are to change or blocked; 10 are not shown."), "{told}");
    let one = sandbox.ok(&["explain", "web[3]", "-f", "files"]);
    assert!(one.contains("Used by:     `all`"), "{one}");

    let rows = sandbox.json(&["state", "show", "web", "-o", "json"]);
    assert_eq!(rows["objects"].as_array().unwrap().len(), 30);
    let ran = sandbox.run(&["state", "taint", "web[77]"]);
    assert_eq!(ran.one_error(), "error: nothing is recorded of `web[77]`");
    assert!(ran.stderr.contains("hint: there is `web[0]`, among others"), "{ran:?}");
}

#[test]
fn a_family_is_replaced_instance_by_instance() {
    let sandbox = Sandbox::new();
    let family = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: web }\n\
                  spec: { type: terraform_data, forEach: [blue, green] }\n";
    sandbox.write("files/web.yaml", family);
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let told = sandbox.run(&["plan", "-f", "files", "--replace", "web"]);
    assert!(told.one_error().contains("--replace names `web`, which stands for 2 objects"), "{told:?}");
    assert!(told.stderr.contains("--replace 'web[\"blue\"]' --replace 'web[\"green\"]'"), "{told:?}");
    let plan = sandbox.json(&["plan", "-f", "files", "--replace", "web[\"blue\"]", "-o", "json"]);
    assert_eq!(addresses(&plan, "Replace"), ["web[\"blue\"]"]);
}
