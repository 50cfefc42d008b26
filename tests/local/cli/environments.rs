//! Several environments: the same manifests with different settings, and a state file for each.

use super::sandbox::{Sandbox, manifest};

const BASE: &str = "\
apiVersion: purlin.dev/v1alpha1
kind: Resource
metadata: { name: database }
spec:
  type: terraform_data
  inputs: [{ name: size, configMapKeyRef: { name: settings, key: size } }]
  config: { input: \"${inputs.size}\" }
  publish: [{ configMapRef: { name: database }, data: { size: \"${self.output}\" } }]
";

fn settings(size: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: settings }}\ndata: {{ size: {size} }}\n")
}

fn two_environments() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("base/database.yaml", BASE);
    sandbox.write("overlays/dev/settings.yaml", &settings("small"));
    sandbox.write("overlays/prod/settings.yaml", &settings("large"));
    for environment in ["dev", "prod"] {
        sandbox.ok(&apply(environment, environment));
    }
    sandbox
}

fn apply(overlay: &str, state: &str) -> [&'static str; 8] {
    let name = |prefix: &str, name: &str, end: &str| -> &'static str { format!("{prefix}{name}{end}").leak() };
    ["apply", "-f", "base", "-f", name("overlays/", overlay, ""), "--state", name("", state, ".db"), "--yes"]
}

#[test]
fn environments_in_one_directory_do_not_disturb_each_other() {
    let sandbox = two_environments();
    let copy = |environment: &str| {
        let path = sandbox.path(&format!("published/{environment}/configmap-database.json"));
        std::fs::read_to_string(path).unwrap()
    };
    assert!(copy("dev").contains("small") && copy("prod").contains("large"));
    // What was published is not read as a manifest.
    let ran = sandbox.run(&["plan", "-f", ".", "--state", "dev.db"]);
    assert!(!ran.stderr.contains("published"), "{ran:?}");
}

#[test]
fn the_overlay_of_another_environment_is_a_warning() {
    let sandbox = two_environments();
    let warning =
        "warning: the last apply to these records was given `overlays/prod`, and this command `overlays/dev` instead";
    let plan = |overlay: &str| sandbox.run(&["plan", "-f", "base", "-f", overlay, "--state", "prod.db"]);
    assert!(plan("overlays/dev").stderr.contains(warning), "{:?}", plan("overlays/dev"));
    assert!(!plan("overlays/prod").stderr.contains("warning"));
    // A part of the sources is no other environment, and neither is a source that is gone.
    assert!(!sandbox.run(&["plan", "-f", "base", "--state", "prod.db"]).stderr.contains("environment"));
    std::fs::rename(sandbox.path("overlays/prod"), sandbox.path("overlays/live")).unwrap();
    assert!(!plan("overlays/live").stderr.contains("warning"));
}

#[test]
fn a_manifest_that_takes_over_the_object_of_another_one_is_a_warning() {
    let sandbox = Sandbox::new();
    for environment in ["dev", "prod"] {
        sandbox.write(&format!("{environment}/database.yaml"), &manifest("database", &[]));
    }
    sandbox.ok(&["apply", "-f", "prod", "--yes"]);
    let warning =
        "database: takes over the object of `prod/database.yaml`, which is not given and still contains its manifest";
    assert!(sandbox.run(&["plan", "-f", "dev"]).stderr.contains(warning));
    // The manifest has moved.
    sandbox.remove("prod/database.yaml");
    assert!(!sandbox.run(&["plan", "-f", "dev"]).stderr.contains("warning"));
}
