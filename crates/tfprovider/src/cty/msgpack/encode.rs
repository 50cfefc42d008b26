//! Encodes values as msgpack.

use rmp::encode::{
    ValueWriteError, write_array_len, write_bin, write_bool, write_ext_meta, write_f64, write_map_len, write_nil,
    write_sint, write_str,
};

use super::EXT_UNKNOWN;
use crate::cty::{Decimal, Type, Value, ValueError};
use model::Segment;

/// Encodes a value of the given type. Fails if the value has another type. Refinements are not written: they are the
/// provider's own promises.
pub fn encode(value: &Value, ty: &Type) -> Result<Vec<u8>, ValueError> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, ty).map_err(ValueError::rooted)?;
    Ok(out)
}

// Writing to a Vec never fails; this conversion avoids an `expect` for each call.
impl From<ValueWriteError> for ValueError {
    fn from(error: ValueWriteError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<std::io::Error> for ValueError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

fn write(out: &mut Vec<u8>, value: &Value, ty: &Type) -> Result<(), ValueError> {
    match (ty, value) {
        (_, Value::Null) => write_nil(out)?,
        (_, Value::Unknown(_)) => {
            write_ext_meta(out, 1, EXT_UNKNOWN)?;
            out.push(0);
        }
        (Type::String, Value::String(text)) => write_str(out, text)?,
        (Type::Bool, Value::Bool(bool)) => write_bool(out, *bool)?,
        (Type::Number, Value::Number(number)) => write_number(out, number)?,
        (Type::List(element), Value::List(items)) => write_items(out, items, |_| element)?,
        (Type::Set(element), Value::Set(items)) => write_items(out, items, |_| element)?,
        (Type::Tuple(elements), Value::Tuple(items)) => {
            if elements.len() != items.len() {
                let (wanted, found) = (elements.len(), items.len());
                return Err(ValueError::new(format!("expected a tuple of {wanted} elements, found {found}")));
            }
            write_items(out, items, |index| &elements[index])?;
        }
        (Type::Map(element), Value::Map(entries)) => {
            write_map_len(out, length(entries.len())?)?;
            for (key, item) in entries.iter() {
                write_str(out, key)?;
                write(out, item, element).map_err(|error| error.inside_name(key))?;
            }
        }
        (Type::Object(attributes), Value::Object(entries)) => {
            if let Some(name) = entries.keys().find(|name| !attributes.contains_key(*name)) {
                return Err(ValueError::new("the type has no such attribute").inside_name(name));
            }
            write_map_len(out, length(attributes.len())?)?;
            for (name, ty) in attributes.iter() {
                let missing = || ValueError::new("the attribute is missing").inside_name(name);
                let item = entries.get(name).ok_or_else(missing)?;
                write_str(out, name)?;
                write(out, item, ty).map_err(|error| error.inside_name(name))?;
            }
        }
        (Type::Dynamic, Value::Dynamic(typed)) => {
            write_array_len(out, 2)?;
            write_bin(out, typed.ty.to_json().as_bytes())?;
            write(out, &typed.value, &typed.ty)?;
        }
        (ty, value) => return Err(ValueError::new(format!("expected {ty}, found {}", value.kind()))),
    }
    Ok(())
}

fn write_items<'a>(out: &mut Vec<u8>, items: &[Value], element: impl Fn(usize) -> &'a Type) -> Result<(), ValueError> {
    write_array_len(out, length(items.len())?)?;
    for (index, item) in items.iter().enumerate() {
        write(out, item, element(index)).map_err(|error| error.inside(Segment::Index(index)))?;
    }
    Ok(())
}

fn write_number(out: &mut Vec<u8>, number: &Decimal) -> Result<(), ValueError> {
    match number {
        Decimal::Int(int) => {
            write_sint(out, *int)?;
        }
        Decimal::Float(float) => write_f64(out, *float)?,
        Decimal::Digits(text) => write_str(out, text)?,
    }
    Ok(())
}

fn length(length: usize) -> Result<u32, ValueError> {
    u32::try_from(length).map_err(|_| ValueError::new("it has more elements than msgpack can encode"))
}
