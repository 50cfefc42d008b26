//! Which name was meant.

/// The greatest number of letters that are wrong in a name that is still recognized.
const MAX_WRONG: usize = 2;

/// Returns the candidate that is closest to a name, if one is close.
pub fn closest<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let distances = candidates.iter().map(|candidate| (distance(name, candidate), *candidate));
    distances.filter(|(distance, _)| *distance <= MAX_WRONG).min().map(|(_, candidate)| candidate)
}

/// The number of letters to insert, remove or replace to make one name of the other.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 4 * MAX_WRONG {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (at, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn names_with_few_wrong_letters_are_recognized() {
        let names = ["description", "default", "type"];
        assert_eq!(closest("desription", &names), Some("description"));
        assert_eq!(closest("tpye", &names), Some("type"));
        assert_eq!(closest("sensitive", &names), None);
        assert_eq!(closest("größe", &["grösse"]), Some("grösse"));
    }
}
