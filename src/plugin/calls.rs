//! What is given to a provider and what comes back. A request has the name that the protocol has for it, an answer that
//! of its result. Values are encoded; private data are the provider's bytes, given back as they came.

use crate::model::Path;

use super::diagnostic::{Diagnostic, diagnostics, path};
use super::messages as raw;

/// A value for a provider, as msgpack, the only form that all providers read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Msgpack(pub Vec<u8>);

/// A value of a provider, in the form that it chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// As msgpack; unknown values are possible.
    Msgpack(Vec<u8>),
    /// As JSON.
    Json(Vec<u8>),
}

/// What is recorded of an object: JSON as it was written, by this or another version of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawState(pub Vec<u8>);

/// Why a provider puts an object off. Only a client that allows it is answered so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferred {
    /// The object's configuration is not known enough.
    ResourceConfigUnknown,
    /// The provider's configuration is not known enough.
    ProviderConfigUnknown,
    /// Something that it needs does not exist yet.
    AbsentPrerequisite,
    /// A reason that we do not know.
    Other,
}

/// A state in the form of the present schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradedState {
    /// The state.
    pub state: Encoded,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// An identity in the form of the present schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradedIdentity {
    /// The identity.
    pub identity: Option<Encoded>,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// To look at an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadResource {
    /// Its type.
    pub type_name: String,
    /// Its state.
    pub state: Msgpack,
    /// Its private data.
    pub private: Vec<u8>,
    /// Its identity, for types that have one.
    pub identity: Option<Msgpack>,
}

/// An object as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAnswer {
    /// Its state; null when it is gone.
    pub state: Encoded,
    /// Its private data.
    pub private: Vec<u8>,
    /// Its identity.
    pub identity: Option<Encoded>,
    /// It was put off.
    pub deferred: Option<Deferred>,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// To plan a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanResourceChange {
    /// The object's type.
    pub type_name: String,
    /// Its state; null when there is none.
    pub prior: Msgpack,
    /// What it would become if the provider had no say; null to destroy it.
    pub proposed: Msgpack,
    /// What was asked for; null to destroy it.
    pub config: Msgpack,
    /// Its private data.
    pub prior_private: Vec<u8>,
    /// Its identity.
    pub prior_identity: Option<Msgpack>,
}

/// A planned change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What the object will become.
    pub state: Encoded,
    /// Attributes whose change needs another object. It has to be compared with the values: providers name too many.
    pub requires_replace: Vec<Path>,
    /// Private data for the apply.
    pub private: Vec<u8>,
    /// Its identity, where that is known.
    pub identity: Option<Encoded>,
    /// The provider does not keep to the rules of plans, and says so.
    pub legacy_type_system: bool,
    /// It was put off.
    pub deferred: Option<Deferred>,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// To carry a change out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyResourceChange {
    /// The object's type.
    pub type_name: String,
    /// Its state; null to create it.
    pub prior: Msgpack,
    /// The planned state, as the provider planned it; null to destroy it.
    pub planned: Msgpack,
    /// What was asked for, wholly known; null to destroy it.
    pub config: Msgpack,
    /// Private data of the plan.
    pub planned_private: Vec<u8>,
    /// The identity of the plan.
    pub planned_identity: Option<Msgpack>,
}

/// What became of a change. The state is to be recorded before the diagnostics are looked at: a change that failed
/// halfway has both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The object's state; null when it is gone, or when the provider does not tell.
    pub state: Encoded,
    /// Its private data.
    pub private: Vec<u8>,
    /// Its identity.
    pub identity: Option<Encoded>,
    /// The provider does not keep to the rules of plans, and says so.
    pub legacy_type_system: bool,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// To find an existing object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportResourceState {
    /// By the text that the type's documentation describes.
    Id(String),
    /// By its identity.
    Identity(Msgpack),
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The objects; more than one for a few old types.
    pub objects: Vec<ImportedObject>,
    /// It was put off.
    pub deferred: Option<Deferred>,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// An object that was found. It has to be read before its state is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedObject {
    /// Its type.
    pub type_name: String,
    /// What is known of its state.
    pub state: Encoded,
    /// Its private data.
    pub private: Vec<u8>,
    /// Its identity.
    pub identity: Option<Encoded>,
}

/// To take over the state of an object of another type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveResourceState {
    /// The provider that it had, `registry.example.com/namespace/name`.
    pub source_provider: String,
    /// The type that it had.
    pub source_type: String,
    /// The version of the schema of its state.
    pub source_version: i64,
    /// Its state.
    pub source_state: RawState,
    /// Its private data.
    pub source_private: Vec<u8>,
    /// Its identity with the version of its schema.
    pub source_identity: Option<(RawState, i64)>,
    /// The type that it gets.
    pub target_type: String,
}

/// A state that was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The state in the form of the new type.
    pub state: Encoded,
    /// Private data.
    pub private: Vec<u8>,
    /// Its identity.
    pub identity: Option<Encoded>,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// What was read from a data source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadDataAnswer {
    /// The result.
    pub state: Encoded,
    /// It was put off.
    pub deferred: Option<Deferred>,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// A configuration that was made of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The configuration.
    pub config: Encoded,
    /// What the provider says.
    pub diagnostics: Vec<Diagnostic>,
}

