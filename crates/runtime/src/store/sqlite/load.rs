//! Reads a whole state file.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::lock::Lock;
use super::{StateError, StateFile, failures, schema};
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

pub fn read(path: &Path) -> Result<Option<Snapshot>, StateError> {
    if !StateFile::exists(path) {
        return Ok(None);
    }
    // Checked before reading: the intents of a process that starts in between may or may not be in the snapshot, and at
    // worst a process without intents is missed.
    let in_use = Lock::is_held(path);
    let connection = schema::open_for_reading(path)?;
    let owner = schema::meta(&connection, "owner").map_err(|error| StateError::sqlite(path, &error))?;
    let owner = owner.unwrap_or_else(|| schema::path_owner(path));
    let (namespace, loaded) = select(&connection).map_err(|error| StateError::sqlite(path, &error))?;
    Ok(Some(Snapshot { namespace, owner, loaded, in_use }))
}

/// Reads all records over a separate connection, concurrently with the writer.
pub fn all(path: &Path) -> Result<LoadedRecords, StateError> {
    let connection = schema::open_for_reading(path)?;
    let (_, loaded) = select(&connection).map_err(|error| StateError::sqlite(path, &error))?;
    Ok(loaded)
}

/// Returns the namespace of the records and the records.
fn select(connection: &Connection) -> rusqlite::Result<(Option<String>, LoadedRecords)> {
    let namespace: Option<String> = schema::meta(connection, "namespace")?;
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
                let namespace = namespace.clone().unwrap_or_default();
                unreadable.push(UnreadableRecord { namespace, address, version, message });
            }
        }
    }
    let (reads, failures) = (reads(connection)?, failures::load(connection)?);
    let given: Option<String> = schema::meta(connection, "given")?;
    let loaded = LoadedRecords {
        records: records.into_iter().collect(),
        unreadable,
        reads,
        failures,
        given: given.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        configurations: schema::configurations(connection)?,
        ..LoadedRecords::default()
    };
    Ok((namespace, loaded))
}

/// The times of the last refreshes; empty for files of earlier versions.
fn reads(connection: &Connection) -> rusqlite::Result<BTreeMap<Address, Timestamp>> {
    if !connection.table_exists(None, "reading")? {
        return Ok(BTreeMap::new());
    }
    let mut statement = connection.prepare("SELECT address, at FROM reading")?;
    let mut rows = statement.query([])?;
    let mut reads = BTreeMap::new();
    while let Some(row) = rows.next()? {
        // An invalid entry is ignored: its object is then due for a refresh.
        if let (Ok(address), Ok(at)) = (row.get::<_, String>(0)?.parse(), Timestamp::from_second(row.get(1)?)) {
            reads.insert(address, at);
        }
    }
    Ok(reads)
}
