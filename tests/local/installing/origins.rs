//! Responses of registries and mirrors in tests.

use std::io::{Cursor, Write as _};

use pgp::composed::{ArmorOptions, Deserializable as _, DetachedSignature, SignedPublicKey, SignedSecretKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::types::Password;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::site::{Answer, Site};

/// The platform of the test packages, and another one.
pub(super) const HERE: &str = "linux_amd64";
pub(super) const ELSEWHERE: &str = "darwin_arm64";

pub(super) fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    // Compression would only slow the tests down.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in entries {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Returns the package of a version of `acme/thing`. Its program prints the version.
pub(super) fn package(version: &str) -> Vec<u8> {
    let program = format!("#!/bin/sh\necho {version}\n");
    zip(&[("LICENSE", b"free"), ("terraform-provider-thing_v1", program.as_bytes())])
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(name: &str) -> SignedSecretKey {
    let path = format!("{}/tests/support/keys/{name}.secret.asc", env!("CARGO_MANIFEST_DIR"));
    SignedSecretKey::from_string(&std::fs::read_to_string(path).unwrap()).unwrap().0
}

fn armored(key: &SignedSecretKey) -> String {
    SignedPublicKey::from(key.clone()).to_armored_string(ArmorOptions::default()).unwrap()
}

/// A detached signature by one of the keys in `tests/support/keys`.
pub(super) fn signature(by: &str, content: &[u8]) -> Vec<u8> {
    let key = key(by);
    let rng = rand::thread_rng();
    let signed =
        DetachedSignature::sign_binary_data(rng, &key.primary_key, &Password::empty(), HashAlgorithm::Sha512, content);
    signed.unwrap().to_armored_bytes(ArmorOptions::default()).unwrap()
}

/// Serves a registry with these versions of `acme/thing`. The key signs the checksums.
pub(super) fn registry(site: &Site, versions: &[&str], signed_by: &str) {
    site.put("/.well-known/terraform.json", Answer::json(&json!({"providers.v1": "/v1/providers/"})));
    let offered: Vec<Json> = versions.iter().map(|v| json!({"version": v, "protocols": ["5.0", "6.0"]})).collect();
    site.put("/v1/providers/acme/thing/versions", Answer::json(&json!({"versions": offered})));
    for version in versions {
        release(site, version, signed_by);
    }
}

/// The address of a zip in the registry.
pub(super) fn zip_path(version: &str, platform: &str) -> String {
    format!("/files/terraform-provider-thing_{version}_{platform}.zip")
}

fn release(site: &Site, version: &str, signed_by: &str) {
    let here = package(version);
    let elsewhere = zip(&[("terraform-provider-thing", b"other machine")]);
    let file = |platform: &str| format!("terraform-provider-thing_{version}_{platform}.zip");
    let sums = format!("{}  {}\n{}  {}\n", sha256(&here), file(HERE), sha256(&elsewhere), file(ELSEWHERE));
    let keys = json!({"gpg_public_keys": [{"key_id": "X", "ascii_armor": armored(&key(signed_by))}]});
    let download = json!({
        "protocols": ["5.0"], "os": "linux", "arch": "amd64", "filename": file(HERE),
        // The URL of the package is absolute, and redirects.
        "download_url": site.url(&format!("/latest/{}", file(HERE))),
        "shasum": sha256(&here),
        "shasums_url": site.url(&format!("/files/{version}/SHA256SUMS")),
        "shasums_signature_url": format!("/files/{version}/SHA256SUMS.sig"),
        "signing_keys": keys,
    });
    site.put(format!("/v1/providers/acme/thing/{version}/download/linux/amd64"), Answer::json(&download));
    site.put(format!("/latest/{}", file(HERE)), Answer::status(302).with("Location", &zip_path(version, HERE)));
    site.put(zip_path(version, HERE), Answer::of(here));
    site.put(format!("/files/{version}/SHA256SUMS"), Answer::of(sums.clone()));
    site.put(format!("/files/{version}/SHA256SUMS.sig"), Answer::of(signature(signed_by, sums.as_bytes())));
}

/// Serves a network mirror at `/mirror/` with these versions of `example.com/acme/thing`.
pub(super) fn network_mirror(site: &Site, versions: &[&str]) {
    let root = "/mirror/example.com/acme/thing";
    let named: serde_json::Map<String, Json> = versions.iter().map(|v| ((*v).to_owned(), json!({}))).collect();
    site.put(format!("{root}/index.json"), Answer::json(&json!({"versions": named})));
    for version in versions {
        let package = package(version);
        let hash = format!("zh:{}", sha256(&package));
        let archives = json!({"archives": {HERE: {"url": format!("{version}.zip"), "hashes": ["h9:unknown", hash]}}});
        site.put(format!("{root}/{version}.json"), Answer::json(&archives));
        site.put(format!("{root}/{version}.zip"), Answer::of(package));
    }
}

/// Serves an OCI registry with these versions in `tofu/example.com/acme/thing`. It requires a token.
pub(super) fn oci_mirror(site: &Site, versions: &[&str]) {
    let root = "/v2/tofu/example.com/acme/thing";
    let challenge = format!("Bearer realm=\"{}\",service=\"tests\",scope=\"repository:x:pull\"", site.url("/token"));
    let refused = Answer::status(401).with("WWW-Authenticate", &challenge);
    let put = |path: String, answer: Answer| site.put(path, answer.only_for("Bearer let-me-in", refused.clone()));
    site.put("/token?service=tests&scope=repository%3Ax%3Apull", Answer::json(&json!({"token": "let-me-in"})));
    let tags: Vec<String> = versions.iter().map(|version| version.replace('+', "_")).collect();
    let next = format!("<{root}/tags/list?last=x>; rel=\"next\"");
    let list = |tags: &[String]| Answer::json(&json!({"name": "x", "tags": tags}));
    put(format!("{root}/tags/list"), list(&["latest".to_owned()]).with("Link", &next));
    put(format!("{root}/tags/list?last=x"), list(&tags));
    for (version, tag) in versions.iter().zip(&tags) {
        let zip = package(version);
        let blob = format!("sha256:{}", sha256(&zip));
        let kind = "application/vnd.opentofu.provider-target";
        let layers = json!([{"mediaType": "archive/zip", "digest": blob, "size": zip.len()}]);
        let manifest = json!({"schemaVersion": 2, "artifactType": kind, "layers": layers}).to_string();
        let digest = format!("sha256:{}", sha256(manifest.as_bytes()));
        let index = json!({
            "schemaVersion": 2, "artifactType": "application/vnd.opentofu.provider",
            "manifests": [{
                "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": kind, "digest": digest,
                "size": manifest.len(), "platform": {"os": "linux", "architecture": "amd64"},
            }],
        });
        put(format!("{root}/manifests/{tag}"), Answer::json(&index));
        put(format!("{root}/manifests/{digest}"), Answer::of(manifest));
        put(format!("{root}/blobs/{blob}"), Answer::status(307).with("Location", &format!("/storage/{tag}")));
        site.put(format!("/storage/{tag}"), Answer::of(zip));
    }
}
