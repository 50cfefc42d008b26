//! The provider registry protocol, `providers.v1`.
//!
//! The package is verified against its checksum, the checksum against the list of checksums, and the list against its
//! signature. The keys come from the registry too, so this is only as secure as the TLS connection to its host; pinned
//! and locked checksums add security.

use std::collections::BTreeMap;

use fetch::{Credentials, Http, HttpRequest, display_url, token_variable};
use reqwest::Url;
use semver::Version;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::network::no_package;
use super::{LocatedPackage, PackageLocation};
use crate::install::address::Source;
use crate::install::signature::{self, Key};
use crate::install::{Hash, InstallError, Platform};
use process::Clock;

/// The supported major versions of the plugin protocol.
const PROTOCOLS: [&str; 2] = ["5", "6"];

/// As in OpenTofu, packages of this registry may be unsigned: it signs nothing itself and only publishes the keys that
/// authors have submitted.
const MAY_BE_UNSIGNED: &str = "registry.opentofu.org";

/// A registry for one provider.
pub struct Registry<'a> {
    pub source: &'a Source,
    pub platform: &'a Platform,
    pub http: &'a Http,
    pub credentials: &'a Credentials,
    /// Determines whether keys have expired.
    pub clock: &'a dyn Clock,
}

#[derive(Deserialize)]
struct Versions {
    #[serde(default)]
    versions: Vec<OfferedVersion>,
}

#[derive(Deserialize)]
struct OfferedVersion {
    version: String,
    #[serde(default)]
    protocols: Vec<String>,
}

impl OfferedVersion {
    fn is_supported(&self) -> bool {
        let mut majors = self.protocols.iter().map(|protocol| protocol.split('.').next().unwrap_or_default());
        self.protocols.is_empty() || majors.any(|major| PROTOCOLS.contains(&major))
    }
}

#[derive(Deserialize)]
struct Package {
    filename: String,
    download_url: String,
    shasum: String,
    shasums_url: String,
    shasums_signature_url: String,
    #[serde(default)]
    signing_keys: Keys,
    /// OpenTofu's registry returns the checksums of all platforms here.
    #[serde(default)]
    packages: BTreeMap<String, Hashes>,
}

#[derive(Default, Deserialize)]
struct Keys {
    #[serde(default)]
    gpg_public_keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Hashes {
    #[serde(default)]
    hashes: Vec<String>,
}

impl Registry<'_> {
    fn authorization(&self) -> Option<String> {
        self.credentials.token(&self.source.host).map(|token| format!("Bearer {token}"))
    }

    async fn json<T: DeserializeOwned>(&self, url: &Url, what: &str) -> Result<Option<T>, InstallError> {
        let (authorization, credentials) = (self.authorization(), token_variable(&self.source.host));
        let (authorization, credentials) = (authorization.as_deref(), credentials.as_str());
        Ok(self.http.json(HttpRequest { authorization, credentials, ..HttpRequest::new(url, what) }).await?)
    }

    /// Discovers the base URL of the provider.
    async fn provider_url(&self) -> Result<Url, InstallError> {
        let Source { host, namespace, name } = self.source;
        let base = fetch::service(self.http, self.credentials, host, "providers.v1", "provider registry").await?;
        join_url(&base, &format!("{namespace}/{name}/"))
    }

