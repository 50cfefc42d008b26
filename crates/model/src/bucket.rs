//! The bucket of a namespace, by which the work of a cluster is divided. Records carry it as a label, so it never changes.
//!
//! The hash must spread names that differ only at their end, such as `team-01` and `team-02`. Ranges of the FNV-1a hash of
//! `shardRange` (KEP-5866) do not: they put 30 such names into one of 16 ranges (`docs/adr/0024`).

use sha2::{Digest as _, Sha256};

/// The number of buckets.
pub const BUCKETS: u16 = 64;

/// The bucket of a namespace, less than [`BUCKETS`].
pub fn bucket(namespace: &str) -> u16 {
    let first = Sha256::digest(namespace.as_bytes()).first().copied().unwrap_or_default();
    u16::from(first) % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_of_a_namespace_never_changes() {
        let names = ["default", "kube-system", "shop", "team-01", "team-02"];
        assert_eq!(names.map(bucket), [55, 8, 13, 31, 61]);
    }

    #[test]
    fn names_that_differ_at_their_end_are_spread() {
        let mut counts = [0_u32; BUCKETS as usize];
        (0..1000).for_each(|number| counts[usize::from(bucket(&format!("team-{number:03}")))] += 1);
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least >= 4 && *most <= 32, "{counts:?}");
    }
}
