//! Decodes schemas from the protobuf messages of the provider protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Type;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

use super::{Attribute, Block, DescriptionKind, NestedBlock, NestedType, Nesting, Schema, Shape};

#[derive(Clone, PartialEq, Message)]
struct SchemaMessage {
    #[prost(int64, tag = "1")]
    version: i64,
    #[prost(message, required, tag = "2")]
    block: BlockMessage,
}

#[derive(Clone, PartialEq, Message)]
struct BlockMessage {
    #[prost(message, repeated, tag = "2")]
    attributes: Vec<AttributeMessage>,
    #[prost(message, repeated, tag = "3")]
    block_types: Vec<NestedBlockMessage>,
    #[prost(string, tag = "4")]
    description: String,
    #[prost(int32, tag = "5")]
    description_kind: i32,
    #[prost(bool, tag = "6")]
    deprecated: bool,
    #[prost(string, tag = "7")]
    deprecation_message: String,
}

#[derive(Clone, PartialEq, Message)]
struct NestedBlockMessage {
    #[prost(string, tag = "1")]
    type_name: String,
    #[prost(message, required, tag = "2")]
    block: BlockMessage,
    #[prost(int32, tag = "3")]
    nesting: i32,
    #[prost(int64, tag = "4")]
    min_items: i64,
    #[prost(int64, tag = "5")]
    max_items: i64,
}

/// `Schema.Object` of version 6.
#[derive(Clone, PartialEq, Message)]
struct ObjectMessage {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<AttributeMessage>,
    #[prost(int32, tag = "3")]
    nesting: i32,
}

/// `Schema.Attribute`, the only message with different field numbers in the two versions of the protocol. The kind of a
/// field and its number distinguish them: 10 and 11 are `write_only` and `deprecation_message` in version 5, and 10, 11
/// and 12 are `nested_type`, `write_only` and `deprecation_message` in version 6.
#[derive(Clone, Debug, Default, PartialEq)]
struct AttributeMessage {
    name: String,
    r#type: Vec<u8>,
    nested: Option<ObjectMessage>,
    description: String,
    required: bool,
    optional: bool,
    computed: bool,
    sensitive: bool,
    write_only: bool,
    description_kind: i32,
    deprecated: bool,
    deprecation_message: String,
}

impl Message for AttributeMessage {
    /// Purlin sends no schemas.
    fn encode_raw(&self, _: &mut impl BufMut) {}

