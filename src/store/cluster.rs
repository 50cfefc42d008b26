//! The journal of the controller: records as Secrets, and the two marks on the Resource that a record has.
//!
//! The order of writes makes every crash readable. A first create writes the record with the intent, then the marks;
//! so a record with nothing but that intent, of a Resource without marks, proves that no call was made. An erase takes
//! the marks off, then removes the record. An instance of a family enters the index after its record is made and before
//! the marks are put on, and leaves it before its record is removed. So an instance that the index names and that has no
//! record has lost it for certain, no crash can look like that; and an index that lacks an instance proves that nothing was
//! called for it, while a missing index of a marked Resource was lost, and proves nothing; nor does one that was written
//! again in its place.
//! An object without a key that stands beside instances of the same Resource is in their index as well: the marks alone
//! would not tell which of them had a record.

mod family;
mod marks;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use tracing::debug;

use crate::execute::{Journal, JournalError};
use crate::model::{Address, InstanceKey, Operation, Record, Stored, Version};
use crate::process::lock;
use crate::store::secrets::{Failure, Patience, Secrets};

pub use marks::{FINALIZER, Marked, RECORD_ANNOTATION, ResourceMeta};

use family::{Households, Siblings};
use marks::Marks;

/// What the controller knows from its watches. Everything here may be late: it saves requests, and is never what a
/// write relies on.
pub trait ResourceView: Send + Sync {
    /// The metadata of a Resource; `None` when it is not known.
    fn metadata(&self, namespace: &str, name: &str) -> Option<ResourceMeta>;

    /// The instances of a Resource that have a record.
    fn recorded(&self, namespace: &str, name: &str) -> Vec<InstanceKey>;

    /// The instances that the index of a Resource names; nothing when it has none.
    fn indexed(&self, namespace: &str, name: &str) -> Vec<InstanceKey>;
}

/// Records of Resources in a cluster.
pub struct ClusterJournal {
    secrets: Secrets,
    marks: Marks,
    view: Arc<dyn ResourceView>,
    households: Households,
    /// Results that are being written, with what the last attempt came to.
    unstored: Mutex<BTreeMap<(Arc<str>, Address), Unstored>>,
}

/// A result that is not stored yet.
#[derive(Clone, Debug)]
struct Unstored {
    record: Arc<Record>,
    trouble: String,
}

impl ClusterJournal {
    /// A journal over the given Secrets.
    pub fn new(secrets: Secrets, view: Arc<dyn ResourceView>) -> Self {
        let marks = Marks::new(secrets.caller().clone());
        Self { secrets, marks, view, households: Households::default(), unstored: Mutex::default() }
    }

    /// Says of each result that could not be stored what is lost with this process, and counts them. To be called when
    /// no step runs any more, and nothing is written.
    pub fn report_lost(&self) -> usize {
        let lost = std::mem::take(&mut *lock(&self.unstored));
        for Unstored { record, trouble } in lost.values() {
            let id = record.current.as_ref().and_then(|object| object.visible_id());
            tracing::error!(
                namespace = &*record.namespace, address = %record.address, id,
                "the result of the last call about this object is lost, since its record could not be written: {trouble} \
                 (the next start settles the open operation; an object that was made has the id given here)"
            );
        }
        lost.len()
    }

    /// Writes the result of the operation that is open in `base`, for as long as it takes. A refusal may pass as well: a
    /// policy, a quota or a proxy is corrected.
    async fn keep(&self, record: &Arc<Record>, base: &Stored) -> Result<Version, Failure> {
        let whose = (record.namespace.clone(), record.address.clone());
        let trouble = "the API server has not answered".to_owned();
        lock(&self.unstored).insert(whose.clone(), Unstored { record: record.clone(), trouble });
        loop {
            let refusal = match self.write_result(record, base).await {
                Err(Failure::Refused(message) | Failure::Unprocessable(message)) => message,
                // It stays what is lost.
                Err(Failure::Unavailable(message)) => return Err(Failure::Unavailable(message)),
                done => {
                    lock(&self.unstored).remove(&whose);
                    return done;
                }
            };
            tracing::error!(
                namespace = &*record.namespace, address = %record.address,
                "the API server refuses the record of a call that has ended; it is kept and tried again: {refusal}"
            );
            if let Some(unstored) = lock(&self.unstored).get_mut(&whose) {
                unstored.trouble = format!("the API server refuses it: {refusal}");
            }
            if !self.secrets.caller().pause().await {
                return Err(Failure::Unavailable(refusal));
            }
        }
    }

