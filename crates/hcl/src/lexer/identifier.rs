//! Identifiers: Unicode's `ID_Start` and `ID_Continue`, an underscore first, and a dash inside.

use unicode_ident::{is_xid_continue, is_xid_start};

/// Whether a text is an identifier as a whole.
///
/// ```
/// assert!(hcl::is_identifier("größe-1"));
/// assert!(!hcl::is_identifier("1a"));
/// ```
pub fn is_identifier(text: &str) -> bool {
    !text.is_empty() && identifier_len(text) == text.len()
}

/// Returns the length of the identifier at the start of a text, or 0.
pub(crate) fn identifier_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || !byte.is_ascii()) {
        return 0;
    }
    let ascii = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let len = bytes.iter().position(|byte| !ascii(byte)).unwrap_or(bytes.len());
    if bytes.get(len).is_none_or(u8::is_ascii) {
        return len;
    }
    let mut chars = text.char_indices();
    match chars.next() {
        Some((_, c)) if c == '_' || is_start(c) => {}
        _ => return 0,
    }
    chars.find(|(_, c)| !(is_continue(*c) || *c == '-')).map_or(text.len(), |(at, _)| at)
}

fn is_start(c: char) -> bool {
    is_xid_start(c) || is_left_out(c) || matches!(c, '\u{e33}' | '\u{eb3}' | '\u{ff9e}' | '\u{ff9f}')
}

fn is_continue(c: char) -> bool {
    is_xid_continue(c) || is_left_out(c)
}

/// The characters of `ID_Start` that `XID_Start` and `XID_Continue` leave out, because their normalization is none.
fn is_left_out(c: char) -> bool {
    matches!(c, '\u{37a}' | '\u{309b}' | '\u{309c}' | '\u{fc5e}'..='\u{fc63}' | '\u{fdfa}' | '\u{fdfb}')
        || matches!(
            c,
            '\u{fe70}' | '\u{fe72}' | '\u{fe74}' | '\u{fe76}' | '\u{fe78}' | '\u{fe7a}' | '\u{fe7c}' | '\u{fe7e}'
        )
}
