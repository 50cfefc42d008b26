//! The JSON encoding of states and identities.
//!
//! Like msgpack it follows the type. Numbers keep all their digits, sets are arrays, and a value at a dynamic position
//! is `{"value":...,"type":...}`. Unknown values cannot be encoded.

mod reader;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::reader::{Reader, Scalar};
use super::{Decimal, Type, Value, ValueError, strings};
use model::Segment;

/// How to handle an attribute that the type does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedAttributes {
    /// Return an error.
    Reject,
    /// Drop it: a state written with an earlier schema of the same version may have such attributes.
    Ignore,
}

/// Encodes a value of the given type with the same bytes as go-cty. Fails if the value has another type or contains an
/// unknown value.
pub fn encode(value: &Value, ty: &Type) -> Result<String, ValueError> {
    let mut out = String::with_capacity(256);
    write(&mut out, value, ty).map_err(ValueError::rooted)?;
    Ok(out)
}

fn write(out: &mut String, value: &Value, ty: &Type) -> Result<(), ValueError> {
    match (ty, value) {
        (_, Value::Null) => out.push_str("null"),
        (_, Value::Unknown(_)) => return Err(ValueError::new("the value is unknown")),
        (Type::String, Value::String(string)) => strings::write_json(string, out),
        (Type::Bool, Value::Bool(bool)) => out.push_str(if *bool { "true" } else { "false" }),
        (Type::Number, Value::Number(number)) => out.push_str(&number.to_string()),
        (Type::List(element), Value::List(items)) => write_items(out, items, |_| Some(element.as_ref()))?,
        (Type::Set(element), Value::Set(items)) => write_items(out, items, |_| Some(element.as_ref()))?,
        (Type::Tuple(elements), Value::Tuple(items)) if elements.len() == items.len() => {
            write_items(out, items, |index| elements.get(index))?;
        }
        (Type::Map(element), Value::Map(entries)) => write_entries(out, entries, |_| Some(element.as_ref()))?,
        (Type::Object(attributes), Value::Object(entries)) if attributes.len() == entries.len() => {
            write_entries(out, entries, |name| attributes.get(name))?;
        }
        (Type::Dynamic, Value::Dynamic(typed)) => {
            out.push_str("{\"value\":");
            write(out, &typed.value, &typed.ty)?;
            out.push_str(",\"type\":");
            out.push_str(&typed.ty.to_json());
            out.push('}');
        }
        (ty, value) => return Err(ValueError::new(format!("expected {ty}, found {}", value.kind()))),
    }
    Ok(())
}

fn write_items<'a>(
    out: &mut String,
    items: &[Value],
    element: impl Fn(usize) -> Option<&'a Type>,
) -> Result<(), ValueError> {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let none = || ValueError::new("the type has no such element");
        let written = element(index).ok_or_else(none).and_then(|ty| write(out, item, ty));
        written.map_err(|error| error.inside(Segment::Index(index)))?;
    }
    out.push(']');
    Ok(())
}

fn write_entries<'a>(
    out: &mut String,
    entries: &BTreeMap<Arc<str>, Value>,
    element: impl Fn(&str) -> Option<&'a Type>,
) -> Result<(), ValueError> {
    out.push('{');
    for (index, (name, item)) in entries.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        strings::write_json(name, out);
        out.push(':');
        let none = || ValueError::new("the type has no such attribute");
        let written = element(name).ok_or_else(none).and_then(|ty| write(out, item, ty));
        written.map_err(|error| error.inside_name(name))?;
    }
    out.push('}');
    Ok(())
}

/// Decodes a value of the given type. Missing attributes become null, because states of earlier schemas lack some.
pub fn decode(bytes: &[u8], ty: &Type, unsupported: UnsupportedAttributes) -> Result<Value, ValueError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ValueError::new("the JSON is not valid UTF-8"))?;
    let mut reader = Reader::new(text);
    let value = read(&mut reader, ty, unsupported).map_err(ValueError::rooted)?;
    reader.expect_end()?;
    Ok(value)
}

