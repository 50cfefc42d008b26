//! Installation of providers from a registry and mirrors on loopback, with valid and invalid responses.

pub(crate) mod origins;
pub(crate) mod site;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use origins::{ELSEWHERE, HERE, network_mirror, oci_mirror, registry, zip_path};
use purlin::driver::provider::requirement;
use purlin::install::{Credentials, InstallError, InstallOptions, InstalledProvider, Installer, LOCK_FILE, LockFile};
use purlin::model::Provider;
use serde_json::{Value as Json, json};
use site::{Answer, Request, Site};
use tempfile::TempDir;

/// A directory for cache and lock, and a server.
struct World {
    directory: TempDir,
    site: Site,
}

impl World {
    async fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), site: Site::start().await }
    }

    fn options(&self) -> InstallOptions {
        InstallOptions {
            cache: self.directory.path().join("cache"),
            plugin_dirs: Vec::new(),
            credentials: Credentials::default(),
            roots: vec![self.site.root.clone()],
            platform: HERE.parse().unwrap(),
            lock_file: Some(self.directory.path().join(LOCK_FILE)),
            installed: None,
        }
    }

    /// Installs a provider with a new installer, as a new process does.
    async fn install(&self, provider: &Provider) -> Result<InstalledProvider, InstallError> {
        Installer::new(self.options()).install_and_lock(&requirement(provider)).await
    }

    fn with_token(&self, token: &str) -> InstallOptions {
        let variable = (format!("TF_TOKEN_{}", self.site.host), token.to_owned());
        InstallOptions { credentials: Credentials::from_variables([variable]), ..self.options() }
    }

    /// Returns a provider of the registry.
    fn thing(&self, version: &str) -> Provider {
        provider(&json!({"source": format!("{}/acme/thing", self.site.host), "version": version}))
    }

    /// Whether the cache contains a version.
    fn cached(&self, host: &str, version: &str) -> bool {
        self.directory.path().join("cache").join(host).join("acme/thing").join(version).join(HERE).is_dir()
    }

    fn locked(&self, provider: &Provider) -> Option<String> {
        let lock = LockFile::read(&self.directory.path().join(LOCK_FILE)).unwrap();
        lock.get(&provider.source).map(|locked| locked.version.to_string())
    }

    /// Returns the names of all files in the cache that are not locks.
    fn cached_files(&self) -> Vec<String> {
        fn gather(directory: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    gather(&path, found);
                } else if path.extension().is_none_or(|extension| extension != "lock") {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = Vec::new();
        gather(&self.directory.path().join("cache"), &mut found);
        found
    }

    /// Returns the error of an installation, and checks that no files remain.
    async fn install_error(&self, provider: &Provider) -> (String, String) {
        let error = self.install(provider).await.unwrap_err();
        assert_eq!(self.cached_files(), [""; 0], "{error}");
        assert_eq!(self.locked(provider), None, "{error}");
        self.describe(&error)
    }

    /// Returns an error and its hint, without parts that differ between runs.
    fn describe(&self, error: &InstallError) -> (String, String) {
        let field = error.field.map_or_else(String::new, |field| format!("{field}: "));
        let plain = |text: &str| {
            let text = text.replace(&self.site.host, "HOST");
            text.replace(&self.directory.path().display().to_string(), "DIRECTORY")
        };
        (plain(&format!("{field}{}", error.message)), plain(error.hint.as_deref().unwrap_or_default()))
    }
}

