//! The writer thread. It collects all waiting changes, writes them in one transaction, and replies when that is
//! durable.
//!
//! Every hand-over between threads costs a wake-up. So changes that are submitted together are sent together by the
//! first submitter, which is the only one that the thread wakes and which passes the replies on.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use rusqlite::{Connection, Statement, params};
use tokio::sync::oneshot;

use super::error::message;
use super::{StateError, schema};
use crate::store::RecordedConfiguration;
use crate::store::codec::{self, CodecError};
use model::{Address, Record, Version};

/// Limits a transaction, and with it the time until its first change is durable. At 4 microseconds per change this
/// takes less time than the `fsync` of a slow disk.
const GROUP: usize = 1024;

/// The number of changes after which the thread is woken without waiting for more: it writes them while other steps
/// continue.
const MAX_COLLECTED: usize = 32;

#[derive(Clone, Debug)]
pub enum WriteError {
    /// The record has another version, exists already, or does not exist.
    Conflict,
    /// The transaction failed and had no effect.
    Failed(String),
}

#[derive(Clone, Debug)]
pub struct Change {
    address: String,
    base: Option<Version>,
    body: Option<Vec<u8>>,
    source: Option<Arc<str>>,
}

impl Change {
    pub fn put(record: &Record, base: Option<Version>) -> Result<Self, CodecError> {
        let body = Some(codec::encode(record)?);
        Ok(Self { address: record.address.to_string(), base, body, source: record.source.clone() })
    }

    pub fn remove(address: &Address, base: Version) -> Self {
        Self { address: address.to_string(), base: Some(base), body: None, source: None }
    }
}

type Reply = Result<Version, WriteError>;
type Waiting = (Change, oneshot::Sender<Reply>);

struct Group {
    waiting: Vec<Waiting>,
    done: oneshot::Sender<Replies>,
}

/// The replies to a group. Dropping it sends them, also when the first submitter does not wait anymore.
struct Replies(Vec<(oneshot::Sender<Reply>, Reply)>);

impl Drop for Replies {
    fn drop(&mut self) {
        for (sender, reply) in self.0.drain(..) {
            // The receiver does not exist if the step's future was dropped; the write is still durable.
            let _ = sender.send(reply);
        }
    }
}

/// The handle of the thread. Dropping it waits until all submitted changes are written.
pub struct Writer {
    /// Changes that were not sent yet. The submitter of the first one sends them.
    open: Mutex<Vec<Waiting>>,
    sender: Option<mpsc::Sender<Group>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(path: &Path, connection: Connection, counter: u64) -> Result<Self, StateError> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("state-file".to_owned())
            .spawn(move || run(&connection, &receiver, counter))
            .map_err(|error| StateError::io(path, &error))?;
        Ok(Self { open: Mutex::default(), sender: Some(sender), thread: Some(thread) })
    }

    pub async fn submit(&self, change: Change) -> Reply {
        const GONE: &str = "the writer thread of the state file has ended";
        let (reply, answer) = oneshot::channel();
        let first = {
            let mut open = self.open();
            open.push((change, reply));
            open.len() == 1
        };
        if first {
            let (done, answers) = oneshot::channel();
            let turn = SubmitGuard { writer: self, done: Some(done) };
            self.collect_others().await;
            drop(turn);
            drop(answers.await);
        }
        answer.await.unwrap_or_else(|_| Err(WriteError::Failed(GONE.to_owned())))
    }

    /// Lets all other ready tasks submit their changes: tasks that received replies together submit together again.
    /// This saves every second `fsync`.
    async fn collect_others(&self) {
        let mut before = 0;
        loop {
            let now = self.open().len();
            if now == before || now >= MAX_COLLECTED {
                return;
            }
            before = now;
            tokio::task::yield_now().await;
        }
    }

    fn open(&self) -> MutexGuard<'_, Vec<Waiting>> {
        // No code under the lock can panic half-way.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the collected changes on drop, even if the future of the first submitter is dropped.
struct SubmitGuard<'w> {
    writer: &'w Writer,
    done: Option<oneshot::Sender<Replies>>,
}

