//! Renamed Resources: the record is moved, and no object is created or destroyed.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;

use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::installation::*;
use crate::providers::{attribute, provider, typed};
use crate::proxy::{Fault, Proxy};

fn purlin(namespace: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
    command.args(arguments).args(["-n", namespace]);
    command.env("KUBECONFIG", plane().kubeconfig()).env("PURLIN_NAMESPACE", NAMESPACE).output().unwrap()
}

/// A ConfigMap named `site`, under any name of a Resource.
fn site(name: &str, moved_from: &str, more: &str) -> String {
    let annotations = match moved_from {
        "" => String::new(),
        from => format!(", annotations: {{ purlin.dev/moved-from: '{from}' }}"),
    };
    let indented: String = more.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name}{annotations} }}\nspec:\n  type: \
         kubernetes_object\n  config:\n    manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: site }}, \
         data: {{ a: b }} }}\n{indented}"
    )
}

fn found(namespace: &str, kind: &str, name: &str) -> Option<Json> {
    let output = plane().kubectl(&["-n", namespace, "get", kind, name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
}

fn uid(namespace: &str) -> Json {
    found(namespace, "configmap", "site").map(|site| site["metadata"]["uid"].clone()).unwrap_or_default()
}

/// The addresses that have a record.
fn recorded(namespace: &str) -> Vec<String> {
    let all = records(namespace);
    let mut addresses: Vec<String> = all
        .iter()
        .filter_map(|record| record["metadata"]["annotations"]["purlin.dev/address"].as_str().map(str::to_owned))
        .collect();
    addresses.sort();
    addresses
}

fn delete(namespace: &str, name: &str) {
    plane().kubectl_ok(&["-n", namespace, "delete", "pres", name, "--wait=false"]);
}

fn wait_moved(namespace: &str, from: &str, to: &str) {
    wait_until(&format!("{from} is deleted"), LIMIT, || resource(namespace, from).is_none());
    wait_ready(namespace, &[to]);
    let now = resource(namespace, to).unwrap();
    assert_eq!(
        now["metadata"]["annotations"]["purlin.dev/record"], now["metadata"]["uid"],
        "it has the record annotation"
    );
    assert_eq!(now["metadata"]["finalizers"], serde_json::json!(["purlin.dev/destroy"]));
    wait_until("only the new one is recorded", LIMIT, || {
        let addresses = recorded(namespace);
        addresses.iter().any(|address| address == to) && !addresses.iter().any(|address| address == from)
    });
}

/// Waits until the message of a condition contains this text.
fn wait_message(namespace: &str, name: &str, kind: &str, text: &str) {
    wait_until(&format!("{namespace}/{name}: {kind} shows: {text}"), LIMIT, || {
        let condition = resource(namespace, name).and_then(|resource| condition(&resource, kind));
        condition.is_some_and(|condition| condition["message"].as_str().unwrap_or_default().contains(text))
    });
}

/// Waits until all three Resources report that two of them claim the object of the third.
fn wait_claimed_twice(namespace: &str, from: &str, to: [&str; 2]) {
    let message = format!("`{from}` is claimed by `{}` and `{}` (hint: ", to[0], to[1]);
    wait_message(namespace, from, "DeletionBlocked", &message);
    to.iter().for_each(|name| wait_message(namespace, name, "Ready", &message));
}

const PUBLISH: &str = "publish: [{ configMapRef: { name: out }, data: { id: \"${self.id}\" } }]";

#[test]
fn a_renamed_resource_keeps_its_object_when_the_new_manifest_is_applied_first() {
    let _guard = shared();
    let ns = with_rights("rename");
    plane().apply(&["-n", &ns], &(site("zone", "", PUBLISH) + &data("user", "\"${zone.id}\"", "")));
    wait_ready(&ns, &["zone", "user"]);
    let (before, copy) = (uid(&ns), found(&ns, "configmap", "out").unwrap()["metadata"]["uid"].clone());

    // The order of GitOps tools: they apply all new manifests, then prune.
    let renamed = site("dns-zone", "zone", PUBLISH) + &data("user", "\"${dns_zone.id}\"", "");
    plane().apply(&["-n", &ns], &renamed);
    let waits = wait_reason(&ns, "dns-zone", "Ready", "MoveBlocked");
    assert!(waits["message"].as_str().unwrap().contains("`zone` is still configured by a Resource"), "{waits}");
    delete(&ns, "zone");
    wait_moved(&ns, "zone", "dns-zone");
    wait_ready(&ns, &["user"]);

    assert_eq!(uid(&ns), before, "it is the same object");
    let owner = || found(&ns, "configmap", "site").unwrap()["metadata"]["annotations"]["purlin.dev/owner"].clone();
    wait_until("the owner annotation is updated", LIMIT, || {
        owner().as_str().unwrap().ends_with(&format!("/{ns}/dns-zone/"))
    });
    let out = found(&ns, "configmap", "out").unwrap();
    let new_uid = resource(&ns, "dns-zone").unwrap()["metadata"]["uid"].clone();
    assert_eq!((&out["metadata"]["uid"], &out["metadata"]["ownerReferences"][0]["uid"]), (&copy, &new_uid));
    assert_eq!(recorded(&ns), ["dns-zone", "user"]);
    wait_event(&ns, "dns-zone", "Moved: ");
    let shown = purlin(&ns, &["state", "show", "user", "-o", "json"]);
    let shown: Json = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["objects"][0]["dependencies"], serde_json::json!(["dns-zone"]));

    // The object is destroyed with its new Resource.
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(found(&ns, "configmap", "site").is_none());
    wait_until("nothing is recorded", LIMIT, || records(&ns).is_empty());
}

#[test]
fn an_object_whose_deletion_is_blocked_can_be_moved() {
    let _guard = shared();
    let ns = with_rights("held");
    plane().apply(&["-n", &ns], &site("zone", "", "lifecycle: { preventDestroy: true }"));
    wait_ready(&ns, &["zone"]);
    let before = uid(&ns);
    delete(&ns, "zone");
    wait_reason(&ns, "zone", "DeletionBlocked", "PreventDestroy");
    plane().apply(&["-n", &ns], &site("dns-zone", "zone", "lifecycle: { preventDestroy: true }"));
    wait_moved(&ns, "zone", "dns-zone");
    assert_eq!(uid(&ns), before);
    plane().apply(&["-n", &ns], &site("dns-zone", "zone", ""));
    delete(&ns, "dns-zone");
    wait_empty(&ns);
}

#[test]
fn an_impossible_move_is_reported_and_moves_nothing() {
    let _guard = shared();
    let ns = with_rights("unmoved");
    let all = ["one", "two", "three"].map(|name| data(name, name, "")).concat();
    plane().apply(&["-n", &ns], &all);
    wait_ready(&ns, &["one", "two", "three"]);
    let id = |name: &str| resource(&ns, name).map(|resource| resource["status"]["id"].clone());
    let (two, three) = (id("two"), id("three"));

    // Both Resources have an object, so the move is ambiguous: the old object stays until the annotation is removed.
    let annotated = |name: &str, from: &str, body: String| {
        body.replace(
            &format!("{{ name: {name} }}"),
            &format!("{{ name: {name}, annotations: {{ purlin.dev/moved-from: {from} }} }}"),
        )
    };
    plane().apply(&["-n", &ns], &annotated("two", "one", data("two", "two", "")));
    delete(&ns, "one");
    wait_reason(&ns, "one", "DeletionBlocked", "MoveBlocked");
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "two", "purlin.dev/moved-from-"]);
    wait_until("one is destroyed", LIMIT, || resource(&ns, "one").is_none());
    assert_eq!(id("two"), two);

    // Two Resources claim the same object: it is not moved, and no object is created or destroyed.
    plane().apply(
        &["-n", &ns],
        &(annotated("four", "three", data("four", "three", ""))
            + &annotated("five", "three", data("five", "three", ""))),
    );
    for name in ["four", "five"] {
        wait_reason(&ns, name, "Ready", "MoveBlocked");
    }
    delete(&ns, "three");
    wait_reason(&ns, "three", "DeletionBlocked", "MoveBlocked");
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "five", "purlin.dev/moved-from-"]);
    wait_moved(&ns, "three", "four");
    wait_ready(&ns, &["five"]);
    assert_eq!(id("four"), three);
    assert_ne!(id("five"), three);

    // A Resource of another type cannot take the object. It still claims the object, so no other Resource gets it.
    plane().apply(&["-n", &ns], &site("six", "four", ""));
    delete(&ns, "four");
    wait_reason(&ns, "six", "Ready", "MoveBlocked");
    wait_reason(&ns, "four", "DeletionBlocked", "MoveBlocked");
    plane().apply(&["-n", &ns], &annotated("nine", "four", data("nine", "nine", "")));
    wait_claimed_twice(&ns, "four", ["nine", "six"]);
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "nine", "purlin.dev/moved-from-"]);
    wait_ready(&ns, &["nine"]);
    wait_message(&ns, "six", "Ready", "which has the type `terraform_data`, so nothing is moved");

    // An object that a Resource with an error claims is not moved to another one either.
    let wrong = data("ten", "\"${\"", "");
    plane().apply(&["-n", &ns], &annotated("ten", "nine", wrong));
    delete(&ns, "nine");
    wait_message(&ns, "nine", "DeletionBlocked", "it is moved to `ten` once the errors there are corrected");
    wait_reason(&ns, "ten", "Ready", "InvalidExpression");
    plane().apply(&["-n", &ns], &annotated("eleven", "nine", data("eleven", "nine", "")));
    wait_claimed_twice(&ns, "nine", ["eleven", "ten"]);
    let nine = id("nine");
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "eleven", "purlin.dev/moved-from-"]);
    wait_ready(&ns, &["eleven"]);
    plane().apply(&["-n", &ns], &annotated("ten", "nine", data("ten", "nine", "")));
    wait_moved(&ns, "nine", "ten");
    assert_eq!(id("ten"), nine);

    // An invalid annotation protects the object that it may refer to.
    plane().apply(&["-n", &ns], &data("seven", "seven", ""));
    wait_ready(&ns, &["seven"]);
    plane().apply(&["-n", &ns], &annotated("eight", "\"seven[blue]\"", data("eight", "eight", "")));
    wait_reason(&ns, "eight", "Ready", "InvalidManifest");
    delete(&ns, "seven");
    wait_reason(&ns, "seven", "DeletionBlocked", "MoveBlocked");
    let seven = id("seven");
    plane().kubectl_ok(&["-n", &ns, "annotate", "--overwrite", "pres", "eight", "purlin.dev/moved-from=seven"]);
    wait_moved(&ns, "seven", "eight");
    assert_eq!(id("eight"), seven);

    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "six", "purlin.dev/moved-from-"]);
    wait_ready(&ns, &["six"]);
    wait_until("four is destroyed", LIMIT, || resource(&ns, "four").is_none());
}

