//! The protobuf messages of versions 5 and 6 of the provider protocol, and of the services that every plugin has. Names
//! are those of the protocol.
//!
//! The structs are written by hand, so the build needs no protobuf compiler. One set serves both versions, which differ
//! only in the names of methods ([`super::method`]) and in `Schema.Attribute` (see [`super::schema`]). Fields that
//! Purlin never reads are omitted; the decoder skips them.

use std::collections::BTreeMap;

use prost::Message;

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

/// A value in one of two encodings. An absent value is not null: null is the `msgpack` byte 0xc0.
#[derive(Clone, PartialEq, Message)]
pub struct DynamicValue {
    #[prost(bytes = "vec", tag = "1")]
    pub msgpack: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub json: Vec<u8>,
}

/// A recorded state as it was written, possibly by an older version of the provider.
#[derive(Clone, PartialEq, Message)]
pub struct RawState {
    #[prost(bytes = "vec", tag = "1")]
    pub json: Vec<u8>,
    /// The format of Terraform before 0.12.
    #[prost(btree_map = "string, string", tag = "2")]
    pub flatmap: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Diagnostic {
    /// 1 is an error, 2 a warning.
    #[prost(int32, tag = "1")]
    pub severity: i32,
    #[prost(string, tag = "2")]
    pub summary: String,
    #[prost(string, tag = "3")]
    pub detail: String,
    /// The encoded path.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub attribute: Option<Vec<u8>>,
}

/// A step of a path. A path stays encoded, as repeated steps in field 1: [`super::diagnostic::path`] decodes it.
#[derive(Clone, PartialEq, Message)]
pub struct PathStep {
    #[prost(oneof = "Selector", tags = "1, 2, 3")]
    pub selector: Option<Selector>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Selector {
    #[prost(string, tag = "1")]
    AttributeName(String),
    #[prost(string, tag = "2")]
    ElementKeyString(String),
    #[prost(int64, tag = "3")]
    ElementKeyInt(i64),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct ClientCapabilities {
    #[prost(bool, tag = "1")]
    pub deferral_allowed: bool,
    #[prost(bool, tag = "2")]
    pub write_only_attributes_allowed: bool,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct ServerCapabilities {
    #[prost(bool, tag = "1")]
    pub plan_destroy: bool,
    #[prost(bool, tag = "2")]
    pub get_provider_schema_optional: bool,
    #[prost(bool, tag = "3")]
    pub move_resource_state: bool,
    #[prost(bool, tag = "4")]
    pub generate_resource_config: bool,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Deferred {
    #[prost(int32, tag = "1")]
    pub reason: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceIdentityData {
    #[prost(message, optional, tag = "1")]
    pub identity_data: Option<DynamicValue>,
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
    pub server_capabilities: Option<ServerCapabilities>,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetResourceIdentitySchemasResponse {
    #[prost(btree_map = "string, message", tag = "1")]
    pub identity_schemas: BTreeMap<String, ResourceIdentitySchema>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceIdentitySchema {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(message, repeated, tag = "2")]
    pub identity_attributes: Vec<IdentityAttribute>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IdentityAttribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub r#type: Vec<u8>,
    #[prost(bool, tag = "3")]
    pub required_for_import: bool,
    #[prost(bool, tag = "4")]
    pub optional_for_import: bool,
    #[prost(string, tag = "5")]
    pub description: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeResourceIdentityRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
    #[prost(message, optional, tag = "3")]
    pub raw_identity: Option<RawState>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeResourceIdentityResponse {
    #[prost(message, optional, tag = "1")]
    pub upgraded_identity: Option<ResourceIdentityData>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValidateProviderConfigRequest {
    #[prost(message, optional, tag = "1")]
    pub config: Option<DynamicValue>,
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

/// Validates the configuration of a resource or, without capabilities, of a data source.
#[derive(Clone, PartialEq, Message)]
pub struct ValidateConfigRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<DynamicValue>,
    #[prost(message, optional, tag = "3")]
    pub client_capabilities: Option<ClientCapabilities>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ConfigureProviderRequest {
    #[prost(string, tag = "1")]
    pub terraform_version: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<DynamicValue>,
    #[prost(message, optional, tag = "3")]
    pub client_capabilities: Option<ClientCapabilities>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeResourceStateRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
    #[prost(message, optional, tag = "3")]
    pub raw_state: Option<RawState>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeResourceStateResponse {
    #[prost(message, optional, tag = "1")]
    pub upgraded_state: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadResourceRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub current_state: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub provider_meta: Option<DynamicValue>,
    #[prost(message, optional, tag = "5")]
    pub client_capabilities: Option<ClientCapabilities>,
    #[prost(message, optional, tag = "6")]
    pub current_identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadResourceResponse {
    #[prost(message, optional, tag = "1")]
    pub new_state: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub deferred: Option<Deferred>,
    #[prost(message, optional, tag = "5")]
    pub new_identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PlanResourceChangeRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub prior_state: Option<DynamicValue>,
    #[prost(message, optional, tag = "3")]
    pub proposed_new_state: Option<DynamicValue>,
    #[prost(message, optional, tag = "4")]
    pub config: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "5")]
    pub prior_private: Vec<u8>,
    #[prost(message, optional, tag = "6")]
    pub provider_meta: Option<DynamicValue>,
    #[prost(message, optional, tag = "7")]
    pub client_capabilities: Option<ClientCapabilities>,
    #[prost(message, optional, tag = "8")]
    pub prior_identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PlanResourceChangeResponse {
    #[prost(message, optional, tag = "1")]
    pub planned_state: Option<DynamicValue>,
    /// The encoded paths.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub requires_replace: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "3")]
    pub planned_private: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(bool, tag = "5")]
    pub legacy_type_system: bool,
    #[prost(message, optional, tag = "6")]
    pub deferred: Option<Deferred>,
    #[prost(message, optional, tag = "7")]
    pub planned_identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ApplyResourceChangeRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub prior_state: Option<DynamicValue>,
    #[prost(message, optional, tag = "3")]
    pub planned_state: Option<DynamicValue>,
    #[prost(message, optional, tag = "4")]
    pub config: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "5")]
    pub planned_private: Vec<u8>,
    #[prost(message, optional, tag = "6")]
    pub provider_meta: Option<DynamicValue>,
    #[prost(message, optional, tag = "7")]
    pub planned_identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ApplyResourceChangeResponse {
    #[prost(message, optional, tag = "1")]
    pub new_state: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "2")]
    pub private: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(bool, tag = "4")]
    pub legacy_type_system: bool,
    #[prost(message, optional, tag = "5")]
    pub new_identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImportResourceStateRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(message, optional, tag = "3")]
    pub client_capabilities: Option<ClientCapabilities>,
    #[prost(message, optional, tag = "4")]
    pub identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImportedResource {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub state: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImportResourceStateResponse {
    #[prost(message, repeated, tag = "1")]
    pub imported_resources: Vec<ImportedResource>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "3")]
    pub deferred: Option<Deferred>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MoveResourceStateRequest {
    #[prost(string, tag = "1")]
    pub source_provider_address: String,
    #[prost(string, tag = "2")]
    pub source_type_name: String,
    #[prost(int64, tag = "3")]
    pub source_schema_version: i64,
    #[prost(message, optional, tag = "4")]
    pub source_state: Option<RawState>,
    #[prost(string, tag = "5")]
    pub target_type_name: String,
    #[prost(bytes = "vec", tag = "6")]
    pub source_private: Vec<u8>,
    #[prost(message, optional, tag = "7")]
    pub source_identity: Option<RawState>,
    #[prost(int64, tag = "8")]
    pub source_identity_schema_version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct MoveResourceStateResponse {
    #[prost(message, optional, tag = "1")]
    pub target_state: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(bytes = "vec", tag = "3")]
    pub target_private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub target_identity: Option<ResourceIdentityData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadDataSourceRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<DynamicValue>,
    #[prost(message, optional, tag = "3")]
    pub provider_meta: Option<DynamicValue>,
    #[prost(message, optional, tag = "4")]
    pub client_capabilities: Option<ClientCapabilities>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadDataSourceResponse {
    #[prost(message, optional, tag = "1")]
    pub state: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "3")]
    pub deferred: Option<Deferred>,
}

#[derive(Clone, PartialEq, Message)]
pub struct GenerateResourceConfigRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub state: Option<DynamicValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct GenerateResourceConfigResponse {
    #[prost(message, optional, tag = "1")]
    pub config: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
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
