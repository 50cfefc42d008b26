//! The command line on a cluster: suspend, resume and reconcile, the tree, `state rm`, and import into local records.

use std::process::{Command, Output};

use crate::controlplane::wait_until;
use crate::installation::*;

/// Runs `purlin` as the user of the control plane's kubeconfig.
pub(crate) fn purlin(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
    command.args(arguments).env("KUBECONFIG", plane().kubeconfig()).output().unwrap()
}

pub(crate) fn ok(arguments: &[&str]) -> String {
    let output = purlin(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_resource_is_suspended_resumed_and_reconciled() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("switch");
    plane.apply(&["-n", &ns], &(data("base", "one", "") + &data("top", "\"${base.id}\"", "")));
    wait_ready(&ns, &["base", "top"]);
    assert_eq!(ok(&["tree", "-n", &ns]), "top  ready\n└─ base  ready\n");

    ok(&["suspend", "base", "-n", &ns]);
    wait_reason(&ns, "base", "Synced", "Suspended");
    assert_eq!(ok(&["tree", "-n", &ns]), "top  ready\n└─ base  Suspended\n");
    let listed = ok(&["get", "base", "-n", &ns]);
    assert!(listed.contains("Suspended") && !listed.contains("True"), "{listed}");
    plane.apply(&["-n", &ns], &data("base", "two", ""));
    ok(&["resume", "base", "-n", &ns]);
    wait_until("the change is carried out", LIMIT, || {
        resource(&ns, "base").is_some_and(|base| is_ready(&base) && base["status"]["attributes"]["output"] == "two")
    });
    let output = purlin(&["reconcile", "base", "-n", &ns]);
    assert!(output.status.success() && error_text(&output).contains("base: ready"), "{output:?}");
    let base = resource(&ns, "base").unwrap();
    let requested = &base["metadata"]["annotations"]["purlin.dev/reconcile-requested-at"];
    assert!(requested.is_string() && base["status"]["lastHandledReconcileAt"] == *requested, "{base}");
    let misspelt =
        [&["suspend", "none"][..], &["resume", "none"], &["reconcile", "none"], &["state", "rm", "none", "--yes"]];
    for command in misspelt.into_iter().chain([&["state", "release", "none", "--yes"][..], &["approve", "none"]]) {
        let refused = purlin(&[command, &["-n", &ns]].concat());
        let text = error_text(&refused);
        assert!(refused.status.code() == Some(1) && text.contains("`none`") && text.contains("hint: "), "{refused:?}");
    }
}

fn error_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn many_objects_are_listed_suspended_resumed_and_reconciled() {
    let _guard = shared();
    let plane = plane();
    let (ns, other) = (plane.namespace("many"), plane.namespace("many-other"));
    let labeled = |name: &str, more: &str| {
        data(name, "one", more).replace("metadata: {", &format!("metadata: {{ labels: {{ team: {ns} }},"))
    };
    plane.apply(&["-n", &ns], &[labeled("a", ""), labeled("b", ""), data("c", "\"${a.id}\"", "")].concat());
    plane.apply(&["-n", &other], &labeled("a", ""));
    wait_ready(&ns, &["a", "b", "c"]);
    wait_ready(&other, &["a"]);
    let team = format!("team={ns}");
    let rows = |arguments: &[&str], columns: usize| -> Vec<String> {
        let table = ok(arguments);
        let row = |line: &str| line.split_whitespace().take(columns).collect::<Vec<_>>().join(" ");
        table.lines().skip(1).map(row).collect()
    };
    assert_eq!(rows(&["get", "-A", "-l", &team], 2), [format!("{ns} a"), format!("{ns} b"), format!("{other} a")]);
    assert_eq!(rows(&["get", "-n", &ns, "-l", &team], 1), ["a", "b"]);
    assert_eq!(rows(&["get", "a", "c", "-n", &ns], 1), ["a", "c"]);
    let missing = purlin(&["get", "-n", "no-such-namespace"]);
    assert!(error_text(&missing).contains("there is no namespace `no-such-namespace`"), "{missing:?}");

    let all = |command: &str| purlin(&[command, "-A", "-l", &team]);
    assert!(error_text(&all("suspend")).contains("3 of 3 objects are suspended."));
    for namespace in [&ns, &other] {
        wait_reason(namespace, "a", "Synced", "Suspended");
    }
    let refused = purlin(&["reconcile", "a", "-n", &ns]);
    let hint = format!("hint: run `purlin resume a -n {ns}` first");
    assert!(!refused.status.success() && error_text(&refused).contains(&hint), "{refused:?}");
    assert!(error_text(&all("resume")).contains("3 of 3 objects are resumed."));
    let done = purlin(&["reconcile", "--all", "-n", &ns]);
    assert!(done.status.success() && error_text(&done).contains("3 of 3 objects are ready."), "{done:?}");

    // One that cannot become ready is named, with its reason.
    plane.apply(&["-n", &ns], &data("b", "\"${nothing.id}\"", ""));
    wait_reason(&ns, "b", "Ready", "DependencyNotFound");
    let late = purlin(&["reconcile", "--all", "-n", &ns, "--timeout", "2s"]);
    assert_eq!(late.status.code(), Some(1));
    assert!(
        error_text(&late).contains("b: not ready after 2 s: ") && error_text(&late).contains("`nothing`"),
        "{late:?}"
    );

    let explained = ok(&["explain", "a", "-n", &ns]);
    assert!(explained.contains("Used by:     `c`"), "{explained}");
}

#[test]
fn a_token_file_may_end_with_a_newline() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("token");
    plane.kubectl_ok(&["-n", &ns, "create", "serviceaccount", "reader"]);
    plane.bind(&ns, "reader", "--clusterrole=view", "reader");
    let token = plane.kubectl_ok(&["-n", &ns, "create", "token", "reader", "--duration=1h"]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, format!("{}\n", token.trim())).unwrap();
    let kubeconfig = plane.service_account_kubeconfig(&ns, "reader");
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = serde_json::json!({ "tokenFile": path });
    let file = directory.path().join("config");
    std::fs::write(&file, config.to_string()).unwrap();
    ok(&["get", "-n", &ns, "--kubeconfig", &file.display().to_string()]);
}

