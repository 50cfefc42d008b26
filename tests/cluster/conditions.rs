//! Preconditions and postconditions that depend on changes by other clients.

use serde_json::json;

use crate::controlplane::wait_until;
use crate::installation::*;

#[test]
fn a_condition_that_becomes_true_unblocks_its_dependents() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("conditions");
    plane.bind(&ns, "edit", "--clusterrole=edit", "default");
    let gate = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: gate }\nspec:\n  type: \
                kubernetes_object\n  config:\n    manifest: { apiVersion: v1, kind: ConfigMap, metadata: { name: gate }, \
                data: { mine: here } }\n  lifecycle:\n    postconditions:\n    - condition: \
                ${self.object.data.?open.orValue('') == 'yes'}\n      errorMessage: the gate of ${ns.name} is closed\n";
    let choosy = data(
        "choosy",
        "1",
        "lifecycle:\n  preconditions:\n  - condition: ${ns.labels.?stage.orValue('') == 'ready'}\n    errorMessage: not \
         ready yet",
    );
    plane.apply(&["-n", &ns], &[gate, &data("behind", "\"${gate.id}\"", ""), &choosy].concat());

    let closed = wait_reason(&ns, "gate", "Ready", "PostconditionFailed");
    let message = closed["message"].as_str().unwrap();
    assert!(message.contains(&format!("the gate of {ns} is closed")), "{message}");
    assert!(message.contains("spec.lifecycle.postconditions[0]"), "{message}");
    let recorded = records(&ns);
    assert_eq!(recorded.len(), 1, "the object is recorded, and its dependent was not created: {recorded:?}");
    let behind = resource(&ns, "behind").unwrap();
    assert!(!is_ready(&behind), "{behind}");
    let created = plane.get(&["-n", &ns, "configmap", "gate"])["metadata"]["uid"].clone();

    // Another client opens the gate, in a field that Purlin does not own.
    plane.kubectl_ok(&["-n", &ns, "patch", "configmap", "gate", "--type=merge", "-p", r#"{"data":{"open":"yes"}}"#]);
    wait_ready(&ns, &["gate", "behind"]);
    assert_eq!(
        plane.get(&["-n", &ns, "configmap", "gate"])["metadata"]["uid"],
        created,
        "the object was not created again"
    );

    wait_reason(&ns, "choosy", "Ready", "PreconditionFailed");
    plane.kubectl_ok(&["label", "namespace", &ns, "stage=ready"]);
    wait_ready(&ns, &["choosy"]);

    // A destroy evaluates no conditions.
    plane.kubectl_ok(&["-n", &ns, "patch", "configmap", "gate", "--type=merge", "-p", r#"{"data":{"open":"no"}}"#]);
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    wait_until("nothing is recorded", LIMIT, || records(&ns).is_empty());
}

#[test]
fn the_api_server_rejects_a_condition_without_a_message() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("conditions-bad");
    let refused = |lifecycle: serde_json::Value| {
        let resource = json!({
            "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "bad"},
            "spec": {"type": "terraform_data", "lifecycle": lifecycle}
        });
        let output = plane.kubectl_with_stdin(&["apply", "-n", &ns, "-f", "-"], &resource.to_string());
        assert!(!output.status.success(), "{resource}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let missing = refused(json!({"preconditions": [{"condition": "${1 > 2}"}]}));
    assert!(missing.contains("spec.lifecycle.preconditions[0].errorMessage"), "{missing}");
    let empty = refused(json!({"postconditions": [{"condition": "", "errorMessage": "x"}]}));
    assert!(empty.contains("spec.lifecycle.postconditions[0].condition"), "{empty}");
    let kind = refused(json!({"postconditions": [{"condition": true, "errorMessage": "x"}]}));
    assert!(kind.contains("condition"), "{kind}");
}
