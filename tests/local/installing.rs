//! Providers are installed from a registry and mirrors on loopback that follow the protocols, and from one that breaks
//! them in each way.

mod origins;
mod site;

use std::fs;
use std::path::Path;

use origins::{ELSEWHERE, HERE, network_mirror, oci_mirror, registry, zip_path};
use purlin::install::{Credentials, InstallError, InstallOptions, Installed, Installer, LOCK_FILE, LockFile};
use purlin::model::Provider;
use serde_json::{Value as Json, json};
use site::{Answer, Request, Site};
use tempfile::TempDir;

/// A folder for cache and lock, and a server.
struct World {
    folder: TempDir,
    site: Site,
}

impl World {
    async fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), site: Site::start().await }
    }

    fn options(&self) -> InstallOptions {
        InstallOptions {
            cache: self.folder.path().join("cache"),
            plugin_dirs: Vec::new(),
            credentials: Credentials::default(),
            roots: vec![self.site.root.clone()],
            platform: HERE.parse().unwrap(),
            lock_file: Some(self.folder.path().join(LOCK_FILE)),
        }
    }

    /// As a process would that was just started.
    async fn install(&self, provider: &Provider) -> Result<Installed, InstallError> {
        Installer::new(self.options()).obtain(provider).await
    }

    fn with_token(&self, token: &str) -> InstallOptions {
        let variable = (format!("TF_TOKEN_{}", self.site.host), token.to_owned());
        InstallOptions { credentials: Credentials::from_variables([variable]), ..self.options() }
    }

    /// A provider of the registry.
    fn thing(&self, version: &str) -> Provider {
        provider(&json!({"source": format!("{}/acme/thing", self.site.host), "version": version}))
    }

    /// What is in the cache under a version.
    fn cached(&self, host: &str, version: &str) -> bool {
        self.folder.path().join("cache").join(host).join("acme/thing").join(version).join(HERE).is_dir()
    }

    fn locked(&self, provider: &Provider) -> Option<String> {
        let lock = LockFile::read(&self.folder.path().join(LOCK_FILE)).unwrap();
        lock.get(provider).map(|locked| locked.version.to_string())
    }

    /// Every file below the cache that is no lock.
    fn leftovers(&self) -> Vec<String> {
        fn gather(folder: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    gather(&path, found);
                } else if path.extension().is_none_or(|extension| extension != "lock") {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = Vec::new();
        gather(&self.folder.path().join("cache"), &mut found);
        found
    }

    /// The error, of which nothing may be left over.
    async fn refused(&self, provider: &Provider) -> (String, String) {
        let error = self.install(provider).await.unwrap_err();
        assert_eq!(self.leftovers(), [""; 0], "{error}");
        assert_eq!(self.locked(provider), None, "{error}");
        self.told(&error)
    }

    /// An error and its hint, without what differs from run to run.
    fn told(&self, error: &InstallError) -> (String, String) {
        let field = error.field.map_or_else(String::new, |field| format!("{field}: "));
        let plain = |text: &str| {
            let text = text.replace(&self.site.host, "HOST");
            text.replace(&self.folder.path().display().to_string(), "FOLDER")
        };
        (plain(&format!("{field}{}", error.message)), plain(error.hint.as_deref().unwrap_or_default()))
    }
}

fn provider(spec: &Json) -> Provider {
    let mut whole = json!({"name": "thing", "source": "example.com/acme/thing"});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn says(installed: &Installed) -> String {
    let output = std::process::Command::new(&installed.program).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn paths(requests: &[Request]) -> Vec<&str> {
    requests.iter().map(|request| request.path.as_str()).collect()
}

#[tokio::test]
async fn a_registry_is_asked_once_and_what_it_gave_is_used_without_network() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0", "1.2.0", "2.0.0", "1.3.0-rc1"], "valid");
    let thing = world.thing("~> 1.0");
    let installed = world.install(&thing).await.unwrap();
    assert_eq!(says(&installed), "1.2.0");
    assert_eq!(installed.warnings, [""; 0]);
    assert_eq!(installed.hashes.len(), 2, "h1 and zh");
    assert!(world.cached(&world.site.host, "1.2.0"));
    assert!(!world.site.requests().is_empty());

    // The lock knows packages of other machines too, since the list of checksums is signed as a whole.
    let lock = LockFile::read(&world.folder.path().join(LOCK_FILE)).unwrap();
    let locked = lock.get(&thing).unwrap();
    assert_eq!((locked.version.to_string(), locked.hashes.len()), ("1.2.0".to_owned(), 3));
    assert_eq!(locked.constraint, "~> 1.0");

    // A newer version changes nothing, and nobody is asked.
    registry(&world.site, &["1.2.0", "1.9.0"], "valid");
    assert_eq!(says(&world.install(&thing).await.unwrap()), "1.2.0");
    assert_eq!(world.site.requests(), []);

    // What fits no more is chosen anew.
    assert_eq!(says(&world.install(&world.thing("~> 1.3")).await.unwrap()), "1.9.0");
    assert_eq!(world.locked(&thing).unwrap(), "1.9.0");
}

#[tokio::test]
async fn one_version_that_is_named_needs_no_lock_to_be_found_in_the_cache() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    world.install(&world.thing("1.0.0")).await.unwrap();
    world.site.requests();
    fs::remove_file(world.folder.path().join(LOCK_FILE)).unwrap();
    assert_eq!(says(&world.install(&world.thing("1.0.0")).await.unwrap()), "1.0.0");
    assert_eq!(world.site.requests(), []);
}