#[test]
fn a_forgotten_object_stays_although_users_cannot_delete_its_record() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("forget");
    plane.bind(&ns, "edit", "--clusterrole=edit", "default");
    let map = "{ apiVersion: v1, kind: ConfigMap, metadata: { generateName: map- } }";
    let resource_of = |name: &str, more: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  type: \
             kubernetes_object\n  {more}\n  config: {{ manifest: {map} }}\n"
        )
    };
    plane.apply(&["-n", &ns], &(resource_of("one", "") + &resource_of("many", "count: 1")));
    wait_ready(&ns, &["one", "many"]);
    let created = || plane.kubectl_ok(&["-n", &ns, "get", "configmaps", "-o", "name"]).matches("/map-").count();
    assert_eq!(created(), 2);
    for secret in records(&ns) {
        let name = secret["metadata"]["name"].as_str().unwrap();
        let refused = plane.kubectl(&["-n", NAMESPACE, "delete", "secret", name]);
        assert!(String::from_utf8_lossy(&refused.stderr).contains("only its controller deletes it"), "{refused:?}");
    }

    for (name, address) in [("one", "one"), ("many", "many[0]")] {
        ok(&["suspend", name, "-n", &ns]);
        wait_reason(&ns, name, "Synced", "Suspended");
        ok(&["state", "rm", address, "--yes", "-n", &ns]);
    }
    assert!(records(&ns).is_empty(), "{:?}", records(&ns));
    plane.kubectl_ok(&["-n", &ns, "delete", "pres", "--all", "--timeout=60s"]);
    assert_eq!(created(), 2, "forgotten objects stay");
}

#[test]
fn an_existing_object_is_imported_with_the_generated_manifest() {
    let _guard = shared();
    let plane = plane();
    let ns = plane.namespace("import");
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: site, labels: { app: web } }\ndata: { a: '1' }\n";
    plane.apply(&["-n", &ns], object);
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (files, state) = (directory.path().display().to_string(), path("state.db"));
    let local = ["-f", files.as_str(), "--state", state.as_str()];
    std::fs::write(path("other.yaml"), data("other", "one", "")).unwrap();
    let id = format!("v1/ConfigMap/{ns}/site");
    ok(&[&["import", "site", &id, "--out", &path("site.yaml")], &local[..]].concat());
    let imported = ok(&[&["import", "site", &id], &local[..]].concat());
    assert!(!imported.contains("destroyed"), "{imported}");
    ok(&[&["apply", "--yes"], &local[..]].concat());
    assert_eq!(purlin(&[&["plan", "--detailed-exitcode"], &local[..]].concat()).status.code(), Some(0));
    let site = plane.get(&["-n", &ns, "configmap", "site"]);
    assert_eq!((&site["data"]["a"], &site["metadata"]["labels"]["app"]), (&"1".into(), &"web".into()));

    // A saved plan stays valid when another client changes the object in the meantime.
    let changed =
        std::fs::read_to_string(path("site.yaml")).unwrap().replace("a: '1'", "a: '2'").replace("a: \"1\"", "a: '2'");
    std::fs::write(path("site.yaml"), changed).unwrap();
    ok(&[&["plan", "--out", &path("plan")], &local[..]].concat());
    plane.kubectl_ok(&["-n", &ns, "label", "configmap", "site", "checked=yes"]);
    ok(&["apply", &path("plan")]);
    assert_eq!(plane.get(&["-n", &ns, "configmap", "site"])["data"]["a"], "2");
    ok(&[&["destroy", "--yes"], &local[..]].concat());
    assert!(!plane.kubectl(&["-n", &ns, "get", "configmap", "site"]).status.success(), "it is destroyed");
}
