//! An OCI registry that holds packages as OpenTofu's OCI mirrors do: a repository for each provider, a tag for each
//! version that leads to an index, in it a manifest for each platform, in that one layer: the zip as it was published.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{LINK, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url};
use semver::Version;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::network::missing;
use super::{Found, Place};
use crate::install::address::Source;
use crate::install::credentials::{Credentials, variable_of};
use crate::install::hash::hex;
use crate::install::http::{Ask, DOCUMENT_BYTES, Http, refused, shown};
use crate::install::{Hash, InstallError, Platform};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const PROVIDER: &str = "application/vnd.opentofu.provider";
const TARGET: &str = "application/vnd.opentofu.provider-target";
const ZIP: &str = "archive/zip";

/// How long a document may take.
const DOCUMENT: Duration = Duration::from_mins(1);

/// How many pages a list of tags may have; a page has a hundred or more.
const PAGES: usize = 100;

/// An OCI mirror, asked about one provider.
#[derive(Debug)]
pub(in crate::install) struct OciMirror<'a> {
    host: String,
    repository: String,
    source: &'a Source,
    platform: &'a Platform,
    http: &'a Http,
    credentials: &'a Credentials,
    /// What the registry let us in with.
    authorization: OnceLock<String>,
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    #[serde(default)]
    artifact_type: String,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    artifact_type: String,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    #[serde(default)]
    artifact_type: String,
    platform: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    os: String,
    architecture: String,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> OciMirror<'a> {
    /// The repository that a template names for a provider.
    pub fn new(
        template: &str,
        source: &'a Source,
        platform: &'a Platform,
        http: &'a Http,
        credentials: &'a Credentials,
    ) -> Result<Self, InstallError> {
        let whole = template
            .replace("${hostname}", &source.host)
            .replace("${namespace}", &source.namespace)
            .replace("${type}", &source.name);
        let wrong = |why: &str| {
            InstallError::terminal(format!("`{template}` names no repository: {why}"))
                .at("spec.package.ociMirror")
                .hint("write HOST/PATH/${hostname}/${namespace}/${type}")
        };
        if whole.contains("${") {
            return Err(wrong("it may hold ${hostname}, ${namespace} and ${type}"));
        }
        let (host, path) = whole.split_once('/').ok_or_else(|| wrong("it has no path"))?;
        // A port cannot be part of a repository's name.
        let repository = path.replace(':', "-");
        let is_part = |part: &str| {
            part.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
        };
        if host.is_empty() || !repository.split('/').all(is_part) {
            return Err(wrong("a repository is written in small letters, digits, `.`, `_`, `-` and `/`"));
        }
        let host = host.to_owned();
        Ok(Self { host, repository, source, platform, http, credentials, authorization: OnceLock::new() })
    }

    /// The repository with its host.
    pub fn name(&self) -> String {
        format!("{}/{}", self.host, self.repository)
    }

    fn at(&self, path: &str) -> Result<Url, InstallError> {
        let address = format!("https://{}/v2/{}/{path}", self.host, self.repository);
        Url::parse(&address).map_err(|error| {
            InstallError::terminal(format!("`{address}` is no address: {error}")).at("spec.package.ociMirror")
        })
    }

    fn authorization(&self) -> Option<String> {
        let token = || self.credentials.token(&self.host).map(|token| format!("Bearer {token}"));
        self.authorization.get().cloned().or_else(token)
    }

    fn hint(&self) -> String {
        format!("{}, or log in with `docker login {}`", variable_of(&self.host), self.host)
    }

    /// A document with the address of its next page; `None` when there is none (404).
    async fn page(
        &self,
        url: &Url,
        what: &str,
        accept: Option<&'static str>,
    ) -> Result<Option<(Vec<u8>, Option<Url>)>, InstallError> {
        let hint = self.hint();
        let (mut answer, mut authorization) = (None, self.authorization());
        // The first refusal tells where tokens are given out.
        for _ in 0..2 {
            let ask = Ask { url, what, authorization: authorization.as_deref(), credentials: &hint, accept };
            let given = self.http.send(ask, DOCUMENT).await?;
            let challenge = given.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            let challenge = challenge.map(str::to_owned).filter(|_| given.status() == StatusCode::UNAUTHORIZED);
            let before = authorization.clone();
            if let (None, Some(challenge)) = (self.authorization.get(), challenge) {
                authorization = self.let_in(&challenge).await?;
            }
            let again = authorization.is_some() && authorization != before;
            answer = Some(given);
            if !again {
                break;
            }
        }
        let Some(mut answer) = answer else { return Ok(None) };
        let ask = Ask { url, what, authorization: authorization.as_deref(), credentials: &hint, accept };
        match answer.status() {
            StatusCode::NOT_FOUND => return Ok(None),
            status if !status.is_success() => return Err(refused(ask, &answer)),
            _ => {}
        }
        let link = answer.headers().get(LINK).and_then(|value| value.to_str().ok());
        let next = link.and_then(|link| link.strip_prefix('<')?.split_once('>')).map(|(next, _)| url.join(next));
        let next = next.and_then(Result::ok).filter(|next| next.host() == url.host());
        let mut content = Vec::new();
        let cut = |error| InstallError::transient(format!("{what} was cut: {error} ({})", shown(url)));
        while let Some(chunk) = answer.chunk().await.map_err(|error| cut(error.without_url()))? {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > DOCUMENT_BYTES {
                return Err(InstallError::terminal(format!("{what} is too large ({})", shown(url))));
            }
        }
        Ok(Some((content, next)))
    }

    /// Answers a challenge: with the login itself, or with a token that is given out for it, or for nothing.
    async fn let_in(&self, challenge: &str) -> Result<Option<String>, InstallError> {
        let login = self.credentials.login(&self.host).map(|login| format!("Basic {login}"));
        let Some((scheme, rest)) = challenge.split_once(' ') else { return Ok(login) };
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(login.inspect(|login| drop(self.authorization.set(login.clone()))));
        }
        let realm = parameter(rest, "realm").and_then(|realm| Url::parse(&realm).ok());
        let Some(mut realm) = realm else { return Ok(None) };
        let scope = parameter(rest, "scope").unwrap_or_else(|| format!("repository:{}:pull", self.repository));
        let service = parameter(rest, "service").map(|service| ("service", service));
        realm.query_pairs_mut().extend_pairs(service).append_pair("scope", &scope);
        let hint = self.hint();
        let what = format!("a token for {}", self.name());
        let ask = Ask { url: &realm, what: &what, authorization: login.as_deref(), credentials: &hint, accept: None };
        let token: Option<Token> = self.http.json(ask).await?;
        let token = token.and_then(|token| token.token.or(token.access_token));
        Ok(token.map(|token| self.authorization.get_or_init(|| format!("Bearer {token}")).clone()))
    }

    /// The versions that it has. A registry without the repository has none.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        let what = format!("the list of tags of {}", self.name());
        let mut versions = Vec::new();
        let mut next = Some(self.at("tags/list")?);
        for _ in 0..PAGES {
            let Some(url) = next.take() else { break };
            let Some((content, more)) = self.page(&url, &what, None).await? else { break };
            let tags: Tags = read(&content, &what, &url)?;
            // A tag cannot hold `+`.
            let found = tags.tags.into_iter().flatten().map(|tag| Version::parse(&tag.replace('_', "+")));
            versions.extend(found.filter_map(Result::ok));
            next = more;
        }
        Ok(versions)
    }

    /// The package of a version.
    pub async fn locate(&self, version: &Version) -> Result<Found, InstallError> {
        let Self { source, platform, .. } = self;
        let tag = version.to_string().replace('+', "_");
        let what = format!("the index of {}:{tag}", self.name());
        let url = self.at(&format!("manifests/{tag}"))?;
        let page = self.page(&url, &what, Some(INDEX)).await?;
        let (content, _) = page.ok_or_else(|| missing(source, version, platform, &[]))?;
        let index: Index = read(&content, &what, &url)?;
        if index.artifact_type != PROVIDER {
            return Err(other(&what, &index.artifact_type, PROVIDER));
        }
        let is_target = |one: &Descriptor| one.artifact_type == TARGET && one.media_type == MANIFEST;
        let here = |one: &&Descriptor| {
            let wanted = |target: &Target| target.os == platform.os && target.architecture == platform.architecture;
            is_target(one) && one.platform.as_ref().is_some_and(wanted)
        };
        let there = index.manifests.iter().filter(|one| is_target(one)).filter_map(|one| one.platform.as_ref());
        let there: Vec<String> = there.map(|target| format!("{}_{}", target.os, target.architecture)).collect();
        let chosen = index.manifests.iter().find(here).ok_or_else(|| missing(source, version, platform, &there))?;

        let what = format!("the manifest of {}:{tag} for {platform}", self.name());
        let url = self.at(&format!("manifests/{}", chosen.digest))?;
        let gone = || InstallError::transient(format!("{what} is not there: {} (404)", shown(&url)));
        let (content, _) = self.page(&url, &what, Some(MANIFEST)).await?.ok_or_else(gone)?;
        let digest = format!("sha256:{}", hex(&Sha256::digest(&content)));
        if digest != chosen.digest {
            let message = format!("{what} does not match its digest: it is {digest}, not {}", chosen.digest);
            return Err(InstallError::transient(message).hint("it was cut or changed on its way"));
        }
        let manifest: Manifest = read(&content, &what, &url)?;
        if manifest.artifact_type != TARGET {
            return Err(other(&what, &manifest.artifact_type, TARGET));
        }
        let [layer] = &manifest.layers[..] else {
            let count = manifest.layers.len();
            return Err(
                InstallError::terminal(format!("{what} has {count} layers, not one")).at("spec.package.ociMirror")
            );
        };
        if layer.media_type != ZIP {
            return Err(other(&what, &layer.media_type, ZIP));
        }
        let expected = layer.digest.strip_prefix("sha256:").and_then(Hash::of_zip_hex).ok_or_else(|| {
            InstallError::terminal(format!("{what} cannot be read: `{}` is no SHA-256", layer.digest))
        })?;
        Ok(Found {
            version: version.clone(),
            place: Place::Download {
                url: self.at(&format!("blobs/{}", layer.digest))?,
                authorization: self.authorization(),
                credentials: self.hint(),
            },
            known: vec![expected.clone()],
            expected: vec![expected],
            warnings: Vec::new(),
        })
    }
}

