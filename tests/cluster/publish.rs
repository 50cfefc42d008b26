//! Copies of outputs in ConfigMaps and Secrets, written as the ServiceAccount of the namespace.

use serde_json::Value as Json;

use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::installation::*;
use crate::proxy::{Fault, Proxy};

fn may_edit(namespace: &str) {
    plane().bind(namespace, "edit", "--clusterrole=edit", "default");
}

fn publishing(input: &str, entries: &[&str]) -> String {
    data("app", input, &format!("publish: [{}]", entries.join(", ")))
}

const CONFIG_MAP: &str = "{ configMapRef: { name: out }, data: { value: \"${self.input}\", id: \"${self.id}\" } }";
const SECRET: &str = "{ secretRef: { name: key }, data: { value: \"key of ${self.input}\" } }";

fn found(namespace: &str, kind: &str, name: &str) -> Option<Json> {
    let output = plane().kubectl(&["-n", namespace, "get", kind, name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON of kubectl"))
}

#[test]
fn copies_are_updated_and_deleted_with_the_object() {
    let _guard = shared();
    let ns = plane().namespace("publish");
    may_edit(&ns);
    plane().apply(&["-n", &ns], &publishing("one", &[CONFIG_MAP, SECRET]));
    wait_ready(&ns, &["app"]);
    let app = resource(&ns, "app").unwrap();
    let out = found(&ns, "configmap", "out").unwrap();
    assert_eq!((&out["data"]["value"], &out["data"]["id"]), (&"one".into(), &app["status"]["id"]));
    assert_eq!(out["metadata"]["ownerReferences"][0]["uid"], app["metadata"]["uid"]);
    // base64 of `key of one`.
    assert_eq!(found(&ns, "secret", "key").unwrap()["data"]["value"], "a2V5IG9mIG9uZQ==");

    plane().apply(&["-n", &ns], &publishing("two", &[CONFIG_MAP, SECRET]));
    wait_until("the new value is published", LIMIT, || {
        found(&ns, "configmap", "out").unwrap()["data"]["value"] == "two"
    });
    wait_ready(&ns, &["app"]);
    plane().apply(&["-n", &ns], &publishing("two", &[CONFIG_MAP]));
    wait_until("the Secret is deleted", LIMIT, || found(&ns, "secret", "key").is_none());
    // A copy that another client has changed is written again at the next refresh of the object.
    plane().kubectl_ok(&[
        "-n",
        &ns,
        "patch",
        "configmap",
        "out",
        "--type=merge",
        "-p",
        r#"{"data":{"value":"x","own":"y"}}"#,
    ]);
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "app", "purlin.dev/reconcile-requested-at=1"]);
    wait_until("the copy is restored", LIMIT, || found(&ns, "configmap", "out").unwrap()["data"]["value"] == "two");
    assert_eq!(found(&ns, "configmap", "out").unwrap()["data"]["own"], "y", "a key of another client stays");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "app"]);
    wait_empty(&ns);
    wait_until("the copy is deleted", LIMIT, || found(&ns, "configmap", "out").is_none());
}

#[test]
fn each_instance_of_a_family_has_its_own_copy() {
    let _guard = shared();
    let ns = plane().namespace("publish-family");
    may_edit(&ns);
    let family = |keys: &str| {
        let entry = "{ configMapRef: { name: \"out-${each.key}\" }, data: { id: \"${self.id}\" } }";
        plane().apply(&["-n", &ns], &data("app", "one", &format!("forEach: {keys}\npublish: [{entry}]")));
    };
    family("[a, b]");
    wait_ready(&ns, &["app"]);
    let id = |key: &str| found(&ns, "configmap", &format!("out-{key}")).map(|copy| copy["data"]["id"].clone());
    let (a, b) = (id("a").unwrap(), id("b").unwrap());
    assert_ne!(a, b);
    // `Z` is not valid in a name: only that instance is rejected.
    family("[b, Z]");
    wait_until("the copy of a is deleted", LIMIT, || id("a").is_none());
    let troubled = || resource(&ns, "app").unwrap()["status"]["instances"]["troubled"].to_string();
    wait_until("Z is reported", LIMIT, || troubled().contains("is not a valid ConfigMap name"));
    assert_eq!(id("b").unwrap(), b);
    family("[b]");
    wait_ready(&ns, &["app"]);
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "app"]);
    wait_empty(&ns);
    assert!(id("b").is_none());
}

