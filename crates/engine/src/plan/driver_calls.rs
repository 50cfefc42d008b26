//! The driver calls of planning and their responses.

use std::sync::Arc;

use model::{
    Address, Diagnostics, DriverError, ImportRequest, ObjectState, PlanRequest, PlanResponse, Provider, ProviderUse,
    Record, RecordedObject, Schema, TypeName, Value,
};

/// Identifies an open call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub usize);

/// A call of the driver of `type_name`.
#[derive(Clone, Debug)]
pub struct DriverCall {
    pub id: CallId,
    pub address: Address,
    pub type_name: TypeName,
    /// The provider with its configuration. `None` for built-in types.
    pub provider: Option<Arc<ProviderUse>>,
    pub service_account: Arc<str>,
    pub request: DriverRequest,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DriverRequest {
    /// Read an object to import.
    Import(ImportRequest),
    /// Read a recorded object, current or deposed.
    Read(Arc<RecordedObject>),
    /// Check whether any published copy of a record has been changed.
    Copies(Box<Record>),
    /// Validate a configuration, then plan with it if it is valid.
    Plan(PlanRequest),
    /// Validate the configuration of a data source. If it is valid, read with it or return the planned result.
    Data {
        config: Value,
        /// Whether to read now. The configuration has no unknown values then.
        read: bool,
    },
}

/// The response to a request of the same kind.
#[derive(Clone, Debug)]
pub enum DriverResponse {
    /// To `Import` and `Read`: warnings, the object (`None` if it does not exist), and the id of the provider
    /// configuration that was used.
    Object(Diagnostics, Result<Option<ObjectState>, DriverError>, Arc<str>),
    /// To `Copies`: whether any copy has been changed.
    Copies(bool),
    /// To `Plan`: the diagnostics of validation and planning, the plan if validation found no error, and the id of the
    /// provider configuration if the plan has an identity.
    Planned(Diagnostics, Result<Option<PlanResponse>, DriverError>, Arc<str>),
    /// To `Data`: the diagnostics of validation and reading, and the value if validation found no error. The value
    /// contains unknown values if it was not read.
    Data(Diagnostics, Result<Option<Value>, DriverError>),
}

/// The known types and their schemas. Methods must not block.
pub trait Types: Sync {
    /// The schema of a resource type of `provider`, or of a built-in type.
    fn schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>>;

    /// The schema of a data source.
    fn data_schema(&self, type_name: &str, provider: Option<&Provider>) -> Option<Arc<Schema>> {
        let _ = (type_name, provider);
        None
    }

    /// The type that a misspelled one most likely means: a type of the provider, or else any type.
    fn closest(&self, type_name: &str, provider: Option<&Provider>, is_data: bool) -> Option<String> {
        let _ = (type_name, provider, is_data);
        None
    }

    /// The identities that an object may have which a Resource of the namespace imports by this request, as far as the
    /// request shows them.
    fn import_identities(&self, type_name: &str, namespace: &str, request: &ImportRequest) -> Vec<Value> {
        let _ = (type_name, namespace, request);
        Vec::new()
    }

    /// The identities that an object with this configuration may have, as far as the configuration shows them.
    fn config_identities(&self, type_name: &str, namespace: &str, config: &Value) -> Vec<Value> {
        let _ = (type_name, namespace, config);
        Vec::new()
    }

    /// Why the schema of a provider is not available. `None` if the provider does not have the type.
    fn fault(&self, provider: &Provider) -> Option<DriverError> {
        let _ = provider;
        None
    }
}
