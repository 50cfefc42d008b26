//! Suggestions for misspelled names.

/// Returns the candidate that is most similar to a misspelled word, if one is similar enough.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().collect();
    // Like rustc, allow a third of the word to differ.
    let limit = word.len().div_ceil(3);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other: Vec<char> = candidate.to_lowercase().chars().collect();
            Some((distance(&word, &other, limit)?, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Whether one name can be a misspelling of the other: at most a third of the letters differ, so a short name is
/// similar to no other. Comparing the sets of letters first is fast enough to compare thousands of names with each
/// other.
pub fn is_similar(word: &str, other: &str) -> bool {
    let limit = word.chars().count() / 3;
    let (letters, others) = (letters(word), letters(other));
    let missing = (letters & !others).count_ones().max((others & !letters).count_ones());
    if missing as usize > limit {
        return false;
    }
    let (word, other): (Vec<char>, Vec<char>) = (word.chars().collect(), other.chars().collect());
    distance(&word, &other, limit).is_some()
}

/// Returns the set of letters in a word as bits. Each letter that the other word lacks is a difference.
fn letters(word: &str) -> u64 {
    word.chars().fold(0, |set, letter| set | 1 << (u32::from(letter) % 64))
}

/// Returns the number of inserted, deleted or replaced letters, where two swapped letters count once. Returns `None` if
/// it exceeds the limit.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = Vec::with_capacity(above.len());
        row.push(i + 1);
        for j in 0..b.len() {
            let replaced = above[j] + usize::from(a[i] != b[j]);
            let best = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            let is_swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            row.push(if is_swapped { best.min(before[j - 1] + 1) } else { best });
        }
        // The distance cannot decrease in later rows.
        if row.iter().chain(&above).all(|distance| *distance > limit) {
            return None;
        }
        (before, above) = (above, row);
    }
    Some(above[b.len()]).filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_close_word_is_suggested() {
        let fields = ["config", "dependsOn", "lifecycle"];
        assert_eq!(closest("dependson", fields), Some("dependsOn"));
        assert_eq!(closest("lifecylce", fields), Some("lifecycle"));
        assert_eq!(closest("provider", fields), None);
    }

    #[test]
    fn a_short_name_is_similar_to_no_other() {
        assert!(is_similar("zone", "zones") && is_similar("dns-zome", "dns-zone") && is_similar("frist", "first"));
        assert!(!is_similar("a", "b") && !is_similar("ab", "ba") && !is_similar("zone", "network"));
    }
}
