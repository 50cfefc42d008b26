//! From the schema that a provider tells to that by which its values are read, and to that which the engine knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cty::schema::{Attribute, Block, NestedBlock, NestedType, Schema, Shape};
use crate::cty::{Type, TypeError};
use crate::model;
use crate::plugin::schema as wire;

/// A resource type of a provider.
#[derive(Debug)]
pub(super) struct ResourceType {
    /// By which its values are read.
    pub schema: Schema,
    /// What the engine knows of it.
    pub outline: Arc<model::Schema>,
    /// Some attribute of it is sensitive, or write-only.
    pub has_secrets: bool,
    /// Some attribute of it is told to the provider and never kept.
    pub has_write_only: bool,
    /// What its objects are found by: the version and the type of such values.
    pub identity: Option<(i64, Type)>,
}

impl ResourceType {
    /// From what the provider tells.
    pub fn new(told: &wire::Schema, identity: Option<&wire::IdentitySchema>) -> Result<Self, TypeError> {
        let schema = Schema { version: told.version, block: block(&told.block)? };
        let outline = Arc::new(outline(&schema));
        let identity = identity.map(identity_type).transpose()?;
        let has_write_only = schema.block.has(&|attribute| attribute.write_only);
        let has_secrets = has_write_only || schema.block.has(&|attribute| attribute.sensitive);
        Ok(Self { schema, outline, has_secrets, has_write_only, identity })
    }
}

/// The schema of the settings of a provider.
pub(super) fn block(told: &wire::Block) -> Result<Block, TypeError> {
    let nested = told.blocks.iter().map(|nested| {
        let made = NestedBlock {
            nesting: nested.nesting,
            block: block(&nested.block)?,
            min_items: nested.min_items.max(0).unsigned_abs(),
            max_items: nested.max_items.max(0).unsigned_abs(),
        };
        Ok((Arc::from(nested.name.as_str()), made))
    });
    let nested = nested.collect::<Result<BTreeMap<_, _>, TypeError>>()?;
    let mut made = Block::new(attributes(&told.attributes)?, nested);
    made.description = told.description.as_str().into();
    made.deprecated = told.deprecated.then(Arc::default);
    Ok(made)
}

fn attributes(told: &[wire::Attribute]) -> Result<BTreeMap<Arc<str>, Attribute>, TypeError> {
    told.iter().map(|one| Ok((Arc::from(one.name.as_str()), attribute(one)?))).collect()
}

fn attribute(told: &wire::Attribute) -> Result<Attribute, TypeError> {
    let shape = match &told.nested {
        Some(nested) => Shape::Nested(NestedType::new(nested.nesting, attributes(&nested.attributes)?)),
        None => Shape::Plain(Type::from_json(&told.r#type)?),
    };
    Ok(Attribute {
        required: told.required,
        optional: told.optional,
        computed: told.computed,
        sensitive: told.sensitive,
        write_only: told.write_only,
        description: told.description.as_str().into(),
        deprecated: told.deprecated.then(|| told.deprecation_message.as_str().into()),
        ..Attribute::new(shape)
    })
}

fn identity_type(told: &wire::IdentitySchema) -> Result<(i64, Type), TypeError> {
    let attributes = told.attributes.iter().map(|one| Ok((one.name.as_str(), Type::from_json(&one.r#type)?)));
    Ok((told.version, Type::object(attributes.collect::<Result<Vec<_>, TypeError>>()?)))
}

/// The names at the top, and what may be done with each. The driver itself knows what is inside of them, and checks it.
fn outline(schema: &Schema) -> model::Schema {
    let attribute = |(name, attribute): (&Arc<str>, &Attribute)| {
        let outlined = model::Attribute {
            kind: model::AttributeType::Any,
            required: attribute.required,
            optional: attribute.optional,
            computed: attribute.computed,
            sensitive: attribute.sensitive,
            shown_in: None,
            description: attribute.description.to_string(),
        };
        (name.clone(), outlined)
    };
    let nested = |(name, nested): (&Arc<str>, &NestedBlock)| {
        let outlined = model::Attribute {
            kind: model::AttributeType::Any,
            required: false,
            optional: true,
            computed: false,
            sensitive: false,
            shown_in: None,
            description: nested.block.description.to_string(),
        };
        (name.clone(), outlined)
    };
    let attributes = schema.block.attributes().iter().map(attribute);
    model::Schema {
        version: schema.version.max(0).unsigned_abs(),
        attributes: attributes.chain(schema.block.blocks().iter().map(nested)).collect(),
    }
}
