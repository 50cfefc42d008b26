//! `examples/argocd/argocd-cm.yaml`: the scripts of `resource_customizations`, as Argo CD's ConfigMap has them.

use std::fs;
use std::path::Path;

use expect_test::expect_file;

/// The kinds whose status has the conditions of a Resource.
const LIKE_RESOURCES: [&str; 4] = ["Resource", "DataSource", "Provider", "ProviderConfig"];
/// The actions of each kind.
const ACTIONS: [(&str, &[&str]); 2] =
    [("Resource", &["reconcile", "suspend", "resume"]), ("Plan", &["approve", "reject"])];

fn script(path: &str) -> String {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/argocd/resource_customizations/purlin.dev");
    let path = scripts.join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn indented(text: &str, columns: usize) -> String {
    let indent = " ".repeat(columns);
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") }).collect()
}

fn config_map() -> String {
    let mut text = "# Generated from `resource_customizations`; a test checks that it is up to date. Add it to the ConfigMap \
                    of Argo CD:\n# kubectl patch configmap argocd-cm -n argocd --patch-file examples/argocd/argocd-cm.yaml\n\
                    apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: argocd-cm\ndata:\n"
        .to_owned();
    let kinds = LIKE_RESOURCES.iter().map(|kind| (*kind, "Resource")).chain([("Plan", "Plan")]);
    for (kind, from) in kinds {
        let health = indented(&script(&format!("{from}/health.lua")), 4);
        text.push_str(&format!("  resource.customizations.health.purlin.dev_{kind}: |\n{health}"));
    }
    for (kind, actions) in ACTIONS {
        let discovery = indented(&script(&format!("{kind}/actions/discovery.lua")), 6);
        text.push_str(&format!(
            "  resource.customizations.actions.purlin.dev_{kind}: |\n    discovery.lua: |\n{discovery}"
        ));
        text.push_str("    definitions:\n");
        for action in actions {
            let code = indented(&script(&format!("{kind}/actions/{action}/action.lua")), 8);
            text.push_str(&format!("    - name: {action}\n      action.lua: |\n{code}"));
        }
    }
    text
}

#[test]
fn the_config_map_of_argocd_has_the_scripts() {
    expect_file!["../../../examples/argocd/argocd-cm.yaml"].assert_eq(&config_map());
}
