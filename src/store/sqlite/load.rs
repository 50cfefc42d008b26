//! Reading a whole state file.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::lock::Lock;
use super::{StateError, schema};
use crate::model::{Address, Stored, Version};
use crate::store::{Loaded, Strings, Unreadable, codec};

/// What a state file held at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// Whose records they are; `None` while none has been written.
    pub namespace: Option<String>,
    /// What its objects are marked with.
    pub owner: String,
    /// The records.
    pub loaded: Loaded,
    /// Whether a process was writing to the file: then open intents are its running steps, not remains of a crash.
    pub in_use: bool,
}

pub(super) fn read(path: &Path) -> Result<Option<Snapshot>, StateError> {
    if !path.try_exists().map_err(|error| StateError::io(path, &error))? {
        return Ok(None);
    }
    let sqlite = |error: rusqlite::Error| StateError::sqlite(path, &error);
    // Asked before reading: a process that starts in between leaves its intents out of the snapshot or in it, and
    // is at worst not noticed when it has none.
    let in_use = Lock::is_held(path);
    if std::fs::metadata(path).is_ok_and(|file| file.len() == 0) {
        return Ok(None);
    }
    let connection = schema::open_for_reading(path)?;
    let namespace: Option<String> = schema::meta(&connection, "namespace").map_err(sqlite)?;
    let owner: Option<String> = schema::meta(&connection, "owner").map_err(sqlite)?;
    let owner = owner.unwrap_or_else(|| schema::owner_by_place(path));
    let loaded = select(&connection, namespace.as_deref().unwrap_or_default()).map_err(sqlite)?;
    Ok(Some(Snapshot { namespace, owner, loaded, in_use }))
}

/// All records, over a connection of its own, so that the writer goes on meanwhile.
pub(super) fn all(path: &Path) -> Result<Loaded, StateError> {
    let connection = schema::open_for_reading(path)?;
    let sqlite = |error: rusqlite::Error| StateError::sqlite(path, &error);
    let namespace: Option<String> = schema::meta(&connection, "namespace").map_err(sqlite)?;
    select(&connection, namespace.as_deref().unwrap_or_default()).map_err(sqlite)
}

fn select(connection: &Connection, namespace: &str) -> rusqlite::Result<Loaded> {
    let mut statement = connection.prepare("SELECT address, version, body FROM record")?;
    let mut rows = statement.query([])?;
    let mut strings = Strings::default();
    let mut records = Vec::new();
    let mut unreadable = Vec::new();
    while let Some(row) = rows.next()? {
        let version = Version(row.get::<_, i64>(1)?.unsigned_abs());
        let decoded = match row.get_ref(2)? {
            ValueRef::Blob(body) => codec::decode(body, &mut strings).map_err(|error| error.to_string()),
            _ => Err("it is damaged: it is not even bytes (hint: restore it from a backup)".to_owned()),
        };
        match decoded {
            Ok(record) => records.push((record.address.clone(), Stored { record: record.into(), version })),
            Err(message) => {
                let address = row.get::<_, String>(0)?;
                let address = address.parse().unwrap_or_else(|_| Address::single(address));
                unreadable.push(Unreadable { namespace: namespace.to_owned(), address, version, message });
            }
        }
    }
    let reads = reads(connection)?;
    Ok(Loaded { records: records.into_iter().collect(), unreadable, reads, ..Loaded::default() })
}

/// When objects were last looked at. A file of an earlier version does not say.
fn reads(connection: &Connection) -> rusqlite::Result<BTreeMap<Address, Timestamp>> {
    if !connection.table_exists(None, "reading")? {
        return Ok(BTreeMap::new());
    }
    let mut statement = connection.prepare("SELECT address, at FROM reading")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    let known = |(address, at): (String, i64)| Some((address.parse().ok()?, Timestamp::from_second(at).ok()?));
    // An entry that makes no sense is none: its object is due.
    rows.filter_map(|row| row.map(known).transpose()).collect()
}
