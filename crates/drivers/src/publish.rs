//! Publishes copies of outputs as ConfigMaps, Secrets or files.

use async_trait::async_trait;

use super::CallContext;
use model::data::StringData;
use model::{DataRef, DriverError, Uid};

/// A published copy and its owner.
#[derive(Clone, Copy, Debug)]
pub struct CopyTarget<'a> {
    pub context: &'a CallContext,
    /// apiVersion, kind and UID of the Resource. The UID is empty for a Resource from a file.
    pub owner: [&'a str; 3],
    pub target: &'a DataRef,
    /// The recorded UID of the copy; empty while it is unknown whether the copy exists.
    pub uid: &'a str,
}

/// Writes, reads and removes copies. A copy of another owner is never changed: `write` returns `AlreadyExists`, and the
/// other methods treat the copy as missing.
#[async_trait]
pub trait Publisher: Send + Sync {
    /// Creates or updates the copy and returns its UID. The owner annotation identifies a copy whose UID was lost in a
    /// crash.
    async fn write(&self, copy: CopyTarget<'_>, texts: &StringData) -> Result<Uid, DriverError>;

    /// Returns the contents of the copy; `None` if it does not exist.
    async fn read(&self, copy: CopyTarget<'_>) -> Result<Option<StringData>, DriverError>;

    /// Removes the copy with the recorded UID or, without one, the copy with the owner annotation.
    async fn remove(&self, copy: CopyTarget<'_>) -> Result<(), DriverError>;
}
