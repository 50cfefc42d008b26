//! The sensitive texts of values, to be taken out of whatever is told. A service may quote what it was given in its refusal,
//! whole or in part, as it is or in another spelling; and so may a program in its log.

use std::borrow::Borrow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::{Diagnostic, DriverError, Value};

/// What stands where a sensitive text stood.
const MASK: &str = "(sensitive)";

/// Texts shorter than this are left alone: they stand in every sentence, and hide nothing.
const SHORTEST: usize = 3;

/// Lines of a longer text that are shorter than this may be anything: a brace, a word.
const LINE: usize = 8;

/// Spellings of shorter texts are too short to be told from anything else.
const SPELLED: usize = 6;

/// Sensitive texts and numbers, longest first, so that no part of one stays.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Those that are marked as such in the values.
    pub fn of<V: Borrow<Value>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut found = Vec::new();
        for value in values {
            collect(value.borrow(), false, &mut found);
        }
        found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        found.dedup();
        Self(found)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without them.
    pub fn text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| text.replace(secret.as_str(), MASK))
    }

    /// The error without them.
    pub fn error(&self, error: DriverError) -> DriverError {
        if self.is_empty() {
            return error;
        }
        DriverError { message: self.text(error.message), hint: error.hint.map(|hint| self.text(hint)), ..error }
    }

    /// The diagnostic without them.
    pub fn diagnostic(&self, diagnostic: Diagnostic) -> Diagnostic {
        if self.is_empty() {
            return diagnostic;
        }
        Diagnostic {
            summary: self.text(diagnostic.summary),
            detail: self.text(diagnostic.detail),
            hint: diagnostic.hint.map(|hint| self.text(hint)),
            ..diagnostic
        }
    }
}

// What it holds must not be printed.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secrets").field(&self.0.len()).finish()
    }
}

fn collect(value: &Value, sensitive: bool, found: &mut Vec<String>) {
    match value {
        Value::Sensitive(inner) => collect(inner, true, found),
        Value::List(items) => items.iter().for_each(|item| collect(item, sensitive, found)),
        Value::Map(map) => map.values().for_each(|item| collect(item, sensitive, found)),
        Value::String(text) if sensitive => {
            // A program may print the lines of a key one by one, or only some of them.
            let lines = text.lines().map(str::trim).filter(|line| text.len() > line.len() && line.len() >= LINE);
            found.extend(lines.map(str::to_owned));
            found.extend(Some(text.to_string()).filter(|text| text.len() >= SHORTEST));
            if text.len() >= SPELLED {
                found.extend(spellings(text));
            }
        }
        Value::Number(number) if sensitive && number.to_string().len() >= SHORTEST => found.push(number.to_string()),
        _ => {}
    }
}

/// A text as others write it: escaped as in JSON or in an address, and in base64, also as a part of something longer.
fn spellings(text: &str) -> Vec<String> {
    let json = serde_json::Value::from(text).to_string();
    let address = text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            // Writing to a text cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
        out
    });
    let mut all = vec![json.trim_matches('"').to_owned(), address];
    for before in 0..3 {
        // Of the first and the last character some bits belong to what stands beside the text.
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before][..], text.as_bytes()].concat());
        let start = (before * 8).div_ceil(6);
        let end = (before + text.len()) * 8 / 6;
        all.extend(encoded.get(start..end).map(str::to_owned));
    }
    all.retain(|spelling| spelling != text);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

    #[test]
    fn what_was_given_as_a_secret_is_not_quoted() {
        let given = Value::map([
            ("user", Value::from("admin")),
            ("password", Value::from("hunter22").into_sensitive()),
            ("keys", Value::list([Value::from("hunter"), Value::from("1")]).into_sensitive()),
        ]);
        let message = "admin may not use hunter22, nor hunter, 1 time".to_owned();
        let told =
            Secrets::of([&given]).error(DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None });
        assert_eq!(told.message, "admin may not use (sensitive), nor (sensitive), 1 time");
    }

    #[test]
    fn the_lines_of_a_secret_are_secrets() {
        let key = Value::from("-----BEGIN-----\nc2VjcmV0MQ==\n}\nc2VjcmV0Mg==\n").into_sensitive();
        let told = Secrets::of([&key]).text("line c2VjcmV0Mg== } of a key".to_owned());
        assert_eq!(told, "line (sensitive) } of a key");
    }

    #[test]
    fn a_secret_is_one_in_any_spelling() {
        let secret = Value::from("p\"ss/wörd").into_sensitive();
        let told = |message: &str| Secrets::of([&secret]).text(message.to_owned());
        assert_eq!(told(r#"{"p": "p\"ss/wörd"}"#), r#"{"p": "(sensitive)"}"#);
        assert_eq!(told("db://app:p%22ss%2Fw%C3%B6rd@host"), "db://app:(sensitive)@host");
        for user in ["a:", "ab:", "abc:"] {
            let header = STANDARD_NO_PAD.encode(format!("{user}p\"ss/wörd"));
            let told = told(&format!("Basic {header}"));
            assert!(told.contains("(sensitive)") && told.len() < header.len() + 10, "{told}");
        }
    }
}
