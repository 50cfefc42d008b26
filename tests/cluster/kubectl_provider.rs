//! A provider of the older SDK that connects to the cluster with the credentials of a tenant, used by the controller
//! and with local manifests.

use std::fs;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value as Json, json};

use crate::command_line::{ok, purlin};
use crate::controlplane::wait_until;
use crate::installation::*;
use crate::providers::provider;

const PROVIDER_CONFIG: &str = "---
apiVersion: purlin.dev/v1alpha1
kind: ProviderConfig
metadata: { name: kubectl }
spec:
  config:
    host: ${inputs.host}
    token: ${inputs.token}
    cluster_ca_certificate: ${inputs.ca}
    load_config_file: false
  inputs:
    - { name: host, secretKeyRef: { name: cluster, key: host } }
    - { name: token, secretKeyRef: { name: cluster, key: token } }
    - { name: ca, secretKeyRef: { name: cluster, key: ca } }
";

/// A Secret with which the provider acts as the ServiceAccount `default`, which may edit.
fn credentials(ns: &str) -> String {
    let view = plane().kubectl_ok(&["config", "view", "--raw", "-o", "json"]);
    let view: Json = serde_json::from_str(&view).unwrap();
    let cluster = &view["clusters"][0]["cluster"];
    let ca = cluster["certificate-authority-data"].as_str().expect("the certificate of the server");
    let ca = String::from_utf8(BASE64_STANDARD.decode(ca).unwrap()).unwrap();
    let token = plane().kubectl_ok(&["-n", ns, "create", "token", "default"]);
    let data = json!({"host": cluster["server"], "ca": ca, "token": token.trim()});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cluster"}, "stringData": data});
    format!("---\n{secret}\n")
}

/// A Resource for a ConfigMap, whose manifest is a YAML string as this provider requires.
fn config_map(ns: &str, name: &str, color: &str) -> String {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns},
                      "data": {"color": color}});
    let spec = json!({"type": "kubectl_manifest", "config": {"yaml_body": body.to_string()}});
    let resource =
        json!({"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "map"}, "spec": spec});
    format!("---\n{resource}\n")
}

fn color(ns: &str, name: &str) -> Option<String> {
    let found = plane().kubectl(&["-n", ns, "get", "configmap", name, "-o", "json"]);
    let found: Json = found.status.success().then(|| serde_json::from_slice(&found.stdout).unwrap())?;
    found["data"]["color"].as_str().map(str::to_owned)
}

#[test]
fn the_controller_uses_a_provider_that_connects_to_the_cluster() {
    let _guard = shared();
    let ns = with_rights("kubectl");
    plane().apply(&[], &provider("kubectl", "kubectl"));
    let own = ["-n", ns.as_str()];
    plane().apply(&own, &(credentials(&ns) + PROVIDER_CONFIG + &config_map(&ns, "first", "green")));
    wait_ready(&ns, &["map"]);
    assert_eq!(color(&ns, "first").as_deref(), Some("green"));
    let first = plane().get(&["-n", &ns, "configmap", "first"])["metadata"]["uid"].clone();

    plane().apply(&own, &config_map(&ns, "first", "blue"));
    wait_until("it is changed in place", LIMIT, || color(&ns, "first").as_deref() == Some("blue"));
    assert_eq!(plane().get(&["-n", &ns, "configmap", "first"])["metadata"]["uid"], first);
    wait_ready(&ns, &["map"]);

    plane().apply(&own, &config_map(&ns, "other", "blue"));
    wait_until("it is replaced by one with another name", LIMIT, || {
        color(&ns, "first").is_none() && color(&ns, "other").is_some()
    });
    wait_ready(&ns, &["map"]);

    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "map", "--wait=false"]);
    wait_empty(&ns);
    assert_eq!(color(&ns, "other"), None);
    assert!(records(&ns).is_empty());
}

#[test]
fn the_same_manifests_work_locally() {
    let _guard = shared();
    let ns = with_rights("files");
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (files, state) = (directory.path().display().to_string(), at("state.db"));
    let local = ["-f", files.as_str(), "--state", state.as_str()];
    let write = |name: &str, color: &str| {
        let all = provider("kubectl", "kubectl") + &credentials(&ns) + PROVIDER_CONFIG + &config_map(&ns, name, color);
        fs::write(at("all.yaml"), all).unwrap();
    };
    let apply = || ok(&[&["apply", "--yes"], &local[..]].concat());
    write("first", "green");
    apply();
    assert_eq!(color(&ns, "first").as_deref(), Some("green"));
    let unchanged = purlin(&[&["plan", "--detailed-exitcode"], &local[..]].concat());
    assert_eq!(unchanged.status.code(), Some(0), "{}", String::from_utf8_lossy(&unchanged.stdout));
    // Another client changes the ConfigMap, and the change is reverted. Then it gets another name.
    let patch = r#"{"data":{"color":"red"}}"#;
    plane().kubectl_ok(&["-n", &ns, "patch", "configmap", "first", "--type=merge", "-p", patch]);
    apply();
    assert_eq!(color(&ns, "first").as_deref(), Some("green"));
    write("other", "green");
    apply();
    assert_eq!((color(&ns, "first"), color(&ns, "other").as_deref()), (None, Some("green")));
    ok(&[&["destroy", "--yes"], &local[..]].concat());
    assert_eq!(color(&ns, "other"), None);
}
