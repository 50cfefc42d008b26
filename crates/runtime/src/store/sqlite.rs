//! The local state file: one SQLite database with the records of one namespace.
//!
//! A writer holds an OS lock on `<file>.lock` as long as the file is open, so there is at most one, and an intent of
//! another holder belongs to a process that has ended. Readers take no lock: the write-ahead log shows them the last
//! committed state during writes.
//!
//! A write is durable when its future completes. Concurrent writes share a transaction, so a hundred steps that end
//! together cost one `fsync`.
//!
//! The first change copies the file to `<file>.backup`.

mod backup;
mod error;
mod failures;
mod load;
mod lock;
mod schema;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::OnceCell;
use tracing::warn;

use crate::execute::{Journal, JournalError};
use crate::store::{LastFailure, LoadedRecords, RecordedConfiguration, codec};
use model::{Address, Holder, Namespace, Record, Stored, Version};

pub use error::StateError;
pub use load::Snapshot;

use lock::Lock;
use writer::{Change, WriteError, Writer};

/// How long the write of a result is retried before it is left to recovery: long enough to free space on a full disk,
/// short enough not to appear to hang.
const RETRY_TIMEOUT: Duration = Duration::from_mins(1);

/// The delay before the first retry; it doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A state file that is open for writing.
pub struct StateFile {
    path: PathBuf,
    namespace: Namespace,
    owner: Arc<str>,
    holder: Holder,
    retry_timeout: Duration,
    /// Set when the file has been copied.
    backup: OnceCell<()>,
    /// Dropped before the lock, so that the last write is on disk before another process opens the file.
    writer: Writer,
    _lock: Lock,
}

impl StateFile {
    /// Opens the state file for reading and writing, and creates it if needed. No other process can write to it until
    /// it is dropped. A file without records is reassigned to `namespace`.
    ///
    /// # Errors
    /// When another process writes to the file, it belongs to another namespace, a newer version created it, it is not
    /// a state file, it is damaged, or access is denied.
    pub fn open(path: &Path, namespace: &str, holder: Holder) -> Result<Self, StateError> {
        let lock = Lock::exclusive(path)?;
        let (connection, counter) = schema::open_for_writing(path, namespace, &holder)?;
        let owner = schema::meta::<String>(&connection, "owner").map_err(|error| StateError::sqlite(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            namespace: namespace.into(),
            owner: owner.unwrap_or_else(|| schema::path_owner(path)).into(),
            holder,
            retry_timeout: RETRY_TIMEOUT,
            backup: OnceCell::new(),
            writer: Writer::start(path, connection, counter)?,
            _lock: lock,
        })
    }

    /// Sets how long the write of a result is retried.
    #[must_use]
    pub fn with_retry_timeout(mut self, retry_timeout: Duration) -> Self {
        self.retry_timeout = retry_timeout;
        self
    }

    /// Reads the state file at `path` without a lock; `None` if it does not exist.
    ///
    /// # Errors
    /// As `open`, except that another process may be writing.
    pub fn read(path: &Path) -> Result<Option<Snapshot>, StateError> {
        load::read(path)
    }

    /// Whether there is a state file at `path`. An empty file is none, as for [`Self::read`]: it may be the rest of one. If
    /// access is denied, there is one.
    pub fn exists(path: &Path) -> bool {
        match std::fs::metadata(path) {
            Ok(file) => file.len() > 0,
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// The copy of the state file at `path` before its last changes.
    pub fn backup_path(path: &Path) -> PathBuf {
        backup::path(path)
    }

    /// Reads all records.
    ///
    /// # Errors
    /// When the file cannot be read. An unreadable record is not an error.
    pub fn load_all(&self) -> Result<LoadedRecords, StateError> {
        load::all(&self.path)
    }

    /// Records that the objects `seen` were refreshed at a time, by a read or by their creation, and that the objects
    /// `due` must be refreshed again.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record_reads(
        &self,
        refreshed: &BTreeSet<Address>,
        due: &BTreeSet<Address>,
        at: Timestamp,
    ) -> Result<(), StateError> {
        if refreshed.is_empty() && due.is_empty() {
            return Ok(());
        }
        schema::record_reads(&self.path, refreshed, due, at).map_err(|error| StateError::sqlite(&self.path, &error))
    }

    /// Replaces the recorded failures.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record_failures(&self, failures: &BTreeMap<Address, LastFailure>) -> Result<(), StateError> {
        failures::record(&self.path, failures).map_err(|error| StateError::sqlite(&self.path, &error))
    }