#[test]
fn a_misspelled_name_protects_similar_objects_until_it_is_corrected() {
    let _guard = shared();
    let ns = with_rights("misspelt");
    let protected = "lifecycle: { preventDestroy: true }";
    plane().apply(&["-n", &ns], &(site("zone", "", protected) + &data("first", "first", protected)));
    plane().apply(&["-n", &ns], &data("second", "second", protected));
    wait_ready(&ns, &["zone", "first", "second"]);
    let before = uid(&ns);
    for name in ["zone", "first", "second"] {
        delete(&ns, name);
        wait_reason(&ns, name, "DeletionBlocked", "PreventDestroy");
    }

    // No object is created, and the old one stays, also after its `preventDestroy` is removed.
    plane().apply(&["-n", &ns], &site("dns-zone", "zome", ""));
    wait_message(&ns, "dns-zone", "Ready", "which has no record; did you mean `zone`? (hint: correct the annotation");
    wait_message(&ns, "zone", "DeletionBlocked", "`dns-zone` claims `zome`");
    plane().apply(&["-n", &ns], &site("zone", "", ""));
    wait_until("the change is observed", LIMIT, || {
        let zone = resource(&ns, "zone").unwrap();
        zone["status"]["observedGeneration"] == zone["metadata"]["generation"]
    });
    wait_reason(&ns, "zone", "DeletionBlocked", "MoveBlocked");
    let check_reported = |name: &str, reason: &str, text: &str| {
        wait_until(&format!("an event of {name} contains {text}"), LIMIT, || {
            events(&ns, name).iter().any(|event| event.starts_with(reason) && event.contains(text))
        });
        let described = plane().kubectl_ok(&["-n", &ns, "describe", "pres", name]);
        assert!(described.matches(text).count() > 1, "in conditions and events: {described}");
    };
    check_reported("dns-zone", "MoveBlocked: ", "did you mean `zone`?");
    check_reported("zone", "DeletionBlocked: MoveBlocked: ", "`dns-zone` claims `zome`");
    assert_eq!(uid(&ns), before);
    plane().apply(&["-n", &ns], &site("dns-zone", "zone", ""));
    wait_moved(&ns, "zone", "dns-zone");
    assert_eq!(uid(&ns), before, "it is the same object");

    // The old object is destroyed when the annotation is removed, and also when the Resource with the annotation is
    // deleted.
    let apply_claim = |name: &str, from: &str| {
        let annotations = format!("{{ name: {name}, annotations: {{ purlin.dev/moved-from: {from} }} }}");
        plane().apply(&["-n", &ns], &data(name, name, "").replace(&format!("{{ name: {name} }}"), &annotations));
    };
    let unprotect = |name: &str| plane().apply(&["-n", &ns], &data(name, name, ""));
    apply_claim("third", "frist");
    wait_reason(&ns, "first", "DeletionBlocked", "MoveBlocked");
    unprotect("first");
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "third", "purlin.dev/moved-from-"]);
    wait_ready(&ns, &["third"]);
    wait_until("first is deleted", LIMIT, || resource(&ns, "first").is_none());
    apply_claim("fourth", "secnd");
    wait_reason(&ns, "fourth", "Ready", "MoveBlocked");
    wait_reason(&ns, "second", "DeletionBlocked", "MoveBlocked");
    unprotect("second");
    delete(&ns, "fourth");
    wait_until("second is deleted", LIMIT, || resource(&ns, "second").is_none());
}

