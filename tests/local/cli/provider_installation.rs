//! Installation of real provider packages from mirrors, the lock file, and the `purlin provider` commands.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use purlin::install::Platform;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::provider_sandbox::ProviderSandbox;
use super::sandbox::Sandbox;
use crate::providers;

fn package(program: &[u8]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    writer.start_file("terraform-provider-random_v3.9.0_x5", options).unwrap();
    writer.write_all(program).unwrap();
    writer.finish().unwrap().into_inner()
}

/// The path of a packed version of `hashicorp/random` in a mirror.
fn packed(sandbox: &Sandbox, mirror: &str, version: &str) -> PathBuf {
    let directory = sandbox.path(mirror).join("registry.opentofu.org/hashicorp/random");
    fs::create_dir_all(&directory).unwrap();
    directory.join(format!("terraform-provider-random_{version}_{}.zip", Platform::current()))
}

fn real() -> Vec<u8> {
    package(&fs::read(providers::program("random")).unwrap())
}

/// Writes manifests of a `random_pet` and of its provider with this spec.
fn files(sandbox: &Sandbox, spec: &str) {
    let provider = format!("kind: Provider\nmetadata: {{ name: random }}\nspec: {spec}\n");
    let pet = "kind: Resource\nmetadata: { name: pet }\nspec: { type: random_pet, config: {} }\n";
    let head = "---\napiVersion: purlin.dev/v1alpha1\n";
    sandbox.write("files/all.yaml", &format!("{head}{provider}{head}{pet}"));
}

/// The error of a plan, with its hint.
fn problem(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let ran = sandbox.run(&[&["plan", "-f", "files"][..], arguments].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let directory = sandbox.path("").display().to_string();
    ran.stderr.replace(&directory, "HERE/")
}

#[test]
fn the_newest_matching_version_is_installed_and_locked() {
    let sandbox = Sandbox::new();
    fs::write(packed(&sandbox, "mirror", "3.9.0"), real()).unwrap();
    fs::write(packed(&sandbox, "mirror", "4.0.0"), "never opened").unwrap();
    files(&sandbox, "{ version: '~> 3.5', package: { filesystemMirror: ../mirror } }");
    sandbox.ok(&["apply", "-f", "files", "--yes"]);
    let platform = Platform::current().to_string();
    let cached = sandbox.path(".cache/purlin/providers/registry.opentofu.org/hashicorp/random/3.9.0").join(platform);
    assert!(cached.join("terraform-provider-random_v3.9.0_x5").is_file());
    let lock: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(sandbox.path(".purlin.lock")).unwrap()).unwrap();
    let locked = &lock["providers"]["registry.opentofu.org/hashicorp/random"];
    assert_eq!((locked["version"].as_str(), locked["constraint"].as_str()), (Some("3.9.0"), Some("~> 3.5")));
    assert_eq!(locked["hashes"].as_array().unwrap().len(), 2);

    // The lock file prevents an upgrade to a newer version.
    fs::write(packed(&sandbox, "mirror", "3.10.0"), "never opened").unwrap();
    sandbox.ok(&["plan", "-f", "files", "--detailed-exitcode"]);

    // The same version with other contents is rejected.
    fs::write(packed(&sandbox, "mirror", "3.9.0"), package(b"#!/bin/sh\n")).unwrap();
    let error = problem(&sandbox, &[]);
    assert!(
        error.contains("3.9.0 for") && error.contains("does not match the locked checksums: its checksum is h1:"),
        "{error}"
    );
    assert!(error.contains("`purlin provider lock` accepts it"), "{error}");
    assert_eq!(sandbox.recorded(), ["pet"], "the records are kept");

    // An unreadable lock file is not overwritten.
    sandbox.write(".purlin.lock", "<<<<<<< ours");
    let error = problem(&sandbox, &[]);
    assert!(error.contains(".purlin.lock: expected value at line 1"), "{error}");
    assert_eq!(fs::read_to_string(sandbox.path(".purlin.lock")).unwrap(), "<<<<<<< ours");
}

