//! The descriptions of the built-in types: their pages of the documentation, and their schemas.

use std::sync::Arc;

use super::text;
use drivers::kubernetes_object::OwnerScope;
use drivers::{KubernetesObject, Registry};
use model::{AttributeType, Schema};
use process::SystemClock;
use tfprovider::plugin::schema::{Attribute, Block};

const PAGES: [(&str, &str); 2] = [
    ("terraform_data", include_str!("../../../docs/types/terraform_data.md")),
    ("kubernetes_object", include_str!("../../../docs/types/kubernetes_object.md")),
];

/// Returns the page of a built-in type, for a terminal.
pub(super) fn page(type_name: &str) -> Option<String> {
    PAGES.iter().find(|(name, _)| *name == type_name).map(|(_, page)| text::markdown(page))
}

/// Returns the schema of a built-in type or data source in the form of a provider's schema.
pub(super) fn block(type_name: &str, data: bool) -> Option<Block> {
    let kubernetes = KubernetesObject::local(OwnerScope::Fixed("".into()), Arc::new(SystemClock));
    let drivers = Registry::built_in(kubernetes);
    let driver = drivers.get(type_name)?;
    let schema = if data { driver.data()?.data_schema(type_name, None)? } else { driver.schema(type_name, None)? };
    Some(Block { attributes: attributes(&schema), ..Block::default() })
}

fn attributes(schema: &Schema) -> Vec<Attribute> {
    let attribute = |(name, attribute): (&Arc<str>, &model::Attribute)| Attribute {
        name: name.to_string(),
        r#type: type_json(&attribute.kind).to_string().into_bytes(),
        description: attribute.description.clone(),
        required: attribute.required,
        optional: attribute.optional,
        computed: attribute.computed,
        sensitive: attribute.sensitive,
        ..Attribute::default()
    };
    schema.attributes.iter().map(attribute).collect()
}

/// The type in the JSON form of cty.
fn type_json(kind: &AttributeType) -> serde_json::Value {
    match kind {
        AttributeType::Any => "dynamic".into(),
        AttributeType::String => "string".into(),
        AttributeType::Bool => "bool".into(),
        AttributeType::Number => "number".into(),
        AttributeType::List(element) => serde_json::json!(["list", type_json(element)]),
        AttributeType::Map(element) => serde_json::json!(["map", type_json(element)]),
        AttributeType::Set => serde_json::json!(["set", "dynamic"]),
        AttributeType::Object(attributes) => {
            let types = attributes.iter().map(|(name, kind)| (name.to_string(), type_json(kind)));
            serde_json::json!(["object", types.collect::<serde_json::Map<_, _>>()])
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
            assert!(!block.attributes.is_empty());
            for attribute in block.attributes {
                assert!(page.contains(&format!("\n  `{}`\n", attribute.name)), "{type_name}: {}", attribute.name);
            }
        }
    }
}
