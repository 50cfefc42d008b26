//! The revision of an object: the last create or update.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Identifies the last create or update of an object. It is zero for an imported object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The epoch of the intent, which increases in a record.
    #[serde(rename = "e")]
    pub epoch: u64,
    /// A digest of the operation ID, because a recreated record starts with epoch 1 again.
    #[serde(rename = "o")]
    pub operation: u64,
}

impl Revision {
    pub fn new(epoch: u64, operation_id: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(operation_id).into();
        let (first, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        Self { epoch, operation: u64::from_le_bytes(*first) }
    }
}
