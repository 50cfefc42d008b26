//! The one form of Unicode in which texts are compared.

use std::sync::Arc;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The text in normalization form C, as HCL and cty have every text. Two texts that look alike are equal then; without it,
/// what one side composes and the other does not would differ for ever.
pub fn normalized(text: &str) -> Arc<str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return text.into();
    }
    text.nfc().collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composed_and_decomposed_letters_are_one() {
        assert_eq!(&*normalized("cafe\u{301}"), "caf\u{e9}");
        assert_eq!(&*normalized("caf\u{e9}"), "caf\u{e9}");
    }
}