    fn encoded_len(&self) -> usize {
        0
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        match (tag, wire_type) {
            (1, _) => encoding::string::merge(wire_type, &mut self.name, buffer, context),
            (2, _) => encoding::bytes::merge(wire_type, &mut self.r#type, buffer, context),
            (3, _) => encoding::string::merge(wire_type, &mut self.description, buffer, context),
            (4, _) => encoding::bool::merge(wire_type, &mut self.required, buffer, context),
            (5, _) => encoding::bool::merge(wire_type, &mut self.optional, buffer, context),
            (6, _) => encoding::bool::merge(wire_type, &mut self.computed, buffer, context),
            (7, _) => encoding::bool::merge(wire_type, &mut self.sensitive, buffer, context),
            (8, _) => encoding::int32::merge(wire_type, &mut self.description_kind, buffer, context),
            (9, _) => encoding::bool::merge(wire_type, &mut self.deprecated, buffer, context),
            (10, WireType::LengthDelimited) => {
                encoding::message::merge(wire_type, self.nested.get_or_insert_default(), buffer, context)
            }
            (10 | 11, WireType::Varint) => encoding::bool::merge(wire_type, &mut self.write_only, buffer, context),
            (11 | 12, WireType::LengthDelimited) => {
                encoding::string::merge(wire_type, &mut self.deprecation_message, buffer, context)
            }
            _ => encoding::skip_field(wire_type, tag, buffer, context),
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Why a schema cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("{0}")]
    Message(#[from] DecodeError),
    #[error("`{name}` has the unknown nesting mode {nesting}")]
    Nesting { name: String, nesting: i32 },
    #[error("`{name}`: {why}")]
    Type { name: String, why: cty::Error },
}

impl Schema {
    /// Decodes a schema of either version of the protocol. No bytes are the schema without attributes.
    ///
    /// # Errors
    /// If it is malformed, or of a newer protocol.
    pub fn decode(encoded: &[u8]) -> Result<Self, WireError> {
        let message = SchemaMessage::decode(encoded)?;
        Ok(Self { version: message.version, block: block(message.block)? })
    }
}

fn block(message: BlockMessage) -> Result<Block, WireError> {
    let nested = message.block_types.into_iter().map(nested_block).collect::<Result<_, WireError>>()?;
    let mut block = Block::new(attributes(message.attributes)?, nested);
    block.description = message.description.into();
    block.description_kind = description_kind(message.description_kind);
    block.deprecated = message.deprecated.then(|| message.deprecation_message.into());
    Ok(block)
}

fn attributes(messages: Vec<AttributeMessage>) -> Result<BTreeMap<Arc<str>, Attribute>, WireError> {
    messages.into_iter().map(attribute).collect()
}

fn description_kind(kind: i32) -> DescriptionKind {
    if kind == 1 { DescriptionKind::Markdown } else { DescriptionKind::Plain }
}

fn nesting(name: &str, mode: i32) -> Result<Nesting, WireError> {
    match mode {
        1 => Ok(Nesting::Single),
        2 => Ok(Nesting::List),
        3 => Ok(Nesting::Set),
        4 => Ok(Nesting::Map),
        5 => Ok(Nesting::Group),
        nesting => Err(WireError::Nesting { name: name.to_owned(), nesting }),
    }
}

fn nested_block(message: NestedBlockMessage) -> Result<(Arc<str>, NestedBlock), WireError> {
    let nested = NestedBlock {
        nesting: nesting(&message.type_name, message.nesting)?,
        block: block(message.block)?,
        min_items: message.min_items.max(0).unsigned_abs(),
        max_items: message.max_items.max(0).unsigned_abs(),
    };
    Ok((message.type_name.into(), nested))
}

fn attribute(message: AttributeMessage) -> Result<(Arc<str>, Attribute), WireError> {
    let shape = match message.nested {
        Some(object) => {
            let mode = match nesting(&message.name, object.nesting)? {
                // Only blocks have it.
                Nesting::Group => {
                    return Err(WireError::Nesting { name: message.name, nesting: object.nesting });
                }
                mode => mode,
            };
            Shape::Nested(NestedType::new(mode, attributes(object.attributes)?))
        }
        None => Shape::Plain(value_type(&message.name, &message.r#type)?),
    };
    let attribute = Attribute {
        required: message.required,
        optional: message.optional,
        computed: message.computed,
        sensitive: message.sensitive,
        write_only: message.write_only,
        description: message.description.into(),
        description_kind: description_kind(message.description_kind),
        deprecated: message.deprecated.then(|| message.deprecation_message.into()),
        ..Attribute::new(shape)
    };
    Ok((message.name.into(), attribute))
}

fn value_type(name: &str, json: &[u8]) -> Result<Type, WireError> {
    let ty = Type::from_json(json).map_err(|why| WireError::Type { name: name.to_owned(), why })?;
    Ok(ty.without_optional())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of a message with a length.
    fn part(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()][..], content].concat()
    }

    fn schema(block: &[u8]) -> Result<Schema, String> {
        Schema::decode(&[vec![0x08, 3], part(2, block)].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn attributes_of_both_versions_are_decoded() {
        let text = [part(1, b"a"), part(2, b"\"string\"")].concat();
        // `write_only` and `deprecation_message`.
        let five = [text.clone(), vec![0x48, 1, 0x50, 1], part(11, b"old")].concat();
        let six = [text.clone(), vec![0x48, 1, 0x58, 1], part(12, b"old")].concat();
        for encoded in [five, six] {
            let schema = schema(&part(2, &encoded)).unwrap();
            let attribute = &schema.block.attributes()["a"];
            assert!(schema.version == 3 && attribute.write_only);
            assert_eq!(attribute.deprecated.as_deref(), Some("old"));
            assert_eq!(attribute.ty(), Type::String);
        }
        let object = [part(1, &text), vec![0x18, 4]].concat();
        let schema = schema(&part(2, &[part(1, b"o"), part(10, &object)].concat())).unwrap();
        assert_eq!(schema.block.attributes()["o"].ty().to_json(), r#"["map",["object",{"a":"string"}]]"#);
    }

    #[test]
    fn an_error_names_the_attribute_or_block() {
        let strange = [part(1, b"rule"), vec![0x18, 9]].concat();
        assert_eq!(schema(&part(3, &strange)).unwrap_err(), "`rule` has the unknown nesting mode 9");
        let typeless = part(2, &[part(1, b"a"), part(2, b"\"text\"")].concat());
        assert_eq!(schema(&typeless).unwrap_err(), "`a`: invalid type: unknown type `text`");
    }
}
