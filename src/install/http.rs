//! Requests to registries and mirrors: encrypted, bounded in time and size, and each refusal one clear error.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Client, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::InstallError;

/// How long a connection may take to come about. A host that does not answer at all is found out soon.
const CONNECT: Duration = Duration::from_secs(10);

/// How long nothing may arrive.
const SILENCE: Duration = Duration::from_secs(30);

/// How long a document may take.
const DOCUMENT: Duration = Duration::from_mins(1);

/// How long a package may take: the largest have 200 MB, and lines of 1 Mbit/s exist.
const PACKAGE: Duration = Duration::from_mins(30);

/// How large a document may be. The list of versions of the oldest providers has 300 KB.
pub(super) const DOCUMENT_BYTES: u64 = 16 << 20;

/// How large a package may be. The largest have 200 MB.
pub(super) const PACKAGE_BYTES: u64 = 2 << 30;

/// Terraform gives up after five, too.
const REDIRECTS: usize = 5;

/// A version of OpenTofu whose protocols we speak; registries want to know one.
const TERRAFORM_VERSION: &str = "1.13.0";

/// One client for all origins. It is made when it is first needed: reading the system's certificates takes a while.
#[derive(Debug, Default)]
pub(super) struct Http {
    roots: Vec<Vec<u8>>,
    client: OnceLock<Result<Client, InstallError>>,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    /// What is asked.
    pub url: &'a Url,
    /// What it is for errors: `the versions of ...`.
    pub what: &'a str,
    /// The value of the header `Authorization`.
    pub authorization: Option<&'a str>,
    /// Where credentials for it would come from, when it is refused.
    pub credentials: &'a str,
    /// The value of the header `Accept`.
    pub accept: Option<&'static str>,
}

impl Http {
    /// A client that trusts the certificates of the system, and these (PEM).
    pub fn new(roots: Vec<Vec<u8>>) -> Self {
        Self { roots, client: OnceLock::new() }
    }

