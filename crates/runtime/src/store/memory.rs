//! An in-memory journal for tests: it uses the same encoding as the real ones, can fail and stop at any point, and
//! outlives the simulated process that writes to it.
//!
//! A test passes a hook that is called before and after each operation takes effect. `Verdict::Crash` ends the process:
//! that operation and all later ones through this handle never return, and `crashed` completes. `restarted` returns the
//! handle of the next process, with the content that the crash left.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;

use crate::execute::{Journal, JournalError};
use crate::store::{Interner, LoadedRecords, UnreadableRecord, codec};
use model::{Address, Namespace, Record, Recorded, Stored, Version};
use process::{Observable, lock};

/// An operation of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Intend,
    Record,
    Erase,
}

/// When the hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the write.
    Before,
    /// After the write is durable, before the caller returns.
    After,
}

/// One point at which the hook is called.
#[derive(Clone, Debug)]
pub struct FaultPoint {
    /// The number of the point since the handle was created, from 0: two for each operation that took effect.
    pub number: u64,
    pub operation: Operation,
    pub moment: Moment,
    pub record: Arc<Record>,
}

/// The decision of the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// Continue.
    Proceed,
    /// Fail with `Unavailable`; at `Moment::After` the write has taken effect.
    Fail,
    /// End the process.
    Crash,
}

/// Called at every point.
pub type FaultHook = Arc<dyn Fn(&FaultPoint) -> FaultAction + Send + Sync>;

type Content = BTreeMap<(Namespace, Address), (Version, Vec<u8>)>;

#[derive(Debug, Default)]
struct Durable {
    content: Content,
    /// All versions come from one counter, so a record that is created again never has an old version.
    counter: u64,
}

/// The journal of one process. Clones belong to the same process.
#[derive(Clone)]
pub struct MemoryJournal {
    durable: Arc<Mutex<Durable>>,
    hook: FaultHook,
    points: Arc<Mutex<u64>>,
    crashed: Arc<Observable<bool>>,
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new(Arc::new(|_| FaultAction::Proceed))
    }
}

impl MemoryJournal {
    pub fn new(hook: FaultHook) -> Self {
        Self { durable: Arc::default(), hook, points: Arc::default(), crashed: Arc::default() }
    }

    /// The journal of the next process, with the same content and another hook.
    #[must_use]
    pub fn restarted(&self, hook: FaultHook) -> Self {
        Self { durable: self.durable.clone(), ..Self::new(hook) }
    }

    /// Completes when this process has ended.
    pub async fn crashed(&self) {
        self.crashed.wait_for(|crashed| *crashed).await;
    }

    /// Ends this process, between two points.
    pub fn crash(&self) {
        self.crashed.modify(|crashed| !std::mem::replace(crashed, true));
    }

    pub fn points(&self) -> u64 {
        *lock(&self.points)
    }

    pub fn load(&self, namespace: &str) -> LoadedRecords {
        let mut strings = Interner::default();
        let mut records = Recorded::new();
        let mut unreadable = Vec::new();
        for ((_, address), (version, bytes)) in
            lock(&self.durable).content.iter().filter(|((of, _), _)| &**of == namespace)
        {
            match codec::decode(bytes, &mut strings) {
                Ok(record) => {
                    records.insert(address.clone(), Stored { record: record.into(), version: *version });
                }
                Err(error) => unreadable.push(UnreadableRecord {
                    namespace: namespace.to_owned(),
                    address: address.clone(),
                    version: *version,
                    message: error.to_string(),
                }),
            }
        }
        LoadedRecords { records, unreadable, ..LoadedRecords::default() }
    }

    /// Stores a record without a version check, to prepare a test.
    ///
    /// # Errors
    /// When the record cannot be encoded.
    pub fn put(&self, record: &Record) -> Result<Version, codec::CodecError> {
        let bytes = codec::encode(record)?;
        let mut durable = lock(&self.durable);
        durable.counter += 1;
        let version = Version(durable.counter);
        durable.content.insert(key(record), (version, bytes));
        Ok(version)
    }

    async fn perform<T>(
        &self,
        operation: Operation,
        record: &Arc<Record>,
        effect: impl FnOnce(&mut Durable) -> Result<T, JournalError> + Send,
    ) -> Result<T, JournalError> {
        self.pass(operation, Moment::Before, record).await?;
        let outcome = effect(&mut lock(&self.durable))?;
        self.pass(operation, Moment::After, record).await?;
        Ok(outcome)
    }