fn provider(spec: &Json) -> Provider {
    let mut whole = json!({"name": "thing", "source": "example.com/acme/thing"});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn provider_output(installed: &InstalledProvider) -> String {
    let output = std::process::Command::new(&installed.program).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn paths(requests: &[Request]) -> Vec<&str> {
    requests.iter().map(|request| request.path.as_str()).collect()
}

#[tokio::test]
async fn a_downloaded_package_is_used_without_the_network() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0", "1.2.0", "2.0.0", "1.3.0-rc1"], "valid");
    let thing = world.thing("~> 1.0");
    let installed = world.install(&thing).await.unwrap();
    assert_eq!(provider_output(&installed), "1.2.0");
    assert_eq!(installed.warnings, [""; 0]);
    assert_eq!(installed.hashes.len(), 2, "h1 and zh");
    assert!(world.cached(&world.site.host, "1.2.0"));
    assert!(!world.site.requests().is_empty());

    // The lock also contains packages of other platforms, because the whole list of checksums is signed.
    let lock = LockFile::read(&world.directory.path().join(LOCK_FILE)).unwrap();
    let locked = lock.get(&thing.source).unwrap();
    assert_eq!((locked.version.to_string(), locked.hashes.len()), ("1.2.0".to_owned(), 3));
    assert_eq!(locked.constraint, "~> 1.0");

    // A newer version has no effect, and the registry is not called.
    registry(&world.site, &["1.2.0", "1.9.0"], "valid");
    assert_eq!(provider_output(&world.install(&thing).await.unwrap()), "1.2.0");
    assert_eq!(world.site.requests(), []);

    // A version that no longer matches is replaced.
    assert_eq!(provider_output(&world.install(&world.thing("~> 1.3")).await.unwrap()), "1.9.0");
    assert_eq!(world.locked(&thing).unwrap(), "1.9.0");
}

#[tokio::test]
async fn an_exact_version_is_found_in_the_cache_without_a_lock() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    world.install(&world.thing("1.0.0")).await.unwrap();
    world.site.requests();
    fs::remove_file(world.directory.path().join(LOCK_FILE)).unwrap();
    assert_eq!(provider_output(&world.install(&world.thing("1.0.0")).await.unwrap()), "1.0.0");
    assert_eq!(world.site.requests(), []);
}

#[tokio::test]
async fn a_modified_package_in_the_cache_is_downloaded_again() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let thing = world.thing("");
    let installed = world.install(&thing).await.unwrap();
    fs::write(&installed.program, "#!/bin/sh\necho evil\n").unwrap();
    let again = world.install(&thing).await.unwrap();
    assert_eq!((again.program == installed.program, provider_output(&again).as_str()), (true, "1.0.0"));
}

#[tokio::test]
async fn a_package_that_is_not_in_the_lock_is_rejected() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let thing = world.thing("");
    world.install(&thing).await.unwrap();
    fs::remove_dir_all(world.directory.path().join("cache")).unwrap();
    let lock = world.directory.path().join(LOCK_FILE);
    let text = fs::read_to_string(&lock).unwrap();
    let other = serde_json::from_str::<Json>(&text).map(|mut lock| {
        let key = format!("{}/acme/thing", world.site.host);
        lock["providers"][&key]["hashes"] = json!([format!("zh:{}", "0".repeat(64))]);
        lock.to_string()
    });
    fs::write(&lock, other.unwrap()).unwrap();
    let (message, hint) = world.describe(&world.install(&thing).await.unwrap_err());
    assert!(message.starts_with(
        "the package of HOST/acme/thing 1.0.0 for linux_amd64 does not match the locked checksums: its checksum is h1:"
    ));
    assert!(hint.contains("`purlin provider lock` accepts it"), "{hint}");
    assert_eq!(world.cached_files(), [""; 0]);
}

#[tokio::test]
async fn pinned_checksums_override_the_registry() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let pinned = |digits: &str| Provider { checksums: vec![format!("zh:{digits}").into()], ..world.thing("") };
    let (message, _) = world.install_error(&pinned(&"0".repeat(64))).await;
    assert!(message.starts_with(
        "spec.checksums: the package of HOST/acme/thing 1.0.0 for linux_amd64 does not match the pinned checksums"
    ));
    let right = pinned(&origins::sha256(&origins::package("1.0.0")));
    assert_eq!(provider_output(&world.install(&right).await.unwrap()), "1.0.0");
    // The cache contains no zip file, but its checksum.
    world.site.requests();
    assert_eq!(provider_output(&world.install(&right).await.unwrap()), "1.0.0");
    assert_eq!(world.site.requests(), []);
}

#[tokio::test]
async fn an_expired_key_is_a_warning() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "expired");
    let installed = world.install(&world.thing("")).await.unwrap();
    assert_eq!(installed.warnings.len(), 1);
    assert!(installed.warnings[0].ends_with(", which has expired"), "{:?}", installed.warnings);
}

/// Replaces one valid response at a time with an invalid one, and compares the start of the error and a part of its
/// hint. `THING` is the address of the provider.
async fn check_rejections(cases: &[(&str, Answer, &str, &str)]) {
    let world = World::new().await;
    for (path, answer, expected, hint) in cases {
        registry(&world.site, &["1.0.0"], "valid");
        world.site.put(*path, answer.clone());
        let (message, actual_hint) = world.install_error(&world.thing("")).await;
        let message = message.replace("HOST/acme/thing", "THING");
        assert!(message.starts_with(expected), "{path}: {message}");
        assert!(actual_hint.contains(hint), "{path}: {message}: {actual_hint}");
        assert!(!message.contains('\n'), "{message}");
    }
    // After all failures, a valid package is installed.
    registry(&world.site, &["1.0.0"], "valid");
    assert_eq!(provider_output(&world.install(&world.thing("")).await.unwrap()), "1.0.0");
}