    /// Records the sources of manifests, without changing the versions of the records.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record_sources(&self, sources: &BTreeMap<Address, Arc<str>>) -> Result<(), StateError> {
        if sources.is_empty() {
            return Ok(());
        }
        schema::record_sources(&self.path, sources, None).map_err(|error| StateError::sqlite(&self.path, &error))
    }

    /// Records the sources that were given to an apply.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record_given(&self, given: &[String]) -> Result<(), StateError> {
        let given = serde_json::json!(given).to_string();
        schema::record_sources(&self.path, &BTreeMap::new(), Some(&given))
            .map_err(|error| StateError::sqlite(&self.path, &error))
    }

    /// Records what is known of a Terraform configuration.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record_configuration(&self, source: &str, known: &RecordedConfiguration) -> Result<(), StateError> {
        schema::record_configuration(&self.path, source, known).map_err(|error| StateError::sqlite(&self.path, &error))
    }

    /// Adds new records and what is known of their configuration, all or nothing. Returns an address that has a record
    /// already; then nothing was written.
    ///
    /// # Errors
    /// As `open`, and when the file cannot be written.
    pub fn add(
        path: &Path,
        namespace: &str,
        holder: &Holder,
        records: &[Record],
        configuration: (&str, &RecordedConfiguration),
    ) -> Result<Option<Address>, StateError> {
        let _lock = Lock::exclusive(path)?;
        let (connection, counter) = schema::open_for_writing(path, namespace, holder)?;
        backup::copy(path)?;
        writer::add(&connection, counter, records, configuration).map_err(|error| StateError::sqlite(path, &error))
    }

    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The owner name that objects of this file are marked with. It stays the same when the file is moved.
    pub fn owner(&self) -> &Arc<str> {
        &self.owner
    }

    /// Whether the holder of an intent has certainly ended. The lock guarantees it: every other holder is an earlier
    /// process, or wrote to a copy of this file.
    pub fn has_ended(&self, holder: &Holder) -> bool {
        *holder != self.holder
    }

    /// Writes a record over the version `base`; without `base`, creates it. Does not retry, so that commands which edit
    /// the state report errors immediately.
    ///
    /// # Errors
    /// When the record does not have the version `base`, or cannot be written.
    pub async fn write(&self, record: &Record, base: Option<Version>) -> Result<Version, JournalError> {
        let change = Change::put(record, base).map_err(|error| unavailable(&record.address, error.to_string()))?;
        self.apply(&record.address, change).await
    }

    /// # Errors
    /// As `write`.
    pub async fn delete(&self, address: &Address, base: Version) -> Result<(), JournalError> {
        self.apply(address, Change::remove(address, base)).await.map(drop)
    }

    async fn apply(&self, address: &Address, change: Change) -> Result<Version, JournalError> {
        // Before the first change, so that nothing is copied when nothing changes.
        let copied = self.backup.get_or_try_init(|| async { backup::copy(&self.path) }).await;
        copied.map_err(|error| unavailable(address, error.to_string()))?;
        self.writer.submit(change).await.map_err(|refusal| match refusal {
            WriteError::Conflict => JournalError::Conflict { address: address.clone() },
            WriteError::Failed(message) => unavailable(address, message),
        })
    }

    /// Retries until the timeout. A failed transaction has no effect, so the same change can be retried on the same
    /// version.
    async fn apply_with_retry(&self, address: &Address, change: Change) -> Result<Version, JournalError> {
        let (mut failures, mut waited) = (0, Duration::ZERO);
        loop {
            match self.apply(address, change.clone()).await {
                Err(JournalError::Unavailable { message, .. }) if waited < self.retry_timeout => {
                    warn!(object = %address, "writing the state file failed, retrying: {message}");
                }
                outcome => return outcome,
            }
            failures += 1;
            let pause = model::backoff(failures, FIRST_PAUSE, LONGEST_PAUSE);
            tokio::time::sleep(pause).await;
            waited += pause;
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
            self.apply_with_retry(&record.address, change).await
        })
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let address = &base.record.address;
            self.apply_with_retry(address, Change::remove(address, base.version)).await.map(drop)
        })
    }
}
