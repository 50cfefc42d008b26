//! Conversion between cty values and the untyped values of [`model`] that records hold, without loss.

use cty::{Data, Error, Type, Value, json};

use super::convert::{Converter, Source};
use super::{DynamicTypes, provider_path};
use model::Segment;
use tfprovider::schema::{Attribute, Block, NestedType, Nesting, Shape};

/// Converts to a model value. Attributes that the schema declares sensitive are marked, sets become lists in canonical
/// order.
pub fn to_model(block: &Block, value: &Value) -> model::Value {
    let Some(entries) = value.as_entries() else { return to_unmarked_model(value) };
    let marked = entries.iter().map(|(name, item)| {
        let item = match (block.attributes().get(name), block.blocks().get(name)) {
            (Some(attribute), _) => attribute_to_model(attribute, item),
            (None, Some(nested)) => nested_to_model(nested.nesting, item, &|item| to_model(&nested.block, item)),
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
        Shape::Nested(nested) => nested_to_model(nested.nesting, value, &|item| object_to_model(nested, item)),
        Shape::Plain(_) => to_unmarked_model(value),
    }
}

fn object_to_model(nested: &NestedType, value: &Value) -> model::Value {
    let Some(entries) = value.as_entries() else { return to_unmarked_model(value) };
    let marked = entries.iter().map(|(name, item)| {
        let item = nested
            .attributes()
            .get(name)
            .map_or_else(|| to_unmarked_model(item), |inner| attribute_to_model(inner, item));
        (name.clone(), item)
    });
    model::Value::map(marked)
}

fn nested_to_model(nesting: Nesting, value: &Value, convert: &dyn Fn(&Value) -> model::Value) -> model::Value {
    match (nesting, value.data()) {
        (Nesting::Single | Nesting::Group, Data::Entries(_)) => convert(value),
        (_, Data::Items(items)) => model::Value::list(items.iter().map(convert)),
        (_, Data::Entries(entries)) => {
            model::Value::map(entries.iter().map(|(key, item)| (key.clone(), convert(item))))
        }
        _ => to_unmarked_model(value),
    }
}

/// Converts to a model value without sensitive marks.
pub fn to_unmarked_model(value: &Value) -> model::Value {
    match value.data() {
        Data::Null => model::Value::Null,
        Data::Unknown(_) => model::Value::Unknown,
        Data::Bool(bool) => model::Value::Bool(*bool),
        Data::Number(number) => model::Value::Number(match number.to_i64() {
            Some(int) => model::Number::Int(int),
            None => {
                let text = number.to_string();
                model::Number::parse(&text).unwrap_or_else(|| model::Number::Decimal(text.into()))
            }
        }),
        Data::String(string) => model::Value::String(string.clone()),
        Data::Items(items) => model::Value::list(items.iter().map(to_unmarked_model)),
        Data::Entries(entries) => {
            model::Value::map(entries.iter().map(|(key, item)| (key.clone(), to_unmarked_model(item))))
        }
    }
}

/// Converts a recorded model value back, with the types that it had at dynamic positions. Missing attributes become
/// null, and attributes that the type does not have are dropped.
pub fn from_model(ty: &Type, value: &model::Value, types: &DynamicTypes) -> Result<Value, Error> {
    let mut converter = Converter::new(Source::Record(types));
    let value = converter.convert(value, ty);
    match converter.problems.into_iter().next() {
        Some(problem) => Err(Error::at(provider_path(&problem.path), problem.what)),
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
        model::Value::String(string) => json::write_string(string, out),
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
                json::write_string(key, out);
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
