//! Conversion between cty values and the untyped values of [`model`] that records hold, without loss.

use super::convert::{Converter, Source};
use super::schema::{Attribute, Block, NestedType, Nesting, Shape};
use super::{DynamicTypes, Type, Value, ValueError, nested, strings};
use model::Segment;

/// Converts to a model value. Attributes that the schema declares sensitive are marked, sets become lists in canonical
/// order.
pub fn to_model(block: &Block, value: &Value) -> model::Value {
    let Value::Object(entries) = value else { return to_unmarked_model(value) };
    let marked = entries.iter().map(|(name, item)| {
        let item = match (block.attributes().get(name), block.blocks().get(name)) {
            (Some(attribute), _) => attribute_to_model(attribute, item),
            (None, Some(nested)) => {
                nested_to_model(nested.nesting, nested.block.ty(), item, &|item| to_model(&nested.block, item))
            }
            (None, None) => to_unmarked_model(item),
        };
        (name.clone(), item)
    });
    model::Value::map(marked)
}

fn attribute_to_model(attribute: &Attribute, value: &Value) -> model::Value {
    match &attribute.shape {
        // A null does not reveal anything.
        _ if attribute.sensitive && !value.is_null() => to_unmarked_model(value).into_sensitive(),
        Shape::Nested(nested) => {
            nested_to_model(nested.nesting, nested.element(), value, &|item| object_to_model(nested, item))
        }
        Shape::Plain(_) => to_unmarked_model(value),
    }
}

fn object_to_model(nested: &NestedType, value: &Value) -> model::Value {
    let Value::Object(entries) = value else { return to_unmarked_model(value) };
    let marked = entries.iter().map(|(name, item)| {
        let item = nested
            .attributes()
            .get(name)
            .map_or_else(|| to_unmarked_model(item), |inner| attribute_to_model(inner, item));
        (name.clone(), item)
    });
    model::Value::map(marked)
}

fn nested_to_model(
    nesting: Nesting,
    element: &Type,
    value: &Value,
    convert: &dyn Fn(&Value) -> model::Value,
) -> model::Value {
    match nesting {
        _ if value.is_null() || value.is_unknown() => to_unmarked_model(value),
        Nesting::Single | Nesting::Group => convert(value),
        Nesting::List | Nesting::Set => model::Value::list(nested::items(value, element).iter().map(convert)),
        Nesting::Map => {
            let entries = nested::entries(value, element);
            model::Value::map(entries.iter().map(|(key, item)| (key.clone(), convert(item))))
        }
    }
}

/// Converts to a model value without sensitive marks.
pub fn to_unmarked_model(value: &Value) -> model::Value {
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
        Value::List(items) | Value::Tuple(items) => model::Value::list(items.iter().map(to_unmarked_model)),
        Value::Set(items) => model::Value::list(items.iter().map(to_unmarked_model)),
        Value::Map(entries) | Value::Object(entries) => {
            model::Value::map(entries.iter().map(|(key, item)| (key.clone(), to_unmarked_model(item))))
        }
        Value::Dynamic(typed) => to_unmarked_model(&typed.value),
    }
}

/// Converts a recorded model value back, with the types that it had at dynamic positions. Missing attributes become
/// null, and attributes that the type does not have are dropped.
pub fn from_model(ty: &Type, value: &model::Value, types: &DynamicTypes) -> Result<Value, ValueError> {
    let mut converter = Converter::new(Source::Record(types));
    let value = converter.convert(value, ty);
    match converter.problems.into_iter().next() {
        Some(problem) => Err(ValueError { path: problem.path, what: problem.what }),
        None => Ok(value),
    }
}

/// Returns a state as JSON for the provider to upgrade. The schema that it was written with is not needed.
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
        model::Value::String(string) => strings::write_json(string, out),
        model::Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                at.push(Segment::Index(index));
                write_raw(item, types, at, out);
                at.pop();
            }
            out.push(']');
        }
        model::Value::Map(entries) => {
            out.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                strings::write_json(key, out);
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
