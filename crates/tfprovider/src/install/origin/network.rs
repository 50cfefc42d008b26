//! Terraform's network mirror protocol: `BASE/HOST/NAMESPACE/TYPE/index.json` lists the versions, and `VERSION.json` in
//! the same directory lists the packages of a version.

use std::collections::BTreeMap;

use fetch::{Credentials, Http, HttpRequest, display_url, token_variable};
use reqwest::Url;
use semver::Version;
use serde::Deserialize;

use super::{LocatedPackage, PackageLocation};
use crate::install::address::Source;
use crate::install::{Hash, InstallError, Platform};

/// A network mirror for one provider.
#[derive(Debug)]
pub struct NetworkMirror<'a> {
    /// The URL of the mirror, with a trailing slash.
    pub base: Url,
    pub source: &'a Source,
    pub platform: &'a Platform,
    pub http: &'a Http,
    pub credentials: &'a Credentials,
}

#[derive(Deserialize)]
struct Index {
    versions: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Packages {
    archives: BTreeMap<String, Archive>,
}

#[derive(Deserialize)]
struct Archive {
    url: String,
    #[serde(default)]
    hashes: Vec<String>,
}

impl<'a> NetworkMirror<'a> {
    pub fn new(
        address: &str,
        source: &'a Source,
        platform: &'a Platform,
        http: &'a Http,
        credentials: &'a Credentials,
    ) -> Result<Self, InstallError> {
        let slash = if address.ends_with('/') { "" } else { "/" };
        let base =
            Url::parse(&format!("{address}{slash}")).map_err(|error| invalid_address(address, &error.to_string()))?;
        if base.scheme() != "https" {
            return Err(invalid_address(address, "network mirrors require https"));
        }
        Ok(Self { base, source, platform, http, credentials })
    }

    fn at(&self, file: &str) -> Result<Url, InstallError> {
        let Source { host, namespace, name } = self.source;
        // `./` keeps a host with a port from being read as a scheme.
        self.base.join(&format!("./{host}/{namespace}/{name}/{file}")).map_err(|error| {
            InstallError::new(format!("{} cannot be combined with {}: {error}", display_url(&self.base), self.source))
        })
    }

    /// The token, only for the mirror's own host.
    fn authorization(&self, url: &Url) -> Option<String> {
        let host = host(&self.base);
        (host == self::host(url)).then(|| Some(format!("Bearer {}", self.credentials.token(&host)?)))?
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, url: &Url, what: &str) -> Result<Option<T>, InstallError> {
        let authorization = self.authorization(url);
        let credentials = token_variable(&host(&self.base));
        let (authorization, credentials) = (authorization.as_deref(), credentials.as_str());
        Ok(self.http.json(HttpRequest { authorization, credentials, ..HttpRequest::new(url, what) }).await?)
    }

    /// Lists the versions. The list is empty if the mirror does not have the provider.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        let url = self.at("index.json")?;
        let index: Option<Index> = self.json(&url, &format!("the list of versions of {}", self.source)).await?;
        let names = index.into_iter().flat_map(|index| index.versions.into_keys());
        Ok(names.filter_map(|name| Version::parse(&name).ok()).collect())
    }

    pub async fn locate(&self, version: &Version) -> Result<LocatedPackage, InstallError> {
        let Self { source, platform, .. } = self;
        let url = self.at(&format!("{version}.json"))?;
        let packages: Option<Packages> =
            self.json(&url, &format!("the list of packages of {source} {version}")).await?;
        let mut archives = packages.ok_or_else(|| no_package(source, version, platform, &[]))?.archives;
        let archive = archives.remove(&platform.to_string());
        let others: Vec<String> = archives.into_keys().collect();
        let archive = archive.ok_or_else(|| no_package(source, version, platform, &others))?;
        let place = url.join(&archive.url).map_err(|error| {
            InstallError::new(format!("{} contains an invalid URL `{}`: {error}", display_url(&url), archive.url))
        })?;
        // Unknown checksum schemes are ignored if there is at least one known one.
        let expected: Vec<Hash> = archive.hashes.iter().filter_map(|hash| hash.parse().ok()).collect();
        if expected.is_empty() && !archive.hashes.is_empty() {
            let hashes = archive.hashes.join(", ");
            return Err(InstallError::new(format!("{} has no supported checksum: {hashes}", display_url(&url))));
        }
        Ok(LocatedPackage {
            version: version.clone(),
            location: PackageLocation::Download {
                authorization: self.authorization(&place),
                credentials: token_variable(&host(&place)),
                url: place,
            },
            known: expected.clone(),
            expected,
            warnings: Vec::new(),
        })
    }
}

fn invalid_address(address: &str, why: &str) -> InstallError {
    InstallError::new(format!("`{address}` is not the URL of a network mirror: {why}"))
        .at("spec.package.networkMirror")
        .hint("write https://HOST/PATH/")
}

/// The host of a URL, with its port unless it is the default port.
pub fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The error for a version without a package for the platform.
pub fn no_package(source: &Source, version: &Version, platform: &Platform, others: &[String]) -> InstallError {
    let error = InstallError::new(format!("{source} {version} has no package for {platform}"));
    let error = error.at("spec.version");
    if others.is_empty() {
        return error.hint("choose another version, or contact the publisher");
    }
    error.hint(format!("packages exist for {}", others.join(", ")))
}
