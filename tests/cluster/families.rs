//! Families: instances are created, changed and destroyed one by one, and the status of the Resource summarizes them.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::command_line::ok;
use crate::controlplane::wait_until;
use crate::installation::*;

fn family(name: &str, input: &str, more: &str) -> String {
    data(name, input, more)
}

/// The addresses of all records of a kind: `head` for the instances, `family` for the index of a family.
fn recorded(namespace: &str, kind: &str) -> Vec<String> {
    let all = records(namespace).into_iter().filter(|secret| secret["metadata"]["labels"]["purlin.dev/record"] == kind);
    let address = |secret: Json| secret["metadata"]["annotations"]["purlin.dev/address"].as_str().map(str::to_owned);
    let mut all: Vec<String> = all.filter_map(address).collect();
    all.sort();
    all
}

/// The id of each object, from the records.
fn ids(namespace: &str) -> BTreeMap<String, String> {
    let state: Json = serde_json::from_str(&ok(&["state", "list", "-o", "json", "-n", namespace])).unwrap();
    let rows = state["objects"].as_array().cloned().unwrap_or_default();
    let id =
        |row: &Json| (row["address"].as_str().unwrap().to_owned(), row["values"]["id"].as_str().unwrap().to_owned());
    rows.iter().map(id).collect()
}

fn instances(namespace: &str, name: &str) -> Json {
    resource(namespace, name).unwrap()["status"]["instances"].clone()
}

fn ready_message(namespace: &str, name: &str) -> String {
    let ready = condition(&resource(namespace, name).unwrap(), "Ready").unwrap();
    ready["message"].as_str().unwrap().to_owned()
}

fn scale(namespace: &str, name: &str, count: u32) {
    let patch = json!({"spec": {"count": count}}).to_string();
    plane().kubectl_ok(&["-n", namespace, "patch", "pres", name, "--type=merge", "-p", &patch]);
}

#[test]
fn a_family_is_scaled_up_and_down_and_deleted() {
    let _guard = shared();
    let ns = plane().namespace("grow");
    let reader = data("reader", "\"${web.map(w, w.output)}\"", "");
    plane().apply(&["-n", &ns], &format!("{}{reader}", family("web", "\"n${count.index}\"", "count: 3")));
    wait_ready(&ns, &["web", "reader"]);
    assert_eq!(instances(&ns, "web"), json!({"desired": 3, "ready": 3, "deposed": 0}));
    assert!(ready_message(&ns, "web").starts_with("3 of 3 ready"), "{}", ready_message(&ns, "web"));
    assert_eq!(recorded(&ns, "head"), ["reader", "web[0]", "web[1]", "web[2]"]);
    assert_eq!(recorded(&ns, "family"), ["web"]);
    let first = ids(&ns);
    let reads = |expected: Json| {
        wait_until("the reader has the new value", LIMIT, || {
            resource(&ns, "reader").unwrap()["status"]["attributes"]["output"] == expected
        });
    };
    reads(json!(["n0", "n1", "n2"]));

    scale(&ns, "web", 5);
    reads(json!(["n0", "n1", "n2", "n3", "n4"]));
    wait_ready(&ns, &["web"]);
    scale(&ns, "web", 1);
    reads(json!(["n0"]));
    wait_until("the others are deleted", LIMIT, || recorded(&ns, "head") == ["reader", "web[0]"]);
    wait_until("the status shows it", LIMIT, || {
        instances(&ns, "web") == json!({"desired": 1, "ready": 1, "deposed": 0})
    });
    assert_eq!(ids(&ns)["web[0]"], first["web[0]"], "it was never replaced");

    scale(&ns, "web", 0);
    wait_reason(&ns, "web", "Ready", "NoInstances");
    wait_until("all are deleted", LIMIT, || recorded(&ns, "head") == ["reader"] && recorded(&ns, "family").is_empty());
    wait_until("the finalizer is removed", LIMIT, || {
        resource(&ns, "web").unwrap()["metadata"].get("finalizers").is_none_or(|all| all == &json!([]))
    });
    scale(&ns, "web", 2);
    reads(json!(["n0", "n1"]));
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert_eq!(records(&ns), Vec::<Json>::new());
}

