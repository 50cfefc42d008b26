//! Calls a provider about one object, and converts the object's state between the forms of the engine and the provider.

mod prior;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cty::{Error, Value, msgpack};

use super::diagnostics;
use super::mask::ProcessMask;
use super::private::{ObjectPrivate, PlanPrivate, WriteOnlyFingerprint};
use super::schema::{IdentityType, ResourceType};
use super::values::{self, DynamicTypes};
use crate::masked::{Answer, mask_answer};
use crate::{ApplyRequest, ApplyResponse, CallContext, arguments};
use model::{
    DriverError, ErrorKind, IgnoredChange, ImportRequest, ObjectState, PlanRequest, PlanResponse, RecordedObject,
    Secrets, Value as EngineValue,
};
use prior::PriorState;
use tfprovider::plugin::{
    ApplyResourceChange, ApplyResourceChangeResponse, Client, Diagnostic, DynamicValue, Identity, ImportResourceState,
    Lease, PlanResourceChange, PluginError, ReadResource,
};
use tfprovider::schema::{
    Block, normalize, plan_errors, proposed_state, replace_paths, result_errors, with_prior_at, write_only_values,
};

/// A configured provider for the calls about one object.
pub struct ObjectClient<'a> {
    /// Sends a stop request at the deadline of the call.
    pub client: Client,
    /// Keeps the process running.
    pub _lease: Lease,
    pub mask: Arc<ProcessMask>,
    pub kind: Arc<ResourceType>,
    /// The provider also plans destroys.
    pub plans_destroys: bool,
    /// The provider generates configurations from states.
    pub generates_config: bool,
    pub context: &'a CallContext,
    /// All calls received a stop request.
    pub stopped: &'a AtomicBool,
}

