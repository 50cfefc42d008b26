//! Argo CD: the health checks and actions of `examples/argocd`, and its comparison of manifests with objects.

use std::fs;

use super::{example, gitops, text};
use crate::installation::*;
use crate::pages::root;

/// The scripts are run with the libraries that Argo CD runs them with, in the same environment. `tests/gitops/argocd`
/// runs them with Argo CD itself.
#[test]
fn the_health_checks_and_actions_pass_their_cases() {
    for kind in ["Resource", "Plan"] {
        let directory = root().join("examples/argocd/resource_customizations/purlin.dev").join(kind);
        for (what, directory) in [("health", directory.clone()), ("actions", directory.join("actions"))] {
            let output = gitops(&["argocd", what, directory.to_str().expect("UTF-8")]);
            let printed = text(&output);
            assert!(output.status.success(), "{printed}");
            let cases = fs::read_dir(directory.join("testdata")).unwrap().count();
            assert!(printed.lines().count() >= cases, "every file in testdata is used:\n{printed}");
        }
    }
}

#[test]
fn what_purlin_writes_is_no_difference_from_the_manifests() {
    let _guard = shared();
    let plane = plane();
    let shop = example("kubernetes/shop.yaml");
    // As Argo CD applies: with kubectl, or with `ServerSideApply=true`.
    for options in [&[][..], &["--server-side", "--field-manager=argocd-controller"]] {
        let ns = plane.namespace("argocd");
        plane.apply(&["-n", &ns], &example("kubernetes/rbac.yaml"));
        plane.apply(&[&["-n", &ns][..], options].concat(), &shop);
        wait_ready(&ns, &["site", "web", "address"]);
        let diff = |manifests: &str| {
            let output = plane.kubectl_with_stdin(&[&["diff", "-n", &ns, "-f", "-"][..], options].concat(), manifests);
            (output.status.code(), text(&output))
        };
        assert_eq!(diff(&shop), (Some(0), String::new()));
        assert_eq!(diff(&shop.replace("green", "blue")).0, Some(1), "a change is a difference");
    }
}
