//! The descriptions of the built-in types: their pages of the documentation, and their schemas.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::text;
use cty::Type;
use drivers::kubernetes_object::OwnerScope;
use drivers::{KubernetesObject, Registry};
use model::AttributeType;
use process::SystemClock;
use tfprovider::schema::{Attribute, Block, Shape};

const PAGES: [(&str, &str); 2] = [
    ("terraform_data", include_str!("../../../docs/types/terraform_data.md")),
    ("kubernetes_object", include_str!("../../../docs/types/kubernetes_object.md")),
];

/// Returns the page of a built-in type, for a terminal.
pub fn page(type_name: &str) -> Option<String> {
    PAGES.iter().find(|(name, _)| *name == type_name).map(|(_, page)| text::markdown(page))
}

/// Returns the schema of a built-in type or data source in the form of a provider's schema.
pub fn block(type_name: &str, data: bool) -> Option<Block> {
    let kubernetes = KubernetesObject::local(OwnerScope::Fixed("".into()), Arc::new(SystemClock));
    let drivers = Registry::built_in(kubernetes);
    let driver = drivers.get(type_name)?;
    let schema = if data { driver.data()?.data_schema(type_name, None)? } else { driver.schema(type_name, None)? };
    Some(Block::new(schema.attributes.iter().map(attribute).collect(), BTreeMap::new()))
}

fn attribute((name, attribute): (&Arc<str>, &model::Attribute)) -> (Arc<str>, Attribute) {
    let converted = Attribute {
        required: attribute.required,
        optional: attribute.optional,
        computed: attribute.computed,
        sensitive: attribute.sensitive,
        description: attribute.description.as_str().into(),
        ..Attribute::new(Shape::Plain(type_of(&attribute.kind)))
    };
    (name.clone(), converted)
}

fn type_of(kind: &AttributeType) -> Type {
    match kind {
        AttributeType::Any => Type::Dynamic,
        AttributeType::String => Type::String,
        AttributeType::Bool => Type::Bool,
        AttributeType::Number => Type::Number,
        AttributeType::List(element) => Type::list(type_of(element)),
        AttributeType::Map(element) => Type::map(type_of(element)),
        AttributeType::Set => Type::set(Type::Dynamic),
        AttributeType::Object(attributes) => {
            Type::object(attributes.iter().map(|(name, kind)| (name.clone(), type_of(kind))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::load::BUILT_IN;

    #[test]
    fn every_built_in_type_has_a_page_with_all_attributes() {
        for type_name in BUILT_IN {
            let page = page(type_name).expect("a page");
            let block = block(type_name, false).expect("a schema");
            assert!(!block.attributes().is_empty());
            for name in block.attributes().keys() {
                assert!(page.contains(&format!("\n  `{name}`\n")), "{type_name}: {name}");
            }
        }
    }
}
