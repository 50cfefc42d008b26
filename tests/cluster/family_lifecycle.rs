//! Hooks, drift, suspension and moves of the instances of a family.

use serde_json::{Value as Json, json};

use crate::controlplane::wait_until;
use crate::installation::*;

/// A ConfigMap for each key.
fn maps(name: &str, annotations: &str, keys: &str, color: &str, more: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name}, annotations: {{ {annotations} }} \
         }}\nspec:\n  type: kubernetes_object\n  forEach: {keys}\n{more}  config:\n    manifest: {{ apiVersion: v1, kind: \
         ConfigMap, metadata: {{ name: \"map-${{each.key}}\" }}, data: {{ color: {color} }} }}\n"
    )
}

fn live(ns: &str, key: &str) -> Option<Json> {
    let output = plane().kubectl(&["-n", ns, "get", "configmap", &format!("map-{key}"), "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON of kubectl"))
}

fn color(ns: &str, key: &str) -> String {
    live(ns, key).and_then(|map| map["data"]["color"].as_str().map(str::to_owned)).unwrap_or_default()
}

fn paint(ns: &str, key: &str, color: &str) {
    let patch = json!({"data": {"color": color}}).to_string();
    plane().kubectl_ok(&["-n", ns, "patch", "configmap", &format!("map-{key}"), "--type=merge", "-p", &patch]);
}

fn recorded(ns: &str) -> Vec<String> {
    let all = records(ns).into_iter().filter(|secret| secret["metadata"]["labels"]["purlin.dev/record"] == "head");
    let address = |secret: Json| secret["metadata"]["annotations"]["purlin.dev/address"].as_str().map(str::to_owned);
    let mut all: Vec<String> = all.filter_map(address).collect();
    all.sort();
    all
}

#[test]
fn the_hooks_of_a_family_run_for_each_instance() {
    let _guard = shared();
    let ns = with_rights("family-hooks");
    let hook = |name: &str, when: &str| {
        format!(
            "- {{ name: {name}, when: {when}, job: {{ template: {{ metadata: {{ annotations: {{ test.purlin.dev/outcome: \
             succeeded, test.purlin.dev/termination-message: \"{name} of ${{each.key}}\" }} }}, spec: {{ containers: [{{ \
             name: c, image: x }}] }} }} }} }}\n"
        )
    };
    let family = |keys: &str| {
        let hooks = [hook("warm-up", "AfterCreate"), hook("drain", "BeforeDestroy")].concat();
        data("server", "one", &format!("forEach: {keys}\nhooks:\n{}", hooks.trim_end()))
    };
    let wait_event = |text: &str| {
        wait_event(&ns, "server", text);
    };
    plane().apply(&["-n", &ns], &family("[a, b]"));
    wait_ready(&ns, &["server"]);
    wait_event("the hook `warm-up` ran: warm-up of a");
    wait_event("the hook `warm-up` ran: warm-up of b");
    plane().apply(&["-n", &ns], &family("[b]"));
    wait_event("the hook `drain` ran: drain of a");
    wait_until("only b is left", LIMIT, || recorded(&ns) == ["server[\"b\"]"]);
    assert!(!events(&ns, "server").iter().any(|event| event.contains("drain of b")));
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "server", "--wait=false"]);
    wait_empty(&ns);
    wait_event("the hook `drain` ran: drain of b");
}

#[test]
fn drift_of_one_instance_is_corrected_or_reported_and_the_others_do_not_change() {
    let _guard = shared();
    let ns = with_rights("family-drift");
    plane().apply(&["-n", &ns], &maps("corrected", "", "[a, b]", "green", ""));
    let report = "  drift: { action: Report }\n";
    plane().apply(&["-n", &ns], &maps("reported", "", "[c, d]", "green", report));
    wait_ready(&ns, &["corrected", "reported"]);
    let version = |key: &str| live(&ns, key).unwrap()["metadata"]["resourceVersion"].clone();
    let others = (version("b"), version("d"));
    paint(&ns, "c", "red");
    paint(&ns, "a", "red");
    wait_until("it is corrected", LIMIT, || color(&ns, "a") == "green");
    let drifted = wait_reason(&ns, "reported", "Drifted", "Drifted");
    let message = drifted["message"].as_str().unwrap();
    assert!(message.contains("reported[\"c\"]") && message.contains("`object.data.color`"), "{message}");
    assert!(!message.contains("reported[\"d\"]"), "{message}");
    wait_ready(&ns, &["corrected", "reported"]);
    assert_eq!(color(&ns, "c"), "red");
    assert_eq!((version("b"), version("d")), others);
    paint(&ns, "c", "green");
    wait_until("the drift is no longer reported", LIMIT, || {
        condition(&resource(&ns, "reported").unwrap(), "Drifted").is_none()
    });
}

