//! Encodes values as msgpack.

use rmp::encode::{
    ValueWriteError, write_array_len, write_bin, write_bool, write_ext_meta, write_f64, write_map_len, write_nil,
    write_sint, write_str,
};

use super::EXT_UNKNOWN;
use crate::{Data, Error, Number, Step, Type, Value};

/// Encodes a value of the given type. Refinements are not written: they are the provider's own promises.
///
/// # Errors
/// If the value has another type.
pub fn encode(value: &Value, ty: &Type) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, ty)?;
    Ok(out)
}

// Writing to a Vec never fails; this conversion avoids an `expect` for each call.
impl From<ValueWriteError> for Error {
    fn from(error: ValueWriteError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

fn write(out: &mut Vec<u8>, value: &Value, ty: &Type) -> Result<(), Error> {
    if *ty == Type::Dynamic && *value.ty() != Type::Dynamic {
        write_array_len(out, 2)?;
        write_bin(out, value.ty().to_json().as_bytes())?;
        return write(out, value, value.ty());
    }
    match (ty, value.data()) {
        (_, Data::Null) => write_nil(out)?,
        (_, Data::Unknown(_)) => {
            write_ext_meta(out, 1, EXT_UNKNOWN)?;
            out.push(0);
        }
        (Type::String, Data::String(text)) => write_str(out, text)?,
        (Type::Bool, Data::Bool(bool)) => write_bool(out, *bool)?,
        (Type::Number, Data::Number(number)) => write_number(out, number)?,
        (Type::Tuple(elements), Data::Items(items)) if elements.len() != items.len() => {
            let (wanted, found) = (elements.len(), items.len());
            return Err(Error::new(format!("expected a tuple of {wanted} elements, found {found}")));
        }
        (_, Data::Items(items)) if value.is_as(ty) => {
            write_array_len(out, length(items.len())?)?;
            for (index, item) in items.iter().enumerate() {
                let element = ty.item(index).unwrap_or(&Type::Dynamic);
                write(out, item, element).map_err(|error| error.inside(Step::Index(index)))?;
            }
        }
        (Type::Map(element), Data::Entries(entries)) if value.is_as(ty) => {
            write_map_len(out, length(entries.len())?)?;
            for (key, item) in entries {
                write_str(out, key)?;
                write(out, item, element).map_err(|error| error.inside(Step::Name(key.clone())))?;
            }
        }
        (Type::Object(object), Data::Entries(entries)) if value.is_as(ty) => {
            let attributes = &object.attributes;
            if let Some(name) = entries.keys().find(|name| !attributes.contains_key(name)) {
                return Err(Error::new("the type has no such attribute").inside(Step::Name(name.clone())));
            }
            write_map_len(out, length(attributes.len())?)?;
            for (name, ty) in attributes {
                let Some(item) = entries.get(name) else {
                    return Err(Error::new("the attribute is missing").inside(Step::Name(name.clone())));
                };
                write_str(out, name)?;
                write(out, item, ty).map_err(|error| error.inside(Step::Name(name.clone())))?;
            }
        }
        _ => return Err(Error::new(format!("expected {ty}, found {}", value.kind()))),
    }
    Ok(())
}

/// An integer of 64 bits, or else a float if it is exactly that, or else digits.
fn write_number(out: &mut Vec<u8>, number: &Number) -> Result<(), Error> {
    if let Some(int) = number.to_i64() {
        write_sint(out, int)?;
    } else if let Some(float) = number.to_exact_fraction() {
        write_f64(out, float)?;
    } else {
        write_str(out, &number.to_string())?;
    }
    Ok(())
}

fn length(length: usize) -> Result<u32, Error> {
    u32::try_from(length).map_err(|_| Error::new("it has more elements than msgpack can encode"))
}
