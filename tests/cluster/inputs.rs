//! Values from ConfigMaps and Secrets, read as the ServiceAccount of the namespace.

use serde_json::Value as Json;

use crate::controlplane::wait_until;
use crate::installation::*;

const DOMAIN: &str = "inputs: [{ name: domain, configMapKeyRef: { name: site, key: domain } }]";
const PASSWORD: &str = "inputs: [{ name: password, secretKeyRef: { name: login, key: password } }]";

/// Allows the ServiceAccount `default` these verbs on ConfigMaps and Secrets of these names.
fn may(namespace: &str, verbs: &str, names: &[&str]) {
    let named: Vec<String> = names.iter().map(|name| format!("--resource-name={name}")).collect();
    let verbs = format!("--verb={verbs}");
    let mut create = vec!["-n", namespace, "create", "role", "read", verbs.as_str(), "--resource=configmaps,secrets"];
    create.extend(named.iter().map(String::as_str));
    plane().kubectl_ok(&create);
    plane().bind(namespace, "read", "--role=read", "default");
}

fn config_map(namespace: &str, domain: &str) {
    let text = format!(
        "{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: site }}, data: {{ domain: {domain}, more: {domain}-more }} }}"
    );
    plane().apply(&["-n", namespace], &text);
}

fn secret(namespace: &str, password: &str) {
    let text = format!(
        "{{ apiVersion: v1, kind: Secret, metadata: {{ name: login }}, stringData: {{ password: {password} }} }}"
    );
    plane().apply(&["-n", namespace], &text);
}

fn output(namespace: &str, name: &str) -> Json {
    resource(namespace, name).map(|found| found["status"]["attributes"]["output"].clone()).unwrap_or_default()
}

