//! The names of the Plans that Purlin creates.
//!
//! A name says for which object a Plan is, and ends with ten digits that belong to its digest. So Purlin recognizes its
//! Plans after a restart, whatever their labels. Nothing is approved because of a name.

use sha2::{Digest as _, Sha256};

use model::text::hex;

/// How many bytes of the name of an object a name has. With the digits, and with the prefix of an approval in Git, it is a
/// DNS label of at most 63 bytes.
const LONGEST: usize = 42;
/// The number of digits that are drawn, and of those that check them.
const DIGITS: usize = 5;

/// The name to try first. It is the same each time.
pub(crate) fn first(object: Option<&str>, digest: &str) -> String {
    name(object, digest, digest.get(..DIGITS).unwrap_or("00000"))
}

/// A name that cannot be guessed.
pub(crate) fn other(object: Option<&str>, digest: &str, random: u64) -> String {
    name(object, digest, &hex(&random.to_be_bytes())[..DIGITS])
}

/// Whether a Plan with this name and digest is one that Purlin has created.
pub fn is_drawn(name: &str, digest: &str) -> bool {
    let digits = name.rsplit_once('-').map(|(_, digits)| digits).filter(|digits| digits.len() == 2 * DIGITS);
    let parts = digits.and_then(|digits| digits.split_at_checked(DIGITS));
    parts.is_some_and(|(drawn, check)| check_digits(digest, drawn) == check)
}

fn name(object: Option<&str>, digest: &str, drawn: &str) -> String {
    let object = object.unwrap_or("changes");
    let object = object[..object.floor_char_boundary(LONGEST)].trim_end_matches(['-', '.']);
    format!("{object}-{drawn}{}", check_digits(digest, drawn))
}

fn check_digits(digest: &str, drawn: &str) -> String {
    let mut text = hex(&Sha256::digest(format!("purlin plan {digest} {drawn}").as_bytes()));
    text.truncate(DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::kube_names::is_label;

    #[test]
    fn a_name_belongs_to_its_digest() {
        let (digest, another) = ("a".repeat(64), "b".repeat(64));
        let name = first(Some("store"), &digest);
        assert_eq!(name, first(Some("store"), &digest));
        assert!(is_drawn(&name, &digest) && !is_drawn(&name, &another));
        let second = other(Some("store"), &digest, 7 << 50);
        assert!(second != name && is_drawn(&second, &digest) && !is_drawn(&second, &another));
        assert!(!is_drawn("store", &digest) && !is_drawn("store-aaaaaaaaaa", &digest) && !is_drawn("", &digest));
    }

    #[test]
    fn a_name_is_a_label_also_in_git_and_for_long_names() {
        let digest = "a".repeat(64);
        let long = ["a".repeat(63), format!("{}-{}", "a".repeat(41), "b".repeat(21)), "a".to_owned()];
        for object in long.iter().map(|name| Some(name.as_str())).chain([None]) {
            let name = format!("approved-{}", first(object, &digest));
            assert!(is_label(&name), "{name}");
        }
    }
}
