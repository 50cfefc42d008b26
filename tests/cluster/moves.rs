//! Renaming Resources: the object follows the record, and nothing is made or destroyed.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;

use crate::controller::Controller;
use crate::controlplane::wait_until;
use crate::installation::*;
use crate::providers::{attribute, provider, typed};
use crate::proxy::{Proxy, Trouble};

fn purlin(namespace: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
    command.args(arguments).args(["-n", namespace]);
    command.env("KUBECONFIG", plane().kubeconfig()).env("PURLIN_NAMESPACE", NAMESPACE).output().unwrap()
}

fn with_rights(prefix: &str) -> String {
    let ns = plane().namespace(prefix);
    let account = format!("--serviceaccount={ns}:default");
    plane().kubectl_ok(&["-n", &ns, "create", "rolebinding", "edit", "--clusterrole=edit", &account]);
    ns
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
    wait_until(&format!("{from} is gone"), LIMIT, || resource(namespace, from).is_none());
    wait_ready(namespace, &[to]);
    let now = resource(namespace, to).unwrap();
    assert_eq!(now["metadata"]["annotations"]["purlin.dev/record"], now["metadata"]["uid"], "it has the marks");
    assert_eq!(now["metadata"]["finalizers"], serde_json::json!(["purlin.dev/destroy"]));
    wait_until("only the new one is recorded", LIMIT, || {
        let addresses = recorded(namespace);
        addresses.iter().any(|address| address == to) && !addresses.iter().any(|address| address == from)
    });
}

/// Waits until a condition tells this.
fn wait_message(namespace: &str, name: &str, kind: &str, text: &str) {
    wait_until(&format!("{namespace}/{name}: {kind} tells: {text}"), LIMIT, || {
        let condition = resource(namespace, name).and_then(|resource| condition(&resource, kind));
        condition.is_some_and(|condition| condition["message"].as_str().unwrap_or_default().contains(text))
    });
}

/// Waits until all three tell that two Resources want the object of a third one.
fn wait_claimed_twice(namespace: &str, from: &str, to: [&str; 2]) {
    let told = format!("`{from}` is to be moved to `{}` and `{}`; only one of them", to[0], to[1]);
    wait_message(namespace, from, "DeletionBlocked", &told);
    to.iter().for_each(|name| wait_message(namespace, name, "Ready", &told));
}

const PUBLISH: &str = "publish: [{ configMapRef: { name: out }, data: { id: \"${self.id}\" } }]";

#[test]
fn a_renamed_resource_keeps_its_object_when_the_new_manifest_comes_first() {
    let _world = shared();
    let ns = with_rights("rename");
    plane().apply(&["-n", &ns], &(site("zone", "", PUBLISH) + &data("user", "\"${zone.id}\"", "")));
    wait_ready(&ns, &["zone", "user"]);
    let (before, copy) = (uid(&ns), found(&ns, "configmap", "out").unwrap()["metadata"]["uid"].clone());

    // As GitOps tools do it: everything new is applied, then what is gone is pruned.
    let renamed = site("dns-zone", "zone", PUBLISH) + &data("user", "\"${dns_zone.id}\"", "");
    plane().apply(&["-n", &ns], &renamed);
    let waits = wait_reason(&ns, "dns-zone", "Ready", "MoveBlocked");
    assert!(waits["message"].as_str().unwrap().contains("`zone` still has a Resource that wants it"), "{waits}");
    delete(&ns, "zone");
    wait_moved(&ns, "zone", "dns-zone");
    wait_ready(&ns, &["user"]);

    assert_eq!(uid(&ns), before, "it is the same object");
    let owner = || found(&ns, "configmap", "site").unwrap()["metadata"]["annotations"]["purlin.dev/owner"].clone();
    wait_until("the owner mark follows", LIMIT, || owner().as_str().unwrap().ends_with(&format!("/{ns}/dns-zone/")));
    let out = found(&ns, "configmap", "out").unwrap();
    let new_uid = resource(&ns, "dns-zone").unwrap()["metadata"]["uid"].clone();
    assert_eq!((&out["metadata"]["uid"], &out["metadata"]["ownerReferences"][0]["uid"]), (&copy, &new_uid));
    assert_eq!(recorded(&ns), ["dns-zone", "user"]);
    wait_until("the move is told", LIMIT, || events(&ns, "dns-zone").iter().any(|event| event.starts_with("Moved: ")));
    let shown = purlin(&ns, &["state", "show", "user", "-o", "json"]);
    let shown: Json = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["objects"][0]["dependencies"], serde_json::json!(["dns-zone"]));

    // It goes with its new Resource like any other.
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(found(&ns, "configmap", "site").is_none());
    wait_until("nothing is recorded", LIMIT, || records(&ns).is_empty());
}

