//! Settings of providers: what they are read from and refer to, who uses them, and what is told of them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::controller::Controller;
use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;
use crate::providers::{attribute, provider, typed};

const SECRET: &str = "inputs: [{ name: s, secretKeyRef: { name: login, key: s } }]";

/// A folder of a test, for the objects of `corner`.
fn world(name: &str) -> PathBuf {
    let folder = plane().scratch().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// How many objects there are in it.
fn objects(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn config(name: &str, provider: &str, settings: &str, more: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: {name} }}\nspec:\n  \
         provider: {{ name: {provider} }}\n  config: {settings}\n  {more}\n"
    )
}

fn secret(namespace: &str, value: &str) {
    let text =
        format!("{{ apiVersion: v1, kind: Secret, metadata: {{ name: login }}, stringData: {{ s: '{value}' }} }}");
    plane().apply(&["-n", namespace], &text);
}

/// Lets the ServiceAccount `default` read the Secret.
fn may_read(namespace: &str) {
    let place = ["-n", namespace];
    let role = ["create", "role", "read", "--verb=get,list,watch", "--resource=secrets", "--resource-name=login"];
    plane().kubectl_ok(&[&place[..], &role].concat());
    let account = format!("--serviceaccount={namespace}:default");
    plane().kubectl_ok(&[&place[..], &["create", "rolebinding", "read", "--role=read", &account]].concat());
}

