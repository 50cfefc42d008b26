//! Removes arguments that a provider rejects from a reconstructed configuration.

use std::sync::Arc;

use super::is_empty;
use model::{Path, Segment, Value};
use tfprovider::schema::{Attribute, Block, NestedType, Shape};

/// The optional arguments to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Those with an empty value: older providers record one for an argument that is not set.
    Empty,
    /// Those that the provider also computes.
    Computed,
}

/// Returns the configuration without these arguments at the path and below.
pub fn without(block: &Block, config: &Value, at: &Path, dropped: Dropped) -> Value {
    in_block(block, config, &at.0, dropped)
}

fn in_block(block: &Block, config: &Value, at: &[Segment], dropped: Dropped) -> Value {
    let Value::Map(entries) = config.unmarked() else { return config.clone() };
    let (here, below) = match at.split_first() {
        Some((Segment::Name(name), rest)) => (Some(name), rest),
        _ => (None, at),
    };
    let kept = entries.iter().filter_map(|(name, value)| {
        if here.is_some_and(|here| here != name) {
            return Some((name.clone(), value.clone()));
        }
        match (block.attributes().get(name), block.blocks().get(name)) {
            (Some(attribute), _) => Some((name.clone(), attribute_without(attribute, value, dropped)?)),
            (None, Some(nested)) => {
                Some((name.clone(), in_items(value, below, &|item, at| in_block(&nested.block, item, at, dropped))))
            }
            (None, None) => Some((name.clone(), value.clone())),
        }
    });
    Value::map(kept)
}

fn attribute_without(attribute: &Attribute, value: &Value, dropped: Dropped) -> Option<Value> {
    let goes = match dropped {
        Dropped::Empty => is_empty(value),
        Dropped::Computed => attribute.computed,
    };
    if goes && !attribute.required {
        return None;
    }
    let Shape::Nested(nested) = &attribute.shape else { return Some(value.clone()) };
    Some(in_items(value, &[], &|item, _| object_without(nested, item, dropped)))
}

fn object_without(nested: &NestedType, object: &Value, dropped: Dropped) -> Value {
    let Value::Map(entries) = object.unmarked() else { return object.clone() };
    let kept = entries.iter().filter_map(|(name, value)| {
        let value = match nested.attributes().get(name) {
            Some(attribute) => attribute_without(attribute, value, dropped)?,
            None => value.clone(),
        };
        Some((name.clone(), value))
    });
    Value::map::<Arc<str>>(kept)
}

/// Applies `inner` to an object, or to the elements of a list that the path selects.
fn in_items(value: &Value, at: &[Segment], inner: &dyn Fn(&Value, &[Segment]) -> Value) -> Value {
    let (place, below) = match at.split_first() {
        Some((Segment::Index(place), rest)) => (Some(*place), rest),
        _ => (None, at),
    };
    match value.unmarked() {
        Value::List(items) => Value::list(items.iter().enumerate().map(|(at, item)| match place {
            Some(place) if place != at => item.clone(),
            _ => inner(item, below),
        })),
        Value::Map(_) => inner(value, below),
        other => other.clone(),
    }
}
