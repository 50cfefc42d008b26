//! Which create or update made an object what it is.

use sha2::{Digest, Sha256};

/// Tells the create or update that made an object what it is from every other one. All zero: it was imported, or
/// recorded before there were revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    /// The epoch of its intent: later ones of one record are greater.
    pub epoch: u64,
    /// A digest of its operation id, since a record that is made anew counts epochs anew.
    pub operation: u64,
}

impl Revision {
    /// Of the operation of that id.
    pub fn new(epoch: u64, operation_id: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(operation_id).into();
        let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        Self { epoch, operation: u64::from_le_bytes(*first) }
    }
}
