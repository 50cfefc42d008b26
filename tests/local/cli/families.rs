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