fn read(reader: &mut Reader<'_>, ty: &Type, unsupported: UnsupportedAttributes) -> Result<Value, ValueError> {
    reader.deeper(|reader| {
        if reader.null()? {
            return Ok(Value::Null);
        }
        let required = || ValueError::new(format!("{ty} is required"));
        match ty {
            Type::String => match reader.scalar()?.ok_or_else(required)? {
                Scalar::String(string) => Ok(Value::string(&string)),
                Scalar::Number(digits) => Ok(Value::string(digits)),
                Scalar::Bool(bool) => Ok(Value::string(if bool { "true" } else { "false" })),
            },
            Type::Number => match reader.scalar()?.ok_or_else(required)? {
                Scalar::String(string) => Decimal::parse(&string).map(Value::Number).ok_or_else(required),
                Scalar::Number(digits) => Decimal::parse(digits).map(Value::Number).ok_or_else(required),
                Scalar::Bool(_) => Err(required()),
            },
            Type::Bool => match reader.scalar()?.ok_or_else(required)? {
                Scalar::Bool(bool) => Ok(Value::Bool(bool)),
                Scalar::String(string) => read_bool(&string).ok_or_else(required),
                Scalar::Number(_) => Err(required()),
            },
            Type::List(element) => Ok(Value::list(read_items(reader, unsupported, ty, |_| Some(element.as_ref()))?)),
            Type::Set(element) => Ok(Value::set(read_items(reader, unsupported, ty, |_| Some(element.as_ref()))?)),
            Type::Tuple(elements) => {
                let items = read_items(reader, unsupported, ty, |index| elements.get(index))?;
                if items.len() != elements.len() {
                    return Err(ValueError::new(format!("a tuple of {} elements is required", elements.len())));
                }
                Ok(Value::Tuple(items.into()))
            }
            Type::Map(element) => {
                let mut entries = BTreeMap::new();
                reader.entries(&required, |reader, key| {
                    let item = read(reader, element, unsupported).map_err(|error| error.inside_name(key))?;
                    entries.insert(strings::to_nfc(key), item);
                    Ok(())
                })?;
                Ok(Value::Map(Arc::new(entries)))
            }
            Type::Object(attributes) => read_object(reader, attributes, unsupported),
            Type::Dynamic => read_dynamic(reader, unsupported),
        }
    })
}

/// Converts a string to a boolean as cty does.
fn read_bool(text: &str) -> Option<Value> {
    match text {
        "true" | "1" => Some(Value::Bool(true)),
        "false" | "0" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn read_items<'a>(
    reader: &mut Reader<'_>,
    unsupported: UnsupportedAttributes,
    ty: &Type,
    element: impl Fn(usize) -> Option<&'a Type>,
) -> Result<Vec<Value>, ValueError> {
    let mut items = Vec::new();
    let required = || ValueError::new(format!("{ty} is required"));
    reader.items(&required, |reader| {
        let index = items.len();
        let none = || ValueError::new("the array has more elements than the tuple type");
        let item = element(index).ok_or_else(none).and_then(|ty| read(reader, ty, unsupported));
        items.push(item.map_err(|error| error.inside(Segment::Index(index)))?);
        Ok(())
    })?;
    Ok(items)
}

fn read_object(
    reader: &mut Reader<'_>,
    attributes: &BTreeMap<Arc<str>, Type>,
    unsupported: UnsupportedAttributes,
) -> Result<Value, ValueError> {
    let mut entries: BTreeMap<Arc<str>, Value> = attributes.keys().map(|name| (name.clone(), Value::Null)).collect();
    let required = || ValueError::new("an object is required");
    reader.entries(&required, |reader, name| match (attributes.get(name), unsupported) {
        (Some(ty), _) => {
            let item = read(reader, ty, unsupported).map_err(|error| error.inside_name(name))?;
            entries.insert(name.into(), item);
            Ok(())
        }
        (None, UnsupportedAttributes::Ignore) => reader.skip(),
        (None, UnsupportedAttributes::Reject) => {
            Err(ValueError::new("the schema has no such attribute").inside_name(name))
        }
    })?;
    Ok(Value::Object(Arc::new(entries)))
}

/// Reads a value and its type, in any order.
fn read_dynamic(reader: &mut Reader<'_>, unsupported: UnsupportedAttributes) -> Result<Value, ValueError> {
    let (mut ty, mut value) = (None, None);
    let required = || ValueError::new("an object with `value` and `type` is required");
    reader.entries(&required, |reader, key| {
        match key {
            "type" => {
                let json = reader.skip_raw()?;
                ty = Some(Type::from_json(json.as_bytes()).map_err(|error| ValueError::new(error.to_string()))?);
            }
            "value" => {
                value = Some(reader.clone());
                reader.skip()?;
            }
            _ => return Err(required()),
        }
        Ok(())
    })?;
    let (Some(ty), Some(mut at_value)) = (ty, value) else { return Err(required()) };
    let value = read(&mut at_value, &ty, unsupported)?;
    reader.add_elements(&at_value);
    Ok(Value::dynamic(ty, value))
}

/// Returns the keys of a JSON object with the text of their values. Fails if the text is not an object.
pub fn members(text: &str) -> Result<Vec<(String, &str)>, ValueError> {
    let mut found = Vec::new();
    let mut reader = Reader::new(text);
    reader.entries(&|| ValueError::new("an object is required"), |reader, key| {
        found.push((key.to_owned(), reader.skip_raw()?));
        Ok(())
    })?;
    reader.expect_end()?;
    Ok(found)
}

/// Returns the texts of the elements of a JSON array. Fails if the text is not an array.
pub fn elements(text: &str) -> Result<Vec<&str>, ValueError> {
    let mut found = Vec::new();
    let mut reader = Reader::new(text);
    reader.items(&|| ValueError::new("an array is required"), |reader| {
        found.push(reader.skip_raw()?);
        Ok(())
    })?;
    reader.expect_end()?;
    Ok(found)
}

#[cfg(test)]
mod tests;