#[test]
fn a_changed_input_changes_only_the_objects_that_use_it() {
    let _guard = shared();
    let ns = plane().namespace("inputs");
    may(&ns, "get,list,watch", &["site"]);
    config_map(&ns, "one");
    let other = DOMAIN.replace("key: domain", "key: more");
    let resources = [
        data("reader", "\"${inputs.domain}\"", DOMAIN),
        data("unused", "fixed", DOMAIN),
        data("other", "\"${inputs.domain}\"", &other),
        data("after", "\"${reader.output}!\"", ""),
    ];
    plane().apply(&["-n", &ns], &resources.concat());
    wait_ready(&ns, &["reader", "unused", "other", "after"]);
    assert_eq!(output(&ns, "after"), "one!");
    let versions =
        || ["unused", "other"].map(|name| resource(&ns, name).unwrap()["metadata"]["resourceVersion"].clone());
    let before = versions();
    plane().kubectl_ok(&[
        "-n",
        &ns,
        "patch",
        "configmap",
        "site",
        "--type=merge",
        "-p",
        r#"{"data":{"domain":"two"}}"#,
    ]);
    wait_until("the change has arrived", LIMIT, || output(&ns, "after") == "two!");
    wait_ready(&ns, &["reader", "after"]);
    // A change of the ConfigMap that does not affect the value, and then another one to see that the first was
    // processed.
    plane().kubectl_ok(&["-n", &ns, "label", "configmap", "site", "colour=blue"]);
    let reader = resource(&ns, "reader").unwrap()["metadata"]["resourceVersion"].clone();
    plane().kubectl_ok(&["-n", &ns, "patch", "configmap", "site", "--type=merge", "-p", r#"{"data":{"more":"new"}}"#]);
    wait_until("the change of the other key has arrived", LIMIT, || output(&ns, "other") == "new");
    assert_eq!(resource(&ns, "reader").unwrap()["metadata"]["resourceVersion"], reader);
    assert_eq!(versions()[0], before[0], "an object that does not use the input is not written");
}

#[test]
fn a_tenant_cannot_read_through_purlin_what_it_may_not_read() {
    let _guard = shared();
    let ns = plane().namespace("noread");
    secret(&ns, "canary-input-1");
    plane()
        .apply(&["-n", &ns], &[data("reader", "\"${inputs.password}\"", PASSWORD), data("free", "one", "")].concat());
    let refused = wait_reason(&ns, "reader", "Ready", "Forbidden");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains(&format!("system:serviceaccount:{ns}:default")), "{message}");
    assert!(message.contains("allows get, list and watch of `secrets`"), "{message}");
    wait_ready(&ns, &["free"]);
    may(&ns, "get,list,watch", &["login"]);
    wait_ready(&ns, &["reader"]);
    assert!(!resource(&ns, "reader").unwrap()["status"].to_string().contains("canary-input-1"));
    // Purlin never reads with its own permissions.
    let log = std::fs::read_to_string(plane().audit_log()).expect("the audit log");
    let entries = log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
    let reads = entries.filter(|entry| {
        let target = &entry["objectRef"];
        target["namespace"] == ns.as_str()
            && target["resource"] == "secrets"
            && entry["user"]["username"] == format!("system:serviceaccount:{NAMESPACE}:purlin")
    });
    let (own, impersonated): (Vec<_>, Vec<_>) = reads.partition(|entry| entry.get("impersonatedUser").is_none());
    assert!(own.is_empty(), "{own:?}");
    assert!(!impersonated.is_empty());
}

#[test]
fn an_object_waits_for_a_missing_input() {
    let _guard = shared();
    let ns = plane().namespace("missing");
    may(&ns, "get,list,watch", &["login"]);
    let optional = PASSWORD.replace("key: password", "key: password, optional: true");
    let resources = [
        data("reader", "\"${inputs.password.size()}\"", PASSWORD),
        data("optional", "\"${inputs.password == null ? 'none' : 'some'}\"", &optional),
    ];
    plane().apply(&["-n", &ns], &resources.concat());
    let waits = wait_reason(&ns, "reader", "Ready", "InputNotFound");
    assert!(waits["message"].as_str().unwrap().contains("there is no Secret `login`"), "{waits}");
    wait_ready(&ns, &["optional"]);
    plane().kubectl_ok(&["-n", &ns, "create", "secret", "generic", "login", "--from-literal=user=ann"]);
    wait_until("the message names the key", LIMIT, || {
        condition(&resource(&ns, "reader").unwrap(), "Ready")
            .is_some_and(|ready| ready["message"].as_str().unwrap().contains("Secret `login` has no key `password`"))
    });
    secret(&ns, "canary-input-2");
    wait_ready(&ns, &["reader", "optional"]);
}

#[test]
fn an_input_that_may_be_read_but_not_watched_is_read() {
    let _guard = shared();
    let ns = plane().namespace("getonly");
    may(&ns, "get", &["site"]);
    config_map(&ns, "one");
    plane().apply(&["-n", &ns], &data("reader", "\"${inputs.domain}\"", DOMAIN));
    wait_ready(&ns, &["reader"]);
}

#[test]
fn a_rotated_secret_updates_the_objects_that_use_it() {
    let _guard = shared();
    let ns = plane().namespace("rotate");
    plane().bind(&ns, "edit", "--clusterrole=edit", "default");
    secret(&ns, "canary-input-3");
    let manifest = "{ apiVersion: v1, kind: Secret, metadata: { name: url }, stringData: { url: \
                    \"https://ann:${inputs.password}@host/\" } }";
    let resource_text = data("url", "x", PASSWORD)
        .replace("terraform_data", "kubernetes_object")
        .replace("input: x", &format!("manifest: {manifest}"));
    plane().apply(&["-n", &ns], &resource_text);
    wait_ready(&ns, &["url"]);
    secret(&ns, "canary-input-4");
    wait_until("the new password is in use", LIMIT, || {
        // base64 of `https://ann:canary-input-4@host/`.
        plane().get(&["-n", &ns, "secret", "url"])["data"]["url"] == "aHR0cHM6Ly9hbm46Y2FuYXJ5LWlucHV0LTRAaG9zdC8="
    });
    wait_ready(&ns, &["url"]);
    // The Secret may be deleted before the object.
    plane().kubectl_ok(&["-n", &ns, "delete", "secret", "login"]);
    wait_reason(&ns, "url", "Ready", "InputNotFound");
    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "url", "--wait=false"]);
    wait_empty(&ns);
}