#[test]
fn a_record_is_moved_with_state_mv() {
    let _guard = shared();
    let ns = with_rights("by-hand");
    plane().apply(&["-n", &ns], &site("zone", "", ""));
    wait_ready(&ns, &["zone"]);
    let before = uid(&ns);
    let refused = |text: &str| {
        let output = purlin(&ns, &["state", "mv", "zone", "dns-zone"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(text), "{stderr}");
    };
    refused("there is no Resource `dns-zone`");
    plane().apply(&["-n", &ns], &site("dns-zone", "", "suspend: true"));
    wait_reason(&ns, "dns-zone", "Ready", "Suspended");
    refused("the Resource `zone` is still active");
    let suspend = "{\"spec\":{\"suspend\":true}}";
    plane().kubectl_ok(&["-n", &ns, "patch", "pres", "zone", "--type=merge", "-p", suspend]);
    wait_reason(&ns, "zone", "Synced", "Suspended");
    let moved = purlin(&ns, &["state", "mv", "zone", "dns-zone"]);
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    wait_until("it is moved", LIMIT, || recorded(&ns) == ["dns-zone"]);
    delete(&ns, "zone");
    wait_until("the old Resource is deleted, because it has no object", LIMIT, || resource(&ns, "zone").is_none());
    plane().apply(&["-n", &ns], &site("dns-zone", "", ""));
    wait_ready(&ns, &["dns-zone"]);
    assert_eq!(uid(&ns), before);
}

#[test]
fn a_record_that_is_being_moved_is_not_moved_again() {
    let _guard = exclusive();
    let ns = with_rights("twice");
    let first = Controller::start(plane());
    plane().apply(&["-n", &ns], &site("zone", "", ""));
    wait_ready(&ns, &["zone"]);
    let before = uid(&ns);
    first.kill(plane());
    // Without a controller, the move remains to be completed.
    delete(&ns, "zone");
    plane().apply(&["-n", &ns], &(site("dns-zone", "", "") + &site("other", "", "suspend: true")));
    let moved = purlin(&ns, &["state", "mv", "zone", "dns-zone"]);
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    let again = purlin(&ns, &["state", "mv", "zone", "other"]);
    let stderr = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        !again.status.success() && stderr.contains("the move of `zone` to `dns-zone` is not completed"),
        "{stderr}"
    );

    let second = Controller::start(plane());
    wait_moved(&ns, "zone", "dns-zone");
    assert_eq!((uid(&ns), recorded(&ns)), (before, vec!["dns-zone".to_owned()]));
    second.kill(plane());
}

