//! Converts the schema of a provider to the schema for decoding its values and to the schema of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Error, Type};

use model::AttributeType;
use tfprovider::plugin::schema as wire;
use tfprovider::schema::{Attribute, Block, NestedBlock, NestedType, Nesting, Schema, Shape};

#[derive(Debug)]
pub(super) struct ResourceType {
    /// The schema for encoding and decoding values.
    pub schema: Schema,
    /// The top-level schema for the engine.
    pub outline: Arc<model::Schema>,
    /// The type has a sensitive or write-only attribute.
    pub has_secrets: bool,
    /// The type has a write-only attribute.
    pub has_write_only: bool,
    pub identity: Option<Identity>,
}

/// The identity of a resource type.
#[derive(Debug)]
pub struct Identity {
    /// The schema version.
    pub version: i64,
    pub ty: Type,
    /// The attributes without which no object can be imported.
    pub required: Vec<Arc<str>>,
}

impl ResourceType {
    pub fn new(source: &wire::Schema, identity: Option<&wire::IdentitySchema>) -> Result<Self, Error> {
        let schema = Schema { version: source.version, block: block(&source.block)? };
        let outline = Arc::new(outline(&schema));
        let identity = identity.map(self::identity).transpose()?;
        let has_write_only = schema.block.has(&|attribute| attribute.write_only);
        let has_secrets = has_write_only || schema.block.has(&|attribute| attribute.sensitive);
        Ok(Self { schema, outline, has_secrets, has_write_only, identity })
    }
}

pub(super) fn block(source: &wire::Block) -> Result<Block, Error> {
    let nested = source.blocks.iter().map(|nested| {
        let nested_block = NestedBlock {
            nesting: nested.nesting,
            block: block(&nested.block)?,
            min_items: nested.min_items.max(0).unsigned_abs(),
            max_items: nested.max_items.max(0).unsigned_abs(),
        };
        Ok((Arc::from(nested.name.as_str()), nested_block))
    });
    let nested = nested.collect::<Result<BTreeMap<_, _>, Error>>()?;
    let mut converted = Block::new(attributes(&source.attributes)?, nested);
    converted.description = source.description.as_str().into();
    converted.deprecated = source.deprecated.then(Arc::default);
    Ok(converted)
}

fn attributes(source: &[wire::Attribute]) -> Result<BTreeMap<Arc<str>, Attribute>, Error> {
    source.iter().map(|one| Ok((Arc::from(one.name.as_str()), attribute(one)?))).collect()
}

fn attribute(source: &wire::Attribute) -> Result<Attribute, Error> {
    let shape = match &source.nested {
        Some(nested) => Shape::Nested(NestedType::new(nested.nesting, attributes(&nested.attributes)?)),
        None => Shape::Plain(Type::from_json(&source.r#type)?.without_optional()),
    };
    Ok(Attribute {
        required: source.required,
        optional: source.optional,
        computed: source.computed,
        sensitive: source.sensitive,
        write_only: source.write_only,
        description: source.description.as_str().into(),
        deprecated: source.deprecated.then(|| source.deprecation_message.as_str().into()),
        ..Attribute::new(shape)
    })
}

fn identity(source: &wire::IdentitySchema) -> Result<Identity, Error> {
    let attributes =
        source.attributes.iter().map(|one| Ok((one.name.as_str(), Type::from_json(&one.r#type)?.without_optional())));
    let ty = Type::object(attributes.collect::<Result<Vec<_>, Error>>()?);
    let required = source.attributes.iter().filter(|one| one.required_for_import);
    Ok(Identity { version: source.version, ty, required: required.map(|one| one.name.as_str().into()).collect() })
}

/// The top-level attributes and blocks, with the types of what is in them.
fn outline(schema: &Schema) -> model::Schema {
    let attribute = |(name, attribute): (&Arc<str>, &Attribute)| {
        let outlined = model::Attribute {
            kind: kind(attribute),
            required: attribute.required,
            optional: attribute.optional,
            computed: attribute.computed,
            sensitive: attribute.sensitive,
            observed_in: None,
            description: attribute.description.to_string(),
        };
        (name.clone(), outlined)
    };
    let nested = |(name, nested): (&Arc<str>, &NestedBlock)| {
        let outlined = model::Attribute {
            kind: nested_kind(nested.nesting, block_kind(&nested.block)),
            required: false,
            optional: true,
            computed: false,
            sensitive: false,
            observed_in: None,
            description: nested.block.description.to_string(),
        };
        (name.clone(), outlined)
    };
    let attributes = schema.block.attributes().iter().map(attribute);
    model::Schema {
        version: schema.version.max(0).unsigned_abs(),
        attributes: attributes.chain(schema.block.blocks().iter().map(nested)).collect(),
        converted_by_driver: true,
    }
}

fn block_kind(block: &Block) -> AttributeType {
    let attributes = block.attributes().iter().map(|(name, attribute)| (name.clone(), kind(attribute)));
    let nested = |(name, nested): (&Arc<str>, &NestedBlock)| {
        (name.clone(), nested_kind(nested.nesting, block_kind(&nested.block)))
    };
    AttributeType::Object(attributes.chain(block.blocks().iter().map(nested)).collect())
}

fn kind(attribute: &Attribute) -> AttributeType {
    match &attribute.shape {
        Shape::Plain(ty) => plain_kind(ty),
        Shape::Nested(nested) => {
            let attributes = nested.attributes().iter().map(|(name, attribute)| (name.clone(), kind(attribute)));
            nested_kind(nested.nesting, AttributeType::Object(attributes.collect()))
        }
    }
}

fn nested_kind(nesting: Nesting, object: AttributeType) -> AttributeType {
    match nesting {
        Nesting::Single | Nesting::Group => object,
        Nesting::List => AttributeType::List(Box::new(object)),
        Nesting::Map => AttributeType::Map(Box::new(object)),
        Nesting::Set => AttributeType::Set,
    }
}

fn plain_kind(ty: &Type) -> AttributeType {
    match ty {
        Type::Dynamic | Type::Tuple(_) => AttributeType::Any,
        Type::String => AttributeType::String,
        Type::Bool => AttributeType::Bool,
        Type::Number => AttributeType::Number,
        Type::List(element) => AttributeType::List(Box::new(plain_kind(element))),
        Type::Map(element) => AttributeType::Map(Box::new(plain_kind(element))),
        Type::Set(_) => AttributeType::Set,
        Type::Object(object) => {
            AttributeType::Object(object.attributes.iter().map(|(name, ty)| (name.clone(), plain_kind(ty))).collect())
        }
    }
}