#[tokio::test]
async fn each_registry_failure_is_one_error() {
    const DISCOVERY: &str = "/.well-known/terraform.json";
    const LIST: &str = "/v1/providers/acme/thing/versions";
    const DOWNLOAD: &str = "/v1/providers/acme/thing/1.0.0/download/linux/amd64";
    let no_service = Answer::json(&json!({"modules.v1": "/"}));
    let old = Answer::json(&json!({"versions": [{"version": "1.0.0", "protocols": ["4.0"]}]}));
    let prerelease = Answer::json(&json!({"versions": [{"version": "2.0.0-rc1"}]}));
    let busy = Answer::status(429).with("Retry-After", "30");
    let failed = |why: &str| format!("the list of versions of THING cannot be fetched from https://HOST{LIST}: {why}");
    let (refused, limited, broken) = (
        failed("credentials are required (401)"),
        failed("too many requests (429)"),
        failed("the server failed (503)"),
    );
    check_rejections(&[
        (
            DISCOVERY,
            Answer::status(404),
            "spec.source: HOST is not a provider registry: https://HOST/",
            "`spec.source`",
        ),
        (DISCOVERY, no_service, "spec.source: HOST is not a provider registry: it does not offer", "mirror"),
        (DISCOVERY, Answer::of("<html>"), "spec.package: the list of services cannot be read: expected", "address"),
        (LIST, Answer::status(401), &refused, "set TF_TOKEN_HOST"),
        (LIST, Answer::status(404), "spec.source: the registry HOST does not have THING", "correct `spec.source`"),
        (LIST, busy, &limited, "retry after 30 s"),
        (LIST, Answer::status(503), &broken, ""),
        (LIST, old, "spec.source: no version of THING supports plugin protocol 5 or 6", ""),
        (LIST, prerelease, "spec.version: the registry HOST has only prereleases of THING: 2.0.0-rc1", "exactly"),
        (DOWNLOAD, Answer::status(404), "spec.version: THING 1.0.0 has no package for linux_amd64", "choose"),
    ])
    .await;
}

#[tokio::test]
async fn each_package_failure_is_one_error() {
    const SUMS: &str = "/files/1.0.0/SHA256SUMS";
    const SIGNATURE: &str = "/files/1.0.0/SHA256SUMS.sig";
    const UNSIGNED: &str = "the signature of the checksums of THING 1.0.0 is not valid: ";
    const UNFETCHED: &str = "the package of THING 1.0.0 for linux_amd64 cannot be fetched from https://HOST/latest/";
    const OTHER: &str = "the package of THING 1.0.0 for linux_amd64 does not match its checksum: it is zh:";
    let zip = zip_path("1.0.0", HERE);
    let whole = origins::package("1.0.0");
    let half = whole.len() / 2;
    let stranger = Answer::of(origins::signature("stranger", b"anything"));
    let unsigned = UNSIGNED.to_owned() + "none of the registry's signing keys";
    let unreadable = UNSIGNED.to_owned() + "it cannot be parsed";
    let unencrypted = Answer::status(302).with("Location", "http://localhost:1/x.zip");
    let to_itself = Answer::status(302).with("Location", &zip);
    check_rejections(&[
        (
            SUMS,
            Answer::of("0000  other.zip\n"),
            "the list of checksums of THING 1.0.0 does not match `terr",
            "inconsistent",
        ),
        (SIGNATURE, stranger, &unsigned, "report this"),
        (SIGNATURE, Answer::of("nothing"), &unreadable, "report this"),
        (SIGNATURE, Answer::status(404), "the signature of the checksums of THING 1.0.0 does not exist: https://", ""),
        (&zip, Answer::status(404), "the package of THING 1.0.0 for linux_amd64 does not exist", ""),
        (&zip, Answer::of(whole.clone()).cut(half), UNFETCHED, "check the network"),
        (&zip, Answer::of(&whole[..half]), OTHER, "truncated or modified in transit"),
        (&zip, to_itself, UNFETCHED, ""),
        (&zip, unencrypted, UNFETCHED, ""),
    ])
    .await;
}

