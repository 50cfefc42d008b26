//! One object of a provider: its state between the engine's form and the provider's, and the calls about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::mask::ProcessMask;
use super::private::{Kept, Planned, Told};
use super::schema::ResourceType;
use super::told;
use crate::cty::{self, DynamicTypes, Type, Value, json, msgpack};
use crate::driver::{ApplyRequest, ApplyResponse, CallContext, Warnings, arguments};
use crate::model::{
    DriverError, ErrorKind, ImportRequest, ObjectState, PlanRequest, PlanResponse, RecordedObject, Secrets,
    Value as EngineValue,
};
use crate::plugin::{
    Applied, ApplyResourceChange, Client, Diagnostic, Encoded, ImportResourceState, Lease, Msgpack, PlanResourceChange,
    PluginError, RawState, ReadResource,
};

/// A configured provider, about to be called for one object.
pub(super) struct Object<'a> {
    /// The provider, which is asked to give up at the deadline of the call.
    pub client: Client,
    /// Keeps its process.
    pub _lease: Lease,
    /// What must not come out of its process.
    pub mask: Arc<ProcessMask>,
    /// The type of the object.
    pub kind: Arc<ResourceType>,
    /// The provider plans destroys, too.
    pub plans_destroys: bool,
    /// The provider makes configurations of states.
    pub generates_config: bool,
    /// Whose call it is.
    pub context: &'a CallContext,
    /// What it has warned of, as it said it.
    pub said: Warnings,
    /// All calls were asked to end early.
    pub stopped: &'a AtomicBool,
}

/// The state of a recorded object, with what the provider wants back.
struct Prior {
    state: Value,
    kept: Kept,
    identity: Option<Msgpack>,
}

