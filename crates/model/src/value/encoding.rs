//! The encoding of values in records: null, booleans, numbers, strings, lists and maps as the format has them. A map whose
//! only key is a number stands for what the format has no form of; all keys of other maps are strings.
//!
//! The encoding includes sensitive values. Text for people is made by [`Value::to_public_json`].

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

use super::{Map, Value};
use crate::Number;
use crate::shared::{self, Text};

/// The maximum nesting depth of values. Deeper values could overflow the stack; no provider schema comes close.
pub const MAX_DEPTH: usize = 256;

const UNKNOWN: u64 = 0;
const SENSITIVE: u64 = 1;
const DECIMAL: u64 = 2;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return Err(S::Error::custom("a value may be sensitive, and this format is read by people"));
        }
        Nested { value: self, depth: 0 }.serialize(serializer)
    }
}

struct Nested<'a> {
    value: &'a Value,
    depth: usize,
}

impl Nested<'_> {
    fn inside<'a>(&self, value: &'a Value) -> Nested<'a> {
        Nested { value, depth: self.depth + 1 }
    }
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.depth > MAX_DEPTH {
            return Err(S::Error::custom("a value is nested too deeply"));
        }
        match self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Unknown => serializer.collect_map([(UNKNOWN, ())]),
            Value::Bool(bool) => serializer.serialize_bool(*bool),
            Value::Number(Number::Int(int)) => serializer.serialize_i64(*int),
            Value::Number(Number::Float(float)) => serializer.serialize_f64(*float),
            Value::Number(Number::Decimal(digits)) => serializer.collect_map([(DECIMAL, digits)]),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(items) => serializer.collect_seq(items.iter().map(|item| self.inside(item))),
            Value::Map(map) => serializer.collect_map(map.iter().map(|(key, item)| (key, self.inside(item)))),
            Value::Sensitive(inner) => serializer.collect_map([(SENSITIVE, self.inside(inner))]),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Value, E> {
        Ok(Value::Bool(bool))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(Value::Number(Number::Int(int)))
    }

    fn visit_u64<E: serde::de::Error>(self, int: u64) -> Result<Value, E> {
        i64::try_from(int).map(Value::from).map_err(|_| E::custom("a number is too large"))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Value, E> {
        Ok(Value::Number(Number::Float(float)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::with_capacity(expected(items.size_hint()));
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::with_capacity(expected(entries.size_hint()));
        let Some(key) = entries.next_key()? else { return Ok(Value::Map(Map::default())) };
        match key {
            Key::Number(UNKNOWN) => entries.next_value::<()>().map(|()| Value::Unknown),
            Key::Number(SENSITIVE) => entries.next_value().map(Value::into_sensitive),
            Key::Number(DECIMAL) => entries.next_value().map(|Digits(digits)| Value::Number(Number::Decimal(digits))),
            Key::Number(_) => Err(A::Error::custom("a value has an unknown form")),
            Key::Name(key) => {
                map.push((key, entries.next_value()?));
                while let Some((Text(key), item)) = entries.next_entry()? {
                    map.push((key, item));
                }
                Ok(Value::Map(map.into_iter().collect()))
            }
        }
    }
}

/// Damaged lengths must not reserve all memory.
fn expected(length: Option<usize>) -> usize {
    length.unwrap_or_default().min(64)
}

enum Key {
    Name(Arc<str>),
    Number(u64),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, name: &str) -> Result<Key, E> {
        Ok(Key::Name(shared::share(name)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Key, E> {
        Ok(Key::Number(number))
    }
}

#[derive(serde::Deserialize)]
struct Digits(Arc<str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_not_written_for_people() {
        assert!(serde_json::to_string(&Value::from("s3cret")).is_err());
    }
}
