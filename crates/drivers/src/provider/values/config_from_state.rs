//! Generates a configuration from a state.
//!
//! A state does not say which values were configured and which the provider added. The caller chooses which
//! arguments are included, and lets the provider validate the result.

mod prune;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Value;
use tfprovider::schema::{Attribute, Block, NestedBlock, NestedType, Nesting, Shape};

pub use prune::{Dropped, without};

/// Which arguments of a state are included in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArgumentSelection {
    /// Every argument with a value.
    All,
    /// Arguments with a nonempty value: older providers record an empty value for an argument that is not set.
    NonEmpty,
    /// Arguments with a nonempty value that the provider does not compute.
    NotComputed,
}

/// Returns the configuration of a state, both as model values. Sensitive marks are preserved.
pub fn config_from_state(block: &Block, state: &Value, selection: ArgumentSelection) -> Value {
    // The `id` is assigned on creation, although older providers allow setting it.
    let mut arguments = of_block(block, state, selection);
    let computed_id = block.attributes().get("id").is_some_and(|id| id.computed && !id.required);
    if computed_id {
        arguments.remove("id");
    }
    Value::Map(arguments.into())
}

fn of_block(block: &Block, state: &Value, selection: ArgumentSelection) -> BTreeMap<Arc<str>, Value> {
    let mut arguments = of_attributes(block.attributes(), state, selection);
    for (name, nested) in block.blocks() {
        let Some(value) = state.get(name).and_then(|value| of_nested_block(nested, value, selection)) else { continue };
        arguments.insert(name.clone(), value);
    }
    arguments
}

fn of_attributes(
    attributes: &BTreeMap<Arc<str>, Attribute>,
    state: &Value,
    selection: ArgumentSelection,
) -> BTreeMap<Arc<str>, Value> {
    let arguments = attributes.iter().filter_map(|(name, attribute)| {
        let value = state.get(name).filter(|value| is_taken(attribute, value, selection))?;
        Some((name.clone(), of_attribute(attribute, value, selection)))
    });
    arguments.collect()
}

fn is_taken(attribute: &Attribute, value: &Value, selection: ArgumentSelection) -> bool {
    let required = attribute.required;
    let set = !matches!(value.unmarked(), Value::Null | Value::Unknown);
    // A manifest cannot express the type of a dynamic value that the provider computed.
    let inexpressible = attribute.computed && attribute.ty().has_dynamic();
    attribute.is_settable()
        && !attribute.write_only
        && set
        && (required || !inexpressible)
        && (required
            || !(attribute.computed && (attribute.deprecated.is_some() || selection == ArgumentSelection::NotComputed)))
        && (required || selection == ArgumentSelection::All || !is_empty(value))
}

fn is_empty(value: &Value) -> bool {
    match value.unmarked() {
        Value::Null | Value::Unknown | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.to_string() == "0",
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        Value::Bool(true) | Value::Sensitive(_) => false,
    }
}

fn of_attribute(attribute: &Attribute, value: &Value, selection: ArgumentSelection) -> Value {
    let Shape::Nested(nested) = &attribute.shape else { return value.clone() };
    let inner = of_objects(nested.nesting, value.unmarked(), &|item| of_object(nested, item, selection));
    if matches!(value, Value::Sensitive(_)) { inner.into_sensitive() } else { inner }
}

fn of_object(nested: &NestedType, value: &Value, selection: ArgumentSelection) -> Value {
    match value.unmarked() {
        Value::Map(_) => Value::Map(of_attributes(nested.attributes(), value, selection).into()),
        other => other.clone(),
    }
}

fn of_nested_block(nested: &NestedBlock, value: &Value, selection: ArgumentSelection) -> Option<Value> {
    let blocks = of_objects(nested.nesting, value.unmarked(), &|item| {
        Value::Map(of_block(&nested.block, item, selection).into())
    });
    // A block that was not configured is empty, or an object without values.
    Some(blocks).filter(|blocks| nested.min_items > 0 || !is_empty(blocks))
}