/// Something of another kind.
fn other(what: &str, is: &str, wanted: &str) -> InstallError {
    InstallError::terminal(format!("{what} is of type `{is}`, not `{wanted}`"))
        .at("spec.package.ociMirror")
        .hint("the repository holds something else than packages of providers as OpenTofu's OCI mirrors have them")
}

fn read<T: serde::de::DeserializeOwned>(content: &[u8], what: &str, url: &Url) -> Result<T, InstallError> {
    serde_json::from_slice(content)
        .map_err(|error| InstallError::terminal(format!("{what} cannot be read: {error} ({})", shown(url))))
}

/// A parameter of a challenge: `name="value"`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    loop {
        let (key, value) = rest.split_once('=')?;
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_once(',').unwrap_or((value, "")),
        };
        if key.trim().trim_start_matches(',').trim().eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_names_the_repository() {
        let source = Source::parse("registry.example.com/acme/random").unwrap();
        let platform = Platform::here();
        let (http, credentials) = (Http::default(), Credentials::default());
        let name = |template: &str| {
            OciMirror::new(template, &source, &platform, &http, &credentials)
                .map_or_else(|error| error.message, |mirror| mirror.name())
        };
        assert_eq!(
            name("mirror.example.com:5000/tofu/${hostname}/${namespace}/${type}"),
            "mirror.example.com:5000/tofu/registry.example.com/acme/random"
        );
        assert_eq!(name("a.io/x"), "a.io/x");
        for wrong in ["a.io", "a.io/X", "a.io/${name}", "/x", "https://a.io/x"] {
            assert!(name(wrong).contains("names no repository"), "{wrong}");
        }
    }

    #[test]
    fn a_challenge_is_read() {
        let challenge =
            r#"realm="https://auth.example.com/token?a=b",service="reg,istry", scope="repository:a/b:pull""#;
        assert_eq!(parameter(challenge, "realm").as_deref(), Some("https://auth.example.com/token?a=b"));
        assert_eq!(parameter(challenge, "service").as_deref(), Some("reg,istry"));
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("repository:a/b:pull"));
        assert_eq!(parameter(challenge, "error"), None);
    }
}
