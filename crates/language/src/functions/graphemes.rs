//! Characters as people see them: grapheme clusters.

use unicode_segmentation::UnicodeSegmentation;

pub(super) fn count(text: &str) -> usize {
    if is_simple(text) { text.len() } else { text.graphemes(true).count() }
}

pub(super) fn reversed(text: &str) -> String {
    text.graphemes(true).rev().collect()
}

/// The part after `skipped` clusters, with at most `length` of them.
pub(super) fn part(text: &str, skipped: usize, length: Option<usize>) -> &str {
    let offset = |text: &str, count: usize| {
        if is_simple(text) {
            count.min(text.len())
        } else {
            text.grapheme_indices(true).nth(count).map_or(text.len(), |(at, _)| at)
        }
    };
    let rest = &text[offset(text, skipped)..];
    match length {
        Some(length) => &rest[..offset(rest, length)],
        None => rest,
    }
}

/// In ASCII without carriage returns, every byte is a cluster.
fn is_simple(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii() && byte != b'\r')
}