    /// One attempt. A record that was removed beside Purlin is made again, since the object exists; one that was damaged may be
    /// repaired, and holds the intent then.
    async fn write_result(&self, record: &Record, base: &Stored) -> Result<Version, Failure> {
        match self.secrets.replace(record, base, Patience::UntilStopped).await {
            Err(Failure::Conflict) => {}
            other => return other,
        }
        match self.secrets.get(&record.namespace, &record.address, Patience::UntilStopped).await? {
            None if record.has_objects() => self.secrets.put(record, None, Patience::UntilStopped).await,
            Some(Err(unreadable)) => Err(Failure::Refused(unreadable.message)),
            _ => Err(Failure::Conflict),
        }
    }

    /// The Secrets, for reading.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Puts the marks on the Resource of a record that is there already, and enters it in the index of its family:
    /// for a Resource that adopts a record. No request when all is known to be there.
    ///
    /// # Errors
    /// `Conflict` when the Resource is gone, is going, or is another one of the same name.
    pub async fn mark(&self, record: &Record) -> Result<(), JournalError> {
        self.settle_in(record).await.map_err(|failure| told(record, failure))
    }

    /// Takes an instance without a record out of the index of its family, and the marks off the Resource if that was
    /// all it had: for `state rm` without a record, and for a deletion that a crash cut.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn release(&self, namespace: &Arc<str>, address: &Address, uid: &Arc<str>) -> Result<(), Failure> {
        self.move_out(namespace, address, uid, Patience::SHORT).await
    }

    /// Takes the marks off a Resource that has no record, and removes the index of its family. Gives `false`, and
    /// changes nothing, when there is a record after all.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn release_all(&self, namespace: &Arc<str>, name: &Arc<str>, uid: &Arc<str>) -> Result<bool, Failure> {
        let home = self.households.of(namespace, name);
        let single = Address::single(name.clone());
        let mut members = home.enter(&single, false).await;
        let indexed = members.indexed(&self.secrets, Patience::SHORT).await?;
        for address in indexed.iter().chain([&single]) {
            if self.secrets.get(namespace, address, Patience::SHORT).await?.is_some() {
                return Ok(false);
            }
        }
        members.leave_all(&self.secrets, uid, Patience::SHORT).await?;
        self.marks.remove(namespace, name, uid, None, Patience::SHORT).await?;
        members.set_marked(None);
        drop(members);
        self.households.tidy(&home, &[]);
        Ok(true)
    }

    /// Takes the marks off a Resource and leaves its records alone: they are abandoned.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn unmark(&self, namespace: &str, name: &str, uid: &str) -> Result<(), Failure> {
        self.marks.remove(namespace, name, uid, None, Patience::SHORT).await
    }

    async fn create(&self, record: &Record) -> Result<Version, Failure> {
        let version = self.secrets.put(record, None, Patience::SHORT).await?;
        match self.settle_in(record).await {
            Ok(()) => Ok(version),
            Err(failure) => {
                // Refused for certain, so the record proves that no call was made; and it holds the version that we
                // wrote, or is not ours to remove. What fails here is left to recovery, which reads the same.
                if !matches!(failure, Failure::Unavailable(_)) {
                    let removed = self.take_back(record, version).await;
                    debug!(address = %record.address, ?removed, "took back an intent, since its Resource is gone");
                }
                Err(failure)
            }
        }
    }

    async fn take_back(&self, record: &Record, version: Version) -> Result<(), Failure> {
        self.move_out(&record.namespace, &record.address, &record.uid, Patience::SHORT).await?;
        self.secrets.delete(&record.namespace, &record.address, version, Patience::SHORT).await
    }

    /// A record whose object is forgotten, without that object. The marks go before the record: should a crash come
    /// between the two, what is left must hold nothing that the next Resource of the name would adopt. The intent of a
    /// destroy says enough by itself, and so does the place that a record is moving to.
    async fn emptied(&self, base: Stored) -> Result<Stored, Failure> {
        let forgets = base.record.intent.is_none() && base.record.moving_to.is_none() && base.record.has_objects();
        if !forgets {
            return Ok(base);
        }
        let empty = Record { current: None, deposed: BTreeMap::new(), ..Record::clone(&base.record) };
        let record = Arc::new(empty);
        let version = self.secrets.replace(&record, &base, Patience::UntilStopped).await?;
        Ok(Stored { record, version })
    }

    async fn remove(&self, base: &Stored) -> Result<(), Failure> {
        let Record { namespace, address, uid, .. } = base.record.as_ref();
        self.move_out(namespace, address, uid, Patience::UntilStopped).await?;
        let removed = self.secrets.remove(base, Patience::UntilStopped).await;
        if matches!(removed, Err(Failure::Conflict)) {
            // The record stays, so what belongs to it is put back; if that fails, its next intent does it.
            let put_back = self.settle_in(&base.record).await;
            debug!(%address, ?put_back, "put the marks back, since the record was changed by somebody else");
        }
        removed
    }

    /// The index and the marks, after a record was made. One patch at most, and for a family one write of the index, which
    /// comes first: where the marks are, an index that is missing has been lost, and proves nothing.
    async fn settle_in(&self, record: &Record) -> Result<(), Failure> {
        let Record { namespace, address, uid, .. } = record;
        let home = self.households.of(namespace, &address.name);
        let mut members = home.enter(address, true).await;
        let siblings = self.siblings(namespace, address);
        members.join(&self.secrets, address, uid, &siblings, Patience::SHORT).await?;
        // Of a family the marks were put on with another instance. A single object gets a record when it has none, and
        // a person may have taken the marks off since the last one.
        if address.key == InstanceKey::None || !members.marked(uid) {
            // Marks that the view shows may be gone already, taken off by ourselves a moment ago; then it is asked. In
            // the usual case, the first create, it shows none.
            let known = self.view.metadata(namespace, &address.name).filter(|meta| !meta.is_marked());
            match self.marks.add(namespace, &address.name, uid, known, Patience::SHORT).await? {
                Marked::Yes => members.set_marked(Some(uid.clone())),
                Marked::Gone => {
                    members.leave(&self.secrets, address, uid, &siblings, Patience::SHORT).await?;
                    return Err(Failure::Conflict);
                }
            }
        }
        Ok(())
    }

    fn siblings(&self, namespace: &str, address: &Address) -> Siblings {
        let at = |key| Address { name: address.name.clone(), key };
        Siblings {
            recorded: self.view.recorded(namespace, &address.name).into_iter().map(at).collect(),
            indexed: self.view.indexed(namespace, &address.name).into_iter().map(at).collect(),
            marked: self.view.metadata(namespace, &address.name).is_some_and(|meta| meta.is_marked()),
        }
    }

    /// The same backwards, before a record is removed.
    async fn move_out(
        &self,
        namespace: &Arc<str>,
        address: &Address,
        uid: &Arc<str>,
        patience: Patience,
    ) -> Result<(), Failure> {
        let home = self.households.of(namespace, &address.name);
        let mut members = home.enter(address, false).await;
        let siblings = self.siblings(namespace, address);
        members.leave(&self.secrets, address, uid, &siblings, patience).await?;
        if !members.others(address, &siblings) {
            // Marks that the view does not show may be there all the same, put on a moment ago.
            let known = self.view.metadata(namespace, &address.name).filter(ResourceMeta::is_marked);
            self.marks.remove(namespace, &address.name, uid, known, patience).await?;
            members.set_marked(None);
        }
        drop(members);
        self.households.tidy(&home, &siblings.recorded);
        Ok(())
    }

    fn is_settled(&self, record: &Record) -> bool {
        let Record { namespace, address, uid, .. } = record;
        let known = self.view.metadata(namespace, &address.name);
        let indexed = self.view.indexed(namespace, &address.name);
        address.key == InstanceKey::None
            && known.is_some_and(|meta| meta.uid == *uid && meta.is_marked())
            && (indexed.is_empty() || indexed.contains(&address.key))
    }
}

