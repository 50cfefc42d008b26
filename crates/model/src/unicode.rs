//! Unicode normalization of strings.

use std::sync::Arc;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Returns the string in normalization form C, like HCL and cty. Otherwise, a string that only one side composes would
/// always differ.
pub fn to_nfc(text: &str) -> Arc<str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return text.into();
    }
    text.nfc().collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decomposed_letters_are_composed() {
        assert_eq!(&*to_nfc("cafe\u{301}"), "caf\u{e9}");
        assert_eq!(&*to_nfc("caf\u{e9}"), "caf\u{e9}");
    }
}
