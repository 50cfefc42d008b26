//! Real providers, used by the controller.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::controlplane::wait_until;
use crate::installation::*;
use crate::real_providers;

/// A Provider with a program that the test suite has built, which may write only the files of the test suite. Providers
/// are cluster-scoped.
pub(crate) fn provider(name: &str, program: &str) -> String {
    let program = real_providers::program(program);
    format!(
        "---\napiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: {{ name: {name} }}\nspec:\n  \
         source: hashicorp/{name}\n  package: {{ path: '{}' }}\n  files: {{ write: ['{}'] }}\n",
        program.display(),
        plane().scratch().display()
    )
}

pub(crate) fn typed(name: &str, type_name: &str, config: &str, more: &str) -> String {
    let head = "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata:";
    format!("{head} {{ name: {name} }}\nspec:\n  type: {type_name}\n  config: {config}\n  {more}\n")
}

pub(crate) fn attribute(namespace: &str, name: &str, attribute: &str) -> serde_json::Value {
    resource(namespace, name).map(|found| found["status"]["attributes"][attribute].clone()).unwrap_or_default()
}

#[test]
fn types_of_a_provider_work_like_built_in_types() {
    let _guard = shared();
    let ns = plane().namespace("random");
    plane().apply(&[], &provider("random", "random"));
    wait_until("the Provider is ready", LIMIT, || {
        condition(&plane().get(&["provider.purlin.dev", "random"]), "Ready")
            .is_some_and(|ready| ready["status"] == "True")
    });
    let resources = [
        typed("pet", "random_pet", "{ length: 2 }", ""),
        typed("password", "random_password", "{ length: 20, keepers: { pet: '${pet.id}' } }", ""),
        data("user", "\"${pet.id}\"", ""),
    ];
    plane().apply(&["-n", &ns], &resources.concat());
    wait_ready(&ns, &["pet", "password", "user"]);
    let first = attribute(&ns, "pet", "id");
    assert_eq!(attribute(&ns, "user", "output"), first);
    // Attributes that the schema marks as sensitive are not shown.
    let shown = plane().kubectl_ok(&["-n", &ns, "get", "pres", "password", "-o", "yaml"]);
    assert!(shown.contains("length: 20") && !shown.contains("bcrypt_hash: $2"), "{shown}");

    // A replacement updates its dependents.
    plane().apply(&["-n", &ns], &typed("pet", "random_pet", "{ length: 3 }", ""));
    wait_until("the new pet is created", LIMIT, || {
        let now = attribute(&ns, "pet", "id");
        now.is_string() && now != first && attribute(&ns, "user", "output") == now
    });
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
}

#[test]
fn a_provider_that_hangs_does_not_block_the_check_of_others() {
    let _guard = shared();
    let program = plane().scratch().join("hangs");
    fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let hanging = provider("a-hangs", "corner")
        .replace(&real_providers::program("corner").display().to_string(), &program.display().to_string());
    plane().apply(&[], &(hanging + &provider("b-well", "corner")));
    let ready = |name: &str| condition(&plane().get(&["provider.purlin.dev", name]), "Ready");
    wait_until("the other one is ready", LIMIT, || ready("b-well").is_some_and(|ready| ready["status"] == "True"));
    assert_eq!(ready("a-hangs"), None, "its check has not timed out yet");
    assert_eq!(condition(&plane().get(&["provider.purlin.dev", "b-well"]), "Unconfined"), None);
    plane().kubectl_ok(&["delete", "provider.purlin.dev", "a-hangs", "b-well"]);
}

/// The tests that use the Provider `tls`, which is one for the whole cluster, take turns: one of them breaks it.
pub(crate) fn provider_tls() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn an_error_of_a_provider_is_reported_until_it_is_corrected() {
    let _turn = provider_tls();
    let _guard = shared();
    let ns = plane().namespace("absent");
    let missing = "{ apiVersion: purlin.dev/v1alpha1, kind: Provider, metadata: { name: tls }, spec: { package: { path: /nowhere } } }";
    plane().apply(&[], missing);
    plane().apply(&["-n", &ns], &typed("key", "tls_private_key", "{ algorithm: ED25519 }", ""));
    plane().apply(&["-n", &ns], &typed("lost", "absent_thing", "{}", ""));
    let failed = wait_reason(&ns, "key", "Ready", "ProviderNotReady");
    assert!(failed["message"].as_str().unwrap().contains("/nowhere"), "{failed}");
    wait_reason(&ns, "lost", "Ready", "UnknownType");
    wait_until("the Provider reports the same", LIMIT, || {
        condition(&plane().get(&["provider.purlin.dev", "tls"]), "Ready")
            .is_some_and(|ready| ready["reason"] == "ProviderNotReady")
    });
    plane().apply(&[], &provider("tls", "tls"));
    wait_ready(&ns, &["key"]);
    let shown = plane().kubectl_ok(&["-n", &ns, "get", "pres", "key", "-o", "yaml"]);
    assert!(shown.contains("PUBLIC KEY") && !shown.contains("PRIVATE KEY"), "{shown}");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
}

#[test]
fn reported_drift_of_a_provider_type_is_not_corrected() {
    let _guard = shared();
    let ns = plane().namespace("report");
    let directory = plane().scratch().join(format!("world-{ns}"));
    fs::create_dir(&directory).unwrap();
    plane().apply(&[], &provider("legacy", "legacy"));
    let configuration = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: legacy }}\nspec:\n  \
         provider: {{ name: legacy }}\n  config: {{ folder: '{}' }}\n",
        directory.display()
    );
    plane().apply(&["-n", &ns], &configuration);
    let config = "{ metadata: [{ name: a }], text: given }";
    plane().apply(&["-n", &ns], &typed("a", "legacy_named", config, "drift: { action: Report, interval: 1s }"));
    wait_ready(&ns, &["a"]);
    fs::write(directory.join("a"), "of another").unwrap();
    let drifted = wait_reason(&ns, "a", "Drifted", "Drifted");
    assert!(drifted["message"].as_str().unwrap().contains("`text`"), "{drifted}");
    assert_eq!(fs::read_to_string(directory.join("a")).unwrap(), "of another");
    fs::remove_file(directory.join("a")).unwrap();
    wait_reason(&ns, "a", "Drifted", "ObjectMissing");
    assert!(!directory.join("a").exists());
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    plane().kubectl_ok(&["delete", "provider.purlin.dev", "legacy"]);
}