impl Journal for ClusterJournal {
    fn intend(&self, record: Arc<Record>, base: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move {
            let outcome = match base {
                None => self.create(&record).await,
                Some(base) => {
                    // A record that was adopted gets its marks before anything is made that they protect.
                    let makes = record.intent.as_ref().is_none_or(|intent| intent.operation != Operation::Destroy);
                    if makes && !self.is_settled(&record) {
                        self.mark(&record).await?;
                    }
                    self.secrets.put(&record, Some(base), Patience::SHORT).await
                }
            };
            outcome.map_err(|failure| told(&record, failure))
        })
    }

    fn record(&self, record: Arc<Record>, base: Stored) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move {
            let outcome = match base.record.intent {
                Some(_) => self.keep(&record, &base).await,
                // What is refused is planned again.
                None => self.secrets.replace(&record, &base, Patience::UntilStopped).await,
            };
            outcome.map_err(|failure| told(&record, failure))
        })
    }

    fn trouble(&self, record: &Record) -> Option<String> {
        let whose = (record.namespace.clone(), record.address.clone());
        lock(&self.unstored).get(&whose).map(|unstored| unstored.trouble.clone())
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let record = base.record.clone();
            let erased = async { self.remove(&self.emptied(base).await?).await };
            erased.await.map_err(|failure| told(&record, failure))
        })
    }
}

fn told(record: &Record, failure: Failure) -> JournalError {
    let address = record.address.clone();
    match failure {
        Failure::Conflict => JournalError::Conflict { address },
        other => JournalError::Unavailable { address, message: other.to_string() },
    }
}
