//! Where records are kept: Secrets in a cluster, one SQLite file locally, memory in tests.
//!
//! All of them keep the same bytes, which `codec` defines, and all are a `Journal` to whoever executes. A store hands
//! back every record it can read; one that it cannot read is named with the reason and disturbs no other.

pub mod cluster;
pub mod codec;
#[cfg(test)]
pub(crate) mod fake;
pub mod memory;
pub mod secrets;
pub mod sqlite;
pub mod strings;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::model::{Address, Recorded, Version};

pub use cluster::{ClusterJournal, ResourceMeta, ResourceView};
pub use memory::MemoryJournal;
pub use secrets::Secrets;
pub use sqlite::{Snapshot, StateError, StateFile};
pub use strings::Strings;

/// Everything a store holds of one namespace.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The records, by address.
    pub records: Recorded,
    /// Those that are there and cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// Instances that had a record, as the index of their family says. A file needs none: it is written as a whole.
    pub indexed: BTreeSet<Address>,
    /// When each object was last looked at, as far as the store keeps that: the controller has it in memory, so that
    /// looking costs no write.
    pub reads: BTreeMap<Address, Timestamp>,
}

/// A record that is there and cannot be read. Its object stands still until a person has decided what to do: it is
/// never treated as absent, because that would create the object a second time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record of {address} cannot be read: {message}")]
pub struct Unreadable {
    /// Namespace of the Resource.
    pub namespace: String,
    /// Whose record, as far as what stands beside the record tells.
    pub address: Address,
    /// The version that it has, by which it can be removed; 0 when even that is not known.
    pub version: Version,
    /// Why, in one line.
    pub message: String,
}
