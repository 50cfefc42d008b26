//! Stores for records: Secrets in a cluster, one SQLite file locally, memory in tests.
//!
//! All stores use the format of `codec` and implement `Journal`. A store returns every readable record; an unreadable
//! record is reported with its error and does not affect the others.

pub mod cluster;
pub mod codec;
pub mod memory;
pub mod secrets;
pub mod sqlite;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use serde::{Deserialize, Serialize};

use model::{Address, Name, Recorded, TypeName, Version};

pub use cluster::{ClusterJournal, ResourceMeta, ResourceView};
pub use memory::MemoryJournal;
pub use model::Interner;
pub use secrets::Secrets;
pub use sqlite::{Snapshot, StateError, StateFile};

/// The content of a store for one namespace.
#[derive(Debug, Default)]
pub struct LoadedRecords {
    pub records: Recorded,
    /// Records that exist but cannot be read.
    pub unreadable: Vec<UnreadableRecord>,
    /// Instances that the family indexes list. Empty for a state file, which needs no index because it is written as a
    /// whole.
    pub indexed: BTreeSet<Address>,
    /// The Resources whose family index was lost and replaced.
    pub rebuilt_indexes: BTreeSet<Name>,
    /// The time of each object's last refresh, if the store has it. The controller keeps these times in memory, so that
    /// a refresh needs no write.
    pub reads: BTreeMap<Address, Timestamp>,
    /// The last failure of each object, if the store has it. In a cluster, the status has it.
    pub failures: BTreeMap<Address, LastFailure>,
    /// The sources of the last apply. Only a state file stores them.
    pub given: Vec<String>,
    /// What is known of Terraform configurations beside their objects, by source. Only a state file stores it.
    pub configurations: BTreeMap<Arc<str>, RecordedConfiguration>,
}

/// What a state file knows of a Terraform configuration beside its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedConfiguration {
    /// The outputs of the root module after the last apply, as JSON in the form of a Terraform state: an object of
    /// `{"value", "type", "sensitive"}`. Empty before the first one.
    pub outputs: String,
    /// The history of the Terraform state from which the objects were taken over. Empty without one.
    pub lineage: String,
    /// The position in this history.
    pub serial: u64,
}

/// The last failed step of an object, for users. It is not a part of the record, because an object that could not be
/// created has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    pub at: Timestamp,
    pub type_name: TypeName,
    pub operation: String,
    pub reason: String,
    /// One line, without sensitive values.
    pub message: String,
}

/// A record that exists but cannot be read. Its object is blocked until the user decides what to do. It is never
/// treated as absent, because that would create the object again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record of {address} cannot be read: {message}")]
pub struct UnreadableRecord {
    pub namespace: String,
    /// The address, from the metadata beside the record.
    pub address: Address,
    /// The version, needed to remove it; 0 if unknown.
    pub version: Version,
    /// The error, on one line.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::{Arc, Secrets};
    use process::{Shutdown, SystemRandom};

    /// A store of Secrets, and the signal that stops it.
    pub(crate) fn secrets(client: kube::Client) -> (Secrets, Shutdown) {
        let stop = Shutdown::default();
        (Secrets::new(client, "purlin-system", Arc::new(SystemRandom), stop.clone()), stop)
    }
}
