//! Providers that somebody else started, in a debugger mostly: Terraform's variable `TF_REATTACH_PROVIDERS` tells where
//! they listen.

use std::collections::BTreeMap;

use super::handshake::Address;
use super::{Protocol, StartError};

/// The variable.
pub const REATTACH_PROVIDERS: &str = "TF_REATTACH_PROVIDERS";

/// Where such a provider listens. It speaks without TLS, and nobody but its owner ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReattachTarget {
    pub(super) protocol: Protocol,
    pub(super) address: Address,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Target {
    protocol: String,
    #[serde(default)]
    protocol_version: u32,
    addr: TargetAddress,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TargetAddress {
    network: String,
    string: String,
}

/// Reads the value of the variable: provider addresses and where they listen.
pub fn reattach_targets(text: &str) -> Result<BTreeMap<String, ReattachTarget>, StartError> {
    let targets: BTreeMap<String, Target> =
        serde_json::from_str(text).map_err(|error| StartError::Reattach(error.to_string()))?;
    targets.into_iter().map(|(name, target)| Ok((name.clone(), resolve(&name, &target)?))).collect()
}

fn resolve(name: &str, target: &Target) -> Result<ReattachTarget, StartError> {
    let refuse = |what: &str, value: &str| StartError::Reattach(format!("{name}: {what} `{value}` is not supported"));
    if target.protocol != "grpc" {
        return Err(refuse("Protocol", &target.protocol));
    }
    let protocol = match target.protocol_version {
        // Written by SDKs that knew only one version.
        0 | 5 => Protocol::V5,
        6 => Protocol::V6,
        other => return Err(refuse("ProtocolVersion", &other.to_string())),
    };
    let place = &target.addr.string;
    let address = match target.addr.network.as_str() {
        "unix" => Address::Unix(place.into()),
        "tcp" => Address::Tcp(place.parse().map_err(|_| refuse("Addr", place))?),
        other => return Err(refuse("Network", other)),
    };
    Ok(ReattachTarget { protocol, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(protocol: &str, version: u32, network: &str) -> Result<BTreeMap<String, ReattachTarget>, StartError> {
        reattach_targets(&format!(
            r#"{{"registry.opentofu.org/a/b":{{"Protocol":"{protocol}","ProtocolVersion":{version},"Pid":7,"Test":true,
                "Addr":{{"Network":"{network}","String":"/tmp/plugin1"}}}}}}"#
        ))
    }

    #[test]
    fn a_target_is_read() {
        let targets = one("grpc", 0, "unix").unwrap();
        let expected = ReattachTarget { protocol: Protocol::V5, address: Address::Unix("/tmp/plugin1".into()) };
        assert_eq!(targets["registry.opentofu.org/a/b"], expected);
        assert_eq!(one("grpc", 6, "unix").unwrap()["registry.opentofu.org/a/b"].protocol, Protocol::V6);
    }

    #[test]
    fn what_cannot_be_reached_is_an_error_that_names_the_provider() {
        let error = |result: Result<_, StartError>| result.unwrap_err().to_string();
        let text = error(one("netrpc", 5, "unix"));
        assert!(text.contains("registry.opentofu.org/a/b: Protocol `netrpc` is not supported"), "{text}");
        assert!(error(one("grpc", 4, "unix")).contains("ProtocolVersion `4`"));
        assert!(error(one("grpc", 5, "pipe")).contains("Network `pipe`"));
        assert!(error(one("grpc", 5, "tcp")).contains("Addr `/tmp/plugin1`"));
        assert!(error(reattach_targets("{")).starts_with("TF_REATTACH_PROVIDERS cannot be read: "));
    }
}
