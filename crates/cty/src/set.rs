//! The order and the distinctness of set elements.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{Data, Type, Value};

/// The elements in order, without those that equal another. Elements with unknown parts are kept: they may still turn
/// out to differ.
pub(crate) fn ordered(element: &Type, items: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<(Vec<u8>, Value)> = Vec::with_capacity(items.len());
    let mut buckets: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for item in items {
        let key = key(&item);
        let bucket = buckets.entry(key.clone()).or_default();
        if bucket.iter().all(|&at| kept[at].1.equals(&item).as_bool() != Some(true)) {
            bucket.push(kept.len());
            kept.push((key, item));
        }
    }
    kept.sort_by(|(a_key, a), (b_key, b)| compare(element, a, b).unwrap_or_else(|| a_key.cmp(b_key)));
    kept.into_iter().map(|(_, item)| item).collect()
}

/// Known elements come first, then unknown ones, then nulls. `None` for elements without a natural order.
fn compare(element: &Type, a: &Value, b: &Value) -> Option<Ordering> {
    let rank = |value: &Value| match value.data() {
        Data::Null => 2,
        Data::Unknown(_) => 1,
        _ => 0,
    };
    if rank(a) != 0 || rank(b) != 0 {
        return Some(rank(a).cmp(&rank(b)));
    }
    match (a.data(), b.data()) {
        (Data::String(a), Data::String(b)) => Some(a.cmp(b)),
        (Data::Bool(a), Data::Bool(b)) => Some(a.cmp(b)),
        (Data::Number(a), Data::Number(b)) if *element == Type::Number => Some(a.compare(b)),
        _ => None,
    }
}

/// The text by which upstream orders elements without a natural order, so that `tolist` of a set gives the same list.
fn key(value: &Value) -> Vec<u8> {
    let mut key = Vec::new();
    add(value, &mut key);
    key
}

fn add(value: &Value, key: &mut Vec<u8>) {
    match (value.data(), value.ty()) {
        (Data::Unknown(_), _) => key.push(b'?'),
        (Data::Null, _) => key.push(b'~'),
        (Data::Bool(bool), _) => key.push(if *bool { b'T' } else { b'F' }),
        (Data::Number(number), _) => key.extend_from_slice(number.to_ten_digits().as_bytes()),
        (Data::String(text), _) => add_quoted(text, key),
        (Data::Items(items), ty) => {
            let tuple = matches!(ty, Type::Tuple(_));
            key.push(if tuple { b'<' } else { b'[' });
            for item in items.iter() {
                add(item, key);
                key.push(b';');
            }
            key.push(if tuple { b'>' } else { b']' });
        }
        (Data::Entries(entries), Type::Map(_)) => {
            key.push(b'{');
            for (name, item) in entries.iter() {
                add_quoted(name, key);
                key.push(b':');
                add(item, key);
                key.push(b';');
            }
            key.push(b'}');
        }
        (Data::Entries(entries), _) => {
            key.push(b'<');
            for item in entries.values() {
                add(item, key);
                key.push(b';');
            }
            key.push(b'>');
        }
    }
}

/// As Go's `%q`, as far as it changes an order.
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
            other => key.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    key.push(b'"');
}