/// Whether a request writes a record, or a Resource except for its status.
fn is_write(method: &str, path: &str) -> bool {
    let records = path.contains(&format!("/{NAMESPACE}/secrets"));
    let resources = path.contains("/resources/") && !path.contains("/status");
    matches!(method, "POST" | "PUT" | "PATCH" | "DELETE") && (records || resources)
}

#[test]
fn an_interrupted_move_is_completed() {
    let _guard = exclusive();
    // The writes of a move: the old record, the new record, the new annotations, the record of the dependent, the old
    // annotations, the deletion of the old record.
    for cut in 0..6 {
        let ns = with_rights("cut");
        let first = Controller::start(plane());
        plane().apply(&["-n", &ns], &(site("zone", "", "") + &data("user", "\"${zone.id}\"", "")));
        wait_ready(&ns, &["zone", "user"]);
        let before = uid(&ns);
        first.kill(plane());
        // The deletion comes first here, and the new Resource before a controller can process the deletion.
        delete(&ns, "zone");
        plane().apply(&["-n", &ns], &(site("dns-zone", "zone", "") + &data("user", "\"${dns_zone.id}\"", "")));

        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let proxy = Proxy::start(plane(), move |method, path| {
            let blocked = is_write(method, path) && counted.fetch_add(1, Ordering::SeqCst) >= cut;
            blocked.then_some(Fault::TooManyRequests)
        });
        let second = Controller::launch_over(plane(), &[], proxy.kubeconfig());
        wait_until("the move is interrupted", LIMIT, || count.load(Ordering::SeqCst) > cut);
        second.kill(plane());
        drop(proxy);

        let third = Controller::start(plane());
        wait_moved(&ns, "zone", "dns-zone");
        wait_ready(&ns, &["user"]);
        assert_eq!(uid(&ns), before, "cut after {cut} writes");
        assert_eq!(recorded(&ns), ["dns-zone", "user"]);
        third.kill(plane());
    }
}

