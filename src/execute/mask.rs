//! Keeps sensitive values out of what drivers say. A service may quote what it was given in its refusal.

use std::sync::Arc;

use crate::driver::{CallContext, Driver};
use crate::model::{Diagnostic, DriverError, Value};

/// What stands where a sensitive text stood.
const MASK: &str = "(sensitive)";

/// Texts shorter than this are left alone: they stand in every sentence, and hide nothing.
const SHORTEST: usize = 3;

/// Lines of a longer text that are shorter than this may be anything: a brace, a word.
const LINE: usize = 8;

/// A configuration with its literal secrets marked: what the schema calls sensitive is, wherever it was written.
pub(super) fn marked(driver: &dyn Driver, context: &CallContext, config: &Value) -> Value {
    let schema = driver.schema(&context.type_name, context.provider());
    let (Value::Map(map), Some(schema)) = (config, schema) else { return config.clone() };
    if !schema.attributes.values().any(|attribute| attribute.sensitive) {
        return config.clone();
    }
    let is_sensitive = |name: &Arc<str>| schema.attributes.get(name).is_some_and(|attribute| attribute.sensitive);
    Value::map(map.iter().map(|(name, value)| {
        let value = if is_sensitive(name) { value.clone().into_sensitive() } else { value.clone() };
        (Arc::clone(name), value)
    }))
}

/// The error without the sensitive texts of the values that the driver was given.
pub(super) fn error(error: DriverError, given: &[Option<&Value>]) -> DriverError {
    let secrets = secrets(given);
    if secrets.is_empty() {
        return error;
    }
    DriverError {
        message: masked(error.message, &secrets),
        hint: error.hint.map(|hint| masked(hint, &secrets)),
        ..error
    }
}

/// The diagnostic without them.
pub(super) fn diagnostic(diagnostic: Diagnostic, given: &[Option<&Value>]) -> Diagnostic {
    let secrets = secrets(given);
    if secrets.is_empty() {
        return diagnostic;
    }
    Diagnostic {
        summary: masked(diagnostic.summary, &secrets),
        detail: masked(diagnostic.detail, &secrets),
        hint: diagnostic.hint.map(|hint| masked(hint, &secrets)),
        ..diagnostic
    }
}

/// The text without them.
pub(super) fn text(text: String, given: &[Option<&Value>]) -> String {
    masked(text, &secrets(given))
}

fn masked(text: String, secrets: &[String]) -> String {
    secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), MASK))
}

/// The sensitive texts and numbers in the values, longest first, so that no part of one stays.
fn secrets(given: &[Option<&Value>]) -> Vec<String> {
    let mut found = Vec::new();
    for value in given.iter().flatten() {
        collect(value, false, &mut found);
    }
    found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    found.dedup();
    found
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
        }
        Value::Number(number) if sensitive && number.to_string().len() >= SHORTEST => found.push(number.to_string()),
        _ => {}
    }
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
            error(DriverError { kind: ErrorKind::Terminal, message, path: None, hint: None }, &[Some(&given), None]);
        assert_eq!(told.message, "admin may not use (sensitive), nor (sensitive), 1 time");
    }

    #[test]
    fn the_lines_of_a_secret_are_secrets() {
        let key = Value::from("-----BEGIN-----\nc2VjcmV0MQ==\n}\nc2VjcmV0Mg==\n").into_sensitive();
        let told = text("line c2VjcmV0Mg== } of a key".to_owned(), &[Some(&key)]);
        assert_eq!(told, "line (sensitive) } of a key");
    }
}