#[test]
fn a_plugin_directory_takes_precedence() {
    let sandbox = Sandbox::new();
    let platform = Platform::current().to_string();
    let directory = sandbox.path("air/registry.opentofu.org/hashicorp/random/3.9.0").join(platform);
    fs::create_dir_all(&directory).unwrap();
    let program = directory.join("terraform-provider-random");
    fs::copy(providers::program("random"), &program).unwrap();
    fs::create_dir(sandbox.path("empty")).unwrap();
    // No registry is called, so no network is needed.
    files(&sandbox, "{ version: '>= 3.0' }");
    sandbox.ok(&["apply", "-f", "files", "--yes", "--plugin-dir", "empty", "--plugin-dir", "air"]);
    assert!(!sandbox.path(".cache").exists(), "unpacked providers are used in place");
    let error = problem(&sandbox, &["--plugin-dir", "nowhere"]);
    assert!(error.contains("nowhere is not a directory") && error.contains("correct --plugin-dir"), "{error}");
}

#[test]
fn provider_errors_name_the_field() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("mirror")).unwrap();
    let error_of = |spec: &str| {
        files(&sandbox, spec);
        problem(&sandbox, &[])
    };
    for (spec, expected) in [
        ("{ version: latest }", "`latest` is not a valid version constraint"),
        ("{ package: { networkMirror: 'http://example.com/' } }", "`http://example.com/` is not a valid mirror URL"),
        ("{ checksums: ['md5:0'] }", "`md5:0` is not a valid checksum"),
        (
            "{ package: { ociMirror: 'Example' } }",
            "the program of the provider `random` is not available: spec.package.ociMirror: `Example` is not a valid repository template",
        ),
        (
            "{ package: { filesystemMirror: ../mirror } }",
            "the program of the provider `random` is not available: spec.source: the mirror files/../mirror has no package of registry.opentofu.org/hashicorp/random",
        ),
        (
            "{ package: { path: ../nothing } }",
            "the program of the provider `random` is not available: spec.package.path: files/../nothing: No such file",
        ),
    ] {
        let error = error_of(spec);
        assert!(error.contains(expected), "{spec}: {error}");
    }
    assert!(!sandbox.path(".purlin.lock").exists());
}

/// A sandbox with a mirror that contains the real provider for this platform, and a package for another platform.
fn mirrored() -> Sandbox {
    let sandbox = Sandbox::new();
    let here = packed(&sandbox, "mirror", "3.9.0");
    fs::write(&here, real()).unwrap();
    let other = here.with_file_name("terraform-provider-random_3.9.0_plan9_mips.zip");
    fs::write(other, package(b"for another machine")).unwrap();
    files(&sandbox, "{ version: '~> 3.5', package: { filesystemMirror: ../mirror } }");
    sandbox
}