#[test]
fn keys_are_added_and_removed_one_by_one_and_dependents_reference_single_instances() {
    let _guard = shared();
    let ns = plane().namespace("keys");
    let policies = family("policy", "\"${bucket[each.key].id}\"", "forEach: [logs, media]");
    let one = data("one", "\"${bucket['logs'].output}\"", "");
    let buckets = |keys: &str| family("bucket", "\"${each.key} ${each.value}\"", &format!("forEach: {keys}"));
    plane().apply(&["-n", &ns], &format!("{}{policies}{one}", buckets("{ logs: 30, media: 365 }")));
    wait_ready(&ns, &["bucket", "policy", "one"]);
    let first = ids(&ns);
    let names = ["bucket[\"logs\"]", "bucket[\"media\"]", "one", "policy[\"logs\"]", "policy[\"media\"]"];
    assert_eq!(first.keys().collect::<Vec<_>>(), names);
    plane().apply(&["-n", &ns], &format!("{}{one}", buckets("{ logs: 31, new: 7 }")));
    // The instance that still references the removed bucket cannot be planned, and reports it. The others are not
    // affected.
    wait_reason(&ns, "policy", "Ready", "DependencyNotFound");
    assert!(ready_message(&ns, "policy").starts_with("1 of 2 ready; policy[\"media\"]: "));
    let troubled = instances(&ns, "policy")["troubled"].clone();
    assert_eq!((&troubled[0]["address"], &troubled[1]), (&json!("policy[\"media\"]"), &Json::Null));
    plane().apply(&["-n", &ns], &policies.replace("media]", "new]"));
    wait_ready(&ns, &["bucket", "policy", "one"]);
    wait_until("the old ones are deleted", LIMIT, || recorded(&ns, "head").len() == 5);
    let second = ids(&ns);
    for kept in ["bucket[\"logs\"]", "policy[\"logs\"]", "one"] {
        assert_eq!(second[kept], first[kept]);
    }
    wait_until("the dependent has the new value", LIMIT, || {
        resource(&ns, "one").unwrap()["status"]["attributes"]["output"] == "logs 31"
    });
}

#[test]
fn a_disabled_resource_is_destroyed_and_created_again_when_enabled() {
    let _guard = shared();
    let ns = plane().namespace("disabled");
    let single = |more: &str| data("single", "one", more);
    let many = |more: &str| family("many", "one", &format!("count: 2\n{more}"));
    let reader = data("reader", "\"${single == null ? 'nothing' : single.output}\"", "");
    plane().apply(&["-n", &ns], &format!("{}{}{reader}", single("enabled: false"), many("enabled: false")));
    wait_reason(&ns, "single", "Ready", "Disabled");
    wait_reason(&ns, "many", "Ready", "Disabled");
    wait_ready(&ns, &["single", "many", "reader"]);
    assert_eq!(recorded(&ns, "head"), ["reader"]);
    plane().kubectl_ok(&["label", "namespace", &ns, "stage=live"]);
    let when = "enabled: \"${ns.labels.stage == 'live'}\"";
    plane().apply(&["-n", &ns], &format!("{}{}", single(when), many(when)));
    wait_until("they exist", LIMIT, || recorded(&ns, "head") == ["many[0]", "many[1]", "reader", "single"]);
    wait_ready(&ns, &["single", "many"]);
    assert!(resource(&ns, "single").unwrap()["status"]["id"].is_string());
    plane().kubectl_ok(&["label", "--overwrite", "namespace", &ns, "stage=test"]);
    wait_reason(&ns, "single", "Ready", "Disabled");
    wait_reason(&ns, "many", "Ready", "Disabled");
    wait_until("they are deleted", LIMIT, || recorded(&ns, "head") == ["reader"]);
    wait_until("the reader has the new value", LIMIT, || {
        resource(&ns, "reader").unwrap()["status"]["attributes"]["output"] == "nothing"
    });
    // A disabled Resource has no object that would block its deletion.
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "single", "many", "--timeout=30s"]);
}

