//! Schemas as providers return them: of the provider configuration, the resource types and the data sources. Both
//! versions of the protocol decode to the same structs. Value types stay in their JSON form; `cty` parses them.

mod wire;

use std::collections::BTreeMap;

pub use crate::schema::Nesting;

use super::Protocol;
use super::messages as raw;

/// The schemas and capabilities of a provider. Schemas stay encoded until they are requested, because a large provider
/// has more than a thousand of them.
#[derive(Clone, Debug)]
pub struct ProviderSchema {
    protocol: Protocol,
    provider: Option<Vec<u8>>,
    resources: BTreeMap<String, Vec<u8>>,
    data_sources: BTreeMap<String, Vec<u8>>,
    provider_meta: Option<Vec<u8>>,
    pub capabilities: Capabilities,
}

/// The optional capabilities of a provider. All are false if the provider does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The provider plans destroys too.
    pub plan_destroy: bool,
    /// Other calls work before the schema has been requested. Older providers initialize themselves in the schema call.
    pub schema_is_optional: bool,
    /// The provider can move the state of an object of another type.
    pub move_state: bool,
    /// The provider can generate a configuration from a state.
    pub generate_config: bool,
}

/// The schema of a provider configuration, a resource type or a data source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The schema version of recorded states.
    pub version: i64,
    pub block: Block,
}

/// Attributes and nested blocks, in the order of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub attributes: Vec<Attribute>,
    pub blocks: Vec<NestedBlock>,
    pub description: String,
    pub description_kind: DescriptionKind,
    pub deprecated: bool,
    /// May be empty.
    pub deprecation_message: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DescriptionKind {
    #[default]
    Plain,
    Markdown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribute {
    pub name: String,
    /// The type as JSON; empty if `nested` is set.
    pub r#type: Vec<u8>,
    /// The attributes of its objects (protocol 6).
    pub nested: Option<NestedObject>,
    pub description: String,
    pub description_kind: DescriptionKind,
    /// The configuration must set it.
    pub required: bool,
    /// The configuration may set it.
    pub optional: bool,
    /// The provider sets it if the configuration does not.
    pub computed: bool,
    /// The value must not be shown.
    pub sensitive: bool,
    /// The value is sent to the provider and never recorded.
    pub write_only: bool,
    pub deprecated: bool,
    /// May be empty.
    pub deprecation_message: String,
}

/// The objects inside an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedObject {
    /// In the order of the provider.
    pub attributes: Vec<Attribute>,
    /// Never `Group`.
    pub nesting: Nesting,
}

/// A block inside a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedBlock {
    pub name: String,
    pub block: Block,
    pub nesting: Nesting,
    /// 0 means no limit.
    pub min_items: i64,
    /// 0 means no limit.
    pub max_items: i64,
}

/// The schema of the identity of a resource type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentitySchema {
    /// The schema version of recorded identities.
    pub version: i64,
    pub attributes: Vec<IdentityAttribute>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityAttribute {
    pub name: String,
    /// The type as JSON.
    pub r#type: Vec<u8>,
    pub required_for_import: bool,
    /// The provider determines the value if the import omits it.
    pub optional_for_import: bool,
    pub description: String,
}

/// A schema that cannot be decoded, because of a bug in the provider or a newer protocol.
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

    pub fn resource_types(&self) -> impl Iterator<Item = &str> {
        self.resources.keys().map(String::as_str)
    }

    pub fn data_source_types(&self) -> impl Iterator<Item = &str> {
        self.data_sources.keys().map(String::as_str)
    }

    /// The schema of the provider configuration; empty if the provider has none.
    pub fn provider(&self) -> Result<Schema, InvalidSchema> {
        let Some(encoded) = &self.provider else { return Ok(Schema::default()) };
        decode(self.protocol, encoded, "its configuration")
    }

    /// Whether the provider has a schema of `provider_meta`, which Terraform modules can set.
    pub fn has_provider_meta(&self) -> bool {
        self.provider_meta.is_some()
    }

    /// `None` if the provider has no such resource type.
    pub fn resource(&self, type_name: &str) -> Result<Option<Schema>, InvalidSchema> {
        self.resources.get(type_name).map(|encoded| decode(self.protocol, encoded, type_name)).transpose()
    }

    /// `None` if the provider has no such data source.
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
    fn attributes_are_decoded_by_protocol_version() {
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
    fn an_unknown_nesting_mode_names_the_block() {
        let strange = NestedBlockMessage { type_name: "rule".into(), nesting: 9, ..NestedBlockMessage::default() };
        let error = decode(Protocol::V5, &encoded(vec![], vec![strange]), "x_thing").unwrap_err();
        let text = "the provider's schema of x_thing cannot be decoded: `rule` has the unknown nesting mode 9";
        assert_eq!(error.to_string(), text);
    }
}
