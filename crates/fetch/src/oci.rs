//! Repositories of OCI registries: their tags, their manifests, and where their content is.

use std::sync::OnceLock;

use reqwest::header::{LINK, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::credentials::{Credentials, token_variable};
use crate::error::{FetchError, FetchErrorKind};
use crate::http::{DOCUMENT, DOCUMENT_BYTES, Http, HttpRequest, display_url, hex, status_error};

/// The media type of a list of manifests.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of a zip file, as OpenTofu publishes packages.
pub const ZIP: &str = "archive/zip";

/// The maximum number of pages of a tag list; a page has a hundred tags or more.
const PAGES: usize = 100;

/// A repository of an OCI registry. It logs in when the registry asks for it.
#[derive(Debug)]
pub struct Repository<'a> {
    host: String,
    path: String,
    http: &'a Http,
    credentials: &'a Credentials,
    /// The `Authorization` header that the registry accepted.
    authorization: OnceLock<String>,
}

/// What is published under a tag or digest.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// What it is. Empty if it does not say.
    #[serde(default)]
    pub artifact_type: String,
    /// The parts of its content.
    #[serde(default)]
    pub layers: Vec<Descriptor>,
}

/// A manifest or content, by its digest.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The media type.
    pub media_type: String,
    /// `sha256:`, and the digest in hexadecimal digits.
    pub digest: String,
    /// What a manifest is about.
    #[serde(default)]
    pub artifact_type: String,
    /// For which machines it is.
    pub platform: Option<Platform>,
}

/// The machines that a manifest is for.
#[derive(Debug, Deserialize)]
pub struct Platform {
    /// As Go names it.
    pub os: String,
    /// As Go names it.
    pub architecture: String,
}

impl Descriptor {
    /// The SHA-256 digest in hexadecimal digits. `None` for another digest.
    pub fn sha256(&self) -> Option<&str> {
        let digits = self.digest.strip_prefix("sha256:")?;
        (digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(digits)
    }
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Repository<'a> {
    /// A repository by its name, `HOST/PATH`.
    ///
    /// # Errors
    /// Why the text is no name.
    pub fn new(name: &str, http: &'a Http, credentials: &'a Credentials) -> Result<Self, &'static str> {
        let (host, path) = name.split_once('/').ok_or("it has no path")?;
        if host.is_empty() || !path.split('/').all(is_part) {
            return Err("a repository name consists of lowercase letters, digits, `.`, `_`, `-` and `/`");
        }
        let (host, path) = (host.to_owned(), path.to_owned());
        Ok(Self { host, path, http, credentials, authorization: OnceLock::new() })
    }