#[tokio::test]
async fn a_package_with_paths_outside_of_its_directory_is_rejected_despite_valid_checksums() {
    let world = World::new().await;
    let root = "/mirror/example.com/acme/thing";
    network_mirror(&world.site, &["1.0.0"]);
    let mirrored = provider(&json!({"package": {"networkMirror": world.site.url("/mirror")}}));
    for (entries, expected) in [
        (
            &[("../../../evil", &b"x"[..])][..],
            "the package is not valid: `../../../evil` would be written outside of the package directory",
        ),
        (&[("README", &b"x"[..])][..], "the package does not contain the program `terraform-provider-thing`"),
    ] {
        let package = origins::zip(entries);
        let hashes = [format!("zh:{}", origins::sha256(&package))];
        let archives = json!({"archives": {HERE: {"url": "1.0.0.zip", "hashes": hashes}}});
        world.site.put(format!("{root}/1.0.0.json"), Answer::json(&archives));
        world.site.put(format!("{root}/1.0.0.zip"), Answer::of(package));
        let (message, _) = world.install_error(&mirrored).await;
        assert_eq!(message, format!("spec.package: {expected}"));
    }
    assert!(!world.directory.path().join("evil").exists());
}

#[tokio::test]
async fn a_token_is_sent_only_to_its_host() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let elsewhere = Site::start().await;
    elsewhere.put("/x.zip", Answer::of(origins::package("1.0.0")));
    let installer = Installer::new(InstallOptions {
        roots: vec![world.site.root.clone(), elsewhere.root.clone()],
        ..world.with_token("s3cret")
    });
    world.site.put(zip_path("1.0.0", HERE), Answer::status(302).with("Location", &elsewhere.url("/x.zip")));
    installer.install_and_lock(&requirement(&world.thing(""))).await.unwrap();
    let requests = world.site.requests();
    let with_token = |request: &&Request| request.authorization.as_deref() == Some("Bearer s3cret");
    let authorized: Vec<&str> = requests.iter().filter(with_token).map(|request| request.path.as_str()).collect();
    assert_eq!(authorized.first(), Some(&"/.well-known/terraform.json"));
    assert!(authorized.iter().all(|path| path.starts_with("/.well-known/") || path.starts_with("/v1/")));
    assert_eq!(elsewhere.requests(), [Request { path: "/x.zip".into(), authorization: None }]);
    // The error names the variable of a wrong token and does not show the token.
    world.site.change("/v1/providers/acme/thing/versions", |answer| *answer = Answer::status(401));
    let error = Installer::new(world.with_token("wr0ng"))
        .install(&requirement(&world.thing("> 1.0.0")), None)
        .await
        .unwrap_err();
    let hint = error.hint.clone().unwrap();
    assert!(error.message.contains("the credentials were rejected (401)") && hint.contains("TF_TOKEN_"), "{error}");
    assert!(!format!("{error:?}").contains("wr0ng"));
}

/// The chart sets both variables if there is a `caBundle`.
#[tokio::test]
async fn certificates_of_a_file_and_of_a_mounted_config_map_are_trusted() {
    let (world, other) = (World::new().await, World::new().await);
    registry(&world.site, &["1.0.0"], "valid");
    let directory = world.directory.path();
    let manifest = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: {{ name: thing }}\nspec: {{ source: {host} }}\n",
        host = format_args!("{}/acme/thing", world.site.host)
    );
    fs::write(directory.join("thing.yaml"), manifest).unwrap();
    fs::write(directory.join("system.crt"), &other.site.root).unwrap();
    // As the kubelet mounts a ConfigMap.
    let mounted = directory.join("mounted");
    fs::create_dir_all(mounted.join("..2026")).unwrap();
    fs::write(mounted.join("..2026/ca.crt"), &world.site.root).unwrap();
    symlink("..2026", mounted.join("..data")).unwrap();
    symlink("..data/ca.crt", mounted.join("ca.crt")).unwrap();
    let install = |certificates: Option<PathBuf>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_purlin"));
        command.args(["provider", "install", "-f", "thing.yaml"]).current_dir(directory);
        command.env("PURLIN_PLUGIN_CACHE", directory.join("cache")).env_remove("PURLIN_PLUGIN_DIR");
        command.env("SSL_CERT_FILE", directory.join("system.crt")).env_remove("SSL_CERT_DIR");
        command.envs(certificates.map(|path| ("SSL_CERT_DIR", path)));
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    let output = install(None).await.unwrap();
    assert_eq!((output.status.code(), world.site.requests()), (Some(1), Vec::new()));
    let output = install(Some(mounted)).await.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(paths(&world.site.requests()).contains(&"/v1/providers/acme/thing/versions"), "{error}");
}

