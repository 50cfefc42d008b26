//! Objects as Terraform and OpenTofu keep them in their states, to and from records.
//!
//! A provider is asked to bring such a state into its present form and says what it accepts as a configuration. It needs
//! no settings for either, and reads nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::private::Kept;
use super::{Object, Providers, told};
use crate::cty::{self, Closeness, DynamicTypes, Value, json};
use crate::driver::{CallContext, TakeOver, terraform_data};
use crate::model::{
    Diagnostics, DriverError, ErrorKind, ObjectState, Provider, RecordedObject, Secrets, Severity, Value as EngineValue,
};
use crate::plugin::{Encoded, MoveResourceState, RawState};

/// An object of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignObject {
    /// The version of the schema that its attributes follow.
    pub schema_version: i64,
    /// Its attributes as JSON, as the state has them.
    pub attributes: String,
    /// The provider's own bytes.
    pub private: Vec<u8>,
    /// What it is found by, as JSON, with the version of the schema of that.
    pub identity: Option<(String, i64)>,
}

/// An object of a state in the form of a record.
#[derive(Clone, Debug)]
pub struct Adopted {
    /// The object.
    pub state: ObjectState,
    /// The version of the schema that its value follows now.
    pub schema_version: u64,
}

/// A configuration, and what its provider says of it.
#[derive(Clone, Debug, Default)]
pub struct Reconstructed {
    /// The configuration. Sensitive places are marked.
    pub config: EngineValue,
    /// Errors, when the provider does not accept it.
    pub problems: Diagnostics,
}

impl ForeignObject {
    /// A recorded object of a provider.
    ///
    /// # Errors
    /// When what is recorded is damaged.
    pub fn of(object: &RecordedObject) -> Result<Self, DriverError> {
        let kept = Kept::decode(&object.private)?;
        let json = |value: &EngineValue, types: &DynamicTypes| cty::raw_state(&value.without_marks(), types);
        let identity = object.identity.as_ref();
        Ok(Self {
            schema_version: i64::try_from(object.schema_version).unwrap_or(i64::MAX),
            attributes: json(&object.value, &kept.dynamic),
            identity: identity.map(|identity| (json(identity, &DynamicTypes::default()), kept.identity_version)),
            private: kept.private,
        })
    }
}

impl Providers {
    /// The object of a state as it is to be recorded. Nothing of it is read anew.
    ///
    /// # Errors
    /// When there is no such provider or type, or the state cannot be brought into the present form.
    pub async fn adopt(&self, context: &CallContext, object: &ForeignObject) -> Result<Adopted, DriverError> {
        let called = self.object(context).await?;
        called.masked(called.adopted(object).await)
    }

    /// What a state has of a data source, and of that the arguments that were written. Nothing is read anew.
    ///
    /// # Errors
    /// When there is no such provider or type, or what the state has does not fit it.
    pub async fn adopt_data(
        &self,
        context: &CallContext,
        object: &ForeignObject,
        written: &BTreeSet<Arc<str>>,
    ) -> Result<(EngineValue, EngineValue), DriverError> {
        let called = self.data_source(context).await?;
        let schema = &called.kind.schema;
        let known = json::decode(object.attributes.as_bytes(), schema.ty(), json::Unsupported::LeaveOut);
        let known = known.map_err(|error| told::unreadable("the state", &error))?;
        let value = cty::to_engine(&schema.block, &known);
        let arguments = only(written, cty::configured(&schema.block, &value, Closeness::Whole));
        Ok((value, arguments))
    }

    /// Settings with what their provider calls sensitive marked; `None`: it has not told what it takes.
    pub fn marked_settings(&self, provider: &Provider, settings: &EngineValue) -> Option<EngineValue> {
        let served = self.known(provider)?.ok()?;
        let (conformed, _) = cty::conform(served.settings(), settings);
        Some(cty::to_engine(served.settings(), &conformed))
    }

    /// The configuration that a recorded value may have come from: the closest that the provider accepts. `written`:
    /// the arguments that were, when that is known.
    ///
    /// # Errors
    /// When the provider cannot be asked.
    pub async fn reconstruct(
        &self,
        context: &CallContext,
        value: &EngineValue,
        written: Option<&BTreeSet<Arc<str>>>,
    ) -> Result<Reconstructed, DriverError> {
        let called = self.object(context).await?;
        called.mask.remember(Secrets::of([value]));
        let mut made = called.masked(called.reconstructed(value, written).await)?;
        made.problems = made.problems.into_iter().map(|problem| called.mask.diagnostic(problem)).collect();
        Ok(made)
    }
}

impl TakeOver for Providers {
    fn take_over<'a>(
        &'a self,
        context: &'a CallContext,
        type_name: &'a str,
        object: &'a RecordedObject,
    ) -> BoxFuture<'a, Result<ObjectState, DriverError>> {
        async move {
            let called = self.object(context).await?;
            called.hush(None, Some(object));
            called.masked(called.take_over(type_name, object).await)
        }
        .boxed()
    }
}

