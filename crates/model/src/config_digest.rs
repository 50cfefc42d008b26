//! A digest of an evaluated configuration, with which the planner skips driver calls for unchanged objects.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Revision, Value, encoding};

/// A digest of an evaluated configuration, including its sensitive marks. It is salted with the revision of the object,
/// so that equal configurations of two objects have different digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigDigest(#[serde(with = "encoding::bytes")] pub [u8; 16]);

impl ConfigDigest {
    /// Returns `None` if the configuration contains an unknown value, because two unknown values can differ.
    pub fn new(config: &Value, revision: Revision) -> Option<Self> {
        if config.has_unknown() {
            return None;
        }
        let mut hasher = Sha256::new();
        hasher.update(revision.epoch.to_le_bytes());
        hasher.update(revision.operation.to_le_bytes());
        feed(&mut hasher, config);
        let digest: [u8; 32] = hasher.finalize().into();
        let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        Some(Self(*first))
    }
}

/// Writes a type tag before each value and a length before each collection, so that different values have different
/// bytes.
fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hasher.update(b"0"),
        Value::Unknown => hasher.update(b"?"),
        Value::Bool(is) => hasher.update([b'b', u8::from(*is)]),
        Value::Number(number) => text(hasher, b"n", &number.to_string()),
        Value::String(string) => text(hasher, b"s", string),
        Value::List(items) => {
            hasher.update(b"l");
            hasher.update((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| feed(hasher, item));
        }
        Value::Map(map) => {
            hasher.update(b"m");
            hasher.update((map.len() as u64).to_le_bytes());
            for (name, item) in map.iter() {
                text(hasher, b"k", name);
                feed(hasher, item);
            }
        }
        Value::Sensitive(inner) => {
            hasher.update(b"!");
            feed(hasher, inner);
        }
    }
}

fn text(hasher: &mut Sha256, kind: &[u8], text: &str) {
    hasher.update(kind);
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(value: Value) -> Option<ConfigDigest> {
        ConfigDigest::new(&value, Revision::new(1, "operation"))
    }

    #[test]
    fn digests_depend_on_types_positions_and_marks() {
        let values = [
            json!({}),
            json!({"a": null}),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": true}),
            json!({"a": ["b", "c"]}),
            json!({"a": ["bc"]}),
            json!({"a": [["b"], "c"]}),
            json!({"a": {"b": "c"}}),
        ];
        let mut digests: Vec<_> = values.into_iter().map(|json| digest(Value::from_json(json)).unwrap().0).collect();
        digests.push(digest(Value::map([("a", Value::from("1").into_sensitive())])).unwrap().0);
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }

    #[test]
    fn unknown_values_have_no_digest_and_revisions_have_different_digests() {
        assert_eq!(digest(Value::map([("a", Value::Unknown)])), None);
        let config = Value::map([("a", Value::from(1))]);
        let other = ConfigDigest::new(&config, Revision::new(1, "another"));
        assert_ne!(digest(config.clone()), other);
        assert_eq!(digest(config.clone()), digest(config));
    }
}
