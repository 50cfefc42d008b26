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

/// How many letters were added, left out, or taken for others; two that changed places count as one mistake.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = rows[i][j] + usize::from(a[i] != b[j]);
            let best = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            let is_swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            row.push(if is_swapped { best.min(rows[i - 1][j - 1] + 1) } else { best });
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
