//! The types of a provider, with the schemas of the engine.

use std::sync::Arc;

use cty::{Error, Type};

use model::AttributeType;
use tfprovider::plugin::{IdentityAttribute, IdentitySchema};
use tfprovider::schema::{Attribute, Block, NestedBlock, Nesting, Schema, Shape};

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
    pub identity: Option<IdentityType>,
}

/// The identity of a resource type.
#[derive(Debug)]
pub struct IdentityType {
    /// The schema version.
    pub version: i64,
    pub ty: Type,
    /// The attributes without which no object can be imported.
    pub required: Vec<Arc<str>>,
}

impl ResourceType {
    pub fn new(schema: Schema, identity: Option<&IdentitySchema>) -> Result<Self, Error> {
        let outline = Arc::new(outline(&schema));
        let identity = identity.map(IdentityType::new).transpose()?;
        let has_write_only = schema.block.has(&|attribute| attribute.write_only);
        let has_secrets = has_write_only || schema.block.has(&|attribute| attribute.sensitive);
        Ok(Self { schema, outline, has_secrets, has_write_only, identity })
    }
}

impl IdentityType {
    fn new(source: &IdentitySchema) -> Result<Self, Error> {
        let attribute = |attribute: &IdentityAttribute| {
            Ok((attribute.name.as_str().into(), Type::from_json(&attribute.r#type)?.without_optional()))
        };
        let attributes: Vec<(Arc<str>, Type)> =
            source.attributes.iter().map(attribute).collect::<Result<_, Error>>()?;
        let required = source.attributes.iter().filter(|attribute| attribute.required_for_import);
        let required = required.map(|attribute| attribute.name.as_str().into()).collect();
        Ok(Self { version: source.version, ty: Type::object(attributes), required })
    }
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
