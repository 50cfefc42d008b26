//! Sets of values in canonical order, without duplicates.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

use super::Value;
use crate::cty::Decimal;

/// The elements of a set, in the order in which go-cty writes them, so equal sets are equal slices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set(Arc<[Value]>);

impl Set {
    /// Sorts and deduplicates the elements. Equal elements that contain unknown values are kept: they may still turn
    /// out to differ.
    pub fn new(mut items: Vec<Value>) -> Self {
        // Primitive elements have a natural order; others are sorted by a string key. Equal elements have equal keys,
        // so they are adjacent.
        if items.iter().all(|item| rank(item) != Rank::Known || is_primitive(item)) {
            items.sort_by(compare_flat);
        } else {
            items.sort_by_cached_key(|item| (rank(item), Key::of(item)));
        }
        items.dedup_by(|item, before| item == before && !item.has_unknown());
        Self(items.into())
    }

    /// Whether both sets share the same memory.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Set {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0
    }
}

/// Known elements come first, then unknown ones, then nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Known,
    Unknown,
    Null,
}

fn rank(value: &Value) -> Rank {
    match value {
        Value::Null => Rank::Null,
        Value::Unknown(_) => Rank::Unknown,
        _ => Rank::Known,
    }
}

fn is_primitive(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

fn compare_flat(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The string by which go-cty orders elements without a natural order. go-cty does not guarantee it, but writing sets
/// in its order keeps the encoded bytes equal to those of other implementations.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    text: Vec<u8>,
    /// `text` holds numbers with ten digits; these distinguish longer ones.
    long_numbers: Vec<String>,
}

impl Key {
    fn of(value: &Value) -> Self {
        let mut key = Self::default();
        key.add(value);
        key
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Unknown(_) => self.text.push(b'?'),
            Value::Null => self.text.push(b'~'),
            Value::Bool(bool) => self.text.push(if *bool { b'T' } else { b'F' }),
            Value::Number(number) => self.add_number(number),
            Value::String(text) => write_quoted(text, &mut self.text),
            Value::List(items) => self.add_all(b'[', items.iter(), b']'),
            Value::Set(items) => self.add_all(b'[', items.iter(), b']'),
            Value::Tuple(items) => self.add_all(b'<', items.iter(), b'>'),
            Value::Object(entries) => self.add_all(b'<', entries.values(), b'>'),
            Value::Map(entries) => {
                self.text.push(b'{');
                for (name, item) in entries.iter() {
                    write_quoted(name, &mut self.text);
                    self.text.push(b':');
                    self.add(item);
                    self.text.push(b';');
                }
                self.text.push(b'}');
            }
            Value::Dynamic(typed) => self.add(&typed.value),
        }
    }

    fn add_all(&mut self, open: u8, items: impl Iterator<Item: Borrow<Value>>, close: u8) {
        self.text.push(open);
        for item in items {
            self.add(item.borrow());
            self.text.push(b';');
        }
        self.text.push(close);
    }

    fn add_number(&mut self, number: &Decimal) {
        let short = number.to_ten_digits();
        self.text.extend_from_slice(short.as_bytes());
        let whole = number.to_string();
        if whole != short {
            self.long_numbers.push(whole);
        }
    }
}

/// Writes the string as Go's `%q` does.
fn write_quoted(text: &str, key: &mut Vec<u8>) {
    key.push(b'"');
    for letter in text.chars() {
        match letter {
            '"' => key.extend_from_slice(b"\\\""),
            '\\' => key.extend_from_slice(b"\\\\"),
            '\u{7}' => key.extend_from_slice(b"\\a"),
            '\u{8}' => key.extend_from_slice(b"\\b"),
            '\u{c}' => key.extend_from_slice(b"\\f"),
            '\n' => key.extend_from_slice(b"\\n"),
            '\r' => key.extend_from_slice(b"\\r"),
            '\t' => key.extend_from_slice(b"\\t"),
            '\u{b}' => key.extend_from_slice(b"\\v"),
            '\0'..='\u{1f}' | '\u{7f}' => key.extend_from_slice(format!("\\x{:02x}", u32::from(letter)).as_bytes()),
            ' '..='~' => key.push(letter as u8),
            _ if is_printable(letter) => key.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            '\0'..='\u{ffff}' => key.extend_from_slice(format!("\\u{:04x}", u32::from(letter)).as_bytes()),
            _ => key.extend_from_slice(format!("\\U{:08x}", u32::from(letter)).as_bytes()),
        }
    }
    key.push(b'"');
}

/// Whether a character is printed without an escape. The standard library shows this only through `escape_debug`, which
/// also escapes combining characters at the beginning of a string.
fn is_printable(letter: char) -> bool {
    format!("a{letter}").escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_ignore_order_and_duplicates() {
        let a = Set::new(vec!["b".into(), "a".into(), "b".into(), Value::Null]);
        let b = Set::new(vec![Value::Null, "a".into(), "b".into()]);
        assert_eq!(a, b);
        assert_eq!(&*a, &["a".into(), "b".into(), Value::Null]);
        let numbers = Set::new(vec![10.into(), 9.into(), Value::UNKNOWN, (-1).into()]);
        assert_eq!(&*numbers, &[(-1).into(), 9.into(), 10.into(), Value::UNKNOWN]);
    }

    #[test]
    fn elements_with_unknown_values_are_not_merged() {
        let object = |id: Value| Value::object([("id", id), ("name", "x".into())]);
        assert_eq!(Set::new(vec![object(Value::UNKNOWN), object(Value::UNKNOWN)]).len(), 2);
        assert_eq!(Set::new(vec![object(1.into()), object(1.into())]).len(), 1);
    }
}
