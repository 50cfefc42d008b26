//! Normalization of strings.

use std::sync::Arc;

use unicode_normalization::char::{compose, decompose_canonical, is_combining_mark};
use unicode_normalization::{UnicodeNormalization, is_nfc};
use unicode_segmentation::UnicodeSegmentation;

/// The string in Unicode normalization form C, in which strings are compared.
pub fn normalize(text: &str) -> Arc<str> {
    if text.is_ascii() || is_nfc(text) { text.into() } else { text.nfc().collect::<String>().into() }
}

/// The part of a prefix that cannot change when more text follows, as go-cty finds it: without the last cluster, with
/// which a following character may combine, unless it is punctuation that never does.
pub fn known_prefix(prefix: &str) -> Arc<str> {
    const ENDS: &str = "-_:;/\\,.(){}[]|?!~ \t@#$%^&*+\"'";
    let prefix = normalize(prefix);
    let Some(last) = prefix.chars().next_back() else { return prefix };
    let end = match first_lone_break(&prefix) {
        // The scanner of clusters that go-cty uses does not get past such a break; it is asked only about what ends in a
        // character that cannot combine.
        Some(end) if !combines(last) => end,
        _ if ENDS.contains(last) => return prefix,
        _ => prefix.grapheme_indices(true).next_back().map_or(0, |(at, _)| at),
    };
    prefix[..end].into()
}

/// Where the first line break is that is not `\r\n`.
fn first_lone_break(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|&at| match bytes[at] {
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        b'\n' => at == 0 || bytes[at - 1] != b'\r',
        _ => false,
    })
}

/// Whether a character may become another one with what follows, or has become one with what precedes.
fn combines(letter: char) -> bool {
    const LATER: [char; 8] =
        ['\u{653}', '\u{654}', '\u{655}', '\u{93c}', '\u{1161}', '\u{11a8}', '\u{3099}', '\u{309a}'];
    let mut later = ('\u{300}'..='\u{345}').chain(LATER);
    let mut parts = 0;
    decompose_canonical(letter, |_| parts += 1);
    is_combining_mark(letter) || parts > 1 || later.any(|mark| compose(letter, mark).is_some())
}
