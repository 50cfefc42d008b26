//! Objects as Terraform and OpenTofu keep them in their states, to and from records.
//!
//! The provider upgrades the state and validates candidate configurations. Neither requires a provider configuration
//! or reads objects.

use std::sync::Arc;

use async_trait::async_trait;
use cty::{Type, Value, json};

use super::object_client::data;
use super::private::ObjectPrivate;
use super::schema::IdentityType;
use super::values::{self, ArgumentSelection, Dropped, DynamicTypes};
use super::{ObjectClient, Providers, diagnostics};
use crate::{CallContext, TakeOver, terraform_data};
use model::{
    Diagnostic, Diagnostics, DriverError, ErrorKind, ObjectState, Provider, RecordedObject, Secrets, Severity,
    Value as EngineValue,
};
use tfprovider::plugin::{Diagnostic as ProviderDiagnostic, DynamicValue, MoveResourceState, RawState};
use tfprovider::schema::normalize;

/// An object in a Terraform state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignObject {
    /// The schema version of its attributes.
    pub schema_version: i64,
    /// The attributes as JSON.
    pub attributes: String,
    /// The private data of the provider.
    pub private: Vec<u8>,
    /// The identity as JSON, with its schema version.
    pub identity: Option<(String, i64)>,
}

/// An object of a Terraform state, converted for a record.
#[derive(Clone, Debug)]
pub struct AdoptedObject {
    pub state: ObjectState,
    /// The schema version of the converted value.
    pub schema_version: u64,
}

/// A reconstructed configuration and the diagnostics of its provider.
#[derive(Clone, Debug, Default)]
pub struct ReconstructedConfig {
    /// The configuration, with sensitive values marked.
    pub config: EngineValue,
    /// The errors, if the provider rejects the configuration.
    pub problems: Diagnostics,
}

impl ForeignObject {
    ///
    /// # Errors
    /// If the recorded private data is damaged.
    pub fn of(object: &RecordedObject) -> Result<Self, DriverError> {
        let private = ObjectPrivate::decode(&object.private)?;
        let identity = object.identity.as_ref().map(|identity| {
            (values::raw_state(&identity.without_marks(), &DynamicTypes::default()), private.identity_version)
        });
        Ok(Self {
            schema_version: i64::try_from(object.schema_version).unwrap_or(i64::MAX),
            attributes: values::raw_state(&object.value.without_marks(), &private.dynamic),
            identity,
            private: private.private,
        })
    }
}

impl Providers {
    /// Converts an object of a state for a record, without reading it.
    ///
    /// # Errors
    /// If the provider or type does not exist, or the state cannot be upgraded.
    pub async fn adopt(&self, context: &CallContext, object: &ForeignObject) -> Result<AdoptedObject, DriverError> {
        let called = self.object_client(context).await?;
        called.mask_answer(called.adopt_object(object).await)
    }

    /// The type of the objects of a resource type. `None` if the schema of the provider is unknown.
    pub fn object_type(&self, provider: &Provider, type_name: &str) -> Option<Type> {
        let served = self.cached_types(provider)?.ok()?;
        Some(served.resource(type_name).ok()??.schema.ty().clone())
    }

    /// Reconstructs the configuration of a recorded value: the closest one that the provider accepts.
    ///
    /// # Errors
    /// If the provider cannot be called.
    pub async fn reconstruct(
        &self,
        context: &CallContext,
        value: &EngineValue,
    ) -> Result<ReconstructedConfig, DriverError> {
        let called = self.object_client(context).await?;
        called.mask.add(Secrets::of([value]));
        called.mask_answer(called.reconstruct_config(value).await)
    }
}

#[async_trait]
impl TakeOver for Providers {
    async fn take_over(
        &self,
        context: &CallContext,
        type_name: &str,
        object: &RecordedObject,
    ) -> Result<ObjectState, DriverError> {
        let called = self.object_client(context).await?;
        called.mask_values(None, Some(object));
        called.take_over(type_name, object).await
    }
}

