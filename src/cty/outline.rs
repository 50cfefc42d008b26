//! A schema as the engine needs it: the first level, in the engine's types.

use super::Type;
use super::schema::{Attribute, Nesting, Schema, Shape};
use crate::model::{self, AttributeType};

impl Schema {
    /// The outline of the schema. Blocks are attributes that may be configured; what is inside of them and of nested
    /// attributes the driver checks itself, see [`super::conform`].
    pub fn outline(&self) -> model::Schema {
        let attributes = self.block.attributes().iter().map(|(name, attribute)| (name.clone(), outline(attribute)));
        let blocks = self.block.blocks().iter().map(|(name, nested)| {
            let attribute = model::Attribute {
                kind: collection(nested.nesting),
                required: false,
                optional: true,
                computed: false,
                sensitive: false,
                shown_in: None,
                description: nested.block.description.to_string(),
            };
            (name.clone(), attribute)
        });
        let version = u64::try_from(self.version).unwrap_or_default();
        model::Schema { version, attributes: attributes.chain(blocks).collect() }
    }
}

fn outline(attribute: &Attribute) -> model::Attribute {
    model::Attribute {
        kind: match &attribute.shape {
            Shape::Plain(ty) => kind(ty),
            Shape::Nested(nested) => collection(nested.nesting),
        },
        required: attribute.required,
        optional: attribute.optional,
        computed: attribute.computed,
        sensitive: attribute.sensitive,
        shown_in: None,
        description: attribute.description.to_string(),
    }
}

fn kind(ty: &Type) -> AttributeType {
    match ty {
        Type::String => AttributeType::String,
        Type::Number => AttributeType::Number,
        Type::Bool => AttributeType::Bool,
        Type::List(element) | Type::Set(element) => AttributeType::List(Box::new(kind(element))),
        Type::Map(element) => AttributeType::Map(Box::new(kind(element))),
        Type::Tuple(_) => AttributeType::List(Box::new(AttributeType::Any)),
        Type::Object(_) => AttributeType::Map(Box::new(AttributeType::Any)),
        Type::Dynamic => AttributeType::Any,
    }
}

fn collection(nesting: Nesting) -> AttributeType {
    match nesting {
        Nesting::List | Nesting::Set => AttributeType::List(Box::new(AttributeType::Any)),
        Nesting::Single | Nesting::Group | Nesting::Map => AttributeType::Map(Box::new(AttributeType::Any)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cty::schema::tests::{block, nested, optional, required};

    #[test]
    fn the_first_level_is_told_in_the_types_of_the_engine() {
        let secret = Attribute { sensitive: true, ..required(Type::String) };
        let ports = optional(Type::Set(Arc::new(Type::Number)));
        let rule = nested(Nesting::List, block([("a", optional(Type::Bool))], []));
        let schema = Schema { version: 3, block: block([("ports", ports), ("secret", secret)], [("rule", rule)]) };
        let outline = schema.outline();
        assert_eq!(outline.version, 3);
        let kinds: Vec<_> = outline.attributes.iter().map(|(name, attribute)| (&**name, &attribute.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("ports", &AttributeType::List(Box::new(AttributeType::Number))),
                ("rule", &AttributeType::List(Box::new(AttributeType::Any))),
                ("secret", &AttributeType::String),
            ]
        );
        assert!(outline.attributes["secret"].sensitive && outline.attributes["secret"].required);
        assert!(outline.attributes["rule"].optional && !outline.attributes["rule"].required);
    }
}