fn of_objects(nesting: Nesting, value: &Value, inner: &dyn Fn(&Value) -> Value) -> Value {
    match (nesting, value) {
        (Nesting::List | Nesting::Set, Value::List(items)) => Value::list(items.iter().map(inner)),
        (Nesting::Map, Value::Map(entries)) => Value::map(entries.iter().map(|(key, item)| (key.clone(), inner(item)))),
        (Nesting::Single | Nesting::Group, Value::Map(_)) => inner(value),
        (_, other) => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use cty::Type;

    use super::*;

    fn attribute(required: bool, optional: bool, computed: bool) -> Attribute {
        Attribute { required, optional, computed, ..Attribute::new(Shape::Plain(Type::String)) }
    }

    fn block() -> Block {
        let rule = Block::new(
            BTreeMap::from([
                ("port".into(), attribute(true, false, false)),
                ("arn".into(), attribute(false, false, true)),
            ]),
            BTreeMap::new(),
        );
        let rule = NestedBlock { nesting: Nesting::Set, block: rule, min_items: 0, max_items: 0 };
        let secret = Attribute { write_only: true, ..attribute(false, true, false) };
        let old = Attribute { deprecated: Some("".into()), ..attribute(false, true, true) };
        let attributes = BTreeMap::from([
            ("id".into(), attribute(false, true, true)),
            ("name".into(), attribute(true, false, false)),
            ("note".into(), attribute(false, true, false)),
            ("zone".into(), attribute(false, true, true)),
            ("old".into(), old),
            ("secret".into(), secret),
        ]);
        Block::new(attributes, BTreeMap::from([("rule".into(), rule)]))
    }

    #[test]
    fn computed_attributes_are_left_out() {
        let state = Value::from_json(json!({
            "id": "1", "name": "a", "note": "", "zone": "z", "old": "o", "secret": "s",
            "rule": [{"port": "80", "arn": "x"}],
        }));
        let made = |closeness| config_from_state(&block(), &state, closeness).to_json();
        let rule = json!([{"port": "80"}]);
        assert_eq!(made(ArgumentSelection::All), json!({"name": "a", "note": "", "zone": "z", "rule": rule}));
        assert_eq!(made(ArgumentSelection::NonEmpty), json!({"name": "a", "zone": "z", "rule": rule}));
        assert_eq!(made(ArgumentSelection::NotComputed), json!({"name": "a", "rule": rule}));
    }

    #[test]
    fn rejected_arguments_are_removed_below_their_path() {
        let config = Value::from_json(json!({"name": "", "note": "", "zone": "z", "rule": [{"port": "80"}]}));
        let made = |at: &[&str], dropped| without(&block(), &config, &model::Path::of(at), dropped).to_json();
        let rule = json!([{"port": "80"}]);
        assert_eq!(made(&["note"], Dropped::Empty), json!({"name": "", "zone": "z", "rule": rule}));
        assert_eq!(made(&["zone"], Dropped::Empty), config.to_json());
        assert_eq!(made(&[], Dropped::Computed), json!({"name": "", "note": "", "rule": rule}));
    }

    #[test]
    fn dynamic_values_that_the_provider_computes_are_left_out() {
        let any = Attribute { optional: true, computed: true, ..Attribute::new(Shape::Plain(Type::Dynamic)) };
        let block = Block::new(BTreeMap::from([("object".into(), any)]), BTreeMap::new());
        let state = Value::from_json(json!({"object": {"kind": "ConfigMap"}}));
        assert_eq!(config_from_state(&block, &state, ArgumentSelection::All).to_json(), json!({}));
    }

    #[test]
    fn sensitive_marks_are_kept_and_empty_blocks_are_left_out() {
        let state = Value::from_json(json!({"rule": []})).with("name", Value::from("a").into_sensitive());
        let made = config_from_state(&block(), &state, ArgumentSelection::All);
        assert_eq!(made, Value::map([("name", Value::from("a").into_sensitive())]));
    }
}
