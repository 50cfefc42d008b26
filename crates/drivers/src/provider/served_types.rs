//! The types that a provider serves, from its schema.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::diagnostics;
use super::schema::ResourceType;
use crate::ProviderInfo;
use model::{DriverError, TypeName};
use process::lock;
use tfprovider::plugin::{Function, IdentitySchema, InvalidSchema, ProviderSchema};
use tfprovider::schema::{Block, Schema};

/// The schemas of a provider. The schema of a type is converted on first use, since large providers have a thousand.
#[derive(Debug)]
pub struct ServedTypes {
    schema: ProviderSchema,
    identities: BTreeMap<String, IdentitySchema>,
    configuration: Block,
    facts: ProviderInfo,
    types: Mutex<BTreeMap<TypeName, Option<Arc<ResourceType>>>>,
    data: Mutex<BTreeMap<TypeName, Option<Arc<ResourceType>>>>,
    ephemerals: Mutex<BTreeMap<TypeName, Option<Arc<ResourceType>>>>,
}

impl ServedTypes {
    pub fn new(
        schema: ProviderSchema,
        identities: BTreeMap<String, IdentitySchema>,
        facts: ProviderInfo,
    ) -> Result<Self, DriverError> {
        let configuration = schema.provider().map_err(|error| diagnostics::protocol_error(error.to_string()))?.block;
        Ok(Self {
            schema,
            identities,
            configuration,
            facts,
            types: Mutex::default(),
            data: Mutex::default(),
            ephemerals: Mutex::default(),
        })
    }

    pub fn info(&self) -> &ProviderInfo {
        &self.facts
    }

    /// The schema of the provider configuration.
    pub fn configuration(&self) -> &Block {
        &self.configuration
    }

    pub fn plans_destroys(&self) -> bool {
        self.schema.capabilities.plan_destroy
    }

    /// Whether the provider generates configurations from states.
    pub fn generates_config(&self) -> bool {
        self.schema.capabilities.generate_config
    }

    /// Whether requests contain `provider_meta`.
    pub fn has_provider_meta(&self) -> bool {
        self.schema.has_provider_meta()
    }

    /// The schema of `provider_meta`; `None` if the provider has none.
    pub fn provider_meta(&self) -> Result<Option<Block>, DriverError> {
        let schema = self.schema.provider_meta().map_err(|error| diagnostics::protocol_error(error.to_string()))?;
        Ok(schema.map(|schema| schema.block))
    }

    /// Whether each process must receive a schema call before any other call.
    pub fn requires_schema_call(&self) -> bool {
        !self.schema.capabilities.schema_is_optional
    }

    /// The names of the resource types, or of the data sources.
    pub fn types(&self, is_data: bool) -> Vec<String> {
        match is_data {
            true => self.schema.data_source_types().map(str::to_owned).collect(),
            false => self.schema.resource_types().map(str::to_owned).collect(),
        }
    }

    /// A function; `None` if it does not exist.
    pub fn function(&self, name: &str) -> Result<Option<Function>, DriverError> {
        self.schema.function(name).map_err(|error| diagnostics::protocol_error(error.to_string()))
    }

    /// A resource type; `None` if it does not exist.
    pub fn resource(&self, type_name: &str) -> Result<Option<Arc<ResourceType>>, DriverError> {
        converted(&self.types, "type", type_name, || self.schema.resource(type_name), self.identities.get(type_name))
    }

    /// A data source; `None` if it does not exist.
    pub fn data(&self, type_name: &str) -> Result<Option<Arc<ResourceType>>, DriverError> {
        converted(&self.data, "data source", type_name, || self.schema.data_source(type_name), None)
    }

    /// An ephemeral resource; `None` if it does not exist.
    pub fn ephemeral(&self, type_name: &str) -> Result<Option<Arc<ResourceType>>, DriverError> {
        converted(&self.ephemerals, "ephemeral resource", type_name, || self.schema.ephemeral(type_name), None)
    }
}

/// The type of a schema, converted once.
fn converted(
    known: &Mutex<BTreeMap<TypeName, Option<Arc<ResourceType>>>>,
    word: &str,
    type_name: &str,
    schema: impl FnOnce() -> Result<Option<Schema>, InvalidSchema>,
    identity: Option<&IdentitySchema>,
) -> Result<Option<Arc<ResourceType>>, DriverError> {
    if let Some(known) = lock(known).get(type_name) {
        return Ok(known.clone());
    }
    let schema = schema().map_err(|error| diagnostics::protocol_error(error.to_string()))?;
    let converted = schema.map(|schema| ResourceType::new(schema, identity).map(Arc::new)).transpose();
    let converted =
        converted.map_err(|error| diagnostics::protocol_error(format!("the {word} `{type_name}`: {error}")))?;
    lock(known).insert(type_name.into(), converted.clone());
    Ok(converted)
}
