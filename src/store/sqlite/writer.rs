//! The one thread that writes. It takes all changes that wait, puts them into one transaction, and answers them when
//! that is durable.

use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, Statement, params};
use tokio::sync::oneshot;

use super::StateError;
use super::error::message;
use crate::model::{Address, Record, Version};
use crate::store::codec::{self, CodecError};

/// Bounds a transaction, and with it the time until its first change is answered. At some 4 microseconds a change
/// this is less than the time of a slow disk's `fsync`.
const GROUP: usize = 1024;

/// Who was answered together comes back together, but not in the same instant. Waiting this long for the rest saves
/// every second `fsync`, and is far less than one takes.
const STRAGGLER: Duration = Duration::from_micros(100);

/// Why a change did not happen.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    /// The record has another version, or is there already, or not any more.
    Conflict,
    /// The transaction could not be made durable, and has left nothing behind.
    Failed(String),
}

/// A change of one row.
#[derive(Clone, Debug)]
pub(super) struct Change {
    address: String,
    base: Option<Version>,
    /// `None` removes the row.
    body: Option<Vec<u8>>,
}

impl Change {
    pub(super) fn put(record: &Record, base: Option<Version>) -> Result<Self, CodecError> {
        Ok(Self { address: record.address.to_string(), base, body: Some(codec::encode(record)?) })
    }

    pub(super) fn remove(address: &Address, base: Version) -> Self {
        Self { address: address.to_string(), base: Some(base), body: None }
    }
}

type Reply = Result<Version, Refusal>;
type Waiting = (Change, oneshot::Sender<Reply>);

/// The handle of the thread. Dropping it waits until everything submitted is written.
pub(super) struct Writer {
    sender: Option<mpsc::Sender<Waiting>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(path: &Path, connection: Connection, counter: u64) -> Result<Self, StateError> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("state-file".to_owned())
            .spawn(move || run(&connection, &receiver, counter))
            .map_err(|error| StateError::io(path, &error))?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    pub(super) async fn submit(&self, change: Change) -> Reply {
        const GONE: &str = "the thread that writes the state file has ended";
        let (reply, answer) = oneshot::channel();
        let sent = self.sender.as_ref().is_some_and(|sender| sender.send((change, reply)).is_ok());
        match answer.await {
            Ok(reply) if sent => reply,
            _ => Err(Refusal::Failed(GONE.to_owned())),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed, and everybody who waited for it was told.
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, receiver: &mpsc::Receiver<Waiting>, mut counter: u64) {
    let mut together = 1;
    while let Ok(first) = receiver.recv() {
        let group = gather(receiver, first, together);
        together = group.len();
        let outcomes = commit(connection, &group, &mut counter);
        for (position, (_, reply)) in group.into_iter().enumerate() {
            // Nobody waits any more when the step's future was dropped; the write stands all the same.
            let _ = reply.send(match &outcomes {
                Ok(outcomes) => outcomes[position].clone(),
                Err(error) => Err(Refusal::Failed(message(error))),
            });
        }
    }
}

/// All that waits, and what is still to come of the `expected` ones.
fn gather(receiver: &mpsc::Receiver<Waiting>, first: Waiting, expected: usize) -> Vec<Waiting> {
    let mut group = vec![first];
    while group.len() < GROUP {
        let next =
            if group.len() < expected { receiver.recv_timeout(STRAGGLER).ok() } else { receiver.try_recv().ok() };
        match next {
            Some(next) => group.push(next),
            None => break,
        }
    }
    group
}

/// Writes the group durably; on an error nothing of it is written.
fn commit(connection: &Connection, group: &[Waiting], counter: &mut u64) -> rusqlite::Result<Vec<Reply>> {
    let transaction = connection.unchecked_transaction()?;
    let mut statements = Statements::prepare(&transaction)?;
    let mut outcomes = Vec::with_capacity(group.len());
    for (change, _) in group {
        *counter += 1;
        outcomes.push(match statements.apply(change, *counter) {
            Ok(true) => Ok(Version(*counter)),
            Ok(false) => Err(Refusal::Conflict),
            // One change that SQLite refuses (too large) is not the others' fault; a full disk has ended the
            // transaction.
            Err(error) if transaction.is_autocommit() => return Err(error),
            Err(error) => Err(Refusal::Failed(message(&error))),
        });
    }
    statements.counter.execute([signed(*counter)])?;
    drop(statements);
    transaction.commit()?;
    Ok(outcomes)
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
            insert: connection.prepare("INSERT OR IGNORE INTO record (version, address, body) VALUES (?1, ?2, ?3)")?,
            update: connection
                .prepare("UPDATE record SET version = ?1, body = ?3 WHERE address = ?2 AND version = ?4")?,
            delete: connection.prepare("DELETE FROM record WHERE address = ?1 AND version = ?2")?,
            counter: connection.prepare("UPDATE meta SET value = ?1 WHERE key = 'counter'")?,
        })
    }

    /// Whether the change found what it expected. The versions of all rows come from one counter, which the file
    /// keeps: a version says which write it was, even after a row was removed and made anew.
    fn apply(&mut self, change: &Change, version: u64) -> rusqlite::Result<bool> {
        let changed = match (&change.body, change.base) {
            (Some(body), None) => self.insert.execute(params![signed(version), change.address, body])?,
            (Some(body), Some(base)) => {
                self.update.execute(params![signed(version), change.address, body, signed(base.0)])?
            }
            (None, base) => self.delete.execute(params![change.address, base.map(|base| signed(base.0))])?,
        };
        Ok(changed == 1)
    }
}

/// SQLite has signed numbers only. A counter never comes near the border.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
