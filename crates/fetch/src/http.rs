//! HTTPS requests to registries, mirrors and other sources of packages, with limits on time and size.
//!
//! A request without TLS is possible only where its caller allows it, and never after one with TLS.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use crate::error::{FetchError, FetchErrorKind};

/// The time limit to connect, short to detect unreachable hosts early.
const CONNECT: Duration = Duration::from_secs(10);

/// The time limit without received data.
const SILENCE: Duration = Duration::from_secs(30);

/// The time limit for a document.
pub const DOCUMENT: Duration = Duration::from_mins(1);

/// The time limit for a package. The largest packages have 200 MB, and some connections only 1 Mbit/s.
const PACKAGE: Duration = Duration::from_mins(30);

/// The maximum size of a document. The version lists of the oldest providers have 300 KB.
pub const DOCUMENT_BYTES: u64 = 16 << 20;

/// The maximum size of a package. The largest packages have 200 MB.
const PACKAGE_BYTES: u64 = 2 << 30;

/// The same limit as in Terraform.
const REDIRECTS: usize = 5;

/// The version that is reported to registries, of an OpenTofu with the same registry protocols.
const TERRAFORM_VERSION: &str = "1.13.0";

/// The client for all origins. It is created on first use, because loading the system's certificates takes a while.
#[derive(Debug, Default)]
pub struct Http {
    roots: Vec<Vec<u8>>,
    client: OnceLock<Result<Client, FetchError>>,
}

#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    pub url: &'a Url,
    /// The name of the document in errors: `the list of versions of ...`.
    pub what: &'a str,
    /// The value of the `Authorization` header.
    pub authorization: Option<&'a str>,
    /// The source of credentials, for the hint if the request is unauthorized.
    pub credentials: &'a str,
    /// The value of the `Accept` header.
    pub accept: Option<&'static str>,
    /// Whether the URL may be one without TLS.
    pub plain: bool,
}

impl<'a> HttpRequest<'a> {
    /// A request without credentials.
    pub fn new(url: &'a Url, what: &'a str) -> Self {
        Self { url, what, authorization: None, credentials: "nothing", accept: None, plain: false }
    }
}

impl Http {
    /// `roots` are CA certificates (PEM) in addition to those of the system.
    pub fn new(roots: Vec<Vec<u8>>) -> Self {
        Self { roots, client: OnceLock::new() }
    }

    fn client(&self) -> Result<&Client, FetchError> {
        self.client.get_or_init(|| self.build()).as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<Client, FetchError> {
        self.try_build().map_err(|error| {
            let message = format!("cannot create an HTTPS client: {}", chain(&error));
            FetchError::new(FetchErrorKind::Local, message)
                .hint("the CA certificates of the system are required; SSL_CERT_FILE can set their path")
        })
    }

    fn try_build(&self) -> reqwest::Result<Client> {
        let mut headers = HeaderMap::new();
        headers.insert("X-Terraform-Version", HeaderValue::from_static(TERRAFORM_VERSION));
        let mut builder = Client::builder()
            .user_agent(concat!("purlin/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(redirect::Policy::custom(follow))
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE);
        for root in &self.roots {
            for certificate in Certificate::from_pem_bundle(root)? {
                builder = builder.add_root_certificate(certificate);
            }
        }
        builder.build()
    }

    /// Sends a request and returns the response with any status.
    pub async fn send(&self, ask: HttpRequest<'_>, limit: Duration) -> Result<Response, FetchError> {
        let is_plain = ask.plain && ask.url.scheme() == "http" && ask.authorization.is_none();
        if !is_secure(ask.url) && !is_plain {
            let message = format!("{} cannot be fetched: {} is not https", ask.what, display_url(ask.url));
            return Err(FetchError::new(FetchErrorKind::Unsuitable, message));
        }
        let mut request = self.client()?.get(ask.url.clone()).timeout(limit);
        if let Some(authorization) = ask.authorization {
            let mut value = HeaderValue::from_str(authorization).map_err(|_| {
                let message = "the registry token contains an invalid character";
                FetchError::new(FetchErrorKind::Rejected, message).hint(format!("correct {}", ask.credentials))
            })?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(accept) = ask.accept {
            request = request.header(ACCEPT, accept);
        }
        request.send().await.map_err(|error| transport_error(ask, &error))
    }

    /// Sends a request and returns a successful response; `None` if the document does not exist (404).
    async fn get(&self, ask: HttpRequest<'_>, limit: Duration) -> Result<Option<Response>, FetchError> {
        let response = self.send(ask, limit).await?;
        match response.status() {
            status if status.is_success() => Ok(Some(response)),
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            _ => Err(status_error(ask, &response)),
        }
    }

    /// Fetches a document; `None` if it does not exist (404).
    pub async fn document(&self, ask: HttpRequest<'_>) -> Result<Option<Vec<u8>>, FetchError> {
        Ok(self.answer(ask).await?.map(|(_, content)| content))
    }

    /// Fetches a document with the headers of the response; `None` if it does not exist (404).
    pub async fn answer(&self, ask: HttpRequest<'_>) -> Result<Option<(HeaderMap, Vec<u8>)>, FetchError> {
        let Some(mut response) = self.get(ask, DOCUMENT).await? else { return Ok(None) };
        let mut content = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(ask, &error))? {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > DOCUMENT_BYTES {
                return Err(too_large(ask, DOCUMENT_BYTES));
            }
        }
        Ok(Some((std::mem::take(response.headers_mut()), content)))
    }

    /// Fetches a JSON document; `None` if it does not exist (404).
    pub async fn json<T: DeserializeOwned>(&self, ask: HttpRequest<'_>) -> Result<Option<T>, FetchError> {
        let Some(content) = self.document(ask).await? else { return Ok(None) };
        serde_json::from_slice(&content).map(Some).map_err(|error| {
            let message = format!("{} cannot be read: {error} ({})", ask.what, display_url(ask.url));
            FetchError::new(FetchErrorKind::Unsuitable, message)
                .hint("check that this is the address of a registry or mirror")
        })
    }

    /// Downloads a package to a file and returns its SHA-256 digest.
    pub async fn download(&self, ask: HttpRequest<'_>, to: &Path) -> Result<[u8; 32], FetchError> {
        let mut response = self.get(ask, PACKAGE).await?.ok_or_else(|| {
            let message = format!("{} does not exist: {} (404)", ask.what, display_url(ask.url));
            FetchError::new(FetchErrorKind::Rejected, message)
        })?;
        let mut file = tokio::fs::File::create(to).await.map_err(|error| FetchError::file(to, error))?;
        let (mut hasher, mut length) = (Sha256::new(), 0);
        while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(ask, &error))? {
            length += chunk.len() as u64;
            if length > PACKAGE_BYTES {
                return Err(too_large(ask, PACKAGE_BYTES));
            }
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(|error| FetchError::file(to, error))?;
        }
        file.flush().await.map_err(|error| FetchError::file(to, error))?;
        Ok(hasher.finalize().into())
    }
}

/// A digest in hexadecimal digits.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the URL is one with TLS.
pub fn is_secure(url: &Url) -> bool {
    url.scheme() == "https"
}

/// Follows redirects, but none from a request with TLS to one without.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    if attempt.previous().len() > REDIRECTS {
        return attempt.error("too many redirects");
    }
    if !is_secure(attempt.url()) && attempt.previous().iter().any(is_secure) {
        return attempt.error("it redirects to an address that is not https");
    }
    attempt.follow()
}