#[test]
fn a_count_that_depends_on_another_object_waits_for_it() {
    let _guard = shared();
    let ns = plane().namespace("unknown");
    let manifests = [
        family("web", "one", "count: \"${size(zones.output)}\""),
        data("zones", "\"${[base.id, base.id]}\"", ""),
        data("base", "one", ""),
    ];
    plane().apply(&["-n", &ns], &manifests.concat());
    wait_ready(&ns, &["web", "zones", "base"]);
    assert_eq!(instances(&ns, "web")["desired"], 2);
    // While the number of instances is unknown, the existing ones stay.
    plane().apply(&["-n", &ns], &family("web", "one", "count: \"${size(nothing.output)}\""));
    wait_reason(&ns, "web", "Ready", "DependencyNotFound");
    assert_eq!(instances(&ns, "web").get("desired"), None);
    assert_eq!(recorded(&ns, "head").len(), 4);
    plane().apply(&["-n", &ns], &family("web", "one", "count: \"${0 - 1}\""));
    let ready = wait_reason(&ns, "web", "Ready", "InvalidRepetition");
    assert!(ready["message"].as_str().unwrap().contains("spec.count"), "{ready}");
    assert_eq!(recorded(&ns, "head").len(), 4);
    scale(&ns, "web", 1);
    wait_ready(&ns, &["web"]);
    wait_until("one is left", LIMIT, || recorded(&ns, "head") == ["base", "web[0]", "zones"]);
}

#[test]
fn an_invalid_repetition_is_reported_at_its_field() {
    let _guard = shared();
    let ns = plane().namespace("repeat");
    let hidden = "apiVersion: v1\nkind: Secret\nmetadata: { name: hidden }\nstringData: { names: a }\n";
    plane().bind(&ns, "view", "--clusterrole=edit", "default");
    let sensitive = "inputs: [{ name: names, secretKeyRef: { name: hidden, key: names } }]\n\
                     forEach: \"${inputs.names.split(',')}\"";
    let cases = [
        ("good", "count: 1", "", ""),
        ("negative", "count: \"${1 - 2}\"", "InvalidRepetition", "spec.count: must not be negative"),
        ("text", "count: \"${'many'}\"", "InvalidRepetition", "spec.count"),
        (
            "number",
            "forEach: 3",
            "InvalidManifest",
            "spec.forEach: expected a map, a list of strings, or an expression, found a number",
        ),
        ("twice", "forEach: [a, a]", "InvalidRepetition", "spec.forEach: duplicate key `a` in the list"),
        ("secret", sensitive, "InvalidRepetition", "spec.forEach: a sensitive value"),
        ("neither", "enabled: \"${'yes'}\"", "InvalidRepetition", "spec.enabled"),
        ("syntax", "count: \"${1 +}\"", "InvalidExpression", "spec.count"),
        ("missing", "enabled: \"${absent.output}\"", "DependencyNotFound", "absent"),
        ("import", "count: 1\nimport: { id: x }", "InvalidManifest", "spec.import"),
    ];
    let manifests: String = cases.iter().map(|(name, more, ..)| data(name, "one", more)).collect();
    plane().apply(&["-n", &ns], &format!("{hidden}{manifests}"));
    wait_ready(&ns, &["good"]);
    for (name, _, reason, expected) in &cases[1..] {
        let ready = wait_reason(&ns, name, "Ready", reason);
        let message = ready["message"].as_str().unwrap();
        assert!(message.contains(expected) && !message.contains('\n'), "{name}: {message}");
    }
    assert_eq!(recorded(&ns, "head"), ["good[0]"]);
    // A Resource without an object is deleted immediately, also if it is invalid.
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--timeout=30s"]);
}

