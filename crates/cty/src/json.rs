//! JSON, as `jsonencode` and `jsondecode` have it, and as states and identities are encoded.
//!
//! The encoding of states follows a type: a value at a dynamic position is `{"value":...,"type":...}`. Numbers keep all
//! their digits, and sets are arrays.

mod reader;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::reader::{Reader, Scalar};
use super::{Data, Entries, Error, Number, Step, Type, Value, normalize};

/// How to handle an attribute that the type does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedAttributes {
    /// Return an error.
    Reject,
    /// Drop it: a state written with an earlier schema of the same version may have such attributes.
    Ignore,
}

/// Writes a known value without marks.
pub fn write(value: &Value, out: &mut String) -> Result<(), Error> {
    write_as(value, value.ty(), out)
}

/// Encodes a value of the given type with the same bytes as go-cty.
///
/// # Errors
/// If the value has another type or contains an unknown value.
pub fn encode(value: &Value, ty: &Type) -> Result<String, Error> {
    let mut out = String::with_capacity(256);
    write_as(value, ty, &mut out)?;
    Ok(out)
}

fn write_as(value: &Value, ty: &Type, out: &mut String) -> Result<(), Error> {
    if *ty == Type::Dynamic && *value.ty() != Type::Dynamic {
        out.push_str("{\"value\":");
        write_as(value, value.ty(), out)?;
        out.push_str(",\"type\":");
        out.push_str(&value.ty().to_json());
        out.push('}');
        return Ok(());
    }
    match (ty, value.data()) {
        (_, Data::Null) => out.push_str("null"),
        (_, Data::Unknown(_)) => return Err(Error::new("the value is not known")),
        (Type::String, Data::String(text)) => write_string(text, out),
        (Type::Bool, Data::Bool(bool)) => out.push_str(if *bool { "true" } else { "false" }),
        (Type::Number, Data::Number(number)) if number.is_infinite() => {
            return Err(Error::new("JSON has no infinite numbers"));
        }
        (Type::Number, Data::Number(number)) => out.push_str(&number.to_string()),
        (_, Data::Items(items)) if value.is_as(ty) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let element = ty.item(index).unwrap_or(&Type::Dynamic);
                write_as(item, element, out).map_err(|error| error.inside(Step::Index(index)))?;
            }
            out.push(']');
        }
        (_, Data::Entries(entries)) if value.is_as(ty) => {
            out.push('{');
            for (index, (name, item)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                ty.entry(name)
                    .ok_or_else(|| Error::new("the type has no such attribute"))
                    .and_then(|ty| write_as(item, ty, out))
                    .map_err(|error| error.inside(Step::Name(name.clone())))?;
            }
            out.push('}');
        }
        _ => return Err(Error::new(format!("expected {ty}, found {}", value.kind()))),
    }
    Ok(())
}

/// Writes a string with the escapes of Go's encoder, which include `<`, `>` and `&`, because encodings are compared byte
/// by byte.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Reads JSON into objects, tuples and primitive values; null has no type.
pub fn read(text: &str) -> Result<Value, Error> {
    let mut reader = Reader::new(text);
    let value = literal(&mut reader)?;
    reader.expect_end()?;
    Ok(value)
}

fn literal(reader: &mut Reader<'_>) -> Result<Value, Error> {
    reader.deeper(|reader| {
        if reader.null()? {
            return Ok(Value::NULL);
        }
        match reader.scalar()? {
            Some(Scalar::String(text)) => return Ok(Value::string(&text)),
            Some(Scalar::Bool(bool)) => return Ok(Value::bool(bool)),
            Some(Scalar::Number(digits)) => {
                return Number::parse(digits).map(Value::number).ok_or_else(|| Error::new("a number is too large"));
            }
            None => {}
        }
        if reader.is_array() {
            let mut items = Vec::new();
            reader.items(&reader::malformed, |reader| {
                items.push(literal(reader)?);
                Ok(())
            })?;
            return Ok(Value::tuple(items));
        }
        let mut entries = BTreeMap::new();
        reader.entries(&reader::malformed, |reader, name| {
            entries.insert(normalize(name), literal(reader)?);
            Ok(())
        })?;
        Ok(Value::object(entries))
    })
}

/// Decodes a value of the given type. Missing attributes become null, because states of earlier schemas lack some.
///
/// # Errors
/// If it is no JSON, or not that of a value of the type.
pub fn decode(bytes: &[u8], ty: &Type, unsupported: UnsupportedAttributes) -> Result<Value, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::new("the JSON is not valid UTF-8"))?;
    let mut reader = Reader::new(text);
    let value = read_as(&mut reader, ty, unsupported)?;
    reader.expect_end()?;
    Ok(value)
}

