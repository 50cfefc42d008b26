//! `purlin init`: the selection of providers, and `.terraform.lock.hcl`; also `purlin providers` and `purlin validate`.

use std::fs;
use std::io::{Cursor, Write as _};

use purlin::install::Platform;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::sandbox::Sandbox;

const LOCK: &str = "files/.terraform.lock.hcl";

/// A sandbox with a mirror that has these versions of `acme/cloud`.
fn sandbox(versions: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for version in versions {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("terraform-provider-cloud", SimpleFileOptions::default()).unwrap();
        writer.write_all(version.as_bytes()).unwrap();
        let name = format!("terraform-provider-cloud_{version}_{}.zip", Platform::current());
        let directory = sandbox.path("mirror/registry.opentofu.org/acme/cloud");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), writer.finish().unwrap().into_inner()).unwrap();
    }
    sandbox
}

fn require(sandbox: &Sandbox, directory: &str, version: &str) {
    let text = format!(
        "terraform {{\n  required_providers {{\n    cloud = {{\n      source = \"acme/cloud\"\n      version = \"{version}\"\n    }}\n  }}\n}}\n"
    );
    sandbox.write(&format!("{directory}/versions.tf"), &text);
}

fn init<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["init", "-f", "files", "-plugin-dir", "mirror"][..], arguments].concat()
}

fn locked(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.path(LOCK)).unwrap()
}

