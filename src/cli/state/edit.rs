//! Edits of a record as pure functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::failure::Failure;
use model::{Address, DeposedKey, ObjectStatus, Operation, Record, RecordedObject};

#[derive(Debug, PartialEq, Eq)]
pub enum RecordEdit {
    Write(Box<Record>),
    /// The record is deleted.
    Delete,
    /// The record already has this state.
    Unchanged,
}

/// Marks the object for replacement by the next plan.
pub fn taint(record: &Record) -> anyhow::Result<RecordEdit> {
    set_status(record, ObjectStatus::Tainted)
}

pub fn untaint(record: &Record) -> anyhow::Result<RecordEdit> {
    set_status(record, ObjectStatus::Ready)
}

/// Removes the recorded `preventDestroy`, also of deposed objects.
pub fn unprotect(record: &Record) -> anyhow::Result<RecordEdit> {
    require_no_intent(record)?;
    let mut edited = record.clone();
    let mut changed = false;
    for object in edited.current.iter_mut().chain(edited.deposed.values_mut()) {
        if object.prevent_destroy {
            Arc::make_mut(object).prevent_destroy = false;
            changed = true;
        }
    }
    Ok(if changed { RecordEdit::Write(Box::new(edited)) } else { RecordEdit::Unchanged })
}

/// Makes a deposed object current again. The object that was current, if there is one, takes its place.
pub fn restore(record: &Record, key: DeposedKey) -> anyhow::Result<RecordEdit> {
    require_no_intent(record)?;
    let mut edited = record.clone();
    let Some(mut restored) = edited.deposed.remove(&key) else {
        let keys: Vec<String> = record.deposed.keys().map(|key| format!("`{key}`")).collect();
        let hint = match keys.as_slice() {
            [] => "no object of this address is deposed".to_owned(),
            keys => format!("its deposed objects are {}", keys.join(", ")),
        };
        return Err(Failure::hinted(format!("`{}` has no deposed object `{key}`", record.address), hint));
    };
    Arc::make_mut(&mut restored).awaits_postconditions = false;
    if let Some(mut replaced) = edited.current.replace(restored) {
        // Nothing waits for the readiness of an object that is destroyed next.
        Arc::make_mut(&mut replaced).readiness = None;
        edited.deposed.insert(key, replaced);
    }
    (edited.replacement_pending, edited.failed_creates) = (false, 0);
    Ok(RecordEdit::Write(Box::new(edited)))
}

/// Removes the record of an instance. With `force`, also while an operation is open: an open create is treated as never
/// started, so that the object that it was to replace becomes current again.
pub fn remove(record: &Record, force: bool) -> anyhow::Result<RecordEdit> {
    if !force {
        require_no_intent(record)?;
    }
    let Some(intent) = record.intent.as_deref().filter(|intent| intent.operation == Operation::Create) else {
        return Ok(RecordEdit::Delete);
    };
    let mut edited = record.clone();
    edited.intent = None;
    if edited.current.is_none() {
        edited.current = intent.deposed.and_then(|key| edited.deposed.remove(&key));
    }
    Ok(if edited.has_objects() { RecordEdit::Write(Box::new(edited)) } else { RecordEdit::Delete })
}

/// Describes what `remove` does, for the confirmation.
pub fn removal_question(record: &Record) -> String {
    let address = &record.address;
    match record.intent.as_deref() {
        Some(intent) if intent.operation == Operation::Create => {
            format!(
                "The open create of `{address}` is treated as never started. If it created an object, Purlin no longer knows about it."
            )
        }
        _ => {
            let current = record.current.iter().map(|object| quoted_id(object));
            let deposed = record.deposed.iter().map(|(key, object)| format!("{} (deposed {key})", quoted_id(object)));
            let objects: Vec<String> = current.chain(deposed).collect();
            match objects.as_slice() {
                [] => format!("The record of `{address}` holds no object, and is removed."),
                objects => format!(
                    "The record of `{address}` is removed. Existing objects are kept, but are no longer managed: {}.",
                    objects.join(", ")
                ),
            }
        }
    }
}

fn quoted_id(object: &RecordedObject) -> String {
    object.id().map_or("an object without an ID".to_owned(), |id| format!("`{id}`"))
}

/// Describes the published objects that remain when the record is removed.
pub fn remaining_copies(record: &Record) -> Option<String> {
    let copies: Vec<String> = record.published.iter().map(|copy| copy.target.to_string()).collect();
    (!copies.is_empty())
        .then(|| format!("Published objects are kept until you or the Resource delete them: {}.", copies.join(", ")))
}

fn set_status(record: &Record, status: ObjectStatus) -> anyhow::Result<RecordEdit> {
    require_no_intent(record)?;
    let mut edited = record.clone();
    let Some(current) = edited.current.as_mut() else {
        return Err(Failure::hinted(
            format!("`{}` has no current object", record.address),
            format!("`purlin state show {}` shows what is recorded", record.address),
        ));
    };
    if current.status == status {
        return Ok(RecordEdit::Unchanged);
    }
    Arc::make_mut(current).status = status;
    Ok(RecordEdit::Write(Box::new(edited)))
}

