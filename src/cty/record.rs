//! Values on record: the engine keeps them without types, and gets them back without loss.

use super::convert::{Converter, From};
use super::schema::{Attribute, Block, NestedType, Nesting, Shape};
use super::{DynamicTypes, Type, Value, ValueError, nested, text};
use crate::model::{self, Segment};

/// The value as the engine has it: what the schema calls sensitive is marked, sets are lists in their canonical order.
pub fn to_engine(block: &Block, value: &Value) -> model::Value {
    let Value::Object(entries) = value else { return plain(value) };
    let marked = entries.iter().map(|(name, item)| {
        let item = match (block.attributes().get(name), block.blocks().get(name)) {
            (Some(attribute), _) => attribute_to_engine(attribute, item),
            (None, Some(nested)) => {
                nested_to_engine(nested.nesting, nested.block.ty(), item, &|item| to_engine(&nested.block, item))
            }
            (None, None) => plain(item),
        };
        (name.clone(), item)
    });
    model::Value::map(marked)
}

fn attribute_to_engine(attribute: &Attribute, value: &Value) -> model::Value {
    match &attribute.shape {
        // That nothing is set is no secret.
        _ if attribute.sensitive && !value.is_null() => plain(value).into_sensitive(),
        Shape::Nested(nested) => {
            nested_to_engine(nested.nesting, nested.element(), value, &|item| object_to_engine(nested, item))
        }
        Shape::Plain(_) => plain(value),
    }
}

fn object_to_engine(nested: &NestedType, value: &Value) -> model::Value {
    let Value::Object(entries) = value else { return plain(value) };
    let marked = entries.iter().map(|(name, item)| {
        let item = nested.attributes().get(name).map_or_else(|| plain(item), |inner| attribute_to_engine(inner, item));
        (name.clone(), item)
    });
    model::Value::map(marked)
}

fn nested_to_engine(
    nesting: Nesting,
    element: &Type,
    value: &Value,
    convert: &dyn Fn(&Value) -> model::Value,
) -> model::Value {
    match nesting {
        _ if value.is_null() || value.is_unknown() => plain(value),
        Nesting::Single | Nesting::Group => convert(value),
        Nesting::List | Nesting::Set => model::Value::list(nested::items(value, element).iter().map(convert)),
        Nesting::Map => {
            let entries = nested::entries(value, element);
            model::Value::map(entries.iter().map(|(key, item)| (key.clone(), convert(item))))
        }
    }
}

/// The value as the engine has it, nothing of it marked.
pub fn plain(value: &Value) -> model::Value {
    match value {
        Value::Null => model::Value::Null,
        Value::Unknown(_) => model::Value::Unknown,
        Value::Bool(bool) => model::Value::Bool(*bool),
        Value::Number(super::Decimal::Int(int)) => model::Value::Number(model::Number::Int(*int)),
        Value::Number(number) => {
            let text = number.to_string();
            let kept = model::Number::parse(&text).unwrap_or_else(|| model::Number::Decimal(text.into()));
            model::Value::Number(kept)
        }
        Value::String(string) => model::Value::String(string.clone()),
        Value::List(items) | Value::Tuple(items) => model::Value::list(items.iter().map(plain)),
        Value::Set(items) => model::Value::list(items.iter().map(plain)),
        Value::Map(entries) | Value::Object(entries) => {
            model::Value::map(entries.iter().map(|(key, item)| (key.clone(), plain(item))))
        }
        Value::Dynamic(typed) => plain(&typed.value),
    }
}

/// The value that the engine has kept, with the types it had at dynamic places. Attributes that are missing are null, and
/// those that the type does not have are left out.
pub fn from_engine(ty: &Type, value: &model::Value, types: &DynamicTypes) -> Result<Value, ValueError> {
    let mut converter = Converter::new(From::Record(types));
    let value = converter.convert(value, ty);
    match converter.problems.into_iter().next() {
        Some(problem) => Err(ValueError { path: problem.path, what: problem.what }),
        None => Ok(value),
    }
}

/// The state that an earlier schema left, as JSON for the provider to upgrade: that schema is not needed for it.
pub fn raw_state(value: &model::Value, types: &DynamicTypes) -> String {
    let mut out = String::with_capacity(256);
    write_raw(value, types, &mut Vec::new(), &mut out);
    out
}

fn write_raw(value: &model::Value, types: &DynamicTypes, at: &mut Vec<Segment>, out: &mut String) {
    let ty = types.at(at);
    if ty.is_some() {
        out.push_str("{\"value\":");
    }
    match value.unmarked() {
        model::Value::Null | model::Value::Unknown | model::Value::Sensitive(_) => out.push_str("null"),
        model::Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        model::Value::Number(number) => out.push_str(&number.to_string()),
        model::Value::String(string) => text::write_json(string, out),
        model::Value::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                at.push(Segment::Index(place));
                write_raw(item, types, at, out);
                at.pop();
            }
            out.push(']');
        }
        model::Value::Map(entries) => {
            out.push('{');
            for (place, (key, item)) in entries.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                text::write_json(key, out);
                out.push(':');
                at.push(Segment::Name(key.clone()));
                write_raw(item, types, at, out);
                at.pop();
            }
            out.push('}');
        }
    }
    if let Some(ty) = ty {
        out.push_str(",\"type\":");
        out.push_str(&ty.to_json());
        out.push('}');
    }
}

#[cfg(test)]
mod tests;
