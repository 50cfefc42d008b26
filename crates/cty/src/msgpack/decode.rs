//! Decodes values from msgpack.

use std::collections::BTreeMap;
use std::sync::Arc;

use num_bigint::BigInt;
use rmp::Marker;

use super::EXT_REFINED;
use super::reader::Reader;
use crate::{Data, Entries, Error, Number, Range, Step, Type, Value, normalize};

/// In bytes.
const MAX_REFINEMENT: usize = 1024;

/// Decodes a value of the given type. Trailing bytes are ignored, as in go-cty.
///
/// # Errors
/// If it is not the encoding of a value of the type.
pub fn decode(bytes: &[u8], ty: &Type) -> Result<Value, Error> {
    read(&mut Reader::new(bytes), ty)
}

fn read(reader: &mut Reader<'_>, ty: &Type) -> Result<Value, Error> {
    reader.deeper(|reader| {
        if let Some((kind, payload)) = reader.extension()? {
            return unknown(kind, payload, ty);
        }
        if reader.peek()? == Marker::Null {
            reader.marker()?;
            return Ok(Value::null(ty.clone()));
        }
        match ty {
            Type::String => Ok(Value::raw(Type::String, Data::String(read_text(reader, "a string is required")?))),
            Type::Number => read_number(reader).map(Value::number),
            Type::Bool => match reader.marker()? {
                Marker::True => Ok(Value::TRUE),
                Marker::False => Ok(Value::FALSE),
                _ => Err(Error::new("a bool is required")),
            },
            Type::List(_) => read_items(reader, "list", ty),
            Type::Set(_) => read_items(reader, "set", ty),
            Type::Tuple(_) => read_items(reader, "tuple", ty),
            Type::Map(element) => read_map(reader, ty, element),
            Type::Object(object) => read_object(reader, ty, &object.attributes),
            Type::Dynamic => read_dynamic(reader),
        }
    })
}

/// Reads a string. Invalid UTF-8 is replaced, as Terraform does when it writes its state: an error could lose an object
/// that was just created.
fn read_text(reader: &mut Reader<'_>, otherwise: &str) -> Result<Arc<str>, Error> {
    let marker = reader.marker()?;
    let bytes = reader.bytes(marker)?.ok_or_else(|| Error::new(otherwise))?;
    Ok(normalize(&String::from_utf8_lossy(bytes)))
}

fn read_number(reader: &mut Reader<'_>) -> Result<Number, Error> {
    let marker = reader.marker()?;
    if let Some(int) = reader.integer(marker)? {
        return Ok(i64::try_from(int).map_or_else(|_| Number::from_bigint(&BigInt::from(int)), Number::from));
    }
    match marker {
        Marker::F32 => number_of(f32::from_bits(reader.u32()?).into()),
        Marker::F64 => number_of(f64::from_bits(reader.u64()?)),
        _ => reader
            .bytes(marker)?
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .and_then(Number::parse_finite)
            .ok_or_else(|| Error::new("a number is required")),
    }
}

/// A whole number that is too large for 64 bits is that of its shortest digits, which is how it is encoded and recorded:
/// otherwise it would differ from itself.
fn number_of(float: f64) -> Result<Number, Error> {
    let number = Number::from_f64(float).filter(|number| !number.is_infinite()).and_then(|number| {
        let is_large = number.is_integer() && number.to_i64().is_none();
        if is_large { Number::parse(&float.to_string()) } else { Some(number) }
    });
    number.ok_or_else(|| Error::new("a finite number is required"))
}

fn read_items(reader: &mut Reader<'_>, kind: &str, ty: &Type) -> Result<Value, Error> {
    let length = reader.array_length()?.ok_or_else(|| Error::new(format!("a {kind} is required")))?;
    if let Type::Tuple(elements) = ty
        && elements.len() != length
    {
        return Err(Error::new(format!("expected a {kind} of {} elements, found {length}", elements.len())));
    }
    let mut items = Vec::with_capacity(reader.capacity(length));
    for index in 0..length {
        let element = ty.item(index).unwrap_or(&Type::Dynamic);
        items.push(read(reader, element).map_err(|error| error.inside(Step::Index(index)))?);
    }
    Ok(Value::of_items(ty, items))
}

fn read_map(reader: &mut Reader<'_>, ty: &Type, element: &Type) -> Result<Value, Error> {
    let length = reader.map_length()?.ok_or_else(|| Error::new("a map is required"))?;
    let mut entries = BTreeMap::new();
    for _ in 0..length {
        let key = read_text(reader, "the keys of a map must be strings")?;
        let item = read(reader, element).map_err(|error| error.inside(Step::Name(key.clone())))?;
        entries.insert(key, item);
    }
    Ok(Value::of_entries(ty, entries.into()))
}