impl Object<'_> {
    fn type_name(&self) -> String {
        self.context.type_name.to_string()
    }

    /// Whether we have asked for an early end of its calls.
    fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.client.was_stopped()
    }

    /// From now on nothing sensitive of these is told or logged, whoever says it.
    pub fn hush(&self, config: Option<&EngineValue>, prior: Option<&RecordedObject>) {
        let block = &self.kind.schema.block;
        let mut values: Vec<EngineValue> =
            config.into_iter().chain(prior.map(|object| &object.value)).cloned().collect();
        if let Some(config) = config.filter(|_| self.kind.has_secrets) {
            let (config, _) = cty::conform(block, config);
            values.extend(cty::write_only(block, &config).iter().map(|told| cty::plain(told).into_sensitive()));
            values.push(cty::to_engine(block, &config));
        }
        self.mask.remember(Secrets::of(&values));
    }

    /// The result of a call without what must not be told. Its warnings go to whoever made it.
    pub fn masked<T>(&self, result: Result<T, DriverError>) -> Result<T, DriverError> {
        self.hand_on_warnings();
        result.map_err(|error| self.mask.error(error))
    }

    /// The warnings go to whoever made the call, without what must not be told: by now all is known that the answers hold.
    pub fn hand_on_warnings(&self) {
        let said = self.said.take().into_iter();
        said.for_each(|warning| self.context.warnings.add(self.mask.diagnostic(warning)));
    }

    /// Takes what the provider says beside an answer: warnings are kept, and the first error is given.
    pub(super) fn hear(&self, said: Vec<Diagnostic>) -> Result<(), DriverError> {
        let error = told::error(&said);
        told::warnings(said).into_iter().for_each(|warning| self.said.add(warning));
        error.map_or(Ok(()), Err)
    }

    fn masked_all(&self, found: crate::model::Diagnostics) -> crate::model::Diagnostics {
        found.into_iter().map(|one| self.mask.diagnostic(one)).collect()
    }

    /// Checks a configuration, as far as it is known.
    pub async fn validate(&self, config: &EngineValue) -> Result<crate::model::Diagnostics, DriverError> {
        let (config, found) = cty::conform(&self.kind.schema.block, config);
        if !found.is_empty() {
            return Ok(self.masked_all(found));
        }
        let config = self.encode(&config)?;
        let said = self.client.validate_resource_config(&self.context.type_name, config).await;
        Ok(self.masked_all(told::diagnostics(said.map_err(|error| told::failed(&error))?)))
    }

    /// Plans a create or an update.
    pub async fn plan(&self, request: &PlanRequest) -> Result<PlanResponse, DriverError> {
        let block = &self.kind.schema.block;
        let config = self.conformed(&request.config)?;
        let prior = match &request.prior {
            Some(object) => self.prior(object).await?,
            None => Prior { state: Value::Null, kept: Kept::default(), identity: None },
        };
        let proposed = cty::proposed(block, &prior.state, &config);
        let asked = PlanResourceChange {
            type_name: self.type_name(),
            prior: self.encode(&prior.state)?,
            proposed: self.encode(&proposed)?,
            config: self.encode(&config)?,
            prior_private: prior.kept.private,
            prior_identity: prior.identity,
        };
        let answer = self.client.plan_resource_change(asked).await.map_err(|error| told::failed(&error))?;
        self.hear(answer.diagnostics)?;
        refuse_deferred(answer.deferred.is_some())?;
        let planned = self.decode(&answer.state, "the planned state")?;
        if planned.is_null() {
            return Err(told::fault("the provider planned nothing"));
        }
        let found = cty::plan_faults(block, &prior.state, &config, &planned);
        self.check("gave an invalid plan", &found, answer.legacy_type_system)?;
        self.keeps_promise(request.planned_before.as_ref(), &planned, answer.legacy_type_system)?;
        let forcing = cty::replacing(block, &prior.state, &planned, &answer.requires_replace);
        let forcing = forcing.map_err(|error| told::fault(error.to_string()))?;
        let state = match answer.state {
            Encoded::Msgpack(bytes) => bytes,
            Encoded::Json(_) => self.encode(&planned)?.0,
        };
        let identity = answer.identity.map(|identity| self.identity_bytes(identity)).transpose()?;
        let before = prior.kept.told.as_ref();
        let told = self.kind.has_write_only.then(|| Told::of(block, &config, before, &request.entropy));
        let tells = request.prior.is_some() && before.is_some() && before != told.as_ref();
        let kept = Planned { private: answer.private, state, identity, legacy: answer.legacy_type_system, told };
        Ok(PlanResponse {
            planned: cty::to_engine(block, &planned),
            requires_replace: forcing,
            private: kept.encode(),
            identity: None,
            tells,
            until_ready: None,
            checked: true,
        })
    }

    /// A final plan may only fill in what was unknown.
    fn keeps_promise(&self, before: Option<&EngineValue>, now: &Value, legacy: bool) -> Result<(), DriverError> {
        let Some(before) = before else { return Ok(()) };
        // Of a dynamic place that was unknown the engine's form does not tell the type.
        if self.kind.schema.ty().has_dynamic() {
            return Ok(());
        }
        let before = cty::from_engine(self.kind.schema.ty(), before, &DynamicTypes::default());
        let before = before.map_err(|error| told::unreadable("what was planned before", &error))?;
        let found = cty::result_faults(&self.kind.schema.block, &before, now);
        self.check("gave a final plan that is not what it planned before", &found, legacy)
    }

    /// Creates, updates or destroys.
    pub async fn apply(&self, request: ApplyRequest) -> ApplyResponse {
        let Some(planned) = request.planned else { return self.destroy(request.prior).await };
        let prepared = async {
            let prior = match &request.prior {
                Some(object) => self.prior(object).await?,
                None => Prior { state: Value::Null, kept: Kept::default(), identity: None },
            };
            let plan = Planned::decode(&request.private)?;
            let config = self.encode(&self.conformed(&request.config)?)?;
            Ok::<_, DriverError>((prior, plan, config))
        };
        let (prior, plan, config) = match prepared.await {
            Ok(prepared) => prepared,
            Err(error) => return refused(error),
        };
        let asked = match self.encode(&prior.state) {
            Ok(state) => ApplyResourceChange {
                type_name: self.type_name(),
                prior: state,
                planned: Msgpack(plan.state.clone()),
                config,
                planned_private: plan.private.clone(),
                planned_identity: plan.identity.clone().map(Msgpack),
            },
            Err(error) => return refused(error),
        };
        drop(planned);
        match self.client.apply_resource_change(asked).await {
            Ok(answer) => self.applied(&prior, &plan, answer),
            Err(error) => unanswered(&error),
        }
    }

    /// What an apply came to. The state counts before anything that was said: what was made is recorded.
    fn applied(&self, prior: &Prior, plan: &Planned, answer: Applied) -> ApplyResponse {
        let block = &self.kind.schema.block;
        let mut error = self.hear(answer.diagnostics).err();
        let state = match self.decode(&answer.state, "the state of the object") {
            Ok(state) => state,
            // Something may have been made, and nobody can tell what.
            Err(error) => return ApplyResponse { unsettled: true, ..refused(error) },
        };
        if state.is_null() {
            let missing = || told::fault("the provider returned no object and reported no error");
            return refused(error.unwrap_or_else(missing));
        }
        let known = state.unknown_as_null();
        if error.is_none() && state.has_unknown() {
            error = Some(told::fault("the provider left places of the object unknown"));
        }
        if error.is_none() {
            let planned = msgpack::decode(&plan.state, self.kind.schema.ty());
            let found = planned.map(|planned| cty::result_faults(block, &planned, &known)).unwrap_or_default();
            let legacy = plan.legacy || answer.legacy_type_system;
            error = self.check("made something else than it planned", &found, legacy).err();
        }
        // Providers of the legacy kind return the prior state with a failure, and forget the private data.
        let private = match answer.private.is_empty() && known == prior.state {
            true => prior.kept.private.clone(),
            false => answer.private,
        };
        // What a failed update was to tell is to be told again.
        let told = if error.is_some() { &prior.kept.told } else { &plan.told };
        let object = self.state(&known, private, told.clone(), answer.identity.as_ref());
        match object {
            Ok(object) => {
                let interrupted = error.is_some() && prior.state.is_null() && self.was_stopped();
                let object = Some(object);
                ApplyResponse { object, error, tolerant: true, interrupted, ..ApplyResponse::default() }
            }
            Err(fault) => ApplyResponse { unsettled: true, ..refused(error.unwrap_or(fault)) },
        }
    }

    async fn destroy(&self, prior: Option<Arc<RecordedObject>>) -> ApplyResponse {
        let Some(prior) = prior else { return refused(told::fault("there is nothing to destroy")) };
        let asked = match self.destruction(&prior).await {
            Ok(asked) => asked,
            Err(error) => return refused(error),
        };
        match self.client.apply_resource_change(asked).await {
            Ok(answer) => self.destroyed(answer),
            Err(error) => unanswered(&error),
        }
    }

    fn destroyed(&self, answer: Applied) -> ApplyResponse {
        let error = self.hear(answer.diagnostics).err();
        let left = match self.decode(&answer.state, "the state of the object") {
            Ok(left) => left,
            Err(fault) => return ApplyResponse { unsettled: true, ..refused(error.unwrap_or(fault)) },
        };
        match (left.is_null(), error) {
            (true, None) => ApplyResponse::default(),
            // Providers of the legacy kind return no state with a failure, too.
            (true, Some(error)) => refused(error),
            (false, error) => {
                let error = error.or_else(|| {
                    Some(told::fault("the provider reported no error, and returned an object after its destruction"))
                });
                // What is to be destroyed is told nothing more.
                let object = self.state(&left.unknown_as_null(), answer.private, None, answer.identity.as_ref()).ok();
                ApplyResponse { object, error, tolerant: true, ..ApplyResponse::default() }
            }
        }
    }

    async fn destruction(&self, object: &RecordedObject) -> Result<ApplyResourceChange, DriverError> {
        let prior = self.prior(object).await?;
        let state = self.encode(&prior.state)?;
        let mut private = prior.kept.private;
        let mut identity = prior.identity;
        if self.plans_destroys {
            let asked = PlanResourceChange {
                type_name: self.type_name(),
                prior: state.clone(),
                proposed: Msgpack::null(),
                config: Msgpack::null(),
                prior_private: private,
                prior_identity: identity.clone(),
            };
            let answer = self.client.plan_resource_change(asked).await.map_err(|error| told::failed(&error))?;
            self.hear(answer.diagnostics)?;
            refuse_deferred(answer.deferred.is_some())?;
            if !self.decode(&answer.state, "the planned state")?.is_null() {
                return Err(told::fault("the provider planned an object when it was asked to destroy one"));
            }
            private = answer.private;
            if let Some(planned) = answer.identity {
                identity = Some(Msgpack(self.identity_bytes(planned)?));
            }
        }
        Ok(ApplyResourceChange {
            type_name: self.type_name(),
            prior: state,
            planned: Msgpack::null(),
            config: Msgpack::null(),
            planned_private: private,
            planned_identity: identity,
        })
    }

    /// Reads an object as it is now.
    pub async fn read(&self, object: &RecordedObject) -> Result<Option<ObjectState>, DriverError> {
        // Providers mend old states in this call even when the version is the same.
        let prior = self.upgraded(object).await?;
        self.read_state(prior).await
    }

    async fn read_state(&self, prior: Prior) -> Result<Option<ObjectState>, DriverError> {
        let told = prior.kept.told;
        let asked = ReadResource {
            type_name: self.type_name(),
            state: self.encode(&prior.state)?,
            private: prior.kept.private,
            identity: prior.identity,
        };
        let answer = self.client.read_resource(asked).await.map_err(|error| told::failed(&error))?;
        self.hear(answer.diagnostics)?;
        refuse_deferred(answer.deferred.is_some())?;
        let state = self.decode(&answer.state, "the state of the object")?;
        if state.is_null() {
            return Ok(None);
        }
        let state = cty::normalized(&self.kind.schema.block, &state.unknown_as_null());
        self.state(&state, answer.private, told, answer.identity.as_ref()).map(Some)
    }

    /// Finds an existing object by its id. `None`: there is none.
    pub async fn import(&self, request: &ImportRequest) -> Result<Option<ObjectState>, DriverError> {
        let identity = match request {
            ImportRequest::Id(id) => return self.imported(ImportResourceState::Id(id.to_string())).await,
            ImportRequest::Identity(identity) => identity,
        };
        let Some((_, ty)) = &self.kind.identity else { return Err(arguments::no_identity(self.context)) };
        let (value, mut found) = cty::convert(ty, identity);
        if !found.is_empty() {
            let first = found.swap_remove(0);
            let place = first.path.map_or_else(String::new, |path| format!("{path}: "));
            let message = format!("the identity is not valid: {place}{}", first.summary);
            return Err(DriverError { kind: ErrorKind::InvalidConfig, message, path: None, hint: first.hint });
        }
        let bytes = msgpack::encode(&value, ty).map_err(|error| told::unreadable("the identity", &error))?;
        self.imported(ImportResourceState::Identity(Msgpack(bytes))).await
    }

    async fn imported(&self, asked: ImportResourceState) -> Result<Option<ObjectState>, DriverError> {
        let answer = self.client.import_resource_state(&self.context.type_name, asked).await;
        let answer = answer.map_err(|error| told::failed(&error))?;
        self.hear(answer.diagnostics)?;
        refuse_deferred(answer.deferred.is_some())?;
        let mut found = answer.objects.into_iter().filter(|object| *object.type_name == *self.context.type_name);
        let (Some(object), None) = (found.next(), found.next()) else {
            return Err(told::fault(format!("the provider did not find exactly one `{}`", self.context.type_name)));
        };
        let state = self.decode(&object.state, "the imported state")?;
        if state.is_null() {
            return Ok(None);
        }
        let identity = object.identity.map(|identity| self.identity_bytes(identity)).transpose()?;
        // What an import gives is partial: only reading completes it.
        let state = cty::normalized(&self.kind.schema.block, &state.unknown_as_null());
        let kept = Kept { private: object.private, ..Kept::default() };
        self.read_state(Prior { state, kept, identity: identity.map(Msgpack) }).await
    }

    /// The state on record, in the form of the present schema.
    async fn prior(&self, object: &RecordedObject) -> Result<Prior, DriverError> {
        if i64::try_from(object.schema_version) != Ok(self.kind.schema.version.max(0)) {
            return self.upgraded(object).await;
        }
        let kept = Kept::decode(&object.private)?;
        let state = cty::from_engine(self.kind.schema.ty(), &object.value.without_marks(), &kept.dynamic);
        let state = state.map_err(|error| told::unreadable("the recorded object", &error))?;
        Ok(Prior { state, identity: self.recorded_identity(object)?, kept })
    }

    async fn upgraded(&self, object: &RecordedObject) -> Result<Prior, DriverError> {
        let version = i64::try_from(object.schema_version).unwrap_or(i64::MAX);
        self.require_no_newer(version, "the object was recorded")?;
        let kept = Kept::decode(&object.private)?;
        let value = self.without_unknown_names(object.value.without_marks(), version);
        let raw = RawState(cty::raw_state(&value, &kept.dynamic).into_bytes());
        let state = self.upgrade(version, raw, "the recorded object").await?;
        Ok(Prior { state, identity: self.recorded_identity(object)?, kept })
    }

    /// A state that follows version `version` of the schema, or an older one's form of the present, as the provider has
    /// it now.
    pub(super) async fn upgrade(&self, version: i64, raw: RawState, what: &str) -> Result<Value, DriverError> {
        let answer = self.client.upgrade_resource_state(&self.context.type_name, version, raw).await;
        let answer = answer.map_err(|error| told::failed(&error))?;
        self.hear(answer.diagnostics)?;
        let state = self.decode(&answer.state, "the upgraded state")?;
        if state.is_null() {
            return Err(told::fault(format!("the provider made nothing of {what}")));
        }
        Ok(cty::normalized(&self.kind.schema.block, &state.unknown_as_null()))
    }

    /// Why nothing is done with a state that a newer version of the provider has written.
    pub(super) fn require_no_newer(&self, version: i64, what: &str) -> Result<(), DriverError> {
        let present = self.kind.schema.version.max(0);
        if version <= present {
            return Ok(());
        }
        let message = format!("{what} by a newer version of the provider (schema {version}, here {present})");
        let hint = Some("use that version or a newer one".to_owned());
        Err(DriverError { kind: ErrorKind::Terminal, message, path: None, hint })
    }

    /// What is recorded under the present schema may have attributes that it lost without a new version.
    fn without_unknown_names(&self, value: EngineValue, version: i64) -> EngineValue {
        let Type::Object(attributes) = self.kind.schema.ty() else { return value };
        match &value {
            EngineValue::Map(map) if version == self.kind.schema.version.max(0) => {
                let known = map.iter().filter(|(name, _)| attributes.contains_key(*name));
                EngineValue::map(known.map(|(name, item)| (name.clone(), item.clone())))
            }
            _ => value,
        }
    }

    fn recorded_identity(&self, object: &RecordedObject) -> Result<Option<Msgpack>, DriverError> {
        let (Some(identity), Some((_, ty))) = (&object.identity, &self.kind.identity) else { return Ok(None) };
        let value = cty::from_engine(ty, &identity.without_marks(), &DynamicTypes::default());
        let value = value.map_err(|error| told::unreadable("the recorded identity", &error))?;
        let bytes = msgpack::encode(&value, ty).map_err(|error| told::unreadable("the recorded identity", &error))?;
        Ok(Some(Msgpack(bytes)))
    }

    fn identity_bytes(&self, identity: Encoded) -> Result<Vec<u8>, DriverError> {
        match identity {
            Encoded::Msgpack(bytes) => Ok(bytes),
            Encoded::Json(json) => {
                let Some((_, ty)) = &self.kind.identity else { return Ok(Msgpack::null().0) };
                let value = decode(&Encoded::Json(json), ty, "the identity")?;
                msgpack::encode(&value, ty).map_err(|error| told::unreadable("the identity", &error))
            }
        }
    }

    /// An object as the engine keeps it.
    pub(super) fn state(
        &self,
        state: &Value,
        private: Vec<u8>,
        told: Option<Told>,
        identity: Option<&Encoded>,
    ) -> Result<ObjectState, DriverError> {
        let identity = match (identity, &self.kind.identity) {
            (Some(identity), Some((_, ty))) => Some(cty::plain(&decode(identity, ty, "the identity")?)),
            _ => None,
        };
        let identity = identity.filter(|identity| !matches!(identity, EngineValue::Null));
        let dynamic = DynamicTypes::of(state, self.kind.schema.ty());
        let value = cty::to_engine(&self.kind.schema.block, state);
        self.mask.remember(Secrets::of([&value]));
        let identity_version =
            self.kind.identity.as_ref().filter(|_| identity.is_some()).map_or(0, |(version, _)| *version);
        Ok(ObjectState { value, private: Kept { private, dynamic, identity_version, told }.encode(), identity })
    }

    pub(super) fn conformed(&self, config: &EngineValue) -> Result<Value, DriverError> {
        let (config, mut found) = cty::conform(&self.kind.schema.block, config);
        if found.is_empty() {
            return Ok(config);
        }
        let first = found.swap_remove(0);
        Err(DriverError { kind: ErrorKind::InvalidConfig, message: first.summary, path: first.path, hint: first.hint })
    }

    fn check(&self, what: &str, found: &[cty::ValueError], legacy: bool) -> Result<(), DriverError> {
        let Some(error) = told::faults(what, found) else { return Ok(()) };
        if legacy {
            // Providers of the legacy kind cannot tell null from an empty value, so nobody can hold them to it.
            tracing::debug!(address = &*self.context.address, "tolerated: {}", error.message);
            return Ok(());
        }
        Err(error)
    }

    pub(super) fn encode(&self, value: &Value) -> Result<Msgpack, DriverError> {
        let bytes = msgpack::encode(value, self.kind.schema.ty());
        bytes.map(Msgpack).map_err(|error| told::unreadable("a value", &error))
    }

    pub(super) fn decode(&self, value: &Encoded, what: &str) -> Result<Value, DriverError> {
        decode(value, self.kind.schema.ty(), what)
    }
}

fn decode(value: &Encoded, ty: &Type, what: &str) -> Result<Value, DriverError> {
    let decoded = match value {
        Encoded::Msgpack(bytes) => msgpack::decode(bytes, ty),
        Encoded::Json(bytes) => json::decode(bytes, ty, json::Unsupported::Refuse),
    };
    decoded.map_err(|error| told::unreadable(what, &error))
}

/// We allow no provider to put objects off.
pub(super) fn refuse_deferred(deferred: bool) -> Result<(), DriverError> {
    if deferred { Err(told::fault("the provider put the object off, which nobody allowed it to")) } else { Ok(()) }
}

/// Nothing was done.
fn refused(error: DriverError) -> ApplyResponse {
    ApplyResponse { error: Some(error), ..ApplyResponse::default() }
}

/// The call had no answer. Only a provider that never came up has done nothing for certain.
fn unanswered(error: &PluginError) -> ApplyResponse {
    let certain = matches!(
        error,
        PluginError::Start { .. }
            | PluginError::BackingOff { .. }
            | PluginError::Closing { .. }
            | PluginError::NotCalled { .. }
            | PluginError::Unimplemented { .. }
    );
    ApplyResponse { unsettled: !certain, ..refused(told::failed(error)) }
}
