//! Normalization of strings.

use std::sync::Arc;

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The string in Unicode normalization form C, in which strings are compared.
pub fn normalize(text: &str) -> Arc<str> {
    if text.is_ascii() || is_nfc(text) { text.into() } else { text.nfc().collect::<String>().into() }
}

/// The part of a prefix that cannot change when more text follows: without the last character, with which a following
/// one may combine, unless it is punctuation that never does.
pub fn known_prefix(prefix: &str) -> Arc<str> {
    const ENDS: &str = "-_:;/\\,.(){}[]|?!~ \t@#$%^&*+\"'";
    let prefix = normalize(prefix);
    match prefix.chars().next_back() {
        None => prefix,
        Some(last) if ENDS.contains(last) => prefix,
        Some(_) => {
            let mut kept = prefix.char_indices().rev();
            // Combining characters and what stands before them form one cluster.
            let end = kept.find(|(_, letter)| !continues_cluster(*letter)).map_or(0, |(at, _)| at);
            prefix[..end].into()
        }
    }
}

fn continues_cluster(letter: char) -> bool {
    unicode_normalization::char::is_combining_mark(letter) || matches!(letter, '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}
