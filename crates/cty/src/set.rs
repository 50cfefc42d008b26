//! The order and the distinctness of set elements.

use std::borrow::Borrow;
use std::cmp::Ordering;

use super::{Data, Number, Type, Value};

/// The elements in go-cty's order, without those that equal another, so equal sets are equal slices. Elements with
/// unknown parts are kept: they may still turn out to differ.
pub(crate) fn ordered(element: &Type, mut items: Vec<Value>) -> Vec<Value> {
    if element.is_primitive() {
        items.sort_by(compare);
        items.dedup_by(|item, before| item == before && item.is_known());
        return items;
    }
    let mut keyed: Vec<(Key, Value)> = items.into_iter().map(|item| (Key::of(&item), item)).collect();
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut kept: Vec<(Key, Value)> = Vec::with_capacity(keyed.len());
    for (key, item) in keyed {
        // Equal elements have equal keys, but not the other way round.
        let mut alike = kept.iter().rev().take_while(|(other, _)| *other == key);
        if !item.is_wholly_known() || !alike.any(|(_, other)| *other == item) {
            kept.push((key, item));
        }
    }
    kept.into_iter().map(|(_, item)| item).collect()
}

/// Known elements come first, then unknown ones, then nulls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Known,
    Unknown,
    Null,
}

fn rank(value: &Value) -> Rank {
    match value.data() {
        Data::Null => Rank::Null,
        Data::Unknown(_) => Rank::Unknown,
        _ => Rank::Known,
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a.data(), b.data()) {
        (Data::String(a), Data::String(b)) => a.cmp(b),
        (Data::Bool(a), Data::Bool(b)) => a.cmp(b),
        (Data::Number(a), Data::Number(b)) => a.compare(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The text by which go-cty orders elements without a natural order. go-cty does not guarantee it, but with its order
/// `tolist` of a set gives the same list, and encoded sets have the bytes of other implementations.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rank: Rank,
    text: Vec<u8>,
    /// `text` holds numbers with ten digits; these distinguish longer ones.
    long_numbers: Vec<String>,
}

impl Key {
    fn of(value: &Value) -> Self {
        let mut key = Self { rank: rank(value), text: Vec::new(), long_numbers: Vec::new() };
        key.add(value);
        key
    }

    fn add(&mut self, value: &Value) {
        match (value.data(), value.ty()) {
            (Data::Unknown(_), _) => self.text.push(b'?'),
            (Data::Null, _) => self.text.push(b'~'),
            (Data::Bool(bool), _) => self.text.push(if *bool { b'T' } else { b'F' }),
            (Data::Number(number), _) => self.add_number(number),
            (Data::String(text), _) => add_quoted(text, &mut self.text),
            (Data::Items(items), Type::Tuple(_)) => self.add_all(b'<', items.iter(), b'>'),
            (Data::Items(items), _) => self.add_all(b'[', items.iter(), b']'),
            (Data::Entries(entries), Type::Map(_)) => {
                self.text.push(b'{');
                for (name, item) in entries {
                    add_quoted(name, &mut self.text);
                    self.text.push(b':');
                    self.add(item);
                    self.text.push(b';');
                }
                self.text.push(b'}');
            }
            (Data::Entries(entries), _) => self.add_all(b'<', entries.values(), b'>'),
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

    fn add_number(&mut self, number: &Number) {
        let short = number.to_ten_digits();
        self.text.extend_from_slice(short.as_bytes());
        let whole = number.to_string();
        if whole != short {
            self.long_numbers.push(whole);
        }
    }
}

/// Adds the string as Go's `%q` does.
fn add_quoted(text: &str, key: &mut Vec<u8>) {
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
pub fn is_printable(letter: char) -> bool {
    format!("a{letter}").escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_ignore_order_and_duplicates() {
        let text = || Value::null(Type::String);
        let a = Value::set(Type::String, ["b".into(), "a".into(), "b".into(), text()]);
        let b = Value::set(Type::String, [text(), "a".into(), "b".into()]);
        assert_eq!(a, b);
        assert_eq!(a.as_items().unwrap(), [Value::from("a"), "b".into(), text()]);
        let unknown = Value::unknown(Type::Number);
        let numbers = Value::set(Type::Number, [10.into(), 9.into(), unknown.clone(), (-1).into()]);
        assert_eq!(numbers.as_items().unwrap(), [(-1).into(), 9.into(), 10.into(), unknown]);
    }

    fn count(id: Value) -> usize {
        Value::set(Type::Dynamic, [object(id.clone()), object(id)]).as_items().unwrap().len()
    }

    fn object(id: Value) -> Value {
        Value::object([("id", id), ("name", "x".into())])
    }

    #[test]
    fn elements_with_unknown_values_are_not_merged() {
        assert_eq!(count(Value::unknown(Type::Number)), 2);
        assert_eq!(count(1.into()), 1);
    }
}
