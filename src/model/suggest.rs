//! "Did you mean …?"

/// The candidate that a misspelt word is closest to, if one is close enough to be meant.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the word may be wrong, as rustc has it.
    let limit = word.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Whether one name may be the other one misspelt: at most a third of it is wrong, so that no short name is near to
/// another one.
pub(crate) fn is_near(word: &str, other: &str) -> bool {
    distance(word, other) * 3 <= word.chars().count()
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
        assert!(is_near("zone", "zones") && is_near("dns-zome", "dns-zone"));
        assert!(!is_near("a", "b") && !is_near("ab", "ac") && !is_near("zone", "network"));
    }
}
