//! The one thread that writes. It takes all changes that wait, puts them into one transaction, and answers them when
//! that is durable.
//!
//! Every hand-over between threads costs a wake-up. So changes that are submitted together are handed over together,
//! by the first of those who submit them, which is also the only one that the thread wakes: it passes the answers on.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use rusqlite::{Connection, Statement, params};
use tokio::sync::oneshot;

use super::StateError;
use super::error::message;
use crate::model::{Address, Record, Version};
use crate::store::codec::{self, CodecError};

/// Bounds a transaction, and with it the time until its first change is answered. At some 4 microseconds a change
/// this is less than the time of a slow disk's `fsync`.
const GROUP: usize = 1024;

/// No more than so many are waited for before the thread is woken: with many steps at once it writes the first of them
/// while the others go on.
const TOGETHER: usize = 32;

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

/// Changes that were submitted together.
struct Group {
    waiting: Vec<Waiting>,
    done: oneshot::Sender<Answers>,
}

/// What became of a group. To drop it is to tell everybody, wherever that happens: also when the one whom it was for
/// does not wait any more.
struct Answers(Vec<(oneshot::Sender<Reply>, Reply)>);

impl Drop for Answers {
    fn drop(&mut self) {
        for (sender, reply) in self.0.drain(..) {
            // Nobody waits any more when the step's future was dropped; the write stands all the same.
            let _ = sender.send(reply);
        }
    }
}

/// The handle of the thread. Dropping it waits until everything submitted is written.
pub(super) struct Writer {
    /// Changes that were not handed over yet. Whoever submitted the first one does it.
    open: Mutex<Vec<Waiting>>,
    sender: Option<mpsc::Sender<Group>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(path: &Path, connection: Connection, counter: u64) -> Result<Self, StateError> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("state-file".to_owned())
            .spawn(move || run(&connection, &receiver, counter))
            .map_err(|error| StateError::io(path, &error))?;
        Ok(Self { open: Mutex::default(), sender: Some(sender), thread: Some(thread) })
    }

    pub(super) async fn submit(&self, change: Change) -> Reply {
        const GONE: &str = "the thread that writes the state file has ended";
        let (reply, answer) = oneshot::channel();
        let first = {
            let mut open = self.open();
            open.push((change, reply));
            open.len() == 1
        };
        if first {
            let (done, answers) = oneshot::channel();
            let turn = Turn { writer: self, done: Some(done) };
            self.others().await;
            drop(turn);
            drop(answers.await);
        }
        answer.await.unwrap_or_else(|_| Err(Refusal::Failed(GONE.to_owned())))
    }

    /// Lets everybody submit who can at this moment: who was answered together comes back together. That saves every
    /// second `fsync`.
    async fn others(&self) {
        let mut before = 0;
        loop {
            let now = self.open().len();
            if now == before || now >= TOGETHER {
                return;
            }
            before = now;
            tokio::task::yield_now().await;
        }
    }

    fn open(&self) -> MutexGuard<'_, Vec<Waiting>> {
        // Nothing that is done under the lock can panic half-way.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to hand over what is open, whether or not its holder is still polled.
struct Turn<'w> {
    writer: &'w Writer,
    done: Option<oneshot::Sender<Answers>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = std::mem::take(&mut *self.writer.open());
        if let (Some(sender), Some(done)) = (&self.writer.sender, self.done.take()) {
            // When the thread has ended, everybody learns it from the end of their channels.
            let _ = sender.send(Group { waiting, done });
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
            Err(error) => vec![Err(Refusal::Failed(message(&error))); size],
        }
        .into_iter();
        for Group { waiting, done } in groups {
            let answers = waiting.into_iter().map(|(_, reply)| reply).zip(&mut outcomes).collect();
            // When the first one does not wait any more, the others are told here.
            drop(done.send(Answers(answers)));
        }
    }
}

/// Writes the group durably; on an error nothing of it is written.
fn commit(connection: &Connection, group: &[&Change], counter: &mut u64) -> rusqlite::Result<Vec<Reply>> {
    let transaction = connection.unchecked_transaction()?;
    let mut statements = Statements::prepare(&transaction)?;
    let mut outcomes = Vec::with_capacity(group.len());
    for change in group {
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
