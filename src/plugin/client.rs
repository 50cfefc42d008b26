//! One running provider, with a method for each call of the protocol.
//!
//! An `Err` is about the call: the provider crashed, hung or refused it ([`PluginError`]). What the provider says about
//! the object is in `diagnostics` of the answer. Where a provider may do without a method, its absence is `None`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;

use crate::model::Severity;

use super::calls::identity_message;
use super::connection::Connection;
use super::diagnostic::diagnostics;
use super::messages as raw;
use super::method::{self, Method};
use super::schema::{IdentitySchema, ProviderSchema};
use super::{
    Applied, ApplyResourceChange, Diagnostic, Generated, ImportResourceState, Imported, Launch, Limits,
    MoveResourceState, Moved, Msgpack, PlanResourceChange, Planned, PluginError, Protocol, RawState, ReadAnswer,
    ReadDataAnswer, ReadResource, ReattachTarget, UpgradedIdentity, UpgradedState,
};

/// The version of Terraform that providers are told. Some compare it and refuse what they take for too old.
const TERRAFORM_VERSION: &str = "1.13.0";

/// A running provider. Clones are the same one; it ends with the last of them, at the latest when no detached call runs
/// any more.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
    limit: Option<Duration>,
}

impl Client {
    /// Starts a provider and agrees with it on how to talk. It is not configured yet.
    pub async fn start(launch: &Launch) -> Result<Self, PluginError> {
        Ok(Self { connection: Arc::new(Connection::start(launch).await?), limit: None })
    }

    /// Connects to a provider that somebody else started. Of `launch` only its name, limits and mask have a meaning.
    pub async fn reattach(launch: &Launch, target: &ReattachTarget) -> Result<Self, PluginError> {
        Ok(Self { connection: Arc::new(Connection::reattach(launch, target).await?), limit: None })
    }

    /// The same provider with another limit for calls.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        Self { connection: Arc::clone(&self.connection), limit: Some(limit) }
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// The version of the protocol it speaks.
    pub fn protocol(&self) -> Protocol {
        self.connection.protocol
    }

    /// Its process; `None` when somebody else started it.
    pub fn process_id(&self) -> Option<u32> {
        self.connection.process_id()
    }

    /// Whether its process runs and its connection holds.
    pub fn is_alive(&self) -> bool {
        self.connection.is_alive()
    }

    /// Whether it was asked to give up its calls, since they took too long.
    pub fn was_stopped(&self) -> bool {
        self.connection.was_stopped()
    }

    /// Whether it shall get no new calls, though those that it has may well end.
    pub fn is_retired(&self) -> bool {
        self.connection.is_retired()
    }

    /// Whether no call runs in it, not even one that nobody waits for.
    pub fn is_idle(&self) -> bool {
        self.connection.is_idle()
    }

    /// What to tell somebody who finds that it is gone.
    pub(super) fn last_error(&self) -> PluginError {
        self.connection.last_error()
    }

    /// Everything it tells about itself. Older providers want to be asked once in each process, before anything else
    /// ([`super::schema::Capabilities::schema_is_optional`]).
    pub async fn schema(&self) -> Result<(ProviderSchema, Vec<Diagnostic>), PluginError> {
        let mut answer: raw::GetProviderSchemaResponse = self.call(method::GET_PROVIDER_SCHEMA, raw::Empty {}).await?;
        let said = diagnostics(std::mem::take(&mut answer.diagnostics));
        Ok((ProviderSchema::new(self.protocol(), answer), said))
    }

    /// The schemas of identities, by resource type; `None` for a provider that knows no identities.
    pub async fn identity_schemas(
        &self,
    ) -> Result<Option<(BTreeMap<String, IdentitySchema>, Vec<Diagnostic>)>, PluginError> {
        let answer = self.call(method::GET_RESOURCE_IDENTITY_SCHEMAS, raw::Empty {}).await;
        let answer: Option<raw::GetResourceIdentitySchemasResponse> = optional(answer)?;
        Ok(answer.map(|answer| {
            let schemas = answer.identity_schemas.into_iter().map(|(name, schema)| (name, schema.into()));
            (schemas.collect(), diagnostics(answer.diagnostics))
        }))
    }

    /// Checks a configuration of the provider.
    pub async fn validate_provider_config(&self, config: Msgpack) -> Result<Vec<Diagnostic>, PluginError> {
        let request = raw::ValidateProviderConfigRequest { config: Some(config.into()) };
        let answer: raw::ValidateProviderConfigResponse = self.call(method::VALIDATE_PROVIDER_CONFIG, request).await?;
        Ok(diagnostics(answer.diagnostics))
    }

