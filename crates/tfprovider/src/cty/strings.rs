//! Strings and their JSON form.

pub(super) use model::unicode::to_nfc;

/// Writes a JSON string with the same escapes as Go's encoder, including `<`, `>` and `&`, because the encodings of
/// types and states are compared byte by byte.
pub(super) fn write_json(text: &str, out: &mut String) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_characters_are_escaped() {
        let mut out = String::new();
        write_json("<a href=\"x\">\n\u{1}\u{2028}\u{7f}é", &mut out);
        assert_eq!(out, "\"\\u003ca href=\\\"x\\\"\\u003e\\n\\u0001\\u2028\u{7f}é\"");
    }
}