/// The URL without credentials and without the query, which may contain a signature.
pub fn display_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail for addresses without a host only, which have no password.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

fn too_large(ask: HttpRequest<'_>, bytes: u64) -> FetchError {
    let message = format!("{} is larger than {} MiB: {}", ask.what, bytes >> 20, display_url(ask.url));
    FetchError::new(FetchErrorKind::Unsuitable, message)
}

/// The error for a missing or incomplete response.
fn transport_error(ask: HttpRequest<'_>, error: &reqwest::Error) -> FetchError {
    let why = if error.is_timeout() { "the request timed out".to_owned() } else { chain(error) };
    let message = format!("{} cannot be fetched from {}: {why}", ask.what, display_url(ask.url));
    FetchError::new(FetchErrorKind::Unreachable, message).hint("check the network and proxies (HTTPS_PROXY)")
}

pub fn status_error(ask: HttpRequest<'_>, response: &Response) -> FetchError {
    let status = response.status();
    let (why, hint) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => match ask.authorization {
            None => ("credentials are required", Some(format!("set {}", ask.credentials))),
            Some(_) => ("the credentials were rejected", Some(format!("correct {}", ask.credentials))),
        },
        StatusCode::TOO_MANY_REQUESTS => {
            let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
            let hint = match after.map(|after| (after, after.parse::<u64>().is_ok())) {
                Some((seconds, true)) => format!("retry after {seconds} s"),
                Some((date, false)) => format!("retry after {date}"),
                None => "try again later".to_owned(),
            };
            ("too many requests", Some(hint))
        }
        _ if status.is_server_error() => ("the server failed", None),
        _ if status.is_redirection() => ("the redirect is not valid", None),
        _ => ("the request was rejected", None),
    };
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => FetchErrorKind::Limited,
        _ => FetchErrorKind::Rejected,
    };
    let (place, code) = (display_url(ask.url), status.as_u16());
    let error = FetchError::new(kind, format!("{} cannot be fetched from {place}: {why} ({code})", ask.what));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Formats the causes of an error on one line, without URLs.
fn chain(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        // The message of a cause is often part of the previous message.
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    match texts.last() {
        None if error.is_redirect() => "too many redirects".to_owned(),
        None => "the request failed".to_owned(),
        Some(_) => texts.join(": ").split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_urls_are_not_shown() {
        let url = Url::parse("https://user:pass@example.com/a.zip?X-Amz-Signature=s3cret#x").unwrap();
        assert_eq!(display_url(&url), "https://example.com/a.zip");
    }

    #[tokio::test]
    async fn unencrypted_requests_are_rejected() {
        let url = Url::parse("http://localhost:1/").unwrap();
        let error = Http::default().document(HttpRequest::new(&url, "the list")).await.unwrap_err();
        assert_eq!(error.message, "the list cannot be fetched: http://localhost:1/ is not https");
    }
}