    /// Checks a configuration of a resource.
    pub async fn validate_resource_config(
        &self,
        type_name: &str,
        config: Msgpack,
    ) -> Result<Vec<Diagnostic>, PluginError> {
        let client_capabilities = Some(self.capabilities());
        let request = raw::ValidateConfigRequest {
            type_name: type_name.to_owned(),
            config: Some(config.into()),
            client_capabilities,
        };
        let answer: raw::CheckResponse = self.call(method::VALIDATE_RESOURCE_CONFIG, request).await?;
        Ok(diagnostics(answer.diagnostics))
    }

    /// Checks a configuration of a data source.
    pub async fn validate_data_source_config(
        &self,
        type_name: &str,
        config: Msgpack,
    ) -> Result<Vec<Diagnostic>, PluginError> {
        let request = raw::ValidateConfigRequest {
            type_name: type_name.to_owned(),
            config: Some(config.into()),
            client_capabilities: None,
        };
        let answer: raw::CheckResponse = self.call(method::VALIDATE_DATA_RESOURCE_CONFIG, request).await?;
        Ok(diagnostics(answer.diagnostics))
    }

    /// Configures the provider: once in a process, before anything that touches objects.
    pub async fn configure(&self, config: Msgpack) -> Result<Vec<Diagnostic>, PluginError> {
        let request = raw::ConfigureProviderRequest {
            terraform_version: TERRAFORM_VERSION.to_owned(),
            config: Some(config.into()),
            client_capabilities: Some(self.capabilities()),
        };
        let answer: raw::CheckResponse = self.call(method::CONFIGURE_PROVIDER, request).await?;
        Ok(diagnostics(answer.diagnostics))
    }

    /// Checks a configuration and configures the provider with it; gives the warnings. What the provider has against it
    /// is [`PluginError::Refused`].
    pub async fn set_up(&self, config: Msgpack) -> Result<Vec<Diagnostic>, PluginError> {
        let mut warnings = Vec::new();
        warnings.extend(
            self.accepted(method::VALIDATE_PROVIDER_CONFIG, self.validate_provider_config(config.clone()).await?)?,
        );
        warnings.extend(self.accepted(method::CONFIGURE_PROVIDER, self.configure(config).await?)?);
        Ok(warnings)
    }

    fn accepted(&self, method: Method, said: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, PluginError> {
        if said.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return Err(PluginError::Refused {
                provider: self.name().to_owned(),
                call: method.name,
                diagnostics: said,
            });
        }
        Ok(said)
    }

    /// Brings a recorded state into the form of the present schema. To be called also when the version is the present
    /// one.
    pub async fn upgrade_resource_state(
        &self,
        type_name: &str,
        version: i64,
        state: RawState,
    ) -> Result<UpgradedState, PluginError> {
        let request = raw::UpgradeResourceStateRequest {
            type_name: type_name.to_owned(),
            version,
            raw_state: Some(state.into()),
        };
        let answer: raw::UpgradeResourceStateResponse = self.call(method::UPGRADE_RESOURCE_STATE, request).await?;
        Ok(answer.into())
    }

    /// Brings a recorded identity into the form of the present schema; `None` for a provider without identities.
    pub async fn upgrade_resource_identity(
        &self,
        type_name: &str,
        version: i64,
        identity: RawState,
    ) -> Result<Option<UpgradedIdentity>, PluginError> {
        let request = raw::UpgradeResourceIdentityRequest {
            type_name: type_name.to_owned(),
            version,
            raw_identity: Some(identity.into()),
        };
        let answer = self.call(method::UPGRADE_RESOURCE_IDENTITY, request).await;
        Ok(optional(answer)?.map(|answer: raw::UpgradeResourceIdentityResponse| answer.into()))
    }

    /// Looks at an object.
    pub async fn read_resource(&self, request: ReadResource) -> Result<ReadAnswer, PluginError> {
        let request = raw::ReadResourceRequest {
            type_name: request.type_name,
            current_state: Some(request.state.into()),
            private: request.private,
            provider_meta: Some(Msgpack::null().into()),
            client_capabilities: Some(self.capabilities()),
            current_identity: identity_message(request.identity),
        };
        let answer: raw::ReadResourceResponse = self.call(method::READ_RESOURCE, request).await?;
        Ok(answer.into())
    }

    /// Plans a change.
    pub async fn plan_resource_change(&self, request: PlanResourceChange) -> Result<Planned, PluginError> {
        let request = raw::PlanResourceChangeRequest {
            type_name: request.type_name,
            prior_state: Some(request.prior.into()),
            proposed_new_state: Some(request.proposed.into()),
            config: Some(request.config.into()),
            prior_private: request.prior_private,
            provider_meta: Some(Msgpack::null().into()),
            client_capabilities: Some(self.capabilities()),
            prior_identity: identity_message(request.prior_identity),
        };
        let answer: raw::PlanResourceChangeResponse = self.call(method::PLAN_RESOURCE_CHANGE, request).await?;
        Ok(answer.into())
    }

