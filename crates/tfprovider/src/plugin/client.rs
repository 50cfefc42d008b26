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

use super::connection::Connection;
use super::messages::{
    CallFunction, CheckResponse, ClientCapabilities, ConfigureProvider, Empty, GenerateResourceConfig,
    GetProviderSchemaResponse, GetResourceIdentitySchemasResponse, OpenedEphemeralResource, ReadDataSource,
    StopResponse, TypeConfig, UpgradeResourceIdentity, UpgradeResourceState, ValidateProviderConfig,
    ValidateProviderConfigResponse,
};
use super::method::{self, Method};
use super::remote::{RemoteStart, RunnerHost};
use super::schema::ProviderSchema;
use super::{
    ApplyResourceChange, ApplyResourceChangeResponse, CallFunctionResponse, Diagnostic, DynamicValue,
    GenerateResourceConfigResponse, IdentitySchema, ImportResourceState, ImportResourceStateResponse, Launch, Limits,
    MoveResourceState, MoveResourceStateResponse, OpenEphemeralResourceResponse, PlanResourceChange,
    PlanResourceChangeResponse, PluginError, Protocol, RawState, ReadDataSourceResponse, ReadResource,
    ReadResourceResponse, ReattachTarget, RenewEphemeralResourceResponse, UpgradeResourceIdentityResponse,
    UpgradeResourceStateResponse,
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

    pub(crate) fn report_crash(&self) {
        self.connection.report_crash();
    }

    /// The error for callers that find the process dead.
    pub(crate) fn last_error(&self) -> PluginError {
        self.connection.last_error()
    }

    /// Returns the schemas and capabilities. Older providers require this call once in each process, before any other
    /// ([`super::Capabilities::schema_is_optional`]).
    pub async fn schema(&self) -> Result<(ProviderSchema, Vec<Diagnostic>), PluginError> {
        let mut response: GetProviderSchemaResponse = self.call(method::GET_PROVIDER_SCHEMA, Empty {}).await?;
        let diagnostics = std::mem::take(&mut response.diagnostics);
        Ok((ProviderSchema::new(response), diagnostics))
    }

    /// Makes the schema call only for its effect in the provider. The response is not read, and can have any size.
    pub async fn initialize(&self) -> Result<(), PluginError> {
        match self.call::<_, Empty>(method::GET_PROVIDER_SCHEMA, Empty {}).await {
            Ok(_) | Err(PluginError::LargeResponse { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the identity schemas by resource type; `None` if the provider does not support identities.
    pub async fn identity_schemas(
        &self,
    ) -> Result<Option<(BTreeMap<String, IdentitySchema>, Vec<Diagnostic>)>, PluginError> {
        let response = self.call(method::GET_RESOURCE_IDENTITY_SCHEMAS, Empty {}).await;
        let response: Option<GetResourceIdentitySchemasResponse> = none_if_unimplemented(response)?;
        Ok(response.map(|response| (response.identity_schemas, response.diagnostics)))
    }

    pub async fn validate_provider_config(&self, config: DynamicValue) -> Result<Vec<Diagnostic>, PluginError> {
        let request = ValidateProviderConfig { config };
        let response: ValidateProviderConfigResponse = self.call(method::VALIDATE_PROVIDER_CONFIG, request).await?;
        Ok(response.diagnostics)
    }

    pub async fn validate_resource_config(
        &self,
        type_name: &str,
        config: DynamicValue,
    ) -> Result<Vec<Diagnostic>, PluginError> {
        self.validate(method::VALIDATE_RESOURCE_CONFIG, type_name, config, Some(self.capabilities())).await
    }

    pub async fn validate_data_source_config(
        &self,
        type_name: &str,
        config: DynamicValue,
    ) -> Result<Vec<Diagnostic>, PluginError> {
        self.validate(method::VALIDATE_DATA_RESOURCE_CONFIG, type_name, config, None).await
    }

    /// Configures the provider. Must be called once per process, before any call for an object.
    pub async fn configure(&self, config: DynamicValue) -> Result<Vec<Diagnostic>, PluginError> {
        let terraform_version = TERRAFORM_VERSION.to_owned();
        let client_capabilities = Some(self.capabilities());
        let request = ConfigureProvider { terraform_version, config, client_capabilities };
        let response: CheckResponse = self.call(method::CONFIGURE_PROVIDER, request).await?;
        Ok(response.diagnostics)
    }

    /// Validates a configuration, configures the provider with it, and returns the warnings. Errors of the provider
    /// become [`PluginError::ConfigurationRejected`].
    pub async fn validate_and_configure(&self, config: DynamicValue) -> Result<Vec<Diagnostic>, PluginError> {
        let mut warnings = Vec::new();
        warnings.extend(
            self.reject_errors(method::VALIDATE_PROVIDER_CONFIG, self.validate_provider_config(config.clone()).await?)?,
        );
        warnings.extend(self.reject_errors(method::CONFIGURE_PROVIDER, self.configure(config).await?)?);
        Ok(warnings)
    }

    async fn validate(
        &self,
        method: Method,
        type_name: &str,
        config: DynamicValue,
        client_capabilities: Option<ClientCapabilities>,
    ) -> Result<Vec<Diagnostic>, PluginError> {
        let request = TypeConfig { type_name: type_name.to_owned(), config, client_capabilities };
        let response: CheckResponse = self.call(method, request).await?;
        Ok(response.diagnostics)
    }

    fn reject_errors(&self, method: Method, said: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, PluginError> {
        if said.iter().any(Diagnostic::is_error) {
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
        let request = UpgradeResourceState { type_name: type_name.to_owned(), version, state };
        self.call(method::UPGRADE_RESOURCE_STATE, request).await
    }

    /// Upgrades a recorded identity to the current schema; `None` if the provider does not support identities.
    pub async fn upgrade_resource_identity(
        &self,
        type_name: &str,
        version: i64,
        identity: RawState,
    ) -> Result<Option<UpgradeResourceIdentityResponse>, PluginError> {
        let request = UpgradeResourceIdentity { type_name: type_name.to_owned(), version, identity };
        none_if_unimplemented(self.call(method::UPGRADE_RESOURCE_IDENTITY, request).await)
    }

    pub async fn read_resource(&self, mut request: ReadResource) -> Result<ReadResourceResponse, PluginError> {
        request.provider_meta = self.provider_meta();
        request.client_capabilities = Some(self.capabilities());
        self.call(method::READ_RESOURCE, request).await
    }

    pub async fn plan_resource_change(
        &self,
        mut request: PlanResourceChange,
    ) -> Result<PlanResourceChangeResponse, PluginError> {
        request.provider_meta = self.provider_meta();
        request.client_capabilities = Some(self.capabilities());
        self.call(method::PLAN_RESOURCE_CHANGE, request).await
    }

    /// Applies a change. The call is never canceled. After the time limit the provider is requested to stop, and killed
    /// if it has not responded after [`Limits::stop_grace_period`]; until then this keeps waiting for the response. If
    /// the future is dropped, the provider continues and its response is discarded.
    pub async fn apply_resource_change(
        &self,
        mut request: ApplyResourceChange,
    ) -> Result<ApplyResourceChangeResponse, PluginError> {
        request.provider_meta = self.provider_meta();
        let limit = self.limit.unwrap_or(self.connection.limits.apply);
        self.connection.call_to_completion(method::APPLY_RESOURCE_CHANGE, request, limit).await
    }

    pub async fn import_resource_state(
        &self,
        mut request: ImportResourceState,
    ) -> Result<ImportResourceStateResponse, PluginError> {
        request.client_capabilities = Some(self.capabilities());
        self.call(method::IMPORT_RESOURCE_STATE, request).await
    }

    /// Moves the state of an object of another type; `None` if the provider does not support moves.
    pub async fn move_resource_state(
        &self,
        request: MoveResourceState,
    ) -> Result<Option<MoveResourceStateResponse>, PluginError> {
        none_if_unimplemented(self.call(method::MOVE_RESOURCE_STATE, request).await)
    }

    pub async fn read_data_source(
        &self,
        type_name: &str,
        config: DynamicValue,
    ) -> Result<ReadDataSourceResponse, PluginError> {
        let request = ReadDataSource {
            type_name: type_name.to_owned(),
            config,
            provider_meta: self.provider_meta(),
            client_capabilities: Some(self.capabilities()),
        };
        self.call(method::READ_DATA_SOURCE, request).await
    }

    pub async fn validate_ephemeral_resource_config(
        &self,
        type_name: &str,
        config: DynamicValue,
    ) -> Result<Vec<Diagnostic>, PluginError> {
        self.validate(method::VALIDATE_EPHEMERAL_RESOURCE_CONFIG, type_name, config, None).await
    }

    /// Opens an ephemeral resource. The caller renews it in time, and closes it in any case.
    pub async fn open_ephemeral_resource(
        &self,
        type_name: &str,
        config: DynamicValue,
    ) -> Result<OpenEphemeralResourceResponse, PluginError> {
        let client_capabilities = Some(self.capabilities());
        let request = TypeConfig { type_name: type_name.to_owned(), config, client_capabilities };
        self.call(method::OPEN_EPHEMERAL_RESOURCE, request).await
    }

    /// `private`: that of the last answer about the ephemeral resource.
    pub async fn renew_ephemeral_resource(
        &self,
        type_name: &str,
        private: Vec<u8>,
    ) -> Result<RenewEphemeralResourceResponse, PluginError> {
        let request = OpenedEphemeralResource { type_name: type_name.to_owned(), private };
        self.call(method::RENEW_EPHEMERAL_RESOURCE, request).await
    }

    /// `private`: that of the last answer about the ephemeral resource.
    pub async fn close_ephemeral_resource(
        &self,
        type_name: &str,
        private: Vec<u8>,
    ) -> Result<Vec<Diagnostic>, PluginError> {
        let request = OpenedEphemeralResource { type_name: type_name.to_owned(), private };
        let response: CheckResponse = self.call(method::CLOSE_EPHEMERAL_RESOURCE, request).await?;
        Ok(response.diagnostics)
    }

    /// Calls a function, which needs no configuration. Arguments have the types of the function's parameters.
    pub async fn call_function(
        &self,
        name: &str,
        arguments: Vec<DynamicValue>,
    ) -> Result<CallFunctionResponse, PluginError> {
        self.call(method::CALL_FUNCTION, CallFunction { name: name.to_owned(), arguments }).await
    }

    pub fn limits(&self) -> Limits {
        self.connection.limits
    }

    /// Generates a configuration from a state; `None` if the provider does not support this.
    pub async fn generate_resource_config(
        &self,
        type_name: &str,
        state: DynamicValue,
    ) -> Result<Option<GenerateResourceConfigResponse>, PluginError> {
        let request = GenerateResourceConfig { type_name: type_name.to_owned(), state };
        none_if_unimplemented(self.call(method::GENERATE_RESOURCE_CONFIG, request).await)
    }

    /// Requests the provider to stop all running calls. The calls still respond. Returns the reason if the provider
    /// cannot stop.
    pub async fn stop(&self) -> Result<Option<String>, PluginError> {
        let limit = self.limit.unwrap_or(self.connection.limits.call);
        let response: StopResponse =
            self.connection.call_without_permit(method::STOP_PROVIDER, Empty {}, limit).await?;
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

    fn provider_meta(&self) -> Option<DynamicValue> {
        self.has_meta.then(DynamicValue::null)
    }

    /// The same for every call of a process: the capabilities must not change after the provider has been configured.
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { deferral_allowed: self.connection.deferral_allowed, write_only_attributes_allowed: true }
    }
}

fn none_if_unimplemented<A>(response: Result<A, PluginError>) -> Result<Option<A>, PluginError> {
    match response {
        Ok(response) => Ok(Some(response)),
        Err(PluginError::Unimplemented { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
