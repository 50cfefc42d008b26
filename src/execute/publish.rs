//! Publishing: copies of outputs in ConfigMaps and Secrets, after the object is as it should be.
//!
//! What is to be made is recorded before it is made: a copy whose making a crash has cut is found again by its owner
//! mark, and goes with the object like any other.

use std::sync::Arc;

use super::Engine;
use super::engine::{Call, service_account};
use super::failure::Failure;
use super::step::{Fate, StepTask, Unfinished, write_result};
use crate::api;
use crate::driver::CallContext;
use crate::driver::publish::{CopyOf, Publisher};
use crate::execute::JournalError;
use crate::load::{Timeouts, publish};
use crate::model::data::Texts;
use crate::model::{Address, DataRef, DriverError, ErrorKind, PublishedCopy, Reason, Record, Recorded, Stored, Value};

/// Publishes after a step that made, changed or recorded the object.
pub(super) async fn after(task: &StepTask, fate: Fate) -> Result<Fate, Unfinished> {
    let stored = match &fate {
        Fate::Kept(stored) => Some(stored),
        Fate::Untouched => task.stored.as_ref(),
        Fate::Erased | Fate::Read(_) | Fate::Withdrawn(_) | Fate::LetGo(_) => None,
    };
    let Some(stored) = stored.cloned() else { return Ok(fate) };
    let wanted = task.instance.as_ref().is_some_and(|instance| !instance.publish.is_empty());
    if !wanted && stored.record.published.is_empty() {
        return Ok(fate);
    }
    publish_all(task, stored).await.map(Fate::Kept)
}

async fn publish_all(task: &StepTask, stored: Stored) -> Result<Stored, Unfinished> {
    let kept = |stored: &Stored, failure: Failure| Unfinished { fate: Fate::Kept(stored.clone()), failure };
    let wanted = wanted(task, &stored.record).map_err(|failure| kept(&stored, failure))?;
    let known = |target: &DataRef| stored.record.published.iter().any(|copy| copy.target == *target);
    let new: Vec<PublishedCopy> =
        wanted.iter().filter(|(target, _)| !known(target)).map(|(target, _)| pending(task, target)).collect();
    let mut stored = stored;
    if !new.is_empty() {
        let mut record = stored.record.as_ref().clone();
        record.published.extend(new);
        stored = write_result(&task.engine, &stored, record).await?;
    }
    let mut record = stored.record.as_ref().clone();
    let done = write_all(task, &mut record, &wanted).await;
    if record != *stored.record {
        stored = write_result(&task.engine, &stored, record).await?;
    }
    match done {
        Ok(()) => Ok(stored),
        Err(error) => Err(kept(&stored, failure(error))),
    }
}

/// What is to be published now, all of it known.
fn wanted(task: &StepTask, record: &Record) -> Result<Vec<(DataRef, Texts)>, Failure> {
    let (Some(instance), Some(current)) = (&task.instance, &record.current) else { return Ok(Vec::new()) };
    let published = publish::evaluate(instance, &current.value, &task.scope).map_err(|mut problems| {
        problems.pop().map_or_else(|| Failure::internal("nothing can be published"), Failure::from)
    })?;
    let known = published.into_iter().map(|(target, texts)| match texts {
        Some(texts) => Ok((target, texts)),
        None => Err(Failure::internal(format!("what {target} is to hold is still not known"))),
    });
    known.collect()
}

fn pending(task: &StepTask, target: &DataRef) -> PublishedCopy {
    let text = |text: Option<&Arc<str>>| text.cloned().unwrap_or_else(|| "".into());
    PublishedCopy {
        target: target.clone(),
        uid: "".into(),
        owner: text(task.instance.as_ref().map(|instance| &instance.uid)),
        service_account: text(task.instance.as_ref().map(|instance| &instance.service_account)),
        data: Value::Null,
    }
}

