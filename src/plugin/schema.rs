//! Schemas as providers describe them: the schema of the provider's own configuration, of each resource type and of
//! each data source. Both versions of the protocol decode to the types here.
//!
//! Types stay the JSON text that the protocol has for them: what they mean is for the codec of values.

mod wire;

use std::collections::BTreeMap;

pub use crate::cty::schema::Nesting;

use super::Protocol;
use super::messages as raw;

/// Everything a provider tells about itself. Schemas stay encoded until they are asked for, because a large provider
/// has more than a thousand of them.
#[derive(Clone, Debug)]
pub struct ProviderSchema {
    protocol: Protocol,
    provider: Option<Vec<u8>>,
    resources: BTreeMap<String, Vec<u8>>,
    data_sources: BTreeMap<String, Vec<u8>>,
    provider_meta: Option<Vec<u8>>,
    /// What the provider can do beyond the calls that all have.
    pub capabilities: Capabilities,
}

/// What a provider can do beyond the calls that all have. A provider that does not say can do nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// A destruction is planned by the provider, too.
    pub plan_destroy: bool,
    /// Other calls work in a process that was never asked for its schema. Older providers initialise in that call.
    pub schema_is_optional: bool,
    /// It can take over the state of an object of another type.
    pub move_state: bool,
    /// It can make a configuration of a state.
    pub generate_config: bool,
}

/// The schema of a provider configuration, a resource type or a data source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The version of the state that belongs to it.
    pub version: i64,
    /// What it consists of.
    pub block: Block,
}

/// Attributes and nested blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// In the order of the provider.
    pub attributes: Vec<Attribute>,
    /// In the order of the provider.
    pub blocks: Vec<NestedBlock>,
    /// For people, in Markdown or plain text.
    pub description: String,
    /// It should not be used any more.
    pub deprecated: bool,
}

/// One attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// The JSON text of its type; empty when it has `nested`.
    pub r#type: Vec<u8>,
    /// The attributes of its objects (protocol 6).
    pub nested: Option<NestedObject>,
    /// For people, in Markdown or plain text.
    pub description: String,
    /// The configuration must have it.
    pub required: bool,
    /// The configuration may have it.
    pub optional: bool,
    /// The provider gives it a value when the configuration does not.
    pub computed: bool,
    /// It must not be shown.
    pub sensitive: bool,
    /// It is given to the provider and never recorded.
    pub write_only: bool,
    /// It should not be used any more.
    pub deprecated: bool,
    /// What to use instead; may be empty.
    pub deprecation_message: String,
}

/// The objects inside an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedObject {
    /// In the order of the provider.
    pub attributes: Vec<Attribute>,
    /// How many there are, and how they are told apart. Never `Group`.
    pub nesting: Nesting,
}

/// A block inside a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedBlock {
    /// Its name.
    pub name: String,
    /// What it consists of.
    pub block: Block,
    /// How many there are, and how they are told apart.
    pub nesting: Nesting,
    /// At least so many; 0 is no limit.
    pub min_items: i64,
    /// At most so many; 0 is no limit.
    pub max_items: i64,
}

/// The schema of what a resource type is found by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentitySchema {
    /// The version of the recorded identity that belongs to it.
    pub version: i64,
    /// Its attributes.
    pub attributes: Vec<IdentityAttribute>,
}

/// One attribute of an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityAttribute {
    /// Its name.
    pub name: String,
    /// The JSON text of its type.
    pub r#type: Vec<u8>,
    /// An import must have it.
    pub required_for_import: bool,
    /// An import may have it; the provider knows it otherwise.
    pub optional_for_import: bool,
    /// For people.
    pub description: String,
}

/// A schema that no client can understand. It is the provider's mistake, or a newer protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provider's schema of {what} cannot be decoded: {why}")]
pub struct InvalidSchema {
    what: String,
    why: String,
}

impl ProviderSchema {
    pub(super) fn new(protocol: Protocol, response: raw::GetProviderSchemaResponse) -> Self {
        let capabilities = response.server_capabilities.unwrap_or_default();
        Self {
            protocol,
            provider: response.provider,
            resources: response.resource_schemas,
            data_sources: response.data_source_schemas,
            provider_meta: response.provider_meta,
            capabilities: Capabilities {
                plan_destroy: capabilities.plan_destroy,
                schema_is_optional: capabilities.get_provider_schema_optional,
                move_state: capabilities.move_resource_state,
                generate_config: capabilities.generate_resource_config,
            },
        }
    }