    /// Lists the versions with a supported plugin protocol.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        let Self { source, .. } = self;
        let url = join_url(&self.provider_url().await?, "versions")?;
        let offered: Option<Versions> = self.json(&url, &format!("the list of versions of {source}")).await?;
        let offered = offered.ok_or_else(|| {
            InstallError::new(format!("the registry {} does not have {source}", source.host))
                .at("spec.source")
                .hint("correct `spec.source`; private providers may need credentials")
        })?;
        let count = offered.versions.len();
        let versions: Vec<Version> = offered
            .versions
            .into_iter()
            .filter(OfferedVersion::is_supported)
            .filter_map(|offer| Version::parse(&offer.version).ok())
            .collect();
        if versions.is_empty() && count > 0 {
            let message = format!("no version of {source} supports plugin protocol 5 or 6");
            return Err(InstallError::new(message).at("spec.source"));
        }
        Ok(versions)
    }

    /// Locates the package of a version and verifies its checksum.
    pub async fn locate(&self, version: &Version) -> Result<LocatedPackage, InstallError> {
        let Self { source, platform, .. } = self;
        let path = format!("{version}/download/{}/{}", platform.os, platform.architecture);
        let url = join_url(&self.provider_url().await?, &path)?;
        let what = format!("the description of the package of {source} {version} for {platform}");
        let package: Option<Package> = self.json(&url, &what).await?;
        let package = package.ok_or_else(|| no_package(source, version, platform, &[]))?;
        let expected = Hash::of_zip_hex(&package.shasum).ok_or_else(|| {
            InstallError::new(format!("{what} cannot be read: `{}` is not a SHA-256 checksum", package.shasum))
        })?;
        let mut warnings = Vec::new();
        let mut known = self.signed_checksums(&package, &url, &expected, version, &mut warnings).await?;
        // These checksums come over the same TLS connection as the keys that sign the list.
        let hashes = package.packages.values().flat_map(|package| &package.hashes);
        known.extend(hashes.filter_map(|hash| hash.parse().ok()));
        let place = PackageLocation::Download {
            url: join_url(&url, &package.download_url)?,
            // Packages are usually on another host, and the token is only for the registry.
            authorization: None,
            credentials: "nothing: downloads from a registry do not use credentials".to_owned(),
        };
        Ok(LocatedPackage { version: version.clone(), location: place, expected: vec![expected], known, warnings })
    }

    /// Returns the checksums of all platforms from the signed list.
    async fn signed_checksums(
        &self,
        package: &Package,
        url: &Url,
        expected: &Hash,
        version: &Version,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Hash>, InstallError> {
        let release = format!("{} {version}", self.source);
        let list = self.file(url, &package.shasums_url, &format!("the list of checksums of {release}")).await?;
        let text = String::from_utf8_lossy(&list);
        let lines = text.lines().filter_map(|line| {
            let (digits, file) = line.split_once(char::is_whitespace)?;
            Some((Hash::of_zip_hex(digits)?, file.trim_start().trim_start_matches('*')))
        });
        let lines: Vec<(Hash, &str)> = lines.collect();
        if !lines.iter().any(|(hash, file)| *file == package.filename && hash == expected) {
            let message = format!("the list of checksums of {release} does not match `{}`", package.filename);
            return Err(InstallError::new(message).hint(
                "the registry is inconsistent; report this to its operator, or pin a package with `spec.checksums`",
            ));
        }
        let keys = &package.signing_keys.gpg_public_keys;
        if keys.is_empty() && self.source.host == MAY_BE_UNSIGNED {
            warnings.push(format!("{release} is not signed: its authors have not submitted a key to the registry"));
        } else {
            let what = format!("the signature of the checksums of {release}");
            let signed = self.file(url, &package.shasums_signature_url, &what).await?;
            let verified = signature::verify(&list, &signed, keys, self.clock.now());
            let by = verified.map_err(|why| {
                InstallError::new(format!("{what} is not valid: {why}"))
                    .hint("report this to the publisher of the provider; `spec.checksums` cannot replace the signature")
            })?;
            if by.expired {
                warnings.push(format!("{release} is signed with the key {}, which has expired", by.key));
            }
        }
        // The list also contains manifests.
        Ok(lines.into_iter().filter(|(_, file)| file.strip_suffix(".zip").is_some()).map(|(hash, _)| hash).collect())
    }

    async fn file(&self, base: &Url, address: &str, what: &str) -> Result<Vec<u8>, InstallError> {
        let url = join_url(base, address)?;
        self.http
            .document(HttpRequest::new(&url, what))
            .await?
            .ok_or_else(|| InstallError::new(format!("{what} does not exist: {} (404)", display_url(&url))))
    }
}

/// Resolves a URL in a document, which may be relative to the URL of the document.
fn join_url(base: &Url, path: &str) -> Result<Url, InstallError> {
    base.join(path)
        .map_err(|error| InstallError::new(format!("{} contains an invalid URL `{path}`: {error}", display_url(base))))
}
