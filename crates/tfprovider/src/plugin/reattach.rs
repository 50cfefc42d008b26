//! Connects to providers that run already, usually in a debugger. Terraform's variable `TF_REATTACH_PROVIDERS` holds
//! their addresses.

use std::collections::BTreeMap;

use super::handshake::Address;
use super::{Protocol, StartError};

pub const REATTACH_PROVIDERS: &str = "TF_REATTACH_PROVIDERS";

/// The address of a running provider. The connection does not use TLS, and Purlin never terminates the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReattachTarget {
    pub(crate) protocol: Protocol,
    pub(crate) address: Address,
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

/// Parses the value of the variable. Returns the targets by provider address.
pub fn reattach_targets(text: &str) -> Result<BTreeMap<String, ReattachTarget>, StartError> {
    let targets: BTreeMap<String, Target> =
        serde_json::from_str(text).map_err(|error| StartError::Reattach(error.to_string()))?;
    targets.into_iter().map(|(name, target)| Ok((name.clone(), resolve(&name, &target)?))).collect()
}

fn resolve(name: &str, target: &Target) -> Result<ReattachTarget, StartError> {
    let unsupported =
        |what: &str, value: &str| StartError::Reattach(format!("{name}: {what} `{value}` is not supported"));
    if target.protocol != "grpc" {
        return Err(unsupported("Protocol", &target.protocol));
    }
    let protocol = match target.protocol_version {
        // SDKs that supported only one version wrote 0.
        0 | 5 => Protocol::V5,
        6 => Protocol::V6,
        other => return Err(unsupported("ProtocolVersion", &other.to_string())),
    };
    let address = &target.addr.string;
    let address = match target.addr.network.as_str() {
        "unix" => Address::Unix(address.into()),
        "tcp" => Address::Tcp(address.parse().map_err(|_| unsupported("Addr", address))?),
        other => return Err(unsupported("Network", other)),
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
    fn a_target_is_parsed() {
        let targets = one("grpc", 0, "unix").unwrap();
        let expected = ReattachTarget { protocol: Protocol::V5, address: Address::Unix("/tmp/plugin1".into()) };
        assert_eq!(targets["registry.opentofu.org/a/b"], expected);
        assert_eq!(one("grpc", 6, "unix").unwrap()["registry.opentofu.org/a/b"].protocol, Protocol::V6);
    }

    #[test]
    fn unsupported_targets_are_errors_that_name_the_provider() {
        let error = |result: Result<_, StartError>| result.unwrap_err().to_string();
        let text = error(one("netrpc", 5, "unix"));
        assert!(text.contains("registry.opentofu.org/a/b: Protocol `netrpc` is not supported"), "{text}");
        assert!(error(one("grpc", 4, "unix")).contains("ProtocolVersion `4`"));
        assert!(error(one("grpc", 5, "pipe")).contains("Network `pipe`"));
        assert!(error(one("grpc", 5, "tcp")).contains("Addr `/tmp/plugin1`"));
        assert!(error(reattach_targets("{")).starts_with("TF_REATTACH_PROVIDERS is not valid: "));
    }
}