fn settings(namespace: &str, name: &str) -> Option<Json> {
    let output = plane().kubectl(&["-n", namespace, "get", "ppc", name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// Waits until a condition of a ProviderConfig has the reason, and gives its message.
fn wait_settings(namespace: &str, name: &str, kind: &str, reason: &str) -> String {
    wait_for(&format!("{namespace}/{name}: {kind} has the reason {reason}"), LIMIT, || {
        let found = settings(namespace, name)?;
        let current = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        let told = condition(&found, kind).filter(|condition| current && condition["reason"] == reason)?;
        told["message"].as_str().map(str::to_owned)
    })
}

fn delete_all(namespace: &str) {
    plane().kubectl_ok(&["-n", namespace, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(namespace);
}

#[test]
fn settings_are_tried_and_stay_as_long_as_anything_uses_them() {
    let _world = shared();
    let ns = plane().namespace("settings");
    plane().apply(&[], &provider("corner", "corner"));
    may_read(&ns);
    secret(&ns, "canary-tried");
    let folder = world(&ns);
    let good = format!("{{ folder: '{}', secret: '${{inputs.s}}' }}", folder.display());
    plane().apply(&["-n", &ns], &config("corner", "corner", &good, SECRET));
    wait_settings(&ns, "corner", "Ready", "Available");
    let unused = settings(&ns, "corner").unwrap();
    assert_eq!((&unused["status"]["users"], &unused["metadata"]["finalizers"]), (&json!(0), &Json::Null));

    // One that is named like the prefix of the type is used without being named.
    plane().apply(&["-n", &ns], &typed("thing", "corner_thing", "{ name: a, text: b }", ""));
    wait_ready(&ns, &["thing"]);
    wait_until("the ProviderConfig is held", LIMIT, || {
        settings(&ns, "corner").unwrap()["metadata"]["finalizers"] == json!(["purlin.dev/in-use"])
    });
    let shown = plane().kubectl_ok(&["-n", &ns, "get", "ppc,pprov"]);
    assert!(shown.contains("USERS") && shown.contains("SYNCED") && shown.contains("TYPES"), "{shown}");

    // What the provider warns of is told, also by a status that is not written anew.
    let warned = format!("{{ folder: '{}', warn: 'soon gone', secret: '${{inputs.s}}' }}", folder.display());
    plane().apply(&["-n", &ns], &config("corner", "corner", &warned, SECRET));
    wait_until("the warning is told", LIMIT, || {
        let told = wait_settings(&ns, "corner", "Ready", "Available");
        told == "the provider accepts the settings; it warns: spec.config.warn: The settings are old: soon gone"
    });

    // Settings that are refused are told where they are, and where they are used.
    plane().apply(&["-n", &ns], &config("corner", "corner", "{ fail: 'not with ${inputs.s}' }", SECRET));
    let refused = wait_settings(&ns, "corner", "Ready", "ProviderNotReady");
    assert!(refused.contains("The configuration is refused: (sensitive)"), "{refused}");
    wait_settings(&ns, "corner", "Synced", "Available");
    wait_reason(&ns, "thing", "Ready", "ProviderNotReady");
    plane().apply(&["-n", &ns], &config("corner", "corner", "{ secret: '${1 + true}' }", SECRET));
    let broken = wait_settings(&ns, "corner", "Synced", "InvalidExpression");
    assert!(broken.starts_with("spec.config.secret: "), "{broken}");
    plane().apply(&["-n", &ns], &config("corner", "corner", "{ fail: '', nothing: x }", SECRET));
    let unknown = wait_settings(&ns, "corner", "Ready", "ProviderNotReady");
    assert!(unknown.contains("nothing"), "{unknown}");
    plane().apply(&["-n", &ns], &config("corner", "corner", &good, SECRET));
    wait_settings(&ns, "corner", "Ready", "Available");
    wait_ready(&ns, &["thing"]);

    plane().kubectl_ok(&["-n", &ns, "delete", "ppc", "corner", "--wait=false"]);
    let held = wait_settings(&ns, "corner", "DeletionBlocked", "StillUsed");
    assert!(held.starts_with("still used by `thing` (hint: "), "{held}");
    // It still serves.
    plane().apply(&["-n", &ns], &typed("thing", "corner_thing", "{ name: a, text: c }", ""));
    wait_until("the change is made", LIMIT, || attribute(&ns, "thing", "text") == "c");
    let told = events(&ns, "corner");
    assert!(told.iter().any(|event| event.starts_with("StillUsed: ")), "{told:?}");
    assert!(told.iter().any(|event| event.starts_with("ProviderNotReady: ")), "{told:?}");
    assert_eq!(objects(&folder), 1);
    delete_all(&ns);
    wait_until("the ProviderConfig goes with its last user", LIMIT, || settings(&ns, "corner").is_none());
    assert_eq!(objects(&folder), 0);
}

#[test]
fn a_default_of_one_namespace_is_none_of_another() {
    let _world = shared();
    plane().apply(&[], &provider("corner", "corner"));
    let namespaces = ["shop", "bank"].map(|name| plane().namespace(name));
    let folders = namespaces.each_ref().map(|ns| world(ns));
    for (ns, folder) in namespaces.iter().zip(&folders) {
        let settings = config("corner", "corner", &format!("{{ folder: '{}' }}", folder.display()), "");
        plane().apply(&["-n", ns], &(settings + &typed("thing", "corner_thing", "{ name: a, text: one }", "")));
    }
    for (ns, folder) in namespaces.iter().zip(&folders) {
        wait_ready(ns, &["thing"]);
        assert_eq!(objects(folder), 1, "{ns}");
    }
    // Everything of it happens there: changes, refreshes and the end.
    plane().apply(&["-n", &namespaces[0]], &typed("thing", "corner_thing", "{ name: a, text: two }", ""));
    wait_until("the change is made", LIMIT, || attribute(&namespaces[0], "thing", "text") == "two");
    let texts = folders.each_ref().map(|folder| {
        let file = fs::read_dir(folder).unwrap().next().unwrap().unwrap();
        fs::read_to_string(file.path()).unwrap()
    });
    assert_eq!(texts, ["two", "one"]);
    delete_all(&namespaces[0]);
    assert_eq!(folders.each_ref().map(|folder| objects(folder)), [0, 1]);
    delete_all(&namespaces[1]);
    assert_eq!(folders.each_ref().map(|folder| objects(folder)), [0, 0]);
}

#[test]
fn settings_that_refer_to_resources_come_after_them_and_go_before_them() {
    let _world = shared();
    let ns = plane().namespace("refer");
    plane().apply(&[], &(provider("corner", "corner") + &provider("random", "random")));
    let folder = world(&ns);
    // They are known only when the pet is made, and then all goes on by itself.
    let settings = format!("{{ folder: '{}', secret: '${{pet.id}}' }}", folder.display());
    let all = [
        config("corner", "corner", &settings, ""),
        typed("thing", "corner_thing", "{ name: a, text: '${pet.id}' }", ""),
        data("after", "\"${thing.id}\"", ""),
    ];
    plane().apply(&["-n", &ns], &all.concat());
    let waits = wait_settings(&ns, "corner", "Synced", "DependencyNotFound");
    assert!(waits.contains("`pet`"), "{waits}");
    wait_reason(&ns, "thing", "Ready", "DependencyNotFound");
    plane().apply(&["-n", &ns], &typed("pet", "random_pet", "{}", ""));
    wait_ready(&ns, &["pet", "thing", "after"]);
    wait_settings(&ns, "corner", "Ready", "Available");
    assert_eq!(objects(&folder), 1);
    // All at once, the settings included.
    plane().kubectl_ok(&["-n", &ns, "delete", "pres,ppc", "--all", "--wait=false"]);
    wait_empty(&ns);
    wait_until("the ProviderConfig is gone", LIMIT, || settings_gone(&ns));
    assert_eq!(objects(&folder), 0);
    assert!(records(&ns).is_empty());
    let told = events(&ns, "pet");
    assert!(told.iter().any(|event| event.starts_with("Destroyed")), "{told:?}");
}

#[test]
fn settings_that_read_a_family_wait_for_all_of_it() {
    let _world = shared();
    let ns = plane().namespace("whole");
    plane().apply(&[], &provider("corner", "corner"));
    let folder = world(&ns);
    let own = |name: &str, secret: &str| {
        config(name, "corner", &format!("{{ folder: '{}', secret: {secret} }}", folder.display()), "")
    };
    let all = [
        own("corner", "plain"),
        own("after", "\"${many.map(m, m.id).join('+')}\""),
        typed(
            "many",
            "corner_trouble",
            "{ text: \"${string(count.index)}\", on_create: \"${count.index == 1 ? 'error' : ''}\" }",
            "count: 3",
        ),
        typed("thing", "corner_thing", "{ name: a }", "providerConfigRef: { name: after }"),
    ];
    plane().apply(&["-n", &ns], &all.concat());
    // Two of three are there: these are no settings.
    wait_until("the others are made", LIMIT, || objects(&folder) == 2);
    wait_reason(&ns, "many", "Ready", "OperationFailed");
    wait_settings(&ns, "after", "Synced", "DependencyNotReady");
    wait_reason(&ns, "thing", "Ready", "DependencyNotReady");
    let asked = |events: Vec<String>| events.iter().any(|event| event.starts_with("Available"));
    assert!(!asked(events(&ns, "after")), "{:?}", events(&ns, "after"));
    fs::write(folder.join("peace"), "").unwrap();
    wait_settings(&ns, "after", "Ready", "Available");
    wait_ready(&ns, &["many", "thing"]);
    delete_all(&ns);
}

fn settings_gone(namespace: &str) -> bool {
    plane().get(&["-n", namespace, "ppc"])["items"].as_array().is_some_and(Vec::is_empty)
}

#[test]
fn a_changed_secret_reaches_the_provider_in_a_new_process() {
    let _world = shared();
    let ns = plane().namespace("turned");
    // A program of its own, so that its processes can be told from others.
    let program = plane().scratch().join(format!("{ns}-provider"));
    fs::copy(crate::real_providers::program("corner"), &program).unwrap();
    let own = provider("turned", "corner")
        .replace(&crate::real_providers::program("corner").display().to_string(), &program.display().to_string());
    plane().apply(&[], &own);
    let folder = world(&ns);
    for name in ["one", "two"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    secret(&ns, "one");
    let settings = format!("{{ folder: '{}/${{inputs.s}}' }}", folder.display());
    let thing = |name: &str| typed(name, "corner_thing", "{ name: a, text: b }", "providerConfigRef: { name: own }");
    plane().apply(&["-n", &ns], &(config("own", "turned", &settings, SECRET) + &thing("first")));
    // Nothing is read through Purlin that the tenant may not read.
    let refused = wait_settings(&ns, "own", "Synced", "Forbidden");
    assert!(refused.contains(&format!("`default` of namespace `{ns}`")), "{refused}");
    wait_reason(&ns, "first", "Ready", "Forbidden");
    may_read(&ns);
    wait_ready(&ns, &["first"]);
    assert_eq!(objects(&folder.join("one")), 1);
    let before = processes(&program);
    assert_eq!(before.len(), 1, "{before:?}");
    secret(&ns, "two");
    plane().apply(&["-n", &ns], &thing("second"));
    wait_ready(&ns, &["second"]);
    assert_eq!(objects(&folder.join("two")), 1);
    wait_until("the old process has ended", LIMIT, || {
        let now = processes(&program);
        now.len() == 1 && now != before
    });
    // Under the new settings the first one is not there, which is no reason to make it anew.
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "first", "purlin.dev/reconcile-requested-at=now"]);
    wait_reason(&ns, "first", "Ready", "GoneAfterConfigChange");
    secret(&ns, "one");
    wait_ready(&ns, &["first"]);
}

/// The processes that run a program.
fn processes(program: &Path) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut found: Vec<String> = all
        .filter(|entry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn what_a_provider_has_against_an_object_is_told_with_its_place() {
    let _world = shared();
    let ns = plane().namespace("places");
    plane().apply(&[], &(provider("corner", "corner") + &provider("random", "random")));
    let all = [
        typed("mistyped", "random_pet", "{ length: many }", ""),
        typed("missing", "random_shuffle", "{}", ""),
        typed("refused", "random_password", "{ length: 0 }", ""),
        typed("nested", "corner_thing", "{ name: a, one: { key: { a: b } } }", ""),
        typed("planned", "corner_trouble", "{ on_plan: error }", ""),
        typed("created", "corner_trouble", "{ on_create: error }", ""),
        typed("good", "random_pet", "{}", ""),
    ];
    plane().apply(&["-n", &ns], &all.concat());
    let message =
        |name: &str, reason: &str| wait_reason(&ns, name, "Ready", reason)["message"].as_str().unwrap().to_owned();
    assert_eq!(message("mistyped", "InvalidConfig"), "spec.config.length: must be a number, not a text");
    assert_eq!(message("missing", "InvalidConfig"), "spec.config.input: is required, but not set");
    let refused = message("refused", "InvalidConfig");
    assert!(refused.starts_with("spec.config.length: Invalid Attribute Value: "), "{refused}");
    let nested = message("nested", "InvalidConfig");
    assert!(nested.starts_with("spec.config.one.key: "), "{nested}");
    for (name, at) in [("planned", "on_plan"), ("created", "on_create")] {
        let told = message(name, "OperationFailed");
        assert!(told.contains(&format!("spec.config.{at}: ")) && told.contains("It failed as asked"), "{told}");
    }
    wait_ready(&ns, &["good"]);
    delete_all(&ns);
}

#[test]
fn a_changed_write_only_argument_is_told_to_the_provider() {
    let _world = shared();
    let ns = plane().namespace("wronly");
    plane().apply(&[], &provider("corner", "corner"));
    may_read(&ns);
    secret(&ns, "canary-wo-one");
    plane().apply(&["-n", &ns], &typed("account", "corner_thing", "{ name: a, secret_wo: '${inputs.s}' }", SECRET));
    wait_ready(&ns, &["account"]);
    secret(&ns, "canary-wo-two");
    wait_until("the provider is told", LIMIT, || {
        events(&ns, "account").iter().any(|event| event.starts_with("Updated"))
    });
    wait_ready(&ns, &["account"]);
    let told = events(&ns, "account");
    assert_eq!(told.iter().filter(|event| event.starts_with("Updated")).count(), 1, "{told:?}");
    delete_all(&ns);
}

#[test]
fn secrets_of_providers_are_found_nowhere_but_where_they_belong() {
    let world = shared();
    let ns = plane().namespace("leaks");
    let account = format!("--serviceaccount={ns}:default");
    plane().kubectl_ok(&["-n", &ns, "create", "rolebinding", "edit", "--clusterrole=edit", &account]);
    plane().apply(&[], &["corner", "random", "tls"].map(|name| provider(name, name)).concat());
    secret(&ns, "canary-setting-5d1");
    let publish =
        |of: &str, key: &str| format!("publish: [{{ secretRef: {{ name: {of} }}, data: {{ v: '${{self.{key}}}' }} }}]");
    let all = [
        // It is printed by the provider, quoted in its errors, and a part of a path.
        config("corner", "corner", "{ secret: '${inputs.s}' }", SECRET),
        config("odd", "corner", "{ fail: 'not with ${inputs.s}' }", SECRET),
        config("lost", "corner", "{ folder: '/nowhere/${inputs.s}' }", SECRET),
        typed("thing", "corner_thing", "{ name: a, password: '${password.result}', text: plain }", ""),
        typed("odd", "corner_thing", "{ name: a }", "providerConfigRef: { name: odd }"),
        typed("lost", "corner_thing", "{ name: a }", "providerConfigRef: { name: lost }"),
        typed("told", "corner_thing", "{ name: a, secret_wo: '${inputs.s}', one: { key: '${inputs.s}' } }", SECRET),
        typed("password", "random_password", "{ length: 24, special: false }", &publish("password", "result")),
        typed("key", "tls_private_key", "{ algorithm: ED25519 }", &publish("key", "private_key_pem")),
        typed("token", "corner_thing", "{ name: a }", &publish("token", "token")),
    ];
    plane().apply(&["-n", &ns], &all.concat());
    wait_ready(&ns, &["thing", "told", "password", "key", "token"]);
    wait_reason(&ns, "odd", "Ready", "ProviderNotReady");
    wait_reason(&ns, "lost", "Ready", "OperationFailed");
    wait_settings(&ns, "odd", "Ready", "ProviderNotReady");
    let mut canaries = vec!["canary-setting-5d1".to_owned(), "Y2FuYXJ5LXNldHRpbmctNWQx".to_owned()];
    for name in ["password", "key", "token"] {
        let made = plane().get(&["-n", &ns, "secret", name])["data"]["v"].as_str().unwrap().to_owned();
        let bytes = base64_text(&made);
        canaries.extend(bytes.lines().filter(|line| !line.starts_with("-----")).map(str::to_owned));
        canaries.push(made);
    }
    let clean = |what: &str, text: &str| {
        for canary in &canaries {
            assert!(!text.contains(canary.as_str()), "{what} shows {canary}: {text}");
        }
    };
    clean("status", &plane().get(&["-n", &ns, "pres"]).to_string());
    clean("the status of settings", &plane().get(&["-n", &ns, "ppc"]).to_string());
    clean("an event", &plane().get(&["-n", &ns, "events.events.k8s.io"]).to_string());
    clean("a metric", &world.controller().metrics());
    for line in world.controller().log().lines() {
        clean("the log of the controller", line);
    }
    let kubeconfig = plane().kubeconfig();
    for command in [&["plan"][..], &["plan", "-o", "json"], &["state", "list", "-o", "json"], &["explain", "lost"]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_purlin"))
            .args(command)
            .args(["-n", &ns, "--kubeconfig"])
            .arg(&kubeconfig)
            .output()
            .expect("purlin runs");
        clean(&command.join(" "), &String::from_utf8_lossy(&output.stdout));
        clean(&command.join(" "), &String::from_utf8_lossy(&output.stderr));
    }
    let log = fs::read_to_string(plane().audit_log()).expect("the audit log");
    for entry in log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
        let ours = entry["user"]["username"] == format!("system:serviceaccount:{NAMESPACE}:purlin");
        if ours && entry["objectRef"]["resource"] != "secrets" {
            clean("the audit log", &entry.to_string());
        }
    }
    delete_all(&ns);
}

/// What is in base64, as a text.
fn base64_text(encoded: &str) -> String {
    use base64::Engine as _;
    String::from_utf8(base64::prelude::BASE64_STANDARD.decode(encoded).unwrap()).unwrap()
}

/// Puts a package of `hashicorp/random` into a folder laid out as a filesystem mirror.
fn publish_package(mirror: &Path, version: &str, more: &str) {
    let platform = purlin::install::Platform::here().to_string();
    let folder = mirror.join("registry.opentofu.org/hashicorp/random").join(version).join(platform);
    fs::create_dir_all(&folder).unwrap();
    fs::copy(crate::real_providers::program("random"), folder.join("terraform-provider-random")).unwrap();
    fs::write(folder.join("NOTES"), more).unwrap();
}

#[test]
fn a_controller_that_starts_again_installs_the_very_same_package() {
    let exclusive = exclusive();
    let mirror = plane().scratch().join("locked-mirror");
    publish_package(&mirror, "3.1.0", "as it was");
    let text = format!(
        "{{ apiVersion: purlin.dev/v1alpha1, kind: Provider, metadata: {{ name: locked }}, spec: {{ source: \
         hashicorp/random, version: '~> 3.0', package: {{ filesystemMirror: '{}' }} }} }}",
        mirror.display()
    );
    plane().apply(&[], &text);
    let status = || plane().get(&["provider.purlin.dev", "locked"])["status"].clone();
    let ready = |reason: &str| {
        wait_until(&format!("the Provider says {reason}"), LIMIT, || {
            condition(&json!({ "status": status() }), "Ready").is_some_and(|ready| ready["reason"] == reason)
        });
        status()
    };
    let mut controller = Controller::start(plane());
    let first = ready("Available");
    assert_eq!((&first["version"], &first["protocol"]), (&json!("3.1.0"), &json!(5)));
    assert!(first["resourceTypes"].as_i64().unwrap() > 5, "{first}");
    assert!(first["lock"]["hashes"][0].as_str().unwrap().starts_with("h1:"), "{first}");
    controller.terminate(plane());

    // A newer version is passed over.
    publish_package(&mirror, "3.2.0", "newer");
    let mut controller = Controller::start(plane());
    let ns = plane().namespace("locked");
    let pet = typed("pet", "random_pet", "{}", "providerConfigRef: { name: pets }");
    plane().apply(&["-n", &ns], &(config("pets", "locked", "{}", "") + &pet));
    wait_ready(&ns, &["pet"]);
    wait_settings(&ns, "pets", "Ready", "Available");
    assert_eq!(settings(&ns, "pets").unwrap()["status"]["version"], "3.1.0");
    assert_eq!(status()["lock"], first["lock"]);
    delete_all(&ns);
    wait_until("the ProviderConfig is free", LIMIT, || settings(&ns, "pets").unwrap()["status"]["users"] == 0);
    let accepted = settings(&ns, "pets").unwrap()["status"].clone();
    controller.terminate(plane());

    // The same version with another content is somebody else's.
    publish_package(&mirror, "3.1.0", "changed");
    let mut controller = Controller::start(plane());
    let refused = ready("ProviderNotReady");
    // Settings that were accepted are not tried again only because the process is a new one.
    assert_eq!(settings(&ns, "pets").unwrap()["status"], accepted);
    let message = refused["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("3.1.0") && message.contains("is not one that is locked"), "{message}");
    assert_eq!(refused["lock"], first["lock"]);

    // Another constraint chooses anew.
    plane().apply(&[], &text.replace("~> 3.0", ">= 3.2"));
    assert_eq!(ready("Available")["version"], "3.2.0");
    controller.terminate(plane());
    plane().kubectl_ok(&["delete", "provider.purlin.dev", "locked"]);
    drop(exclusive);
}