    /// The names of all resource types.
    pub fn resource_types(&self) -> impl Iterator<Item = &str> {
        self.resources.keys().map(String::as_str)
    }

    /// The names of all data sources.
    pub fn data_source_types(&self) -> impl Iterator<Item = &str> {
        self.data_sources.keys().map(String::as_str)
    }

    /// The schema of the provider's configuration; an empty one when it has no settings.
    pub fn provider(&self) -> Result<Schema, InvalidSchema> {
        let Some(encoded) = &self.provider else { return Ok(Schema::default()) };
        decode(self.protocol, encoded, "its configuration")
    }

    /// The schema of `provider_meta`, which modules of Terraform may set; its value is always null here.
    pub fn provider_meta(&self) -> Result<Option<Schema>, InvalidSchema> {
        self.provider_meta.as_ref().map(|encoded| decode(self.protocol, encoded, "provider_meta")).transpose()
    }

    /// The schema of a resource type; `None` when the provider has no such type.
    pub fn resource(&self, type_name: &str) -> Result<Option<Schema>, InvalidSchema> {
        self.resources.get(type_name).map(|encoded| decode(self.protocol, encoded, type_name)).transpose()
    }

    /// The schema of a data source; `None` when the provider has no such type.
    pub fn data_source(&self, type_name: &str) -> Result<Option<Schema>, InvalidSchema> {
        self.data_sources.get(type_name).map(|encoded| decode(self.protocol, encoded, type_name)).transpose()
    }
}

impl From<raw::ResourceIdentitySchema> for IdentitySchema {
    fn from(schema: raw::ResourceIdentitySchema) -> Self {
        let attribute = |attribute: raw::IdentityAttribute| IdentityAttribute {
            name: attribute.name,
            r#type: attribute.r#type,
            required_for_import: attribute.required_for_import,
            optional_for_import: attribute.optional_for_import,
            description: attribute.description,
        };
        Self { version: schema.version, attributes: schema.identity_attributes.into_iter().map(attribute).collect() }
    }
}

fn decode(protocol: Protocol, encoded: &[u8], what: &str) -> Result<Schema, InvalidSchema> {
    wire::schema(protocol, encoded).map_err(|why| InvalidSchema { what: what.to_owned(), why: why.to_string() })
}

#[cfg(test)]
mod tests {
    use super::wire::{
        AttributeMessage5, AttributeMessage6, BlockMessage, NestedBlockMessage, ObjectMessage, SchemaMessage,
    };
    use prost::Message as _;

    use super::*;

    fn encoded(attributes: Vec<Vec<u8>>, block_types: Vec<NestedBlockMessage>) -> Vec<u8> {
        let block = BlockMessage { attributes, block_types, ..BlockMessage::default() };
        SchemaMessage { version: 3, block: Some(block) }.encode_to_vec()
    }

    #[test]
    fn an_attribute_is_read_by_the_numbers_of_its_protocol() {
        let five = AttributeMessage5 { name: "a".into(), write_only: true, ..AttributeMessage5::default() };
        let schema = decode(Protocol::V5, &encoded(vec![five.encode_to_vec()], vec![]), "t").unwrap();
        assert!(schema.version == 3 && schema.block.attributes[0].write_only);

        let inner = AttributeMessage6 { name: "b".into(), write_only: true, ..AttributeMessage6::default() };
        let object = ObjectMessage { attributes: vec![inner], nesting: 4 };
        let six = AttributeMessage6 { name: "a".into(), nested_type: Some(object), ..AttributeMessage6::default() };
        let schema = decode(Protocol::V6, &encoded(vec![six.encode_to_vec()], vec![]), "t").unwrap();
        let nested = schema.block.attributes[0].nested.as_ref().unwrap();
        assert!(nested.nesting == Nesting::Map && nested.attributes[0].write_only);
    }

    #[test]
    fn a_nesting_of_the_future_is_an_error_at_its_block() {
        let strange = NestedBlockMessage { type_name: "rule".into(), nesting: 9, ..NestedBlockMessage::default() };
        let error = decode(Protocol::V5, &encoded(vec![], vec![strange]), "x_thing").unwrap_err();
        let text = "the provider's schema of x_thing cannot be decoded: `rule` has the unknown nesting mode 9";
        assert_eq!(error.to_string(), text);
    }
}
