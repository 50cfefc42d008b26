//! Schemas in the format of `terraform providers schema -json` and `tofu providers schema -json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::Schemas;
use tfprovider::plugin::{IdentitySchema, InvalidSchema};
use tfprovider::schema::{Attribute, Block, DescriptionKind, NestedBlock, Nesting, Schema, Shape};

pub(crate) fn document(source: &str, schemas: &Schemas) -> Result<Json, InvalidSchema> {
    let schema = &schemas.provider;
    let mut resources = Map::new();
    for name in schema.resource_types() {
        resources.extend(schema.resource(name)?.map(|schema| (name.to_owned(), schema_json(&schema))));
    }
    let mut data_sources = Map::new();
    for name in schema.data_source_types() {
        data_sources.extend(schema.data_source(name)?.map(|schema| (name.to_owned(), schema_json(&schema))));
    }
    let identities = schemas.identities.iter().map(|(name, schema)| (name.clone(), identity(schema))).collect();
    let mut provider = Map::from_iter([("provider".to_owned(), schema_json(&schema.provider()?))]);
    let kinds = [
        ("resource_schemas", resources),
        ("data_source_schemas", data_sources),
        ("resource_identity_schemas", identities),
    ];
    let kinds = kinds.into_iter().filter(|(_, schemas)| !schemas.is_empty());
    provider.extend(kinds.map(|(name, schemas)| (name.to_owned(), Json::Object(schemas))));
    Ok(json!({"format_version": "1.0", "provider_schemas": {source: provider}}))
}

fn identity(schema: &IdentitySchema) -> Json {
    let mut attributes = Map::new();
    for attribute in &schema.attributes {
        let ty = serde_json::from_slice(&attribute.r#type).unwrap_or_default();
        let mut object = Map::from_iter([("type".to_owned(), ty)]);
        if !attribute.description.is_empty() {
            object.insert("description".into(), json!(attribute.description));
        }
        flag(&mut object, "required_for_import", attribute.required_for_import);
        flag(&mut object, "optional_for_import", attribute.optional_for_import);
        attributes.insert(attribute.name.clone(), Json::Object(object));
    }
    json!({"version": schema.version, "attributes": attributes})
}

fn schema_json(schema: &Schema) -> Json {
    json!({"version": schema.version, "block": block(&schema.block)})
}

/// A block.
pub fn block(of: &Block) -> Json {
    let mut object = Map::new();
    if !of.attributes().is_empty() {
        object.insert("attributes".into(), attributes(of.attributes()));
    }
    if !of.blocks().is_empty() {
        let blocks = of.blocks().iter().map(|(name, nested)| (name.to_string(), nested_block(nested)));
        object.insert("block_types".into(), Json::Object(blocks.collect()));
    }
    describe(&mut object, &of.description, of.description_kind);
    deprecate(&mut object, of.deprecated.as_deref());
    Json::Object(object)
}

fn attributes(of: &BTreeMap<Arc<str>, Attribute>) -> Json {
    Json::Object(of.iter().map(|(name, of)| (name.to_string(), attribute(of))).collect())
}

fn attribute(of: &Attribute) -> Json {
    let mut object = Map::new();
    match &of.shape {
        Shape::Nested(nested) => {
            let nested = json!({"attributes": attributes(nested.attributes()), "nesting_mode": mode(nested.nesting)});
            object.insert("nested_type".into(), nested);
        }
        Shape::Plain(ty) => drop(object.insert("type".into(), serde_json::from_str(&ty.to_json()).unwrap_or_default())),
    }
    describe(&mut object, &of.description, of.description_kind);
    flag(&mut object, "required", of.required);
    flag(&mut object, "optional", of.optional);
    flag(&mut object, "computed", of.computed);
    flag(&mut object, "sensitive", of.sensitive);
    flag(&mut object, "write_only", of.write_only);
    deprecate(&mut object, of.deprecated.as_deref());
    Json::Object(object)
}

fn nested_block(of: &NestedBlock) -> Json {
    let mut object = Map::new();
    object.insert("nesting_mode".into(), json!(mode(of.nesting)));
    object.insert("block".into(), block(&of.block));
    for (name, count) in [("min_items", of.min_items), ("max_items", of.max_items)] {
        if count > 0 {
            object.insert(name.into(), json!(count));
        }
    }
    Json::Object(object)
}

fn describe(object: &mut Map<String, Json>, description: &str, kind: DescriptionKind) {
    if !description.is_empty() {
        object.insert("description".into(), json!(description));
    }
    let kind = match kind {
        DescriptionKind::Plain => "plain",
        DescriptionKind::Markdown => "markdown",
    };
    object.insert("description_kind".into(), json!(kind));
}

fn deprecate(object: &mut Map<String, Json>, message: Option<&str>) {
    flag(object, "deprecated", message.is_some());
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        object.insert("deprecation_message".into(), json!(message));
    }
}

fn flag(object: &mut Map<String, Json>, name: &str, is_set: bool) {
    if is_set {
        object.insert(name.to_owned(), json!(true));
    }
}

fn mode(nesting: Nesting) -> &'static str {
    match nesting {
        Nesting::Single => "single",
        Nesting::Group => "group",
        Nesting::List => "list",
        Nesting::Set => "set",
        Nesting::Map => "map",
    }
}
