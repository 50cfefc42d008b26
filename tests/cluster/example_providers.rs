//! `examples/providers` on the control plane, as its README tells it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::controlplane::wait_until;
use crate::installation::*;
use crate::providers::{attribute, provider};

const ALL: &[&str] = &["rotation", "key", "certificate", "name", "settings"];

fn example(file: &str) -> String {
    let path = format!("{}/examples/providers/{file}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).expect("an example")
}

/// The manifests, with the folder that a user would choose.
fn site(folder: &Path) -> String {
    let text = example("site.yaml");
    assert!(text.contains("folder: site }"), "{text}");
    text.replace("folder: site }", &format!("folder: '{}' }}", folder.display()))
}

/// The one certificate that was written, with its file.
fn written(folder: &Path) -> Option<(PathBuf, String)> {
    let entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    let [file] = &entries[..] else { return None };
    Some((file.clone(), fs::read_to_string(file).ok()?))
}

#[test]
fn the_example_lives_through_everything_on_the_control_plane() {
    let _world = shared();
    let ns = plane().namespace("example");
    let folder = plane().scratch().join(&ns);
    let providers: Vec<String> = ["random", "tls", "local", "time"].iter().map(|name| provider(name, name)).collect();
    plane().apply(&[], &providers.concat());
    plane().apply(&["-n", &ns], &example("cluster/rbac.yaml"));
    plane().apply(&["-n", &ns], &site(&folder));
    wait_ready(&ns, ALL);
    let (file, first) = written(&folder).expect("one file");
    assert!(first.starts_with("-----BEGIN CERTIFICATE-----"), "{first}");

    // The rotation: create-first from the key to the certificate, and the file follows.
    let key = attribute(&ns, "key", "id");
    let patch = r#"{"data":{"generation":"2"}}"#;
    plane().kubectl_ok(&["-n", &ns, "patch", "configmap", "site", "--type=merge", "-p", patch]);
    wait_until("another certificate is written", LIMIT, || written(&folder).is_some_and(|(_, text)| text != first));
    wait_ready(&ns, ALL);
    assert_ne!(attribute(&ns, "key", "id"), key);
    assert_eq!(written(&folder).unwrap().0, file);

    // The other order: the name goes after the file that has it.
    let other = site(&folder).replace("prefix: web", "prefix: www").replace("\"1\"", "\"2\"");
    plane().apply(&["-n", &ns], &other);
    wait_until("the file has another name", LIMIT, || {
        written(&folder).is_some_and(|(file, _)| file.file_name().unwrap().to_string_lossy().starts_with("www-"))
    });
    wait_ready(&ns, ALL);

    // Drift: somebody deletes the file.
    fs::remove_file(written(&folder).unwrap().0).unwrap();
    plane().kubectl_ok(&["-n", &ns, "annotate", "pres", "settings", "purlin.dev/reconcile-requested-at=now"]);
    wait_until("the file is there again", LIMIT, || written(&folder).is_some());

    plane().kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--wait=false"]);
    wait_empty(&ns);
    assert!(records(&ns).is_empty());
    assert_eq!(written(&folder), None);
}