impl Object<'_> {
    async fn adopted(&self, object: &ForeignObject) -> Result<Adopted, DriverError> {
        self.require_no_newer(object.schema_version, "its state was written")?;
        let mut attributes = object.attributes.clone();
        if object.schema_version == self.kind.schema.version.max(0) {
            // The schema may have lost attributes without a new version; providers take none that they do not know.
            let ty = self.kind.schema.ty();
            let known = json::decode(attributes.as_bytes(), ty, json::Unsupported::LeaveOut);
            let known = known.map_err(|error| told::unreadable("the state", &error))?;
            self.mask.remember(Secrets::of([&cty::to_engine(&self.kind.schema.block, &known)]));
            attributes = json::encode(&known, ty).map_err(|error| told::unreadable("the state", &error))?;
        }
        let raw = RawState(attributes.into_bytes());
        let state = self.upgrade(object.schema_version, raw, "the state").await?;
        let identity = self.adopted_identity(object).await?;
        let state = self.state(&state, object.private.clone(), None, identity.as_ref())?;
        Ok(Adopted { state, schema_version: self.kind.outline.version })
    }

    /// The identity in the form of the present schema.
    async fn adopted_identity(&self, object: &ForeignObject) -> Result<Option<Encoded>, DriverError> {
        let (Some((identity, version)), Some((present, _))) = (&object.identity, &self.kind.identity) else {
            return Ok(None);
        };
        let bytes = identity.clone().into_bytes();
        if version == present {
            return Ok(Some(Encoded::Json(bytes)));
        }
        let answer = self.client.upgrade_resource_identity(&self.context.type_name, *version, RawState(bytes)).await;
        let Some(answer) = answer.map_err(|error| told::failed(&error))? else { return Ok(None) };
        self.hear(answer.diagnostics)?;
        Ok(answer.identity)
    }

    /// An object of another type, of this provider or another, as one of this type.
    async fn take_over(&self, type_name: &str, object: &RecordedObject) -> Result<ObjectState, DriverError> {
        let no_way = |why: &str| {
            let own = &self.context.type_name;
            let message = format!("the provider does not make a `{own}` of a `{type_name}`{why}");
            DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
        };
        let (source_provider, source) = match &object.provider {
            Some(used) => (used.provider.source.to_string(), ForeignObject::of(object)?),
            None if type_name == terraform_data::TYPE_NAME => {
                let plain = RecordedObject { private: Arc::from([]), ..object.clone() };
                (terraform_data::PROVIDER.to_owned(), ForeignObject::of(&plain)?)
            }
            None => return Err(no_way("")),
        };
        let asked = MoveResourceState {
            source_provider,
            source_type: type_name.to_owned(),
            source_version: source.schema_version,
            source_state: RawState(source.attributes.into_bytes()),
            source_private: source.private,
            source_identity: source.identity.map(|(identity, version)| (RawState(identity.into_bytes()), version)),
            target_type: self.context.type_name.to_string(),
        };
        let answer = self.client.move_resource_state(asked).await.map_err(|error| told::failed(&error))?;
        let answer = answer.ok_or_else(|| no_way(""))?;
        self.hear(answer.diagnostics).map_err(|error| no_way(&format!(": {}", error.message)))?;
        let state = self.decode(&answer.state, "the state that it has taken over")?;
        if state.is_null() {
            return Err(no_way(": it made nothing of it"));
        }
        let state = cty::normalized(&self.kind.schema.block, &state.unknown_as_null());
        self.state(&state, answer.private, None, answer.identity.as_ref())
    }

    async fn reconstructed(
        &self,
        value: &EngineValue,
        written: Option<&BTreeSet<Arc<str>>>,
    ) -> Result<Reconstructed, DriverError> {
        let candidates = match (written, cty::configured(&self.kind.schema.block, value, Closeness::Whole)) {
            (Some(written), all @ EngineValue::Map(_)) => vec![only(written, all)],
            _ => self.candidates(value).await?,
        };
        let mut first = None;
        for config in candidates {
            let problems = self.validate(&config).await?;
            if !problems.iter().any(|problem| problem.severity == Severity::Error) {
                return Ok(Reconstructed { config, problems: Vec::new() });
            }
            first.get_or_insert(Reconstructed { config, problems });
        }
        Ok(first.unwrap_or_default())
    }

    /// Configurations that may do, the best first: the provider's own, if it makes one, then ours.
    async fn candidates(&self, value: &EngineValue) -> Result<Vec<EngineValue>, DriverError> {
        let block = &self.kind.schema.block;
        let mut candidates = Vec::new();
        if self.generates_config {
            let state = cty::from_engine(self.kind.schema.ty(), &value.without_marks(), &DynamicTypes::default());
            // A value that holds something of its own type is left to our rules.
            if let Ok(state) = state {
                candidates.extend(self.generated(&state).await?);
            }
        }
        let ours = [Closeness::Whole, Closeness::WithoutEmpty, Closeness::Least];
        candidates.extend(ours.map(|closeness| cty::configured(block, value, closeness)));
        Ok(candidates)
    }

    async fn generated(&self, state: &Value) -> Result<Option<EngineValue>, DriverError> {
        let state = self.encode(state)?;
        let answer = self.client.generate_resource_config(&self.context.type_name, state).await;
        let Some(answer) = answer.map_err(|error| told::failed(&error))? else { return Ok(None) };
        if answer.diagnostics.iter().any(|one| one.severity == Severity::Error) || answer.config.is_null() {
            return Ok(None);
        }
        let config = self.decode(&answer.config, "the generated configuration")?;
        // What it leaves to itself is null in it.
        let marked = cty::to_engine(&self.kind.schema.block, &config.unknown_as_null());
        Ok(Some(cty::configured(&self.kind.schema.block, &marked, Closeness::Whole)))
    }
}

/// The arguments that were written, of all those of a configuration.
fn only(written: &BTreeSet<Arc<str>>, config: EngineValue) -> EngineValue {
    let EngineValue::Map(all) = &config else { return config };
    let known = all.iter().filter(|(name, _)| written.contains(*name));
    EngineValue::map(known.map(|(name, value)| (name.clone(), value.clone())))
}
