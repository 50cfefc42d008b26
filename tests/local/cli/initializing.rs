//! `purlin init`: modules from directories, Git, archives and a registry, and the list of installed modules.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::sandbox::{CommandResult, Sandbox};
use crate::installing::origins::sha256;
use crate::installing::site::{Answer, Site};

/// A sandbox and a server that it trusts.
struct Bench {
    sandbox: Sandbox,
    site: Site,
    /// Serves the site.
    _runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let site = runtime.block_on(Site::start());
        let sandbox = Sandbox::new();
        fs::write(sandbox.path("root.pem"), &site.root).unwrap();
        Self { sandbox, site, _runtime: runtime }
    }

    fn run(&self, arguments: &[&str]) -> CommandResult {
        let certificates = self.sandbox.path("root.pem");
        let variables = [("SSL_CERT_FILE", certificates.to_str().unwrap()), ("GIT_CONFIG_NOSYSTEM", "1")];
        self.sandbox.run_with(&variables, arguments)
    }

    /// Runs `purlin init` in `files`, and returns its output without what differs between runs.
    fn init(&self, arguments: &[&str]) -> String {
        let ran = self.run(&[&["init", "-f", "files"][..], arguments].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        self.plain(&ran.stdout)
    }

    /// The errors and hints of a failed `purlin init`.
    fn errors(&self) -> String {
        let ran = self.run(&["init", "-f", "files"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        self.plain(&ran.stderr)
    }

    fn plain(&self, text: &str) -> String {
        let sandbox = self.sandbox.path("").display().to_string();
        text.replace(&self.site.host, "HOST").replace(sandbox.trim_end_matches('/'), "SANDBOX")
    }

    fn module(&self, call: &str) {
        self.sandbox
            .write("files/main.tf", &format!("module \"m\" {{\n  {}\n}}\n", call.replace("HOST", &self.site.host)));
    }

    fn list(&self) -> Json {
        serde_json::from_str(&fs::read_to_string(self.sandbox.path("files/.terraform/modules/modules.json")).unwrap())
            .unwrap()
    }

    /// A registry with the module `acme/network/aws`, whose package contains a directory with the module.
    fn registry(&self, versions: &[&str]) {
        let put = |path: &str, answer: Answer| self.site.put(path, answer);
        put("/.well-known/terraform.json", Answer::json(&json!({"modules.v1": "/v1/modules/"})));
        let list: Vec<Json> = versions.iter().map(|version| json!({"version": version})).collect();
        put("/v1/modules/acme/network/aws/versions", Answer::json(&json!({"modules": [{"versions": list}]})));
        for version in versions {
            let location = format!("/archives/network-{version}?archive=zip");
            let answer = Answer::status(204).with("X-Terraform-Get", &location.replacen('?', "//*?", 1));
            put(&format!("/v1/modules/acme/network/aws/{version}/download"), answer);
            let inner = "module \"inner\" {\n  source = \"./modules/inner\"\n}\n";
            let package = zip(&[
                (&format!("network-{version}/main.tf"), inner),
                (&format!("network-{version}/modules/inner/main.tf"), "locals {}\n"),
            ]);
            put(&format!("/archives/network-{version}"), Answer::of(package));
        }
    }

    /// A Git repository with a tag `v1` and a later commit.
    fn repository(&self) -> String {
        let directory = self.sandbox.path("network.git");
        fs::create_dir_all(directory.join("modules/a")).unwrap();
        git(&directory, &["init", "--quiet", "--initial-branch", "main", "."]);
        fs::write(directory.join("modules/a/main.tf"), "locals {\n  version = 1\n}\n").unwrap();
        commit(&directory);
        git(&directory, &["tag", "v1"]);
        fs::write(directory.join("modules/a/main.tf"), "locals {\n  version = 2\n}\n").unwrap();
        commit(&directory);
        format!("git::file://{}", directory.display())
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    command.args(identity).args(arguments).current_dir(directory).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.env("HOME", directory).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn commit(directory: &Path) {
    git(directory, &["add", "."]);
    git(directory, &["commit", "--quiet", "--message", "x"]);
}

fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn modules_of_all_kinds_are_installed_once() {
    let bench = Bench::new();
    bench.registry(&["1.0.0", "1.1.0", "2.0.0", "1.2.0-rc1"]);
    let repository = bench.repository();
    bench.site.put(
        "/m.zip",
        Answer::of(zip(&[("main.tf", "module \"deep\" {\n  source = \"./deep\"\n}\n"), ("deep/a.tf", "")])),
    );
    let host = &bench.site.host;
    bench.sandbox.write("files/local/main.tf", "module \"up\" {\n  source = \"../other\"\n}\n");
    bench.sandbox.write("files/other/main.tf", "");
    bench.sandbox.write(
        "files/main.tf",
        &format!(
            "module \"archive\" {{\n  source = \"https://{host}/m.zip\"\n}}
module \"git\" {{\n  source = \"{repository}//modules/a?ref=v1\"\n}}
module \"local\" {{\n  source = \"./local\"\n}}
module \"registry\" {{\n  source  = \"{host}/acme/network/aws\"\n  version = \"~> 1.0\"\n}}\n"
        ),
    );
    expect_test::expect![[r#"
        Initializing modules...
        Downloading https://HOST/m.zip for archive...
        - archive in .terraform/modules/archive
        Downloading git::file://SANDBOX/network.git for git...
        - git in .terraform/modules/git/modules/a
        Downloading HOST/acme/network/aws 1.1.0 for registry...
        - registry in .terraform/modules/registry/network-1.1.0
        - local in local
        - archive.deep in .terraform/modules/archive/deep
        - local.up in other
        - registry.inner in .terraform/modules/registry/network-1.1.0/modules/inner

        Initializing provider plugins...

        Purlin has been successfully initialized. `purlin plan -f files` shows what would change.
    "#]]
    .assert_eq(&bench.init(&[]));
    let written = fs::read_to_string(bench.sandbox.path("files/.terraform/modules/git/modules/a/main.tf")).unwrap();
    assert!(written.contains("version = 1"), "{written}");
    let list = bench.list();
    let entry = |key: &str| {
        let entries = list["Modules"].as_array().unwrap();
        entries.iter().find(|entry| entry["Key"] == key).unwrap_or_else(|| panic!("{key}: {list}")).clone()
    };
    assert_eq!(entry(""), json!({"Key": "", "Source": "", "Dir": "."}));
    assert_eq!(entry("local.up"), json!({"Key": "local.up", "Source": "../other", "Dir": "other"}));
    let directory = ".terraform/modules/registry/network-1.1.0";
    let registry =
        json!({"Key": "registry", "Source": format!("{host}/acme/network/aws"), "Version": "1.1.0", "Dir": directory});
    assert_eq!(entry("registry"), registry);
    let source = format!("{}//modules/a?ref=v1", bench.repository_address());
    assert_eq!(entry("git"), json!({"Key": "git", "Source": source, "Dir": ".terraform/modules/git/modules/a"}));

    // What is installed is not fetched again, unless its directory is gone.
    bench.site.requests();
    let again = bench.init(&[]);
    assert!(!again.contains("- ") && bench.site.requests().is_empty(), "{again}");
    fs::remove_dir_all(bench.sandbox.path("files/.terraform/modules/archive")).unwrap();
    let again = bench.init(&[]);
    assert_eq!(again.matches("Downloading").count(), 1, "{again}");
    assert!(again.contains("- archive in .terraform/modules/archive\n"), "{again}");

    // A newer version is installed when it is asked for, or when the constraint asks for it.
    bench.registry(&["1.0.0", "1.1.0", "1.3.0", "2.0.0"]);
    assert!(!bench.init(&[]).contains("Downloading"));
    assert!(bench.init(&["-upgrade"]).contains("Downloading HOST/acme/network/aws 1.3.0 for registry..."));
    let text = fs::read_to_string(bench.sandbox.path("files/main.tf")).unwrap();
    bench.sandbox.write("files/main.tf", &text.replace("~> 1.0", "~> 2.0"));
    let again = bench.init(&[]);
    assert!(again.contains("Downloading HOST/acme/network/aws 2.0.0 for registry...\n- registry in"), "{again}");
    assert_eq!(again.matches("Downloading").count(), 1, "{again}");
}

/// A module as `oras push` publishes it. The registry gives its content only with a token, which anybody gets.
#[test]
fn a_module_of_an_oci_registry_is_installed_by_its_tag_or_digest() {
    let bench = Bench::new();
    let package = zip(&[("main.tf", ""), ("inner/main.tf", "locals {}\n")]);
    let blob = format!("sha256:{}", sha256(&package));
    let layer = json!({ "mediaType": "archive/zip", "digest": blob, "size": package.len() });
    let kind = "application/vnd.opentofu.modulepkg";
    let manifest = json!({ "schemaVersion": 2, "artifactType": kind, "layers": [layer] }).to_string();
    let challenge = format!("Bearer realm=\"{}\",service=\"tests\"", bench.site.url("/token"));
    let put = |path: &str, answer: Answer| {
        let refused = Answer::status(401).with("WWW-Authenticate", &challenge);
        bench.site.put(format!("/v2/acme/network/{path}"), answer.only_for("Bearer let-me-in", refused));
    };
    let token = "/token?service=tests&scope=repository%3Aacme%2Fnetwork%3Apull";
    bench.site.put(token, Answer::json(&json!({ "token": "let-me-in" })));
    let digest = format!("sha256:{}", sha256(manifest.as_bytes()));
    for reference in ["v1.2", "latest", &digest] {
        put(&format!("manifests/{reference}"), Answer::of(manifest.clone()));
    }
    put(&format!("blobs/{blob}"), Answer::of(package));
    for query in ["//inner?tag=v1.2", "//inner", &format!("//inner?digest={digest}")] {
        let _ = fs::remove_dir_all(bench.sandbox.path("files/.terraform"));
        bench.module(&format!("source = \"oci://HOST/acme/network{query}\""));
        let ran = bench.init(&[]);
        assert!(ran.contains("- m in .terraform/modules/m/inner\n"), "{query}: {ran}");
        assert!(bench.sandbox.path("files/.terraform/modules/m/inner/main.tf").exists());
    }
    put(&format!("manifests/{digest}"), Answer::of(manifest.replace("schemaVersion\":2", "schemaVersion\":3")));
    let _ = fs::remove_dir_all(bench.sandbox.path("files/.terraform"));
    assert!(bench.errors().contains("does not match its digest: it is sha256:"));
}

impl Bench {
    fn repository_address(&self) -> String {
        format!("git::file://{}", self.sandbox.path("network.git").display())
    }
}

#[test]
fn each_module_that_cannot_be_installed_is_one_error_at_its_call() {
    let bench = Bench::new();
    bench.registry(&["1.0.0"]);
    let repository = bench.repository();
    bench.site.put("/evil.zip", Answer::of(zip(&[("../../evil.tf", "")])));
    bench.site.put("/page?terraform-get=1", Answer::of("<html></html>"));
    bench.site.put("/m.zip", Answer::of(zip(&[("main.tf", "")])));
    let zeros = "0".repeat(64);
    let layer = |zip: &[u8]| json!({ "mediaType": "archive/zip", "digest": format!("sha256:{}", sha256(zip)) });
    let chart = json!({ "artifactType": "chart", "layers": [] });
    bench.site.put("/v2/chart/manifests/latest", Answer::json(&chart));
    let cut = json!({ "artifactType": "application/vnd.opentofu.modulepkg", "layers": [layer(b"whole")] });
    bench.site.put("/v2/cut/manifests/latest", Answer::json(&cut));
    bench.site.put(format!("/v2/cut/blobs/sha256:{}", sha256(b"whole")), Answer::of("who"));
    for (source, expected, hint) in [
        ("HOST/acme/other/aws", "the registry HOST does not have HOST/acme/other/aws", "correct `source`; a private"),
        ("https://HOST/missing.zip", "the archive of the module does not exist: https://HOST/missing.zip (404)", ""),
        (
            "https://HOST/evil.zip",
            "the package is not valid: `../../evil.tf` would be written outside of the pac",
            "the publisher",
        ),
        ("https://HOST/page", "https://HOST/page is not an archive, and refers to none", "archives are .zip"),
        ("https://HOST/m.zip//sub", "the package has no directory `sub`", "correct what stands after"),
        (
            &format!("https://HOST/m.zip?checksum=sha256:{zeros}"),
            "the archive of the module does not match its checksum: it is ",
            "it was changed",
        ),
        ("https://HOST/m.tar.bz2", "https://HOST/m.tar.bz2", ""),
        (&format!("{repository}?ref=v9"), "file://SANDBOX/network.git cannot be cloned: ", "correct `ref`"),
        ("git::file:///nowhere/at/all", "file:///nowhere/at/all cannot be cloned: ", "correct the address"),
        (
            "oci://HOST/missing?tag=v1",
            "the module HOST/missing:v1 does not exist",
            "correct the repository, or its `tag`",
        ),
        (
            "oci://HOST/chart",
            "the module HOST/chart:latest is of type `chart`, not `application/vnd.opent",
            "publish it as",
        ),
        ("oci://HOST/cut", "the module HOST/cut:latest does not match its digest: it is sha256:", "it was truncated"),
        ("oci://HOST/X", "`HOST/X` is not a repository: a repository name consists of lowercase", ""),
        ("oci://HOST/m?ref=v1", "an address of a module in an OCI registry has no parameter `ref`", "write `?tag=TAG`"),
        ("s3::https://HOST/m.zip", "packages of the kind `s3` are not supported", "use the HTTPS address"),
    ] {
        bench.module(&format!("source = \"{source}\""));
        let errors = bench.errors();
        assert_eq!(errors.matches("error: ").count(), 1, "{source}: {errors}");
        let place = "error: files/main.tf:2: Module cannot be installed: ";
        assert!(errors.starts_with(place) && errors.contains(expected), "{source}: {errors}");
        assert!(hint.is_empty() || errors.contains(&format!("\nhint: {hint}")), "{source}: {errors}");
    }
    bench.module("source = \"git::ext::sh -c true\"");
    assert!(bench.errors().starts_with("error: files/main.tf:2: Invalid module source address: "), "no program is run");
    let modules = bench.sandbox.path("files/.terraform/modules");
    let left: Vec<_> = fs::read_dir(modules).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["modules.json"], "nothing of a failed installation stays");
    assert_eq!(bench.list(), json!({"Modules": []}));
    assert!(!bench.sandbox.path("evil.tf").exists() && !bench.sandbox.path("files/evil.tf").exists());
}

#[test]
fn a_token_is_sent_to_the_registry_and_not_to_the_place_of_the_package() {
    let bench = Bench::new();
    bench.registry(&["1.0.0"]);
    let refused = || Box::new(Answer::status(401));
    for path in ["versions", "1.0.0/download"] {
        let only_for = Some(("Bearer s3cret".to_owned(), refused()));
        bench.site.change(&format!("/v1/modules/acme/network/aws/{path}"), |answer| answer.only_for = only_for);
    }
    bench.module("source = \"HOST/acme/network/aws\"");
    let errors = bench.errors();
    assert!(
        errors.contains("credentials are required (401)") && errors.contains("hint: set TF_TOKEN_HOST"),
        "{errors}"
    );
    bench.site.requests();
    let certificates = bench.sandbox.path("root.pem");
    let token = format!("TF_TOKEN_{}", bench.site.host);
    let variables = [("SSL_CERT_FILE", certificates.to_str().unwrap()), (token.as_str(), "s3cret")];
    let ran = bench.sandbox.run_with(&variables, &["init", "-f", "files"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = bench.site.requests();
    let of_package = requests.iter().find(|request| request.path.starts_with("/archives/")).unwrap();
    assert_eq!((requests.len(), of_package.authorization.as_deref()), (4, None), "{requests:?}");
    // A token that `tofu login` has stored, with another one for the same host in the main file.
    fs::remove_dir_all(bench.sandbox.path("files/.terraform")).unwrap();
    let login = json!({ "credentials": { (bench.site.host.clone()): { "token": "s3cret" } } });
    bench.sandbox.write(".terraform.d/credentials.tfrc.json", &login.to_string());
    let ran = bench.sandbox.run_with(&variables[..1], &["init", "-f", "files"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let main = format!("credentials \"{}\" {{\n  token = \"other\"\n}}\n", bench.site.host);
    bench.sandbox.write(".tofurc", &main);
    fs::remove_dir_all(bench.sandbox.path("files/.terraform")).unwrap();
    let ran = bench.sandbox.run_with(&variables[..1], &["init", "-f", "files"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("(401)"), "the main file comes first: {ran:?}");
}

#[test]
fn constraints_without_a_version_are_one_error() {
    let bench = Bench::new();
    bench.registry(&["1.0.0", "2.1.0"]);
    bench.module("source = \"HOST/acme/network/aws\"\n  version = \">= 2.0, < 1.5\"");
    assert_eq!(
        bench.errors(),
        "error: files/main.tf:2: Module cannot be installed: the registry HOST has no version of HOST/acme/network/aws that matches `>= 2.0.0, < 1.5.0`\nhint: available: 2.1.0, 1.0.0\n"
    );
}

#[test]
fn a_failed_upgrade_leaves_what_is_installed() {
    let bench = Bench::new();
    bench.registry(&["1.0.0"]);
    bench.module("source = \"HOST/acme/network/aws\"");
    bench.init(&[]);
    let before = bench.list();
    bench.registry(&["1.0.0", "1.1.0"]);
    bench.site.put("/archives/network-1.1.0", Answer::of("no zip file"));
    let ran = bench.run(&["init", "-f", "files", "-upgrade"]);
    assert!(ran.one_error().contains("the package is not valid"), "{ran:?}");
    assert_eq!(bench.list(), before);
    assert!(!bench.init(&[]).contains("Downloading"), "the installed version is used");
}

#[test]
fn a_repository_that_calls_itself_is_an_error() {
    let bench = Bench::new();
    let repository = bench.repository();
    let directory = bench.sandbox.path("network.git");
    fs::write(directory.join("main.tf"), format!("module \"again\" {{\n  source = \"{repository}\"\n}}\n")).unwrap();
    commit(&directory);
    bench.module(&format!("source = \"{repository}\""));
    let errors = bench.errors();
    let expected = "error: files/.terraform/modules/m/main.tf:2: Module calls itself: ";
    assert!(errors.starts_with(expected) && errors.matches("error: ").count() == 1, "{errors}");
}

#[test]
fn links_out_of_a_repository_are_refused() {
    let bench = Bench::new();
    let repository = bench.repository();
    let directory = bench.sandbox.path("network.git");
    std::os::unix::fs::symlink("/etc", directory.join("modules/a/etc")).unwrap();
    commit(&directory);
    bench.module(&format!("source = \"{repository}\""));
    let errors = bench.errors();
    assert!(errors.contains("the symbolic link `modules/a/etc` leads out of the package"), "{errors}");
}

#[test]
fn a_submodule_and_a_depth_are_fetched_as_asked() {
    let bench = Bench::new();
    bench.repository();
    let commits = |arguments: &str| {
        bench.module(&format!("source = \"{}//modules/a?{arguments}\"", bench.repository_address()));
        bench.init(&[]);
        let directory = bench.sandbox.path("files/.terraform/modules/m");
        let output = Command::new("git").args(["rev-list", "--count", "HEAD"]).current_dir(directory).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(commits("depth=1"), "1");
    assert_eq!(commits("ref=main"), "2");
    assert_eq!(commits("ref=v1&depth=1"), "1");
    let written = fs::read_to_string(bench.sandbox.path("files/.terraform/modules/m/modules/a/main.tf")).unwrap();
    assert!(written.contains("version = 1"), "{written}");
}

#[test]
fn a_configuration_with_errors_fetches_nothing() {
    let bench = Bench::new();
    bench.registry(&["1.0.0"]);
    bench.module("source = \"HOST/acme/network/aws\"");
    bench.sandbox.write("files/other.tf", "resource \"a\" {\n");
    let errors = bench.errors();
    assert!(errors.starts_with("error: files/other.tf:"), "{errors}");
    assert_eq!(bench.site.requests(), []);
    assert!(!bench.sandbox.path("files/.terraform").exists());
}

#[test]
fn the_source_of_a_module_may_come_from_a_variable() {
    let bench = Bench::new();
    bench.registry(&["1.0.0"]);
    let text = format!(
        "variable \"name\" {{}}\nmodule \"m\" {{\n  source = \"{}/acme/${{var.name}}/aws\"\n}}\n",
        bench.site.host
    );
    bench.sandbox.write("files/main.tf", &text);
    assert!(bench.errors().contains("Variables not allowed"), "it has no value");
    assert!(bench.init(&["-var", "name=network"]).contains("Downloading HOST/acme/network/aws 1.0.0 for m..."));
    bench.sandbox.write("files/terraform.tfvars", "name = \"network\"\n");
    assert!(!bench.init(&[]).contains("Downloading"));
}

#[test]
fn an_archive_on_this_machine_and_a_directory_are_copied() {
    let bench = Bench::new();
    fs::write(bench.sandbox.path("m.zip"), zip(&[("main.tf", "")])).unwrap();
    bench.sandbox.write("shared/main.tf", "");
    for name in ["m.zip", "shared"] {
        bench.module(&format!("source = \"{}\"", bench.sandbox.path(name).display()));
        bench.init(&[]);
        assert!(bench.sandbox.path("files/.terraform/modules/m/main.tf").is_file(), "{name}");
    }
    bench.module(&format!("source = \"{}\"", bench.sandbox.path("").display()));
    assert!(bench.errors().contains("contains the configuration that it would be copied into"));
}

#[test]
fn a_page_may_refer_to_an_archive() {
    let bench = Bench::new();
    bench.site.put("/network?terraform-get=1", Answer::of("<meta name=\"terraform-get\" content=\"./m.zip//inner\">"));
    bench.site.put("/m.zip", Answer::of(zip(&[("inner/sub/main.tf", "")])));
    bench.module("source = \"https://HOST/network//sub\"");
    bench.init(&[]);
    assert!(bench.sandbox.path("files/.terraform/modules/m/sub/main.tf").is_file());
}