#[test]
fn the_newest_version_is_locked_until_it_is_upgraded() {
    let sandbox = sandbox(&["1.0.0", "1.2.0", "2.0.0"]);
    require(&sandbox, "files", "~> 1.0");
    require(&sandbox, "files/m", ">= 1.1");
    sandbox.write(
        "files/main.tf",
        "module \"m\" {\n  source = \"./m\"\n}\nresource \"cloud_a\" \"x\" {}\nresource \"terraform_data\" \"x\" {}\n",
    );
    let out = sandbox.ok(&init(&[]));
    expect_test::expect![[r#"
        Initializing modules...
        - m in m

        Initializing provider plugins...
        - Finding versions of acme/cloud that match `~> 1.0, >= 1.1.0`...
        - Installed acme/cloud 1.2.0 (the mirror mirror)

        The selected versions are recorded in files/.terraform.lock.hcl. Keep this file in version control.

        Purlin has been successfully initialized. `purlin plan -f files` shows what would change.
    "#]]
    .assert_eq(&out);
    let lock = locked(&sandbox);
    let head = "# This file is maintained automatically by \"purlin init\".\n# Manual edits may be lost in future updates.\n\nprovider \"registry.opentofu.org/acme/cloud\" {\n  version     = \"1.2.0\"\n  constraints = \"~> 1.0, >= 1.1.0\"\n  hashes = [\n    \"h1:";
    assert!(lock.starts_with(head), "{lock}");

    // A newer version is not selected while the lock file has one.
    let newer = "terraform-provider-cloud_1.3.0_";
    let directory = sandbox.path("mirror/registry.opentofu.org/acme/cloud");
    let platform = Platform::current();
    fs::copy(
        directory.join(format!("terraform-provider-cloud_2.0.0_{platform}.zip")),
        directory.join(format!("{newer}{platform}.zip")),
    )
    .unwrap();
    let out = sandbox.ok(&init(&[]));
    assert!(out.contains("- Reusing version 1.2.0 of acme/cloud from the lock file...\n"), "{out}");
    assert_eq!(locked(&sandbox), lock);
    sandbox.ok(&init(&["-upgrade"]));
    assert!(locked(&sandbox).contains("version     = \"1.3.0\""));

    // A locked version that no module wants any more stays until the user asks for another one.
    require(&sandbox, "files", "~> 2.0");
    let ran = sandbox.run(&init(&[]));
    assert_eq!(
        ran.one_error(),
        "error: the lock file has acme/cloud 1.3.0, which does not match `>= 1.1.0, ~> 2.0` (the root module: `~> 2.0`, module.m: `>= 1.1`)"
    );
    assert!(ran.stderr.contains("hint: `purlin init -f files -upgrade` selects versions again"), "{ran:?}");
    sandbox.ok(&init(&["-upgrade"]));
    assert!(locked(&sandbox).contains("version     = \"2.0.0\""));
}

#[test]
fn constraints_that_contradict_each_other_are_one_error() {
    let sandbox = sandbox(&["1.0.0", "2.0.0"]);
    require(&sandbox, "files", "~> 1.0");
    require(&sandbox, "files/m", "~> 2.0");
    sandbox.write("files/main.tf", "module \"m\" {\n  source = \"./m\"\n}\n");
    // An empty directory in place of the registry, which the sandbox cannot reach.
    let ran = sandbox.run_with(&[("HTTPS_PROXY", "http://localhost:1")], &init(&[]));
    let error = ran.one_error();
    assert!(error.starts_with("error: the provider acme/cloud cannot be installed: "), "{error}");
    assert!(error.ends_with("(the root module: `~> 1.0`, module.m: `~> 2.0`)"), "{error}");
    assert!(!sandbox.path(LOCK).exists());
}

#[test]
fn a_read_only_lock_file_is_not_changed() {
    let sandbox = sandbox(&["1.0.0"]);
    require(&sandbox, "files", "1.0.0");
    let ran = sandbox.run(&init(&["-lockfile=readonly"]));
    let error = "error: files/.terraform.lock.hcl does not have the providers of the configuration, and is read-only";
    assert_eq!(ran.one_error(), error);
    assert!(!sandbox.path(LOCK).exists());
    sandbox.ok(&init(&[]));
    let lock = locked(&sandbox);
    require(&sandbox, "files", ">= 1.0.0");
    let ran = sandbox.run(&init(&["-lockfile=readonly"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: the lock file lacks checksums or constraints"), "{ran:?}");
    assert_eq!(locked(&sandbox), lock);
    let ran = sandbox.run(&init(&["-lockfile=readonly", "-upgrade"]));
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot be used with"), "{ran:?}");
}

#[test]
fn a_lock_file_of_opentofu_is_honoured_and_kept() {
    let sandbox = sandbox(&["1.0.0", "1.1.0"]);
    require(&sandbox, "files", "~> 1.0");
    let text = "# This file is maintained automatically by \"tofu init\".\n# Manual edits may be lost in future updates.\n\nprovider \"registry.opentofu.org/acme/cloud\" {\n  version     = \"1.0.0\"\n  constraints = \"~> 1.0\"\n}\n\nprovider \"registry.opentofu.org/acme/other\" {\n  version = \"3.0.0\"\n}\n";
    sandbox.write(LOCK, text);
    sandbox.ok(&init(&[]));
    let lock = locked(&sandbox);
    assert!(lock.starts_with("# This file is maintained automatically by \"tofu init\".\n"), "{lock}");
    assert!(lock.contains("version     = \"1.0.0\"\n  constraints = \"~> 1.0\"\n  hashes = [\n    \"h1:"), "{lock}");
    assert!(lock.contains("acme/other"), "records can need a provider that the configuration does not: {lock}");
    sandbox.write(LOCK, &lock.replace("h1:", "h1:x"));
    let ran = sandbox.run(&init(&[]));
    assert!(ran.one_error().starts_with("error: files/.terraform.lock.hcl: line 4: `h1:x"), "{ran:?}");
}

#[test]
fn a_provider_that_opentofu_has_installed_needs_no_network() {
    let sandbox = sandbox(&["1.0.0"]);
    require(&sandbox, "files", "~> 1.0");
    sandbox.ok(&init(&[]));
    let platform = Platform::current().to_string();
    let cached = sandbox.path(".cache/purlin/providers/registry.opentofu.org/acme/cloud/1.0.0").join(&platform);
    let installed = sandbox.path("files/.terraform/providers/registry.opentofu.org/acme/cloud/1.0.0").join(&platform);
    fs::create_dir_all(installed.parent().unwrap()).unwrap();
    fs::rename(&cached, &installed).unwrap();
    fs::remove_dir_all(sandbox.path(".cache")).unwrap();
    let offline = [("HTTPS_PROXY", "http://localhost:1")];
    let ran = sandbox.run_with(&offline, &["init", "-f", "files"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("- Installed acme/cloud 1.0.0 (files/.terraform/providers)\n"), "{ran:?}");
    // A package that is not the locked one is not used.
    fs::write(installed.join("terraform-provider-cloud"), "other").unwrap();
    let ran = sandbox.run_with(&offline, &["init", "-f", "files"]);
    assert!(ran.one_error().contains("cannot be fetched from https://registry.opentofu.org/"), "{ran:?}");
}

#[test]
fn what_is_ignored_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("files/main.tf", "terraform {\n  backend \"s3\" {\n    bucket = \"x\"\n  }\n}\n");
    let ran = sandbox.run(&["init", "-f", "files", "-backend=false", "-input=false", "-backend-config=x=y"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.starts_with("note: options of backends are ignored"), "{ran:?}");
    let warning = "warning: files/main.tf:2: Block is ignored: State is kept in records, so the `backend` block means nothing here\nhint: `purlin migrate` takes the objects of its state over\n";
    assert!(ran.stderr.ends_with(warning), "{ran:?}");
    sandbox.remove("files/main.tf");
    let ran = sandbox.run(&["init", "-f", "files"]);
    assert_eq!(ran.one_error(), "error: files has no configuration of Terraform: no `.tf` file");
}

#[test]
fn the_providers_of_each_module_are_shown() {
    let sandbox = Sandbox::new();
    require(&sandbox, "files", "~> 1.0");
    require(&sandbox, "files/a", ">= 1.1");
    sandbox.write("files/a/main.tf", "resource \"random_pet\" \"x\" {}\n");
    sandbox.write("files/main.tf", "module \"a\" {\n  source = \"./a\"\n}\nmodule \"b\" {\n  source = \"./a\"\n}\n");
    expect_test::expect![[r#"
        Providers required by configuration:
        .
        ├── provider[registry.opentofu.org/acme/cloud] ~> 1.0
        ├── module.a
        │   ├── provider[registry.opentofu.org/acme/cloud] >= 1.1
        │   └── provider[registry.opentofu.org/hashicorp/random]
        └── module.b
            ├── provider[registry.opentofu.org/acme/cloud] >= 1.1
            └── provider[registry.opentofu.org/hashicorp/random]
    "#]]
    .assert_eq(&sandbox.ok(&["providers", "-f", "files"]));
}

#[test]
fn a_configuration_is_validated_with_all_its_errors() {
    let sandbox = Sandbox::new();
    sandbox.write("files/main.tf", "module \"a\" {\n  source = \"./a\"\n}\nvariable \"x\" {}\n");
    sandbox.write("files/a/main.tf", "");
    assert_eq!(sandbox.ok(&["validate", "-f", "files"]), "2 modules checked, no errors.\n");
    sandbox.write("files/a/main.tf", "output \"x\" {\n  value = var.nope\n}\nvariable \"y\" {\n  tipe = string\n}\n");
    sandbox.write("files/b.tf", "module \"b\" {\n  source = \"acme/b/aws\"\n}\n");
    let ran = sandbox.run(&["validate", "-f", "files"]);
    let errors = ran.errors();
    assert_eq!((ran.code, errors.len()), (Some(1), 3), "{ran:?}");
    let report = sandbox.json(&["validate", "-f", "files", "-o", "json"]);
    assert_eq!((report["valid"].as_bool(), report["diagnostics"].as_array().unwrap().len()), (Some(false), 3));
}
