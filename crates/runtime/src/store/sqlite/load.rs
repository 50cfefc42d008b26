//! Reads a whole state file.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::lock::Lock;
use super::{StateError, failures, schema};
use crate::store::{Interner, LoadedRecords, UnreadableRecord, codec};
use model::{Address, Record, Stored, Version};

/// The content of a state file at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The namespace of the records; `None` before the first write.
    pub namespace: Option<String>,
    /// The owner name that its objects are marked with.
    pub owner: String,
    pub loaded: LoadedRecords,
    /// Whether a process was writing to the file. Open intents then belong to its running steps, not to a crash.
    pub in_use: bool,
}

pub(super) fn read(path: &Path) -> Result<Option<Snapshot>, StateError> {
    if !path.try_exists().map_err(|error| StateError::io(path, &error))? {
        return Ok(None);
    }
    let sqlite = |error: rusqlite::Error| StateError::sqlite(path, &error);
    // Checked before reading: the intents of a process that starts in between may or may not be in the snapshot, and at
    // worst a process without intents is missed.
    let in_use = Lock::is_held(path);
    if std::fs::metadata(path).is_ok_and(|file| file.len() == 0) {
        return Ok(None);
    }
    let connection = schema::open_for_reading(path)?;
    let namespace: Option<String> = schema::meta(&connection, "namespace").map_err(sqlite)?;
    let owner: Option<String> = schema::meta(&connection, "owner").map_err(sqlite)?;
    let owner = owner.unwrap_or_else(|| schema::path_owner(path));
    let loaded = select(&connection, namespace.as_deref().unwrap_or_default()).map_err(sqlite)?;
    Ok(Some(Snapshot { namespace, owner, loaded, in_use }))
}

/// Reads all records over a separate connection, concurrently with the writer.
pub(super) fn all(path: &Path) -> Result<LoadedRecords, StateError> {
    let connection = schema::open_for_reading(path)?;
    let sqlite = |error: rusqlite::Error| StateError::sqlite(path, &error);
    let namespace: Option<String> = schema::meta(&connection, "namespace").map_err(sqlite)?;
    select(&connection, namespace.as_deref().unwrap_or_default()).map_err(sqlite)
}

fn select(connection: &Connection, namespace: &str) -> rusqlite::Result<LoadedRecords> {
    let source = if schema::has_sources(connection)? { "source" } else { "NULL" };
    let mut statement = connection.prepare(&format!("SELECT address, version, body, {source} FROM record"))?;
    let mut rows = statement.query([])?;
    let mut strings = Interner::default();
    let mut records = Vec::new();
    let mut unreadable = Vec::new();
    while let Some(row) = rows.next()? {
        let version = Version(row.get::<_, i64>(1)?.unsigned_abs());
        let decoded = match row.get_ref(2)? {
            ValueRef::Blob(body) => codec::decode(body, &mut strings).map_err(|error| error.to_string()),
            _ => Err("it is damaged: its column is not a blob (hint: restore it from a backup)".to_owned()),
        };
        match decoded {
            Ok(record) => {
                let source = row.get_ref(3)?.as_str_or_null().unwrap_or_default().map(|source| strings.share(source));
                let record = Record { source, ..record };
                records.push((record.address.clone(), Stored { record: record.into(), version }));
            }
            Err(message) => {
                let address = row.get::<_, String>(0)?;
                let address = address.parse().unwrap_or_else(|_| Address::single(address));
                unreadable.push(UnreadableRecord { namespace: namespace.to_owned(), address, version, message });
            }
        }
    }
    let (reads, failures) = (reads(connection)?, failures::load(connection)?);
    let given: Option<String> = schema::meta(connection, "given")?;
    Ok(LoadedRecords {
        records: records.into_iter().collect(),
        unreadable,
        reads,
        failures,
        given: given.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        configurations: schema::configurations(connection)?,
        ..LoadedRecords::default()
    })
}

/// The times of the last refreshes; empty for files of earlier versions.
fn reads(connection: &Connection) -> rusqlite::Result<BTreeMap<Address, Timestamp>> {
    if !connection.table_exists(None, "reading")? {
        return Ok(BTreeMap::new());
    }
    let mut statement = connection.prepare("SELECT address, at FROM reading")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    let known = |(address, at): (String, i64)| Some((address.parse().ok()?, Timestamp::from_second(at).ok()?));
    // An invalid entry is ignored: its object is then due for a refresh.
    rows.filter_map(|row| row.map(known).transpose()).collect()
}
