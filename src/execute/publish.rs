//! Copies of outputs in ConfigMaps and Secrets, of one record: who may write them, and what becomes of them when the
//! record goes or moves. `step` makes them.

use std::sync::Arc;

use super::Engine;
use super::engine::{Call, service_account};
use super::failure::Failure;
use crate::api;
use crate::driver::CallContext;
use crate::driver::publish::{CopyOf, Publisher};
use crate::execute::JournalError;
use crate::load::{Instance, Timeouts};
use crate::model::data::Texts;
use crate::model::{Address, DriverError, ErrorKind, Reason, Record, Recorded, Stored, Value};

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
pub(super) fn owner(record: &Record) -> [&str; 3] {
    [api::API_VERSION, api::KIND, &record.uid]
}

pub(super) fn publisher(engine: &Engine) -> Result<&Arc<dyn Publisher>, DriverError> {
    engine.drivers.publisher().ok_or_else(|| DriverError {
        kind: ErrorKind::Terminal,
        message: "nothing can be published here".to_owned(),
        path: None,
        hint: None,
    })
}

pub(super) fn context(
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
    };
    let timeouts = instance.map_or_else(Timeouts::default, |instance| instance.timeouts);
    engine.call_context(&call, timeouts.read)
}

pub(super) fn failure(error: DriverError) -> Failure {
    let conflict = error.kind == ErrorKind::AlreadyExists;
    let failure = Failure::from(error);
    if conflict { Failure { reason: Reason::PublishConflict, ..failure } } else { failure }
}