    /// Carries a change out. It is never cancelled, and its answer is waited for also after the limit: then the provider is
    /// asked to give up, and killed when it has not done so after [`Limits::after_stop`]. Whoever drops the future lets the
    /// provider work on, and its answer goes nowhere.
    pub async fn apply_resource_change(&self, request: ApplyResourceChange) -> Result<Applied, PluginError> {
        let request = raw::ApplyResourceChangeRequest {
            type_name: request.type_name,
            prior_state: Some(request.prior.into()),
            planned_state: Some(request.planned.into()),
            config: Some(request.config.into()),
            planned_private: request.planned_private,
            provider_meta: Some(Msgpack::null().into()),
            planned_identity: identity_message(request.planned_identity),
        };
        let limit = self.limit.unwrap_or(self.connection.limits.apply);
        let answer: raw::ApplyResourceChangeResponse =
            self.connection.call_to_its_end(method::APPLY_RESOURCE_CHANGE, request, limit).await?;
        Ok(answer.into())
    }

    /// Finds an existing object.
    pub async fn import_resource_state(
        &self,
        type_name: &str,
        request: ImportResourceState,
    ) -> Result<Imported, PluginError> {
        let (id, identity) = match request {
            ImportResourceState::Id(id) => (id, None),
            ImportResourceState::Identity(identity) => (String::new(), Some(identity)),
        };
        let request = raw::ImportResourceStateRequest {
            type_name: type_name.to_owned(),
            id,
            client_capabilities: Some(self.capabilities()),
            identity: identity_message(identity),
        };
        let answer: raw::ImportResourceStateResponse = self.call(method::IMPORT_RESOURCE_STATE, request).await?;
        Ok(answer.into())
    }

    /// Takes over the state of an object of another type; `None` for a provider that cannot.
    pub async fn move_resource_state(&self, request: MoveResourceState) -> Result<Option<Moved>, PluginError> {
        let (source_identity, source_identity_schema_version) = request.source_identity.unzip();
        let request = raw::MoveResourceStateRequest {
            source_provider_address: request.source_provider,
            source_type_name: request.source_type,
            source_schema_version: request.source_version,
            source_state: Some(request.source_state.into()),
            target_type_name: request.target_type,
            source_private: request.source_private,
            source_identity: source_identity.map(Into::into),
            source_identity_schema_version: source_identity_schema_version.unwrap_or_default(),
        };
        let answer = self.call(method::MOVE_RESOURCE_STATE, request).await;
        Ok(optional(answer)?.map(|answer: raw::MoveResourceStateResponse| answer.into()))
    }

    /// Reads a data source.
    pub async fn read_data_source(&self, type_name: &str, config: Msgpack) -> Result<ReadDataAnswer, PluginError> {
        let request = raw::ReadDataSourceRequest {
            type_name: type_name.to_owned(),
            config: Some(config.into()),
            provider_meta: Some(Msgpack::null().into()),
            client_capabilities: Some(self.capabilities()),
        };
        let answer: raw::ReadDataSourceResponse = self.call(method::READ_DATA_SOURCE, request).await?;
        Ok(answer.into())
    }

    /// The bounds that it was started with.
    pub fn limits(&self) -> Limits {
        self.connection.limits
    }

    /// Makes a configuration of a state; `None` for a provider that cannot.
    pub async fn generate_resource_config(
        &self,
        type_name: &str,
        state: Msgpack,
    ) -> Result<Option<Generated>, PluginError> {
        let request = raw::GenerateResourceConfigRequest { type_name: type_name.to_owned(), state: Some(state.into()) };
        let answer = self.call(method::GENERATE_RESOURCE_CONFIG, request).await;
        Ok(optional(answer)?.map(|answer: raw::GenerateResourceConfigResponse| answer.into()))
    }

    /// Asks the provider to give up all calls that run in it, of all objects. They still answer. `Some` tells why it
    /// cannot.
    pub async fn stop(&self) -> Result<Option<String>, PluginError> {
        let limit = self.limit.unwrap_or(self.connection.limits.call);
        let answer: raw::StopResponse =
            self.connection.call_past_others(method::STOP_PROVIDER, raw::Empty {}, limit).await?;
        Ok(Some(answer.error).filter(|error| !error.is_empty()))
    }

    /// Ends the provider: asks it, and after two seconds kills its process group. A provider that somebody else started
    /// is left alone.
    pub async fn close(&self) {
        self.connection.close().await;
    }

    async fn call<Q, A>(&self, method: Method, request: Q) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.connection.call(method, request, self.limit.unwrap_or(self.connection.limits.call)).await
    }

    /// The same in every call of a process: a provider must not be told one thing when it is configured and another
    /// later.
    fn capabilities(&self) -> raw::ClientCapabilities {
        raw::ClientCapabilities {
            deferral_allowed: self.connection.deferral_allowed,
            write_only_attributes_allowed: true,
        }
    }
}

fn optional<A>(answer: Result<A, PluginError>) -> Result<Option<A>, PluginError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(PluginError::Unimplemented { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