fn read_object(reader: &mut Reader<'_>, ty: &Type, attributes: &Entries<Type>) -> Result<Value, Error> {
    let length = reader.map_length()?.ok_or_else(|| Error::new("an object is required"))?;
    let mut entries = Vec::with_capacity(reader.capacity(length));
    // Attributes are usually sorted by name, so the next one is nearly always the expected one.
    let mut expected = attributes.iter();
    for _ in 0..length {
        let marker = reader.marker()?;
        let name = reader
            .bytes(marker)?
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .ok_or_else(|| Error::new("the names of attributes must be strings"))?;
        let (name, ty) = expected
            .next()
            .filter(|(next, _)| ***next == *name)
            .or_else(|| attributes.get_key_value(name))
            .ok_or_else(|| Error::new("the schema has no such attribute").inside(Step::Name(name.into())))?;
        entries.push((name.clone(), read(reader, ty).map_err(|error| error.inside(Step::Name(name.clone())))?));
    }
    let entries: Entries<Value> = entries.into_iter().collect();
    if entries.len() != attributes.len()
        && let Some(missing) = attributes.keys().find(|name| !entries.contains_key(name))
    {
        return Err(Error::new("the attribute is missing").inside(Step::Name(missing.clone())));
    }
    Ok(Value::of_entries(ty, entries))
}

fn read_dynamic(reader: &mut Reader<'_>) -> Result<Value, Error> {
    if reader.array_length()? != Some(2) {
        return Err(Error::new("a type and a value are required"));
    }
    let marker = reader.marker()?;
    let json = reader.bytes(marker)?.ok_or_else(|| Error::new("a type is required before the value"))?;
    read(reader, &Type::from_json(json)?.without_optional())
}

/// Reads an unknown value with its refinement. Any extension other than a refinement is a plain unknown value, as there
/// are no others.
fn unknown(kind: i8, payload: &[u8], ty: &Type) -> Result<Value, Error> {
    if kind != EXT_REFINED || payload.len() <= 1 || *ty == Type::Dynamic {
        return Ok(Value::unknown(ty.clone()));
    }
    if payload.len() > MAX_REFINEMENT {
        return Err(Error::new("the refinement of an unknown value is too long"));
    }
    let mut reader = Reader::new(payload);
    let mut range = Range::default();
    for _ in 0..reader.map_length()?.ok_or_else(malformed_refinement)? {
        let marker = reader.marker()?;
        match (reader.integer(marker)?.ok_or_else(malformed_refinement)?, ty) {
            (1, _) => match reader.marker()? {
                Marker::False => range.not_null = true,
                Marker::True => return Ok(Value::null(ty.clone())),
                _ => return Err(malformed_refinement()),
            },
            (2, Type::String) => range.prefix = Some(read_text(&mut reader, "a prefix must be a string")?),
            (3, Type::Number) => range.lower = Some(read_bound(&mut reader)?),
            (4, Type::Number) => range.upper = Some(read_bound(&mut reader)?),
            (5 | 6, Type::List(_) | Type::Set(_) | Type::Map(_)) if reader.peek()? == Marker::Null => reader.skip()?,
            (key @ (5 | 6), Type::List(_) | Type::Set(_) | Type::Map(_)) => {
                let marker = reader.marker()?;
                let length = reader.integer(marker)?.and_then(|length| usize::try_from(length).ok());
                let length = length.ok_or_else(malformed_refinement)?;
                if key == 5 {
                    range.min_length = length;
                } else {
                    range.max_length = Some(length);
                }
            }
            _ => reader.skip()?,
        }
    }
    // A collection of a known length stays unknown: its elements would cost memory that the provider did not send.
    Ok(Value::raw(ty.clone(), Data::Unknown((range != Range::default()).then(|| Arc::new(range)))))
}

fn malformed_refinement() -> Error {
    Error::new("the refinement of an unknown value is malformed")
}

/// Reads a bound of a number, and whether it is inclusive.
fn read_bound(reader: &mut Reader<'_>) -> Result<(Number, bool), Error> {
    if reader.array_length()? != Some(2) {
        return Err(malformed_bound());
    }
    let number = read_number(reader)?;
    match reader.marker()? {
        Marker::True => Ok((number, true)),
        Marker::False => Ok((number, false)),
        _ => Err(malformed_bound()),
    }
}

fn malformed_bound() -> Error {
    Error::new("a bound of an unknown number is malformed")
}
