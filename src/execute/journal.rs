//! The journal: where records are kept, as executing sees it.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::model::{Address, Record, Stored, Version};

/// Why a write did not happen.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else wrote the record, or created it first. The step must not go on; the situation is read anew.
    #[error("the record of {address} was changed by somebody else")]
    Conflict {
        /// Whose record.
        address: Address,
    },
    /// The store could not be reached or refused, after the journal's own retries.
    #[error("the record of {address} could not be written: {message}")]
    Unavailable {
        /// Whose record.
        address: Address,
        /// What happened.
        message: String,
    },
}

/// Keeps records with compare-and-swap. A success is durable. Implementations retry what is transient themselves;
/// after a call has run they are expected to keep trying for as long as the process may live, also when the store refuses, since the
/// result of a call must not be lost.
pub trait Journal: Send + Sync {
    /// Makes an intent durable before a call, or adopts a record for a Resource (then it holds no intent). `base` is
    /// `None` when the object has no record yet: then the record is created. In a cluster the finalizer and the
    /// annotation `purlin.dev/record` are put on the Resource when they are not there, after the record was written
    /// or before an existing one is, and in any case before this returns. Gives the new version.
    fn intend(&self, record: Arc<Record>, base: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>>;

    /// Writes the result of a step, and every other change of a record. `base` is what is recorded as far as the caller
    /// knows. A store whose versions also change when the record does not goes by [`Stored::is_still`].
    fn record(&self, record: Arc<Record>, base: Stored) -> BoxFuture<'_, Result<Version, JournalError>>;

    /// Why what `record` was asked to write is not durable yet, as far as that is known: it is tried again meanwhile.
    fn trouble(&self, _record: &Record) -> Option<String> {
        None
    }

    /// Removes a record that holds nothing any more: in a cluster finalizer and annotation go first, then the record.
    /// `base` as for `record`.
    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>>;
}
