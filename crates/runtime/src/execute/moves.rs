//! Moves records to other addresses.
//!
//! A move takes four writes, and after a crash between any two of them exactly one address claims the object. The old
//! record first names its new address, and the object belongs to that address from then on. Then the new record is
//! created, then references in other records are rewritten, then the old record is removed. Any process that finds a
//! record with a new address finishes the move.

use std::sync::Arc;

use super::{Journal, JournalError};
use engine::plan::moves::{Move, Redirections, has_arrived, is_copy, moved_record, rounds};
use model::{Record, Recorded, Stored};

/// Applies moves, and updates `recorded` after every write.
///
/// # Errors
/// Moves that were already written remain; the next call continues after them.
pub async fn apply_moves(journal: &dyn Journal, recorded: &mut Recorded, moves: &[Move]) -> Result<(), JournalError> {
    for round in rounds(moves) {
        prepare_moves(journal, recorded, round).await?;
        conclude_moves(journal, recorded, round).await?;
    }
    Ok(())
}

/// Applies the first half of one round: the objects belong to their new addresses afterwards, and the old records must
/// only be removed. Skips moves that are reverted.
///
/// # Errors
/// As [`apply_moves`].
pub async fn prepare_moves(journal: &dyn Journal, recorded: &mut Recorded, round: &[Move]) -> Result<(), JournalError> {
    let before = recorded.clone();
    for moved in round.iter().filter(|moved| !moved.reverted) {
        let Some(base) = recorded.get(&moved.from).cloned() else { continue };
        let record = base.record.clone();
        if let Some(conversion) = moved.conversion.as_ref().filter(|conversion| conversion.before != record) {
            // The driver converted an older version of the record.
            return Err(JournalError::Conflict { address: conversion.before.address.clone() });
        }
        if moved.from == moved.to {
            claim(journal, recorded, moved_record(&record, moved)).await?;
            continue;
        }
        // The new type is written first, so that a process that finds the record after a crash need not convert it
        // again, and finds the object under the type that its driver has converted it to.
        let record = moved.conversion.as_ref().map_or(record, |conversion| conversion.after.clone());
        let there = recorded.get(&moved.to).map(|stored| stored.record.clone()).filter(|there| there.has_objects());
        if there.as_ref().is_some_and(|there| !is_copy(&record, there)) {
            // Of two objects at one address, one would be lost.
            return Err(JournalError::Conflict { address: moved.to.clone() });
        }
        let cut = record.moving_to.is_some();
        if !cut {
            let leaving = Record { moving_to: Some(Box::new(moved.to.clone())), ..Record::clone(&record) };
            write(journal, recorded, leaving, base).await?;
        }
        match there {
            None => claim(journal, recorded, moved_record(&record, moved)).await?,
            // A crash may have occurred between the write of the record and the update of its Resource, which may have been
            // created again since.
            Some(there) if cut && !moved.uid.is_empty() => {
                claim(journal, recorded, Record { uid: moved.uid.clone(), ..Record::clone(&there) }).await?;
            }
            Some(_) => {}
        }
    }
    // Records that are moving themselves are included: their move may be reverted when the records that they name are
    // known only by the new address.
    let mut redirections = Redirections::new(round, &before);
    let dependents: Vec<(Record, Stored)> =
        recorded.values().filter_map(|stored| Some((redirections.of(&stored.record)?, stored.clone()))).collect();
    for (record, base) in dependents {
        write(journal, recorded, record, base).await?;
    }
    Ok(())
}

/// Applies the second half of one round: removes the old records, and in a cluster the finalizer and annotation of
/// their Resources. An object whose move is reverted has a record only at its old address afterwards.
///
/// # Errors
/// As [`apply_moves`].
pub async fn conclude_moves(
    journal: &dyn Journal,
    recorded: &mut Recorded,
    round: &[Move],
) -> Result<(), JournalError> {
    for moved in round.iter().filter(|moved| moved.from != moved.to) {
        let leaves = if moved.reverted { &moved.to } else { &moved.from };
        let goes = !moved.reverted || has_arrived(moved, recorded);
        if let Some(base) = recorded.get(leaves).cloned().filter(|_| goes) {
            journal.erase(base).await?;
            recorded.remove(leaves);
        }
        if let Some(base) = recorded.get(&moved.from).cloned().filter(|_| moved.reverted) {
            write(journal, recorded, Record { moving_to: None, ..Record::clone(&base.record) }, base).await?;
        }
    }
    Ok(())
}

/// Writes the record at its new address and marks the Resource that now owns it.
async fn claim(journal: &dyn Journal, recorded: &mut Recorded, record: Record) -> Result<(), JournalError> {
    let record = Arc::new(record);
    let base = recorded.get(&record.address).map(|stored| stored.version);
    let version = journal.intend(record.clone(), base).await?;
    recorded.insert(record.address.clone(), Stored { record, version });
    Ok(())
}

async fn write(
    journal: &dyn Journal,
    recorded: &mut Recorded,
    record: Record,
    base: Stored,
) -> Result<(), JournalError> {
    let record = Arc::new(record);
    let version = journal.record(record.clone(), base).await?;
    recorded.insert(record.address.clone(), Stored { record, version });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryJournal;
    use model::{Address, RecordedObject, Value};

    /// The record of an object with this id, which is being moved to `moving_to`.
    fn record(address: &str, id: &str, moving_to: Option<&str>) -> Record {
        let mut record = Record::empty("ns".into(), address.parse().unwrap(), "u1".into(), "thing".into());
        let value = Value::map([("id", Value::from(id))]);
        record.current = Some(Arc::new(RecordedObject { value, ..RecordedObject::default() }));
        record.moving_to = moving_to.map(|to| Box::new(to.parse().unwrap()));
        record
    }

    fn one(from: &str, to: &str) -> Move {
        Move {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            uid: "u2".into(),
            reverted: false,
            conversion: None,
        }
    }

    /// The addresses, ids and UIDs of the records after the moves, and whether these failed.
    async fn moved(records: &[Record], moves: &[Move]) -> (Vec<String>, bool) {
        let journal = MemoryJournal::default();
        for record in records {
            journal.put(record).unwrap();
        }
        let failed = apply_moves(&journal, &mut journal.load("ns").records, moves).await.is_err();
        let line = |(address, stored): (&Address, &Stored)| {
            let (id, uid) = (stored.record.current.as_ref().unwrap().id().unwrap(), &stored.record.uid);
            format!("{address} {id} {uid}")
        };
        (journal.load("ns").records.iter().map(line).collect(), failed)
    }

    #[tokio::test]
    async fn an_object_is_moved_to_an_address_after_the_interrupted_move_of_the_one_there() {
        let records = [record("a", "x", None), record("b", "y", Some("c")), record("c", "y", None)];
        let (found, _) = moved(&records, &[one("b", "c"), one("a", "b")]).await;
        assert_eq!(found, ["b x u2", "c y u2"]);
    }

    #[tokio::test]
    async fn nothing_is_moved_to_the_address_of_another_object() {
        let records = [record("a", "x", None), record("b", "y", None)];
        assert_eq!(moved(&records, &[one("a", "b")]).await, (vec!["a x u1".to_owned(), "b y u1".to_owned()], true));
    }

    #[tokio::test]
    async fn an_interrupted_move_is_finished_for_a_resource_that_was_created_again() {
        let records = [record("a", "x", Some("b")), record("b", "x", None)];
        assert_eq!(moved(&records, &[one("a", "b")]).await, (vec!["b x u2".to_owned()], false));
    }
}
