//! An error is reported on the object that it belongs to; all other objects proceed.

use crate::installation::*;

fn rejection(namespace: &str, manifest: &str) -> String {
    let output = plane().kubectl_with_stdin(&["apply", "-n", namespace, "-f", "-"], manifest);
    assert!(!output.status.success(), "accepted:\n{manifest}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_api_server_rejects_invalid_manifests() {
    plane();
    let plane = plane();
    let ns = plane.namespace("refuse");
    let unknown = data("item", "one", "lifecycle: { createBeforeDestory: true }");
    assert!(rejection(&ns, &unknown).contains("createBeforeDestory"));
    let name = data("item", "one", "").replace("name: item", "name: item.with.dots");
    assert!(rejection(&ns, &name).contains("DNS label"));
    let name = rejection(&ns, &data("item", "one", "dependsOn: [app]"));
    assert!(name.contains("spec.dependsOn[0]") && !name.contains("associative"), "{name}");
    let server_side = ["apply", "--server-side", "-n", &ns, "-f", "-"];
    let output = plane.kubectl_with_stdin(&server_side, &data("item", "one", "dependsOn: [app]"));
    let name = String::from_utf8_lossy(&output.stderr);
    assert!(name.contains("spec.dependsOn[0]") && !name.contains("associative"), "{name}");
    let itself = data("item", "one", "dependsOn: [{ name: item }]");
    assert!(rejection(&ns, &itself).contains("itself"));
    let duration = data("item", "one", "timeouts: { create: soon }");
    assert!(rejection(&ns, &duration).contains("timeouts.create"));
    let policy = data("item", "one", "deletionPolicy: Keep");
    assert!(rejection(&ns, &policy).contains("Delete"));
    for inputs in
        ["[{ name: a }]", "[{ name: a, configMapKeyRef: { name: c, key: k }, secretKeyRef: { name: c, key: k } }]"]
    {
        let inputs = data("item", "one", &format!("inputs: {inputs}"));
        assert!(rejection(&ns, &inputs).contains("exactly one of configMapKeyRef and secretKeyRef"));
    }
    let name = data("item", "one", "inputs: [{ name: a-b, configMapKeyRef: { name: c, key: k } }]");
    assert!(rejection(&ns, &name).contains("inputs[0].name"));
    let publish = data("item", "one", "publish: [{ data: { a: b } }]");
    assert!(rejection(&ns, &publish).contains("exactly one of configMapRef and secretRef"));
    let number = data("item", "one", "suspend: 3");
    assert!(rejection(&ns, &number).contains("suspend"));
    let twice = data("item", "one", "lifecycle: { ignoreChanges: [input, input] }");
    assert!(rejection(&ns, &twice).contains("ignoreChanges"));
    let quoted = data("item", "one", "lifecycle: { preventDestroy: 'true' }");
    assert!(rejection(&ns, &quoted).contains("spec.lifecycle.preventDestroy"));
    for (repetition, expected) in [
        ("count: -1", "must be between 0 and 10000"),
        ("count: 20000", "must be between 0 and 10000"),
        ("count: 1.5", "count"),
        ("count: many", "must be a whole number, or an expression"),
        ("count: true", "count"),
        ("enabled: \"no\"", "enabled"),
    ] {
        let message = rejection(&ns, &data("item", "one", repetition));
        assert!(message.contains(expected), "{repetition}: {message}");
    }
    for import in ["{}", "{ id: null }", "{ identity: null }", "{ id: a, identity: { name: a } }", "{ identity: a }"] {
        let message = rejection(&ns, &data("item", "one", &format!("import: {import}")));
        assert!(message.contains("spec.import"), "{import}: {message}");
    }
    // As everywhere in Kubernetes, null means that the field is not set.
    let output = plane.kubectl_with_stdin(&server_side, &data("null-import", "one", "import: null"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(resource(&ns, "null-import").unwrap()["spec"]["import"].is_null());
    let blind = data("item", "one", "managementPolicies: [Create]");
    assert!(rejection(&ns, &blind).contains("Observe"));
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    let other = data("item", "one", "").replace("terraform_data", "kubernetes_object");
    assert!(rejection(&ns, &other).contains("immutable"));
}

#[test]
fn an_invalid_object_does_not_affect_others() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("bad");
    let manifests = [
        data("good", "one", ""),
        data("typo", "one", "").replace("terraform_data", "terraform_date"),
        data("syntax", "\"${good.output +}\"", ""),
        data("nothing", "\"${missing.output}\"", ""),
        data("myself", "\"${myself.output}\"", ""),
        data("cycle-a", "\"${cycle_b.id}\"", ""),
        data("cycle-b", "\"${cycle_a.id}\"", ""),
        data("after-cycle", "\"${cycle_a.id}\"", ""),
        data("argument", "one", "").replace("input:", "inptu:"),
        data("attribute", "\"${good.outptu}\"", ""),
        data("triggered", "one", "lifecycle: { replaceTriggeredBy: [ns.name] }"),
        data("ignored", "one", "lifecycle: { ignoreChanges: [inptu] }"),
        data("switch", "one", "enabled: 1"),
        data("guard", "one", "lifecycle: { preventDestroy: [yes] }"),
        data("repeated", "one", "count: 1\nforEach: [a]"),
        data("fine", "\"${good.output} too\"", ""),
    ];
    plane.apply(&["-n", &ns], &manifests.concat());
    wait_ready(&ns, &["good", "fine"]);
    for (name, reason, expected) in [
        ("typo", "UnknownType", "terraform_date"),
        ("syntax", "InvalidExpression", "spec.config.input"),
        ("nothing", "DependencyNotFound", "missing"),
        ("myself", "SelfReference", "spec.config.input"),
        ("cycle-a", "DependencyCycle", "cycle-b"),
        ("cycle-b", "DependencyCycle", "cycle-a"),
        ("argument", "InvalidConfig", "inptu"),
        ("triggered", "InvalidManifest", "spec.lifecycle.replaceTriggeredBy[0]"),
        ("ignored", "InvalidConfig", "spec.lifecycle.ignoreChanges[0]"),
        ("attribute", "InvalidExpression", "outptu"),
        ("switch", "InvalidManifest", "spec.enabled: expected true, false or an expression"),
        ("guard", "InvalidManifest", "spec.lifecycle.preventDestroy: expected true, false or an expression"),
        ("repeated", "InvalidManifest", "`count` and `forEach` are mutually exclusive"),
    ] {
        let condition = wait_reason(&ns, name, "Ready", reason);
        let message = condition["message"].as_str().unwrap();
        assert!(message.contains(expected), "{name}: {message}");
        assert!(!message.contains('\n'), "{name}: {message}");
    }
    wait_reason(&ns, "after-cycle", "Ready", "DependencyNotReady");
    assert_eq!(records(&ns).len(), 2, "an object that could not be planned has no record");
    // After the missing Resource is created, its dependent proceeds.
    plane.apply(&["-n", &ns], &data("missing", "here", ""));
    wait_ready(&ns, &["missing", "nothing"]);
    // A Resource whose object was never created is deleted immediately.
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "cycle-a", "cycle-b", "typo", "--timeout=30s"]);
}

#[test]
fn an_invalid_change_destroys_nothing() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("worse");
    plane.apply(&["-n", &ns], &format!("{}{}", data("base", "one", ""), data("top", "\"${base.id}\"", "")));
    wait_ready(&ns, &["base", "top"]);
    let before = records(&ns);
    plane.apply(&["-n", &ns], &data("top", "\"${base.id\"", ""));
    wait_reason(&ns, "top", "Ready", "InvalidExpression");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "base", "--wait=false"]);
    wait_reason(&ns, "base", "DeletionBlocked", "InUse");
    assert_eq!(records(&ns), before, "no record changed");
}
