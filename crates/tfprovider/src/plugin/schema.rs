//! The schemas of a provider.

use std::collections::BTreeMap;

use cty::Type;

use super::messages::{Capabilities, FunctionMessage, GetProviderSchemaResponse, ParameterMessage};
use crate::schema::Schema;

/// The schemas and capabilities of a provider. Schemas stay encoded until they are requested, because a large provider
/// has more than a thousand of them.
#[derive(Clone, Debug)]
pub struct ProviderSchema {
    provider: Option<Vec<u8>>,
    resources: BTreeMap<String, Vec<u8>>,
    data_sources: BTreeMap<String, Vec<u8>>,
    ephemerals: BTreeMap<String, Vec<u8>>,
    provider_meta: Option<Vec<u8>>,
    functions: BTreeMap<String, FunctionMessage>,
    pub capabilities: Capabilities,
}

/// What a function of a provider takes and returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub parameters: Vec<Parameter>,
    /// The parameter of all further arguments.
    pub variadic: Option<Parameter>,
    pub result: Type,
}

/// A parameter, and the arguments that the provider accepts for it beyond known values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub ty: Type,
    pub null: bool,
    /// The argument may be unknown, wholly or inside.
    pub unknown: bool,
}

/// A schema that cannot be decoded, because of a bug in the provider or a newer protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provider's schema of {what} cannot be decoded: {why}")]
pub struct InvalidSchema {
    what: String,
    why: String,
}

impl ProviderSchema {
    pub(crate) fn new(response: GetProviderSchemaResponse) -> Self {
        Self {
            provider: response.provider,
            resources: response.resource_schemas,
            data_sources: response.data_source_schemas,
            ephemerals: response.ephemeral_resource_schemas,
            provider_meta: response.provider_meta,
            functions: response.functions,
            capabilities: response.server_capabilities.unwrap_or_default(),
        }
    }

    pub fn resource_types(&self) -> impl Iterator<Item = &str> {
        self.resources.keys().map(String::as_str)
    }

    pub fn data_source_types(&self) -> impl Iterator<Item = &str> {
        self.data_sources.keys().map(String::as_str)
    }

    /// The schema of the provider configuration; empty if the provider has none.
    pub fn provider(&self) -> Result<Schema, InvalidSchema> {
        decode(self.provider.as_deref().unwrap_or_default(), "its configuration")
    }

    /// Whether the provider has a schema of `provider_meta`, which Terraform modules can set.
    pub fn has_provider_meta(&self) -> bool {
        self.provider_meta.is_some()
    }

    /// The schema of `provider_meta`; `None` if the provider has none.
    pub fn provider_meta(&self) -> Result<Option<Schema>, InvalidSchema> {
        self.provider_meta.as_deref().map(|encoded| decode(encoded, "provider_meta")).transpose()
    }

    /// `None` if the provider has no such resource type.
    pub fn resource(&self, type_name: &str) -> Result<Option<Schema>, InvalidSchema> {
        self.resources.get(type_name).map(|encoded| decode(encoded, type_name)).transpose()
    }

    /// `None` if the provider has no such data source.
    pub fn data_source(&self, type_name: &str) -> Result<Option<Schema>, InvalidSchema> {
        self.data_sources.get(type_name).map(|encoded| decode(encoded, type_name)).transpose()
    }

    /// `None` if the provider has no such ephemeral resource.
    pub fn ephemeral(&self, type_name: &str) -> Result<Option<Schema>, InvalidSchema> {
        self.ephemerals.get(type_name).map(|encoded| decode(encoded, type_name)).transpose()
    }

    /// `None` if the provider has no such function.
    pub fn function(&self, name: &str) -> Result<Option<Function>, InvalidSchema> {
        let Some(message) = self.functions.get(name) else { return Ok(None) };
        function(message)
            .map(Some)
            .map_err(|why| InvalidSchema { what: format!("the function {name}"), why: why.to_string() })
    }
}

fn function(message: &FunctionMessage) -> Result<Function, cty::Error> {
    Ok(Function {
        parameters: message.parameters.iter().map(parameter).collect::<Result<_, _>>()?,
        variadic: message.variadic_parameter.as_ref().map(parameter).transpose()?,
        result: Type::from_json(&message.result.r#type)?.without_optional(),
    })
}

fn parameter(message: &ParameterMessage) -> Result<Parameter, cty::Error> {
    Ok(Parameter {
        name: message.name.clone(),
        ty: Type::from_json(&message.r#type)?.without_optional(),
        null: message.allow_null_value,
        unknown: message.allow_unknown_values,
    })
}

fn decode(encoded: &[u8], what: &str) -> Result<Schema, InvalidSchema> {
    Schema::decode(encoded).map_err(|why| InvalidSchema { what: what.to_owned(), why: why.to_string() })
}