    async fn pass(&self, operation: Operation, moment: Moment, record: &Arc<Record>) -> Result<(), JournalError> {
        if !self.crashed.read(|crashed| *crashed) {
            let number = {
                let mut points = lock(&self.points);
                *points += 1;
                *points - 1
            };
            match (self.hook)(&FaultPoint { number, operation, moment, record: record.clone() }) {
                FaultAction::Proceed => return Ok(()),
                FaultAction::Fail => {
                    let message = "the test makes it fail".to_owned();
                    return Err(JournalError::Unavailable { address: record.address.clone(), message });
                }
                FaultAction::Crash => self.crash(),
            }
        }
        pending().await
    }
}

impl Durable {
    fn put(&mut self, record: &Record, base: Option<Version>) -> Result<Version, JournalError> {
        self.expect(record, base)?;
        let bytes = codec::encode(record).map_err(|error| JournalError::Unavailable {
            address: record.address.clone(),
            message: error.to_string(),
        })?;
        self.counter += 1;
        self.content.insert(key(record), (Version(self.counter), bytes));
        Ok(Version(self.counter))
    }

    fn remove(&mut self, record: &Record, base: Version) -> Result<(), JournalError> {
        self.expect(record, Some(base))?;
        self.content.remove(&key(record));
        Ok(())
    }

    fn expect(&self, record: &Record, base: Option<Version>) -> Result<(), JournalError> {
        let found = self.content.get(&key(record)).map(|(version, _)| *version);
        if found == base { Ok(()) } else { Err(JournalError::Conflict { address: record.address.clone() }) }
    }
}

impl Journal for MemoryJournal {
    fn intend(&self, record: Arc<Record>, base: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move { self.perform(Operation::Intend, &record, |durable| durable.put(&record, base)).await })
    }

    fn take_over(&self, record: Arc<Record>, base: Version) -> BoxFuture<'_, Result<Version, JournalError>> {
        self.intend(record, Some(base))
    }

    fn record(&self, record: Arc<Record>, base: Stored) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move {
            self.perform(Operation::Record, &record, |durable| durable.put(&record, Some(base.version))).await
        })
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let Stored { record, version } = base;
            self.perform(Operation::Erase, &record, |durable| durable.remove(&record, version)).await
        })
    }
}

fn key(record: &Record) -> (Namespace, Address) {
    (record.namespace.clone(), record.address.clone())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use testkit::records::typical;

    fn at(number: u64, verdict: FaultAction) -> FaultHook {
        Arc::new(move |point| if point.number == number { verdict } else { FaultAction::Proceed })
    }

    #[tokio::test]
    async fn versions_are_compared() {
        let journal = MemoryJournal::default();
        let record = Arc::new(typical(1));
        let first = journal.intend(record.clone(), None).await.unwrap();
        assert!(matches!(journal.intend(record.clone(), None).await, Err(JournalError::Conflict { .. })));
        let first = Stored { record: record.clone(), version: first };
        let second = journal.record(record.clone(), first.clone()).await.unwrap();
        assert!(matches!(journal.erase(first).await, Err(JournalError::Conflict { .. })));
        assert_eq!(journal.load("shop").records[&record.address].version, second);
        journal.erase(Stored { record, version: second }).await.unwrap();
        assert!(journal.load("shop").records.is_empty());
    }

    #[tokio::test]
    async fn a_failure_after_the_effect_leaves_the_effect() {
        let record = Arc::new(typical(1));
        for (number, written) in [(0, 0), (1, 1)] {
            let journal = MemoryJournal::new(at(number, FaultAction::Fail));
            assert!(matches!(journal.intend(record.clone(), None).await, Err(JournalError::Unavailable { .. })));
            assert_eq!(journal.load("shop").records.len(), written);
        }
    }

    #[tokio::test]
    async fn a_crashed_process_writes_no_more_and_the_next_one_finds_what_it_left() {
        let journal = MemoryJournal::new(at(1, FaultAction::Crash));
        let record = Arc::new(typical(1));
        assert!(journal.intend(record.clone(), None).now_or_never().is_none());
        journal.crashed().await;
        assert!(journal.intend(Arc::new(typical(2)), None).now_or_never().is_none());
        let next = journal.restarted(at(u64::MAX, FaultAction::Fail));
        let left = next.load("shop").records;
        assert_eq!(left.keys().collect::<Vec<_>>(), [&record.address]);
        next.record(record.clone(), left[&record.address].clone()).await.unwrap();
    }
}