fn read_as(reader: &mut Reader<'_>, ty: &Type, unsupported: UnsupportedAttributes) -> Result<Value, Error> {
    reader.deeper(|reader| {
        if reader.null()? {
            return Ok(Value::null(ty.clone()));
        }
        let required = || Error::new(format!("{ty} is required"));
        match ty {
            Type::String => match reader.scalar()?.ok_or_else(required)? {
                Scalar::String(text) => Ok(Value::string(&text)),
                Scalar::Number(digits) => Ok(Value::string(digits)),
                Scalar::Bool(bool) => Ok(Value::string(if bool { "true" } else { "false" })),
            },
            Type::Number => match reader.scalar()?.ok_or_else(required)? {
                Scalar::String(text) => Number::parse_finite(&text).map(Value::number).ok_or_else(required),
                Scalar::Number(digits) => Number::parse_finite(digits).map(Value::number).ok_or_else(required),
                Scalar::Bool(_) => Err(required()),
            },
            Type::Bool => match reader.scalar()?.ok_or_else(required)? {
                Scalar::Bool(bool) => Ok(Value::bool(bool)),
                Scalar::String(text) => read_bool(&text).ok_or_else(required),
                Scalar::Number(_) => Err(required()),
            },
            Type::List(_) | Type::Set(_) | Type::Tuple(_) => read_items(reader, ty, unsupported),
            Type::Map(element) => {
                let mut entries = BTreeMap::new();
                reader.entries(&required, |reader, key| {
                    let key = normalize(key);
                    let item = read_as(reader, element, unsupported);
                    entries.insert(key.clone(), item.map_err(|error| error.inside(Step::Name(key)))?);
                    Ok(())
                })?;
                Ok(Value::of_entries(ty, entries.into()))
            }
            Type::Object(object) => read_object(reader, ty, &object.attributes, unsupported),
            Type::Dynamic => read_dynamic(reader, unsupported),
        }
    })
}

/// Converts a string to a boolean as cty does.
fn read_bool(text: &str) -> Option<Value> {
    match text {
        "true" | "1" => Some(Value::TRUE),
        "false" | "0" => Some(Value::FALSE),
        _ => None,
    }
}

fn read_items(reader: &mut Reader<'_>, ty: &Type, unsupported: UnsupportedAttributes) -> Result<Value, Error> {
    let mut items = Vec::new();
    reader.items(&|| Error::new(format!("{ty} is required")), |reader| {
        let index = items.len();
        let item = ty
            .item(index)
            .ok_or_else(|| Error::new("the array has more elements than the tuple type"))
            .and_then(|ty| read_as(reader, ty, unsupported))
            .map_err(|error| error.inside(Step::Index(index)))?;
        items.push(item);
        Ok(())
    })?;
    match ty {
        Type::Tuple(elements) if items.len() != elements.len() => {
            Err(Error::new(format!("a tuple of {} elements is required", elements.len())))
        }
        _ => Ok(Value::of_items(ty, items)),
    }
}

fn read_object(
    reader: &mut Reader<'_>,
    ty: &Type,
    attributes: &Entries<Type>,
    unsupported: UnsupportedAttributes,
) -> Result<Value, Error> {
    let nulls = attributes.iter().map(|(name, ty)| (name.clone(), Value::null(ty.clone())));
    let mut entries: BTreeMap<Arc<str>, Value> = nulls.collect();
    reader.entries(&|| Error::new("an object is required"), |reader, name| {
        match (entries.get_mut(name), unsupported) {
            (Some(entry), _) => {
                let item = attributes.get(name).map_or(Ok(Value::NULL), |ty| read_as(reader, ty, unsupported));
                *entry = item.map_err(|error| error.inside(Step::Name(name.into())))?;
                Ok(())
            }
            (None, UnsupportedAttributes::Ignore) => reader.skip(),
            (None, UnsupportedAttributes::Reject) => {
                Err(Error::new("the schema has no such attribute").inside(Step::Name(name.into())))
            }
        }
    })?;
    Ok(Value::of_entries(ty, entries.into()))
}

/// Reads a value and its type, in any order.
fn read_dynamic(reader: &mut Reader<'_>, unsupported: UnsupportedAttributes) -> Result<Value, Error> {
    let (mut ty, mut value) = (None, None);
    reader.entries(&dynamic_required, |reader, key| {
        match key {
            "type" => ty = Some(Type::from_json(reader.skip_raw()?.as_bytes())?.without_optional()),
            "value" => {
                value = Some(reader.clone());
                reader.skip()?;
            }
            _ => return Err(dynamic_required()),
        }
        Ok(())
    })?;
    let (Some(ty), Some(mut at_value)) = (ty, value) else { return Err(dynamic_required()) };
    let value = read_as(&mut at_value, &ty, unsupported)?;
    reader.add_elements(&at_value);
    Ok(value)
}

fn dynamic_required() -> Error {
    Error::new("an object with `value` and `type` is required")
}

/// Returns the keys of a JSON object with the text of their values. Fails if the text is not an object.
pub fn members(text: &str) -> Result<Vec<(String, &str)>, Error> {
    let mut members = Vec::new();
    let mut reader = Reader::new(text);
    reader.entries(&|| Error::new("an object is required"), |reader, key| {
        members.push((key.to_owned(), reader.skip_raw()?));
        Ok(())
    })?;
    reader.expect_end()?;
    Ok(members)
}

/// Returns the texts of the elements of a JSON array. Fails if the text is not an array.
pub fn elements(text: &str) -> Result<Vec<&str>, Error> {
    let mut items = Vec::new();
    let mut reader = Reader::new(text);
    reader.items(&|| Error::new("an array is required"), |reader| {
        items.push(reader.skip_raw()?);
        Ok(())
    })?;
    reader.expect_end()?;
    Ok(items)
}

#[cfg(test)]
mod tests;
