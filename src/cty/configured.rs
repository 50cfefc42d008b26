//! From a state back to a configuration: what somebody may have written so that this came of it.
//!
//! A state does not say what was written and what the provider has added. An argument that the provider may set itself is
//! taken as written, so that it keeps its value; how much is taken that way is up to the caller, who can ask the provider
//! whether it accepts the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::schema::{Attribute, Block, NestedBlock, NestedType, Nesting, Shape};
use crate::model::Value;

/// How much of a state is taken as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closeness {
    /// Every argument that has a value.
    Whole,
    /// Not those that hold nothing: old providers keep an empty value for what nobody has set.
    WithoutEmpty,
    /// Nor those that the provider may set itself.
    Least,
}

/// The configuration of a state in the engine's form, with its sensitive marks.
pub fn configured(block: &Block, state: &Value, closeness: Closeness) -> Value {
    // What an object is called is found out by making it, though old providers let it be set.
    let mut found = of_block(block, state, closeness);
    let computed_id = block.attributes().get("id").is_some_and(|id| id.computed && !id.required);
    if computed_id {
        found.remove("id");
    }
    Value::Map(found.into())
}

fn of_block(block: &Block, state: &Value, closeness: Closeness) -> BTreeMap<Arc<str>, Value> {
    let mut found = of_attributes(block.attributes(), state, closeness);
    for (name, nested) in block.blocks() {
        let Some(value) = state.get(name).and_then(|value| of_nested_block(nested, value, closeness)) else { continue };
        found.insert(name.clone(), value);
    }
    found
}

fn of_attributes(
    attributes: &BTreeMap<Arc<str>, Attribute>,
    state: &Value,
    closeness: Closeness,
) -> BTreeMap<Arc<str>, Value> {
    let found = attributes.iter().filter_map(|(name, attribute)| {
        let value = state.get(name).filter(|value| is_taken(attribute, value, closeness))?;
        Some((name.clone(), of_attribute(attribute, value, closeness)))
    });
    found.collect()
}

fn is_taken(attribute: &Attribute, value: &Value, closeness: Closeness) -> bool {
    let own = attribute.required;
    let set = !matches!(value.unmarked(), Value::Null | Value::Unknown);
    attribute.is_settable()
        && !attribute.write_only
        && set
        && (own || !(attribute.computed && (attribute.deprecated.is_some() || closeness == Closeness::Least)))
        && (own || closeness == Closeness::Whole || !is_empty(value))
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

fn of_attribute(attribute: &Attribute, value: &Value, closeness: Closeness) -> Value {
    let Shape::Nested(nested) = &attribute.shape else { return value.clone() };
    let inner = of_objects(nested.nesting, value.unmarked(), &|item| of_object(nested, item, closeness));
    if matches!(value, Value::Sensitive(_)) { inner.into_sensitive() } else { inner }
}

fn of_object(nested: &NestedType, value: &Value, closeness: Closeness) -> Value {
    match value.unmarked() {
        Value::Map(_) => Value::Map(of_attributes(nested.attributes(), value, closeness).into()),
        other => other.clone(),
    }
}

fn of_nested_block(nested: &NestedBlock, value: &Value, closeness: Closeness) -> Option<Value> {
    let inner = |item: &Value| Value::Map(of_block(&nested.block, item, closeness).into());
    let found = of_objects(nested.nesting, value.unmarked(), &inner);
    // A block that was not written is empty, or an object in which nothing is set.
    Some(found).filter(|found| nested.min_items > 0 || !is_empty(found))
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

    use super::*;
    use crate::cty::Type;

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
    fn what_only_the_provider_sets_is_left_out() {
        let state = Value::from_json(json!({
            "id": "1", "name": "a", "note": "", "zone": "z", "old": "o", "secret": "s",
            "rule": [{"port": "80", "arn": "x"}],
        }));
        let made = |closeness| configured(&block(), &state, closeness).to_json();
        let rule = json!([{"port": "80"}]);
        assert_eq!(made(Closeness::Whole), json!({"name": "a", "note": "", "zone": "z", "rule": rule}));
        assert_eq!(made(Closeness::WithoutEmpty), json!({"name": "a", "zone": "z", "rule": rule}));
        assert_eq!(made(Closeness::Least), json!({"name": "a", "rule": rule}));
    }

    #[test]
    fn what_was_marked_stays_marked_and_no_block_is_none() {
        let state = Value::from_json(json!({"rule": []})).with("name", Value::from("a").into_sensitive());
        let made = configured(&block(), &state, Closeness::Whole);
        assert_eq!(made, Value::map([("name", Value::from("a").into_sensitive())]));
    }
}