impl ObjectClient<'_> {
    /// The state of an object that does not exist.
    fn no_state(&self) -> Value {
        Value::null(self.kind.schema.ty().clone())
    }

    fn type_name(&self) -> String {
        self.context.type_name.to_string()
    }

    /// Whether the provider received a stop request.
    fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.client.was_stopped()
    }

    /// Masks the sensitive values of these in messages and logs.
    pub fn mask_values(&self, config: Option<&EngineValue>, prior: Option<&RecordedObject>) {
        let block = &self.kind.schema.block;
        let mut values: Vec<EngineValue> =
            config.into_iter().chain(prior.map(|object| &object.value)).cloned().collect();
        if let Some(config) = config.filter(|_| self.kind.has_secrets) {
            let (config, _) = values::coerce_config(block, config);
            values.extend(
                write_only_values(block, &config).iter().map(|value| values::to_unmarked_model(value).into_sensitive()),
            );
            values.push(values::to_model(block, &config));
        }
        self.mask.add(Secrets::of(&values));
    }

    /// Masks the answer to a call that is none of a driver.
    pub fn mask_answer<A: Answer>(&self, answer: A) -> A {
        mask_answer(self.context, answer, |_| self.mask.secrets())
    }

    /// Collects the warnings in the diagnostics of a response and returns the first error.
    pub fn check_diagnostics(&self, diagnostics: Vec<Diagnostic>) -> Result<(), DriverError> {
        let error = diagnostics::first_error(&diagnostics);
        diagnostics::warnings(diagnostics).into_iter().for_each(|warning| self.context.warnings.add(warning));
        error.map_or(Ok(()), Err)
    }

    pub async fn validate(&self, config: &EngineValue) -> Result<model::Diagnostics, DriverError> {
        let (config, problems) = values::coerce_config(&self.kind.schema.block, config);
        if !problems.is_empty() {
            return Ok(problems);
        }
        let config = self.encode(&config)?;
        let response = self.client.validate_resource_config(&self.context.type_name, config).await;
        Ok(diagnostics::diagnostics(response.map_err(|error| diagnostics::call_error(&error))?))
    }

    pub async fn plan(&self, request: &PlanRequest) -> Result<PlanResponse, DriverError> {
        let block = &self.kind.schema.block;
        let config = self.conform_config(&request.config)?;
        let prior = match &request.prior {
            Some(object) => self.prior(object).await?,
            None => PriorState { state: self.no_state(), private: ObjectPrivate::default(), identity: None },
        };
        let proposed = proposed_state(block, &prior.state, &config);
        let call = PlanResourceChange {
            type_name: self.type_name(),
            prior: self.encode(&prior.state)?,
            proposed: self.encode(&proposed)?,
            config: self.encode(&config)?,
            prior_private: prior.private.private,
            prior_identity: Identity::of(prior.identity),
            ..PlanResourceChange::default()
        };
        let answer = self.client.plan_resource_change(call).await.map_err(|error| diagnostics::call_error(&error))?;
        self.check_diagnostics(answer.diagnostics)?;
        reject_deferred(answer.deferred.is_some())?;
        let answered = self.decode(&answer.state, "the planned state")?;
        if answered.is_null() {
            return Err(diagnostics::protocol_error("the provider returned an empty plan"));
        }
        let errors = plan_errors(block, &prior.state, &config, &answered);
        self.check("produced an invalid plan", &errors, answer.legacy_type_system)?;
        let ignored = request.ignored.as_ref().map_or(&[][..], |ignored| &ignored.changes);
        let planned = match answer.legacy_type_system {
            // Such providers change configured values, for example hash a value that is already the hash.
            true => with_ignored(block, &answered, &prior.state, ignored),
            false => answered.clone(),
        };
        self.check_final_plan(request.previous_plan.as_ref(), &planned, answer.legacy_type_system)?;
        let listed: Vec<_> = answer.requires_replace.into_iter().map(|listed| listed.path).collect();
        let requires_replace = replace_paths(block, &prior.state, &planned, &listed);
        let forcing = requires_replace.map_err(|error| diagnostics::protocol_error(error.to_string()))?;
        let forcing = forcing.iter().map(values::path).collect();
        // The bytes of the provider can have refinements.
        let as_sent = planned == answered && !answer.state.msgpack.is_empty();
        let state = if as_sent { answer.state } else { self.encode(&planned)? }.msgpack;
        let identity = data(answer.identity).filter(|identity| !identity.is_null());
        let identity = identity.map(|identity| self.as_msgpack(identity)).transpose()?;
        let before = prior.private.write_only.as_ref();
        let write_only = self
            .kind
            .has_write_only
            .then(|| WriteOnlyFingerprint::of(block, &config, ignored, before, &request.entropy));
        let write_only_changed = request.prior.is_some() && before.is_some() && before != write_only.as_ref();
        let private = PlanPrivate {
            private: answer.private,
            state,
            identity: identity.map(|identity| identity.msgpack),
            legacy: answer.legacy_type_system,
            write_only,
        };
        Ok(PlanResponse {
            planned: values::to_model(block, &planned),
            requires_replace: forcing,
            private: private.encode(),
            identity: None,
            requires_update: write_only_changed,
            until_ready: None,
            checked: true,
            refusal: None,
            adopts: None,
        })
    }

    /// The plan of a provider that is not configured: the configuration, with the recorded values of what it does not
    /// set.
    pub async fn propose(&self, request: &PlanRequest) -> Result<PlanResponse, DriverError> {
        let block = &self.kind.schema.block;
        let config = self.conform_config(&request.config)?;
        let prior = match &request.prior {
            Some(object) => self.prior(object).await?.state,
            None => self.no_state(),
        };
        let planned = values::to_model(block, &proposed_state(block, &prior, &config));
        Ok(PlanResponse { planned, ..PlanResponse::default() })
    }

    /// A final plan may only replace unknown values.
    fn check_final_plan(&self, before: Option<&EngineValue>, now: &Value, legacy: bool) -> Result<(), DriverError> {
        let Some(before) = before else { return Ok(()) };
        // The engine's form lacks the type of an unknown dynamic value.
        if self.kind.schema.ty().has_dynamic() {
            return Ok(());
        }
        let before = values::from_model(self.kind.schema.ty(), before, &DynamicTypes::default());
        let before = before.map_err(|error| diagnostics::decode_error("the earlier plan", &error))?;
        let errors = result_errors(&self.kind.schema.block, &before, now);
        self.check("produced an inconsistent final plan", &errors, legacy)
    }

    pub async fn apply(&self, request: ApplyRequest) -> ApplyResponse {
        let Some(planned) = request.planned else { return self.destroy(request.prior, &request.private).await };
        let prepared = async {
            let prior = match &request.prior {
                Some(object) => self.prior(object).await?,
                None => PriorState { state: self.no_state(), private: ObjectPrivate::default(), identity: None },
            };
            let plan = PlanPrivate::decode(&request.private)?;
            let config = self.encode(&self.conform_config(&request.config)?)?;
            Ok::<_, DriverError>((prior, plan, config))
        };
        let (prior, plan, config) = match prepared.await {
            Ok(prepared) => prepared,
            Err(error) => return failed_response(error),
        };
        let call = match self.encode(&prior.state) {
            Ok(state) => ApplyResourceChange {
                type_name: self.type_name(),
                prior: state,
                planned: DynamicValue::encoded(plan.state.clone()),
                config,
                planned_private: plan.private.clone(),
                planned_identity: Identity::of(plan.identity.clone().map(DynamicValue::encoded)),
                ..ApplyResourceChange::default()
            },
            Err(error) => return failed_response(error),
        };
        drop(planned);
        match self.client.apply_resource_change(call).await {
            Ok(answer) => self.apply_response(&prior, &plan, answer),
            Err(error) => response_without_result(&error),
        }
    }

    /// Converts the response of an apply. The state is recorded even if the provider reports an error.
    fn apply_response(
        &self,
        prior: &PriorState,
        plan: &PlanPrivate,
        answer: ApplyResourceChangeResponse,
    ) -> ApplyResponse {
        let block = &self.kind.schema.block;
        let mut error = self.check_diagnostics(answer.diagnostics).err();
        let state = match self.decode(&answer.state, "the state of the object") {
            Ok(state) => state,
            // The object may exist, but its state is unknown.
            Err(error) => return ApplyResponse { outcome_unknown: true, ..failed_response(error) },
        };
        if state.is_null() {
            return failed_response(error.unwrap_or_else(|| {
                diagnostics::protocol_error("the provider returned no object and reported no error")
            }));
        }
        let known = state.unknown_as_null();
        if error.is_none() && !state.is_wholly_known() {
            error = Some(diagnostics::protocol_error("the provider returned unknown values for the object"));
        }
        if error.is_none() {
            let planned = msgpack::decode(&plan.state, self.kind.schema.ty());
            let errors = planned.map(|planned| result_errors(block, &planned, &known)).unwrap_or_default();
            let legacy = plan.legacy || answer.legacy_type_system;
            error = self.check("produced an inconsistent result after apply", &errors, legacy).err();
        }
        // Providers with the legacy SDK return the prior state without its private data if an update fails.
        let private = match answer.private.is_empty() && known == prior.state {
            true => prior.private.private.clone(),
            false => answer.private,
        };
        // After a failed update, the write-only arguments must be sent again.
        let write_only = if error.is_some() { &prior.private.write_only } else { &plan.write_only };
        let object = self.state(&known, private, write_only.clone(), data(answer.identity).as_ref());
        match object {
            Ok(object) => {
                let interrupted = error.is_some() && prior.state.is_null() && self.was_stopped();
                let object = Some(object);
                ApplyResponse { object, error, allows_differences: true, interrupted, ..ApplyResponse::default() }
            }
            Err(fault) => ApplyResponse { outcome_unknown: true, ..failed_response(error.unwrap_or(fault)) },
        }
    }

    async fn destroy(&self, object: Option<Arc<RecordedObject>>, planned: &[u8]) -> ApplyResponse {
        let Some(object) = object else {
            return failed_response(diagnostics::protocol_error("there is no object to destroy"));
        };
        let prepared = async {
            let prior = self.prior(&object).await?;
            let call = self.destroy_request(&prior, planned).await?;
            Ok::<_, DriverError>((prior, call))
        };
        let (prior, call) = match prepared.await {
            Ok(prepared) => prepared,
            Err(error) => return failed_response(error),
        };
        let sent = call.planned_private.clone();
        match self.client.apply_resource_change(call).await {
            Ok(answer) => self.destroy_response(prior, &sent, answer),
            Err(error) => response_without_result(&error),
        }
    }

    /// Converts the response of a destroy that got the private data `sent`.
    fn destroy_response(&self, prior: PriorState, sent: &[u8], answer: ApplyResourceChangeResponse) -> ApplyResponse {
        let error = self.check_diagnostics(answer.diagnostics).err();
        let remaining = match self.decode(&answer.state, "the state of the object") {
            Ok(left) => left,
            Err(fault) => return ApplyResponse { outcome_unknown: true, ..failed_response(error.unwrap_or(fault)) },
        };
        match (remaining.is_null(), error) {
            (true, None) => ApplyResponse::default(),
            // Providers with the legacy SDK may return no state if a destroy fails.
            (true, Some(error)) => failed_response(error),
            (false, error) => {
                let error = error.or_else(|| {
                    Some(diagnostics::protocol_error(
                        "the provider reported no error but returned the object after its destroy",
                    ))
                });
                let state = remaining.unknown_as_null();
                // The plan was not carried out, so the object keeps its own data.
                let has_own = answer.private == sent || (answer.private.is_empty() && state == prior.state);
                let private = if has_own { prior.private.private } else { answer.private };
                let object = self.state(&state, private, prior.private.write_only, data(answer.identity).as_ref()).ok();
                ApplyResponse { object, error, allows_differences: true, ..ApplyResponse::default() }
            }
        }
    }

    /// `planned` are the private data of the plan that covers the destroy, if there is one.
    async fn destroy_request(&self, prior: &PriorState, planned: &[u8]) -> Result<ApplyResourceChange, DriverError> {
        let state = self.encode(&prior.state)?;
        let mut private = prior.private.private.clone();
        let mut identity = prior.identity.clone();
        if !planned.is_empty() {
            private = PlanPrivate::decode(planned)?.private;
            identity = None;
        } else if self.plans_destroys {
            let call = PlanResourceChange {
                type_name: self.type_name(),
                prior: state.clone(),
                proposed: DynamicValue::null(),
                config: DynamicValue::null(),
                prior_private: private,
                prior_identity: Identity::of(identity.clone()),
                ..PlanResourceChange::default()
            };
            let answer =
                self.client.plan_resource_change(call).await.map_err(|error| diagnostics::call_error(&error))?;
            self.check_diagnostics(answer.diagnostics)?;
            reject_deferred(answer.deferred.is_some())?;
            if !self.decode(&answer.state, "the planned state")?.is_null() {
                return Err(diagnostics::protocol_error("the provider planned an object for a destroy"));
            }
            private = answer.private;
            if let Some(planned) = data(answer.identity) {
                identity = Some(self.as_msgpack(planned)?);
            }
        }
        Ok(ApplyResourceChange {
            type_name: self.type_name(),
            prior: state,
            planned: DynamicValue::null(),
            config: DynamicValue::null(),
            planned_private: private,
            planned_identity: Identity::of(identity),
            ..ApplyResourceChange::default()
        })
    }

    pub async fn read(&self, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        // Providers may repair states in the upgrade call even if the version is unchanged.
        let prior = self.upgrade_recorded(object).await?;
        self.read_state(prior).await
    }

    async fn read_state(&self, prior: PriorState) -> Result<Option<ObjectState>, DriverError> {
        let PriorState { state, private, identity } = prior;
        let call = ReadResource {
            type_name: self.type_name(),
            state: self.encode(&state)?,
            private: private.private,
            identity: Identity::of(identity.clone()),
            ..ReadResource::default()
        };
        let answer = self.client.read_resource(call).await.map_err(|error| diagnostics::call_error(&error))?;
        self.check_diagnostics(answer.diagnostics)?;
        reject_deferred(answer.deferred.is_some())?;
        let state = self.decode(&answer.state, "the state of the object")?;
        if state.is_null() {
            return Ok(None);
        }
        let state = normalize(&self.kind.schema.block, &state.unknown_as_null());
        // A provider that returns no identity has not changed it.
        let identity = data(answer.identity).filter(|identity| !identity.is_null()).or(identity);
        self.state(&state, answer.private, private.write_only, identity.as_ref()).map(Some)
    }

    /// Imports an object; `None` if it does not exist.
    pub async fn import(&self, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        let identity = match request {
            ImportRequest::Id(id) => {
                return self.import_with(ImportResourceState { id: id.to_string(), ..<_>::default() }).await;
            }
            ImportRequest::Identity(identity) => identity,
        };
        let Some(IdentityType { ty, .. }) = &self.kind.identity else {
            return Err(arguments::no_identity(self.context));
        };
        let (value, mut problems) = values::convert(ty, identity);
        if !problems.is_empty() {
            let first = problems.swap_remove(0);
            let place = first.path.map_or_else(String::new, |path| format!("{path}: "));
            let message = format!("the identity is not valid: {place}{}", first.summary);
            return Err(DriverError { kind: ErrorKind::InvalidConfig, message, path: None, hint: first.hint });
        }
        let identity =
            DynamicValue::of(&value, ty).map_err(|error| diagnostics::decode_error("the identity", &error))?;
        self.import_with(ImportResourceState { identity: Identity::of(Some(identity)), ..<_>::default() }).await
    }

    async fn import_with(&self, mut call: ImportResourceState) -> Result<Option<ObjectState>, DriverError> {
        call.type_name = self.type_name();
        let answer = self.client.import_resource_state(call).await;
        let answer = answer.map_err(|error| diagnostics::call_error(&error))?;
        self.check_diagnostics(answer.diagnostics)?;
        reject_deferred(answer.deferred.is_some())?;
        let mut objects = answer.objects.into_iter().filter(|object| *object.type_name == *self.context.type_name);
        let (Some(object), None) = (objects.next(), objects.next()) else {
            return Err(diagnostics::protocol_error(format!(
                "the provider did not import exactly one `{}`",
                self.context.type_name
            )));
        };
        let state = self.decode(&object.state, "the imported state")?;
        if state.is_null() {
            return Ok(None);
        }
        let identity = data(object.identity).map(|identity| self.as_msgpack(identity)).transpose()?;
        // An imported state may be partial; a read completes it.
        let state = normalize(&self.kind.schema.block, &state.unknown_as_null());
        let private = ObjectPrivate { private: object.private, ..ObjectPrivate::default() };
        self.read_state(PriorState { state, private, identity }).await
    }

    /// An identity as requests have it.
    fn as_msgpack(&self, identity: DynamicValue) -> Result<DynamicValue, DriverError> {
        if !identity.msgpack.is_empty() {
            return Ok(identity);
        }
        let Some(IdentityType { ty, .. }) = &self.kind.identity else { return Ok(DynamicValue::null()) };
        let encoded = identity.value(ty).and_then(|value| DynamicValue::of(&value, ty));
        encoded.map_err(|error| diagnostics::decode_error("the identity", &error))
    }

    /// Converts an object to the engine's form.
    pub fn state(
        &self,
        state: &Value,
        private: Vec<u8>,
        write_only: Option<WriteOnlyFingerprint>,
        identity: Option<&DynamicValue>,
    ) -> Result<ObjectState, DriverError> {
        let identity = match (identity, &self.kind.identity) {
            (Some(identity), Some(IdentityType { ty, .. })) => {
                let value = identity.value(ty).map_err(|error| diagnostics::decode_error("the identity", &error))?;
                Some(values::to_unmarked_model(&value))
            }
            _ => None,
        };
        let identity = identity.filter(|identity| !matches!(identity, EngineValue::Null));
        let dynamic = DynamicTypes::of(state, self.kind.schema.ty());
        let value = values::to_model(&self.kind.schema.block, state);
        self.mask.add(Secrets::of([&value]));
        let identity_version =
            self.kind.identity.as_ref().filter(|_| identity.is_some()).map_or(0, |identity| identity.version);
        Ok(ObjectState {
            value,
            private: ObjectPrivate { private, dynamic, identity_version, write_only }.encode(),
            identity,
            health: None,
        })
    }

    pub fn conform_config(&self, config: &EngineValue) -> Result<Value, DriverError> {
        let (config, mut problems) = values::coerce_validated(&self.kind.schema.block, config);
        if problems.is_empty() {
            return Ok(config);
        }
        let first = problems.swap_remove(0);
        Err(DriverError { kind: ErrorKind::InvalidConfig, message: first.summary, path: first.path, hint: first.hint })
    }

    fn check(&self, what: &str, errors: &[Error], legacy: bool) -> Result<(), DriverError> {
        let Some(error) = diagnostics::value_errors(what, errors) else { return Ok(()) };
        if legacy {
            // Providers with the legacy SDK cannot distinguish null from an empty value.
            tracing::debug!(address = &*self.context.address, "ignored for the legacy SDK: {}", error.message);
            return Ok(());
        }
        Err(error)
    }

    pub fn encode(&self, value: &Value) -> Result<DynamicValue, DriverError> {
        DynamicValue::of(value, self.kind.schema.ty()).map_err(|error| diagnostics::decode_error("a value", &error))
    }

    pub fn decode(&self, value: &DynamicValue, what: &str) -> Result<Value, DriverError> {
        value.value(self.kind.schema.ty()).map_err(|error| diagnostics::decode_error(what, &error))
    }
}

