//! HTTPS requests to registries and mirrors, with limits on time and size.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::InstallError;

/// The time limit to connect, short to detect unreachable hosts early.
const CONNECT: Duration = Duration::from_secs(10);

/// The time limit without received data.
const SILENCE: Duration = Duration::from_secs(30);

/// The time limit for a document.
const DOCUMENT: Duration = Duration::from_mins(1);

/// The time limit for a package. The largest packages have 200 MB, and some connections only 1 Mbit/s.
const PACKAGE: Duration = Duration::from_mins(30);

/// The maximum size of a document. The version lists of the oldest providers have 300 KB.
pub(super) const DOCUMENT_BYTES: u64 = 16 << 20;

/// The maximum size of a package. The largest packages have 200 MB.
pub(super) const PACKAGE_BYTES: u64 = 2 << 30;

/// The same limit as in Terraform.
const REDIRECTS: usize = 5;

/// The version that is reported to registries, of an OpenTofu with the same registry protocols.
const TERRAFORM_VERSION: &str = "1.13.0";

/// The client for all origins. It is created on first use, because loading the system's certificates takes a while.
#[derive(Debug, Default)]
pub(super) struct Http {
    roots: Vec<Vec<u8>>,
    client: OnceLock<Result<Client, InstallError>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HttpRequest<'a> {
    pub url: &'a Url,
    /// The name of the document in errors: `the list of versions of ...`.
    pub what: &'a str,
    /// The value of the `Authorization` header.
    pub authorization: Option<&'a str>,
    /// The source of credentials, for the hint if the request is unauthorized.
    pub credentials: &'a str,
    /// The value of the `Accept` header.
    pub accept: Option<&'static str>,
}

impl Http {
    /// `roots` are CA certificates (PEM) in addition to those of the system.
    pub fn new(roots: Vec<Vec<u8>>) -> Self {
        Self { roots, client: OnceLock::new() }
    }

