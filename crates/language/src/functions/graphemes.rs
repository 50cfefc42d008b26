//! Characters as people see them: grapheme clusters.

use unicode_segmentation::UnicodeSegmentation;

pub fn count(text: &str) -> usize {
    if is_simple(text) { text.len() } else { text.graphemes(true).count() }
}

pub fn reversed(text: &str) -> String {
    text.graphemes(true).rev().collect()
}

/// The part after `skipped` clusters, with at most `length` of them.
pub fn part(text: &str, skipped: usize, length: Option<usize>) -> &str {
    let rest = &text[offset(text, skipped)..];
    match length {
        Some(length) => &rest[..offset(rest, length)],
        None => rest,
    }
}

/// The offset after a number of clusters.
fn offset(text: &str, count: usize) -> usize {
    if is_simple(text) {
        count.min(text.len())
    } else {
        text.grapheme_indices(true).nth(count).map_or(text.len(), |(at, _)| at)
    }
}

/// In ASCII without carriage returns, every byte is a cluster.
fn is_simple(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii() && byte != b'\r')
}
