//! Credentials for registries: Terraform's token variables, and logins of `docker login` for OCI registries.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// The prefix of the token variables. The rest of the name is the host, with `_` for `.` and `__` for `-`.
const PREFIX: &str = "TF_TOKEN_";

#[derive(Clone, Default)]
pub struct Credentials {
    tokens: BTreeMap<String, String>,
    docker: Option<PathBuf>,
}

impl Credentials {
    /// Reads the environment of this process.
    pub fn from_environment() -> Self {
        let variables = std::env::vars_os();
        let text = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::from_variables(text)
    }

    /// Reads the given variables.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut tokens, mut config, mut home) = (BTreeMap::new(), None, None);
        for (name, value) in variables {
            match name.as_str() {
                "DOCKER_CONFIG" => config = Some(PathBuf::from(value)),
                "HOME" => home = Some(PathBuf::from(value).join(".docker")),
                _ => {
                    if let Some(host) = name.strip_prefix(PREFIX).filter(|_| !value.is_empty()) {
                        tokens.insert(decode_host(host), value);
                    }
                }
            }
        }
        Self { tokens, docker: config.or(home).map(|folder| folder.join("config.json")) }
    }

    /// With tokens from elsewhere. Those of the environment count first.
    #[must_use]
    pub fn with_tokens(mut self, tokens: impl IntoIterator<Item = (String, String)>) -> Self {
        for (host, token) in tokens {
            self.tokens.entry(host).or_insert(token);
        }
        self
    }

    /// The token for a host, with an optional port.
    pub fn token(&self, host: &str) -> Option<&str> {
        self.tokens.get(&host.to_ascii_lowercase()).map(String::as_str)
    }

    /// The login for an OCI registry in the form of the header `Authorization: Basic`. Credential helpers are not
    /// supported.
    pub fn login(&self, host: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Config {
            #[serde(default)]
            auths: BTreeMap<String, Login>,
        }
        #[derive(Deserialize)]
        struct Login {
            auth: Option<String>,
        }
        let text = std::fs::read_to_string(self.docker.as_ref()?).ok()?;
        let config: Config = serde_json::from_str(&text).ok()?;
        config.auths.get(host)?.auth.clone().filter(|login| !login.is_empty())
    }
}

fn decode_host(encoded: &str) -> String {
    encoded.replace("__", "-").replace('_', ".").to_ascii_lowercase()
}

/// The name of the token variable for a host.
pub fn token_variable(host: &str) -> String {
    format!("{PREFIX}{}", host.replace('-', "__").replace('.', "_"))
}

// Tokens are secrets, and debug output may be logged.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("hosts", &self.tokens.keys()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Credentials {
        Credentials::from_variables(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_token_variable_is_read_for_its_host() {
        let known = from(&[("TF_TOKEN_my__registry_example_com", "s3cret"), ("TF_TOKEN_empty_example_com", "")]);
        assert_eq!(known.token("my-registry.example.com"), Some("s3cret"));
        assert_eq!(known.token("My-Registry.Example.com"), Some("s3cret"));
        assert_eq!(known.token("registry.example.com"), None);
        assert_eq!(known.token("empty.example.com"), None);
        let more = [("my-registry.example.com", "other"), ("registry.example.com", "t0ken")];
        let more = known.clone().with_tokens(more.map(|(host, token)| (host.to_owned(), token.to_owned())));
        assert_eq!(more.token("my-registry.example.com"), Some("s3cret"));
        assert_eq!(more.token("registry.example.com"), Some("t0ken"));
        assert_eq!(token_variable("my-registry.example.com"), "TF_TOKEN_my__registry_example_com");
        assert!(!format!("{known:?}").contains("s3cret"));
    }

    #[test]
    fn logins_of_docker_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let config = r#"{"auths":{"ghcr.io":{"auth":"dTpw"},"other.io":{}}}"#;
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        let known = from(&[("DOCKER_CONFIG", folder.path().to_str().unwrap()), ("HOME", "/nowhere")]);
        assert_eq!(known.login("ghcr.io").as_deref(), Some("dTpw"));
        assert_eq!(known.login("other.io"), None);
        assert_eq!(known.login("else.io"), None);
    }
}