#[test]
fn what_is_deleted_first_and_held_is_taken_over() {
    let _world = shared();
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
fn what_cannot_be_moved_says_why_and_moves_nothing() {
    let _world = shared();
    let ns = with_rights("unmoved");
    let all = ["one", "two", "three"].map(|name| data(name, name, "")).concat();
    plane().apply(&["-n", &ns], &all);
    wait_ready(&ns, &["one", "two", "three"]);
    let id = |name: &str| resource(&ns, name).map(|resource| resource["status"]["id"].clone());
    let (two, three) = (id("two"), id("three"));

    // There is an object already: nobody knows which one is meant, so the old one stays until the annotation goes.
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

    // Two that say that they were the same one: nobody gets it, nothing is made, nothing is destroyed.
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

    // Another type. Who is refused says so all the same, and nobody else gets the object meanwhile.
    plane().apply(&["-n", &ns], &site("six", "four", ""));
    delete(&ns, "four");
    wait_reason(&ns, "six", "Ready", "MoveBlocked");
    wait_reason(&ns, "four", "DeletionBlocked", "MoveBlocked");
    plane().apply(&["-n", &ns], &annotated("nine", "four", data("nine", "nine", "")));
    wait_claimed_twice(&ns, "four", ["nine", "six"]);
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "nine", "purlin.dev/moved-from-"]);
    wait_ready(&ns, &["nine"]);
    wait_message(&ns, "six", "Ready", "of type `terraform_data`, so nothing is moved");

    // Nor does anybody get what is said to belong to a Resource with an error.
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

    // An annotation that nobody can read keeps what it may have meant.
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
fn a_misspelt_name_holds_what_may_be_meant_until_it_is_corrected() {
    let _world = shared();
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

    // Nothing is made, and the old one stays, also when nothing protects it any more.
    plane().apply(&["-n", &ns], &site("dns-zone", "zome", ""));
    wait_message(&ns, "dns-zone", "Ready", "there is no record; did you mean `zone`? (hint: correct the annotation");
    wait_message(&ns, "zone", "DeletionBlocked", "`dns-zone` says that it was `zome`");
    plane().apply(&["-n", &ns], &site("zone", "", ""));
    wait_until("the change is seen", LIMIT, || {
        let zone = resource(&ns, "zone").unwrap();
        zone["status"]["observedGeneration"] == zone["metadata"]["generation"]
    });
    wait_reason(&ns, "zone", "DeletionBlocked", "MoveBlocked");
    let told = |name: &str, reason: &str, text: &str| {
        wait_until(&format!("an event of {name} tells {text}"), LIMIT, || {
            events(&ns, name).iter().any(|event| event.starts_with(reason) && event.contains(text))
        });
        let described = plane().kubectl_ok(&["-n", &ns, "describe", "pres", name]);
        assert!(described.matches(text).count() > 1, "in its conditions and in its events: {described}");
    };
    told("dns-zone", "MoveBlocked: ", "did you mean `zone`?");
    told("zone", "DeletionBlocked: MoveBlocked: ", "`dns-zone` says that it was `zome`");
    assert_eq!(uid(&ns), before);
    plane().apply(&["-n", &ns], &site("dns-zone", "zone", ""));
    wait_moved(&ns, "zone", "dns-zone");
    assert_eq!(uid(&ns), before, "it is the same object");

    // Without the annotation the old one goes, and so it does when there is nobody any more who says so.
    let says = |name: &str, from: &str| {
        let annotations = format!("{{ name: {name}, annotations: {{ purlin.dev/moved-from: {from} }} }}");
        plane().apply(&["-n", &ns], &data(name, name, "").replace(&format!("{{ name: {name} }}"), &annotations));
    };
    let unprotect = |name: &str| plane().apply(&["-n", &ns], &data(name, name, ""));
    says("third", "frist");
    wait_reason(&ns, "first", "DeletionBlocked", "MoveBlocked");
    unprotect("first");
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "third", "purlin.dev/moved-from-"]);
    wait_ready(&ns, &["third"]);
    wait_until("first is gone", LIMIT, || resource(&ns, "first").is_none());
    says("fourth", "secnd");
    wait_reason(&ns, "fourth", "Ready", "MoveBlocked");
    wait_reason(&ns, "second", "DeletionBlocked", "MoveBlocked");
    unprotect("second");
    delete(&ns, "fourth");
    wait_until("second is gone", LIMIT, || resource(&ns, "second").is_none());
}

