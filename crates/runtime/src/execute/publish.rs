//! The published copies of one record's outputs in ConfigMaps and Secrets: which account may write them, and their
//! removal and transfer with the record. `step::publish` creates them.

use std::sync::Arc;

use super::Engine;
use super::engine::{Call, service_account};
use super::failure::Failure;
use crate::execute::JournalError;
use drivers::CallContext;
use drivers::publish::{CopyTarget, Publisher};
use engine::load::{Instance, Timeouts};
use model::data::StringData;
use model::{Address, DriverError, ErrorKind, Reason, Record, Recorded, Stored, Value};

/// Removes every copy of a record whose object is destroyed. In a cluster, the garbage collector removes the copies
/// that the account may not delete.
pub async fn remove_all(engine: &Engine, record: &mut Record) -> Result<(), Failure> {
    let copies = std::mem::take(&mut record.published);
    let mut first_error = None;
    for copy in copies {
        let context = context(engine, record, None, &copy.service_account);
        let copy_target = CopyTarget { context: &context, owner: owner(record), target: &copy.target, uid: &copy.uid };
        let removed = match publisher(engine) {
            Ok(publisher) => publisher.remove(copy_target).await,
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::Forbidden && !copy.owner.is_empty() => {
                tracing::warn!(
                    object = %record.address, copy = %copy.target,
                    "not allowed to delete the copy, the garbage collector removes it: {}", error.message
                );
            }
            Err(error) => {
                first_error.get_or_insert(error);
                record.published.push(copy);
            }
        }
    }
    first_error.map_or(Ok(()), |error| Err(failure(error)))
}

/// Transfers the copies of a moved record to its new Resource. The next plan handles and reports a copy that the
/// account may not read or write.
///
/// # Errors
/// When a copy or the record cannot be written.
pub async fn transfer_copies(engine: &Engine, recorded: &mut Recorded, at: &Address) -> Result<(), JournalError> {
    let Some(base) = recorded.get(at).cloned() else { return Ok(()) };
    let record = Arc::clone(&base.record);
    let mut after = Record::clone(&record);
    for copy in after.published.iter_mut().filter(|copy| copy.owner != record.uid && !copy.uid.is_empty()) {
        let Ok(publisher) = publisher(engine) else { break };
        let context = context(engine, &record, None, &copy.service_account);
        let copy_target =
            || CopyTarget { context: &context, owner: owner(&record), target: &copy.target, uid: &copy.uid };
        let handed = match publisher.read(copy_target()).await {
            Ok(Some(texts)) => publisher.write(copy_target(), &texts).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match handed {
            Ok(Some(_)) => copy.owner = record.uid.clone(),
            Ok(None) => {}
            Err(error) if error.kind == ErrorKind::Transient => {
                return Err(JournalError::Unavailable { address: at.clone(), message: error.message });
            }
            Err(error) => {
                tracing::warn!(object = %at, copy = %copy.target, "the copy was not transferred: {}", error.message);
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

/// Whether any copy differs from the data that Purlin wrote.
pub(crate) async fn has_drifted(engine: &Engine, record: &Record) -> bool {
    let Ok(publisher) = publisher(engine) else { return false };
    for copy in record.published.iter().filter(|copy| !copy.uid.is_empty()) {
        let context = context(engine, record, None, &copy.service_account);
        let copy_target = CopyTarget { context: &context, owner: owner(record), target: &copy.target, uid: &copy.uid };
        // A copy that cannot be read is not known to have drifted.
        let Ok(texts) = publisher.read(copy_target).await else { continue };
        if !texts.is_some_and(|texts| contains_all(&texts, &copy.data)) {
            return true;
        }
    }
    false
}

/// Whether a copy holds the data that Purlin wrote. Other clients may have added keys.
fn contains_all(texts: &StringData, written: &Value) -> bool {
    match written {
        Value::Map(data) => data.iter().all(|(key, text)| texts.get(key).map(AsRef::as_ref) == text.as_str()),
        _ => false,
    }
}

/// The owner reference of the copies.
pub fn owner(record: &Record) -> [&str; 3] {
    [api::API_VERSION, api::KIND, &record.uid]
}

pub fn publisher(engine: &Engine) -> Result<&Arc<dyn Publisher>, DriverError> {
    engine.drivers.publisher().ok_or_else(|| DriverError {
        kind: ErrorKind::Terminal,
        message: "publishing is not available here".to_owned(),
        path: None,
        hint: None,
    })
}

pub fn context(
    engine: &Engine,
    record: &Record,
    instance: Option<&Instance>,
    recorded_account: &Arc<str>,
) -> CallContext {
    let call = Call {
        type_name: &record.type_name,
        namespace: &record.namespace,
        address: &record.address,
        provider: None,
        service_account: service_account(instance, recorded_account),
        read: &[],
    };
    let timeouts = instance.map_or_else(Timeouts::default, |instance| instance.timeouts);
    engine.call_context(&call, timeouts.read)
}

pub fn failure(error: DriverError) -> Failure {
    let conflict = error.kind == ErrorKind::AlreadyExists;
    let failure = Failure::from(error);
    if conflict { Failure { reason: Reason::PublishConflict, ..failure } } else { failure }
}