    /// `HOST/PATH`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.host, self.path)
    }

    /// Where the content with this digest is.
    ///
    /// # Errors
    /// If the name has no valid host.
    pub fn content(&self, digest: &str) -> Result<Url, FetchError> {
        self.at(&format!("blobs/{digest}"))
    }

    /// The `Authorization` header for content.
    pub fn authorization(&self) -> Option<String> {
        let token = || self.credentials.token(&self.host).map(|token| format!("Bearer {token}"));
        self.authorization.get().cloned().or_else(token)
    }

    /// How users give credentials, as part of a sentence that begins with "set".
    pub fn hint(&self) -> String {
        format!("{}, or log in with `docker login {}`", token_variable(&self.host), self.host)
    }

    /// The tags. None if the registry does not have the repository.
    ///
    /// # Errors
    /// If the registry does not give them.
    pub async fn tags(&self) -> Result<Vec<String>, FetchError> {
        let what = format!("the list of tags of {}", self.name());
        let mut found = Vec::new();
        let mut next = Some(self.at("tags/list")?);
        for _ in 0..PAGES {
            let Some(url) = next.take() else { break };
            let Some((content, more)) = self.page(&url, &what, None).await? else { break };
            let tags: Tags = read(&content, &what, &url)?;
            found.extend(tags.tags.into_iter().flatten());
            next = more;
        }
        Ok(found)
    }

    /// What is published under a tag or digest, which it has to match. `what` names it in messages. `None` if there is nothing.
    ///
    /// # Errors
    /// If the registry does not give it.
    pub async fn published<T: DeserializeOwned>(
        &self,
        reference: &str,
        media_type: &'static str,
        what: &str,
    ) -> Result<Option<T>, FetchError> {
        let url = self.at(&format!("manifests/{reference}"))?;
        let Some((content, _)) = self.page(&url, what, Some(media_type)).await? else { return Ok(None) };
        if reference.starts_with("sha256:") {
            let digest = format!("sha256:{}", hex(&Sha256::digest(&content)));
            if digest != reference {
                let message = format!("{what} does not match its digest: it is {digest}, not {reference}");
                return Err(unsuitable(message).hint("it was truncated or modified in transit"));
            }
        }
        read(&content, what, &url).map(Some)
    }

    fn at(&self, path: &str) -> Result<Url, FetchError> {
        let address = format!("https://{}/v2/{}/{path}", self.host, self.path);
        Url::parse(&address).map_err(|error| unsuitable(format!("`{address}` is not a URL: {error}")))
    }

    /// Fetches a document and the URL of its next page; `None` if it does not exist (404).
    async fn page(
        &self,
        url: &Url,
        what: &str,
        accept: Option<&'static str>,
    ) -> Result<Option<(Vec<u8>, Option<Url>)>, FetchError> {
        let hint = self.hint();
        let (mut answer, mut authorization) = (None, self.authorization());
        // The first response to an unauthorized request names the token service.
        for _ in 0..2 {
            let ask = HttpRequest { accept, ..authorized(url, what, authorization.as_deref(), &hint) };
            let response = self.http.send(ask, DOCUMENT).await?;
            let before = authorization.clone();
            if let (None, Some(challenge)) = (self.authorization.get(), challenge(&response)) {
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
            status if !status.is_success() => return Err(status_error(ask, &answer)),
            _ => {}
        }
        let link = answer.headers().get(LINK).and_then(|value| value.to_str().ok());
        let next = link.and_then(|link| link.strip_prefix('<')?.split_once('>')).map(|(next, _)| url.join(next));
        let next = next.and_then(Result::ok).filter(|next| next.host() == url.host());
        let mut content = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| truncated(what, url, error))? {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > DOCUMENT_BYTES {
                return Err(unsuitable(format!("{what} is too large ({})", display_url(url))));
            }
        }
        Ok(Some((content, next)))
    }

    /// Responds to a challenge with the login, or with a token that the token service issues for the login or
    /// anonymously.
    async fn authenticate(&self, challenge: &str) -> Result<Option<String>, FetchError> {
        let login = self.credentials.login(&self.host).map(|login| format!("Basic {login}"));
        let Some((scheme, rest)) = challenge.split_once(' ') else { return Ok(login) };
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(login.inspect(|login| drop(self.authorization.set(login.clone()))));
        }
        let realm = parameter(rest, "realm").and_then(|realm| Url::parse(&realm).ok());
        let Some(mut realm) = realm else { return Ok(None) };
        let scope = parameter(rest, "scope").unwrap_or_else(|| format!("repository:{}:pull", self.path));
        let service = parameter(rest, "service").map(|service| ("service", service));
        realm.query_pairs_mut().extend_pairs(service).append_pair("scope", &scope);
        let hint = self.hint();
        let what = format!("a token for {}", self.name());
        let token: Option<Token> = self.http.json(authorized(&realm, &what, login.as_deref(), &hint)).await?;
        let token = token.and_then(|token| token.token.or(token.access_token));
        Ok(token.map(|token| self.authorization.get_or_init(|| format!("Bearer {token}")).clone()))
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

/// What the registry asks for.
fn challenge(response: &Response) -> Option<String> {
    let challenge = response.headers().get(WWW_AUTHENTICATE)?.to_str().ok()?;
    (response.status() == StatusCode::UNAUTHORIZED).then(|| challenge.to_owned())
}

fn read<T: DeserializeOwned>(content: &[u8], what: &str, url: &Url) -> Result<T, FetchError> {
    serde_json::from_slice(content)
        .map_err(|error| unsuitable(format!("{what} cannot be read: {error} ({})", display_url(url))))
}

fn truncated(what: &str, url: &Url, error: reqwest::Error) -> FetchError {
    let message = format!("{what} was truncated: {} ({})", error.without_url(), display_url(url));
    FetchError::new(FetchErrorKind::Unreachable, message)
}

fn unsuitable(message: String) -> FetchError {
    FetchError::new(FetchErrorKind::Unsuitable, message)
}

fn is_part(part: &str) -> bool {
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
    fn a_challenge_is_parsed() {
        let challenge =
            r#"realm="https://auth.example.com/token?a=b",service="reg,istry", scope="repository:a/b:pull""#;
        assert_eq!(parameter(challenge, "realm").as_deref(), Some("https://auth.example.com/token?a=b"));
        assert_eq!(parameter(challenge, "service").as_deref(), Some("reg,istry"));
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("repository:a/b:pull"));
        assert_eq!(parameter(challenge, "error"), None);
    }

    #[test]
    fn a_name_has_a_host_and_a_path() {
        let (http, credentials) = (Http::default(), Credentials::default());
        let name = |name: &str| Repository::new(name, &http, &credentials).map(|found| found.name());
        assert_eq!(name("registry.example.com:5000/a/b-c").unwrap(), "registry.example.com:5000/a/b-c");
        for wrong in ["a.io", "a.io/X", "a.io/..", "/x", "https://a.io/x", "a.io/a//b"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }
}