#[test]
fn a_record_is_moved_by_hand() {
    let _world = shared();
    let ns = with_rights("by-hand");
    plane().apply(&["-n", &ns], &site("zone", "", ""));
    wait_ready(&ns, &["zone"]);
    let before = uid(&ns);
    let refused = |text: &str| {
        let output = purlin(&ns, &["state", "mv", "zone", "dns-zone"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(text), "{told}");
    };
    refused("there is no Resource `dns-zone`");
    plane().apply(&["-n", &ns], &site("dns-zone", "", "suspend: true"));
    wait_reason(&ns, "dns-zone", "Ready", "Suspended");
    refused("the Resource `zone` still wants its object");
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "zone", "purlin.dev/paused=true"]);
    wait_reason(&ns, "zone", "Synced", "Suspended");
    let moved = purlin(&ns, &["state", "mv", "zone", "dns-zone"]);
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    wait_until("it is moved", LIMIT, || recorded(&ns) == ["dns-zone"]);
    delete(&ns, "zone");
    wait_until("the old Resource goes, since it has nothing", LIMIT, || resource(&ns, "zone").is_none());
    plane().apply(&["-n", &ns], &site("dns-zone", "", ""));
    wait_ready(&ns, &["dns-zone"]);
    assert_eq!(uid(&ns), before);
}

/// Every write of the controller that counts: to records, and to Resources but for their status.
fn is_write(method: &str, path: &str) -> bool {
    let records = path.contains(&format!("/{NAMESPACE}/secrets"));
    let resources = path.contains("/resources/") && !path.contains("/status");
    matches!(method, "POST" | "PUT" | "PATCH" | "DELETE") && (records || resources)
}

