//! The journal: the interface through which execution writes records.

use std::sync::Arc;

use futures::future::BoxFuture;

use model::{Address, Diagnostic, Record, Stored, Version};

pub use engine::plan::Loss;

#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// Another client changed or created the record. The step must stop, and the object is planned again.
    #[error("another client changed the record of {address}")]
    Conflict {
        /// Whose record.
        address: Address,
    },
    /// The store was unreachable or rejected the write, after the journal's own retries.
    #[error("writing the record of {address} failed: {message}")]
    Unavailable { address: Address, message: String },
    /// The object of a first create may exist, because its record may have been lost. Nothing was created.
    #[error("{}", .0.message())]
    Missing(Box<Diagnostic>),
}

/// Stores records with compare-and-swap. A successful write is durable. Implementations retry transient errors. They
/// must retry the result of a call for as long as the process may run, even when the store rejects the write, because
/// the result would be lost otherwise.
pub trait Journal: Send + Sync {
    /// Makes an intent durable before a call, or adopts a record for a Resource (the record then holds no intent).
    /// `base` is `None` if the object has no record yet; the record is then created. In a cluster this also adds the
    /// finalizer and the annotation `purlin.dev/record` to the Resource: after the write of a new record, before the
    /// write of an existing one. Both are present when this returns. Returns the new version.
    fn intend(&self, record: Arc<Record>, base: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>>;

    /// Writes a record whose intent has this process as its new holder, before the call of another process is made again.
    /// Unlike `record`, it accepts only the version `base`: of two processes that read the same record, one gets a
    /// conflict. A store that only one process can open needs no write.
    fn take_over(&self, _record: Arc<Record>, base: Version) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move { Ok(base) })
    }

    /// Writes the result of a step, or any other change of a record. `base` is the record as the caller knows it. A
    /// store whose versions also change when the record does not change compares with [`Stored::is_still`].
    fn record(&self, record: Arc<Record>, base: Stored) -> BoxFuture<'_, Result<Version, JournalError>>;

    /// Why the result that `record` is still writing is not durable yet, if known.
    fn pending_error(&self, _record: &Record) -> Option<String> {
        None
    }

    /// Removes a record that holds no object. In a cluster this first removes the finalizer and the annotation of the
    /// Resource. `base` is as for `record`.
    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>>;
}
