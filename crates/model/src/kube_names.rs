//! The syntax of names and labels in Kubernetes. Strings of manifests that become parts of a path are checked before any
//! request, so that no manifest can choose another path.

/// The characters of the random part of a generated name, as in Kubernetes: no vowels and no ambiguous characters.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The length of the random part, as in Kubernetes.
pub const SUFFIX_LENGTH: usize = 5;

/// The random part of a generated name, from random bytes.
pub fn generated_suffix(entropy: [u8; 16]) -> String {
    let mut number = u128::from_le_bytes(entropy);
    let letters = std::iter::repeat_with(|| {
        let letter = usize::try_from(number % SUFFIX_ALPHABET.len() as u128).unwrap_or_default();
        number /= SUFFIX_ALPHABET.len() as u128;
        char::from(SUFFIX_ALPHABET[letter])
    });
    letters.take(SUFFIX_LENGTH).collect()
}

/// Whether a string can be the random part of a generated name.
pub fn is_generated_suffix(text: &str) -> bool {
    text.len() == SUFFIX_LENGTH && text.bytes().all(|byte| SUFFIX_ALPHABET.contains(&byte))
}

/// Whether a string is a group and version, such as `v1` or `apps/v1`.
pub fn is_api_version(text: &str) -> bool {
    match text.split_once('/') {
        Some((group, version)) => is_subdomain(group) && is_label(version),
        None => is_label(text),
    }
}

/// Whether a string is the kind of an object, such as `ConfigMap`.
pub fn is_kind(text: &str) -> bool {
    let is_short = (1..=63).contains(&text.len());
    is_short && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Whether a string can be the name of an object of any kind: a segment of a path. The names of most kinds are more
/// restricted, but those of RBAC objects, such as `system:node`, are not.
pub fn is_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte))
        && !matches!(text, "." | "..")
}

/// Whether a string can be the value of a label.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty()
        || (text.len() <= 63
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && has_alphanumeric_ends(text))
}

/// Whether a string is a DNS label of RFC 1123, as the names of namespaces and of Purlin's objects are.
pub fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && has_alphanumeric_ends(text)
}

/// Whether a string is a DNS subdomain, as the names of ConfigMaps, Secrets and `ServiceAccounts` are.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

fn has_alphanumeric_ends(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_has_no_vowels() {
        let suffix = generated_suffix([7; 16]);
        assert_eq!(suffix.len(), SUFFIX_LENGTH);
        assert!(suffix.bytes().all(|byte| SUFFIX_ALPHABET.contains(&byte)), "{suffix}");
    }

    #[test]
    fn strings_that_would_change_a_path_are_rejected() {
        for text in ["", ".", "..", "a/b", "../secrets", "a?b", "a#b", "a%2Fb", "a b", "a\nb", "ä"] {
            assert!(!is_name(text) && !is_label(text) && !is_kind(text), "{text}");
        }
        for text in ["", "/v1", "apps/", "../v1", "apps/v1/x", "apps/..", "a?b", "v1#", "Apps/v1", "a..b/v1", "-a/v1"] {
            assert!(!is_api_version(text), "{text}");
        }
        assert!(!is_label("a_b"), "an identifier of `a_b` would clash with that of `a-b`");
        assert!(!is_name(&"a".repeat(254)) && !is_label(&"a".repeat(64)) && !is_kind("1A"));
        assert!(["a/b", "-a", "a_", "ä"].iter().all(|text| !is_label_value(text)) && !is_label_value(&"a".repeat(64)));
    }

    #[test]
    fn valid_strings_are_accepted() {
        assert!(["v1", "apps/v1", "gateway.networking.k8s.io/v1beta1"].iter().all(|text| is_api_version(text)));
        assert!(["system:node", "kube-root-ca.crt", "Upper_case", "a"].iter().all(|text| is_name(text)));
        assert!(is_kind("ConfigMap") && is_label("kube-system") && is_label("1st"));
        assert!(["", "a", "A.b_c-9"].iter().all(|text| is_label_value(text)));
    }
}
