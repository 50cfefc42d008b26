//! Clients of a kubeconfig, and its errors as one plain sentence.

use std::error::Error as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use kube::client::{AuthError, Body};
use kube::config::{InferConfigError, KubeconfigError};
use kube::{Client, Config};
use tokio::time::Instant;

use process::lock;

/// How long a token that was read from a file is used. Kubernetes replaces the tokens of ServiceAccounts long before they
/// expire.
const FRESH: Duration = Duration::from_mins(1);

/// A client. As with `kubectl`, white space around the token in a `tokenFile` does not count: most editors end a file with
/// a newline, with which `kube` sends no request.
///
/// # Errors
/// If the configuration cannot be used, or its token cannot be read.
pub fn client(mut config: Config) -> kube::Result<Client> {
    let path = config.auth_info.token_file.take().map(PathBuf::from);
    let Some(path) = path.filter(|_| config.auth_info.token.is_none()) else { return process::client(config) };
    // A token file has precedence over these.
    (config.auth_info.exec, config.auth_info.auth_provider) = (None, None);
    let file = Arc::new(TokenFile::read(path).map_err(kube::Error::Auth)?);
    let inner = process::client(config)?;
    let namespace = inner.default_namespace().to_owned();
    let authorized = tower::service_fn(move |mut request: http::Request<Body>| {
        request.headers_mut().insert(AUTHORIZATION, file.header());
        let client = inner.clone();
        async move { client.send(request).await }
    });
    Ok(Client::new(authorized, namespace))
}

/// A file with a token, which others replace.
struct TokenFile {
    path: PathBuf,
    /// When the file was last read, and its token.
    known: Mutex<(Instant, HeaderValue)>,
}

impl TokenFile {
    fn read(path: PathBuf) -> Result<Self, AuthError> {
        let known = Mutex::new((Instant::now(), authorization(&path)?));
        Ok(Self { path, known })
    }

    /// The current token. If the file cannot be read any more, the last one.
    fn header(&self) -> HeaderValue {
        let mut known = lock(&self.known);
        if known.0.elapsed() >= FRESH {
            let header = authorization(&self.path).unwrap_or_else(|_| known.1.clone());
            *known = (Instant::now(), header);
        }
        known.1.clone()
    }
}

fn authorization(path: &Path) -> Result<HeaderValue, AuthError> {
    let token = std::fs::read_to_string(path).map_err(|error| AuthError::ReadTokenFile(error, path.to_owned()))?;
    let header = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let mut header = header.map_err(AuthError::InvalidBearerToken)?;
    header.set_sensitive(true);
    Ok(header)
}

/// Says why a kubeconfig cannot be used.
pub fn problem(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, path) if error.kind() == ErrorKind::NotFound => {
            format!("there is no kubeconfig at `{}`", path.display())
        }
        KubeconfigError::FindPath => "there is no kubeconfig".to_owned(),
        KubeconfigError::CurrentContextNotSet => "the kubeconfig sets no current context".to_owned(),
        KubeconfigError::LoadContext(name) if name.is_empty() => "the kubeconfig sets no current context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("the kubeconfig has no context `{name}`"),
        error => format!("the kubeconfig cannot be used: {error}"),
    }
}

/// The same, for a process that is not in a Pod either.
pub fn inference_problem(error: &InferConfigError) -> String {
    let kubeconfig = error.source().and_then(|source| source.downcast_ref());
    kubeconfig.map_or_else(|| error.to_string(), problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_is_not_a_part_of_a_token() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "a.b.c\n").unwrap();
        let file = TokenFile::read(path.clone()).unwrap();
        assert_eq!(file.header(), "Bearer a.b.c");
        std::fs::write(&path, "two\nlines\n").unwrap();
        assert!(TokenFile::read(path).is_err());
        assert!(TokenFile::read(directory.path().join("none")).is_err());
    }
}
