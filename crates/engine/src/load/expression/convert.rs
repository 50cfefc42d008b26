//! Converts values to and from CEL.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cel::objects::{Key, OptionalValue};

use model::unicode::to_nfc;
use model::{Number, Value};

/// Converts a known value without marks. Integers become int if they fit, otherwise uint, otherwise double.
pub fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null | Value::Unknown => cel::Value::Null,
        Value::Bool(bool) => cel::Value::Bool(*bool),
        Value::Number(Number::Int(int)) => cel::Value::Int(*int),
        Value::Number(Number::Float(float)) => cel::Value::Float(*float),
        Value::Number(Number::Decimal(text)) => match text.parse() {
            Ok(unsigned) => cel::Value::UInt(unsigned),
            Err(_) => cel::Value::Float(text.parse().unwrap_or(f64::NAN)),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.to_string())),
        Value::List(items) => cel::Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, item)| (Key::from(key.as_ref()), to_cel(item)));
            cel::Value::Map(cel::objects::Map { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
        }
        Value::Sensitive(inner) => to_cel(inner),
    }
}

/// Converts the result of an expression. `Err` describes a result that is not a value.
pub fn from_cel(value: cel::Value) -> Result<Value, &'static str> {
    Ok(match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(bool) => Value::Bool(bool),
        cel::Value::Int(int) => Value::Number(Number::Int(int)),
        cel::Value::UInt(unsigned) => Number::parse(&unsigned.to_string()).map_or(Value::Null, Value::Number),
        cel::Value::Float(float) if float.is_finite() => Value::Number(Number::from(float)),
        cel::Value::Float(_) => return Err("a number that is not finite"),
        cel::Value::String(text) => Value::String(to_nfc(&text)),
        cel::Value::Bytes(bytes) => match std::str::from_utf8(&bytes) {
            Ok(text) => Value::String(to_nfc(text)),
            Err(_) => return Err("bytes that are not valid UTF-8; use `base64.encode`"),
        },
        cel::Value::List(items) => {
            let items = Arc::unwrap_or_clone(items).into_iter().map(from_cel);
            Value::List(items.collect::<Result<Vec<_>, _>>()?.into())
        }
        cel::Value::Map(map) => {
            let entries = map.map.iter().map(|(key, item)| Ok((key.to_string().into(), from_cel(item.clone())?)));
            Value::Map(entries.collect::<Result<BTreeMap<Arc<str>, _>, &str>>()?.into())
        }
        cel::Value::Opaque(_) => match <&OptionalValue>::try_from(&value) {
            // None means absent, as null does for a provider.
            Ok(optional) => optional.value().map_or(Ok(Value::Null), |inner| from_cel(inner.clone()))?,
            Err(_) => return Err("a type, not a value"),
        },
        cel::Value::Function(..) => return Err("a function, not a value"),
        cel::Value::Struct(_) => return Err("a message, not a value"),
    })
}

/// Converts a value to a string, as CEL's `string()` does. `Err` describes a value that cannot be converted.
pub fn to_text(value: &Value) -> Result<String, &'static str> {
    Ok(match value.unmarked() {
        Value::String(text) => text.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Bool(bool) => bool.to_string(),
        other => return Err(super::access::kind(other)),
    })
}