#[test]
fn a_foreign_target_is_never_changed() {
    let _guard = shared();
    let ns = plane().namespace("taken");
    may_edit(&ns);
    plane().kubectl_ok(&["-n", &ns, "create", "configmap", "out", "--from-literal=value=theirs"]);
    let before = found(&ns, "configmap", "out").unwrap()["metadata"].clone();
    plane().apply(&["-n", &ns], &publishing("one", &[CONFIG_MAP]));
    let refused = wait_reason(&ns, "app", "Ready", "PublishConflict");
    assert!(
        refused["message"].as_str().unwrap().contains("ConfigMap `out` exists and is not managed by this Resource"),
        "{refused}"
    );
    assert_eq!(found(&ns, "configmap", "out").unwrap()["metadata"], before);
    // It is not changed when the object is destroyed either.
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "app"]);
    wait_empty(&ns);
    assert_eq!(found(&ns, "configmap", "out").unwrap()["metadata"], before);
    plane().apply(&["-n", &ns], &publishing("one", &[CONFIG_MAP]));
    wait_reason(&ns, "app", "Ready", "PublishConflict");
    plane().kubectl_ok(&["-n", &ns, "delete", "configmap", "out"]);
    wait_ready(&ns, &["app"]);
    assert_eq!(found(&ns, "configmap", "out").unwrap()["data"]["value"], "one");
}

#[test]
fn a_tenant_cannot_publish_through_purlin_what_it_may_not_write() {
    let _guard = shared();
    let ns = plane().namespace("nowrite");
    plane().apply(&["-n", &ns], &publishing("one", &[SECRET]));
    let refused = wait_reason(&ns, "app", "Ready", "Forbidden");
    let account = format!("in namespace `{ns}` to the service account `default`");
    assert!(refused["message"].as_str().unwrap().contains(&account), "{refused}");
    may_edit(&ns);
    wait_ready(&ns, &["app"]);
    assert!(found(&ns, "secret", "key").is_some());
}

#[test]
fn a_copy_without_delete_permission_is_reported_and_deleted_after_the_permission_is_granted() {
    let _guard = shared();
    let ns = plane().namespace("nodelete");
    let role = |verbs: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{ name: copies }}\nrules:\n- {{ apiGroups: \
             [''], resources: [configmaps, secrets], verbs: [{verbs}] }}\n"
        )
    };
    plane().apply(&["-n", &ns], &role("get, create, patch"));
    plane().bind(&ns, "copies", "--role=copies", "default");
    plane().apply(&["-n", &ns], &publishing("one", &[CONFIG_MAP, SECRET]));
    wait_ready(&ns, &["app"]);
    plane().apply(&["-n", &ns], &publishing("one", &[CONFIG_MAP]));
    let refused = wait_reason(&ns, "app", "Ready", "Forbidden");
    assert!(refused["message"].as_str().unwrap().contains("delete"), "{refused}");
    assert!(found(&ns, "secret", "key").is_some());
    // Purlin does not watch permissions, so it retries.
    plane().apply(&["-n", &ns], &role("get, create, patch, delete"));
    wait_until("the Secret is deleted", LIMIT, || found(&ns, "secret", "key").is_none());
    wait_ready(&ns, &["app"]);
}

#[test]
fn a_crash_during_publishing_neither_duplicates_nor_leaks_copies() {
    let _guard = exclusive();
    let ns = plane().namespace("killed");
    may_edit(&ns);
    let tried = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tried_by_proxy = tried.clone();
    let place = format!("/namespaces/{ns}/secrets/key?");
    let proxy = Proxy::start(plane(), move |method, path| {
        let blocked = method == "PATCH" && path.contains(&place);
        tried_by_proxy.fetch_or(blocked, std::sync::atomic::Ordering::SeqCst);
        blocked.then_some(Fault::TooManyRequests)
    });
    let first = Controller::launch_over(plane(), &[], proxy.kubeconfig());
    plane().apply(&["-n", &ns], &publishing("one", &[CONFIG_MAP, SECRET]));
    wait_until("the controller tries to write the second copy", LIMIT, || {
        tried.load(std::sync::atomic::Ordering::SeqCst)
    });
    let copy = found(&ns, "configmap", "out").expect("the first copy")["metadata"]["uid"].clone();
    first.kill(plane());
    drop(proxy);
    let id = || resource(&ns, "app").unwrap()["status"]["id"].clone();

    let second = Controller::start(plane());
    wait_ready(&ns, &["app"]);
    assert_eq!(found(&ns, "configmap", "out").unwrap()["metadata"]["uid"], copy, "the copy is found by its annotation");
    assert_eq!(found(&ns, "configmap", "out").unwrap()["data"]["id"], id(), "the object was created once");
    assert!(found(&ns, "secret", "key").is_some());
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "app"]);
    wait_until("the copies are deleted", LIMIT, || {
        found(&ns, "configmap", "out").is_none() && found(&ns, "secret", "key").is_none()
    });
    drop(second);
}

