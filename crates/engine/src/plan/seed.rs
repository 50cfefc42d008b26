//! Random values of a plan, derived from the seed and the address so that the same input gives the same plan.

use sha2::{Digest, Sha256};

use model::{Address, DeposedKey, Record};

/// The random bytes for the driver of one object.
pub fn entropy(seed: u64, address: &Address) -> [u8; 16] {
    let digest = hash(seed, address, "entropy", 0);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes
}

/// The salt for the fingerprints of an object without recorded fingerprints.
pub fn salt(seed: u64, address: &Address) -> u64 {
    let digest = hash(seed, address, "salt", 0);
    let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
    u64::from_le_bytes(*first)
}

/// The key of the old object in a create-first replacement. Unique among the deposed objects of the record.
pub fn deposed_key(seed: u64, address: &Address, record: Option<&Record>) -> DeposedKey {
    (0..=u32::MAX)
        .map(|attempt| {
            let digest = hash(seed, address, "deposed", attempt);
            DeposedKey(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
        })
        .find(|key| record.is_none_or(|record| !record.deposed.contains_key(key)))
        .expect("a record has fewer than 2^32 deposed objects")
}

fn hash(seed: u64, address: &Address, what: &str, attempt: u32) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(seed.to_le_bytes());
    hasher.update(what.as_bytes());
    hasher.update(attempt.to_le_bytes());
    hasher.update(address.to_string().as_bytes());
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::tests::fixture::object;

    #[test]
    fn a_deposed_key_differs_from_existing_keys() {
        let address = Address::single("a");
        let first = deposed_key(7, &address, None);
        let mut record = Record::empty("ns".into(), address.clone(), "".into(), "thing".into());
        record.deposed.insert(first, Arc::new(object("a", &[])));
        assert_ne!(deposed_key(7, &address, Some(&record)), first);
        assert_eq!(deposed_key(7, &address, None), first, "the same seed gives the same key");
    }
}