/// Null, as msgpack has it.
const NULL: u8 = 0xc0;

impl Msgpack {
    /// The null value. It must not be left out of a request: older providers crash on that.
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

impl Encoded {
    /// Whether it is the null value, which in `state` of an answer says that there is no object.
    pub fn is_null(&self) -> bool {
        match self {
            Self::Msgpack(bytes) => bytes == &[NULL],
            Self::Json(bytes) => bytes.trim_ascii() == b"null",
        }
    }
}

/// A provider that leaves a value out means null.
pub(super) fn encoded(value: Option<raw::DynamicValue>) -> Encoded {
    match value {
        Some(value) if !value.msgpack.is_empty() => Encoded::Msgpack(value.msgpack),
        Some(value) if !value.json.is_empty() => Encoded::Json(value.json),
        _ => Encoded::Msgpack(vec![NULL]),
    }
}

pub(super) fn identity_message(identity: Option<Msgpack>) -> Option<raw::ResourceIdentityData> {
    identity.map(|identity| raw::ResourceIdentityData { identity_data: Some(identity.into()) })
}

fn identity(identity: Option<raw::ResourceIdentityData>) -> Option<Encoded> {
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

impl From<raw::UpgradeResourceStateResponse> for UpgradedState {
    fn from(answer: raw::UpgradeResourceStateResponse) -> Self {
        Self { state: encoded(answer.upgraded_state), diagnostics: diagnostics(answer.diagnostics) }
    }
}

impl From<raw::UpgradeResourceIdentityResponse> for UpgradedIdentity {
    fn from(answer: raw::UpgradeResourceIdentityResponse) -> Self {
        Self { identity: identity(answer.upgraded_identity), diagnostics: diagnostics(answer.diagnostics) }
    }
}

impl From<raw::ReadResourceResponse> for ReadAnswer {
    fn from(answer: raw::ReadResourceResponse) -> Self {
        Self {
            state: encoded(answer.new_state),
            private: answer.private,
            identity: identity(answer.new_identity),
            deferred: deferred(answer.deferred),
            diagnostics: diagnostics(answer.diagnostics),
        }
    }
}

impl From<raw::PlanResourceChangeResponse> for Planned {
    fn from(answer: raw::PlanResourceChangeResponse) -> Self {
        Self {
            state: encoded(answer.planned_state),
            requires_replace: answer.requires_replace.into_iter().map(path).collect(),
            private: answer.planned_private,
            identity: identity(answer.planned_identity),
            legacy_type_system: answer.legacy_type_system,
            deferred: deferred(answer.deferred),
            diagnostics: diagnostics(answer.diagnostics),
        }
    }
}

impl From<raw::ApplyResourceChangeResponse> for Applied {
    fn from(answer: raw::ApplyResourceChangeResponse) -> Self {
        Self {
            state: encoded(answer.new_state),
            private: answer.private,
            identity: identity(answer.new_identity),
            legacy_type_system: answer.legacy_type_system,
            diagnostics: diagnostics(answer.diagnostics),
        }
    }
}

impl From<raw::ImportResourceStateResponse> for Imported {
    fn from(answer: raw::ImportResourceStateResponse) -> Self {
        let object = |object: raw::ImportedResource| ImportedObject {
            type_name: object.type_name,
            state: encoded(object.state),
            private: object.private,
            identity: identity(object.identity),
        };
        Self {
            objects: answer.imported_resources.into_iter().map(object).collect(),
            deferred: deferred(answer.deferred),
            diagnostics: diagnostics(answer.diagnostics),
        }
    }
}

impl From<raw::MoveResourceStateResponse> for Moved {
    fn from(answer: raw::MoveResourceStateResponse) -> Self {
        Self {
            state: encoded(answer.target_state),
            private: answer.target_private,
            identity: identity(answer.target_identity),
            diagnostics: diagnostics(answer.diagnostics),
        }
    }
}

impl From<raw::ReadDataSourceResponse> for ReadDataAnswer {
    fn from(answer: raw::ReadDataSourceResponse) -> Self {
        Self {
            state: encoded(answer.state),
            deferred: deferred(answer.deferred),
            diagnostics: diagnostics(answer.diagnostics),
        }
    }
}

impl From<raw::GenerateResourceConfigResponse> for Generated {
    fn from(answer: raw::GenerateResourceConfigResponse) -> Self {
        Self { config: encoded(answer.config), diagnostics: diagnostics(answer.diagnostics) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn msgpack_wins_over_json_and_nothing_is_null() {
        let value = |msgpack: &[u8], json: &[u8]| {
            encoded(Some(raw::DynamicValue { msgpack: msgpack.to_vec(), json: json.to_vec() }))
        };
        assert_eq!(value(b"\xa1a", b"\"a\""), Encoded::Msgpack(b"\xa1a".to_vec()));
        assert_eq!(value(b"", b"\"a\""), Encoded::Json(b"\"a\"".to_vec()));
        assert!(value(b"", b"").is_null() && encoded(None).is_null() && value(b"", b" null\n").is_null());
        assert!(!value(b"\xa1a", b"").is_null());
    }
}
