//! The texts of literals inside templates: escapes are replaced, and the text is normalized.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::diagnostic::{Diagnostic, MAX_DIAGNOSTICS};
use crate::source::Range;

/// Replaces the escapes of a part of a template without quotes: `$${` and `%%{`.
pub(crate) fn unescape_literal(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['$', '%']) {
        let (before, sign) = rest.split_at(at);
        result.push_str(before);
        let doubled = sign[1..].starts_with(&sign[..1]);
        let len = if doubled { 2 } else { 1 };
        result.push_str(if doubled && sign[2..].starts_with('{') { &sign[..1] } else { &sign[..len] });
        rest = &sign[len..];
    }
    result.push_str(rest);
    result
}

/// Replaces the escapes of a part of a quoted template. The range is that of the part.
pub(crate) fn unescape_quoted(text: &str, range: Range, diagnostics: &mut Vec<Diagnostic>) -> String {
    if !text.contains('\\') {
        return unescape_literal(text);
    }
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(len) = text[at..].find('\\') {
        result.push_str(&text[at..at + len]);
        at += len;
        let escape = escape_at(&text[at..]);
        let place = Range { start: range.start + at as u32, end: range.start + (at + escape.len()) as u32, ..range };
        match replacement(escape) {
            Ok(c) => result.push(c),
            Err(detail) if diagnostics.len() < MAX_DIAGNOSTICS => {
                diagnostics.push(invalid_escape(escape, detail, place));
            }
            Err(_) => {}
        }
        at += escape.len();
    }
    result.push_str(&text[at..]);
    result
}

/// Returns the escape at the start of a text: the backslash, the character after it, and the digits that belong to it.
fn escape_at(text: &str) -> &str {
    let selector = text[1..].chars().next();
    let digits = match selector {
        Some('u') => 4,
        Some('U') => 8,
        _ => 0,
    };
    let start = 1 + selector.map_or(0, char::len_utf8);
    let len = text[start..].bytes().take(digits).take_while(u8::is_ascii_hexdigit).count();
    &text[..start + len]
}

fn replacement(escape: &str) -> Result<char, &'static str> {
    match escape.as_bytes() {
        [_, b'n'] => Ok('\n'),
        [_, b'r'] => Ok('\r'),
        [_, b't'] => Ok('\t'),
        [_, b'"'] => Ok('"'),
        [_, b'\\'] => Ok('\\'),
        [_, b'u', digits @ ..] if digits.len() != 4 => Err("\\u must be followed by four hexadecimal digits."),
        [_, b'U', digits @ ..] if digits.len() != 8 => Err("\\U must be followed by eight hexadecimal digits."),
        [_, b'u' | b'U', ..] => {
            let number = u32::from_str_radix(&escape[2..], 16).ok();
            number.and_then(char::from_u32).ok_or("No character of Unicode has this number.")
        }
        _ => Err("The escapes are \\n, \\r, \\t, \\\", \\\\, \\uNNNN and \\UNNNNNNNN."),
    }
}

fn invalid_escape(escape: &str, detail: &str, place: Range) -> Diagnostic {
    let diagnostic = Diagnostic::new("Invalid escape sequence", detail, place);
    if escape[1..].starts_with(['u', 'U']) {
        diagnostic
    } else {
        diagnostic.hint(format!("for a backslash, write `\\{escape}`"))
    }
}

/// Returns a text in Unicode's normalization form C, in which values hold theirs.
pub(crate) fn normalize(text: String) -> String {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes { text } else { text.nfc().collect() }
}

#[cfg(test)]
mod tests {
    use super::{normalize, unescape_literal, unescape_quoted};
    use crate::source::Range;

    fn check(text: &str, expected: &str, errors: usize) {
        let mut diagnostics = Vec::new();
        assert_eq!(unescape_quoted(text, Range::default(), &mut diagnostics), expected);
        assert_eq!(diagnostics.len(), errors);
    }

    #[test]
    fn escapes_are_replaced() {
        check(r#"a\n\t\"\\"#, "a\n\t\"\\", 0);
        check(r"\u00e9\U0001F600", "é😀", 0);
        check(r"\ud800\q\u12", "", 3);
        assert_eq!(unescape_literal("$${~"), "${~");
        assert_eq!(normalize("e\u{301}".to_owned()), "é");
    }
}
