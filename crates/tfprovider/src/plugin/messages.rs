//! The requests to a provider and its responses: the protobuf messages of versions 5 and 6 of the provider protocol, and
//! of the services that every plugin has.
//!
//! The structs are written by hand, so the build needs no protobuf compiler. One set serves both versions, which differ
//! only in the names of methods ([`super::method`]) and in `Schema.Attribute`, which [`crate::schema`] decodes. Fields that
//! Purlin never reads are omitted; the decoder skips them. Private data are opaque bytes of the provider that are
//! returned to it unchanged. [`super::Client`] sets `provider_meta` and `client_capabilities`.

use std::collections::BTreeMap;

use cty::json::UnsupportedAttributes;
use cty::{Error, Type, Value, json, msgpack};
use prost::Message;

use super::{AttributePath, Diagnostic};

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub struct HealthRequest {
    #[prost(string, tag = "1")]
    pub service: String,
}

impl HealthRequest {
    /// Checks the service that every plugin has.
    pub fn plugin() -> Self {
        Self { service: "plugin".to_owned() }
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct HealthResponse {
    #[prost(int32, tag = "1")]
    pub status: i32,
}

/// A value in one of two encodings: in requests always msgpack, which all providers accept. An absent value means null.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DynamicValue {
    /// May contain unknown values.
    #[prost(bytes = "vec", tag = "1")]
    pub msgpack: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub json: Vec<u8>,
}

/// The msgpack encoding of null.
const NULL: u8 = 0xc0;

impl DynamicValue {
    /// The null value. Requests must contain it explicitly: older providers crash if it is absent.
    pub fn null() -> Self {
        Self::encoded(vec![NULL])
    }

    /// A value that is encoded as msgpack.
    pub fn encoded(msgpack: Vec<u8>) -> Self {
        Self { msgpack, json: Vec::new() }
    }

    /// Encodes a value of the type.
    ///
    /// # Errors
    /// If the value has another type.
    pub fn of(value: &Value, ty: &Type) -> Result<Self, Error> {
        msgpack::encode(value, ty).map(Self::encoded)
    }

    /// Decodes the value, which must have the type.
    ///
    /// # Errors
    /// If it is not the encoding of a value of the type.
    pub fn value(&self, ty: &Type) -> Result<Value, Error> {
        match (self.msgpack.is_empty(), self.json.is_empty()) {
            (false, _) => msgpack::decode(&self.msgpack, ty),
            (true, false) => json::decode(&self.json, ty, UnsupportedAttributes::Reject),
            (true, true) => Ok(Value::null(ty.clone())),
        }
    }

    /// Whether this is the null value. A null `state` in a response means that the object does not exist.
    pub fn is_null(&self) -> bool {
        match self.msgpack.as_slice() {
            [] => self.json.is_empty() || self.json.trim_ascii() == b"null",
            bytes => bytes == [NULL],
        }
    }
}

/// A recorded state as JSON, written by this or another version of the provider.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RawState {
    #[prost(bytes = "vec", tag = "1")]
    pub json: Vec<u8>,
}

