//! "Did you mean …?"

/// The candidate that a misspelt word is closest to, if one is close enough to be meant.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().collect();
    // A third of the word may be wrong, as rustc has it.
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

/// Whether one name may be the other one misspelt: at most a third of it is wrong, so that no short name is near to
/// another one. Of most pairs that is told without comparing letter by letter, since thousands of names may be compared
/// with thousands.
pub(crate) fn is_near(word: &str, other: &str) -> bool {
    let limit = word.chars().count() / 3;
    let (letters, others) = (letters(word), letters(other));
    let missing = (letters & !others).count_ones().max((others & !letters).count_ones());
    if missing as usize > limit {
        return false;
    }
    let (word, other): (Vec<char>, Vec<char>) = (word.chars().collect(), other.chars().collect());
    distance(&word, &other, limit).is_some()
}

/// Which letters a word has: each that another one lacks is a mistake.
fn letters(word: &str) -> u64 {
    word.chars().fold(0, |all, letter| all | 1 << (u32::from(letter) % 64))
}

/// How many letters were added, left out, or taken for others; two that changed places count as one mistake. `None`:
/// more than the limit.
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
        // It can only become more.
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
    fn a_short_name_is_near_to_no_other() {
        assert!(is_near("zone", "zones") && is_near("dns-zome", "dns-zone") && is_near("frist", "first"));
        assert!(!is_near("a", "b") && !is_near("ab", "ba") && !is_near("zone", "network"));
    }
}
