//! The types of a provider, with the schemas of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Error, Type};

use model::AttributeType;
use tfprovider::plugin::IdentitySchema;
use tfprovider::schema::{Attribute, Block, NestedBlock, Nesting, Schema, Shape};

#[derive(Debug)]
pub struct ResourceType {
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
        let mut attributes: Vec<(Arc<str>, Type)> = Vec::new();
        let mut required = Vec::new();
        for attribute in &source.attributes {
            let name: Arc<str> = attribute.name.as_str().into();
            if attribute.required_for_import {
                required.push(name.clone());
            }
            attributes.push((name, Type::from_json(&attribute.r#type)?.without_optional()));
        }
        Ok(Self { version: source.version, ty: Type::object(attributes), required })
    }
}

/// The top-level attributes and blocks, with the types of what is in them.
fn outline(schema: &Schema) -> model::Schema {
    let mut attributes = BTreeMap::new();
    for (name, attribute) in schema.block.attributes() {
        attributes.insert(name.clone(), attribute_outline(attribute));
    }
    for (name, nested) in schema.block.blocks() {
        attributes.insert(name.clone(), block_outline(nested));
    }
    model::Schema { version: schema.version.max(0).unsigned_abs(), attributes, converted_by_driver: true }
}

fn attribute_outline(attribute: &Attribute) -> model::Attribute {
    model::Attribute {
        kind: kind(attribute),
        required: attribute.required,
        optional: attribute.optional,
        computed: attribute.computed,
        sensitive: attribute.sensitive,
        observed_in: None,
        description: attribute.description.to_string(),
    }
}

fn block_outline(nested: &NestedBlock) -> model::Attribute {
    model::Attribute {
        kind: nested_kind(nested.nesting, block_kind(&nested.block)),
        required: false,
        optional: true,
        computed: false,
        sensitive: false,
        observed_in: None,
        description: nested.block.description.to_string(),
    }
}

fn block_kind(block: &Block) -> AttributeType {
    let attributes = block.attributes().iter().map(|(name, attribute)| (name.clone(), kind(attribute)));
    let blocks = block
        .blocks()
        .iter()
        .map(|(name, nested)| (name.clone(), nested_kind(nested.nesting, block_kind(&nested.block))));
    AttributeType::Object(attributes.chain(blocks).collect())
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
