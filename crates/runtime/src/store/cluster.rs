//! The journal of the controller: records in Secrets, and the two marks (finalizer and annotation) on each Resource
//! with a record.
//!
//! The order of writes makes the state after every crash unambiguous. A first create writes the record with the intent,
//! then the index of the family, then the marks. So a record that holds only that intent, of a Resource without marks,
//! proves that no call was made. A removal reverts this: the marks if it is the last instance, then the entry in the
//! index, then the record. So no crash can leave these states:
//!
//! - An indexed instance without a record: its record was lost.
//! - An annotated Resource without an index: the index was lost. The index that replaces it lists the instances that are
//!   known to have a record, and says that it was rebuilt, because others may have lost theirs.
//!
//! In both states, an instance without a record is not created, because its object may exist, and the marks of a family
//! that has lost its index outlast its last record. `purlin state rm` confirms that the index is complete. The server is asked before anything is created: a cached index that lists the
//! instance may be out of date. Otherwise, an index that does not list an instance proves that no call was made for it.
//!
//! A single object without siblings has no index, only marks. If a Resource has an object without a key besides
//! instances with keys, the index lists that object as well, because the marks alone do not show which of them had a
//! record.

mod family;
mod marks;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use tracing::debug;

use crate::execute::{Journal, JournalError, Loss};
use crate::store::secrets::{RequestError, RetryPolicy, SecretContent, Secrets};
use model::{Address, Name, Namespace, Operation, Record, Stored, Uid, Version};
use process::lock;

pub use marks::{FINALIZER, MarkOutcome, RECORD_ANNOTATION, ResourceMeta};

use family::{Access, FamilyIndexes, Siblings};
use marks::Marks;

/// The view of Resources that the controller has from its watches. It may be out of date: it saves requests, and no
/// write relies on it.
pub trait ResourceView: Send + Sync {
    /// The metadata of a Resource, if known.
    fn metadata(&self, namespace: &str, name: &Name) -> Option<ResourceMeta>;

    /// The objects of a Resource or Module that have a record.
    fn recorded(&self, namespace: &str, name: &Name) -> Vec<Address>;

    /// The objects in the index of a Resource or Module; empty without an index.
    fn indexed(&self, namespace: &str, name: &Name) -> Vec<Address>;
}

/// The state of the index after an instance was added.
#[derive(Debug)]
enum Attached {
    Complete,
    /// The Resource already had the marks of a record, although it is no family.
    WasMarked,
    /// The index was lost and replaced, so an instance without a record may have had one.
    IndexLost,
}

/// When the server is asked for the marks of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkCheck {
    /// Unless this process has added or found them: many instances are created at once.
    OncePerFamily,
    /// Also if it has, because another client may have removed them since.
    Always,
}

/// Stores the records of Resources in a cluster.
pub struct ClusterJournal {
    secrets: Secrets,
    marks: Marks,
    view: Arc<dyn ResourceView>,
    family_indexes: FamilyIndexes,
    /// Results that are being written, with the last error.
    unstored: Mutex<BTreeMap<(Namespace, Address), Unstored>>,
}

#[derive(Clone, Debug)]
struct Unstored {
    record: Arc<Record>,
    error: String,
}

impl ClusterJournal {
    pub fn new(secrets: Secrets, view: Arc<dyn ResourceView>) -> Self {
        let marks = Marks::new(secrets.caller().clone());
        Self { secrets, marks, view, family_indexes: FamilyIndexes::default(), unstored: Mutex::default() }
    }

    /// Logs and counts the results that could not be stored and are lost with this process. Must be called when no step
    /// is running.
    pub fn report_lost(&self) -> usize {
        let lost = std::mem::take(&mut *lock(&self.unstored));
        for Unstored { record, error: trouble } in lost.values() {
            let id = record.current.as_ref().and_then(|object| object.visible_id());
            tracing::error!(
                namespace = &*record.namespace, object = %record.address, id,
                "the result of the last call about this object is lost because its record could not be written: \
                 {trouble} (the next start recovers the open operation; if an object was created, it has the id given \
                 here)"
            );
        }
        lost.len()
    }