    fn client(&self) -> Result<&Client, InstallError> {
        self.client.get_or_init(|| self.build()).as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<Client, InstallError> {
        let wrong = |error: reqwest::Error| {
            InstallError::terminal(format!("no client for HTTPS can be made: {}", chain(&error)))
                .hint("the certificates of the system are needed; SSL_CERT_FILE may name them")
        };
        let mut headers = HeaderMap::new();
        headers.insert("X-Terraform-Version", HeaderValue::from_static(TERRAFORM_VERSION));
        let mut builder = Client::builder()
            .user_agent(concat!("purlin/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            // Nothing of what is installed may be seen or changed on its way, also not after a redirect.
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

    /// A request whose answer has any status.
    pub async fn send(&self, ask: Ask<'_>, limit: Duration) -> Result<Response, InstallError> {
        if ask.url.scheme() != "https" {
            let message = format!("{} cannot be asked: {} is not https", ask.what, shown(ask.url));
            return Err(InstallError::terminal(message).at("spec.package"));
        }
        let mut request = self.client()?.get(ask.url.clone()).timeout(limit);
        if let Some(authorization) = ask.authorization {
            let mut value = HeaderValue::from_str(authorization).map_err(|_| {
                InstallError::terminal("the token for a registry holds a character that no token has")
                    .hint(format!("correct {}", ask.credentials))
            })?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(accept) = ask.accept {
            request = request.header(ACCEPT, accept);
        }
        request.send().await.map_err(|error| unanswered(ask, &error))
    }

    /// A request whose answer must be good; `None` when there is nothing (404).
    pub async fn get(&self, ask: Ask<'_>, limit: Duration) -> Result<Option<Response>, InstallError> {
        let answer = self.send(ask, limit).await?;
        match answer.status() {
            status if status.is_success() => Ok(Some(answer)),
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            _ => Err(refused(ask, &answer)),
        }
    }

    /// A document; `None` when there is none (404).
    pub async fn document(&self, ask: Ask<'_>) -> Result<Option<Vec<u8>>, InstallError> {
        let Some(mut answer) = self.get(ask, DOCUMENT).await? else { return Ok(None) };
        let mut content = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| unanswered(ask, &error))? {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > DOCUMENT_BYTES {
                return Err(too_large(ask, DOCUMENT_BYTES));
            }
        }
        Ok(Some(content))
    }

    /// A JSON document; `None` when there is none (404).
    pub async fn json<T: DeserializeOwned>(&self, ask: Ask<'_>) -> Result<Option<T>, InstallError> {
        let Some(content) = self.document(ask).await? else { return Ok(None) };
        serde_json::from_slice(&content).map(Some).map_err(|error| {
            InstallError::terminal(format!("{} cannot be read: {error} ({})", ask.what, shown(ask.url)))
                .at("spec.package")
                .hint("is this the address of a registry or mirror?")
        })
    }

    /// Writes a package to a file and gives its SHA-256.
    pub async fn download(&self, ask: Ask<'_>, to: &Path) -> Result<[u8; 32], InstallError> {
        let missing = || InstallError::transient(format!("{} is not there: {} (404)", ask.what, shown(ask.url)));
        let mut answer = self.get(ask, PACKAGE).await?.ok_or_else(missing)?;
        let failed = |error| InstallError::file(to, error);
        let mut file = tokio::fs::File::create(to).await.map_err(failed)?;
        let (mut hasher, mut length) = (Sha256::new(), 0);
        while let Some(chunk) = answer.chunk().await.map_err(|error| unanswered(ask, &error))? {
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

/// An address without what follows `?`: signatures of short-lived links are there.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail for addresses without a host only, which have no password.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

fn too_large(ask: Ask<'_>, bytes: u64) -> InstallError {
    let message = format!("{} has more than {} MiB: {}", ask.what, bytes >> 20, shown(ask.url));
    InstallError::terminal(message).at("spec.package")
}

/// No answer, or one that ended before its end.
fn unanswered(ask: Ask<'_>, error: &reqwest::Error) -> InstallError {
    let why = if error.is_timeout() { "no answer in time".to_owned() } else { chain(error) };
    let offline = "check network and proxies (HTTPS_PROXY); without network use a mirror (--plugin-dir)";
    InstallError::transient(format!("{} cannot be fetched from {}: {why}", ask.what, shown(ask.url))).hint(offline)
}

/// An answer that refuses.
pub(super) fn refused(ask: Ask<'_>, answer: &Response) -> InstallError {
    let status = answer.status();
    let place = shown(ask.url);
    let say = |why: &str| format!("{} cannot be fetched from {place}: {why} ({})", ask.what, status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let (why, hint) = match ask.authorization {
                None => ("credentials are needed", format!("set {}", ask.credentials)),
                Some(_) => ("the credentials are refused", format!("correct {}", ask.credentials)),
            };
            InstallError::terminal(say(why)).hint(hint)
        }
        StatusCode::TOO_MANY_REQUESTS => {
            let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
            let hint = match after.map(|after| (after, after.parse::<u64>().is_ok())) {
                Some((seconds, true)) => format!("it asks to be left alone for {seconds} s; a mirror has no limits"),
                Some((date, false)) => format!("it asks to be left alone until {date}; a mirror has no limits"),
                None => "try again later; a mirror has no limits".to_owned(),
            };
            InstallError::transient(say("there were too many requests")).hint(hint)
        }
        _ if status.is_server_error() => InstallError::transient(say("the server failed")),
        _ if status.is_redirection() => InstallError::terminal(say("it leads nowhere")),
        _ => InstallError::terminal(say("the request is refused")),
    }
}

/// An error with its causes, in one line and without addresses.
fn chain(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        // Causes often repeat what they cause.
        if !texts.iter().any(|told| told.contains(&text)) {
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
    fn secrets_of_an_address_are_not_shown() {
        let url = Url::parse("https://user:pass@example.com/a.zip?X-Amz-Signature=s3cret#x").unwrap();
        assert_eq!(shown(&url), "https://example.com/a.zip");
    }

    #[tokio::test]
    async fn nothing_goes_over_the_wire_unencrypted() {
        let url = Url::parse("http://localhost:1/").unwrap();
        let ask = Ask { url: &url, what: "the list", authorization: None, credentials: "", accept: None };
        let error = Http::default().document(ask).await.unwrap_err();
        assert_eq!(error.message, "the list cannot be asked: http://localhost:1/ is not https");
    }
}
