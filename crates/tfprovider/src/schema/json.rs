//! Schemas in the format of `terraform providers schema -json` and `tofu providers schema -json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::{Attribute, Block, DescriptionKind, NestedBlock, Nesting, Schema, Shape};

impl Schema {
    /// The schema with its version.
    pub fn to_json(&self) -> Json {
        json!({"version": self.version, "block": self.block.to_json()})
    }
}

impl Block {
    /// The block without the version of its schema.
    pub fn to_json(&self) -> Json {
        block(self)
    }
}

fn block(of: &Block) -> Json {
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
