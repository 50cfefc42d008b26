//! The state of a recorded object for a call, upgraded to the current schema.

use cty::{Type, Value};

use super::super::diagnostics;
use super::super::private::ObjectPrivate;
use super::super::schema::IdentityType;
use super::super::values::{self, DynamicTypes};
use super::{ObjectClient, data};
use model::{DriverError, ErrorKind, RecordedObject, Value as EngineValue};
use tfprovider::plugin::{DynamicValue, RawState};
use tfprovider::schema::normalize;

/// The state of a recorded object, with the private data of the provider.
pub struct PriorState {
    pub state: Value,
    pub private: ObjectPrivate,
    pub identity: Option<DynamicValue>,
}

impl ObjectClient<'_> {
    /// The recorded state, upgraded to the current schema.
    pub async fn prior(&self, object: &RecordedObject) -> Result<PriorState, DriverError> {
        if i64::try_from(object.schema_version) != Ok(self.kind.schema.version.max(0)) {
            return self.upgrade_recorded(object).await;
        }
        let private = ObjectPrivate::decode(&object.private)?;
        let state = values::from_model(self.kind.schema.ty(), &object.value.without_marks(), &private.dynamic);
        let state = state.map_err(|error| diagnostics::decode_error("the recorded object", &error))?;
        Ok(PriorState { state, identity: self.recorded_identity(object, &private).await?, private })
    }

    pub async fn upgrade_recorded(&self, object: &RecordedObject) -> Result<PriorState, DriverError> {
        let version = i64::try_from(object.schema_version).unwrap_or(i64::MAX);
        self.require_no_newer(version, "the object was recorded")?;
        let private = ObjectPrivate::decode(&object.private)?;
        let value = self.without_unknown_names(object.value.without_marks(), version);
        let raw = RawState::new(values::raw_state(&value, &private.dynamic));
        let state = self.upgrade(version, raw, "the recorded object").await?;
        Ok(PriorState { state, identity: self.recorded_identity(object, &private).await?, private })
    }

    /// Upgrades a state of the schema version `version` to the current schema.
    pub async fn upgrade(&self, version: i64, raw: RawState, what: &str) -> Result<Value, DriverError> {
        let answer = self.client.upgrade_resource_state(&self.context.type_name, version, raw).await;
        let answer = answer.map_err(|error| diagnostics::call_error(&error))?;
        self.check_diagnostics(answer.diagnostics)?;
        let state = self.decode(&answer.state, "the upgraded state")?;
        if state.is_null() {
            return Err(diagnostics::protocol_error(format!("the provider returned no state when it upgraded {what}")));
        }
        Ok(normalize(&self.kind.schema.block, &state.unknown_as_null()))
    }

    /// Rejects a state of a newer schema version.
    pub fn require_no_newer(&self, version: i64, what: &str) -> Result<(), DriverError> {
        let present = self.kind.schema.version.max(0);
        if version <= present {
            return Ok(());
        }
        let message =
            format!("{what} by a newer version of the provider (schema version {version}, supported: {present})");
        let hint = Some("use that version or a newer one".to_owned());
        Err(DriverError { kind: ErrorKind::Terminal, message, path: None, hint })
    }

    /// Drops recorded attributes that are missing in the current schema, since a schema may drop attributes without a
    /// new version.
    fn without_unknown_names(&self, value: EngineValue, version: i64) -> EngineValue {
        let Type::Object(object) = self.kind.schema.ty() else { return value };
        match &value {
            EngineValue::Map(map) if version == self.kind.schema.version.max(0) => {
                let known = map.iter().filter(|(name, _)| object.attributes.contains_key(name));
                EngineValue::map(known.map(|(name, item)| (name.clone(), item.clone())))
            }
            _ => value,
        }
    }

    async fn recorded_identity(
        &self,
        object: &RecordedObject,
        private: &ObjectPrivate,
    ) -> Result<Option<DynamicValue>, DriverError> {
        let (Some(identity), Some(IdentityType { ty, version, .. })) = (&object.identity, &self.kind.identity) else {
            return Ok(None);
        };
        let identity = identity.without_marks();
        if private.identity_version != *version {
            let raw = values::raw_state(&identity, &DynamicTypes::default());
            let upgraded = self.upgrade_identity(private.identity_version, raw).await?;
            return upgraded.map(|identity| self.as_msgpack(identity)).transpose();
        }
        let value = values::from_model(ty, &identity, &DynamicTypes::default());
        let value = value.map_err(|error| diagnostics::decode_error("the recorded identity", &error))?;
        let identity = DynamicValue::of(&value, ty);
        identity.map(Some).map_err(|error| diagnostics::decode_error("the recorded identity", &error))
    }

    /// Upgrades an identity of the schema version `version` to the current schema. `None` if the provider has no such
    /// call or returns none.
    pub async fn upgrade_identity(&self, version: i64, identity: String) -> Result<Option<DynamicValue>, DriverError> {
        let raw = RawState::new(identity);
        let answer = self.client.upgrade_resource_identity(&self.context.type_name, version, raw).await;
        let Some(answer) = answer.map_err(|error| diagnostics::call_error(&error))? else { return Ok(None) };
        self.check_diagnostics(answer.diagnostics)?;
        Ok(data(answer.identity).filter(|identity| !identity.is_null()))
    }
}
