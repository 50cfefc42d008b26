//! Which providers somebody else has started: those of a developer, in a debugger mostly.

use std::collections::BTreeMap;

use crate::model::Provider;
use crate::plugin::{REATTACH_PROVIDERS, ReattachTarget, StartError, reattach_targets};

/// Two registries that have the same providers under the same names. Developers mostly name the first, and sources
/// without a host mean the second.
const SAME: [&str; 2] = ["registry.terraform.io/", "registry.opentofu.org/"];

/// Where such providers listen, by their addresses.
#[derive(Clone, Debug, Default)]
pub struct Reattach(BTreeMap<String, ReattachTarget>);

impl Reattach {
    /// As the variable `TF_REATTACH_PROVIDERS` of the environment says.
    ///
    /// # Errors
    /// When it cannot be read.
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

    /// Where a provider listens; `None` for one that has to be started.
    pub(super) fn target(&self, provider: &Provider) -> Option<&ReattachTarget> {
        self.0.get(plain(&provider.source))
    }
}

fn plain(address: &str) -> &str {
    SAME.into_iter().find_map(|host| address.strip_prefix(host)).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_with_either_of_the_registries_that_agree() {
        let text = r#"{"registry.terraform.io/acme/cloud":{"Protocol":"grpc","ProtocolVersion":6,"Pid":7,"Test":true,
            "Addr":{"Network":"unix","String":"/tmp/plugin1"}}}"#;
        let reattach = Reattach::parse(text).unwrap();
        let provider = |source: &str| -> Provider {
            serde_json::from_value(serde_json::json!({"name": "cloud", "source": source})).unwrap()
        };
        assert!(reattach.target(&provider("registry.opentofu.org/acme/cloud")).is_some());
        assert!(reattach.target(&provider("registry.terraform.io/acme/cloud")).is_some());
        assert!(reattach.target(&provider("registry.example.com/acme/cloud")).is_none());
    }
}
