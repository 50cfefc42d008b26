//! Publishing: copies of outputs in ConfigMaps and Secrets, after the object is as it should be.
//!
//! What is to be made is recorded before it is made: a copy whose making a crash has cut is found again by its owner
//! mark, and goes with the object like any other.

use std::sync::Arc;

use super::{Fate, StepTask, Unfinished, write_result};
use crate::driver::publish::CopyOf;
use crate::execute::failure::Failure;
use crate::execute::publish::{context, failure, owner, publisher};
use crate::load::publish;
use crate::model::data::Texts;
use crate::model::{DataRef, DriverError, PublishedCopy, Record, Stored, Value};

/// Publishes after a step that made, changed or recorded the object.
pub(super) async fn after(task: &StepTask, fate: Fate) -> Result<Fate, Unfinished> {
    let Some(stored) = task.left_by(&fate).cloned() else { return Ok(fate) };
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
