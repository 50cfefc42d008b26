//! Decodes values from msgpack.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmp::Marker;

use super::EXT_REFINED;
use super::reader::Reader;
use crate::cty::value::Bounds;
use crate::cty::{Decimal, Refinement, Type, Value, ValueError, strings};
use model::Segment;

/// In bytes.
const MAX_REFINEMENT: usize = 1024;

/// Decodes a value of the given type. Trailing bytes are ignored, as in go-cty.
pub fn decode(bytes: &[u8], ty: &Type) -> Result<Value, ValueError> {
    read(&mut Reader::new(bytes), ty).map_err(ValueError::rooted)
}

fn read(reader: &mut Reader<'_>, ty: &Type) -> Result<Value, ValueError> {
    reader.deeper(|reader| {
        if let Some((kind, payload)) = reader.extension()? {
            return unknown(kind, payload, ty);
        }
        if reader.peek()? == Marker::Null {
            reader.marker()?;
            return Ok(Value::Null);
        }
        match ty {
            Type::String => Ok(Value::String(read_text(reader, "a string is required")?)),
            Type::Number => read_number(reader).map(Value::Number),
            Type::Bool => match reader.marker()? {
                Marker::True => Ok(Value::Bool(true)),
                Marker::False => Ok(Value::Bool(false)),
                _ => Err(ValueError::new("a bool is required")),
            },
            Type::List(element) => Ok(Value::List(read_items(reader, "list", None, |_| element)?.into())),
            Type::Set(element) => Ok(Value::set(read_items(reader, "set", None, |_| element)?)),
            Type::Tuple(elements) => {
                let items = read_items(reader, "tuple", Some(elements.len()), |index| &elements[index])?;
                Ok(Value::Tuple(items.into()))
            }
            Type::Map(element) => read_map(reader, element),
            Type::Object(attributes) => read_object(reader, attributes),
            Type::Dynamic => read_dynamic(reader),
        }
    })
}

/// Reads a string. Invalid UTF-8 is replaced, as Terraform does when it writes its state: an error could lose an object
/// that was just created.
fn read_text(reader: &mut Reader<'_>, otherwise: &str) -> Result<Arc<str>, ValueError> {
    let marker = reader.marker()?;
    let bytes = reader.bytes(marker)?.ok_or_else(|| ValueError::new(otherwise))?;
    Ok(strings::to_nfc(&String::from_utf8_lossy(bytes)))
}

fn read_number(reader: &mut Reader<'_>) -> Result<Decimal, ValueError> {
    let required = || ValueError::new("a number is required");
    let marker = reader.marker()?;
    if let Some(int) = reader.integer(marker)? {
        return match i64::try_from(int) {
            Ok(int) => Ok(Decimal::Int(int)),
            Err(_) => Decimal::parse(&int.to_string()).ok_or_else(required),
        };
    }
    let finite = |float| Decimal::from_f64(float).ok_or_else(|| ValueError::new("a finite number is required"));
    match marker {
        Marker::F32 => finite(f32::from_bits(reader.u32()?).into()),
        Marker::F64 => finite(f64::from_bits(reader.u64()?)),
        _ => {
            let bytes = reader.bytes(marker)?.ok_or_else(required)?;
            std::str::from_utf8(bytes).ok().and_then(Decimal::parse).ok_or_else(required)
        }
    }
}

fn read_items<'a>(
    reader: &mut Reader<'_>,
    kind: &str,
    wanted: Option<usize>,
    element: impl Fn(usize) -> &'a Type,
) -> Result<Vec<Value>, ValueError> {
    let length = reader.array_length()?.ok_or_else(|| ValueError::new(format!("a {kind} is required")))?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != length) {
        return Err(ValueError::new(format!("expected a {kind} of {wanted} elements, found {length}")));
    }
    let mut items = Vec::with_capacity(reader.capacity(length));
    for index in 0..length {
        items.push(read(reader, element(index)).map_err(|error| error.inside(Segment::Index(index)))?);
    }
    Ok(items)
}

fn read_map(reader: &mut Reader<'_>, element: &Type) -> Result<Value, ValueError> {
    let length = reader.map_length()?.ok_or_else(|| ValueError::new("a map is required"))?;
    let mut entries = BTreeMap::new();
    for _ in 0..length {
        let key = read_text(reader, "the keys of a map must be strings")?;
        let item = read(reader, element).map_err(|error| error.inside_name(&key))?;
        entries.insert(key, item);
    }
    Ok(Value::Map(Arc::new(entries)))
}

