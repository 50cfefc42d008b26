//! A server that speaks Terraform's network mirror protocol: `BASE/HOST/NAMESPACE/TYPE/index.json` names the versions,
//! `VERSION.json` beside it the packages of one.

use std::collections::BTreeMap;

use reqwest::Url;
use semver::Version;
use serde::Deserialize;

use super::{Found, Place};
use crate::install::address::Source;
use crate::install::credentials::{Credentials, variable_of};
use crate::install::http::{Ask, Http, shown};
use crate::install::{Hash, InstallError, Platform};

/// A network mirror, asked about one provider.
#[derive(Debug)]
pub(in crate::install) struct NetworkMirror<'a> {
    /// The address of the mirror, with a slash at its end.
    pub base: Url,
    /// The provider.
    pub source: &'a Source,
    /// For which machine.
    pub platform: &'a Platform,
    /// How to ask.
    pub http: &'a Http,
    /// Who asks.
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
    /// The mirror at an address.
    pub fn new(
        address: &str,
        source: &'a Source,
        platform: &'a Platform,
        http: &'a Http,
        credentials: &'a Credentials,
    ) -> Result<Self, InstallError> {
        let slash = if address.ends_with('/') { "" } else { "/" };
        let wrong = |why: &str| {
            InstallError::terminal(format!("`{address}` is no address of a network mirror: {why}"))
                .at("spec.package.networkMirror")
                .hint("write https://HOST/PATH/")
        };
        let base = Url::parse(&format!("{address}{slash}")).map_err(|error| wrong(&error.to_string()))?;
        if base.scheme() != "https" {
            return Err(wrong("mirrors are asked over https only"));
        }
        Ok(Self { base, source, platform, http, credentials })
    }

    fn at(&self, file: &str) -> Result<Url, InstallError> {
        let Source { host, namespace, name } = self.source;
        // `./` keeps a host with a port from being read as a scheme.
        self.base.join(&format!("./{host}/{namespace}/{name}/{file}")).map_err(|error| {
            InstallError::terminal(format!("{} has no place for {}: {error}", shown(&self.base), self.source))
        })
    }

    /// The token, for the mirror's own host and no other.
    fn authorization(&self, url: &Url) -> Option<String> {
        let host = host(&self.base);
        (host == self::host(url)).then(|| Some(format!("Bearer {}", self.credentials.token(&host)?)))?
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, url: &Url, what: &str) -> Result<Option<T>, InstallError> {
        let authorization = self.authorization(url);
        let credentials = variable_of(&host(&self.base));
        let ask = Ask { url, what, authorization: authorization.as_deref(), credentials: &credentials, accept: None };
        self.http.json(ask).await
    }

    /// The versions that it has. A mirror without the provider has none.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        let url = self.at("index.json")?;
        let index: Option<Index> = self.json(&url, &format!("the list of versions of {}", self.source)).await?;
        let names = index.into_iter().flat_map(|index| index.versions.into_keys());
        Ok(names.filter_map(|name| Version::parse(&name).ok()).collect())
    }

    /// The package of a version.
    pub async fn locate(&self, version: &Version) -> Result<Found, InstallError> {
        let Self { source, platform, .. } = self;
        let url = self.at(&format!("{version}.json"))?;
        let packages: Option<Packages> =
            self.json(&url, &format!("the list of packages of {source} {version}")).await?;
        let mut archives = packages.ok_or_else(|| missing(source, version, platform, &[]))?.archives;
        let archive = archives.remove(&platform.to_string());
        let others: Vec<String> = archives.into_keys().collect();
        let archive = archive.ok_or_else(|| missing(source, version, platform, &others))?;
        let place = url.join(&archive.url).map_err(|error| {
            InstallError::terminal(format!("{}: `{}` is no address: {error}", shown(&url), archive.url))
        })?;
        // Schemes of the future are passed over, as long as there is one that we know.
        let expected: Vec<Hash> = archive.hashes.iter().filter_map(|hash| hash.parse().ok()).collect();
        if expected.is_empty() && !archive.hashes.is_empty() {
            let hashes = archive.hashes.join(", ");
            return Err(InstallError::terminal(format!("{} has no checksum that we know: {hashes}", shown(&url))));
        }
        Ok(Found {
            version: version.clone(),
            place: Place::Download {
                authorization: self.authorization(&place),
                credentials: variable_of(&host(&place)),
                url: place,
            },
            known: expected.clone(),
            expected,
            warnings: Vec::new(),
        })
    }
}

/// The host of an address, with its port unless that is the usual one.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// There is no package for this machine.
pub(super) fn missing(source: &Source, version: &Version, platform: &Platform, others: &[String]) -> InstallError {
    let error = InstallError::transient(format!("there is no package of {source} {version} for {platform}"));
    let error = error.at("spec.version");
    if others.is_empty() {
        return error.hint("choose another version, or ask who publishes it");
    }
    error.hint(format!("there are packages for {}", others.join(", ")))
}
