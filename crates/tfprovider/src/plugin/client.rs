//! A running provider, with a method for each call of the protocol.
//!
//! An `Err` is about the call itself: the provider crashed, hung or rejected it ([`PluginError`]). Problems of the
//! object are in the `diagnostics` of the response. `None` means that the provider does not implement an optional
//! method.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use prost::Message;

use super::calls::identity_message;
use super::connection::Connection;
use super::diagnostic::{Severity, diagnostics};
use super::messages as raw;
use super::method::{self, Method};
use super::remote::{RemoteStart, RunnerHost};
use super::schema::{IdentitySchema, ProviderSchema};
use super::{
    ApplyResourceChange, ApplyResourceChangeResponse, Diagnostic, GenerateResourceConfigResponse, ImportResourceState,
    ImportResourceStateResponse, Launch, Limits, MoveResourceState, MoveResourceStateResponse, Msgpack,
    PlanResourceChange, PlanResourceChangeResponse, PluginError, Protocol, RawState, ReadDataSourceResponse,
    ReadResource, ReadResourceResponse, ReattachTarget, UpgradeResourceIdentityResponse, UpgradeResourceStateResponse,
};

/// The Terraform version that is reported to providers. Some reject versions that are too old.
const TERRAFORM_VERSION: &str = "1.13.0";

/// A running provider. Clones share the process, which is terminated when the last clone is dropped and the last
/// detached call has finished.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
    limit: Option<Duration>,
    /// Whether the provider has a schema of `provider_meta`.
    has_meta: bool,
}

impl Client {
    /// Starts a provider and connects to it. It is not configured yet.
    pub async fn start(launch: &Launch) -> Result<Self, PluginError> {
        Ok(Self { connection: Arc::new(Connection::start(launch).await?), limit: None, has_meta: false })
    }

    /// Starts a provider in a runner and connects to it. It is not configured yet. The future follows the provider to its
    /// end, and must be polled until then.
    pub async fn start_remote(
        launch: &Launch,
        remote: &RemoteStart<'_>,
        host: Arc<dyn RunnerHost>,
    ) -> Result<(Self, BoxFuture<'static, ()>), PluginError> {
        let (connection, follow) = Connection::start_remote(launch, remote, host).await?;
        Ok((Self { connection: Arc::new(connection), limit: None, has_meta: false }, follow))
    }

    /// Connects to a provider that runs already. Only the name, limits and mask of `launch` are used.
    pub async fn reattach(launch: &Launch, target: &ReattachTarget) -> Result<Self, PluginError> {
        Ok(Self { connection: Arc::new(Connection::reattach(launch, target).await?), limit: None, has_meta: false })
    }

