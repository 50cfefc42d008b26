//! Moves records to other addresses.
//!
//! A move takes four writes, and after a crash between any two of them exactly one address claims the object. The old
//! record first names its new address, and the object belongs to that address from then on. Then the new record is
//! created, then references in other records are rewritten, then the old record is removed. Any process that finds a
//! record with a new address finishes the move.

use std::sync::Arc;

use super::{Journal, JournalError};
use crate::model::{Record, Recorded, Stored};
use crate::plan::moves::{Move, Redirections, has_arrived, moved_record, rounds};

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
    for one in round.iter().filter(|one| !one.reverted) {
        let Some(base) = recorded.get(&one.from).cloned() else { continue };
        let record = base.record.clone();
        if let Some(conversion) = one.conversion.as_ref().filter(|conversion| conversion.before != record) {
            // The driver converted an older version of the record.
            return Err(JournalError::Conflict { address: conversion.before.address.clone() });
        }
        if one.from == one.to {
            claim(journal, recorded, moved_record(&record, one)).await?;
            continue;
        }
        // The new type is written first, so that a process that finds the record after a crash need not convert it
        // again, and finds the object under the type that its driver has converted it to.
        let record = one.conversion.as_ref().map_or(record, |conversion| conversion.after.clone());
        let cut = record.moving_to.is_some();
        if !cut {
            let leaving = Record { moving_to: Some(Box::new(one.to.clone())), ..Record::clone(&record) };
            write(journal, recorded, leaving, base).await?;
        }
        match recorded.get(&one.to).cloned().filter(|there| there.record.has_objects()) {
            None => claim(journal, recorded, moved_record(&record, one)).await?,
            // A crash may have occurred between the write of the record and the update of its Resource.
            Some(there) if cut && !there.record.uid.is_empty() => {
                claim(journal, recorded, Record::clone(&there.record)).await?;
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
    for one in round.iter().filter(|one| one.from != one.to) {
        let leaves = if one.reverted { &one.to } else { &one.from };
        let goes = !one.reverted || has_arrived(one, recorded);
        if let Some(base) = recorded.get(leaves).cloned().filter(|_| goes) {
            journal.erase(base).await?;
            recorded.remove(leaves);
        }
        if let Some(base) = recorded.get(&one.from).cloned().filter(|_| one.reverted) {
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