#[tokio::test]
async fn what_was_changed_in_the_cache_is_fetched_anew() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let thing = world.thing("");
    let installed = world.install(&thing).await.unwrap();
    fs::write(&installed.program, "#!/bin/sh\necho evil\n").unwrap();
    let again = world.install(&thing).await.unwrap();
    assert_eq!((again.program == installed.program, says(&again).as_str()), (true, "1.0.0"));
}

#[tokio::test]
async fn a_package_that_the_lock_does_not_know_is_refused() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let thing = world.thing("");
    world.install(&thing).await.unwrap();
    fs::remove_dir_all(world.folder.path().join("cache")).unwrap();
    let lock = world.folder.path().join(LOCK_FILE);
    let text = fs::read_to_string(&lock).unwrap();
    let other = serde_json::from_str::<Json>(&text).map(|mut lock| {
        let key = format!("{}/acme/thing", world.site.host);
        lock["providers"][&key]["hashes"] = json!([format!("zh:{}", "0".repeat(64))]);
        lock.to_string()
    });
    fs::write(&lock, other.unwrap()).unwrap();
    let (message, hint) = world.told(&world.install(&thing).await.unwrap_err());
    assert!(
        message
            .starts_with("the package of HOST/acme/thing 1.0.0 for linux_amd64 is not one that is locked: it is h1:")
    );
    assert!(hint.contains("`purlin provider lock` accepts it"), "{hint}");
    assert_eq!(world.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_pin_holds_whatever_the_registry_says() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let pinned = |digits: &str| Provider { checksums: vec![format!("zh:{digits}").into()], ..world.thing("") };
    let (message, _) = world.refused(&pinned(&"0".repeat(64))).await;
    assert!(message.starts_with("spec.checksums: the package of HOST/acme/thing 1.0.0 for linux_amd64 is not the one"));
    let right = pinned(&origins::sha256(&origins::package("1.0.0")));
    assert_eq!(says(&world.install(&right).await.unwrap()), "1.0.0");
    // In the cache the zip is gone, and its checksum is known all the same.
    world.site.requests();
    assert_eq!(says(&world.install(&right).await.unwrap()), "1.0.0");
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

/// Puts something wrong in the place of something right, one after the other, and compares what is told: how the error
/// begins, and what its hint holds. `THING` stands for the address of the provider.
async fn refuses(cases: &[(&str, Answer, &str, &str)]) {
    let world = World::new().await;
    for (path, answer, expected, hint) in cases {
        registry(&world.site, &["1.0.0"], "valid");
        world.site.put(*path, answer.clone());
        let (message, told) = world.refused(&world.thing("")).await;
        let message = message.replace("HOST/acme/thing", "THING");
        assert!(message.starts_with(expected), "{path}: {message}");
        assert!(told.contains(hint), "{path}: {message}: {told}");
        assert!(!message.contains('\n'), "{message}");
    }
    // After all that a good package is taken.
    registry(&world.site, &["1.0.0"], "valid");
    assert_eq!(says(&world.install(&world.thing("")).await.unwrap()), "1.0.0");
}

#[tokio::test]
async fn what_is_wrong_at_a_registry_is_one_clear_error() {
    const DISCOVERY: &str = "/.well-known/terraform.json";
    const LIST: &str = "/v1/providers/acme/thing/versions";
    const DOWNLOAD: &str = "/v1/providers/acme/thing/1.0.0/download/linux/amd64";
    let no_service = Answer::json(&json!({"modules.v1": "/"}));
    let old = Answer::json(&json!({"versions": [{"version": "1.0.0", "protocols": ["4.0"]}]}));
    let prerelease = Answer::json(&json!({"versions": [{"version": "2.0.0-rc1"}]}));
    let busy = Answer::status(429).with("Retry-After", "30");
    let failed = |why: &str| format!("the list of versions of THING cannot be fetched from https://HOST{LIST}: {why}");
    let (refused, limited, broken) = (
        failed("credentials are needed (401)"),
        failed("there were too many requests (429)"),
        failed("the server failed (503)"),
    );
    refuses(&[
        (
            DISCOVERY,
            Answer::status(404),
            "spec.source: HOST is no registry of providers: https://HOST/",
            "`spec.source`",
        ),
        (DISCOVERY, no_service, "spec.source: HOST is no registry of providers: it does not offer", "mirror"),
        (DISCOVERY, Answer::of("<html>"), "spec.package: the list of services cannot be read: expected", "address"),
        (LIST, Answer::status(401), &refused, "set TF_TOKEN_HOST"),
        (LIST, Answer::status(404), "spec.source: the registry HOST does not know THING", "correct `spec.source`"),
        (LIST, busy, &limited, "left alone for 30 s"),
        (LIST, Answer::status(503), &broken, ""),
        (LIST, old, "spec.source: no version of THING speaks the plugin protocol 5 or 6", ""),
        (LIST, prerelease, "spec.version: the registry HOST has only prereleases of THING: 2.0.0-rc1", "exactly"),
        (DOWNLOAD, Answer::status(404), "spec.version: there is no package of THING 1.0.0 for linux_amd64", "choose"),
    ])
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_package_is_one_clear_error() {
    const SUMS: &str = "/files/1.0.0/SHA256SUMS";
    const SIGNATURE: &str = "/files/1.0.0/SHA256SUMS.sig";
    const UNSIGNED: &str = "the signature of the checksums of THING 1.0.0 is not valid: ";
    const UNFETCHED: &str = "the package of THING 1.0.0 for linux_amd64 cannot be fetched from https://HOST/latest/";
    const OTHER: &str = "the package of THING 1.0.0 for linux_amd64 does not match its checksum: it is zh:";
    let zip = zip_path("1.0.0", HERE);
    let whole = origins::package("1.0.0");
    let half = whole.len() / 2;
    let stranger = Answer::of(origins::signature("stranger", b"anything"));
    let by_nobody = UNSIGNED.to_owned() + "none of the keys";
    let unreadable = UNSIGNED.to_owned() + "it cannot be read";
    let unencrypted = Answer::status(302).with("Location", "http://localhost:1/x.zip");
    let to_itself = Answer::status(302).with("Location", &zip);
    refuses(&[
        (
            SUMS,
            Answer::of("0000  other.zip\n"),
            "the list of checksums of THING 1.0.0 does not have `terr",
            "contradicts",
        ),
        (SIGNATURE, stranger, &by_nobody, "report it"),
        (SIGNATURE, Answer::of("nothing"), &unreadable, "report it"),
        (SIGNATURE, Answer::status(404), "the signature of the checksums of THING 1.0.0 is not there: https://", ""),
        (&zip, Answer::status(404), "the package of THING 1.0.0 for linux_amd64 is not there", ""),
        (&zip, Answer::of(whole.clone()).cut(half), UNFETCHED, "check network"),
        (&zip, Answer::of(&whole[..half]), OTHER, "cut or changed on its way"),
        (&zip, to_itself, UNFETCHED, ""),
        (&zip, unencrypted, UNFETCHED, ""),
    ])
    .await;
}

#[tokio::test]
async fn a_package_that_climbs_out_of_its_folder_is_refused_though_everybody_vouches_for_it() {
    let world = World::new().await;
    let root = "/mirror/example.com/acme/thing";
    network_mirror(&world.site, &["1.0.0"]);
    let mirrored = provider(&json!({"package": {"networkMirror": world.site.url("/mirror")}}));
    for (entries, expected) in [
        (
            &[("../../../evil", &b"x"[..])][..],
            "the package is not valid: `../../../evil` would be written outside of its folder",
        ),
        (&[("README", &b"x"[..])][..], "the package holds no program `terraform-provider-thing`"),
    ] {
        let package = origins::zip(entries);
        let hashes = [format!("zh:{}", origins::sha256(&package))];
        let archives = json!({"archives": {HERE: {"url": "1.0.0.zip", "hashes": hashes}}});
        world.site.put(format!("{root}/1.0.0.json"), Answer::json(&archives));
        world.site.put(format!("{root}/1.0.0.zip"), Answer::of(package));
        let (message, _) = world.refused(&mirrored).await;
        assert_eq!(message, format!("spec.package: {expected}"));
    }
    assert!(!world.folder.path().join("evil").exists());
}

#[tokio::test]
async fn a_token_goes_to_its_host_and_no_further() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let elsewhere = Site::start().await;
    elsewhere.put("/x.zip", Answer::of(origins::package("1.0.0")));
    let installer = Installer::new(InstallOptions {
        roots: vec![world.site.root.clone(), elsewhere.root.clone()],
        ..world.with_token("s3cret")
    });
    world.site.put(zip_path("1.0.0", HERE), Answer::status(302).with("Location", &elsewhere.url("/x.zip")));
    installer.obtain(&world.thing("")).await.unwrap();
    let requests = world.site.requests();
    let with_token = |request: &&Request| request.authorization.as_deref() == Some("Bearer s3cret");
    let authorized: Vec<&str> = requests.iter().filter(with_token).map(|request| request.path.as_str()).collect();
    assert_eq!(authorized.first(), Some(&"/.well-known/terraform.json"));
    assert!(authorized.iter().all(|path| path.starts_with("/.well-known/") || path.starts_with("/v1/")));
    assert_eq!(elsewhere.requests(), [Request { path: "/x.zip".into(), authorization: None }]);
    // A wrong one is named by its variable, and is not told.
    world.site.change("/v1/providers/acme/thing/versions", |answer| *answer = Answer::status(401));
    let error = Installer::new(world.with_token("wr0ng")).install(&world.thing("> 1.0.0"), None).await.unwrap_err();
    let hint = error.hint.clone().unwrap();
    assert!(error.message.contains("the credentials are refused (401)") && hint.contains("TF_TOKEN_"), "{error}");
    assert!(!format!("{error:?}").contains("wr0ng"));
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let options = InstallOptions { roots: Vec::new(), ..world.options() };
    let error = Installer::new(options).obtain(&world.thing("")).await.unwrap_err();
    assert!(error.message.to_lowercase().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_network_mirror_serves_providers_of_all_registries() {
    let world = World::new().await;
    network_mirror(&world.site, &["1.0.0", "1.1.0", "junk"]);
    let mirrored =
        |version: &str| provider(&json!({"version": version, "package": {"networkMirror": world.site.url("/mirror")}}));
    let installed = world.install(&mirrored("< 1.1")).await.unwrap();
    assert_eq!((says(&installed).as_str(), installed.hashes.len()), ("1.0.0", 2));
    let (message, hint) = world.told(&world.install(&mirrored("~> 3.0")).await.unwrap_err());
    assert_eq!(
        message,
        "spec.version: the mirror https://HOST/mirror/ has no version of example.com/acme/thing that fits `~> 3.0`"
    );
    assert_eq!(hint, "available: 1.1.0, 1.0.0");
    let foreign = InstallOptions { platform: ELSEWHERE.parse().unwrap(), ..world.options() };
    let error = Installer::new(foreign).install(&mirrored("1.1.0"), None).await.unwrap_err();
    let (message, hint) = world.told(&error);
    assert_eq!(message, "spec.version: there is no package of example.com/acme/thing 1.1.0 for darwin_arm64");
    assert_eq!(hint, "there are packages for linux_amd64");
}

#[tokio::test]
async fn an_oci_registry_gives_out_tokens_and_packages() {
    let world = World::new().await;
    oci_mirror(&world.site, &["1.0.0", "1.1.0+build.5"]);
    let template = format!("{}/tofu/${{hostname}}/${{namespace}}/${{type}}", world.site.host);
    let mirrored = provider(&json!({"package": {"ociMirror": template}}));
    let installed = world.install(&mirrored).await.unwrap();
    assert_eq!(says(&installed), "1.1.0+build.5");
    let requests = world.site.requests();
    assert_eq!(paths(&requests)[1], "/token?service=tests&scope=repository%3Ax%3Apull");
    assert!(requests.last().unwrap().path.starts_with("/storage/"));
    assert_eq!(says(&world.install(&mirrored).await.unwrap()), "1.1.0+build.5");
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
            "spec.version: there is no package of example.com/acme/thing 1.0.0 for linux_amd64",
        ),
    ] {
        world.site.put(index, Answer::json(&change));
        let (message, _) = world.refused(&mirrored).await;
        assert!(message.starts_with(expected), "{message}");
    }
}

#[tokio::test]
async fn several_at_once_make_one_package() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let thing = world.thing("");
    // Each as a process of its own would.
    let all = futures::future::join_all((0..8).map(|_| world.install(&thing))).await;
    assert!(all.iter().all(|installed| says(installed.as_ref().unwrap()) == "1.0.0"));
    assert_eq!(world.leftovers().len(), 3, "a license, a program, a receipt");
}

#[tokio::test]
async fn what_is_downloaded_stays_when_others_wait_for_it() {
    let world = World::new().await;
    registry(&world.site, &["1.0.0"], "valid");
    let thing = world.thing("");
    futures::future::join_all((0..4).map(|_| world.install(&thing))).await;
    let requests = world.site.requests();
    let zips = requests.iter().filter(|request| request.path == zip_path("1.0.0", HERE)).count();
    assert_eq!(zips, 1, "who waited for the package finds it in the cache");
}
