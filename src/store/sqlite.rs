//! The local state file: one SQLite database with the records of one namespace.
//!
//! Whoever changes anything holds an OS lock on `<file>.lock` for as long as the file is open, so at most one process
//! is a writer, and every intent of another holder is known to be of a process that is gone. Who only reads takes no
//! lock at all: SQLite's write-ahead log gives a reader the last committed state while a writer goes on.
//!
//! A write is durable when its future is done. All writes that wait at the same time go into one transaction, so a
//! hundred steps that end together cost one `fsync`.

mod error;
mod load;
mod lock;
mod schema;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tracing::warn;

use crate::execute::{Journal, JournalError};
use crate::model::{Address, Holder, Record, Stored, Version};
use crate::store::{Loaded, codec};

pub use error::StateError;
pub use load::Snapshot;

use lock::Lock;
use writer::{Change, Refusal, Writer};

/// How long the result of a call is tried to be written, before it is given up to what recovery finds: long enough
/// for a person to make room on a full disk, short enough not to look like a hang.
const PATIENCE: Duration = Duration::from_mins(1);

/// The pause after the first failed write; it doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// An open state file, with the right to write.
pub struct StateFile {
    path: PathBuf,
    namespace: Arc<str>,
    owner: Arc<str>,
    holder: Holder,
    patience: Duration,
    /// Dropped before the lock: the last write is on disk when another process may come.
    writer: Writer,
    _lock: Lock,
}

impl StateFile {
    /// Opens the state file for reading and writing, and makes it when it is not there. Until it is dropped no other
    /// process can write to it. A file without records takes on the namespace it is opened for.
    ///
    /// # Errors
    /// When another process writes to it, it belongs to another namespace, was written by a newer version, is no
    /// state file, is damaged, or may not be used.
    pub fn open(path: &Path, namespace: &str, holder: Holder) -> Result<Self, StateError> {
        let lock = Lock::exclusive(path)?;
        let (connection, counter) = schema::open_for_writing(path, namespace, &holder)?;
        let owner = schema::meta::<String>(&connection, "owner").map_err(|error| StateError::sqlite(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            namespace: namespace.into(),
            owner: owner.unwrap_or_else(|| schema::owner_by_place(path)).into(),
            holder,
            patience: PATIENCE,
            writer: Writer::start(path, connection, counter)?,
            _lock: lock,
        })
    }

    /// The same with another time for which the result of a call is tried to be written.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// What the state file at `path` holds at this moment, without a lock; `None` when there is no such file.
    ///
    /// # Errors
    /// As `open`, except that another process may be writing to it.
    pub fn read(path: &Path) -> Result<Option<Snapshot>, StateError> {
        load::read(path)
    }

    /// All records.
    ///
    /// # Errors
    /// When the file cannot be read. A record that cannot be read is no error.
    pub fn load_all(&self) -> Result<Loaded, StateError> {
        load::all(&self.path)
    }

    /// Notes that objects were `seen`, be it by reading or by making them, and that others are `due` whenever they were
    /// seen last.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note_reads(
        &self,
        seen: &BTreeSet<Address>,
        due: &BTreeSet<Address>,
        at: Timestamp,
    ) -> Result<(), StateError> {
        if seen.is_empty() && due.is_empty() {
            return Ok(());
        }
        schema::note_reads(&self.path, seen, due, at).map_err(|error| StateError::sqlite(&self.path, &error))
    }

    /// The namespace whose records it holds.
    pub fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// What the objects of this file are marked with, wherever it is moved: tells them from those of another one.
    pub fn owner(&self) -> &Arc<str> {
        &self.owner
    }

    /// Whether the holder of an intent is certainly not running any more. The lock decides: every other holder is an
    /// earlier process, or wrote to a copy of this file.
    pub fn is_gone(&self, holder: &Holder) -> bool {
        *holder != self.holder
    }

    /// Writes a record; with `base` over that version, without as a new one. Tries once, so that commands that edit
    /// the state tell at once what is wrong.
    ///
    /// # Errors
    /// When the record does not have the version `base` any more, or cannot be written.
    pub async fn write(&self, record: &Record, base: Option<Version>) -> Result<Version, JournalError> {
        let change = Change::put(record, base).map_err(|error| unavailable(&record.address, error.to_string()))?;
        self.apply(&record.address, change).await
    }

    /// Removes a record.
    ///
    /// # Errors
    /// As `write`.
    pub async fn delete(&self, address: &Address, base: Version) -> Result<(), JournalError> {
        self.apply(address, Change::remove(address, base)).await.map(drop)
    }

    async fn apply(&self, address: &Address, change: Change) -> Result<Version, JournalError> {
        self.writer.submit(change).await.map_err(|refusal| match refusal {
            Refusal::Conflict => JournalError::Conflict { address: address.clone() },
            Refusal::Failed(message) => unavailable(address, message),
        })
    }

    /// Tries again until the patience is used up. A failed transaction has left nothing behind, so the same change
    /// on the same version is right each time.
    async fn apply_patiently(&self, address: &Address, change: Change) -> Result<Version, JournalError> {
        let mut pause = FIRST_PAUSE;
        let mut waited = Duration::ZERO;
        loop {
            match self.apply(address, change.clone()).await {
                Err(JournalError::Unavailable { message, .. }) if waited < self.patience => {
                    warn!(%address, "the state file could not be written, trying again: {message}");
                }
                outcome => return outcome,
            }
            tokio::time::sleep(pause).await;
            waited += pause;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn unavailable(address: &Address, message: String) -> JournalError {
    JournalError::Unavailable { address: address.clone(), message }
}

impl Journal for StateFile {
    fn intend(&self, record: Arc<Record>, base: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move { self.write(&record, base).await })
    }

    fn record(&self, record: Arc<Record>, base: Stored) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move {
            let change = Change::put(&record, Some(base.version));
            let change = change.map_err(|error: codec::CodecError| unavailable(&record.address, error.to_string()))?;
            self.apply_patiently(&record.address, change).await
        })
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let address = &base.record.address;
            self.apply_patiently(address, Change::remove(address, base.version)).await.map(drop)
        })
    }
}