    /// Returns the same provider with another time limit for calls.
    #[must_use]
    pub fn with_limit(&self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self.clone() }
    }

    /// Returns the same provider with `provider_meta` in its requests, which is null, if `has_meta` is set. Providers
    /// without a schema of it receive none.
    #[must_use]
    pub fn with_provider_meta(&self, has_meta: bool) -> Self {
        Self { has_meta, ..self.clone() }
    }

    /// The name in error messages.
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    pub fn protocol(&self) -> Protocol {
        self.connection.protocol
    }

    /// `None` if Purlin did not start the process.
    pub fn process_id(&self) -> Option<u32> {
        self.connection.process_id()
    }

    /// The memory of the process in bytes; `None` if Purlin did not start it, or if it has exited.
    pub fn memory(&self) -> Option<u64> {
        self.connection.memory()
    }

    /// Whether the process runs and the connection works.
    pub fn is_alive(&self) -> bool {
        self.connection.is_alive()
    }

    /// Whether the provider was requested to stop overdue calls.
    pub fn was_stopped(&self) -> bool {
        self.connection.was_stopped()
    }

    /// Whether the provider must get no new calls. Its running calls may still finish.
    pub fn is_retired(&self) -> bool {
        self.connection.is_retired()
    }

    /// Whether the provider ends soon, and no other process can take over.
    pub fn is_last(&self) -> bool {
        self.connection.is_last()
    }

    /// Whether the provider runs in a runner.
    pub fn is_remote(&self) -> bool {
        self.connection.is_remote()
    }

    /// Whether no call runs, including detached calls.
    pub fn is_idle(&self) -> bool {
        self.connection.is_idle()
    }

    pub(super) fn report_crash(&self) {
        self.connection.report_crash();
    }

    /// The error for callers that find the process dead.
    pub(super) fn last_error(&self) -> PluginError {
        self.connection.last_error()
    }

    /// Returns the schemas and capabilities. Older providers require this call once in each process, before any other
    /// ([`super::schema::Capabilities::schema_is_optional`]).
    pub async fn schema(&self) -> Result<(ProviderSchema, Vec<Diagnostic>), PluginError> {
        let mut response: raw::GetProviderSchemaResponse =
            self.call(method::GET_PROVIDER_SCHEMA, raw::Empty {}).await?;
        let diagnostics = diagnostics(std::mem::take(&mut response.diagnostics));
        Ok((ProviderSchema::new(self.protocol(), response), diagnostics))
    }

    /// Makes the schema call only for its effect in the provider. The response is not read, and can have any size.
    pub async fn initialize(&self) -> Result<(), PluginError> {
        match self.call::<_, raw::Empty>(method::GET_PROVIDER_SCHEMA, raw::Empty {}).await {
            Ok(_) | Err(PluginError::LargeResponse { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the identity schemas by resource type; `None` if the provider does not support identities.
    pub async fn identity_schemas(
        &self,
    ) -> Result<Option<(BTreeMap<String, IdentitySchema>, Vec<Diagnostic>)>, PluginError> {
        let response = self.call(method::GET_RESOURCE_IDENTITY_SCHEMAS, raw::Empty {}).await;
        let response: Option<raw::GetResourceIdentitySchemasResponse> = none_if_unimplemented(response)?;
        Ok(response.map(|response| {
            let schemas = response.identity_schemas.into_iter().map(|(name, schema)| (name, schema.into()));
            (schemas.collect(), diagnostics(response.diagnostics))
        }))
    }

    pub async fn validate_provider_config(&self, config: Msgpack) -> Result<Vec<Diagnostic>, PluginError> {
        let request = raw::ValidateProviderConfigRequest { config: Some(config.into()) };
        let response: raw::ValidateProviderConfigResponse =
            self.call(method::VALIDATE_PROVIDER_CONFIG, request).await?;
        Ok(diagnostics(response.diagnostics))
    }

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
        let response: raw::CheckResponse = self.call(method::VALIDATE_RESOURCE_CONFIG, request).await?;
        Ok(diagnostics(response.diagnostics))
    }

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
        let response: raw::CheckResponse = self.call(method::VALIDATE_DATA_RESOURCE_CONFIG, request).await?;
        Ok(diagnostics(response.diagnostics))
    }

    /// Configures the provider. Must be called once per process, before any call for an object.
    pub async fn configure(&self, config: Msgpack) -> Result<Vec<Diagnostic>, PluginError> {
        let request = raw::ConfigureProviderRequest {
            terraform_version: TERRAFORM_VERSION.to_owned(),
            config: Some(config.into()),
            client_capabilities: Some(self.capabilities()),
        };
        let response: raw::CheckResponse = self.call(method::CONFIGURE_PROVIDER, request).await?;
        Ok(diagnostics(response.diagnostics))
    }

    /// Validates a configuration, configures the provider with it, and returns the warnings. Errors of the provider
    /// become [`PluginError::ConfigurationRejected`].
    pub async fn validate_and_configure(&self, config: Msgpack) -> Result<Vec<Diagnostic>, PluginError> {
        let mut warnings = Vec::new();
        warnings.extend(
            self.reject_errors(method::VALIDATE_PROVIDER_CONFIG, self.validate_provider_config(config.clone()).await?)?,
        );
        warnings.extend(self.reject_errors(method::CONFIGURE_PROVIDER, self.configure(config).await?)?);
        Ok(warnings)
    }

    fn reject_errors(&self, method: Method, said: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, PluginError> {
        if said.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return Err(PluginError::ConfigurationRejected {
                provider: self.name().to_owned(),
                call: method.name,
                diagnostics: said,
            });
        }
        Ok(said)
    }

    /// Upgrades a recorded state to the current schema. Must be called even if the version is current.
    pub async fn upgrade_resource_state(
        &self,
        type_name: &str,
        version: i64,
        state: RawState,
    ) -> Result<UpgradeResourceStateResponse, PluginError> {
        let request = raw::UpgradeResourceStateRequest {
            type_name: type_name.to_owned(),
            version,
            raw_state: Some(state.into()),
        };
        let response: raw::UpgradeResourceStateResponse = self.call(method::UPGRADE_RESOURCE_STATE, request).await?;
        Ok(response.into())
    }

    /// Upgrades a recorded identity to the current schema; `None` if the provider does not support identities.
    pub async fn upgrade_resource_identity(
        &self,
        type_name: &str,
        version: i64,
        identity: RawState,
    ) -> Result<Option<UpgradeResourceIdentityResponse>, PluginError> {
        let request = raw::UpgradeResourceIdentityRequest {
            type_name: type_name.to_owned(),
            version,
            raw_identity: Some(identity.into()),
        };
        let response = self.call(method::UPGRADE_RESOURCE_IDENTITY, request).await;
        Ok(none_if_unimplemented(response)?.map(|response: raw::UpgradeResourceIdentityResponse| response.into()))
    }

    pub async fn read_resource(&self, request: ReadResource) -> Result<ReadResourceResponse, PluginError> {
        let request = raw::ReadResourceRequest {
            type_name: request.type_name,
            current_state: Some(request.state.into()),
            private: request.private,
            provider_meta: self.provider_meta(),
            client_capabilities: Some(self.capabilities()),
            current_identity: identity_message(request.identity),
        };
        let response: raw::ReadResourceResponse = self.call(method::READ_RESOURCE, request).await?;
        Ok(response.into())
    }

    pub async fn plan_resource_change(
        &self,
        request: PlanResourceChange,
    ) -> Result<PlanResourceChangeResponse, PluginError> {
        let request = raw::PlanResourceChangeRequest {
            type_name: request.type_name,
            prior_state: Some(request.prior.into()),
            proposed_new_state: Some(request.proposed.into()),
            config: Some(request.config.into()),
            prior_private: request.prior_private,
            provider_meta: self.provider_meta(),
            client_capabilities: Some(self.capabilities()),
            prior_identity: identity_message(request.prior_identity),
        };
        let response: raw::PlanResourceChangeResponse = self.call(method::PLAN_RESOURCE_CHANGE, request).await?;
        Ok(response.into())
    }

    /// Applies a change. The call is never canceled. After the time limit the provider is requested to stop, and killed
    /// if it has not responded after [`Limits::stop_grace_period`]; until then this keeps waiting for the response. If
    /// the future is dropped, the provider continues and its response is discarded.
    pub async fn apply_resource_change(
        &self,
        request: ApplyResourceChange,
    ) -> Result<ApplyResourceChangeResponse, PluginError> {
        let request = raw::ApplyResourceChangeRequest {
            type_name: request.type_name,
            prior_state: Some(request.prior.into()),
            planned_state: Some(request.planned.into()),
            config: Some(request.config.into()),
            planned_private: request.planned_private,
            provider_meta: self.provider_meta(),
            planned_identity: identity_message(request.planned_identity),
        };
        let limit = self.limit.unwrap_or(self.connection.limits.apply);
        let response: raw::ApplyResourceChangeResponse =
            self.connection.call_to_completion(method::APPLY_RESOURCE_CHANGE, request, limit).await?;
        Ok(response.into())
    }

    pub async fn import_resource_state(
        &self,
        type_name: &str,
        request: ImportResourceState,
    ) -> Result<ImportResourceStateResponse, PluginError> {
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
        let response: raw::ImportResourceStateResponse = self.call(method::IMPORT_RESOURCE_STATE, request).await?;
        Ok(response.into())
    }

    /// Moves the state of an object of another type; `None` if the provider does not support moves.
    pub async fn move_resource_state(
        &self,
        request: MoveResourceState,
    ) -> Result<Option<MoveResourceStateResponse>, PluginError> {
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
        let response = self.call(method::MOVE_RESOURCE_STATE, request).await;
        Ok(none_if_unimplemented(response)?.map(|response: raw::MoveResourceStateResponse| response.into()))
    }

    pub async fn read_data_source(
        &self,
        type_name: &str,
        config: Msgpack,
    ) -> Result<ReadDataSourceResponse, PluginError> {
        let request = raw::ReadDataSourceRequest {
            type_name: type_name.to_owned(),
            config: Some(config.into()),
            provider_meta: self.provider_meta(),
            client_capabilities: Some(self.capabilities()),
        };
        let response: raw::ReadDataSourceResponse = self.call(method::READ_DATA_SOURCE, request).await?;
        Ok(response.into())
    }

    pub fn limits(&self) -> Limits {
        self.connection.limits
    }

    /// Generates a configuration from a state; `None` if the provider does not support this.
    pub async fn generate_resource_config(
        &self,
        type_name: &str,
        state: Msgpack,
    ) -> Result<Option<GenerateResourceConfigResponse>, PluginError> {
        let request = raw::GenerateResourceConfigRequest { type_name: type_name.to_owned(), state: Some(state.into()) };
        let response = self.call(method::GENERATE_RESOURCE_CONFIG, request).await;
        Ok(none_if_unimplemented(response)?.map(|response: raw::GenerateResourceConfigResponse| response.into()))
    }

    /// Requests the provider to stop all running calls. The calls still respond. Returns the reason if the provider
    /// cannot stop.
    pub async fn stop(&self) -> Result<Option<String>, PluginError> {
        let limit = self.limit.unwrap_or(self.connection.limits.call);
        let response: raw::StopResponse =
            self.connection.call_without_permit(method::STOP_PROVIDER, raw::Empty {}, limit).await?;
        Ok(Some(response.error).filter(|error| !error.is_empty()))
    }

    /// Shuts the provider down and kills its process group after two seconds. Does nothing if Purlin did not start the
    /// process.
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

    fn provider_meta(&self) -> Option<raw::DynamicValue> {
        self.has_meta.then(|| Msgpack::null().into())
    }

    /// The same for every call of a process: the capabilities must not change after the provider has been configured.
    fn capabilities(&self) -> raw::ClientCapabilities {
        raw::ClientCapabilities {
            deferral_allowed: self.connection.deferral_allowed,
            write_only_attributes_allowed: true,
        }
    }
}

fn none_if_unimplemented<A>(response: Result<A, PluginError>) -> Result<Option<A>, PluginError> {
    match response {
        Ok(response) => Ok(Some(response)),
        Err(PluginError::Unimplemented { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
