//! Values on one line.

use super::Detail;
use model::Value;
use model::text::{counted, cut};
use model::value::SENSITIVE_TEXT;

/// Shown instead of an unknown value.
pub const UNKNOWN_TEXT: &str = "(known after apply)";

/// Longer strings are cut, unless all details are shown.
pub const MAX_CHARACTERS: usize = 200;

/// The characters before the first difference of two long strings that are shown.
const CONTEXT: usize = 20;

/// A value on one line. Sensitive values are masked, and long strings are cut.
pub fn text(value: &Value, detail: Detail) -> String {
    match value {
        Value::Sensitive(_) => SENSITIVE_TEXT.to_owned(),
        Value::Unknown => UNKNOWN_TEXT.to_owned(),
        Value::Null => "null".to_owned(),
        Value::String(text) => string(text, 0, detail),
        Value::List(items) => {
            format!("[{}]", items.iter().map(|item| self::text(item, detail)).collect::<Vec<_>>().join(", "))
        }
        Value::Map(map) if map.is_empty() => "{}".to_owned(),
        Value::Map(map) => {
            let entries: Vec<String> =
                map.iter().map(|(name, item)| format!("{} = {}", quoted(name), self::text(item, detail))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        known => cut(&known.to_json_text(), detail.characters()).into_owned(),
    }
}

/// The change of a string. Long strings are shown from their first difference on.
pub fn change(old: &str, new: &str, detail: Detail) -> String {
    let is_long = [old, new].into_iter().any(|text| text.chars().count() > detail.characters());
    let skipped = match is_long {
        true => old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count().saturating_sub(CONTEXT),
        false => 0,
    };
    format!("{} -> {}", string(old, skipped, detail), string(new, skipped, detail))
}

/// A string in quotes without its first characters. If it is cut, its length follows.
fn string(text: &str, skipped: usize, detail: Detail) -> String {
    let most = detail.characters();
    // A character has at least one byte.
    let count = if text.len() <= most { 0 } else { text.chars().count() };
    if skipped == 0 && count <= most {
        return quoted(text);
    }
    let shown: String = text.chars().skip(skipped).take(most).collect();
    let before = if skipped > 0 { "…" } else { "" };
    let after = if text.chars().count() > skipped + most { "…" } else { "" };
    format!("{before}{}{after} ({})", quoted(&shown), counted(text.chars().count(), "character"))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
