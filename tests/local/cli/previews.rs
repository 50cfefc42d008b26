//! `purlin plan` with files and a cluster: what it refuses before it needs a cluster. The other
//! tests of previews are those of the cluster.

use super::sandbox::{Sandbox, manifest};

#[test]
fn options_of_a_local_plan_are_refused_for_a_cluster() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    for option in [&["--out", "plan"][..], &["--destroy"], &["--target", "a"], &["--replace", "a"], &["--refresh-only"]]
    {
        let ran = sandbox.run(&[&["plan", "-f", "files", "-n", "shop"], option].concat());
        let expected = format!("{} cannot be used with files and a cluster", option[0]);
        assert!(ran.one_error().contains(&expected) && ran.code == Some(1), "{ran:?}");
    }
    let ran = sandbox.run(&["plan", "-f", "files", "-n", "shop", "--state", "purlin.db"]);
    assert!(ran.stderr.contains("cannot be used with") && ran.code == Some(1), "{ran:?}");
    let ran = sandbox.run(&["plan", "-f", "files", "--prune", "-l", "app=shop"]);
    assert!(ran.one_error().contains("--selector works only in a cluster"), "{ran:?}");
    let ran = sandbox.run(&["plan", "-f", "files", "-n", "shop", "-l", "app=shop"]);
    assert!(ran.stderr.contains("--prune") && ran.code == Some(1), "a selector without --prune: {ran:?}");
    // Other commands work on files or on a cluster.
    let ran = sandbox.run(&["apply", "-f", "files", "-n", "shop"]);
    assert!(ran.stderr.contains("cannot be used with"), "{ran:?}");
}

#[test]
fn a_preview_without_a_kubeconfig_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    let ran = sandbox.run(&["plan", "-f", "files", "-n", "shop"]);
    assert!(ran.one_error().contains("there is no kubeconfig"), "{ran:?}");
}

#[test]
fn a_local_plan_is_written_as_markdown() {
    let sandbox = Sandbox::new();
    sandbox.write("files/a.yaml", &manifest("a", &[]));
    sandbox.write("files/b.yaml", &manifest("b", &["a"]));
    let text = sandbox.ok(&["plan", "-f", "files", "-o", "markdown"]);
    for part in ["### Purlin: Plan: 2 to create", "| `+` | `a` | `terraform_data` |", "```mermaid\nflowchart RL"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
