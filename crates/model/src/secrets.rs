//! Redacts sensitive values in messages. A provider or program can quote a value that it received in an error message
//! or in its log, completely, in part, or in another encoding.

use std::borrow::Borrow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::Value;

/// The replacement of a sensitive string.
const MASK: &str = "(sensitive)";

/// Shorter strings are not redacted, because they occur in every message.
const MIN_LENGTH: usize = 3;

/// Shorter lines of a string are not redacted separately, because they can be anything, such as a brace.
const MIN_LINE: usize = 8;

/// Encodings of shorter strings are not redacted, because they can occur by chance.
const MIN_ENCODED: usize = 6;

/// Sensitive strings and numbers, longest first, so that no part of a longer one remains.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Collects the values that are marked as sensitive.
    pub fn of<V: Borrow<Value>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut texts = Vec::new();
        for value in values {
            collect(value.borrow(), false, &mut texts);
        }
        Self::sorted(texts)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a text contains a sensitive string, other than one that is so short that it occurs by chance.
    pub fn occur_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| secret.len() >= MIN_LINE && text.contains(secret.as_str()))
    }

    pub fn redact(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| text.replace(secret.as_str(), MASK))
    }

    /// These secrets and those of `other`.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        Self::sorted(self.0.into_iter().chain(other.0.iter().cloned()).collect())
    }

    fn sorted(mut texts: Vec<String>) -> Self {
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        Self(texts)
    }
}

// The sensitive strings must not be printed.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secrets").field(&self.0.len()).finish()
    }
}

fn collect(value: &Value, sensitive: bool, texts: &mut Vec<String>) {
    match value {
        Value::Sensitive(inner) => collect(inner, true, texts),
        Value::List(items) => items.iter().for_each(|item| collect(item, sensitive, texts)),
        Value::Map(map) => map.values().for_each(|item| collect(item, sensitive, texts)),
        Value::String(text) if sensitive => {
            // A program can print single lines of a key.
            let lines = text.lines().map(str::trim).filter(|line| text.len() > line.len() && line.len() >= MIN_LINE);
            texts.extend(lines.map(str::to_owned));
            texts.extend(Some(text.to_string()).filter(|text| text.len() >= MIN_LENGTH));
            if text.len() >= MIN_ENCODED {
                texts.extend(encodings(text));
            }
        }
        Value::Number(number) if sensitive && number.to_string().len() >= MIN_LENGTH => texts.push(number.to_string()),
        _ => {}
    }
}

/// Returns a string with JSON escapes, with URL escapes, and in base64, also as a part of a longer encoded string.
fn encodings(text: &str) -> Vec<String> {
    let json = serde_json::Value::from(text).to_string();
    let address = text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            // Writing to a `String` cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
        out
    });
    let mut texts = vec![json.trim_matches('"').to_owned(), address];
    for before in 0..3 {
        // Some bits of the first and the last character belong to the surrounding bytes.
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before][..], text.as_bytes()].concat());
        let start = (before * 8).div_ceil(6);
        let end = (before + text.len()) * 8 / 6;
        texts.extend(encoded.get(start..end).map(str::to_owned));
    }
    texts.retain(|spelling| spelling != text);
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensitive_values_are_redacted() {
        let given = Value::map([
            ("user", Value::from("admin")),
            ("password", Value::from("hunter22").into_sensitive()),
            ("keys", Value::list([Value::from("hunter"), Value::from("1")]).into_sensitive()),
        ]);
        let message = "admin may not use hunter22, nor hunter, 1 time".to_owned();
        let redacted = Secrets::of([&given]).redact(message);
        assert_eq!(redacted, "admin may not use (sensitive), nor (sensitive), 1 time");
    }

    #[test]
    fn short_secrets_occur_by_chance() {
        let secrets = Secrets::of([&Value::list(["web", "correct-horse"].map(Value::from)).into_sensitive()]);
        assert!(secrets.occur_in("db://app:correct-horse@host") && !secrets.occur_in("web-server"));
    }

    #[test]
    fn lines_of_a_secret_are_redacted() {
        let key = Value::from("-----BEGIN-----\nc2VjcmV0MQ==\n}\nc2VjcmV0Mg==\n").into_sensitive();
        let redacted = Secrets::of([&key]).redact("line c2VjcmV0Mg== } of a key".to_owned());
        assert_eq!(redacted, "line (sensitive) } of a key");
    }

    #[test]
    fn encoded_secrets_are_redacted() {
        let secret = Value::from("p\"ss/wörd").into_sensitive();
        let redacted = |message: &str| Secrets::of([&secret]).redact(message.to_owned());
        assert_eq!(redacted(r#"{"p": "p\"ss/wörd"}"#), r#"{"p": "(sensitive)"}"#);
        assert_eq!(redacted("db://app:p%22ss%2Fw%C3%B6rd@host"), "db://app:(sensitive)@host");
        for user in ["a:", "ab:", "abc:"] {
            let header = STANDARD_NO_PAD.encode(format!("{user}p\"ss/wörd"));
            let redacted = redacted(&format!("Basic {header}"));
            assert!(redacted.contains("(sensitive)") && redacted.len() < header.len() + 10, "{redacted}");
        }
    }
}
