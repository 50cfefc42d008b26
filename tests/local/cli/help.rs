//! `purlin help`, and what a user sees who has only the binary.

use super::sandbox::Sandbox;

#[test]
fn help_works_as_a_command_and_as_an_option() {
    let sandbox = Sandbox::new();
    assert!(sandbox.ok(&["help"]).contains("explain-type"));
    for command in [&["apply"][..], &["state", "rm"], &["provider", "install"]] {
        let help = sandbox.ok(&[&["help"], command].concat());
        assert_eq!(help, sandbox.ok(&[command, &["--help"]].concat()));
        assert!(help.contains("Examples:\n  # ") && help.contains(&format!("purlin {}", command.join(" "))));
    }
}

#[test]
fn help_lists_only_options_that_the_command_accepts() {
    let sandbox = Sandbox::new();
    for command in ["apply", "destroy", "dev", "import"] {
        let help = sandbox.ok(&[command, "--help"]);
        assert!(help.contains("--filename") && help.contains("--kubeconfig"), "{help}");
        assert!(
            !help.contains("--context") && !help.contains("--namespace") && !help.contains("--controller-namespace")
        );
    }
    for command in [&["suspend"][..], &["resume"], &["reconcile"], &["state", "release"]] {
        let help = sandbox.ok(&[command, &["--help"]].concat());
        assert!(help.contains("--namespace") && help.contains("--context"), "{help}");
        assert!(!help.contains("--filename") && !help.contains("--state ") && !help.contains("--plugin-dir"), "{help}");
    }
    // The options of the other target are still explained.
    let refused = sandbox.run(&["apply", "-n", "shop", "--yes"]);
    assert!(refused.one_error().contains("works only on files"), "{refused:?}");
}

#[test]
fn a_missing_kubeconfig_is_one_plain_line() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("no-such-kubeconfig").display().to_string();
    for command in [&["get"][..], &["explain", "a"], &["state", "list"], &["suspend", "a"], &["plan"]] {
        let ran = sandbox.run(command);
        assert_eq!(
            ran.stderr,
            format!(
                "error: there is no kubeconfig at `{path}`\n\
                 hint: use -f DIR for files, or --kubeconfig or --context for a cluster\n"
            ),
            "{command:?}"
        );
    }
    sandbox.write("empty", "apiVersion: v1\nkind: Config\n");
    let ran = sandbox.run(&["get", "--kubeconfig", "empty"]);
    assert_eq!(ran.one_error(), "error: the kubeconfig sets no current context");
    let ran = sandbox.run(&["get", "--kubeconfig", "empty", "--context", "far"]);
    assert_eq!(ran.one_error(), "error: the kubeconfig has no context `far`");
}

#[test]
fn an_object_of_kubernetes_without_a_kubeconfig_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "files/site.yaml",
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: site }\nspec: { type: kubernetes_object, \
         config: { manifest: { apiVersion: v1, kind: ConfigMap, metadata: { name: site } } } }\n",
    );
    let path = sandbox.path("no-such-kubeconfig").display().to_string();
    let ran = sandbox.run(&["plan", "-f", "files"]);
    assert!(ran.one_error().ends_with(&format!("`v1`: there is no kubeconfig at `{path}`")), "{ran:?}");
    let ran = sandbox.run(&["plan", "-f", "files", "--kubeconfig", "absent"]);
    assert_eq!(ran.one_error(), "error: there is no kubeconfig at `absent`");
}

#[test]
fn built_in_types_are_explained_without_files() {
    let sandbox = Sandbox::new();
    let page = sandbox.ok(&["explain-type", "terraform_data"]);
    assert!(page.starts_with("TYPE:         terraform_data\nPROVIDER:     built in\n\n  Stores a value"), "{page}");
    assert!(page.contains("\nARGUMENTS\n  `input`\n      Any value."), "{page}");
    let page = sandbox.ok(&["explain-type", "kubernetes_object"]);
    assert!(!page.contains("](") && !page.contains("| ---") && !page.contains("```"), "{page}");
    assert!(page.lines().filter(|line| !line.starts_with("    ")).all(|line| line.chars().count() <= 100), "{page}");
    let field = sandbox.ok(&["explain-type", "kubernetes_object.manifest"]);
    assert!(field.contains("FIELD:        manifest  <map of any type> -required-"), "{field}");
    let data = sandbox.ok(&["explain-type", "kubernetes_object", "--data"]);
    assert!(data.starts_with("DATA SOURCE:  kubernetes_object\n") && data.contains("apiVersion  <string> -required-"));
    let schema: serde_json::Value =
        serde_json::from_str(&sandbox.ok(&["explain-type", "kubernetes_object", "-o", "json-schema"])).unwrap();
    assert_eq!(schema["required"], serde_json::json!(["manifest"]));
    for (what, expected) in [
        (&["terraform_data.colour"][..], "`terraform_data` has no attribute `colour`"),
        (&["terraform_data", "--data"], "`terraform_data` has no data source"),
    ] {
        let ran = sandbox.run(&[&["explain-type"], what].concat());
        assert!(ran.one_error().contains(expected) && ran.stderr.contains("hint: "), "{ran:?}");
    }
}
