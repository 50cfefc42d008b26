//! The protobuf messages of schemas. Attributes are decoded in a second step with the version of the protocol, because
//! `Schema.Attribute` is the only message with different field numbers in the two versions.

use prost::{DecodeError, Message};

use super::{Attribute, Block, DescriptionKind, NestedBlock, NestedObject, Nesting, Protocol, Schema};

#[derive(Clone, PartialEq, Message)]
pub struct SchemaMessage {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(message, optional, tag = "2")]
    pub block: Option<BlockMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub struct BlockMessage {
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub attributes: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "3")]
    pub block_types: Vec<NestedBlockMessage>,
    #[prost(string, tag = "4")]
    pub description: String,
    #[prost(int32, tag = "5")]
    pub description_kind: i32,
    #[prost(bool, tag = "6")]
    pub deprecated: bool,
    #[prost(string, tag = "7")]
    pub deprecation_message: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct NestedBlockMessage {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub block: Option<BlockMessage>,
    #[prost(int32, tag = "3")]
    pub nesting: i32,
    #[prost(int64, tag = "4")]
    pub min_items: i64,
    #[prost(int64, tag = "5")]
    pub max_items: i64,
}

/// `Schema.Object` of version 6.
#[derive(Clone, PartialEq, Message)]
pub struct ObjectMessage {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<AttributeMessage6>,
    #[prost(int32, tag = "3")]
    pub nesting: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct AttributeMessage5 {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub r#type: Vec<u8>,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(bool, tag = "4")]
    pub required: bool,
    #[prost(bool, tag = "5")]
    pub optional: bool,
    #[prost(bool, tag = "6")]
    pub computed: bool,
    #[prost(bool, tag = "7")]
    pub sensitive: bool,
    #[prost(int32, tag = "8")]
    pub description_kind: i32,
    #[prost(bool, tag = "9")]
    pub deprecated: bool,
    #[prost(bool, tag = "10")]
    pub write_only: bool,
    #[prost(string, tag = "11")]
    pub deprecation_message: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct AttributeMessage6 {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub r#type: Vec<u8>,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(bool, tag = "4")]
    pub required: bool,
    #[prost(bool, tag = "5")]
    pub optional: bool,
    #[prost(bool, tag = "6")]
    pub computed: bool,
    #[prost(bool, tag = "7")]
    pub sensitive: bool,
    #[prost(int32, tag = "8")]
    pub description_kind: i32,
    #[prost(bool, tag = "9")]
    pub deprecated: bool,
    #[prost(message, optional, tag = "10")]
    pub nested_type: Option<ObjectMessage>,
    #[prost(bool, tag = "11")]
    pub write_only: bool,
    #[prost(string, tag = "12")]
    pub deprecation_message: String,
}

pub fn schema(protocol: Protocol, encoded: &[u8]) -> Result<Schema, WireError> {
    let message = SchemaMessage::decode(encoded)?;
    Ok(Schema { version: message.version, block: block(protocol, message.block.unwrap_or_default())? })
}

#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("{0}")]
    Message(#[from] DecodeError),
    #[error("`{name}` has the unknown nesting mode {nesting}")]
    Nesting { name: String, nesting: i32 },
}

fn block(protocol: Protocol, message: BlockMessage) -> Result<Block, WireError> {
    let attributes = message.attributes.iter().map(|encoded| match protocol {
        Protocol::V5 => Ok(AttributeMessage5::decode(encoded.as_slice())?.into()),
        Protocol::V6 => attribute(AttributeMessage6::decode(encoded.as_slice())?),
    });
    Ok(Block {
        attributes: attributes.collect::<Result<_, WireError>>()?,
        blocks: message
            .block_types
            .into_iter()
            .map(|nested| nested_block(protocol, nested))
            .collect::<Result<_, _>>()?,
        description: message.description,
        description_kind: description_kind(message.description_kind),
        deprecated: message.deprecated,
        deprecation_message: message.deprecation_message,
    })
}

fn description_kind(kind: i32) -> DescriptionKind {
    if kind == 1 { DescriptionKind::Markdown } else { DescriptionKind::Plain }
}

fn nested_block(protocol: Protocol, message: NestedBlockMessage) -> Result<NestedBlock, WireError> {
    let nesting = match message.nesting {
        1 => Nesting::Single,
        2 => Nesting::List,
        3 => Nesting::Set,
        4 => Nesting::Map,
        5 => Nesting::Group,
        nesting => return Err(WireError::Nesting { name: message.type_name, nesting }),
    };
    Ok(NestedBlock {
        name: message.type_name,
        block: block(protocol, message.block.unwrap_or_default())?,
        nesting,
        min_items: message.min_items,
        max_items: message.max_items,
    })
}

impl From<AttributeMessage5> for Attribute {
    fn from(message: AttributeMessage5) -> Self {
        Self {
            name: message.name,
            r#type: message.r#type,
            nested: None,
            description: message.description,
            description_kind: description_kind(message.description_kind),
            required: message.required,
            optional: message.optional,
            computed: message.computed,
            sensitive: message.sensitive,
            write_only: message.write_only,
            deprecated: message.deprecated,
            deprecation_message: message.deprecation_message,
        }
    }
}

fn attribute(message: AttributeMessage6) -> Result<Attribute, WireError> {
    let nested = message.nested_type.map(|object| nested_object(&message.name, object)).transpose()?;
    Ok(Attribute {
        name: message.name,
        r#type: message.r#type,
        nested,
        description: message.description,
        description_kind: description_kind(message.description_kind),
        required: message.required,
        optional: message.optional,
        computed: message.computed,
        sensitive: message.sensitive,
        write_only: message.write_only,
        deprecated: message.deprecated,
        deprecation_message: message.deprecation_message,
    })
}

fn nested_object(name: &str, message: ObjectMessage) -> Result<NestedObject, WireError> {
    let nesting = match message.nesting {
        1 => Nesting::Single,
        2 => Nesting::List,
        3 => Nesting::Set,
        4 => Nesting::Map,
        nesting => return Err(WireError::Nesting { name: name.to_owned(), nesting }),
    };
    let attributes = message.attributes.into_iter().map(attribute).collect::<Result<_, _>>()?;
    Ok(NestedObject { attributes, nesting })
}
