//! ProviderConfigs: inputs and references, the Resources that use them, status and events.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::controller::Controller;
use crate::controlplane::{wait_for, wait_until};
use crate::installation::*;
use crate::providers::{attribute, provider, provider_tls, typed};

const SECRET: &str = "inputs: [{ name: s, secretKeyRef: { name: login, key: s } }]";

/// The directory of a test for the objects of `corner`.
fn object_directory(name: &str) -> PathBuf {
    let directory = plane().scratch().join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// The number of objects in the directory.
fn objects(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

fn config(name: &str, provider: &str, configuration: &str, more: &str) -> String {
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: {name} }}\nspec:\n  \
         provider: {{ name: {provider} }}\n  config: {configuration}\n  {more}\n"
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
    plane().bind(namespace, "read", "--role=read", "default");
}

fn provider_config(namespace: &str, name: &str) -> Option<Json> {
    let output = plane().kubectl(&["-n", namespace, "get", "ppc", name, "-o", "json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// Waits until a condition of a ProviderConfig has the reason, and returns its message.
fn wait_provider_config(namespace: &str, name: &str, kind: &str, reason: &str) -> String {
    wait_for(&format!("{namespace}/{name}: {kind} has the reason {reason}"), LIMIT, || {
        let found = provider_config(namespace, name)?;
        let current = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        let condition = condition(&found, kind).filter(|condition| current && condition["reason"] == reason)?;
        condition["message"].as_str().map(str::to_owned)
    })
}

fn delete_all(namespace: &str) {
    plane().kubectl_ok(&["-n", namespace, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(namespace);
}

#[test]
fn a_provider_configuration_is_checked_and_kept_while_resources_use_it() {
    let _guard = shared();
    let ns = plane().namespace("settings");
    plane().apply(&[], &provider("corner", "corner"));
    may_read(&ns);
    secret(&ns, "canary-tried");
    let directory = object_directory(&ns);
    let good = format!("{{ folder: '{}', secret: '${{inputs.s}}' }}", directory.display());
    plane().apply(&["-n", &ns], &config("corner", "corner", &good, SECRET));
    wait_provider_config(&ns, "corner", "Ready", "Available");
    let unused = provider_config(&ns, "corner").unwrap();
    assert_eq!((&unused["status"]["users"], &unused["metadata"]["finalizers"]), (&json!(0), &Json::Null));

    // A ProviderConfig named like the prefix of the type is the default.
    plane().apply(&["-n", &ns], &typed("thing", "corner_thing", "{ name: a, text: b }", ""));
    wait_ready(&ns, &["thing"]);
    wait_until("the ProviderConfig has its finalizer", LIMIT, || {
        provider_config(&ns, "corner").unwrap()["metadata"]["finalizers"] == json!(["purlin.dev/in-use"])
    });
    let shown = plane().kubectl_ok(&["-n", &ns, "get", "ppc,pprov"]);
    assert!(shown.contains("USERS") && shown.contains("SYNCED") && shown.contains("TYPES"), "{shown}");

    // A warning of the provider is reported, also in a status that is not written again.
    let warned = format!("{{ folder: '{}', warn: 'soon gone', secret: '${{inputs.s}}' }}", directory.display());
    plane().apply(&["-n", &ns], &config("corner", "corner", &warned, SECRET));
    wait_until("the warning is reported", LIMIT, || {
        let message = wait_provider_config(&ns, "corner", "Ready", "Available");
        message
            == "the provider accepted the configuration; warning: spec.config.warn: The configuration is old: soon gone"
    });

    // A rejected configuration is reported on the ProviderConfig and on the Resources that use it.
    plane().apply(&["-n", &ns], &config("corner", "corner", "{ fail: 'not with ${inputs.s}' }", SECRET));
    let refused = wait_provider_config(&ns, "corner", "Ready", "ProviderNotReady");
    assert!(refused.contains("The configuration is refused: (sensitive)"), "{refused}");
    wait_provider_config(&ns, "corner", "Synced", "Available");
    wait_reason(&ns, "thing", "Ready", "ProviderNotReady");
    plane().apply(&["-n", &ns], &config("corner", "corner", "{ secret: '${1 + true}' }", SECRET));
    let broken = wait_provider_config(&ns, "corner", "Synced", "InvalidExpression");
    assert!(broken.starts_with("spec.config.secret: "), "{broken}");
    plane().apply(&["-n", &ns], &config("corner", "corner", "{ fail: '', nothing: x }", SECRET));
    let unknown = wait_provider_config(&ns, "corner", "Ready", "ProviderNotReady");
    assert!(unknown.contains("nothing"), "{unknown}");
    plane().apply(&["-n", &ns], &config("corner", "corner", &good, SECRET));
    wait_provider_config(&ns, "corner", "Ready", "Available");
    wait_ready(&ns, &["thing"]);

    plane().kubectl_ok(&["-n", &ns, "delete", "ppc", "corner", "--wait=false"]);
    let held = wait_provider_config(&ns, "corner", "DeletionBlocked", "InUse");
    assert!(held.starts_with("in use by `thing` (hint: "), "{held}");
    // It can still be used.
    plane().apply(&["-n", &ns], &typed("thing", "corner_thing", "{ name: a, text: c }", ""));
    wait_until("the object is updated", LIMIT, || attribute(&ns, "thing", "text") == "c");
    wait_event(&ns, "corner", "InUse: ");
    wait_event(&ns, "corner", "ProviderNotReady: ");
    assert_eq!(objects(&directory), 1);
    delete_all(&ns);
    wait_until("the ProviderConfig is deleted after its last user", LIMIT, || provider_config(&ns, "corner").is_none());
    assert_eq!(objects(&directory), 0);
}

#[test]
fn a_default_provider_configuration_applies_to_its_namespace_only() {
    let _guard = shared();
    plane().apply(&[], &provider("corner", "corner"));
    let namespaces = ["shop", "bank"].map(|name| plane().namespace(name));
    let directories = namespaces.each_ref().map(|ns| object_directory(ns));
    for (ns, directory) in namespaces.iter().zip(&directories) {
        let configuration = config("corner", "corner", &format!("{{ folder: '{}' }}", directory.display()), "");
        plane().apply(&["-n", ns], &(configuration + &typed("thing", "corner_thing", "{ name: a, text: one }", "")));
    }
    for (ns, directory) in namespaces.iter().zip(&directories) {
        wait_ready(ns, &["thing"]);
        assert_eq!(objects(directory), 1, "{ns}");
    }
    // Updates, refreshes and destroys use it too.
    plane().apply(&["-n", &namespaces[0]], &typed("thing", "corner_thing", "{ name: a, text: two }", ""));
    wait_until("the object is updated", LIMIT, || attribute(&namespaces[0], "thing", "text") == "two");
    let contents = directories.each_ref().map(|directory| {
        let file = fs::read_dir(directory).unwrap().next().unwrap().unwrap();
        fs::read_to_string(file.path()).unwrap()
    });
    assert_eq!(contents, ["two", "one"]);
    delete_all(&namespaces[0]);
    assert_eq!(directories.each_ref().map(|directory| objects(directory)), [0, 1]);
    delete_all(&namespaces[1]);
    assert_eq!(directories.each_ref().map(|directory| objects(directory)), [0, 0]);
}

#[test]
fn a_provider_configuration_that_references_resources_is_created_after_and_destroyed_before_them() {
    let _guard = shared();
    let ns = plane().namespace("refer");
    plane().apply(&[], &(provider("corner", "corner") + &provider("random", "random")));
    let directory = object_directory(&ns);
    // The configuration is known only after the pet is created. Then its users proceed.
    let configuration = format!("{{ folder: '{}', secret: '${{pet.id}}' }}", directory.display());
    let all = [
        config("corner", "corner", &configuration, ""),
        typed("thing", "corner_thing", "{ name: a, text: '${pet.id}' }", ""),
        data("after", "\"${thing.id}\"", ""),
    ];
    plane().apply(&["-n", &ns], &all.concat());
    let waits = wait_provider_config(&ns, "corner", "Synced", "DependencyNotFound");
    assert!(waits.contains("`pet`"), "{waits}");
    wait_reason(&ns, "thing", "Ready", "DependencyNotFound");
    plane().apply(&["-n", &ns], &typed("pet", "random_pet", "{}", ""));
    wait_ready(&ns, &["pet", "thing", "after"]);
    wait_provider_config(&ns, "corner", "Ready", "Available");
    assert_eq!(objects(&directory), 1);
    // All are deleted together, including the ProviderConfig.
    plane().kubectl_ok(&["-n", &ns, "delete", "pres,ppc", "--all", "--wait=false"]);
    wait_empty(&ns);
    wait_until("the ProviderConfig is deleted", LIMIT, || provider_configs_gone(&ns));
    assert_eq!(objects(&directory), 0);
    assert!(records(&ns).is_empty());
    wait_event(&ns, "pet", "Destroyed");
}

#[test]
fn a_provider_configuration_that_references_a_family_waits_for_all_instances() {
    let _guard = shared();
    let ns = plane().namespace("whole");
    plane().apply(&[], &provider("corner", "corner"));
    let directory = object_directory(&ns);
    let own = |name: &str, secret: &str| {
        config(name, "corner", &format!("{{ folder: '{}', secret: {secret} }}", directory.display()), "")
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
    // Two of three instances exist, so the configuration is not known yet.
    wait_until("the others are created", LIMIT, || objects(&directory) == 2);
    wait_reason(&ns, "many", "Ready", "OperationFailed");
    wait_provider_config(&ns, "after", "Synced", "DependencyNotReady");
    wait_reason(&ns, "thing", "Ready", "DependencyNotReady");
    let is_available = |events: Vec<String>| events.iter().any(|event| event.starts_with("Available"));
    assert!(!is_available(events(&ns, "after")), "{:?}", events(&ns, "after"));
    fs::write(directory.join("peace"), "").unwrap();
    wait_provider_config(&ns, "after", "Ready", "Available");
    wait_ready(&ns, &["many", "thing"]);
    delete_all(&ns);
}

fn provider_configs_gone(namespace: &str) -> bool {
    plane().get(&["-n", namespace, "ppc"])["items"].as_array().is_some_and(Vec::is_empty)
}

#[test]
fn a_changed_secret_reaches_the_provider_in_a_new_process() {
    let _guard = shared();
    let ns = plane().namespace("turned");
    // A copy of the program, so that its processes can be distinguished from others.
    let program = plane().scratch().join(format!("{ns}-provider"));
    fs::copy(crate::real_providers::program("corner"), &program).unwrap();
    let own = provider("turned", "corner")
        .replace(&crate::real_providers::program("corner").display().to_string(), &program.display().to_string());
    plane().apply(&[], &own);
    let directory = object_directory(&ns);
    for name in ["one", "two"] {
        fs::create_dir_all(directory.join(name)).unwrap();
    }
    secret(&ns, "one");
    let configuration = format!("{{ folder: '{}/${{inputs.s}}' }}", directory.display());
    let thing = |name: &str| typed(name, "corner_thing", "{ name: a, text: b }", "providerConfigRef: { name: own }");
    plane().apply(&["-n", &ns], &(config("own", "turned", &configuration, SECRET) + &thing("first")));
    // Purlin reads nothing that the tenant may not read.
    let refused = wait_provider_config(&ns, "own", "Synced", "Forbidden");
    assert!(refused.contains(&format!("`default` of namespace `{ns}`")), "{refused}");
    wait_reason(&ns, "first", "Ready", "Forbidden");
    may_read(&ns);
    wait_ready(&ns, &["first"]);
    assert_eq!(objects(&directory.join("one")), 1);
    let before = processes(&program);
    assert_eq!(before.len(), 1, "{before:?}");
    secret(&ns, "two");
    plane().apply(&["-n", &ns], &thing("second"));
    wait_ready(&ns, &["second"]);
    assert_eq!(objects(&directory.join("two")), 1);
    wait_until("the old process has ended", LIMIT, || {
        let now = processes(&program);
        now.len() == 1 && now != before
    });
    // With the new configuration the first object is missing. Purlin does not create it again.
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "first", "purlin.dev/reconcile-requested-at=now"]);
    wait_reason(&ns, "first", "Ready", "ObjectMissingAfterConfigChange");
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
fn errors_of_a_provider_are_reported_with_the_path_of_the_field() {
    let _guard = shared();
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
    assert_eq!(message("mistyped", "InvalidConfig"), "spec.config.length: must be a number, not a string");
    assert_eq!(message("missing", "InvalidConfig"), "spec.config.input: is required, but not set");
    let refused = message("refused", "InvalidConfig");
    assert!(refused.starts_with("spec.config.length: Invalid Attribute Value: "), "{refused}");
    let nested = message("nested", "InvalidConfig");
    assert!(nested.starts_with("spec.config.one.key: "), "{nested}");
    for (name, at) in [("planned", "on_plan"), ("created", "on_create")] {
        let message = message(name, "OperationFailed");
        assert!(
            message.contains(&format!("spec.config.{at}: ")) && message.contains("It failed as asked"),
            "{message}"
        );
    }
    wait_ready(&ns, &["good"]);
    delete_all(&ns);
}

#[test]
fn a_changed_write_only_argument_updates_the_object() {
    let _guard = shared();
    let ns = plane().namespace("wronly");
    plane().apply(&[], &provider("corner", "corner"));
    may_read(&ns);
    secret(&ns, "canary-wo-one");
    plane().apply(&["-n", &ns], &typed("account", "corner_thing", "{ name: a, secret_wo: '${inputs.s}' }", SECRET));
    wait_ready(&ns, &["account"]);
    secret(&ns, "canary-wo-two");
    wait_event(&ns, "account", "Updated");
    wait_ready(&ns, &["account"]);
    let events = events(&ns, "account");
    assert_eq!(events.iter().filter(|event| event.starts_with("Updated")).count(), 1, "{events:?}");
    delete_all(&ns);
}

#[test]
fn secrets_of_providers_do_not_leak() {
    let _turn = provider_tls();
    let guard = shared();
    let ns = plane().namespace("leaks");
    plane().bind(&ns, "edit", "--clusterrole=edit", "default");
    plane().apply(&[], &["corner", "random", "tls"].map(|name| provider(name, name)).concat());
    secret(&ns, "canary-setting-5d1");
    let publish =
        |of: &str, key: &str| format!("publish: [{{ secretRef: {{ name: {of} }}, data: {{ v: '${{self.{key}}}' }} }}]");
    let all = [
        // The provider logs the secret, quotes it in an error, and uses it in a path.
        config("corner", "corner", "{ secret: '${inputs.s}' }", SECRET),
        config("odd", "corner", "{ fail: 'not with ${inputs.s}' }", SECRET),
        config("lost", "corner", "{ folder: '/nowhere/${inputs.s}' }", SECRET),
        typed("thing", "corner_thing", "{ name: a, password: '${password.result}', text: plain }", ""),
        typed("odd", "corner_thing", "{ name: a }", "providerConfigRef: { name: odd }"),
        typed("lost", "corner_thing", "{ name: a }", "providerConfigRef: { name: lost }"),
        typed(
            "write-only",
            "corner_thing",
            "{ name: a, secret_wo: '${inputs.s}', one: { key: '${inputs.s}' } }",
            SECRET,
        ),
        typed("password", "random_password", "{ length: 24, special: false }", &publish("password", "result")),
        typed("key", "tls_private_key", "{ algorithm: ED25519 }", &publish("key", "private_key_pem")),
        typed("token", "corner_thing", "{ name: a }", &publish("token", "token")),
    ];
    plane().apply(&["-n", &ns], &all.concat());
    wait_ready(&ns, &["thing", "write-only", "password", "key", "token"]);
    wait_reason(&ns, "odd", "Ready", "ProviderNotReady");
    wait_reason(&ns, "lost", "Ready", "OperationFailed");
    wait_provider_config(&ns, "odd", "Ready", "ProviderNotReady");
    let mut canaries = vec!["canary-setting-5d1".to_owned(), "Y2FuYXJ5LXNldHRpbmctNWQx".to_owned()];
    for name in ["password", "key", "token"] {
        let value = plane().get(&["-n", &ns, "secret", name])["data"]["v"].as_str().unwrap().to_owned();
        let bytes = decode_base64(&value);
        canaries.extend(bytes.lines().filter(|line| !line.starts_with("-----")).map(str::to_owned));
        canaries.push(value);
    }
    let clean = |what: &str, text: &str| {
        for canary in &canaries {
            assert!(!text.contains(canary.as_str()), "{what} shows {canary}: {text}");
        }
    };
    clean("status", &plane().get(&["-n", &ns, "pres"]).to_string());
    clean("the status of a ProviderConfig", &plane().get(&["-n", &ns, "ppc"]).to_string());
    clean("an event", &plane().get(&["-n", &ns, "events.events.k8s.io"]).to_string());
    clean("a metric", &guard.controller().metrics());
    for line in guard.controller().log().lines() {
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

fn decode_base64(encoded: &str) -> String {
    use base64::Engine as _;
    String::from_utf8(base64::prelude::BASE64_STANDARD.decode(encoded).unwrap()).unwrap()
}

/// Writes a package of `hashicorp/random` into a filesystem mirror.
fn publish_package(mirror: &Path, version: &str, more: &str) {
    let platform = purlin::install::Platform::current().to_string();
    let directory = mirror.join("registry.opentofu.org/hashicorp/random").join(version).join(platform);
    fs::create_dir_all(&directory).unwrap();
    fs::copy(crate::real_providers::program("random"), directory.join("terraform-provider-random")).unwrap();
    fs::write(directory.join("NOTES"), more).unwrap();
}

#[test]
fn a_restarted_controller_installs_the_locked_package() {
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
        wait_until(&format!("the Provider has the reason {reason}"), LIMIT, || {
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

    // A newer version is not installed.
    publish_package(&mirror, "3.2.0", "newer");
    let mut controller = Controller::start(plane());
    let ns = plane().namespace("locked");
    let pet = typed("pet", "random_pet", "{}", "providerConfigRef: { name: pets }");
    plane().apply(&["-n", &ns], &(config("pets", "locked", "{}", "") + &pet));
    wait_ready(&ns, &["pet"]);
    wait_provider_config(&ns, "pets", "Ready", "Available");
    assert_eq!(provider_config(&ns, "pets").unwrap()["status"]["version"], "3.1.0");
    assert_eq!(status()["lock"], first["lock"]);
    delete_all(&ns);
    wait_until("no Resource uses the ProviderConfig", LIMIT, || {
        provider_config(&ns, "pets").unwrap()["status"]["users"] == 0
    });
    let accepted = provider_config(&ns, "pets").unwrap()["status"].clone();
    controller.terminate(plane());

    // The same version with different content does not match the lock.
    publish_package(&mirror, "3.1.0", "changed");
    let mut controller = Controller::start(plane());
    let refused = ready("ProviderNotReady");
    // A new controller process does not check an accepted configuration again.
    assert_eq!(provider_config(&ns, "pets").unwrap()["status"], accepted);
    let message = refused["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("3.1.0") && message.contains("does not match the locked checksums"), "{message}");
    assert_eq!(refused["lock"], first["lock"]);

    // Another constraint selects a version again.
    plane().apply(&[], &text.replace("~> 3.0", ">= 3.2"));
    assert_eq!(ready("Available")["version"], "3.2.0");
    controller.terminate(plane());
    plane().kubectl_ok(&["delete", "provider.purlin.dev", "locked"]);
    drop(exclusive);
}