#[test]
fn an_interrupted_move_is_reverted_when_it_is_no_longer_desired() {
    let _guard = exclusive();
    for cut in [1, 2] {
        let ns = with_rights("back");
        let first = Controller::start(plane());
        plane().apply(&["-n", &ns], &site("zone", "", ""));
        wait_ready(&ns, &["zone"]);
        let before = uid(&ns);
        first.kill(plane());
        // The Resource is deleted by force, so the record is abandoned.
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        plane().kubectl_ok(&["-n", &ns, "patch", "pres", "zone", "--type=merge", "-p", patch]);
        plane().kubectl_ok(&["-n", &ns, "delete", "pres", "zone"]);
        plane().apply(&["-n", &ns], &site("dns-zone", "zone", ""));

        let count = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&count);
        let proxy = Proxy::start(plane(), move |method, path| {
            let mut count = counted.lock().unwrap();
            *count += usize::from(is_write(method, path));
            (is_write(method, path) && *count > cut).then_some(Fault::TooManyRequests)
        });
        let second = Controller::launch_over(plane(), &[], proxy.kubeconfig());
        wait_until("the move is interrupted", LIMIT, || *count.lock().unwrap() > cut);
        second.kill(plane());
        drop(proxy);
        plane().kubectl_ok(&["-n", &ns, "delete", "pres", "dns-zone"]);
        plane().apply(&["-n", &ns], &site("zone", "", ""));

        let third = Controller::start(plane());
        wait_ready(&ns, &["zone"]);
        assert_eq!((uid(&ns), recorded(&ns)), (before, vec!["zone".to_owned()]), "cut after {cut} writes");
        third.kill(plane());
    }
}

