//! `examples/providers` on the control plane, as its README describes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::controlplane::wait_until;
use crate::installation::*;
use crate::providers::{attribute, provider, provider_tls};

const ALL: &[&str] = &["rotation", "key", "certificate", "name", "settings"];

pub(crate) fn example(file: &str) -> String {
    let path = format!("{}/examples/{file}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).expect("an example")
}

/// The manifests, with the directory of the test.
fn site(directory: &Path) -> String {
    let text = example("providers/site.yaml");
    assert!(text.contains("directory: site }"), "{text}");
    text.replace("directory: site }", &format!("directory: '{}' }}", directory.display()))
}

/// The certificate file, if there is exactly one, and its content.
fn written(directory: &Path) -> Option<(PathBuf, String)> {
    let entries: Vec<_> = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    let [file] = &entries[..] else { return None };
    Some((file.clone(), fs::read_to_string(file).ok()?))
}

#[test]
fn the_example_works_on_a_control_plane() {
    let _turn = provider_tls();
    let _guard = shared();
    example_works(&plane().namespace("example"));
}

#[test]
fn the_example_works_with_its_providers_in_pods() {
    let _turn = provider_tls();
    let _guard = shared();
    let ns = plane().namespace("example-pods");
    plane().apply(&["-n", &ns], &example("providers-in-pods/rbac.yaml"));
    // The Pods of this control plane can write the directory of the test, so `local` can have one too.
    let local = "---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: { name: local }\nspec:\n  \
                 runner: { kind: Pod }\n";
    plane().apply(&["-n", &ns], &(example("providers-in-pods/runners.yaml") + local));
    example_works(&ns);
    let pods = plane().get(&["-n", &ns, "pods", "-l", "app.kubernetes.io/component=runner"]);
    let of = |pod: &Value| pod["metadata"]["labels"]["purlin.dev/provider-config"].as_str().unwrap().to_owned();
    let configurations: BTreeSet<String> = pods["items"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(configurations, ["local", "random", "time", "tls"].map(str::to_owned).into());
}

fn example_works(ns: &str) {
    let directory = plane().scratch().join(ns);
    let providers: Vec<String> = ["random", "tls", "local", "time"].iter().map(|name| provider(name, name)).collect();
    plane().apply(&[], &providers.concat());
    plane().apply(&["-n", ns], &example("providers-in-cluster/rbac.yaml"));
    plane().apply(&["-n", ns], &site(&directory));
    wait_ready(ns, ALL);
    let (file, first) = written(&directory).expect("one file");
    assert!(first.starts_with("-----BEGIN CERTIFICATE-----"), "{first}");

    // The rotation: create before destroy for the key and the certificate; the file is updated.
    let key = attribute(ns, "key", "id");
    let patch = r#"{"data":{"generation":"2"}}"#;
    plane().kubectl_ok(&["-n", ns, "patch", "configmap", "site", "--type=merge", "-p", patch]);
    wait_until("another certificate is written", LIMIT, || written(&directory).is_some_and(|(_, text)| text != first));
    wait_ready(ns, ALL);
    assert_ne!(attribute(ns, "key", "id"), key);
    assert_eq!(written(&directory).unwrap().0, file);

    // Destroy before create: the name is destroyed after the file that uses it.
    let other = site(&directory).replace("prefix: web", "prefix: www").replace("\"1\"", "\"2\"");
    plane().apply(&["-n", ns], &other);
    wait_until("the file has another name", LIMIT, || {
        written(&directory).is_some_and(|(file, _)| file.file_name().unwrap().to_string_lossy().starts_with("www-"))
    });
    wait_ready(ns, ALL);

    // Drift: another program deletes the file.
    fs::remove_file(written(&directory).unwrap().0).unwrap();
    plane().kubectl_ok(&["-n", ns, "annotate", "pres", "settings", "purlin.dev/reconcile-requested-at=now"]);
    wait_until("the file exists again", LIMIT, || written(&directory).is_some());

    plane().kubectl_ok(&["-n", ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(ns);
    assert!(records(ns).is_empty());
    assert_eq!(written(&directory), None);
}
