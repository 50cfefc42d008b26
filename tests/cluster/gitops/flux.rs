//! Flux: apply, prune and wait with the packages of kustomize-controller.

use std::path::{Path, PathBuf};

use super::{color, example, gitops, text};
use crate::installation::*;
use crate::kubernetes_objects::writes_of;
use crate::pages::root;

/// A Kustomization and the directory that it applies.
struct Kustomization {
    namespace: String,
    file: PathBuf,
    directory: tempfile::TempDir,
}

impl Kustomization {
    fn new(namespace: String, file: &str) -> Self {
        let file = root().join("examples/flux").join(file);
        Self { namespace, file, directory: tempfile::tempdir().expect("a directory") }
    }

    fn commit(&self, file: &str, content: &str) {
        std::fs::write(self.path().join(file), content).expect("a file");
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Reconciles the directory once. Returns whether it is ready, with the changes and the error.
    fn reconcile(&self) -> (bool, String) {
        self.run(&[self.path().to_str().expect("UTF-8")])
    }

    /// What Flux does when the Kustomization is deleted.
    fn delete(&self) -> (bool, String) {
        self.run(&[])
    }

    fn run(&self, paths: &[&str]) -> (bool, String) {
        let inventory = self.path().join("inventory.json");
        let files = ["-k", self.file.to_str().expect("UTF-8"), "-i", inventory.to_str().expect("UTF-8")];
        let output = gitops(&[&["flux", "-n", &self.namespace][..], &files, paths].concat());
        (output.status.success(), text(&output))
    }
}

fn ok((success, text): (bool, String)) -> String {
    assert!(success, "{text}");
    text
}

#[test]
fn a_kustomization_is_ready_when_its_objects_are_and_prunes_them_in_order() {
    let _guard = shared();
    let flux = Kustomization::new(plane().namespace("flux"), "shop.yaml");
    let ns = &flux.namespace;
    flux.commit("rbac.yaml", &example("kubernetes/rbac.yaml"));
    let shop = example("kubernetes/shop.yaml");
    flux.commit("shop.yaml", &shop);
    let created = ok(flux.reconcile());
    assert_eq!(created.lines().filter(|line| line.ends_with(" created")).count(), 5, "{created}");
    for name in ["site", "web", "address"] {
        assert!(is_ready(&resource(ns, name).unwrap()), "{name} is ready when the Kustomization is");
    }

    // What Purlin writes into the Resources is no drift.
    let again = ok(flux.reconcile());
    assert!(again.lines().all(|line| line.ends_with(" unchanged")), "{again}");

    // Only `site` changes, and the Deployment follows. The Kustomization is not ready before that.
    flux.commit("shop.yaml", &shop.replace("color: green", "color: blue"));
    let changed = ok(flux.reconcile());
    assert_eq!(color(ns), "blue");
    assert_eq!(changed.lines().filter(|line| !line.ends_with(" unchanged")).count(), 1, "{changed}");

    // A Resource that needs its user makes the Kustomization fail immediately, not after its timeout.
    flux.commit("wrong.yaml", &data("wrong", "\"${wrong.output}\"", ""));
    let (success, failed) = flux.reconcile();
    assert!(!success && failed.contains("failed early") && failed.contains("wrong status: 'Failed'"), "{failed}");
    std::fs::remove_file(flux.path().join("wrong.yaml")).expect("a file");
    assert!(ok(flux.reconcile()).contains(&format!("Resource/{ns}/wrong deleted")));

    // All Resources are deleted at once; the objects are destroyed in order, dependents first.
    let before = writes_of(ns).len();
    flux.commit("shop.yaml", &example("kubernetes/rbac.yaml"));
    ok(flux.reconcile());
    wait_empty(ns);
    let destroyed = writes_of(ns).split_off(before);
    assert!(
        matches!(&destroyed[..], [web, site] if web == "delete web" && site.starts_with("delete site-")),
        "{destroyed:?}"
    );
}

#[test]
fn a_kustomization_with_health_checks_waits_for_these_resources_and_its_deletion_for_all() {
    let _guard = shared();
    let flux = Kustomization::new(plane().namespace("flux-checks"), "health-checks.yaml");
    let ns = &flux.namespace;
    // Not applied by the Kustomization, so that Purlin can still destroy the objects when it is deleted.
    plane().apply(&["-n", ns], &example("kubernetes/rbac.yaml"));
    flux.commit("shop.yaml", &example("kubernetes/shop.yaml"));
    flux.commit("waits.yaml", &data("waits", "\"${missing.output}\"", ""));
    ok(flux.reconcile());
    assert!(is_ready(&resource(ns, "web").unwrap()));
    wait_reason(ns, "waits", "Ready", "DependencyNotFound");
    let deleted = ok(flux.delete());
    assert_eq!(deleted.lines().filter(|line| line.ends_with(" deleted")).count(), 4, "{deleted}");
    assert!(resource(ns, "site").is_none() && resource(ns, "waits").is_none());
    assert!(!plane().kubectl(&["-n", ns, "get", "deployment", "web"]).status.success());
}