#[test]
fn a_move_that_is_cut_anywhere_is_finished() {
    let _world = exclusive();
    // The writes of a move: the old record, the new one, its marks, the record of who used it, the old marks, the old
    // record.
    for cut in 0..6 {
        let ns = with_rights("cut");
        let first = Controller::start(plane());
        plane().apply(&["-n", &ns], &(site("zone", "", "") + &data("user", "\"${zone.id}\"", "")));
        wait_ready(&ns, &["zone", "user"]);
        let before = uid(&ns);
        first.kill(plane());
        // The deletion comes first here, and the new Resource before anybody could act upon that.
        delete(&ns, "zone");
        plane().apply(&["-n", &ns], &(site("dns-zone", "zone", "") + &data("user", "\"${dns_zone.id}\"", "")));

        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let proxy = Proxy::start(plane(), move |method, path| {
            let blocked = is_write(method, path) && counted.fetch_add(1, Ordering::SeqCst) >= cut;
            blocked.then_some(Trouble::TooManyRequests)
        });
        let second = Controller::launch_over(plane(), &[], proxy.kubeconfig());
        wait_until("it is cut", LIMIT, || count.load(Ordering::SeqCst) > cut);
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
fn a_move_that_is_cut_and_not_wanted_any_more_is_taken_back() {
    let _world = exclusive();
    for cut in [1, 2] {
        let ns = with_rights("back");
        let first = Controller::start(plane());
        plane().apply(&["-n", &ns], &site("zone", "", ""));
        wait_ready(&ns, &["zone"]);
        let before = uid(&ns);
        first.kill(plane());
        // Its Resource is lost, so that the record is abandoned.
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        plane().kubectl_ok(&["-n", &ns, "patch", "pres", "zone", "--type=merge", "-p", patch]);
        plane().kubectl_ok(&["-n", &ns, "delete", "pres", "zone"]);
        plane().apply(&["-n", &ns], &site("dns-zone", "zone", ""));

        let count = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&count);
        let proxy = Proxy::start(plane(), move |method, path| {
            let mut count = counted.lock().unwrap();
            *count += usize::from(is_write(method, path));
            (is_write(method, path) && *count > cut).then_some(Trouble::TooManyRequests)
        });
        let second = Controller::launch_over(plane(), &[], proxy.kubeconfig());
        wait_until("it is cut", LIMIT, || *count.lock().unwrap() > cut);
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
fn a_provider_takes_the_object_of_another_type_over() {
    let _world = shared();
    let ns = plane().namespace("retyped");
    plane().apply(&[], &provider("corner", "corner"));
    plane().apply(
        &["-n", &ns],
        &(typed("old", "corner_thing", "{ name: first }", "") + &data("user", "\"${old.id}\"", "")),
    );
    wait_ready(&ns, &["old", "user"]);
    let id = attribute(&ns, "old", "id");

    // To what cannot be made of it nothing is moved, whatever becomes of the old Resource.
    let named = |name: &str, type_name: &str, config: &str| {
        let annotations = "annotations: { purlin.dev/moved-from: old }";
        typed(name, type_name, config, "").replacen(" }", &format!(", {annotations} }}"), 1)
    };
    plane().apply(&["-n", &ns], &named("new", "corner_identified", "{ region: north, name: first }"));
    wait_reason(&ns, "new", "Ready", "MoveBlocked");
    plane().apply(&["-n", &ns], &data("user", "\"gone\"", ""));
    wait_until("user lets go of it", LIMIT, || attribute(&ns, "user", "output") == "gone");
    delete(&ns, "old");
    let held = wait_reason(&ns, "new", "Ready", "MoveBlocked");
    wait_until("the refusal is told", LIMIT, || {
        let message = condition(&resource(&ns, "new").unwrap(), "Ready").unwrap_or_default()["message"].clone();
        message.as_str().unwrap_or_default().contains("does not make a `corner_identified` of a `corner_thing`")
    });
    assert_eq!(recorded(&ns), ["old", "user"], "{held}");

    // Nobody else takes it while the wrong one says that it is its own, and then the right one does.
    plane().apply(&["-n", &ns], &named("newer", "corner_versioned", "{ title: first }"));
    for name in ["new", "newer"] {
        wait_message(&ns, name, "Ready", "`old` is to be moved to `new` and `newer`; only one of them");
    }
    assert_eq!(recorded(&ns), ["old", "user"]);
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "new", "purlin.dev/moved-from-"]);
    wait_moved(&ns, "old", "newer");
    wait_until("what the provider warns of is told", LIMIT, || {
        events(&ns, "newer").iter().any(|event| event == "ProviderWarning: Of the thing only the name is kept: first")
    });
    assert_eq!(attribute(&ns, "newer", "id"), id);
    assert!(events(&ns, "newer").iter().any(|event| event.contains("Moved")), "{:?}", events(&ns, "newer"));
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
}
