//! Writes moves of records.
//!
//! Four writes for each, and after each of them a crash leaves something that only one address claims: first the old
//! record says where it goes, and from then on it belongs there; then the new one is made; then what names the old
//! address names the new one; then the old record is removed. Whoever finds a record that says where it goes finishes
//! the move.

use std::sync::Arc;

use super::{Journal, JournalError};
use crate::model::{Record, Recorded, Stored};
use crate::plan::moves::{Move, Redirections, has_arrived, moved, rounds};

/// Carries moves out. `recorded` follows every write.
///
/// # Errors
/// What was written so far stays, and the next call goes on from there.
pub async fn carry_out(journal: &dyn Journal, recorded: &mut Recorded, moves: &[Move]) -> Result<(), JournalError> {
    for round in rounds(moves) {
        prepare(journal, recorded, round).await?;
        conclude(journal, recorded, round).await?;
    }
    Ok(())
}

/// The first half of one round: from here on the objects belong to the new addresses, and the old records are only
/// there to be removed. Nothing for what is taken back.
///
/// # Errors
/// As `carry_out`.
pub async fn prepare(journal: &dyn Journal, recorded: &mut Recorded, round: &[Move]) -> Result<(), JournalError> {
    let before = recorded.clone();
    for one in round.iter().filter(|one| !one.back) {
        let Some(base) = recorded.get(&one.from).cloned() else { continue };
        let record = base.record.clone();
        if let Some(conversion) = one.conversion.as_ref().filter(|conversion| conversion.before != record) {
            // What the driver has made of it may be of the past.
            return Err(JournalError::Conflict { address: conversion.before.address.clone() });
        }
        if one.from == one.to {
            claim(journal, recorded, moved(&record, one)).await?;
            continue;
        }
        // The new type is written first of all. Whoever finds the record after a crash need not ask again, and finds the
        // object under the type that its driver has made of it.
        let record = one.conversion.as_ref().map_or(record, |conversion| conversion.after.clone());
        let cut = record.moving_to.is_some();
        if !cut {
            let leaving = Record { moving_to: Some(Box::new(one.to.clone())), ..Record::clone(&record) };
            write(journal, recorded, leaving, base).await?;
        }
        match recorded.get(&one.to).cloned().filter(|there| there.record.has_objects()) {
            None => claim(journal, recorded, moved(&record, one)).await?,
            // A crash may have come between the record and the marks of its Resource.
            Some(there) if cut && !there.record.uid.is_empty() => {
                claim(journal, recorded, Record::clone(&there.record)).await?;
            }
            Some(_) => {}
        }
    }
    // Also those that are moving themselves: they may be taken back, when what they name is known by its new address only.
    let mut redirections = Redirections::new(round, &before);
    let dependents: Vec<(Record, Stored)> =
        recorded.values().filter_map(|stored| Some((redirections.of(&stored.record)?, stored.clone()))).collect();
    for (record, base) in dependents {
        write(journal, recorded, record, base).await?;
    }
    Ok(())
}

/// The second half: the old records go, and in a cluster the marks of their Resources with them. What is taken back
/// is at its old address alone.
///
/// # Errors
/// As `carry_out`.
pub async fn conclude(journal: &dyn Journal, recorded: &mut Recorded, round: &[Move]) -> Result<(), JournalError> {
    for one in round.iter().filter(|one| one.from != one.to) {
        let leaves = if one.back { &one.to } else { &one.from };
        let goes = !one.back || has_arrived(one, recorded);
        if let Some(base) = recorded.get(leaves).cloned().filter(|_| goes) {
            journal.erase(base).await?;
            recorded.remove(leaves);
        }
        if let Some(base) = recorded.get(&one.from).cloned().filter(|_| one.back) {
            write(journal, recorded, Record { moving_to: None, ..Record::clone(&base.record) }, base).await?;
        }
    }
    Ok(())
}

/// Writes the record at its new address, with the marks on the Resource that has it now.
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