    /// Stores the result of a call that has ended, with unlimited retries. Even a rejected write is retried, because a
    /// policy, a quota or a proxy may be corrected. `result`: the record to write; without it, that of `base` is removed.
    /// Returns the version that was written or removed.
    async fn until_stored(&self, result: Option<&Arc<Record>>, base: &Stored) -> Result<Version, RequestError> {
        let record = result.unwrap_or(&base.record);
        let whose = (record.namespace.clone(), record.address.clone());
        let trouble = "the API server has not responded".to_owned();
        lock(&self.unstored).insert(whose.clone(), Unstored { record: record.clone(), error: trouble });
        loop {
            let attempt = match result {
                Some(record) => self.write_result(record, base).await,
                None => self.remove(base).await.map(|()| base.version),
            };
            let refusal = match attempt {
                Err(RequestError::Rejected(message) | RequestError::Unprocessable(message)) => message,
                // The entry stays and is reported as lost.
                Err(RequestError::Unavailable(message)) => return Err(RequestError::Unavailable(message)),
                done => {
                    lock(&self.unstored).remove(&whose);
                    return done;
                }
            };
            tracing::error!(
                namespace = &*record.namespace, object = %record.address,
                "the API server rejects the record of a call that has ended; Purlin keeps it and retries: {refusal}"
            );
            if let Some(unstored) = lock(&self.unstored).get_mut(&whose) {
                unstored.error = format!("the API server rejects it: {refusal}");
            }
            if !self.secrets.caller().pause().await {
                return Err(RequestError::Unavailable(refusal));
            }
        }
    }

    /// One attempt. A record that another client removed is created again, because the object exists. A damaged record
    /// is not overwritten: the user may repair it, and it then holds the intent.
    async fn write_result(&self, record: &Record, base: &Stored) -> Result<Version, RequestError> {
        match self.secrets.replace(record, base, RetryPolicy::UntilStopped).await {
            Err(RequestError::Conflict) => {}
            other => return other,
        }
        match self.secrets.get(&record.namespace, &record.address, RetryPolicy::UntilStopped).await? {
            None if record.has_objects() => self.secrets.put(record, None, RetryPolicy::UntilStopped).await,
            Some(Err(unreadable)) => Err(RequestError::Rejected(unreadable.message)),
            _ => Err(RequestError::Conflict),
        }
    }

    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Adds the marks to the Resource of an existing record, and adds the record to the index of its family: for a
    /// Resource that adopts a record. Sends no request if all of them are known to exist.
    ///
    /// # Errors
    /// `Conflict` when the Resource does not exist, is being deleted, or has another UID.
    pub async fn mark(&self, record: &Record) -> Result<(), JournalError> {
        self.attach(record, MarkCheck::Always).await.map(drop).map_err(|failure| journal_error(record, failure))
    }