#[test]
fn a_provider_moves_an_object_to_another_type() {
    let _guard = shared();
    let ns = plane().namespace("retyped");
    plane().apply(&[], &provider("corner", "corner"));
    plane().apply(
        &["-n", &ns],
        &(typed("old", "corner_thing", "{ name: first }", "") + &data("user", "\"${old.id}\"", "")),
    );
    wait_ready(&ns, &["old", "user"]);
    let id = attribute(&ns, "old", "id");

    // The provider cannot move the object to this type, so nothing is moved, also after the old Resource is deleted.
    let named = |name: &str, type_name: &str, config: &str| {
        let annotations = "annotations: { purlin.dev/moved-from: old }";
        typed(name, type_name, config, "").replacen(" }", &format!(", {annotations} }}"), 1)
    };
    plane().apply(&["-n", &ns], &named("new", "corner_identified", "{ region: north, name: first }"));
    wait_reason(&ns, "new", "Ready", "MoveBlocked");
    plane().apply(&["-n", &ns], &data("user", "\"none\"", ""));
    wait_until("user no longer depends on it", LIMIT, || attribute(&ns, "user", "output") == "none");
    delete(&ns, "old");
    let blocked = wait_reason(&ns, "new", "Ready", "MoveBlocked");
    wait_until("the rejection is reported", LIMIT, || {
        let message = condition(&resource(&ns, "new").unwrap(), "Ready").unwrap_or_default()["message"].clone();
        message.as_str().unwrap_or_default().contains("cannot move a `corner_thing` to a `corner_identified`")
    });
    assert_eq!(recorded(&ns), ["old", "user"], "{blocked}");

    // The right Resource gets the object only after the wrong one no longer claims it.
    plane().apply(&["-n", &ns], &named("newer", "corner_versioned", "{ title: first }"));
    for name in ["new", "newer"] {
        wait_message(&ns, name, "Ready", "`old` is claimed by `new` and `newer` (hint: ");
    }
    assert_eq!(recorded(&ns), ["old", "user"]);
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "new", "purlin.dev/moved-from-"]);
    wait_moved(&ns, "old", "newer");
    wait_event(&ns, "newer", "ProviderWarning: Of the thing only the name is kept: first");
    assert_eq!(attribute(&ns, "newer", "id"), id);
    wait_event(&ns, "newer", "Moved");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
}

