//! The JSON Schema of `spec.config` of a type, for editors. Every value can also be an expression.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use cty::Type;
use tfprovider::schema::{Attribute, Block, NestedBlock, Nesting, Shape};

pub fn document(type_name: &str, block: &Block) -> Json {
    let mut document = object(block);
    document["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    document["title"] = json!(format!("spec.config of {type_name}"));
    document["$defs"] = json!({"expression": {"type": "string", "pattern": "\\$\\{"}});
    document
}

fn object(block: &Block) -> Json {
    let (mut properties, mut required) = attributes(block.attributes());
    for (name, nested) in block.blocks() {
        properties.insert(name.to_string(), or_expression(nested_block(nested)));
        if nested.min_items > 0 {
            required.push(json!(name));
        }
    }
    let mut object = object_schema(properties, required);
    describe(&mut object, &block.description, block.deprecated.is_some());
    object
}

fn object_schema(properties: Map<String, Json>, required: Vec<Json>) -> Json {
    let mut object = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        object["required"] = Json::Array(required);
    }
    object
}

/// The settable attributes, and the names of the required ones.
fn attributes(all: &BTreeMap<Arc<str>, Attribute>) -> (Map<String, Json>, Vec<Json>) {
    let settable = all.iter().filter(|(_, attribute)| attribute.is_settable());
    let properties = settable.map(|(name, of)| (name.to_string(), attribute(of)));
    let required = all.iter().filter(|(_, attribute)| attribute.required).map(|(name, _)| json!(name));
    (properties.collect(), required.collect())
}

fn attribute(of: &Attribute) -> Json {
    let value = match &of.shape {
        Shape::Nested(nested) => {
            let (properties, required) = attributes(nested.attributes());
            nest(nested.nesting, object_schema(properties, required))
        }
        Shape::Plain(ty) => value(ty),
    };
    let mut schema = or_expression(value);
    describe(&mut schema, &of.description, of.deprecated.is_some());
    if of.write_only {
        schema["writeOnly"] = json!(true);
    }
    schema
}

fn nested_block(of: &NestedBlock) -> Json {
    let mut schema = nest(of.nesting, object(&of.block));
    if matches!(of.nesting, Nesting::List | Nesting::Set) {
        for (name, count) in [("minItems", of.min_items), ("maxItems", of.max_items)] {
            if count > 0 {
                schema[name] = json!(count);
            }
        }
    }
    schema
}

fn nest(nesting: Nesting, object: Json) -> Json {
    match nesting {
        Nesting::Single | Nesting::Group => object,
        Nesting::List | Nesting::Set => json!({"type": "array", "items": or_expression(object)}),
        Nesting::Map => json!({"type": "object", "additionalProperties": or_expression(object)}),
    }
}

fn value(ty: &Type) -> Json {
    match ty {
        Type::String => json!({"type": ["string", "number", "boolean"]}),
        Type::Number => json!({"type": "number"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Dynamic => json!({}),
        Type::List(element) | Type::Set(element) => json!({"type": "array", "items": or_expression(value(element))}),
        Type::Map(element) => json!({"type": "object", "additionalProperties": or_expression(value(element))}),
        Type::Tuple(elements) => {
            let items: Vec<Json> = elements.iter().map(|element| or_expression(value(element))).collect();
            json!({"type": "array", "prefixItems": items, "items": false})
        }
        Type::Object(object) => {
            let each = object.attributes.iter().map(|(name, ty)| (name.to_string(), or_expression(value(ty))));
            json!({"type": "object", "properties": each.collect::<Map<_, _>>(), "additionalProperties": false})
        }
    }
}

/// A schema that allows any value or any string already allows expressions.
fn or_expression(value: Json) -> Json {
    let is_open = value.as_object().is_some_and(Map::is_empty)
        || value["type"].as_array().is_some_and(|types| types.contains(&json!("string")));
    if is_open { value } else { json!({"anyOf": [value, {"$ref": "#/$defs/expression"}]}) }
}

fn describe(schema: &mut Json, description: &str, deprecated: bool) {
    if !description.is_empty() {
        schema["description"] = json!(description);
    }
    if deprecated {
        schema["deprecated"] = json!(true);
    }
}
