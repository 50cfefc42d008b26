//! An OCI registry with the layout of OpenTofu's OCI mirrors: a repository for each provider, and a tag for each
//! version, which refers to an index with a manifest for each platform, whose only layer is the published zip file.

use std::sync::OnceLock;

use fetch::{Credentials, DOCUMENT, DOCUMENT_BYTES, Http, HttpRequest, display_url, status_error, token_variable};
use reqwest::header::{LINK, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url};
use semver::Version;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::network::no_package;
use super::{LocatedPackage, PackageLocation};
use crate::install::address::Source;
use crate::install::hash::hex;
use crate::install::{Hash, InstallError, Platform};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const PROVIDER: &str = "application/vnd.opentofu.provider";
const TARGET: &str = "application/vnd.opentofu.provider-target";
const ZIP: &str = "archive/zip";

/// The maximum number of pages of a tag list; a page has a hundred tags or more.
const PAGES: usize = 100;

/// An OCI mirror for one provider.
#[derive(Debug)]
pub struct OciMirror<'a> {
    host: String,
    repository: String,
    source: &'a Source,
    platform: &'a Platform,
    http: &'a Http,
    credentials: &'a Credentials,
    /// The `Authorization` header that the registry accepted.
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

impl Index {
    /// The manifests of packages with their platforms.
    fn targets(&self) -> impl Iterator<Item = (&Descriptor, &Target)> {
        self.manifests
            .iter()
            .filter(|descriptor| descriptor.artifact_type == TARGET && descriptor.media_type == MANIFEST)
            .filter_map(|descriptor| Some((descriptor, descriptor.platform.as_ref()?)))
    }
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
    /// Expands the repository template for the provider.
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
        if whole.contains("${") {
            let why = "only the variables ${hostname}, ${namespace} and ${type} are supported";
            return Err(invalid_template(template, why));
        }
        let (host, path) = whole.split_once('/').ok_or_else(|| invalid_template(template, "it has no path"))?;
        // A repository name cannot contain the colon of a port.
        let repository = path.replace(':', "-");
        if host.is_empty() || !repository.split('/').all(is_repository_part) {
            let why = "a repository name consists of lowercase letters, digits, `.`, `_`, `-` and `/`";
            return Err(invalid_template(template, why));
        }
        let host = host.to_owned();
        Ok(Self { host, repository, source, platform, http, credentials, authorization: OnceLock::new() })
    }

    /// `HOST/REPOSITORY`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.host, self.repository)
    }

    fn at(&self, path: &str) -> Result<Url, InstallError> {
        let address = format!("https://{}/v2/{}/{path}", self.host, self.repository);
        Url::parse(&address).map_err(|error| {
            InstallError::new(format!("`{address}` is not a URL: {error}")).at("spec.package.ociMirror")
        })
    }

    fn authorization(&self) -> Option<String> {
        self.authorization
            .get()
            .cloned()
            .or_else(|| self.credentials.token(&self.host).map(|token| format!("Bearer {token}")))
    }

    fn hint(&self) -> String {
        format!("{}, or log in with `docker login {}`", token_variable(&self.host), self.host)
    }

    /// Fetches a document and the URL of its next page; `None` if it does not exist (404).
    async fn page(
        &self,
        url: &Url,
        what: &str,
        accept: Option<&'static str>,
    ) -> Result<Option<(Vec<u8>, Option<Url>)>, InstallError> {
        let hint = self.hint();
        let (mut answer, mut authorization) = (None, self.authorization());
        // The first response to an unauthorized request names the token service.
        for _ in 0..2 {
            let ask = HttpRequest { accept, ..authorized(url, what, authorization.as_deref(), &hint) };
            let response = self.http.send(ask, DOCUMENT).await?;
            let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            let challenge = challenge.map(str::to_owned).filter(|_| response.status() == StatusCode::UNAUTHORIZED);
            let before = authorization.clone();
            if let (None, Some(challenge)) = (self.authorization.get(), challenge) {
                authorization = self.authenticate(&challenge).await?;
            }
            let again = authorization.is_some() && authorization != before;
            answer = Some(response);
            if !again {
                break;
            }
        }
        let Some(mut answer) = answer else { return Ok(None) };
        let ask = HttpRequest { accept, ..authorized(url, what, authorization.as_deref(), &hint) };
        match answer.status() {
            StatusCode::NOT_FOUND => return Ok(None),
            status if !status.is_success() => return Err(status_error(ask, &answer).into()),
            _ => {}
        }
        let link = answer.headers().get(LINK).and_then(|value| value.to_str().ok());
        let next = link.and_then(|link| link.strip_prefix('<')?.split_once('>')).map(|(next, _)| url.join(next));
        let next = next.and_then(Result::ok).filter(|next| next.host() == url.host());
        let mut content = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| truncated(what, url, error))? {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > DOCUMENT_BYTES {
                return Err(InstallError::new(format!("{what} is too large ({})", display_url(url))));
            }
        }
        Ok(Some((content, next)))
    }

    /// Responds to a challenge with the login, or with a token that the token service issues for the login or
    /// anonymously.
    async fn authenticate(&self, challenge: &str) -> Result<Option<String>, InstallError> {
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
        let token: Option<Token> = self.http.json(authorized(&realm, &what, login.as_deref(), &hint)).await?;
        let token = token.and_then(|token| token.token.or(token.access_token));
        Ok(token.map(|token| self.authorization.get_or_init(|| format!("Bearer {token}")).clone()))
    }

    /// Lists the versions. The list is empty if the registry does not have the repository.
    pub async fn versions(&self) -> Result<Vec<Version>, InstallError> {
        let what = format!("the list of tags of {}", self.name());
        let mut versions = Vec::new();
        let mut next = Some(self.at("tags/list")?);
        for _ in 0..PAGES {
            let Some(url) = next.take() else { break };
            let Some((content, more)) = self.page(&url, &what, None).await? else { break };
            let tags: Tags = read(&content, &what, &url)?;
            // A tag cannot contain `+`.
            let tagged = tags.tags.into_iter().flatten().map(|tag| Version::parse(&tag.replace('_', "+")));
            versions.extend(tagged.filter_map(Result::ok));
            next = more;
        }
        Ok(versions)
    }

    pub async fn locate(&self, version: &Version) -> Result<LocatedPackage, InstallError> {
        let Self { source, platform, .. } = self;
        let tag = version.to_string().replace('+', "_");
        let what = format!("the index of {}:{tag}", self.name());
        let url = self.at(&format!("manifests/{tag}"))?;
        let page = self.page(&url, &what, Some(INDEX)).await?;
        let (content, _) = page.ok_or_else(|| no_package(source, version, platform, &[]))?;
        let index: Index = read(&content, &what, &url)?;
        if index.artifact_type != PROVIDER {
            return Err(wrong_type(&what, &index.artifact_type, PROVIDER));
        }
        let chosen = index
            .targets()
            .find(|(_, target)| target.os == platform.os && target.architecture == platform.architecture)
            .map(|(descriptor, _)| descriptor)
            .ok_or_else(|| {
                let names = index.targets().map(|(_, target)| format!("{}_{}", target.os, target.architecture));
                no_package(source, version, platform, &names.collect::<Vec<_>>())
            })?;

        let what = format!("the manifest of {}:{tag} for {platform}", self.name());
        let url = self.at(&format!("manifests/{}", chosen.digest))?;
        let (content, _) = self
            .page(&url, &what, Some(MANIFEST))
            .await?
            .ok_or_else(|| InstallError::new(format!("{what} does not exist: {} (404)", display_url(&url))))?;
        let digest = format!("sha256:{}", hex(&Sha256::digest(&content)));
        if digest != chosen.digest {
            let message = format!("{what} does not match its digest: it is {digest}, not {}", chosen.digest);
            return Err(InstallError::new(message).hint("it was truncated or modified in transit"));
        }
        let manifest: Manifest = read(&content, &what, &url)?;
        if manifest.artifact_type != TARGET {
            return Err(wrong_type(&what, &manifest.artifact_type, TARGET));
        }
        let [layer] = &manifest.layers[..] else {
            let count = manifest.layers.len();
            return Err(InstallError::new(format!("{what} has {count} layers, not one")).at("spec.package.ociMirror"));
        };
        if layer.media_type != ZIP {
            return Err(wrong_type(&what, &layer.media_type, ZIP));
        }
        let expected = layer.digest.strip_prefix("sha256:").and_then(Hash::of_zip_hex).ok_or_else(|| {
            InstallError::new(format!("{what} cannot be read: `{}` is not a SHA-256 checksum", layer.digest))
        })?;
        Ok(LocatedPackage {
            version: version.clone(),
            location: PackageLocation::Download {
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

fn authorized<'a>(
    url: &'a Url,
    what: &'a str,
    authorization: Option<&'a str>,
    credentials: &'a str,
) -> HttpRequest<'a> {
    HttpRequest { authorization, credentials, ..HttpRequest::new(url, what) }
}

/// The error for an artifact of another type.
fn wrong_type(what: &str, is: &str, wanted: &str) -> InstallError {
    InstallError::new(format!("{what} is of type `{is}`, not `{wanted}`"))
        .at("spec.package.ociMirror")
        .hint("the repository does not contain provider packages in the format of OpenTofu's OCI mirrors")
}

fn read<T: serde::de::DeserializeOwned>(content: &[u8], what: &str, url: &Url) -> Result<T, InstallError> {
    serde_json::from_slice(content)
        .map_err(|error| InstallError::new(format!("{what} cannot be read: {error} ({})", display_url(url))))
}

fn truncated(what: &str, url: &Url, error: reqwest::Error) -> InstallError {
    InstallError::new(format!("{what} was truncated: {} ({})", error.without_url(), display_url(url)))
}

fn invalid_template(template: &str, why: &str) -> InstallError {
    InstallError::new(format!("`{template}` is not a valid repository template: {why}"))
        .at("spec.package.ociMirror")
        .hint("write HOST/PATH/${hostname}/${namespace}/${type}")
}

fn is_repository_part(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
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
    fn a_template_expands_to_the_repository() {
        let source = Source::parse("registry.example.com/acme/random").unwrap();
        let platform = Platform::current();
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
            assert!(name(wrong).contains("is not a valid repository template"), "{wrong}");
        }
    }

    #[test]
    fn a_challenge_is_parsed() {
        let challenge =
            r#"realm="https://auth.example.com/token?a=b",service="reg,istry", scope="repository:a/b:pull""#;
        assert_eq!(parameter(challenge, "realm").as_deref(), Some("https://auth.example.com/token?a=b"));
        assert_eq!(parameter(challenge, "service").as_deref(), Some("reg,istry"));
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("repository:a/b:pull"));
        assert_eq!(parameter(challenge, "error"), None);
    }
}
