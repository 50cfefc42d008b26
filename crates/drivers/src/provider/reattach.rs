//! Finds providers that a developer started separately, usually in a debugger.

use std::collections::BTreeMap;

use model::Provider;
use tfprovider::plugin::{REATTACH_PROVIDERS, ReattachTarget, StartError, reattach_targets};

/// Two registries with the same provider names. Developers usually use the first one, and sources without a host refer
/// to the second one.
const DEFAULT_REGISTRIES: [&str; 2] = ["registry.terraform.io/", "registry.opentofu.org/"];

/// The listening addresses of running providers, by provider address.
#[derive(Clone, Debug, Default)]
pub struct Reattach(BTreeMap<String, ReattachTarget>);

impl Reattach {
    /// Reads the environment variable `TF_REATTACH_PROVIDERS`.
    ///
    /// # Errors
    /// If the variable cannot be parsed.
    pub fn from_environment() -> Result<Self, StartError> {
        match std::env::var(REATTACH_PROVIDERS) {
            Ok(text) if !text.trim().is_empty() => Self::parse(&text),
            _ => Ok(Self::default()),
        }
    }

    fn parse(text: &str) -> Result<Self, StartError> {
        let targets = reattach_targets(text)?;
        Ok(Self(targets.into_iter().map(|(address, target)| (plain(&address).to_owned(), target)).collect()))
    }

    /// The listening address of a provider; `None` if Purlin must start it.
    pub(crate) fn target(&self, provider: &Provider) -> Option<&ReattachTarget> {
        self.0.get(plain(&provider.source))
    }

    /// Whether the user has started the provider with this address.
    pub fn has(&self, source: &str) -> bool {
        self.0.contains_key(plain(source))
    }
}

fn plain(address: &str) -> &str {
    DEFAULT_REGISTRIES.into_iter().find_map(|host| address.strip_prefix(host)).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(source: &str) -> Provider {
        serde_json::from_value(serde_json::json!({"name": "cloud", "source": source})).unwrap()
    }

    #[test]
    fn an_address_matches_with_either_default_registry() {
        let text = r#"{"registry.terraform.io/acme/cloud":{"Protocol":"grpc","ProtocolVersion":6,"Pid":7,"Test":true,
            "Addr":{"Network":"unix","String":"/tmp/plugin1"}}}"#;
        let reattach = Reattach::parse(text).unwrap();
        assert!(reattach.target(&provider("registry.opentofu.org/acme/cloud")).is_some());
        assert!(reattach.target(&provider("registry.terraform.io/acme/cloud")).is_some());
        assert!(reattach.target(&provider("registry.example.com/acme/cloud")).is_none());
    }
}
