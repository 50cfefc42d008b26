//! A registry: `/.well-known/terraform.json` on its host says where the protocol `providers.v1` is spoken.
//!
//! What it says of a package is checked three times: the package against its checksum, the checksum against the list of
//! checksums, and the list against its signature. The keys come from the registry too, so all of it is as good as the
//! TLS of its host; pins and locks are what makes it better.

use std::collections::BTreeMap;

use reqwest::Url;
use semver::Version;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::network::missing;
use super::{Found, Place};
use crate::install::address::Source;
use crate::install::credentials::{Credentials, variable_of};
use crate::install::http::{Ask, Http, shown};
use crate::install::signature::{self, Key};
use crate::install::{Hash, InstallError, Platform};
use crate::process::Clock;

/// Versions of the plugin protocol that we speak.
const PROTOCOLS: [&str; 2] = ["5", "6"];

/// The registry that may leave a package unsigned, as OpenTofu has it: it signs nothing itself, and passes on the keys
/// that authors gave it.
const MAY_BE_UNSIGNED: &str = "registry.opentofu.org";

/// A registry, asked about one provider.
pub(in crate::install) struct Registry<'a> {
    /// The provider.
    pub source: &'a Source,
    /// For which machine.
    pub platform: &'a Platform,
    /// How to ask.
    pub http: &'a Http,
    /// Who asks.
    pub credentials: &'a Credentials,
    /// Tells which keys have expired.
    pub clock: &'a dyn Clock,
}

#[derive(Deserialize)]
struct Services {
    #[serde(rename = "providers.v1")]
    providers: Option<String>,
}

#[derive(Deserialize)]
struct Versions {
    #[serde(default)]
    versions: Vec<Offer>,
}

#[derive(Deserialize)]
struct Offer {
    version: String,
    #[serde(default)]
    protocols: Vec<String>,
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
    /// OpenTofu's registry tells the checksums of all platforms here.
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
        let (authorization, credentials) = (self.authorization(), variable_of(&self.source.host));
        let ask = Ask { url, what, authorization: authorization.as_deref(), credentials: &credentials, accept: None };
        self.http.json(ask).await
    }

    /// Where it speaks of the provider.
    async fn base(&self) -> Result<Url, InstallError> {
        let Source { host, namespace, name } = self.source;
        let wrong = |why: String| {
            InstallError::terminal(format!("{host} is no registry of providers: {why}"))
                .at("spec.source")
                .hint("correct the host in `spec.source`, or name a mirror in `spec.package`")
        };
        let url = Url::parse(&format!("https://{host}/.well-known/terraform.json"));
        let url = url.map_err(|error| wrong(error.to_string()))?;
        let services: Option<Services> = self.json(&url, "the list of services").await?;
        let services = services.ok_or_else(|| wrong(format!("{} is not there", shown(&url))))?;
        let base = services.providers.ok_or_else(|| wrong("it does not offer the service providers.v1".to_owned()))?;
        let slash = if base.ends_with('/') { "" } else { "/" };
        let base = url.join(&format!("{base}{slash}")).and_then(|base| base.join(&format!("{namespace}/{name}/")));
        base.map_err(|error| wrong(error.to_string()))
    }

    /// The versions that it has and that speak a protocol of ours.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        let Self { source, .. } = self;
        let url = at(&self.base().await?, "versions")?;
        let offered: Option<Versions> = self.json(&url, &format!("the list of versions of {source}")).await?;
        let offered = offered.ok_or_else(|| {
            InstallError::transient(format!("the registry {} does not know {source}", source.host))
                .at("spec.source")
                .hint("correct `spec.source`; private providers may need credentials")
        })?;
        let count = offered.versions.len();
        let speaks = |offer: &Offer| {
            let major = |protocol: &String| PROTOCOLS.contains(&protocol.split('.').next().unwrap_or_default());
            offer.protocols.is_empty() || offer.protocols.iter().any(major)
        };
        let known = offered.versions.into_iter().filter(speaks);
        let versions: Vec<Version> = known.filter_map(|offer| Version::parse(&offer.version).ok()).collect();
        if versions.is_empty() && count > 0 {
            let message = format!("no version of {source} speaks the plugin protocol 5 or 6");
            return Err(InstallError::terminal(message).at("spec.source"));
        }
        Ok(versions)
    }

    /// The package of a version, with what the registry says of it checked.
    pub async fn locate(&self, version: &Version) -> Result<Found, InstallError> {
        let Self { source, platform, .. } = self;
        let path = format!("{version}/download/{}/{}", platform.os, platform.architecture);
        let url = at(&self.base().await?, &path)?;
        let what = format!("the description of the package of {source} {version} for {platform}");
        let package: Option<Package> = self.json(&url, &what).await?;
        let package = package.ok_or_else(|| missing(source, version, platform, &[]))?;
        let expected = Hash::of_zip_hex(&package.shasum).ok_or_else(|| {
            InstallError::terminal(format!("{what} cannot be read: `{}` is no SHA-256", package.shasum))
        })?;
        let mut warnings = Vec::new();
        let mut known = self.listed(&package, &url, &expected, version, &mut warnings).await?;
        // Whoever answered this over TLS also told the keys that signed the list.
        let hashes = package.packages.values().flat_map(|package| &package.hashes);
        known.extend(hashes.filter_map(|hash| hash.parse().ok()));
        let place = Place::Download {
            url: at(&url, &package.download_url)?,
            // A package is elsewhere in general, and the token is for the registry.
            authorization: None,
            credentials: "nothing: the registry names this address for everybody".to_owned(),
        };
        Ok(Found { version: version.clone(), place, expected: vec![expected], known, warnings })
    }

    /// The checksums of all platforms, from a list that is signed.
    async fn listed(
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
            let message = format!("the list of checksums of {release} does not have `{}` as it is", package.filename);
            return Err(InstallError::terminal(message).hint(
                "the registry contradicts itself; report it to who runs it, or pin a package by `spec.checksums`",
            ));
        }
        let keys = &package.signing_keys.gpg_public_keys;
        if keys.is_empty() && self.source.host == MAY_BE_UNSIGNED {
            warnings.push(format!("{release} is not signed: its authors gave the registry no key"));
        } else {
            let what = format!("the signature of the checksums of {release}");
            let signed = self.file(url, &package.shasums_signature_url, &what).await?;
            let verified = signature::verify(&list, &signed, keys, self.clock.now());
            let by = verified.map_err(|why| {
                InstallError::terminal(format!("{what} is not valid: {why}"))
                    .hint("report it to who publishes the provider; `spec.checksums` cannot replace it")
            })?;
            if by.expired {
                warnings.push(format!("{release} is signed with the key {}, which has expired", by.key));
            }
        }
        // Beside packages the list has their manifests.
        let is_package = |(_, file): &(Hash, &str)| file.strip_suffix(".zip").is_some();
        Ok(lines.into_iter().filter(is_package).map(|(hash, _)| hash).collect())
    }

    async fn file(&self, base: &Url, address: &str, what: &str) -> Result<Vec<u8>, InstallError> {
        let url = at(base, address)?;
        let ask = Ask { url: &url, what, authorization: None, credentials: "nothing", accept: None };
        let missing = || InstallError::transient(format!("{what} is not there: {} (404)", shown(&url)));
        self.http.document(ask).await?.ok_or_else(missing)
    }
}

/// An address that a document names, which may be relative to its own.
fn at(base: &Url, path: &str) -> Result<Url, InstallError> {
    let wrong = |error| InstallError::terminal(format!("{} names no address: `{path}`: {error}", shown(base)));
    base.join(path).map_err(wrong)
}
