//! JSON, as `jsonencode` and `jsondecode` have it.

use serde_json::value::RawValue;

use super::{Data, Error, Number, Type, Value};

/// Writes a known value without marks. At a dynamic position null is written.
pub fn encode(value: &Value, out: &mut String) -> Result<(), Error> {
    match value.data() {
        Data::Null => out.push_str("null"),
        Data::Unknown(_) => return Err(Error::new("the value is not known")),
        Data::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Data::Number(number) if number.is_infinite() => return Err(Error::new("JSON has no infinite numbers")),
        Data::Number(number) => out.push_str(&number.to_string()),
        Data::String(text) => write_string(text, out),
        Data::Items(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                encode(item, out)?;
            }
            out.push(']');
        }
        Data::Entries(entries) => {
            out.push('{');
            for (position, (name, item)) in entries.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                encode(item, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// Writes a string with the escapes of Go's encoder, which include `<`, `>` and `&`.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Reads JSON into objects, tuples and primitive values; null has no type.
pub fn decode(text: &str) -> Result<Value, Error> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| Error::new(format!("invalid JSON: {error}")))?;
    decode_raw(raw, 0)
}

/// Deeper nesting would cost time that is quadratic in the size of the text.
const MAX_DEPTH: usize = 128;

fn decode_raw(raw: &RawValue, depth: usize) -> Result<Value, Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(format!("JSON is nested more than {MAX_DEPTH} levels deep")));
    }
    let invalid = |error: serde_json::Error| Error::new(format!("invalid JSON: {error}"));
    let text = raw.get().trim();
    match text.as_bytes().first() {
        Some(b'{') => {
            let entries: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(invalid)?;
            let entries = entries.into_iter().map(|(name, item)| Ok((name, decode_raw(item, depth + 1)?)));
            Ok(Value::object(entries.collect::<Result<Vec<_>, Error>>()?))
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(invalid)?;
            let items = items.into_iter().map(|item| decode_raw(item, depth + 1));
            Ok(Value::tuple(items.collect::<Result<Vec<_>, Error>>()?))
        }
        Some(b'"') => Ok(Value::string(&serde_json::from_str::<String>(text).map_err(invalid)?)),
        Some(b't') => Ok(Value::TRUE),
        Some(b'f') => Ok(Value::FALSE),
        Some(b'n') => Ok(Value::null(Type::Dynamic)),
        _ => match Number::parse(text) {
            Some(number) => Ok(Value::number(number)),
            None => Err(Error::new("a number in the JSON text is too large")),
        },
    }
}