    /// Adds the marks to a Resource that lacks one of them: for a Resource with this UID that is not being deleted. Changes
    /// nothing if it has no annotation and no object is recorded at `address`, or if that record is being removed: the
    /// marks are removed first, and after a crash within a first create, their absence proves that no call was made.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn claim(&self, namespace: &Namespace, address: &Address, uid: &Uid) -> Result<(), RequestError> {
        let (name, policy) = (address.name(), RetryPolicy::SHORT);
        let family = self.family_indexes.of(namespace, name);
        let mut guard = family.lock(self.access(policy)).await;
        let meta = self.marks.read(namespace, name, policy).await?;
        let Some(meta) = meta.filter(|meta| meta.uid == *uid && !meta.deleting) else { return Ok(()) };
        let is_held = meta.is_annotated() || {
            let content = self.secrets.get(namespace, address, policy).await?;
            matches!(content, Some(Ok(SecretContent::Record(stored))) if keeps_object(&stored.record, uid))
        };
        if is_held {
            self.marks.add(namespace, name, uid, Some(meta), policy).await?;
            guard.set_marked(Some(uid.clone()));
        }
        Ok(())
    }

    /// Removes an instance from the index of its family, and the marks from the Resource if it has no other instance:
    /// for `state rm`, before the record is removed.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn release(&self, namespace: &Namespace, address: &Address, uid: &Uid) -> Result<(), RequestError> {
        self.detach(namespace, address, uid, RetryPolicy::SHORT, false).await
    }

    /// As `release`, for an instance whose record is missing. The user has verified that the other instances have their
    /// records, so an index that was lost is written again and counts as complete.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn release_missing(
        &self,
        namespace: &Namespace,
        address: &Address,
        uid: &Uid,
    ) -> Result<(), RequestError> {
        self.detach(namespace, address, uid, RetryPolicy::SHORT, true).await
    }

    /// Removes the marks of a Resource that has no record, and the index of its family. Returns `false` without a
    /// change if it has a record.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn release_all(&self, namespace: &Namespace, name: &Name, uid: &Uid) -> Result<bool, RequestError> {
        let family = self.family_indexes.of(namespace, name);
        let single = Address::single(name.clone());
        let mut guard = family.lock(self.access(RetryPolicy::SHORT)).await;
        let indexed = guard.indexed().await?;
        for address in indexed.iter().chain([&single]) {
            if self.secrets.get(namespace, address, RetryPolicy::SHORT).await?.is_some() {
                return Ok(false);
            }
        }
        guard.clear(uid).await?;
        self.marks.remove(namespace, name, uid, None, RetryPolicy::SHORT).await?;
        guard.set_marked(None);
        drop(guard);
        self.family_indexes.prune(&family, &Siblings::default());
        Ok(true)
    }

    /// Forgets what this process knows from its own writes in a namespace. Call it when this replica begins to lead there:
    /// another one may have written since.
    pub fn forget(&self, namespace: &Namespace) {
        self.family_indexes.forget(namespace);
    }

    /// Removes the marks of a Resource and leaves its records, which are abandoned.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn unmark(&self, namespace: &str, name: &Name, uid: &Uid) -> Result<(), RequestError> {
        self.marks.remove(namespace, name, uid, None, RetryPolicy::SHORT).await
    }

    async fn create(&self, record: &Record) -> Result<Version, JournalError> {
        let failed = |failure| journal_error(record, failure);
        // A record without an intent to create is moved or imported: its object is known.
        let creates = record.intent.as_ref().is_some_and(|intent| intent.operation == Operation::Create);
        if creates && let Some(loss) = self.loss(record).await.map_err(failed)? {
            return Err(missing_record(record, loss));
        }
        self.family_indexes.sweep(|(namespace, name)| self.siblings(namespace, name));
        let version = self.secrets.put(record, None, RetryPolicy::SHORT).await.map_err(failed)?;
        match self.attach(record, MarkCheck::OncePerFamily).await {
            Ok(Attached::IndexLost) if creates => {
                self.remove_unproven(record, version).await.map_err(failed)?;
                Err(missing_record(record, Loss::Index))
            }
            // The watch does not show the marks yet, or the index would have reported the loss.
            Ok(Attached::WasMarked) if creates => {
                let Record { namespace, address, .. } = record;
                self.secrets.delete(namespace, address, version, RetryPolicy::SHORT).await.map_err(failed)?;
                Err(missing_record(record, Loss::Record))
            }
            Ok(_) => Ok(version),
            Err(failure) => {
                // The write was certainly rejected, so the record proves that no call was made. It has the version that
                // was just written, or belongs to another client. If this fails, recovery draws the same conclusion.
                // An earlier attempt whose response was lost may have added the marks.
                if !matches!(failure, RequestError::Unavailable(_)) {
                    let removed = self.revert_create(record, version).await;
                    debug!(object = %record.address, ?removed, "reverted an intent of a missing Resource");
                }
                Err(failed(failure))
            }
        }
    }

    /// Why an instance without a record may have had one.
    async fn loss(&self, record: &Record) -> Result<Option<Loss>, RequestError> {
        let Record { namespace, address, uid, .. } = record;
        let family = self.family_indexes.of(namespace, address.name());
        let mut guard = family.lock(self.access(RetryPolicy::SHORT)).await;
        guard.loss(address, uid, &self.siblings(namespace, address.name())).await
    }

    async fn revert_create(&self, record: &Record, version: Version) -> Result<(), RequestError> {
        let Record { namespace, address, uid, .. } = record;
        self.detach(namespace, address, uid, RetryPolicy::SHORT, false).await?;
        self.secrets.delete(namespace, address, version, RetryPolicy::SHORT).await
    }

    /// Removes the new record of an instance of a family whose index was lost. The marks stay, because they show the
    /// loss.
    async fn remove_unproven(&self, record: &Record, version: Version) -> Result<(), RequestError> {
        let Record { namespace, address, uid, .. } = record;
        let family = self.family_indexes.of(namespace, address.name());
        let mut guard = family.lock_to_change(self.access(RetryPolicy::SHORT), address, false).await;
        let siblings = self.siblings(namespace, address.name());
        guard.remove(address, uid, &siblings).await?;
        drop(guard);
        self.family_indexes.prune(&family, &siblings);
        self.secrets.delete(namespace, address, version, RetryPolicy::SHORT).await
    }

    /// Writes the record without its objects if they are forgotten. The marks are removed before the record: after a
    /// crash in between, the remaining record must hold nothing that the next Resource of the same name would adopt. A
    /// record with an intent or a pending move needs no such write.
    async fn without_objects(&self, base: Stored) -> Result<Stored, RequestError> {
        let forgets = base.record.intent.is_none() && base.record.moving_to.is_none() && base.record.has_objects();
        if !forgets {
            return Ok(base);
        }
        let record = Arc::new(emptied(&base.record));
        let version = self.secrets.replace(&record, &base, RetryPolicy::UntilStopped).await?;
        Ok(Stored { record, version })
    }

    async fn remove(&self, base: &Stored) -> Result<(), RequestError> {
        let Record { namespace, address, uid, .. } = base.record.as_ref();
        self.detach(namespace, address, uid, RetryPolicy::UntilStopped, false).await?;
        let removed = self.secrets.remove(base, RetryPolicy::UntilStopped).await;
        if matches!(removed, Err(RequestError::Conflict)) {
            // The record stays, so its index entry and marks are restored. If that fails, the next intent restores
            // them.
            let put_back = self.attach(&base.record, MarkCheck::Always).await;
            debug!(object = %address, ?put_back, "restored the marks because another client changed the record");
        }
        removed
    }

    /// Updates the index and the marks after a record is created or adopted. At most one patch, and for a family one write
    /// of the index, which comes first: if the marks exist, a missing index was lost and proves nothing.
    async fn attach(&self, record: &Record, check: MarkCheck) -> Result<Attached, RequestError> {
        let Record { namespace, address, uid, .. } = record;
        let family = self.family_indexes.of(namespace, address.name());
        let mut guard = family.lock_to_change(self.access(RetryPolicy::SHORT), address, true).await;
        let siblings = self.siblings(namespace, address.name());
        let is_complete = guard.add(address, uid, &siblings).await?;
        let is_marked = guard.marked(uid);
        if !is_marked || address.is_single() || check == MarkCheck::Always {
            // Marks in the view may be out of date because this process has just added or removed them; then the server
            // is queried. For a first create, the usual case, the view shows none.
            let known = self.view.metadata(namespace, address.name()).filter(|meta| !meta.is_marked() && !is_marked);
            match self.marks.add(namespace, address.name(), uid, known, RetryPolicy::SHORT).await? {
                MarkOutcome::AlreadyMarked if !guard.is_in_family(address, &siblings) => {
                    return Ok(Attached::WasMarked);
                }
                MarkOutcome::Marked | MarkOutcome::AlreadyMarked => guard.set_marked(Some(uid.clone())),
                MarkOutcome::ResourceMissing => {
                    guard.remove(address, uid, &siblings).await?;
                    return Err(RequestError::Conflict);
                }
            }
        }
        Ok(if is_complete { Attached::Complete } else { Attached::IndexLost })
    }

    fn access(&self, policy: RetryPolicy) -> Access<'_> {
        Access { secrets: &self.secrets, marks: &self.marks, view: &*self.view, policy }
    }

    fn siblings(&self, namespace: &str, name: &Name) -> Siblings {
        Siblings {
            recorded: self.view.recorded(namespace, name),
            indexed: self.view.indexed(namespace, name),
            annotated: self.view.metadata(namespace, name).is_some_and(|meta| meta.is_annotated()),
        }
    }

    /// Reverts `attach` in the reverse order, before a record is removed. `completes`: see `release_missing`.
    async fn detach(
        &self,
        namespace: &Namespace,
        address: &Address,
        uid: &Uid,
        policy: RetryPolicy,
        completes: bool,
    ) -> Result<(), RequestError> {
        let family = self.family_indexes.of(namespace, address.name());
        let mut guard = family.lock_to_change(self.access(policy), address, false).await;
        let siblings = self.siblings(namespace, address.name());
        guard.release(address, uid, &siblings, completes).await?;
        drop(guard);
        self.family_indexes.prune(&family, &siblings);
        Ok(())
    }

    fn is_attached(&self, record: &Record) -> bool {
        let Record { namespace, address, uid, .. } = record;
        let known = self.view.metadata(namespace, address.name());
        let indexed = self.view.indexed(namespace, address.name());
        let is_indexed = indexed.contains(address) || (address.is_single() && indexed.is_empty());
        is_indexed && known.is_some_and(|meta| meta.uid == *uid && meta.is_marked())
    }
}