#[test]
fn sensitive_inputs_do_not_leak() {
    let guard = shared();
    let plane = plane();
    let ns = plane.namespace("canary");
    may_edit(&ns);
    let canary = "canary-6b1f9e-zulu";
    // In plain text, and in base64 at each of the three alignments.
    let traces = [canary, "Y2FuYXJ5LTZiMWY5ZS16dWx1", "NhbmFyeS02YjFmOWUtenVsd", "jYW5hcnktNmIxZjllLXp1bH"];
    plane.kubectl_ok(&[
        "-n",
        &ns,
        "create",
        "secret",
        "generic",
        "login",
        &format!("--from-literal=password={canary}"),
    ]);
    let inputs = "inputs: [{ name: password, secretKeyRef: { name: login, key: password } }]";
    let object = |name: &str, manifest: &str| {
        data(name, "x", inputs)
            .replace("terraform_data", "kubernetes_object")
            .replace("input: x", &format!("manifest: {manifest}"))
    };
    let refused =
        "{ apiVersion: v1, kind: ConfigMap, metadata: { name: refused, labels: { l: \"${inputs.password}!\" } } }";
    let quoted =
        "{ apiVersion: v1, kind: Service, metadata: { name: quoted }, spec: { type: \"${inputs.password}\" } }";
    let unknown =
        "{ apiVersion: v1, kind: ConfigMap, metadata: { name: unknown }, data: { a: [\"${inputs.password}\"] } }";
    let derived =
        "{ apiVersion: v1, kind: Secret, metadata: { name: derived }, stringData: { p: \"pw=${inputs.password}\" } }";
    let publish = format!("{inputs}\npublish: [{{ secretRef: {{ name: out }}, data: {{ p: \"${{self.input}}\" }} }}]");
    let leaky =
        format!("{inputs}\npublish: [{{ configMapRef: {{ name: open }}, data: {{ p: \"${{self.input}}\" }} }}]");
    let manifests = [
        object("refused", refused),
        object("quoted", quoted),
        object("unknown", unknown),
        object("derived", derived),
        data("plain", "\"${inputs.password}\"", &publish),
        data("leaky", "\"${inputs.password}\"", &leaky),
        data("after", "\"${derived.object.data.p}\"", ""),
        data("broken", "\"${int(inputs.password)}\"", inputs),
        data("late", "\"${int(plain.output)}\"", ""),
    ];
    plane.apply(&["-n", &ns], &manifests.concat());
    wait_ready(&ns, &["derived", "plain", "after"]);
    for name in ["refused", "quoted", "unknown", "leaky", "broken", "late"] {
        wait_until(&format!("{name} is rejected"), LIMIT, || {
            condition(&resource(&ns, name).unwrap(), "Ready").is_some_and(|ready| {
                ready["status"] == "False" && !["Progressing", "Waiting"].contains(&ready["reason"].as_str().unwrap())
            })
        });
    }
    let clean = |what: &str, text: &str| {
        for trace in traces {
            assert!(!text.contains(trace), "{what} shows a canary: {}", excerpt(text, trace));
        }
    };
    clean("status", &plane.get(&["-n", &ns, "pres"])["items"].to_string());
    clean("an event", &plane.get(&["-n", &ns, "events.events.k8s.io"]).to_string());
    clean("a metric", &guard.controller().metrics());
    clean("the log of the controller", &guard.controller().log());
    let kubeconfig = plane.kubeconfig();
    for command in
        [&["plan"][..], &["plan", "-o", "json"], &["graph"], &["state", "list", "-o", "json"], &["explain", "refused"]]
    {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_purlin"))
            .args(command)
            .args(["-n", &ns, "--kubeconfig"])
            .arg(&kubeconfig)
            .output()
            .expect("purlin runs");
        clean(
            &command.join(" "),
            &format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        );
    }
    // The writes of Purlin, except for records, Secrets and the objects themselves.
    let log = std::fs::read_to_string(plane.audit_log()).expect("the audit log");
    assert!(log.contains(traces[1]), "the audit log contains the contents of Secrets, otherwise the check is void");
    for entry in log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
        let ours = entry["user"]["username"] == format!("system:serviceaccount:{NAMESPACE}:purlin");
        let own = entry.get("impersonatedUser").is_none() && entry["objectRef"]["resource"] != "secrets";
        if ours && own {
            clean("the audit log", &entry.to_string());
        }
    }
}

fn excerpt<'t>(text: &'t str, trace: &str) -> &'t str {
    let at = text.find(trace).unwrap_or_default();
    let edge = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[edge(at.saturating_sub(200))..edge((at + 200).min(text.len()))]
}
