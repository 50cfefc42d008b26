//! What a digest is made of.

use sha2::{Digest as _, Sha256};

use model::Value;

/// Replaces the random part of a name.
const GENERATED: &str = "\u{0}generated\u{0}";

/// Adds bytes so that two lists of them never look the same.
pub(super) fn feed(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// Adds a value. `random`: the parts of strings that count as a placeholder.
pub(super) fn feed_value(hasher: &mut Sha256, value: &Value, random: &[String]) {
    match value.unmarked() {
        Value::Null => feed(hasher, b"null"),
        Value::Unknown => feed(hasher, b"unknown"),
        Value::String(text) => {
            feed(hasher, b"string");
            let random = random.iter().filter(|part| text.contains(part.as_str()));
            let fixed = random.fold(text.to_string(), |text, part| text.replace(part.as_str(), GENERATED));
            feed(hasher, fixed.as_bytes());
        }
        Value::List(items) => {
            feed(hasher, b"list");
            hasher.update((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| feed_value(hasher, item, random));
        }
        Value::Map(map) => {
            let set: Vec<_> = map.iter().filter(|(_, item)| *item.unmarked() != Value::Null).collect();
            feed(hasher, b"map");
            hasher.update((set.len() as u64).to_le_bytes());
            for (name, item) in set {
                feed(hasher, name.as_bytes());
                feed_value(hasher, item, random);
            }
        }
        other => {
            feed(hasher, b"scalar");
            feed(hasher, other.to_json_text().as_bytes());
        }
    }
}
