//! The last failure of each object in a state file.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, Row, params};

use super::schema::BUSY;
use crate::store::LastFailure;
use model::Address;

/// The table is created when it is first needed; earlier versions ignore it.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS failure (address TEXT PRIMARY KEY, at INTEGER NOT NULL, \
                     type TEXT NOT NULL, operation TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL) \
                     WITHOUT ROWID";

/// Replaces all failures, over a separate connection.
///
/// The caller holds the lock.
pub fn record(path: &Path, failures: &BTreeMap<Address, LastFailure>) -> rusqlite::Result<()> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(TABLE)?;
    let transaction = connection.transaction()?;
    transaction.execute("DELETE FROM failure", [])?;
    {
        let mut insert = transaction.prepare("INSERT INTO failure VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
        for (address, failure) in failures {
            let LastFailure { at, type_name, operation, reason, message } = failure;
            insert.execute(params![address.to_string(), at.as_second(), &**type_name, operation, reason, message])?;
        }
    }
    transaction.commit()
}

/// Reads all failures; empty for files of earlier versions.
pub fn load(connection: &Connection) -> rusqlite::Result<BTreeMap<Address, LastFailure>> {
    if !connection.table_exists(None, "failure")? {
        return Ok(BTreeMap::new());
    }
    let mut statement = connection.prepare("SELECT address, at, type, operation, reason, message FROM failure")?;
    // An invalid entry is ignored: it is only shown to users.
    statement.query_map([], entry)?.filter_map(Result::transpose).collect()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Option<(Address, LastFailure)>> {
    let address: Option<Address> = row.get::<_, String>(0)?.parse().ok();
    let Some((address, at)) = address.zip(Timestamp::from_second(row.get(1)?).ok()) else { return Ok(None) };
    let type_name = row.get::<_, String>(2)?.into();
    let failure = LastFailure { at, type_name, operation: row.get(3)?, reason: row.get(4)?, message: row.get(5)? };
    Ok(Some((address, failure)))
}
