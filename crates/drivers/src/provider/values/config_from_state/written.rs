//! Restricts the value of a state to the arguments that a configuration sets, at every depth.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ArgumentSelection, of_attribute, of_nested_block};
use model::Value;
use tfprovider::schema::{Attribute, Block, NestedBlock, NestedType, Nesting, Shape};

/// The arguments of a block or of an object that a configuration sets.
pub type WrittenArguments = BTreeMap<Arc<str>, Written>;

/// An argument that a configuration sets.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// What it contains is not known.
    Whole,
    /// It has this value.
    Constant(Value),
    /// A block or an object.
    Object(WrittenArguments),
    /// A list, or the blocks of one type.
    List(Vec<Written>),
    /// Each element sets the same arguments, as with a `dynamic` block.
    Each(Box<Written>),
}

/// Returns the configuration of a state, with only the arguments that the configuration sets. The elements of a set have
/// the order of the configuration. A write-only argument, which no state contains, has its constant, or is null.
pub fn config_as_written(block: &Block, state: &Value, written: &WrittenArguments) -> Value {
    Value::Map(of_block(block, state, written).into())
}

fn of_block(block: &Block, state: &Value, written: &WrittenArguments) -> BTreeMap<Arc<str>, Value> {
    let mut found = of_attributes(block.attributes(), state, written);
    for (name, nested) in block.blocks() {
        let (Some(written), Some(value)) = (written.get(name), state.get(name)) else { continue };
        if let Some(value) = of_blocks(nested, value, written) {
            found.insert(name.clone(), value);
        }
    }
    found
}

fn of_attributes(
    attributes: &BTreeMap<Arc<str>, Attribute>,
    state: &Value,
    written: &WrittenArguments,
) -> BTreeMap<Arc<str>, Value> {
    let value = |(name, attribute): (&Arc<str>, &Attribute)| {
        let value = written_attribute(attribute, state.get(name), written.get(name)?)?;
        Some((name.clone(), value))
    };
    attributes.iter().filter_map(value).collect()
}

fn written_attribute(attribute: &Attribute, value: Option<&Value>, written: &Written) -> Option<Value> {
    if !attribute.is_settable() {
        return None;
    }
    match written {
        Written::Constant(Value::Null) => return None,
        Written::Constant(constant) if attribute.write_only => return Some(constant.clone().into_sensitive()),
        _ if attribute.write_only => return Some(Value::Null),
        _ => {}
    }
    let value = value.filter(|value| !matches!(value.unmarked(), Value::Null | Value::Unknown))?;
    let Shape::Nested(nested) = &attribute.shape else { return Some(value.clone()) };
    let inner = |item: &Value, written: &Written| of_object(nested, item, written);
    let found = of_elements(nested.nesting, value.unmarked(), written, &inner)
        .unwrap_or_else(|| of_attribute(attribute, value, ArgumentSelection::All));
    Some(if matches!(value, Value::Sensitive(_)) { found.into_sensitive() } else { found })
}

fn of_object(nested: &NestedType, value: &Value, written: &Written) -> Value {
    match (value.unmarked(), written.object()) {
        (Value::Map(_), Some(written)) => Value::Map(of_attributes(nested.attributes(), value, &written).into()),
        _ => super::of_object(nested, value, ArgumentSelection::All),
    }
}

fn of_blocks(nested: &NestedBlock, value: &Value, written: &Written) -> Option<Value> {
    let all = |item: &Value| Value::Map(super::of_block(&nested.block, item, ArgumentSelection::All).into());
    let inner = |item: &Value, written: &Written| match written.object() {
        Some(written) => Value::Map(of_block(&nested.block, item, &written).into()),
        None => all(item),
    };
    of_elements(nested.nesting, value.unmarked(), written, &inner)
        .or_else(|| of_nested_block(nested, value, ArgumentSelection::All))
}

/// `None`: the configuration does not determine the elements.
fn of_elements(
    nesting: Nesting,
    value: &Value,
    written: &Written,
    inner: &dyn Fn(&Value, &Written) -> Value,
) -> Option<Value> {
    match (nesting, value) {
        (Nesting::List | Nesting::Set, Value::List(items)) => {
            let found: Vec<Value> = match (written, written.items()) {
                (Written::Each(written), _) => items.iter().map(|item| inner(item, written)).collect(),
                (_, Some(written)) if written.len() == items.len() && nesting == Nesting::List => {
                    items.iter().zip(&written).map(|(item, written)| inner(item, written)).collect()
                }
                (_, Some(written)) if written.len() == items.len() => in_written_order(items, &written, inner),
                (_, Some(written)) => {
                    let all = Written::any_of(&written);
                    items.iter().map(|item| inner(item, &all)).collect()
                }
                // One block can be written without a list.
                (Written::Object(_), None) => items.iter().map(|item| inner(item, written)).collect(),
                _ => return None,
            };
            Some(Value::list(found))
        }
        (Nesting::Map, Value::Map(entries)) => {
            let written = written.object()?;
            let entry = |(key, item): (&Arc<str>, &Value)| {
                (key.clone(), inner(item, written.get(key).unwrap_or(&Written::Whole)))
            };
            Some(Value::map(entries.iter().map(entry)))
        }
        (Nesting::Single | Nesting::Group, Value::Map(_)) => match written.items() {
            Some(items) => Some(inner(value, items.first()?)),
            None => Some(inner(value, written)),
        },
        (_, other) => Some(other.clone()),
    }
}

/// The elements of a set, each at the place of the written element with the same constants.
fn in_written_order(items: &[Value], written: &[Written], inner: &dyn Fn(&Value, &Written) -> Value) -> Vec<Value> {
    let mut open: Vec<&Value> = items.iter().collect();
    let take = |written: &Written| {
        let at = open.iter().position(|item| written.matches(item)).unwrap_or(0);
        inner(open.remove(at), written)
    };
    written.iter().map(take).collect()
}

impl Written {
    /// The arguments of an object. `None`: they are not known.
    fn object(&self) -> Option<WrittenArguments> {
        match self {
            Self::Object(written) => Some(written.clone()),
            Self::Constant(Value::Map(entries)) => {
                Some(entries.iter().map(|(key, value)| (key.clone(), Self::Constant(value.clone()))).collect())
            }
            // A list with one element is a block.
            Self::List(items) => items.first().filter(|_| items.len() == 1)?.object(),
            Self::Whole | Self::Constant(_) | Self::Each(_) => None,
        }
    }

    fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items.clone()),
            Self::Constant(Value::List(items)) => Some(items.iter().cloned().map(Self::Constant).collect()),
            Self::Whole | Self::Constant(_) | Self::Object(_) | Self::Each(_) => None,
        }
    }

    /// The arguments that any of these sets.
    pub fn any_of(all: &[Self]) -> Self {
        let mut merged = WrittenArguments::new();
        for one in all {
            let Some(written) = one.object() else { return Self::Whole };
            for (name, written) in written {
                let both = match merged.remove(&name) {
                    Some(other) if other != written => Self::any_of(&[other, written]),
                    _ => written,
                };
                merged.insert(name, both);
            }
        }
        Self::Object(merged)
    }

    /// Whether the value has all its constants.
    fn matches(&self, value: &Value) -> bool {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_json_text(), str::to_owned);
        match self {
            Self::Constant(constant) => *constant == Value::Null || text(constant) == text(&value.without_marks()),
            Self::Object(written) => {
                written.iter().all(|(name, one)| one.matches(value.get(name).unwrap_or(&Value::Null)))
            }
            Self::Whole | Self::List(_) | Self::Each(_) => true,
        }
    }
}
