//! What is wrong is told at the object it is wrong with; everything else proceeds.

use crate::installation::*;

fn refused(namespace: &str, manifest: &str) -> String {
    let output = plane().kubectl_with_stdin(&["apply", "-n", namespace, "-f", "-"], manifest);
    assert!(!output.status.success(), "accepted:\n{manifest}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_api_server_refuses_at_once_what_it_can() {
    plane();
    let plane = plane();
    let ns = plane.namespace("refuse");
    let unknown = data("item", "one", "lifecycle: { createBeforeDestory: true }");
    assert!(refused(&ns, &unknown).contains("createBeforeDestory"));
    let name = data("item", "one", "").replace("name: item", "name: item.with.dots");
    assert!(refused(&ns, &name).contains("DNS label"));
    let itself = data("item", "one", "dependsOn: [{ name: item }]");
    assert!(refused(&ns, &itself).contains("itself"));
    let duration = data("item", "one", "timeouts: { create: soon }");
    assert!(refused(&ns, &duration).contains("timeouts.create"));
    let policy = data("item", "one", "deletionPolicy: Keep");
    assert!(refused(&ns, &policy).contains("Delete"));
    for inputs in
        ["[{ name: a }]", "[{ name: a, configMapKeyRef: { name: c, key: k }, secretKeyRef: { name: c, key: k } }]"]
    {
        let inputs = data("item", "one", &format!("inputs: {inputs}"));
        assert!(refused(&ns, &inputs).contains("give either configMapKeyRef or secretKeyRef"));
    }
    let name = data("item", "one", "inputs: [{ name: a-b, configMapKeyRef: { name: c, key: k } }]");
    assert!(refused(&ns, &name).contains("inputs[0].name"));
    let publish = data("item", "one", "publish: [{ data: { a: b } }]");
    assert!(refused(&ns, &publish).contains("give either configMapRef or secretRef"));
    let number = data("item", "one", "suspend: 3");
    assert!(refused(&ns, &number).contains("suspend"));
    let twice = data("item", "one", "lifecycle: { ignoreChanges: [input, input] }");
    assert!(refused(&ns, &twice).contains("ignoreChanges"));
    let both = data("item", "one", "lifecycle: { preventDestroy: true, preventDestroyWhen: '${1 == 1}' }");
    assert!(refused(&ns, &both).contains("exclude each other"));
    for (repetition, told) in [
        ("count: -1", "must not be negative"),
        ("count: 20000", "at most 10000"),
        ("count: 1.5", "count"),
        ("count: many", "must be a whole number, or an expression"),
        ("count: true", "count"),
        ("count: 1\nforEach: [a]", "must not validate the schema (not)"),
        ("enabled: false\nenabledWhen: '${1 == 1}'", "exclude each other"),
        ("enabled: \"no\"", "enabled"),
    ] {
        let message = refused(&ns, &data("item", "one", repetition));
        assert!(message.contains(told), "{repetition}: {message}");
    }
    for import in ["{}", "{ id: null }", "{ identity: null }", "{ id: a, identity: { name: a } }", "{ identity: a }"] {
        let message = refused(&ns, &data("item", "one", &format!("import: {import}")));
        assert!(message.contains("spec.import"), "{import}: {message}");
    }
    // As everywhere in Kubernetes, a null is as good as nothing.
    let made = ["apply", "--server-side", "-n", &ns, "-f", "-"];
    let output = plane.kubectl_with_stdin(&made, &data("made", "one", "import: null"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(resource(&ns, "made").unwrap()["spec"]["import"].is_null());
    let blind = data("item", "one", "managementPolicies: [Create]");
    assert!(refused(&ns, &blind).contains("Observe"));
    plane.apply(&["-n", &ns], &data("item", "one", ""));
    let other = data("item", "one", "").replace("terraform_data", "kubernetes_object");
    assert!(refused(&ns, &other).contains("immutable"));
}

#[test]
fn one_bad_object_disturbs_no_other() {
    let _world = shared();
    let plane = plane();
    let ns = plane.namespace("bad");
    let manifests = [
        data("good", "one", ""),
        data("typo", "one", "").replace("terraform_data", "terraform_date"),
        data("syntax", "\"${good.output +}\"", ""),
        data("nothing", "\"${missing.output}\"", ""),
        data("myself", "\"${myself.output}\"", ""),
        data("ring-a", "\"${ring_b.id}\"", ""),
        data("ring-b", "\"${ring_a.id}\"", ""),
        data("after-ring", "\"${ring_a.id}\"", ""),
        data("argument", "one", "").replace("input:", "inptu:"),
        data("attribute", "\"${good.outptu}\"", ""),
        data("triggered", "one", "lifecycle: { replaceTriggeredBy: [ns.name] }"),
        data("ignored", "one", "lifecycle: { ignoreChanges: [inptu] }"),
        data("fine", "\"${good.output} too\"", ""),
    ];
    plane.apply(&["-n", &ns], &manifests.concat());
    wait_ready(&ns, &["good", "fine"]);
    for (name, reason, told) in [
        ("typo", "UnknownType", "terraform_date"),
        ("syntax", "InvalidExpression", "spec.config.input"),
        ("nothing", "DependencyNotFound", "missing"),
        ("myself", "SelfReference", "spec.config.input"),
        ("ring-a", "DependencyCycle", "ring-b"),
        ("ring-b", "DependencyCycle", "ring-a"),
        ("argument", "InvalidConfig", "inptu"),
        ("triggered", "InvalidManifest", "spec.lifecycle.replaceTriggeredBy[0]"),
        ("ignored", "InvalidConfig", "spec.lifecycle.ignoreChanges[0]"),
        ("attribute", "InvalidExpression", "outptu"),
    ] {
        let condition = wait_reason(&ns, name, "Ready", reason);
        let message = condition["message"].as_str().unwrap();
        assert!(message.contains(told), "{name}: {message}");
        assert!(!message.contains('\n'), "{name}: {message}");
    }
    wait_reason(&ns, "after-ring", "Ready", "DependencyNotReady");
    assert_eq!(records(&ns).len(), 2, "nothing is recorded of what could not be planned");
    // What was missing comes, and the one that waited for it goes on.
    plane.apply(&["-n", &ns], &data("missing", "here", ""));
    wait_ready(&ns, &["missing", "nothing"]);
    // An object that never existed goes at once.
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "ring-a", "ring-b", "typo", "--timeout=30s"]);
}

#[test]
fn a_change_for_the_worse_destroys_nothing() {
    let _world = shared();
    let plane = plane();
    let ns = plane.namespace("worse");
    plane.apply(&["-n", &ns], &format!("{}{}", data("base", "one", ""), data("top", "\"${base.id}\"", "")));
    wait_ready(&ns, &["base", "top"]);
    let before = records(&ns);
    plane.apply(&["-n", &ns], &data("top", "\"${base.id\"", ""));
    wait_reason(&ns, "top", "Ready", "InvalidExpression");
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "base", "--wait=false"]);
    wait_reason(&ns, "base", "DeletionBlocked", "StillUsed");
    assert_eq!(records(&ns), before, "no record was touched");
}
