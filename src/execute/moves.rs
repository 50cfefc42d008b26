//! Writes moves of records.
//!
//! Four writes for each, and after each of them a crash leaves something that only one address claims: first the old
//! record says where it goes, and from then on it belongs there; then the new one is made; then what names the old
//! address names the new one; then the old record is removed. Whoever finds a record that says where it goes finishes
//! the move.

use std::sync::Arc;

use super::{Journal, JournalError};
use crate::model::{Record, Recorded, Stored};
use crate::plan::moves::{Move, moved, redirected};

/// Carries moves out. `recorded` follows every write.
///
/// # Errors
/// What was written so far stays, and the next call goes on from there.
pub async fn carry_out(journal: &dyn Journal, recorded: &mut Recorded, moves: &[Move]) -> Result<(), JournalError> {
    let before = recorded.clone();
    for one in moves {
        let Some(Stored { record, version }) = recorded.get(&one.from).cloned() else { continue };
        if record.moving_to.is_none() {
            let leaving = Record { moving_to: Some(Box::new(one.to.clone())), ..Record::clone(&record) };
            write(journal, recorded, leaving, Some(version)).await?;
        }
        let there = recorded.get(&one.to).cloned();
        if !there.as_ref().is_some_and(|stored| stored.record.has_objects()) {
            write(journal, recorded, moved(&record, one), there.map(|stored| stored.version)).await?;
        }
    }
    let dependents: Vec<(Record, crate::model::Version)> = recorded
        .values()
        .filter(|stored| stored.record.moving_to.is_none())
        .filter_map(|stored| Some((redirected(&stored.record, moves, &before)?, stored.version)))
        .collect();
    for (record, version) in dependents {
        write(journal, recorded, record, Some(version)).await?;
    }
    for one in moves {
        let Some(Stored { record, version }) = recorded.get(&one.from).cloned() else { continue };
        journal.erase(record, version).await?;
        recorded.remove(&one.from);
    }
    Ok(())
}

async fn write(
    journal: &dyn Journal,
    recorded: &mut Recorded,
    record: Record,
    base: Option<crate::model::Version>,
) -> Result<(), JournalError> {
    let record = Arc::new(record);
    let version = match base {
        None => journal.intend(record.clone(), None).await?,
        Some(base) => journal.record(record.clone(), base).await?,
    };
    recorded.insert(record.address.clone(), Stored { record, version });
    Ok(())
}