#[tokio::test]
async fn an_untrusted_certificate_is_rejected() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let options = InstallOptions { roots: Vec::new(), ..world.options() };
    let error = Installer::new(options).install_and_lock(&requirement(&world.thing(""))).await.unwrap_err();
    assert!(error.message.to_lowercase().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_network_mirror_serves_providers_of_all_registries() {
    let world = World::new().await;
    network_mirror(&world.site, &["1.0.0", "1.1.0", "junk"]);
    let mirrored =
        |version: &str| provider(&json!({"version": version, "package": {"networkMirror": world.site.url("/mirror")}}));
    let installed = world.install(&mirrored("< 1.1")).await.unwrap();
    assert_eq!((provider_output(&installed).as_str(), installed.hashes.len()), ("1.0.0", 2));
    let (message, hint) = world.describe(&world.install(&mirrored("~> 3.0")).await.unwrap_err());
    assert_eq!(
        message,
        "spec.version: the mirror https://HOST/mirror/ has no version of example.com/acme/thing that matches `~> 3.0`"
    );
    assert_eq!(hint, "available: 1.1.0, 1.0.0");
    let foreign = InstallOptions { platform: ELSEWHERE.parse().unwrap(), ..world.options() };
    let error = Installer::new(foreign).install(&requirement(&mirrored("1.1.0")), None).await.unwrap_err();
    let (message, hint) = world.describe(&error);
    assert_eq!(message, "spec.version: example.com/acme/thing 1.1.0 has no package for darwin_arm64");
    assert_eq!(hint, "packages exist for linux_amd64");
}

#[tokio::test]
async fn an_oci_registry_serves_tokens_and_packages() {
    let world = World::new().await;
    oci_mirror(&world.site, &["1.0.0", "1.1.0+build.5"]);
    let template = format!("{}/tofu/${{hostname}}/${{namespace}}/${{type}}", world.site.host);
    let mirrored = provider(&json!({"package": {"ociMirror": template}}));
    let installed = world.install(&mirrored).await.unwrap();
    assert_eq!(provider_output(&installed), "1.1.0+build.5");
    let requests = world.site.requests();
    assert_eq!(paths(&requests)[1], "/token?service=tests&scope=repository%3Ax%3Apull");
    assert!(requests.last().unwrap().path.starts_with("/storage/"));
    assert_eq!(provider_output(&world.install(&mirrored).await.unwrap()), "1.1.0+build.5");
    assert_eq!(world.site.requests(), []);

    let world = World::new().await;
    oci_mirror(&world.site, &["1.0.0"]);
    let template = format!("{}/tofu/example.com/acme/thing", world.site.host);
    let mirrored = provider(&json!({"package": {"ociMirror": template}}));
    let index = "/v2/tofu/example.com/acme/thing/manifests/1.0.0";
    for (change, expected) in [
        (
            json!({"artifactType": "image", "manifests": []}),
            "spec.package.ociMirror: the index of HOST/tofu/example.com/acme/thing:1.0.0 is of type `image`",
        ),
        (
            json!({"artifactType": "application/vnd.opentofu.provider", "manifests": []}),
            "spec.version: example.com/acme/thing 1.0.0 has no package for linux_amd64",
        ),
    ] {
        world.site.put(index, Answer::json(&change));
        let (message, _) = world.install_error(&mirrored).await;
        assert!(message.starts_with(expected), "{message}");
    }
}

#[tokio::test]
async fn parallel_installations_create_one_package() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let thing = world.thing("");
    // Each installation uses its own installer, like separate processes.
    let all = futures::future::join_all((0..8).map(|_| world.install(&thing))).await;
    assert!(all.iter().all(|installed| provider_output(installed.as_ref().unwrap()) == "1.0.0"));
    assert_eq!(world.cached_files().len(), 3, "a license, a program, a receipt");
}

#[tokio::test]
async fn parallel_installations_download_a_package_once() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let thing = world.thing("");
    futures::future::join_all((0..4).map(|_| world.install(&thing))).await;
    let requests = world.site.requests();
    let zips = requests.iter().filter(|request| request.path == zip_path("1.0.0", HERE)).count();
    assert_eq!(zips, 1, "waiting installations use the package in the cache");
}