#[test]
fn the_command_line_knows_a_family_and_its_instances() {
    let _guard = shared();
    let ns = plane().namespace("shown");
    let manifests = [family("web", "\"n${count.index}\"", "count: 2"), data("top", "\"${web[1].id}\"", "")];
    plane().apply(&["-n", &ns], &manifests.concat());
    wait_ready(&ns, &["web", "top"]);
    assert_eq!(ok(&["tree", "-n", &ns]), "top  ready\n└─ web  ready\n");
    let rows = |name: &str| {
        let shown: Json = serde_json::from_str(&ok(&["get", name, "-n", &ns, "-o", "json"])).unwrap();
        shown["objects"].clone()
    };
    assert_eq!(rows("web")[0]["message"], "2 of 2 ready");
    assert_eq!(rows("web[1]")[0]["address"], "web");
    assert!(ok(&["explain", "web", "-n", &ns]).contains("Instances:   2 of 2 ready"));
    assert!(ok(&["explain", "web[1]", "-n", &ns]).contains("web[1]"));
    assert!(ok(&["state", "show", "web[1]", "-n", &ns, "-o", "json"]).contains("\"input\":\"n1\""));
    let plan: Json = serde_json::from_str(&ok(&["plan", "-n", &ns, "-o", "json"])).unwrap();
    let change = |change: &Json| format!("{} {}", change["address"], change["action"]).replace('"', "");
    let changes: Vec<String> = plan["changes"].as_array().unwrap().iter().map(change).collect();
    assert_eq!(changes, ["top NoOp", "web[0] NoOp", "web[1] NoOp"]);
    let graph = ok(&["graph", "-n", &ns]);
    assert!(!graph.contains("create"), "{graph}");
}

#[test]
fn an_object_is_kept_when_its_resource_becomes_a_family_and_back() {
    let _guard = shared();
    let ns = plane().namespace("keyless");
    let reader = |which: &str| data("reader", &format!("\"${{{which}.id}}\""), "");
    plane().apply(&["-n", &ns], &format!("{}{}", data("web", "one", ""), reader("web")));
    wait_ready(&ns, &["web", "reader"]);
    let first = ids(&ns)["web"].clone();
    plane().apply(&["-n", &ns], &format!("{}{}", family("web", "one", "count: 2"), reader("web[0]")));
    wait_until("both are recorded", LIMIT, || recorded(&ns, "head") == ["reader", "web[0]", "web[1]"]);
    wait_ready(&ns, &["web", "reader"]);
    assert_eq!(ids(&ns)["web[0]"], first);
    assert_eq!(instances(&ns, "web"), json!({"desired": 2, "ready": 2, "deposed": 0}));
    assert_eq!(resource(&ns, "web").unwrap()["status"].get("id"), None);
    plane().apply(&["-n", &ns], &format!("{}{}", family("web", "one", "forEach: [only]"), reader("web['only']")));
    wait_until("one is left", LIMIT, || recorded(&ns, "head") == ["reader", "web[\"only\"]"]);
    plane().apply(&["-n", &ns], &format!("{}{}", data("web", "one", ""), reader("web")));
    wait_until("it has no key", LIMIT, || recorded(&ns, "head") == ["reader", "web"]);
    wait_ready(&ns, &["web", "reader"]);
    assert_eq!(recorded(&ns, "family"), Vec::<String>::new());
    assert_eq!(resource(&ns, "web").unwrap()["status"].get("instances"), None);
    assert_eq!(resource(&ns, "web").unwrap()["status"]["id"], ids(&ns)["web"]);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--timeout=60s"]);
    assert_eq!(records(&ns), Vec::<Json>::new());
}