/// The identity in a message.
pub fn data(identity: Option<Identity>) -> Option<DynamicValue> {
    identity?.data
}

/// The planned value with the prior values at the ignored paths. With `all`, nothing changes.
fn with_ignored(block: &Block, planned: &Value, prior: &Value, ignored: &[IgnoredChange]) -> Value {
    ignored.iter().fold(planned.clone(), |planned, change| {
        let path = match change {
            IgnoredChange::All => cty::Path::default(),
            IgnoredChange::At(path) => values::provider_path(path),
        };
        with_prior_at(block, &planned, prior, &path)
    })
}

/// Purlin does not allow providers to defer objects.
pub fn reject_deferred(deferred: bool) -> Result<(), DriverError> {
    if deferred {
        Err(diagnostics::protocol_error("the provider deferred the object, which Purlin does not support"))
    } else {
        Ok(())
    }
}

fn failed_response(error: DriverError) -> ApplyResponse {
    ApplyResponse { error: Some(error), ..ApplyResponse::default() }
}

/// The response for a call without a result. The outcome is certain only if the provider did not receive the call.
fn response_without_result(error: &PluginError) -> ApplyResponse {
    let certain = matches!(
        error,
        PluginError::Start { .. }
            | PluginError::BackingOff { .. }
            | PluginError::ShuttingDown { .. }
            | PluginError::NotCalled { .. }
            | PluginError::Unimplemented { .. }
    );
    ApplyResponse { outcome_unknown: !certain, ..failed_response(diagnostics::call_error(error)) }
}