    fn client(&self) -> Result<&Client, InstallError> {
        self.client.get_or_init(|| self.build()).as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<Client, InstallError> {
        let wrong = |error: reqwest::Error| {
            InstallError::new(format!("cannot create an HTTPS client: {}", chain(&error)))
                .hint("the CA certificates of the system are required; SSL_CERT_FILE can set their path")
        };
        let mut headers = HeaderMap::new();
        headers.insert("X-Terraform-Version", HeaderValue::from_static(TERRAFORM_VERSION));
        let mut builder = Client::builder()
            .user_agent(concat!("purlin/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            // Downloads must be encrypted, also after a redirect.
            .https_only(true)
            .redirect(redirect::Policy::limited(REDIRECTS))
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE);
        for root in &self.roots {
            for certificate in Certificate::from_pem_bundle(root).map_err(wrong)? {
                builder = builder.add_root_certificate(certificate);
            }
        }
        builder.build().map_err(wrong)
    }

    /// Sends a request and returns the response with any status.
    pub async fn send(&self, ask: HttpRequest<'_>, limit: Duration) -> Result<Response, InstallError> {
        if ask.url.scheme() != "https" {
            let message = format!("{} cannot be fetched: {} is not https", ask.what, display_url(ask.url));
            return Err(InstallError::new(message).at("spec.package"));
        }
        let mut request = self.client()?.get(ask.url.clone()).timeout(limit);
        if let Some(authorization) = ask.authorization {
            let mut value = HeaderValue::from_str(authorization).map_err(|_| {
                InstallError::new("the registry token contains an invalid character")
                    .hint(format!("correct {}", ask.credentials))
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
    pub async fn get(&self, ask: HttpRequest<'_>, limit: Duration) -> Result<Option<Response>, InstallError> {
        let response = self.send(ask, limit).await?;
        match response.status() {
            status if status.is_success() => Ok(Some(response)),
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            _ => Err(status_error(ask, &response)),
        }
    }

    /// Fetches a document; `None` if it does not exist (404).
    pub async fn document(&self, ask: HttpRequest<'_>) -> Result<Option<Vec<u8>>, InstallError> {
        let Some(mut response) = self.get(ask, DOCUMENT).await? else { return Ok(None) };
        let mut content = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(ask, &error))? {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > DOCUMENT_BYTES {
                return Err(too_large(ask, DOCUMENT_BYTES));
            }
        }
        Ok(Some(content))
    }

    /// Fetches a JSON document; `None` if it does not exist (404).
    pub async fn json<T: DeserializeOwned>(&self, ask: HttpRequest<'_>) -> Result<Option<T>, InstallError> {
        let Some(content) = self.document(ask).await? else { return Ok(None) };
        serde_json::from_slice(&content).map(Some).map_err(|error| {
            InstallError::new(format!("{} cannot be read: {error} ({})", ask.what, display_url(ask.url)))
                .at("spec.package")
                .hint("check that this is the address of a registry or mirror")
        })
    }

    /// Downloads a package to a file and returns its SHA-256 digest.
    pub async fn download(&self, ask: HttpRequest<'_>, to: &Path) -> Result<[u8; 32], InstallError> {
        let missing = || InstallError::new(format!("{} does not exist: {} (404)", ask.what, display_url(ask.url)));
        let mut response = self.get(ask, PACKAGE).await?.ok_or_else(missing)?;
        let failed = |error| InstallError::file(to, error);
        let mut file = tokio::fs::File::create(to).await.map_err(failed)?;
        let (mut hasher, mut length) = (Sha256::new(), 0);
        while let Some(chunk) = response.chunk().await.map_err(|error| transport_error(ask, &error))? {
            length += chunk.len() as u64;
            if length > PACKAGE_BYTES {
                return Err(too_large(ask, PACKAGE_BYTES));
            }
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        Ok(hasher.finalize().into())
    }
}

/// The URL without credentials and without the query, which may contain a signature.
pub(super) fn display_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail for addresses without a host only, which have no password.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

fn too_large(ask: HttpRequest<'_>, bytes: u64) -> InstallError {
    let message = format!("{} is larger than {} MiB: {}", ask.what, bytes >> 20, display_url(ask.url));
    InstallError::new(message).at("spec.package")
}

/// The error for a missing or incomplete response.
fn transport_error(ask: HttpRequest<'_>, error: &reqwest::Error) -> InstallError {
    let why = if error.is_timeout() { "the request timed out".to_owned() } else { chain(error) };
    let offline = "check the network and proxies (HTTPS_PROXY); without network access, use a mirror (--plugin-dir)";
    InstallError::new(format!("{} cannot be fetched from {}: {why}", ask.what, display_url(ask.url))).hint(offline)
}

pub(super) fn status_error(ask: HttpRequest<'_>, response: &Response) -> InstallError {
    let status = response.status();
    let place = display_url(ask.url);
    let say = |why: &str| format!("{} cannot be fetched from {place}: {why} ({})", ask.what, status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let (why, hint) = match ask.authorization {
                None => ("credentials are required", format!("set {}", ask.credentials)),
                Some(_) => ("the credentials were rejected", format!("correct {}", ask.credentials)),
            };
            InstallError::new(say(why)).hint(hint)
        }
        StatusCode::TOO_MANY_REQUESTS => {
            let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
            let hint = match after.map(|after| (after, after.parse::<u64>().is_ok())) {
                Some((seconds, true)) => format!("retry after {seconds} s; a mirror has no rate limit"),
                Some((date, false)) => format!("retry after {date}; a mirror has no rate limit"),
                None => "try again later; a mirror has no rate limit".to_owned(),
            };
            InstallError::new(say("too many requests")).hint(hint)
        }
        _ if status.is_server_error() => InstallError::new(say("the server failed")),
        _ if status.is_redirection() => InstallError::new(say("the redirect is not valid")),
        _ => InstallError::new(say("the request was rejected")),
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
        let ask = HttpRequest { url: &url, what: "the list", authorization: None, credentials: "", accept: None };
        let error = Http::default().document(ask).await.unwrap_err();
        assert_eq!(error.message, "the list cannot be fetched: http://localhost:1/ is not https");
    }
}