/// Removes what is not wanted any more, and writes what differs. The record follows each of it.
async fn write_all(task: &StepTask, record: &mut Record, wanted: &[(DataRef, Texts)]) -> Result<(), DriverError> {
    let publisher = publisher(&task.engine)?;
    let again = task.prepared.as_ref().is_some_and(|prepared| prepared.publish_again);
    let mut first_error = None;
    for copy in std::mem::take(&mut record.published) {
        let context = context(&task.engine, record, task.instance.as_deref(), &copy.service_account);
        let place = CopyOf { context: &context, owner: owner(record), target: &copy.target, uid: &copy.uid };
        let written = match wanted.iter().find(|(target, _)| *target == copy.target) {
            None => publisher.remove(place).await.map(|()| None),
            Some((_, texts)) => {
                let after = PublishedCopy {
                    owner: Arc::clone(&record.uid),
                    service_account: Arc::clone(&context.service_account),
                    data: publish::recorded(texts),
                    ..copy.clone()
                };
                if after == copy && !copy.uid.is_empty() && !again {
                    Ok(Some(after))
                } else {
                    publisher.write(place, texts).await.map(|uid| Some(PublishedCopy { uid, ..after }))
                }
            }
        };
        match written {
            Ok(after) => record.published.extend(after),
            Err(error) => {
                first_error.get_or_insert(error);
                record.published.push(copy);
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

/// Removes every copy of a record whose object goes. In a cluster the server removes what we may not, with the Resource.
pub(super) async fn remove_all(engine: &Engine, record: &mut Record) -> Result<(), Failure> {
    let copies = std::mem::take(&mut record.published);
    let mut first_error = None;
    for copy in copies {
        let context = context(engine, record, None, &copy.service_account);
        let place = CopyOf { context: &context, owner: owner(record), target: &copy.target, uid: &copy.uid };
        let removed = match publisher(engine) {
            Ok(publisher) => publisher.remove(place).await,
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::Forbidden && !copy.owner.is_empty() => {
                tracing::warn!(address = %record.address, copy = %copy.target, "left to the server: {}", error.message);
            }
            Err(error) => {
                first_error.get_or_insert(error);
                record.published.push(copy);
            }
        }
    }
    first_error.map_or(Ok(()), |error| Err(failure(error)))
}

/// Makes the copies of a record that was moved those of its new Resource, as they are. One that may not be read or
/// written is left to the next plan, which tells.
///
/// # Errors
/// When a copy or the record cannot be written now.
pub async fn hand_over_copies(engine: &Engine, recorded: &mut Recorded, at: &Address) -> Result<(), JournalError> {
    let Some(base) = recorded.get(at).cloned() else { return Ok(()) };
    let record = Arc::clone(&base.record);
    let mut after = Record::clone(&record);
    for copy in after.published.iter_mut().filter(|copy| copy.owner != record.uid && !copy.uid.is_empty()) {
        let Ok(publisher) = publisher(engine) else { break };
        let context = context(engine, &record, None, &copy.service_account);
        let place = || CopyOf { context: &context, owner: owner(&record), target: &copy.target, uid: &copy.uid };
        let handed = match publisher.read(place()).await {
            Ok(Some(texts)) => publisher.write(place(), &texts).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match handed {
            Ok(Some(_)) => copy.owner = Arc::clone(&record.uid),
            Ok(None) => {}
            Err(error) if error.kind == ErrorKind::Transient => {
                return Err(JournalError::Unavailable { address: at.clone(), message: error.message });
            }
            Err(error) => {
                tracing::warn!(address = %at, copy = %copy.target, "not handed over: {}", error.message);
            }
        }
    }
    if after != *record {
        let record = Arc::new(after);
        let version = engine.journal.record(Arc::clone(&record), base).await?;
        recorded.insert(at.clone(), Stored { record, version });
    }
    Ok(())
}

/// Whether any copy is not as it was written.
pub(crate) async fn has_drifted(engine: &Engine, record: &Record) -> bool {
    let Ok(publisher) = publisher(engine) else { return false };
    for copy in record.published.iter().filter(|copy| !copy.uid.is_empty()) {
        let context = context(engine, record, None, &copy.service_account);
        let place = CopyOf { context: &context, owner: owner(record), target: &copy.target, uid: &copy.uid };
        // One that cannot be read is not known to have changed.
        let Ok(found) = publisher.read(place).await else { continue };
        let as_written = |texts: &Texts| match &copy.data {
            // Others may have added keys of their own.
            Value::Map(data) => data.iter().all(|(key, text)| texts.get(key).map(AsRef::as_ref) == text.as_str()),
            _ => false,
        };
        if !found.is_some_and(|texts| as_written(&texts)) {
            return true;
        }
    }
    false
}

/// The Resource that a copy belongs to.
fn owner(record: &Record) -> [&str; 3] {
    [api::API_VERSION, api::KIND, &record.uid]
}

fn publisher(engine: &Engine) -> Result<&Arc<dyn Publisher>, DriverError> {
    engine.drivers.publisher().ok_or_else(|| DriverError {
        kind: ErrorKind::Terminal,
        message: "nothing can be published here".to_owned(),
        path: None,
        hint: None,
    })
}

fn context(
    engine: &Engine,
    record: &Record,
    instance: Option<&crate::load::Instance>,
    recorded_account: &Arc<str>,
) -> CallContext {
    let call = Call {
        type_name: &record.type_name,
        namespace: &record.namespace,
        address: &record.address,
        provider: None,
        service_account: service_account(instance, recorded_account),
    };
    let timeouts = instance.map_or_else(Timeouts::default, |instance| instance.timeouts);
    engine.call_context(&call, timeouts.read)
}

fn failure(error: DriverError) -> Failure {
    let conflict = error.kind == ErrorKind::AlreadyExists;
    let failure = Failure::from(error);
    if conflict { Failure { reason: Reason::PublishConflict, ..failure } } else { failure }
}
