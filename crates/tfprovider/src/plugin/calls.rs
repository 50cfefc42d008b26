//! The requests to a provider and its responses. Values are encoded; private data are opaque bytes of the provider that
//! are returned to it unchanged.

use cty::Path;

use super::diagnostic::{Diagnostic, diagnostics, path};
use super::messages as raw;

/// A value for a provider as msgpack, the only encoding that all providers accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Msgpack(pub Vec<u8>);

/// A value from a provider in the encoding that it chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodedValue {
    /// May contain unknown values.
    Msgpack(Vec<u8>),
    Json(Vec<u8>),
}

/// A recorded state as JSON, written by this or another version of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawState(pub Vec<u8>);

/// Why a provider deferred an object. Providers defer only if the client allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferred {
    /// The configuration of the object has unknown values.
    ResourceConfigUnknown,
    /// The provider configuration has unknown values.
    ProviderConfigUnknown,
    /// A prerequisite does not exist yet.
    AbsentPrerequisite,
    /// A reason that Purlin does not know.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeResourceStateResponse {
    pub state: EncodedValue,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeResourceIdentityResponse {
    pub identity: Option<EncodedValue>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadResource {
    pub type_name: String,
    pub state: Msgpack,
    pub private: Vec<u8>,
    /// `None` for types without identities.
    pub identity: Option<Msgpack>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadResourceResponse {
    /// Null if the object no longer exists.
    pub state: EncodedValue,
    pub private: Vec<u8>,
    pub identity: Option<EncodedValue>,
    pub deferred: Option<Deferred>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanResourceChange {
    pub type_name: String,
    /// The prior state; null to create the object.
    pub prior: Msgpack,
    /// The proposed new state; null to destroy the object.
    pub proposed: Msgpack,
    /// Null to destroy the object.
    pub config: Msgpack,
    pub prior_private: Vec<u8>,
    pub prior_identity: Option<Msgpack>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanResourceChangeResponse {
    /// The planned state.
    pub state: EncodedValue,
    /// The attributes whose change requires replacement. Providers also list unchanged ones, so compare the values.
    pub requires_replace: Vec<Path>,
    /// The private data for the apply.
    pub private: Vec<u8>,
    /// The planned identity, if it is known.
    pub identity: Option<EncodedValue>,
    /// The provider uses the legacy type system, which may violate the rules for plans and results.
    pub legacy_type_system: bool,
    pub deferred: Option<Deferred>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyResourceChange {
    pub type_name: String,
    /// The prior state; null to create the object.
    pub prior: Msgpack,
    /// The planned state, unchanged; null to destroy the object.
    pub planned: Msgpack,
    /// Without unknown values; null to destroy the object.
    pub config: Msgpack,
    pub planned_private: Vec<u8>,
    pub planned_identity: Option<Msgpack>,
}

/// The result of an apply. Record the state before checking the diagnostics: a change that failed halfway has both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyResourceChangeResponse {
    /// Null if the object no longer exists or the provider does not return it.
    pub state: EncodedValue,
    pub private: Vec<u8>,
    pub identity: Option<EncodedValue>,
    /// The provider uses the legacy type system, which may violate the rules for plans and results.
    pub legacy_type_system: bool,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportResourceState {
    /// The import id, in the format that the documentation of the type describes.
    Id(String),
    Identity(Msgpack),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportResourceStateResponse {
    /// More than one for a few old types.
    pub objects: Vec<ImportedObject>,
    pub deferred: Option<Deferred>,
    pub diagnostics: Vec<Diagnostic>,
}

/// An imported object. It must be read before its state is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedObject {
    pub type_name: String,
    /// The incomplete state.
    pub state: EncodedValue,
    pub private: Vec<u8>,
    pub identity: Option<EncodedValue>,
}

/// Moves the state of an object of another type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveResourceState {
    /// The source provider, `registry.example.com/namespace/name`.
    pub source_provider: String,
    pub source_type: String,
    /// The schema version of the state.
    pub source_version: i64,
    pub source_state: RawState,
    pub source_private: Vec<u8>,
    /// The identity with its schema version.
    pub source_identity: Option<(RawState, i64)>,
    pub target_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveResourceStateResponse {
    /// The state of the target type.
    pub state: EncodedValue,
    pub private: Vec<u8>,
    pub identity: Option<EncodedValue>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadDataSourceResponse {
    pub state: EncodedValue,
    pub deferred: Option<Deferred>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerateResourceConfigResponse {
    pub config: EncodedValue,
    pub diagnostics: Vec<Diagnostic>,
}

/// The msgpack encoding of null.
const NULL: u8 = 0xc0;

impl Msgpack {
    /// The null value. Requests must contain it explicitly: older providers crash if it is absent.
    pub fn null() -> Self {
        Self(vec![NULL])
    }
}

impl From<Msgpack> for raw::DynamicValue {
    fn from(value: Msgpack) -> Self {
        Self { msgpack: value.0, json: Vec::new() }
    }
}

impl From<RawState> for raw::RawState {
    fn from(state: RawState) -> Self {
        Self { json: state.0, flatmap: std::collections::BTreeMap::new() }
    }
}

impl EncodedValue {
    /// Whether this is the null value. A null `state` in a response means that the object does not exist.
    pub fn is_null(&self) -> bool {
        match self {
            Self::Msgpack(bytes) => bytes == &[NULL],
            Self::Json(bytes) => bytes.trim_ascii() == b"null",
        }
    }
}

/// An absent value means null.
pub(super) fn encoded(value: Option<raw::DynamicValue>) -> EncodedValue {
    match value {
        Some(value) if !value.msgpack.is_empty() => EncodedValue::Msgpack(value.msgpack),
        Some(value) if !value.json.is_empty() => EncodedValue::Json(value.json),
        _ => EncodedValue::Msgpack(vec![NULL]),
    }
}

pub(super) fn identity_message(identity: Option<Msgpack>) -> Option<raw::ResourceIdentityData> {
    identity.map(|identity| raw::ResourceIdentityData { identity_data: Some(identity.into()) })
}

fn identity(identity: Option<raw::ResourceIdentityData>) -> Option<EncodedValue> {
    Some(encoded(Some(identity?.identity_data?)))
}

fn deferred(deferred: Option<raw::Deferred>) -> Option<Deferred> {
    Some(match deferred?.reason {
        1 => Deferred::ResourceConfigUnknown,
        2 => Deferred::ProviderConfigUnknown,
        3 => Deferred::AbsentPrerequisite,
        _ => Deferred::Other,
    })
}

impl From<raw::UpgradeResourceStateResponse> for UpgradeResourceStateResponse {
    fn from(response: raw::UpgradeResourceStateResponse) -> Self {
        Self { state: encoded(response.upgraded_state), diagnostics: diagnostics(response.diagnostics) }
    }
}

impl From<raw::UpgradeResourceIdentityResponse> for UpgradeResourceIdentityResponse {
    fn from(response: raw::UpgradeResourceIdentityResponse) -> Self {
        Self { identity: identity(response.upgraded_identity), diagnostics: diagnostics(response.diagnostics) }
    }
}

impl From<raw::ReadResourceResponse> for ReadResourceResponse {
    fn from(response: raw::ReadResourceResponse) -> Self {
        Self {
            state: encoded(response.new_state),
            private: response.private,
            identity: identity(response.new_identity),
            deferred: deferred(response.deferred),
            diagnostics: diagnostics(response.diagnostics),
        }
    }
}

impl From<raw::PlanResourceChangeResponse> for PlanResourceChangeResponse {
    fn from(response: raw::PlanResourceChangeResponse) -> Self {
        Self {
            state: encoded(response.planned_state),
            requires_replace: response.requires_replace.iter().map(|encoded| path(encoded)).collect(),
            private: response.planned_private,
            identity: identity(response.planned_identity),
            legacy_type_system: response.legacy_type_system,
            deferred: deferred(response.deferred),
            diagnostics: diagnostics(response.diagnostics),
        }
    }
}

impl From<raw::ApplyResourceChangeResponse> for ApplyResourceChangeResponse {
    fn from(response: raw::ApplyResourceChangeResponse) -> Self {
        Self {
            state: encoded(response.new_state),
            private: response.private,
            identity: identity(response.new_identity),
            legacy_type_system: response.legacy_type_system,
            diagnostics: diagnostics(response.diagnostics),
        }
    }
}

impl From<raw::ImportResourceStateResponse> for ImportResourceStateResponse {
    fn from(response: raw::ImportResourceStateResponse) -> Self {
        let object = |object: raw::ImportedResource| ImportedObject {
            type_name: object.type_name,
            state: encoded(object.state),
            private: object.private,
            identity: identity(object.identity),
        };
        Self {
            objects: response.imported_resources.into_iter().map(object).collect(),
            deferred: deferred(response.deferred),
            diagnostics: diagnostics(response.diagnostics),
        }
    }
}

impl From<raw::MoveResourceStateResponse> for MoveResourceStateResponse {
    fn from(response: raw::MoveResourceStateResponse) -> Self {
        Self {
            state: encoded(response.target_state),
            private: response.target_private,
            identity: identity(response.target_identity),
            diagnostics: diagnostics(response.diagnostics),
        }
    }
}

impl From<raw::ReadDataSourceResponse> for ReadDataSourceResponse {
    fn from(response: raw::ReadDataSourceResponse) -> Self {
        Self {
            state: encoded(response.state),
            deferred: deferred(response.deferred),
            diagnostics: diagnostics(response.diagnostics),
        }
    }
}

impl From<raw::GenerateResourceConfigResponse> for GenerateResourceConfigResponse {
    fn from(response: raw::GenerateResourceConfigResponse) -> Self {
        Self { config: encoded(response.config), diagnostics: diagnostics(response.diagnostics) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn msgpack_takes_precedence_and_an_absent_value_is_null() {
        let value = |msgpack: &[u8], json: &[u8]| {
            encoded(Some(raw::DynamicValue { msgpack: msgpack.to_vec(), json: json.to_vec() }))
        };
        assert_eq!(value(b"\xa1a", b"\"a\""), EncodedValue::Msgpack(b"\xa1a".to_vec()));
        assert_eq!(value(b"", b"\"a\""), EncodedValue::Json(b"\"a\"".to_vec()));
        assert!(value(b"", b"").is_null() && encoded(None).is_null() && value(b"", b" null\n").is_null());
        assert!(!value(b"\xa1a", b"").is_null());
    }
}