#[test]
fn provider_commands_install_list_and_lock() {
    let sandbox = mirrored();
    let list = |sandbox: &Sandbox| sandbox.ok(&["provider", "list", "-f", "files"]);
    expect_test::expect![[r#"
        NAME     SOURCE                                   CONSTRAINT   LOCKED
        random   registry.opentofu.org/hashicorp/random   ~> 3.5       -
    "#]]
    .assert_eq(&list(&sandbox));
    expect_test::expect![[r#"
        NAME     SOURCE                                   VERSION   FROM
        random   registry.opentofu.org/hashicorp/random   3.9.0     the mirror files/../mirror
    "#]]
    .assert_eq(&sandbox.ok(&["provider", "install", "-f", "files"]));
    assert!(list(&sandbox).contains("3.9.0"));
    let hashes = |sandbox: &Sandbox| {
        let listed = sandbox.json(&["provider", "list", "-f", "files", "-o", "json"]);
        listed["providers"][0]["hashes"].as_array().unwrap().len()
    };
    assert_eq!(hashes(&sandbox), 2);
    let both = ["--platform", "plan9_mips", "--platform", &Platform::current().to_string()];
    sandbox.ok(&[&["provider", "lock", "-f", "files"][..], &both].concat());
    assert_eq!(hashes(&sandbox), 4, "h1 and zh of both platforms");

    // A newer version is installed only with --upgrade.
    fs::rename(packed(&sandbox, "mirror", "3.9.0"), packed(&sandbox, "mirror", "3.9.1")).unwrap();
    fs::remove_file(
        sandbox.path("mirror/registry.opentofu.org/hashicorp/random/terraform-provider-random_3.9.0_plan9_mips.zip"),
    )
    .unwrap();
    let upgraded = sandbox.json(&["provider", "install", "-f", "files", "--upgrade", "-o", "json"]);
    assert_eq!(upgraded["providers"][0]["version"], "3.9.1");
    assert!(!sandbox.path("purlin.db").exists(), "nothing is recorded");

    let ran = sandbox.run(&["provider", "lock", "-f", "files", "--platform", "linux"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("write OS_ARCH"), "{ran:?}");
    let ran = sandbox.run(&["provider", "list"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no files are specified"), "{ran:?}");
}

#[test]
fn an_error_of_one_provider_does_not_block_others() {
    let sandbox = mirrored();
    let absent = "apiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: { name: absent }\nspec: { package: { path: nowhere } }\n";
    sandbox.write("files/absent.yaml", absent);
    let ran = sandbox.run(&["provider", "install", "-f", "files"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("the provider `absent` cannot be installed: spec.package.path: files/nowhere: No such")
    );
    assert!(ran.stdout.contains("3.9.0"), "{ran:?}");
}

#[test]
fn a_provider_without_resources_can_be_installed_and_inspected() {
    let sandbox = mirrored();
    let text = fs::read_to_string(sandbox.path("files/all.yaml")).unwrap();
    let (provider, _) = text.split_once("---\napiVersion: purlin.dev/v1alpha1\nkind: Resource").unwrap();
    sandbox.write("files/all.yaml", provider);
    for command in [
        &["provider", "install"][..],
        &["provider", "list"],
        &["provider", "lock"],
        &["provider", "schema", "random"],
        &["provider", "docs", "random"],
        &["explain-type", "random_pet"],
        &["validate"],
        &["plan"],
        &["apply", "--yes"],
    ] {
        let ran = sandbox.run(&[command, &["-f", "files"]].concat());
        assert_eq!((ran.code, ran.errors().len()), (Some(0), 0), "{command:?}: {ran:?}");
    }
}

#[test]
fn explain_type_prints_text_and_json_schema() {
    let sandbox = mirrored();
    let explain = |what: &[&str]| sandbox.ok(&[&["explain-type", "-f", "files"][..], what].concat());
    let whole = explain(&["random_pet"]);
    assert!(
        whole.starts_with("TYPE:         random_pet\nPROVIDER:     registry.opentofu.org/hashicorp/random 3.9.0\n")
    );
    assert!(whole.contains("\nARGUMENTS:\n  keepers  <map of string>\n    "), "{whole}");
    assert!(whole.contains("\nSET BY THE PROVIDER:\n  id  <string>\n"), "{whole}");
    assert!(whole.lines().all(|line| line.chars().count() <= 100), "{whole}");
    let length = explain(&["random_password.length"]);
    assert!(length.contains("\nFIELD:        length  <number> -required-\n\nDESCRIPTION:\n    The length"), "{length}");
    assert!(explain(&["random_password"]).contains("result  <string> (sensitive)"));

    let schema: serde_json::Value = serde_json::from_str(&explain(&["random_password", "-o", "json-schema"])).unwrap();
    assert_eq!(schema["required"], serde_json::json!(["length"]));
    assert!(schema["properties"]["result"].is_null(), "computed attributes are not arguments");
    assert_eq!(schema["properties"]["length"]["anyOf"][0]["type"], "number");

    for (what, expected) in [
        ("random_cat", "the provider `random` has no type `random_cat`"),
        ("random_pet.colour", "`random_pet` has no attribute `colour`"),
        ("random_pet.length.more", "`random_pet.length` has no attribute `more`"),
    ] {
        let ran = sandbox.run(&["explain-type", what, "-f", "files"]);
        assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{what}: {ran:?}");
        assert!(ran.stderr.contains("hint: "), "{what}: {ran:?}");
    }
    // Without manifests, the provider follows from the type name.
    assert!(sandbox.ok(&["explain-type", "random_pet", "--plugin-dir", "mirror"]).contains("random_pet"));
}

#[test]
fn provider_schema_and_docs_are_printed() {
    let sandbox = mirrored();
    let schema = sandbox.json(&["provider", "schema", "random", "-f", "files"]);
    let provider = &schema["provider_schemas"]["registry.opentofu.org/hashicorp/random"];
    assert_eq!(schema["format_version"], "1.0");
    let pet = &provider["resource_schemas"]["random_pet"]["block"]["attributes"];
    assert_eq!(pet["keepers"]["type"], serde_json::json!(["map", "string"]));
    assert_eq!((&pet["keepers"]["optional"], &pet["id"]["computed"]), (&true.into(), &true.into()));
    assert_eq!(pet["id"]["description_kind"], "plain", "{pet}");
    let deprecated = &provider["resource_schemas"]["random_string"]["block"]["attributes"]["number"];
    assert_eq!(deprecated["deprecated"], true, "{deprecated}");

    sandbox.ok(&["provider", "docs", "random", "-f", "files", "--out", "pages"]);
    let page = fs::read_to_string(sandbox.path("pages/types/random_password.md")).unwrap();
    assert!(page.contains("  type: random_password\n  config:\n    length: # number\n"), "{page}");
    assert!(page.contains("- `result` (string, sensitive): "), "{page}");
    assert!(fs::read_to_string(sandbox.path("pages/index.md")).unwrap().contains("[random_pet](types/random_pet.md)"));
    let ran = sandbox.run(&["provider", "docs", "other", "-f", "files"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("the manifests define: random"), "{ran:?}");
}

#[test]
fn the_printed_schema_contains_identities() {
    let bench = ProviderSandbox::new("corner");
    let schema = bench.sandbox.json(&["provider", "schema", "corner", "-f", "files"]);
    let provider = &schema["provider_schemas"]["registry.opentofu.org/purlin/corner"];
    let identity = serde_json::json!({
        "version": 1,
        "attributes": {
            "name": {"type": "string", "required_for_import": true},
            "region": {"type": "string", "optional_for_import": true},
        },
    });
    assert_eq!(provider["resource_identity_schemas"]["corner_identified"], identity);
}

/// No test has the provider `aws`, so this checks what needs no schema: fields, references to ProviderConfigs, instances.
#[test]
fn the_example_of_a_cloud_lacks_nothing_but_its_providers() {
    for account in ["aws", "aws-in-cluster"] {
        let sandbox = Sandbox::from_example("aws");
        let missing = |name: &str| {
            let head = "---\napiVersion: purlin.dev/v1alpha1\nkind: Provider\n";
            format!("{head}metadata: {{ name: {name} }}\nspec: {{ package: {{ path: missing }} }}\n")
        };
        sandbox.write("files/providers.yaml", &["aws", "random"].map(missing).concat());
        let path = format!("{}/examples/{account}/account.yaml", env!("CARGO_MANIFEST_DIR"));
        fs::copy(path, sandbox.path("files/account.yaml")).unwrap();
        let ran = sandbox.run(&["validate", "-f", "files"]);
        let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        let is_missing = |name: &str| {
            let expected = format!("the program of the provider `{name}` is not available");
            errors.iter().any(|error| error.contains(&expected))
        };
        assert!(errors.len() == 2 && is_missing("aws") && is_missing("random"), "{account}: {ran:?}");
    }
}