impl Drop for SubmitGuard<'_> {
    fn drop(&mut self) {
        let waiting = std::mem::take(&mut *self.writer.open());
        if let (Some(sender), Some(done)) = (&self.writer.sender, self.done.take()) {
            // If the thread has ended, the submitters see their channels closed.
            let _ = sender.send(Group { waiting, done });
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // The panic message of the thread was already printed, and waiting submitters got an error.
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, receiver: &mpsc::Receiver<Group>, mut counter: u64) {
    while let Ok(first) = receiver.recv() {
        let mut groups = vec![first];
        let mut size = groups[0].waiting.len();
        while let Some(next) = (size < GROUP).then(|| receiver.try_recv().ok()).flatten() {
            size += next.waiting.len();
            groups.push(next);
        }
        let changes: Vec<&Change> = groups.iter().flat_map(|group| &group.waiting).map(|(change, _)| change).collect();
        let outcomes = commit(connection, &changes, &mut counter);
        let mut outcomes = match outcomes {
            Ok(outcomes) => outcomes,
            Err(error) => vec![Err(WriteError::Failed(message(&error))); size],
        }
        .into_iter();
        for Group { waiting, done } in groups {
            let answers = waiting.into_iter().map(|(_, reply)| reply).zip(&mut outcomes).collect();
            // If the first submitter does not wait anymore, this drop sends the replies.
            drop(done.send(Replies(answers)));
        }
    }
}

/// Writes the changes durably in one transaction; on an error none is written.
fn commit(connection: &Connection, group: &[&Change], counter: &mut u64) -> rusqlite::Result<Vec<Reply>> {
    let transaction = connection.unchecked_transaction()?;
    let mut statements = Statements::prepare(&transaction)?;
    let mut outcomes = Vec::with_capacity(group.len());
    for change in group {
        *counter += 1;
        outcomes.push(match statements.apply(change, *counter) {
            Ok(true) => Ok(Version(*counter)),
            Ok(false) => Err(WriteError::Conflict),
            // A change that SQLite rejects (too large) must not fail the others; a full disk has ended the transaction.
            Err(error) if transaction.is_autocommit() => return Err(error),
            Err(error) => Err(WriteError::Failed(message(&error))),
        });
    }
    statements.counter.execute([signed(*counter)])?;
    drop(statements);
    transaction.commit()?;
    Ok(outcomes)
}

/// Adds new records in one transaction. Returns the first address that has a record already, and then writes nothing.
pub fn add(
    connection: &Connection,
    mut counter: u64,
    records: &[Record],
    (source, configuration): (&str, &RecordedConfiguration),
) -> rusqlite::Result<Option<Address>> {
    let transaction = connection.unchecked_transaction()?;
    let mut statements = Statements::prepare(&transaction)?;
    for record in records {
        counter += 1;
        let change =
            Change::put(record, None).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        if !statements.apply(&change, counter)? {
            return Ok(Some(record.address.clone()));
        }
    }
    statements.counter.execute([signed(counter)])?;
    schema::insert_configuration(&transaction, source, configuration)?;
    drop(statements);
    transaction.commit()?;
    Ok(None)
}

struct Statements<'c> {
    insert: Statement<'c>,
    update: Statement<'c>,
    delete: Statement<'c>,
    counter: Statement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            insert: connection
                .prepare("INSERT OR IGNORE INTO record (version, address, body, source) VALUES (?1, ?2, ?3, ?4)")?,
            update: connection.prepare(
                "UPDATE record SET version = ?1, body = ?3, source = ?4 WHERE address = ?2 AND version = ?5",
            )?,
            delete: connection.prepare("DELETE FROM record WHERE address = ?1 AND version = ?2")?,
            counter: connection.prepare("UPDATE meta SET value = ?1 WHERE key = 'counter'")?,
        })
    }

    /// Returns whether the change applied to the expected version. All versions come from one counter in the file, so a
    /// version identifies a write even after its row was removed and created again.
    fn apply(&mut self, change: &Change, version: u64) -> rusqlite::Result<bool> {
        let Change { address, source, .. } = change;
        let changed = match (&change.body, change.base) {
            (Some(body), None) => self.insert.execute(params![signed(version), address, body, source])?,
            (Some(body), Some(base)) => {
                self.update.execute(params![signed(version), address, body, source, signed(base.0)])?
            }
            (None, base) => self.delete.execute(params![address, base.map(|base| signed(base.0))])?,
        };
        Ok(changed == 1)
    }
}

/// SQLite has only signed integers. The counter never reaches the limit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