impl Journal for ClusterJournal {
    fn intend(&self, record: Arc<Record>, base: Option<Version>) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move {
            let Some(base) = base else { return self.create(&record).await };
            // An adopted record gets its marks before an object is created that they protect.
            let makes = record.intent.as_ref().is_none_or(|intent| intent.operation != Operation::Destroy);
            if makes && !self.is_attached(&record) {
                self.mark(&record).await?;
            }
            let written = self.secrets.put(&record, Some(base), RetryPolicy::SHORT).await;
            written.map_err(|failure| journal_error(&record, failure))
        })
    }

    fn take_over(&self, record: Arc<Record>, base: Version) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move {
            let written = self.secrets.put(&record, Some(base), RetryPolicy::SHORT).await;
            written.map_err(|failure| journal_error(&record, failure))
        })
    }

    fn record(&self, record: Arc<Record>, base: Stored) -> BoxFuture<'_, Result<Version, JournalError>> {
        Box::pin(async move {
            let outcome = match base.record.intent {
                Some(_) => self.until_stored(Some(&record), &base).await,
                // A rejected write without an intent is planned again.
                None => self.secrets.replace(&record, &base, RetryPolicy::UntilStopped).await,
            };
            outcome.map_err(|failure| journal_error(&record, failure))
        })
    }

    fn pending_error(&self, record: &Record) -> Option<String> {
        let whose = (record.namespace.clone(), record.address.clone());
        lock(&self.unstored).get(&whose).map(|unstored| unstored.error.clone())
    }

    fn erase(&self, base: Stored) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let record = base.record.clone();
            let erased = match record.intent {
                Some(_) => match self.until_stored(None, &base).await {
                    // The call has ended, so its result is recorded. A later attempt removes the marks and the record.
                    Err(missing @ RequestError::NamespaceMissing(_)) => {
                        self.until_stored(Some(&Arc::new(emptied(&base.record))), &base).await.and(Err(missing))
                    }
                    done => done.map(drop),
                },
                // A rejected removal without an intent is planned again.
                None => async { self.remove(&self.without_objects(base).await?).await }.await,
            };
            erased.map_err(|failure| journal_error(&record, failure))
        })
    }
}

/// Whether a record of this Resource has an object that is not being removed or moved.
fn keeps_object(record: &Record, uid: &Uid) -> bool {
    let is_removed = record.intent.as_ref().is_some_and(|intent| intent.operation == Operation::Destroy);
    record.uid == *uid && record.has_objects() && record.moving_to.is_none() && !is_removed
}

/// The record of an object that does not exist any more.
fn emptied(record: &Record) -> Record {
    Record { intent: None, moving_to: None, current: None, deposed: BTreeMap::new(), ..Record::clone(record) }
}

fn missing_record(record: &Record, loss: Loss) -> JournalError {
    JournalError::Missing(Box::new(loss.diagnostic(&record.address, false)))
}

fn journal_error(record: &Record, failure: RequestError) -> JournalError {
    let address = record.address.clone();
    match failure {
        RequestError::Conflict => JournalError::Conflict { address },
        other => JournalError::Unavailable { address, message: other.to_string() },
    }
}