/// A record with an open operation cannot be edited, because its result is not known.
pub fn require_no_intent(record: &Record) -> anyhow::Result<()> {
    let Some(intent) = record.intent.as_deref() else { return Ok(()) };
    let (address, operation, since) = (&record.address, intent.operation.as_str(), intent.started);
    Err(Failure::hinted(
        format!("the {operation} of `{address}` that started at {since:.0} is still open"),
        format!(
            "`purlin apply` or the controller resolves it; if neither can, use `purlin state recover`, or `purlin state rm \
             {address} --force`"
        ),
    ))
}

/// During a move, two records can have the same object. Another move of one of them would keep both. `unfinished` are the
/// moves by [`engine::plan::moves::unfinished`].
pub fn require_no_move(
    unfinished: &BTreeMap<&Address, (&Address, &Address)>,
    addresses: [&Address; 2],
) -> anyhow::Result<()> {
    let Some((from, to)) = addresses.iter().find_map(|address| unfinished.get(address)) else { return Ok(()) };
    let what = format!("the move of `{from}` to `{to}` is not completed");
    Err(Failure::hinted(what, "`purlin apply` or the controller completes it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::state::fixtures::{object, record, with_intent};
    use engine::plan::moves::unfinished;
    use model::Value;
    use model::{Recorded, Stored, Version};

    fn ready() -> Record {
        Record { current: Some(Arc::new(object())), ..record("web") }
    }

    #[test]
    fn untaint_reverts_taint() {
        let RecordEdit::Write(tainted) = taint(&ready()).unwrap() else { panic!("erased") };
        assert_eq!(tainted.current.as_ref().unwrap().status, ObjectStatus::Tainted);
        assert_eq!(taint(&tainted).unwrap(), RecordEdit::Unchanged);
        assert_eq!(untaint(&ready()).unwrap(), RecordEdit::Unchanged);
        assert!(taint(&record("web")).is_err());
        assert_eq!(untaint(&tainted).unwrap(), RecordEdit::Write(Box::new(ready())));
    }

    #[test]
    fn unprotect_includes_deposed_objects() {
        let mut record = record("web");
        record.deposed.insert(DeposedKey(1), Arc::new(object()));
        let RecordEdit::Write(edited) = unprotect(&record).unwrap() else { panic!("erased") };
        assert!(!edited.deposed[&DeposedKey(1)].prevent_destroy);
        assert_eq!(unprotect(&edited).unwrap(), RecordEdit::Unchanged);
    }

    #[test]
    fn a_restored_object_and_the_current_one_change_places() {
        let named = |id: &str| Arc::new(RecordedObject { value: Value::map([("id", Value::from(id))]), ..object() });
        let mut record = Record { current: Some(named("new")), replacement_pending: true, ..record("web") };
        record.deposed.insert(DeposedKey(1), named("old"));
        let RecordEdit::Write(edited) = restore(&record, DeposedKey(1)).unwrap() else { panic!("erased") };
        let id = |object: &RecordedObject| object.id().map(str::to_owned).unwrap();
        assert_eq!(
            (id(edited.current.as_ref().unwrap()), id(&edited.deposed[&DeposedKey(1)])),
            ("old".into(), "new".into())
        );
        assert!(!edited.replacement_pending);
        assert!(restore(&record, DeposedKey(2)).is_err());
        record.current = None;
        let RecordEdit::Write(edited) = restore(&record, DeposedKey(1)).unwrap() else { panic!("erased") };
        assert!(edited.current.is_some() && edited.deposed.is_empty());
    }

    #[test]
    fn the_question_names_all_objects_that_are_forgotten() {
        let mut record = ready();
        record.deposed.insert(DeposedKey(1), Arc::new(object()));
        let question = removal_question(&record);
        assert!(question.contains("no longer managed: `1`, `1` (deposed 00000001)."), "{question}");
    }

    #[test]
    fn an_open_operation_prevents_edits() {
        let open = with_intent(ready(), Operation::Update);
        assert!(taint(&open).is_err() && unprotect(&open).is_err() && remove(&open, false).is_err());
        assert_eq!(remove(&open, true).unwrap(), RecordEdit::Delete);
    }

    #[test]
    fn an_unfinished_move_prevents_another_one() {
        let [web, site, other, free] = ["web", "site", "other", "free"].map(Address::single);
        let moving = Record { moving_to: Some(Box::new(site.clone())), ..ready() };
        let stored = Stored { record: Arc::new(moving), version: Version(1) };
        let recorded = Recorded::from([(web.clone(), stored)]);
        let moves = unfinished(&recorded);
        assert!(require_no_move(&moves, [&web, &free]).is_err());
        assert!(require_no_move(&moves, [&site, &free]).is_err());
        assert!(require_no_move(&moves, [&other, &site]).is_err());
        assert!(require_no_move(&moves, [&other, &free]).is_ok());
    }

    #[test]
    fn discarding_a_create_restores_the_replaced_object() {
        assert_eq!(remove(&with_intent(record("web"), Operation::Create), true).unwrap(), RecordEdit::Delete);
        let mut open = with_intent(record("web"), Operation::Create);
        open.deposed.insert(DeposedKey(1), Arc::new(object()));
        if let Some(intent) = open.intent.as_mut() {
            intent.deposed = Some(DeposedKey(1));
        }
        assert_eq!(remove(&open, true).unwrap(), RecordEdit::Write(Box::new(ready())));
    }
}
