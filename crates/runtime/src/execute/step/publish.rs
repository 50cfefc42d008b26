//! Publishes outputs in ConfigMaps and Secrets after the object is up to date.
//!
//! A copy is recorded before it is created. If a crash interrupts its creation, its owner mark identifies it, and it is
//! deleted with the object.

use std::sync::Arc;

use super::{RecordEffect, StepError, StepTask, write_result};
use crate::execute::failure::Failure;
use crate::execute::publish::{context, failure, owner, publisher};
use drivers::publish::CopyTarget;
use engine::load::publish;
use model::data::StringData;
use model::{DataRef, DriverError, PublishedCopy, Record, Stored, Value};

/// Publishes after a step that created, changed or recorded the object.
pub async fn after(task: &StepTask, effect: RecordEffect) -> Result<RecordEffect, StepError> {
    let Some(stored) = task.record_after(&effect).cloned() else { return Ok(effect) };
    let desired = task.instance.as_ref().is_some_and(|instance| !instance.publish.is_empty());
    if !desired && stored.record.published.is_empty() {
        return Ok(effect);
    }
    publish_all(task, stored).await.map(RecordEffect::Written)
}

async fn publish_all(task: &StepTask, stored: Stored) -> Result<Stored, StepError> {
    let desired = match desired_copies(task, &stored.record) {
        Ok(desired) => desired,
        Err(failure) => return Err(StepError { effect: RecordEffect::Written(stored), failure }),
    };
    let new: Vec<PublishedCopy> = desired
        .iter()
        .map(|(target, _)| target)
        .filter(|target| stored.record.published.iter().all(|copy| copy.target != **target))
        .map(|target| pending_copy(task, target))
        .collect();
    let mut stored = stored;
    if !new.is_empty() {
        let mut record = stored.record.as_ref().clone();
        record.published.extend(new);
        stored = write_result(&task.engine, &stored, record).await?;
    }
    let mut record = stored.record.as_ref().clone();
    let done = write_all(task, &mut record, &desired).await;
    if record != *stored.record {
        stored = write_result(&task.engine, &stored, record).await?;
    }
    match done {
        Ok(()) => Ok(stored),
        Err(error) => Err(StepError { effect: RecordEffect::Written(stored), failure: failure(error) }),
    }
}

/// The data to publish; all values must be known.
fn desired_copies(task: &StepTask, record: &Record) -> Result<Vec<(DataRef, StringData)>, Failure> {
    let (Some(instance), Some(current)) = (&task.instance, &record.current) else { return Ok(Vec::new()) };
    let published = task.evaluate(|| publish::evaluate(instance, &current.value, &task.scope));
    let published = published.map_err(|mut problems| {
        problems.pop().map_or_else(|| Failure::internal("the published data cannot be evaluated"), Failure::from)
    })?;
    published
        .into_iter()
        .map(|(target, texts)| match texts {
            Some(texts) => Ok((target, texts)),
            None => Err(Failure::internal(format!("the data of {target} is still unknown"))),
        })
        .collect()
}

fn pending_copy(task: &StepTask, target: &DataRef) -> PublishedCopy {
    let instance = task.instance.as_deref();
    PublishedCopy {
        target: target.clone(),
        uid: "".into(),
        owner: instance.map_or_else(|| "".into(), |instance| instance.uid.clone()),
        service_account: instance.map_or_else(|| "".into(), |instance| Arc::clone(&instance.service_account)),
        data: Value::Null,
    }
}

/// Removes copies that are no longer configured and writes the changed ones. Updates the record for each.
async fn write_all(task: &StepTask, record: &mut Record, desired: &[(DataRef, StringData)]) -> Result<(), DriverError> {
    let publisher = publisher(&task.engine)?;
    let again = task.prepared.as_ref().is_some_and(|prepared| prepared.publish_again);
    let mut first_error = None;
    for copy in std::mem::take(&mut record.published) {
        let context = context(&task.engine, record, task.instance.as_deref(), &copy.service_account);
        let copy_target = CopyTarget { context: &context, owner: owner(record), target: &copy.target, uid: &copy.uid };
        let written = match desired.iter().find(|(target, _)| *target == copy.target) {
            None => publisher.remove(copy_target).await.map(|()| None),
            Some((_, texts)) => {
                let after = PublishedCopy {
                    owner: record.uid.clone(),
                    service_account: Arc::clone(&context.service_account),
                    data: publish::to_recorded(texts),
                    ..copy.clone()
                };
                if after == copy && !copy.uid.is_empty() && !again {
                    Ok(Some(after))
                } else {
                    publisher.write(copy_target, texts).await.map(|uid| Some(PublishedCopy { uid, ..after }))
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
