//! The module registry protocol, `modules.v1`.

use std::collections::BTreeMap;

use configuration::{RegistryModule, RemoteModule};
use fetch::{Credentials, Http, HttpRequest, display_url, token_variable};
use reqwest::Url;
use semver::Version;
use serde::Deserialize;
use version::VersionConstraint;

use crate::archive::located;
use crate::error::ModuleError;

/// The maximum number of versions that an error lists.
const MAX_LISTED_VERSIONS: usize = 5;

/// What a registry has of a module, without its directory in the package.
type Name = (String, String, String, String);

/// The registries, and what they have said in this run.
#[derive(Debug)]
pub struct Registries<'a> {
    pub http: &'a Http,
    pub credentials: &'a Credentials,
    pub services: BTreeMap<String, Url>,
    pub versions: BTreeMap<Name, Vec<Version>>,
    pub locations: BTreeMap<(Name, Version), RemoteModule>,
}

#[derive(Deserialize)]
struct Offer {
    #[serde(default)]
    modules: Vec<OfferedModule>,
}

#[derive(Deserialize)]
struct OfferedModule {
    #[serde(default)]
    versions: Vec<OfferedVersion>,
}

#[derive(Deserialize)]
struct OfferedVersion {
    version: String,
}

/// What newer registries say of a download.
#[derive(Default, Deserialize)]
struct Download {
    #[serde(default)]
    location: String,
}

impl<'a> Registries<'a> {
    pub fn new(http: &'a Http, credentials: &'a Credentials) -> Self {
        let (services, versions, locations) = Default::default();
        Self { http, credentials, services, versions, locations }
    }

    /// The newest version that a constraint allows.
    pub async fn choose(
        &mut self,
        module: &RegistryModule,
        constraint: &VersionConstraint,
    ) -> Result<Version, ModuleError> {
        let name = name(module);
        if !self.versions.contains_key(&name) {
            let versions = self.list(module).await?;
            self.versions.insert(name.clone(), versions);
        }
        let versions = &self.versions[&name];
        let fitting = versions.iter().filter(|version| constraint.allows(version));
        let newest = fitting.max_by(|a, b| a.cmp_precedence(b));
        newest.cloned().ok_or_else(|| no_version(module, constraint, versions))
    }

    async fn list(&mut self, module: &RegistryModule) -> Result<Vec<Version>, ModuleError> {
        let url = self.at(module, "versions").await?;
        let what = format!("the list of versions of {}", package(module));
        let authorization = self.authorization(module);
        let variable = token_variable(&module.host);
        let (authorization, credentials) = (authorization.as_deref(), variable.as_str());
        let ask = HttpRequest { authorization, credentials, ..HttpRequest::new(&url, &what) };
        let offer: Option<Offer> = self.http.json(ask).await?;
        let offer = offer.ok_or_else(|| missing(module))?;
        let offered = offer.modules.into_iter().take(1).flat_map(|module| module.versions);
        Ok(offered.filter_map(|offered| Version::parse(&offered.version).ok()).collect())
    }

    /// Where the package of a version is.
    pub async fn locate(&mut self, module: &RegistryModule, version: &Version) -> Result<RemoteModule, ModuleError> {
        let key = (name(module), version.clone());
        if let Some(known) = self.locations.get(&key) {
            return Ok(known.clone());
        }
        let url = self.at(module, &format!("{version}/download")).await?;
        let what = format!("the location of {} {version}", package(module));
        let authorization = self.authorization(module);
        let variable = token_variable(&module.host);
        let (authorization, credentials) = (authorization.as_deref(), variable.as_str());
        let ask = HttpRequest { authorization, credentials, ..HttpRequest::new(&url, &what) };
        let (headers, content) = self.http.answer(ask).await?.ok_or_else(|| missing(module))?;
        let header = headers.get("X-Terraform-Get").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = serde_json::from_slice::<Download>(&content).ok().map(|download| download.location);
        let location = body.filter(|location| !location.is_empty()).or(header).ok_or_else(|| {
            ModuleError::new(format!("{} does not say where {} {version} is", display_url(&url), package(module)))
        })?;
        let remote = located(&location, &url)?;
        self.locations.insert(key, remote.clone());
        Ok(remote)
    }

    fn authorization(&self, module: &RegistryModule) -> Option<String> {
        self.credentials.token(&module.host).map(|token| format!("Bearer {token}"))
    }

    /// A URL of a module, after the discovery of the service.
    async fn at(&mut self, module: &RegistryModule, path: &str) -> Result<Url, ModuleError> {
        let RegistryModule { host, namespace, name, system, .. } = module;
        let base = match self.services.get(host) {
            Some(base) => base.clone(),
            None => {
                let base = fetch::service(self.http, self.credentials, host, "modules.v1", "module registry").await?;
                self.services.insert(host.clone(), base.clone());
                base
            }
        };
        base.join(&format!("{namespace}/{name}/{system}/{path}"))
            .map_err(|error| ModuleError::new(format!("{} is not the base of URLs: {error}", display_url(&base))))
    }
}

fn name(module: &RegistryModule) -> Name {
    let RegistryModule { host, namespace, name, system, .. } = module;
    (host.clone(), namespace.clone(), name.clone(), system.clone())
}

/// The address of the whole package.
fn package(module: &RegistryModule) -> String {
    RegistryModule { subdir: None, ..module.clone() }.to_string()
}

fn missing(module: &RegistryModule) -> ModuleError {
    ModuleError::new(format!("the registry {} does not have {}", module.host, package(module)))
        .hint(format!("correct `source`; a private module needs credentials: set {}", token_variable(&module.host)))
}

fn no_version(module: &RegistryModule, constraint: &VersionConstraint, versions: &[Version]) -> ModuleError {
    let (host, package) = (&module.host, package(module));
    if versions.is_empty() {
        return ModuleError::new(format!("the registry {host} has no version of {package}")).hint("correct `source`");
    }
    let mut versions: Vec<&Version> = versions.iter().collect();
    versions.sort_by(|a, b| b.cmp_precedence(a));
    let more = if versions.len() > MAX_LISTED_VERSIONS { ", ..." } else { "" };
    let listed: Vec<String> = versions.iter().take(MAX_LISTED_VERSIONS).map(ToString::to_string).collect();
    let listed = listed.join(", ");
    if constraint.to_string().is_empty() {
        return ModuleError::new(format!("the registry {host} has only prereleases of {package}: {listed}{more}"))
            .hint("a prerelease is installed only if `version` names it exactly");
    }
    ModuleError::new(format!("the registry {host} has no version of {package} that matches `{constraint}`"))
        .hint(format!("available: {listed}{more}"))
}
