//! `purlin state push`: the controller takes over the objects of a state file.

use std::fs;

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::command_line::{ok, purlin};
use crate::controlplane::wait_until;
use crate::installation::*;

/// A folder of manifests with its state file.
struct Folder(TempDir);

impl Folder {
    fn applied(manifests: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("app.yaml"), manifests).unwrap();
        ok(&["apply", "--yes", "-f", &folder.path("app.yaml"), "--state", &folder.path("state.db")]);
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn push(&self, namespace: &str) -> Result<String, String> {
        let output = purlin(&["state", "push", "--yes", "--state", &self.path("state.db"), "-n", namespace]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(text) } else { Err(text) }
    }

    fn ids(&self) -> Vec<(String, String)> {
        ids(&["--state", &self.path("state.db")])
    }
}

fn ids(target: &[&str]) -> Vec<(String, String)> {
    let state: Json = serde_json::from_str(&ok(&[&["state", "list", "-o", "json"], target].concat())).unwrap();
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let of = |row: &Json| (text(&row["address"]), text(&row["values"]["id"]));
    state["objects"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn the_objects_of_a_state_file_continue_in_the_cluster() {
    let _guard = shared();
    let ns = plane().namespace("pushed");
    let family = data("web", "\"${base.id}-${count.index}\"", "count: 2");
    let manifests = data("base", "one", "") + &family;
    let folder = Folder::applied(&manifests);
    let before = folder.ids();
    assert_eq!(before.len(), 3);
    let copy = folder.path("copy.db");
    fs::copy(folder.path("state.db"), &copy).unwrap();

    let pushed = folder.push(&ns).unwrap();
    assert!(pushed.contains("Moved 3 records."), "{pushed}");
    assert_eq!(folder.ids(), []);
    // As after a crash before the records were removed from the file.
    fs::copy(&copy, folder.path("state.db")).unwrap();
    assert!(folder.push(&ns).unwrap().contains("Moved 3 records."));

    plane().apply(&["-n", &ns], &manifests);
    wait_ready(&ns, &["base", "web"]);
    assert_eq!(ids(&["-n", &ns]), before, "the same objects");
    plane().kubectl_ok(&["-n", &ns, "patch", "pres", "web", "--type=merge", "-p", r#"{"spec":{"count":3}}"#]);
    wait_until("the family grows", LIMIT, || ids(&["-n", &ns]).len() == 4);
    assert_eq!(ids(&["-n", &ns])[..3], before[..], "only the new instance is created");

    // The controller has written its own records since.
    fs::copy(&copy, folder.path("state.db")).unwrap();
    let refused = folder.push(&ns).unwrap_err();
    assert!(refused.contains("already has a record in the namespace"), "{refused}");
    assert_eq!(folder.ids(), before, "nothing was moved");
}

#[test]
fn records_are_not_moved_beside_an_active_resource_or_into_a_missing_namespace() {
    let _guard = shared();
    let ns = plane().namespace("occupied");
    let folder = Folder::applied(&data("base", "one", ""));
    let before = folder.ids();
    let refused = folder.push("no-such-namespace").unwrap_err();
    assert!(refused.contains("the namespace `no-such-namespace` does not exist"), "{refused}");
    // It waits for an object that does not exist, so that it has no record.
    plane().apply(&["-n", &ns], &data("base", "\"${absent.id}\"", ""));
    let refused = folder.push(&ns).unwrap_err();
    assert!(refused.contains("the Resource `base` exists already"), "{refused}");
    assert_eq!(folder.ids(), before);

    plane().apply(&["-n", &ns], &data("base", "one", "suspend: true"));
    wait_reason(&ns, "base", "Synced", "Suspended");
    folder.push(&ns).unwrap();
    ok(&["resume", "base", "-n", &ns]);
    plane().apply(&["-n", &ns], &data("base", "one", ""));
    wait_ready(&ns, &["base"]);
    assert_eq!(ids(&["-n", &ns]), before);
}