fn read_object(reader: &mut Reader<'_>, attributes: &BTreeMap<Arc<str>, Type>) -> Result<Value, ValueError> {
    let length = reader.map_length()?.ok_or_else(|| ValueError::new("an object is required"))?;
    let mut entries = Vec::with_capacity(reader.capacity(length));
    // Attributes are usually sorted by name, so the next one is nearly always the expected one.
    let mut expected = attributes.iter();
    for _ in 0..length {
        let marker = reader.marker()?;
        let required = || ValueError::new("the names of attributes must be strings");
        let name = reader.bytes(marker)?.and_then(|bytes| std::str::from_utf8(bytes).ok()).ok_or_else(required)?;
        let found = expected.next().filter(|(next, _)| ***next == *name).or_else(|| attributes.get_key_value(name));
        let no_such = || ValueError::new("the schema has no such attribute").inside_name(name);
        let (name, ty) = found.ok_or_else(no_such)?;
        entries.push((name.clone(), read(reader, ty).map_err(|error| error.inside_name(name))?));
    }
    let entries: BTreeMap<_, _> = entries.into_iter().collect();
    if entries.len() != attributes.len()
        && let Some(missing) = attributes.keys().find(|name| !entries.contains_key(*name))
    {
        return Err(ValueError::new("the attribute is missing").inside_name(missing));
    }
    Ok(Value::Object(Arc::new(entries)))
}

fn read_dynamic(reader: &mut Reader<'_>) -> Result<Value, ValueError> {
    if reader.array_length()? != Some(2) {
        return Err(ValueError::new("a type and a value are required"));
    }
    let marker = reader.marker()?;
    let json = reader.bytes(marker)?.ok_or_else(|| ValueError::new("a type is required before the value"))?;
    let ty = Type::from_json(json).map_err(|error| ValueError::new(error.to_string()))?;
    let value = read(reader, &ty)?;
    Ok(Value::dynamic(ty, value))
}

/// Reads an unknown value with its refinement. Any extension other than a refinement is a plain unknown value, as there
/// are no others.
fn unknown(kind: i8, payload: &[u8], ty: &Type) -> Result<Value, ValueError> {
    if kind != EXT_REFINED || payload.len() <= 1 || *ty == Type::Dynamic {
        return Ok(Value::UNKNOWN);
    }
    if payload.len() > MAX_REFINEMENT {
        return Err(ValueError::new("the refinement of an unknown value is too long"));
    }
    let mut reader = Reader::new(payload);
    let mut bounds = Bounds::default();
    let malformed = || ValueError::new("the refinement of an unknown value is malformed");
    for _ in 0..reader.map_length()?.ok_or_else(malformed)? {
        let marker = reader.marker()?;
        match (reader.integer(marker)?.ok_or_else(malformed)?, ty) {
            (1, _) => match reader.marker()? {
                Marker::False => bounds.not_null = true,
                Marker::True => return Ok(Value::Null),
                _ => return Err(malformed()),
            },
            (2, Type::String) => bounds.prefix = Some(read_text(&mut reader, "a prefix must be a string")?),
            (3, Type::Number) => bounds.lower = Some(read_bound(&mut reader)?),
            (4, Type::Number) => bounds.upper = Some(read_bound(&mut reader)?),
            (5 | 6, Type::List(_) | Type::Set(_) | Type::Map(_)) if reader.peek()? == Marker::Null => reader.skip()?,
            (key @ (5 | 6), Type::List(_) | Type::Set(_) | Type::Map(_)) => {
                let marker = reader.marker()?;
                let length = reader.integer(marker)?.and_then(|length| u64::try_from(length).ok());
                let bound = if key == 5 { &mut bounds.min_length } else { &mut bounds.max_length };
                *bound = Some(length.ok_or_else(malformed)?);
            }
            _ => reader.skip()?,
        }
    }
    Ok(Value::Unknown(Refinement::new(bounds)))
}

/// Reads a bound of a number, and whether it is inclusive.
fn read_bound(reader: &mut Reader<'_>) -> Result<(Decimal, bool), ValueError> {
    let malformed = || ValueError::new("a bound of an unknown number is malformed");
    if reader.array_length()? != Some(2) {
        return Err(malformed());
    }
    let number = read_number(reader)?;
    match reader.marker()? {
        Marker::True => Ok((number, true)),
        Marker::False => Ok((number, false)),
        _ => Err(malformed()),
    }
}