/// A family of ConfigMaps named after their keys, or numbered, with the former addresses of its objects.
fn sites(name: &str, keys: &str, each: &str, moved: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
         terraform_data\n  {keys}\n  moved: [{moved}]\n  config: {{ input: \"${{{each}}}\" }}\n"
    )
}

/// The addresses of the recorded instances.
fn instances(namespace: &str) -> Vec<String> {
    let mut all = recorded(namespace);
    all.retain(|address| address.contains('['));
    all
}

/// The ids of the recorded objects by address.
fn ids(namespace: &str, addresses: &[&str]) -> Vec<String> {
    let show = |address: &&str| {
        let shown = purlin(namespace, &["state", "show", address, "-o", "json"]);
        assert!(shown.status.success(), "{shown:?}");
        let shown: Json = serde_json::from_slice(&shown.stdout).unwrap();
        shown["objects"][0]["values"]["id"].as_str().unwrap_or_default().to_owned()
    };
    addresses.iter().map(show).collect()
}

#[test]
fn keys_change_in_the_manifest_and_the_objects_stay() {
    let _guard = shared();
    let ns = with_rights("rekey");
    plane().apply(&["-n", &ns], &sites("web", "count: 2", "1", ""));
    wait_ready(&ns, &["web"]);
    let before = ids(&ns, &["web[0]", "web[1]"]);
    assert!(before.iter().all(|id| !id.is_empty()), "{before:?}");

    // Numbers become keys.
    let moved = "{ from: 'web[0]', to: '[\"x\"]' }, { from: 'web[1]', to: '[\"y1\"]' }";
    plane().apply(&["-n", &ns], &sites("web", "forEach: [x, y1]", "1", moved));
    wait_until("both objects have keys", LIMIT, || instances(&ns) == ["web[\"x\"]", "web[\"y1\"]"]);
    wait_ready(&ns, &["web"]);
    assert_eq!(ids(&ns, &["web[\"x\"]", "web[\"y1\"]"]), before);

    // A misspelled key keeps the object and creates no other one.
    let wrong = "{ from: 'web[\"y1\"]', to: '[\"zz\"]' }";
    plane().apply(&["-n", &ns], &sites("web", "forEach: [x, z]", "1", wrong));
    wait_reason(&ns, "web", "Ready", "MoveBlocked");
    assert_eq!(instances(&ns), ["web[\"x\"]", "web[\"y1\"]"]);

    // A key is renamed, and the entry stays.
    let renamed = "{ from: 'web[\"y1\"]', to: '[\"z\"]' }";
    for _ in 0..2 {
        plane().apply(&["-n", &ns], &sites("web", "forEach: [x, z]", "1", renamed));
        wait_until("the object has the new key", LIMIT, || instances(&ns) == ["web[\"x\"]", "web[\"z\"]"]);
        wait_ready(&ns, &["web"]);
        assert_eq!(ids(&ns, &["web[\"x\"]", "web[\"z\"]"]), before);
    }
    wait_event(&ns, "web", "Moved: ");

    // An annotation that names an instance does not say which instance gets the object.
    let annotated = sites("web", "forEach: [x, q]", "1", "")
        .replace("{ name: web }", "{ name: web, annotations: { purlin.dev/moved-from: 'web[\"z\"]' } }");
    plane().apply(&["-n", &ns], &annotated);
    wait_message(&ns, "web", "Ready", "but not which instance of `web` gets the object");
    assert_eq!(instances(&ns), ["web[\"x\"]", "web[\"z\"]"]);

    // A swap is refused at the field.
    let swap = "{ from: 'web[\"x\"]', to: '[\"z\"]' }, { from: 'web[\"z\"]', to: '[\"x\"]' }";
    plane().apply(&["-n", &ns], &sites("web", "forEach: [x, z]", "1", swap));
    wait_message(&ns, "web", "Ready", "spec.moved[1]: the moves");
    assert_eq!(ids(&ns, &["web[\"x\"]", "web[\"z\"]"]), before);
}

#[test]
fn the_api_server_refuses_what_is_no_address_and_a_second_place_for_one_object() {
    let _guard = shared();
    let ns = with_rights("badmoves");
    for moved in ["{ from: 'Web' }", "{ from: web, to: a }", "{ from: web, to: '[0]' }, { from: web, to: '[1]' }"] {
        let manifest = sites("web", "count: 2", "1", moved);
        let refused = plane().kubectl_with_stdin(&["apply", "-n", &ns, "-f", "-"], &manifest);
        assert!(!refused.status.success(), "{moved}: {refused:?}");
    }
}

#[test]
fn a_family_imports_its_objects() {
    let _guard = shared();
    let ns = with_rights("importing");
    for name in ["db-one", "db-two"] {
        plane().kubectl_ok(&["-n", &ns, "create", "configmap", name, "--from-literal=a=b"]);
    }
    let uid = |name: &str| found(&ns, "configmap", name).map(|one| one["metadata"]["uid"].clone());
    let before = (uid("db-one"), uid("db-two"));
    let family = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: db }}\nspec:\n  type: kubernetes_object\n  \
         forEach: [one, two]\n  import: {{ id: \"v1/ConfigMap/{ns}/db-${{each.key}}\" }}\n  config:\n    manifest: {{ \
         apiVersion: v1, kind: ConfigMap, metadata: {{ name: \"db-${{each.key}}\" }}, data: {{ a: c }} }}\n"
    );
    plane().apply(&["-n", &ns], &family);
    wait_ready(&ns, &["db"]);
    assert_eq!((uid("db-one"), uid("db-two")), before);
    assert_eq!(found(&ns, "configmap", "db-two").unwrap()["data"]["a"], "c");
}