impl ObjectClient<'_> {
    async fn adopt_object(&self, object: &ForeignObject) -> Result<AdoptedObject, DriverError> {
        self.require_no_newer(object.schema_version, "its state was written")?;
        let mut attributes = object.attributes.clone();
        if object.schema_version == self.kind.schema.version.max(0) {
            // The schema may drop attributes without a new version, and providers reject unknown attributes.
            let ty = self.kind.schema.ty();
            let known = json::decode(attributes.as_bytes(), ty, json::UnsupportedAttributes::Ignore);
            let known = known.map_err(|error| diagnostics::decode_error("the state", &error))?;
            self.mask.add(Secrets::of([&values::to_model(&self.kind.schema.block, &known)]));
            attributes = json::encode(&known, ty).map_err(|error| diagnostics::decode_error("the state", &error))?;
        }
        let raw = RawState::new(attributes);
        let state = self.upgrade(object.schema_version, raw, "the state").await?;
        let identity = self.adopt_identity(object).await?;
        let state = self.state(&state, object.private.clone(), None, identity.as_ref())?;
        Ok(AdoptedObject { state, schema_version: self.kind.outline.version })
    }

    /// The identity, upgraded to the current schema.
    async fn adopt_identity(&self, object: &ForeignObject) -> Result<Option<DynamicValue>, DriverError> {
        let (Some((identity, version)), Some(IdentityType { version: present, .. })) =
            (&object.identity, &self.kind.identity)
        else {
            return Ok(None);
        };
        if version == present {
            return Ok(Some(DynamicValue { json: identity.clone().into_bytes(), ..DynamicValue::default() }));
        }
        self.upgrade_identity(*version, identity.clone()).await
    }

    /// Converts an object of another type, possibly of another provider, to this type.
    async fn take_over(&self, type_name: &str, object: &RecordedObject) -> Result<ObjectState, DriverError> {
        let (source_provider, source) = match &object.provider {
            Some(used) => (used.provider.source.to_string(), ForeignObject::of(object)?),
            None if type_name == terraform_data::TYPE_NAME => {
                let plain = RecordedObject { private: Arc::from([]), ..object.clone() };
                (terraform_data::PROVIDER.to_owned(), ForeignObject::of(&plain)?)
            }
            None => return Err(self.cannot_move(type_name, "")),
        };
        let (source_identity, source_identity_version) = source.identity.unzip();
        let call = MoveResourceState {
            source_provider,
            source_type: type_name.to_owned(),
            source_version: source.schema_version,
            source_state: RawState::new(source.attributes),
            source_private: source.private,
            source_identity: source_identity.map(RawState::new),
            source_identity_version: source_identity_version.unwrap_or_default(),
            target_type: self.context.type_name.to_string(),
        };
        let answer = self.client.move_resource_state(call).await.map_err(|error| diagnostics::call_error(&error))?;
        let answer = answer.ok_or_else(|| self.cannot_move(type_name, ""))?;
        self.check_diagnostics(answer.diagnostics)
            .map_err(|error| self.cannot_move(type_name, &format!(": {}", error.message)))?;
        let state = self.decode(&answer.state, "the moved state")?;
        if state.is_null() {
            return Err(self.cannot_move(type_name, ": it returned no object"));
        }
        let state = normalize(&self.kind.schema.block, &state.unknown_as_null());
        self.state(&state, answer.private, None, data(answer.identity).as_ref())
    }

    fn cannot_move(&self, type_name: &str, why: &str) -> DriverError {
        let message = format!("the provider cannot move a `{type_name}` to a `{}`{why}", self.context.type_name);
        DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }
    }

    async fn reconstruct_config(&self, value: &EngineValue) -> Result<ReconstructedConfig, DriverError> {
        let block = &self.kind.schema.block;
        let full = values::config_from_state(block, value, ArgumentSelection::All);
        let mut first = None;
        for candidate in self.candidates(value, &full).await? {
            let (config, problems) = self.refine(candidate).await?;
            if problems.is_empty() {
                return Ok(ReconstructedConfig { config, problems });
            }
            first.get_or_insert((config, problems));
        }
        let (config, problems) = first.unwrap_or_default();
        Ok(ReconstructedConfig { config, problems })
    }

    /// Removes the optional arguments that the provider rejects, the empty ones first. Returns the errors that remain.
    async fn refine(&self, candidate: EngineValue) -> Result<(EngineValue, Diagnostics), DriverError> {
        let mut config = candidate;
        loop {
            let problems: Diagnostics = self.validate(&config).await?.into_iter().filter(is_error).collect();
            // Each round removes an argument.
            let less = self
                .without_rejected(&config, &problems, Dropped::Empty)
                .or_else(|| self.without_rejected(&config, &problems, Dropped::Computed));
            match less {
                Some(less) => config = less,
                None => return Ok((config, problems)),
            }
        }
    }

    /// `None` if nothing is dropped.
    fn without_rejected(&self, config: &EngineValue, problems: &[Diagnostic], dropped: Dropped) -> Option<EngineValue> {
        let mut less = config.clone();
        for problem in problems {
            let path = problem.path.clone().unwrap_or_default();
            less = values::without(&self.kind.schema.block, &less, &path, dropped);
        }
        (less != *config).then_some(less)
    }

    /// Candidate configurations, the best first: the one that the provider generates, if it supports that, then
    /// Purlin's.
    async fn candidates(&self, value: &EngineValue, full: &EngineValue) -> Result<Vec<EngineValue>, DriverError> {
        let block = &self.kind.schema.block;
        let mut candidates = Vec::new();
        if self.generates_config {
            let state = values::from_model(self.kind.schema.ty(), &value.without_marks(), &DynamicTypes::default());
            // A value with a dynamic type cannot be encoded without its type.
            if let Ok(state) = state {
                candidates.extend(self.generate_config(&state).await?);
            }
        }
        candidates.push(full.clone());
        let ours = [ArgumentSelection::NonEmpty, ArgumentSelection::NotComputed];
        candidates.extend(ours.map(|closeness| values::config_from_state(block, value, closeness)));
        Ok(candidates)
    }

    async fn generate_config(&self, state: &Value) -> Result<Option<EngineValue>, DriverError> {
        let state = self.encode(state)?;
        let answer = self.client.generate_resource_config(&self.context.type_name, state).await;
        let Some(answer) = answer.map_err(|error| diagnostics::call_error(&error))? else { return Ok(None) };
        if answer.diagnostics.iter().any(ProviderDiagnostic::is_error) || answer.config.is_null() {
            return Ok(None);
        }
        let config = self.decode(&answer.config, "the generated configuration")?;
        // Unknown values are computed by the provider.
        let marked = values::to_model(&self.kind.schema.block, &config.unknown_as_null());
        Ok(Some(values::config_from_state(&self.kind.schema.block, &marked, ArgumentSelection::All)))
    }
}

fn is_error(problem: &Diagnostic) -> bool {
    problem.severity == Severity::Error
}
