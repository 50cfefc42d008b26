//! The methods of the provider protocol. Both versions have the same methods, some with different names.

use super::Protocol;

/// A method with its name in version 6, which Purlin uses in messages, and its path in each version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    pub name: &'static str,
    v5: &'static str,
    v6: &'static str,
}

impl Method {
    pub fn path(self, protocol: Protocol) -> &'static str {
        match protocol {
            Protocol::V5 => self.v5,
            Protocol::V6 => self.v6,
        }
    }

    /// Whether it returns schemas, which are larger than objects and do not depend on a configuration.
    pub fn returns_schema(self) -> bool {
        self == GET_PROVIDER_SCHEMA || self == GET_RESOURCE_IDENTITY_SCHEMAS
    }
}

macro_rules! methods {
    ($($constant:ident = $v6:literal $(/ $v5:literal)?;)+) => {
        $(pub const $constant: Method = Method {
            name: $v6,
            v5: methods!(@v5 $v6 $($v5)?),
            v6: concat!("/tfplugin6.Provider/", $v6),
        };)+
    };
    (@v5 $v6:literal) => { concat!("/tfplugin5.Provider/", $v6) };
    (@v5 $v6:literal $v5:literal) => { concat!("/tfplugin5.Provider/", $v5) };
}

methods! {
    GET_PROVIDER_SCHEMA = "GetProviderSchema" / "GetSchema";
    GET_RESOURCE_IDENTITY_SCHEMAS = "GetResourceIdentitySchemas";
    VALIDATE_PROVIDER_CONFIG = "ValidateProviderConfig" / "PrepareProviderConfig";
    VALIDATE_RESOURCE_CONFIG = "ValidateResourceConfig" / "ValidateResourceTypeConfig";
    VALIDATE_DATA_RESOURCE_CONFIG = "ValidateDataResourceConfig" / "ValidateDataSourceConfig";
    CONFIGURE_PROVIDER = "ConfigureProvider" / "Configure";
    UPGRADE_RESOURCE_STATE = "UpgradeResourceState";
    UPGRADE_RESOURCE_IDENTITY = "UpgradeResourceIdentity";
    READ_RESOURCE = "ReadResource";
    PLAN_RESOURCE_CHANGE = "PlanResourceChange";
    APPLY_RESOURCE_CHANGE = "ApplyResourceChange";
    IMPORT_RESOURCE_STATE = "ImportResourceState";
    MOVE_RESOURCE_STATE = "MoveResourceState";
    READ_DATA_SOURCE = "ReadDataSource";
    VALIDATE_EPHEMERAL_RESOURCE_CONFIG = "ValidateEphemeralResourceConfig";
    OPEN_EPHEMERAL_RESOURCE = "OpenEphemeralResource";
    RENEW_EPHEMERAL_RESOURCE = "RenewEphemeralResource";
    CLOSE_EPHEMERAL_RESOURCE = "CloseEphemeralResource";
    CALL_FUNCTION = "CallFunction";
    GENERATE_RESOURCE_CONFIG = "GenerateResourceConfig";
    STOP_PROVIDER = "StopProvider" / "Stop";
}

/// Shuts the process down. It often exits before it responds.
pub const SHUTDOWN: &str = "/plugin.GRPCController/Shutdown";

pub const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// Streams the provider's standard output and standard error.
pub const STREAM_STDIO: &str = "/plugin.GRPCStdio/StreamStdio";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_path_depends_on_the_protocol() {
        assert_eq!(CONFIGURE_PROVIDER.path(Protocol::V5), "/tfplugin5.Provider/Configure");
        assert_eq!(CONFIGURE_PROVIDER.path(Protocol::V6), "/tfplugin6.Provider/ConfigureProvider");
        assert_eq!(READ_RESOURCE.path(Protocol::V5), "/tfplugin5.Provider/ReadResource");
        assert_eq!(READ_RESOURCE.path(Protocol::V6), "/tfplugin6.Provider/ReadResource");
    }
}