impl RawState {
    pub fn new(json: impl Into<Vec<u8>>) -> Self {
        Self { json: json.into() }
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct ClientCapabilities {
    #[prost(bool, tag = "1")]
    pub deferral_allowed: bool,
    #[prost(bool, tag = "2")]
    pub write_only_attributes_allowed: bool,
}

/// The optional capabilities of a provider. All are false if the provider does not report them.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Capabilities {
    /// The provider plans destroys too.
    #[prost(bool, tag = "1")]
    pub plan_destroy: bool,
    /// Other calls work before the schema has been requested. Older providers initialize themselves in the schema call.
    #[prost(bool, tag = "2")]
    pub schema_is_optional: bool,
    /// The provider can move the state of an object of another type.
    #[prost(bool, tag = "3")]
    pub move_state: bool,
    /// The provider can generate a configuration from a state.
    #[prost(bool, tag = "4")]
    pub generate_config: bool,
}

/// A provider deferred an object. Providers do so only if the client allows it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Deferred {
    /// 1: the configuration of the object is unknown, 2: that of the provider is, 3: a prerequisite does not exist yet.
    #[prost(int32, tag = "1")]
    pub reason: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct Identity {
    #[prost(message, optional, tag = "1")]
    pub data: Option<DynamicValue>,
}

impl Identity {
    /// The identity of an object; `None` for types without identities.
    pub fn of(data: Option<DynamicValue>) -> Option<Self> {
        data.map(|data| Self { data: Some(data) })
    }
}

/// The schemas stay encoded until they are needed: a provider can have a thousand types, of which a user needs three. A
/// message and its bytes have the same form on the wire.
#[derive(Clone, PartialEq, Message)]
pub struct GetProviderSchemaResponse {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub provider: Option<Vec<u8>>,
    #[prost(btree_map = "string, bytes", tag = "2")]
    pub resource_schemas: BTreeMap<String, Vec<u8>>,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub data_source_schemas: BTreeMap<String, Vec<u8>>,
    #[prost(message, repeated, tag = "4")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub provider_meta: Option<Vec<u8>>,
    #[prost(message, optional, tag = "6")]
    pub server_capabilities: Option<Capabilities>,
    #[prost(btree_map = "string, message", tag = "7")]
    pub functions: BTreeMap<String, FunctionMessage>,
    #[prost(btree_map = "string, bytes", tag = "8")]
    pub ephemeral_resource_schemas: BTreeMap<String, Vec<u8>>,
}

/// What a function takes and returns. Types are JSON.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FunctionMessage {
    #[prost(message, repeated, tag = "1")]
    pub parameters: Vec<ParameterMessage>,
    #[prost(message, optional, tag = "2")]
    pub variadic_parameter: Option<ParameterMessage>,
    #[prost(message, required, tag = "3")]
    pub result: ReturnMessage,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct ParameterMessage {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub r#type: Vec<u8>,
    #[prost(bool, tag = "3")]
    pub allow_null_value: bool,
    #[prost(bool, tag = "4")]
    pub allow_unknown_values: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct ReturnMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub r#type: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetResourceIdentitySchemasResponse {
    #[prost(btree_map = "string, message", tag = "1")]
    pub identity_schemas: BTreeMap<String, IdentitySchema>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

/// The schema of the identity of a resource type.
#[derive(Clone, PartialEq, Message)]
pub struct IdentitySchema {
    /// The schema version of recorded identities.
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<IdentityAttribute>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IdentityAttribute {
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type as JSON.
    #[prost(bytes = "vec", tag = "2")]
    pub r#type: Vec<u8>,
    #[prost(bool, tag = "3")]
    pub required_for_import: bool,
    /// The provider determines the value if the import omits it.
    #[prost(bool, tag = "4")]
    pub optional_for_import: bool,
    #[prost(string, tag = "5")]
    pub description: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValidateProviderConfig {
    #[prost(message, required, tag = "1")]
    pub config: DynamicValue,
}

/// The response to validation requests and to `ConfigureProvider`.
#[derive(Clone, PartialEq, Message)]
pub struct CheckResponse {
    #[prost(message, repeated, tag = "1")]
    pub diagnostics: Vec<Diagnostic>,
}

/// In version 5, field 1 is a prepared configuration, which is not used.
#[derive(Clone, PartialEq, Message)]
pub struct ValidateProviderConfigResponse {
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

/// A configuration of a type: to validate it, without capabilities if it is none of a resource, or to open an ephemeral resource.
#[derive(Clone, PartialEq, Message)]
pub struct TypeConfig {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, required, tag = "2")]
    pub config: DynamicValue,
    #[prost(message, optional, tag = "3")]
    pub client_capabilities: Option<ClientCapabilities>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ConfigureProvider {
    #[prost(string, tag = "1")]
    pub terraform_version: String,
    #[prost(message, required, tag = "2")]
    pub config: DynamicValue,
    #[prost(message, optional, tag = "3")]
    pub client_capabilities: Option<ClientCapabilities>,
}

/// Upgrades a recorded state to the current schema. Must be called even if the version is current.
#[derive(Clone, PartialEq, Message)]
pub struct UpgradeResourceState {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
    #[prost(message, required, tag = "3")]
    pub state: RawState,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeResourceStateResponse {
    #[prost(message, required, tag = "1")]
    pub state: DynamicValue,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeResourceIdentity {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
    #[prost(message, required, tag = "3")]
    pub identity: RawState,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeResourceIdentityResponse {
    #[prost(message, optional, tag = "1")]
    pub identity: Option<Identity>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadResource {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, required, tag = "2")]
    pub state: DynamicValue,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub provider_meta: Option<DynamicValue>,
    #[prost(message, optional, tag = "5")]
    pub client_capabilities: Option<ClientCapabilities>,
    #[prost(message, optional, tag = "6")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadResourceResponse {
    /// Null if the object no longer exists.
    #[prost(message, required, tag = "1")]
    pub state: DynamicValue,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub deferred: Option<Deferred>,
    #[prost(message, optional, tag = "5")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PlanResourceChange {
    #[prost(string, tag = "1")]
    pub type_name: String,
    /// The prior state; null to create the object.
    #[prost(message, required, tag = "2")]
    pub prior: DynamicValue,
    /// The proposed new state; null to destroy the object.
    #[prost(message, required, tag = "3")]
    pub proposed: DynamicValue,
    /// Null to destroy the object.
    #[prost(message, required, tag = "4")]
    pub config: DynamicValue,
    #[prost(bytes = "vec", tag = "5")]
    pub prior_private: Vec<u8>,
    #[prost(message, optional, tag = "6")]
    pub provider_meta: Option<DynamicValue>,
    #[prost(message, optional, tag = "7")]
    pub client_capabilities: Option<ClientCapabilities>,
    #[prost(message, optional, tag = "8")]
    pub prior_identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PlanResourceChangeResponse {
    /// The planned state.
    #[prost(message, required, tag = "1")]
    pub state: DynamicValue,
    /// The attributes whose change requires replacement. Providers also list unchanged ones, so compare the values.
    #[prost(message, repeated, tag = "2")]
    pub requires_replace: Vec<AttributePath>,
    /// The private data for the apply.
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    pub diagnostics: Vec<Diagnostic>,
    /// The provider uses the legacy type system, which may violate the rules for plans and results.
    #[prost(bool, tag = "5")]
    pub legacy_type_system: bool,
    #[prost(message, optional, tag = "6")]
    pub deferred: Option<Deferred>,
    /// The planned identity, if it is known.
    #[prost(message, optional, tag = "7")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ApplyResourceChange {
    #[prost(string, tag = "1")]
    pub type_name: String,
    /// The prior state; null to create the object.
    #[prost(message, required, tag = "2")]
    pub prior: DynamicValue,
    /// The planned state, unchanged; null to destroy the object.
    #[prost(message, required, tag = "3")]
    pub planned: DynamicValue,
    /// Without unknown values; null to destroy the object.
    #[prost(message, required, tag = "4")]
    pub config: DynamicValue,
    #[prost(bytes = "vec", tag = "5")]
    pub planned_private: Vec<u8>,
    #[prost(message, optional, tag = "6")]
    pub provider_meta: Option<DynamicValue>,
    #[prost(message, optional, tag = "7")]
    pub planned_identity: Option<Identity>,
}

/// The result of an apply. Record the state before checking the diagnostics: a change that failed halfway has both.
#[derive(Clone, PartialEq, Message)]
pub struct ApplyResourceChangeResponse {
    /// Null if the object no longer exists or the provider does not return it.
    #[prost(message, required, tag = "1")]
    pub state: DynamicValue,
    #[prost(bytes = "vec", tag = "2")]
    pub private: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    pub diagnostics: Vec<Diagnostic>,
    /// The provider uses the legacy type system, which may violate the rules for plans and results.
    #[prost(bool, tag = "4")]
    pub legacy_type_system: bool,
    #[prost(message, optional, tag = "5")]
    pub identity: Option<Identity>,
}

/// Imports an object by its id or by its identity.
#[derive(Clone, PartialEq, Message)]
pub struct ImportResourceState {
    #[prost(string, tag = "1")]
    pub type_name: String,
    /// The import id, in the format that the documentation of the type describes.
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(message, optional, tag = "3")]
    pub client_capabilities: Option<ClientCapabilities>,
    #[prost(message, optional, tag = "4")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImportResourceStateResponse {
    /// More than one for a few old types.
    #[prost(message, repeated, tag = "1")]
    pub objects: Vec<ImportedObject>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "3")]
    pub deferred: Option<Deferred>,
}

/// An imported object. It must be read before its state is complete.
#[derive(Clone, PartialEq, Message)]
pub struct ImportedObject {
    #[prost(string, tag = "1")]
    pub type_name: String,
    /// The incomplete state.
    #[prost(message, required, tag = "2")]
    pub state: DynamicValue,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub identity: Option<Identity>,
}

/// Moves the state of an object of another type.
#[derive(Clone, PartialEq, Message)]
pub struct MoveResourceState {
    /// The source provider, `registry.example.com/namespace/name`.
    #[prost(string, tag = "1")]
    pub source_provider: String,
    #[prost(string, tag = "2")]
    pub source_type: String,
    /// The schema version of the state.
    #[prost(int64, tag = "3")]
    pub source_version: i64,
    #[prost(message, required, tag = "4")]
    pub source_state: RawState,
    #[prost(string, tag = "5")]
    pub target_type: String,
    #[prost(bytes = "vec", tag = "6")]
    pub source_private: Vec<u8>,
    #[prost(message, optional, tag = "7")]
    pub source_identity: Option<RawState>,
    #[prost(int64, tag = "8")]
    pub source_identity_version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct MoveResourceStateResponse {
    /// The state of the target type.
    #[prost(message, required, tag = "1")]
    pub state: DynamicValue,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadDataSource {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, required, tag = "2")]
    pub config: DynamicValue,
    #[prost(message, optional, tag = "3")]
    pub provider_meta: Option<DynamicValue>,
    #[prost(message, optional, tag = "4")]
    pub client_capabilities: Option<ClientCapabilities>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadDataSourceResponse {
    #[prost(message, required, tag = "1")]
    pub state: DynamicValue,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "3")]
    pub deferred: Option<Deferred>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OpenEphemeralResourceResponse {
    #[prost(message, repeated, tag = "1")]
    pub diagnostics: Vec<Diagnostic>,
    /// When it must be renewed. `None`: never.
    #[prost(message, optional, tag = "2")]
    pub renew_at: Option<Timestamp>,
    #[prost(message, required, tag = "3")]
    pub result: DynamicValue,
    #[prost(bytes = "vec", tag = "4")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub deferred: Option<Deferred>,
}

/// Renews or closes an ephemeral resource.
#[derive(Clone, PartialEq, Message)]
pub struct OpenedEphemeralResource {
    #[prost(string, tag = "1")]
    pub type_name: String,
    /// The private data of the last answer.
    #[prost(bytes = "vec", tag = "2")]
    pub private: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RenewEphemeralResourceResponse {
    #[prost(message, repeated, tag = "1")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "2")]
    pub renew_at: Option<Timestamp>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
}

/// A time since 1970 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct GenerateResourceConfig {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, required, tag = "2")]
    pub state: DynamicValue,
}

#[derive(Clone, PartialEq, Message)]
pub struct GenerateResourceConfigResponse {
    #[prost(message, required, tag = "1")]
    pub config: DynamicValue,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CallFunction {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub arguments: Vec<DynamicValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CallFunctionResponse {
    #[prost(message, required, tag = "1")]
    pub result: DynamicValue,
    #[prost(message, optional, tag = "2")]
    pub error: Option<FunctionError>,
}

/// Why a function has no result.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FunctionError {
    #[prost(string, tag = "1")]
    pub text: String,
    /// The argument that is wrong, from 0, if it is one of them.
    #[prost(int64, optional, tag = "2")]
    pub argument: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StopResponse {
    /// Why the provider cannot stop; empty on success.
    #[prost(string, tag = "1")]
    pub error: String,
}

/// A chunk of the provider's standard output or standard error.
#[derive(Clone, PartialEq, Message)]
pub struct StdioData {
    /// 1 is standard output, 2 standard error.
    #[prost(int32, tag = "1")]
    pub channel: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(msgpack: &[u8], json: &[u8]) -> DynamicValue {
        DynamicValue { msgpack: msgpack.to_vec(), json: json.to_vec() }
    }

    #[test]
    fn msgpack_takes_precedence_and_an_absent_value_is_null() {
        let read = |value: DynamicValue| value.value(&Type::String).unwrap();
        assert_eq!(read(value(b"\xa1a", b"\"b\"")), "a".into());
        assert_eq!(read(value(b"", b"\"a\"")), "a".into());
        for null in [value(b"", b""), DynamicValue::null(), value(b"", b" null\n")] {
            assert!(null.is_null() && read(null).is_null());
        }
        assert!(!value(b"\xa1a", b"").is_null());
        let absent = ReadResourceResponse::decode(&b""[..]).unwrap();
        assert!(absent.state.is_null());
        assert_eq!(
            ReadResource { state: DynamicValue::null(), ..<_>::default() }.encode_to_vec(),
            [0x12, 3, 10, 1, 0xc0]
        );
    }
}