#[test]
fn a_suspended_family_is_not_scaled_until_it_is_resumed() {
    let _guard = shared();
    let ns = with_rights("family-suspend");
    plane().apply(&["-n", &ns], &maps("web", "", "[a, b]", "green", ""));
    wait_ready(&ns, &["web"]);
    plane().apply(&["-n", &ns], &maps("web", "", "[b, c]", "blue", "  suspend: true\n"));
    wait_reason(&ns, "web", "Synced", "Suspended");
    // A later object of the same namespace shows that the controller has processed the change.
    plane().apply(&["-n", &ns], &data("later", "one", ""));
    wait_ready(&ns, &["later"]);
    assert_eq!((color(&ns, "a"), color(&ns, "b"), color(&ns, "c")), ("green".into(), "green".into(), String::new()));
    plane().apply(&["-n", &ns], &maps("web", "", "[b, c]", "blue", "  suspend: false\n"));
    wait_ready(&ns, &["web"]);
    wait_until("a is deleted", LIMIT, || live(&ns, "a").is_none());
    assert_eq!((color(&ns, "b"), color(&ns, "c")), ("blue".into(), "blue".into()));
}

#[test]
fn a_renamed_family_keeps_its_objects_also_over_two_names() {
    let _guard = shared();
    let ns = with_rights("family-moves");
    // The owner annotation is also updated on objects whose drift is only reported, and is itself not drift.
    let more = "  lifecycle: { preventDestroy: true }\n  drift: { action: Report }\n";
    plane().apply(&["-n", &ns], &maps("first", "", "[a, b]", "green", more));
    wait_ready(&ns, &["first"]);
    let uids = || ["a", "b"].map(|key| live(&ns, key).unwrap()["metadata"]["uid"].clone());
    let before = uids();
    // `second` never existed: a manifest that skips a version lists all its previous names.
    let moved = "purlin.dev/moved-from: \"second, first\"";
    plane().apply(&["-n", &ns], &maps("third", moved, "[a, b, c]", "green", more));
    wait_reason(&ns, "third", "Ready", "MoveBlocked");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "first", "--wait=false"]);
    wait_until("the old one is deleted", LIMIT, || resource(&ns, "first").is_none());
    wait_ready(&ns, &["third"]);
    assert_eq!(recorded(&ns), ["third[\"a\"]", "third[\"b\"]", "third[\"c\"]"]);
    assert_eq!(uids(), before);
    let owner = |key: &str| live(&ns, key).unwrap()["metadata"]["annotations"]["purlin.dev/owner"].to_string();
    wait_until("the owner annotations are updated", LIMIT, || {
        ["a", "b"].iter().all(|key| owner(key).contains("/third/"))
    });
    wait_ready(&ns, &["third"]);
    assert_eq!(condition(&resource(&ns, "third").unwrap(), "Drifted"), None);

    // A chain in one apply: `third` becomes `fourth`, and another family claims both names.
    plane().apply(
        &["-n", &ns],
        &[
            maps("fourth", "purlin.dev/moved-from: \"third\"", "[a, b, c]", "green", ""),
            maps("fifth", "purlin.dev/moved-from: \"fourth, third\"", "[a, b, c]", "green", "  suspend: true\n"),
        ]
        .concat(),
    );
    wait_reason(&ns, "fourth", "Ready", "MoveBlocked");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "fifth", "--wait=false"]);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "third", "--wait=false"]);
    wait_until("both are deleted", LIMIT, || ["third", "fifth"].iter().all(|name| resource(&ns, name).is_none()));
    wait_ready(&ns, &["fourth"]);
    assert_eq!(uids(), before);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "fourth", "--wait=false"]);
    wait_empty(&ns);
    wait_until("nothing is left", LIMIT, || live(&ns, "a").is_none() && recorded(&ns).is_empty());
}
