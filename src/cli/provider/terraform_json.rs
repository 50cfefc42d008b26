//! Schemas in the format of `terraform providers schema -json` and `tofu providers schema -json`.

use serde_json::{Map, Value as Json, json};

use super::Schemas;
use tfprovider::plugin::{IdentitySchema, InvalidSchema};

pub(crate) fn document(source: &str, schemas: &Schemas) -> Result<Json, InvalidSchema> {
    let schema = &schemas.provider;
    let mut resources = Map::new();
    for name in schema.resource_types() {
        resources.extend(schema.resource(name)?.map(|schema| (name.to_owned(), schema.to_json())));
    }
    let mut data_sources = Map::new();
    for name in schema.data_source_types() {
        data_sources.extend(schema.data_source(name)?.map(|schema| (name.to_owned(), schema.to_json())));
    }
    let identities = schemas.identities.iter().map(|(name, schema)| (name.clone(), identity(schema))).collect();
    let mut provider = Map::from_iter([("provider".to_owned(), schema.provider()?.to_json())]);
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

fn flag(object: &mut Map<String, Json>, name: &str, is_set: bool) {
    if is_set {
        object.insert(name.to_owned(), json!(true));
    }
}
