//! The tables of a state file: creates, opens and checks them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::StateError;
use crate::store::RecordedConfiguration;
use model::{Address, Holder};
use process::private_file;

/// `PRLN`, which distinguishes a state file from other SQLite databases.
const APPLICATION: i64 = 0x5052_4c4e;

/// The format of the tables; `codec` has the format of records.
const FORMAT: i64 = 1;

/// Readers of a write-ahead log wait only while the log of a crashed writer is recovered.
pub const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE record (address TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, body BLOB NOT NULL, source TEXT);
";

/// The source of the manifest of each record. Earlier versions create no such column, and ignore it.
const SOURCES: &str = "ALTER TABLE record ADD COLUMN source TEXT";

/// The times of the last refreshes, in seconds. The table is created when it is first needed; earlier versions ignore
/// it.
const READINGS: &str =
    "CREATE TABLE IF NOT EXISTS reading (address TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID";

/// Opens the file, and creates it if needed. Also returns the greatest version ever used.
///
/// The caller holds the lock.
pub fn open_for_writing(path: &Path, namespace: &str, holder: &Holder) -> Result<(Connection, u64), StateError> {
    create_file(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    prepare_tables(&connection).map_err(|error| StateError::sqlite(path, &error))?;
    check(path, &connection)?;
    claim(path, &connection, namespace, holder)?;
    name_owner(path, &connection, holder).map_err(|error| StateError::sqlite(path, &error))?;
    let counter = configure(&connection).and_then(|()| meta::<i64>(&connection, "counter"));
    let counter = counter.map_err(|error| StateError::sqlite(path, &error))?.unwrap_or(0);
    Ok((connection, counter.unsigned_abs()))
}

/// Records refresh times over a separate connection, so that no step waits for it. Also deletes the times of objects
/// without a record.
///
/// The caller holds the lock.
pub fn record_reads(
    path: &Path,
    refreshed: &BTreeSet<Address>,
    due: &BTreeSet<Address>,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(READINGS)?;
    let transaction = connection.transaction()?;
    {
        let mut note = transaction.prepare("INSERT OR REPLACE INTO reading VALUES (?1, ?2)")?;
        for address in refreshed {
            note.execute(params![address.to_string(), at.as_second()])?;
        }
        let mut forget = transaction.prepare("DELETE FROM reading WHERE address = ?1")?;
        for address in due.difference(refreshed) {
            forget.execute([address.to_string()])?;
        }
    }
    transaction.execute("DELETE FROM reading WHERE address NOT IN (SELECT address FROM record)", [])?;
    transaction.commit()
}

/// Records the sources of manifests, and those that were given to the command, over a separate connection. The versions of
/// the records stay the same.
///
/// The caller holds the lock.
pub fn record_sources(path: &Path, sources: &BTreeMap<Address, Arc<str>>, given: Option<&str>) -> rusqlite::Result<()> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY)?;
    let transaction = connection.transaction()?;
    {
        let mut note = transaction.prepare("UPDATE record SET source = ?2 WHERE address = ?1")?;
        for (address, source) in sources {
            note.execute(params![address.to_string(), source])?;
        }
    }
    if let Some(given) = given {
        transaction.execute("INSERT OR REPLACE INTO meta VALUES ('given', ?1)", [given])?;
    }
    transaction.commit()
}

/// What stands before the source of a configuration in the table `meta`.
const CONFIGURATION: &str = "configuration ";

/// Records what is known of a Terraform configuration, over a separate connection.
///
/// The caller holds the lock.
pub fn record_configuration(path: &Path, source: &str, known: &RecordedConfiguration) -> rusqlite::Result<()> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY)?;
    insert_configuration(&connection, source, known)
}

pub fn insert_configuration(
    connection: &Connection,
    source: &str,
    known: &RecordedConfiguration,
) -> rusqlite::Result<()> {
    let key = format!("{CONFIGURATION}{source}");
    let value = serde_json::json!(known).to_string();
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", [key, value]).map(drop)
}

/// What is known of Terraform configurations, by source.
pub fn configurations(connection: &Connection) -> rusqlite::Result<BTreeMap<Arc<str>, RecordedConfiguration>> {
    let mut statement = connection.prepare("SELECT key, value FROM meta WHERE key LIKE ?1 || '%'")?;
    let mut rows = statement.query([CONFIGURATION])?;
    let mut configurations = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (key, value): (String, String) = (row.get(0)?, row.get(1)?);
        if let (Some(source), Ok(known)) = (key.strip_prefix(CONFIGURATION), serde_json::from_str(&value)) {
            configurations.insert(source.into(), known);
        }
    }
    Ok(configurations)
}

/// Whether the records have sources. Those of a file that only earlier versions wrote have none.
pub fn has_sources(connection: &Connection) -> rusqlite::Result<bool> {
    connection.column_exists(None, "record", "source")
}

pub fn open_for_reading(path: &Path) -> Result<Connection, StateError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match check(path, &connection) {
        Ok(()) => Ok(connection),
        // Readers of a write-ahead log create files beside it, which is not possible on a read-only file system. Without a
        // log, no process writes, and the file can be read alone.
        Err(StateError::Denied { .. } | StateError::ReadOnly { .. }) if !has_log(path) => {
            let connection = connect_alone(path)?;
            check(path, &connection)?;
            Ok(connection)
        }
        Err(error) => Err(error),
    }
}

fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|file| file.len() > 0)
}

/// Opens the file as one that does not change.
fn connect_alone(path: &Path) -> Result<Connection, StateError> {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => uri.push(char::from(*byte)),
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(uri, flags).map_err(|error| StateError::sqlite(path, &error))
}

/// Whether the file has no tables: the process that created it may have been interrupted.
fn is_new(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_master", [], |row| row.get(0))
}

pub fn meta<T: rusqlite::types::FromSql>(connection: &Connection, key: &str) -> rusqlite::Result<Option<T>> {
    connection.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()
}

fn create_file(path: &Path) -> Result<(), StateError> {
    if path.exists() {
        // Not possible for a file of another user.
        let _ = private_file::restrict(path);
        return Ok(());
    }
    let mut created = private_file::options().create_new(true).open(path).map(drop);
    if cfg!(unix) {
        // The name of a new file is durable only after a sync of its directory; SQLite syncs the content.
        created = created.and_then(|()| File::open(directory(path))?.sync_all());
    }
    created.map_err(|error| StateError::io(path, &error))
}

pub fn directory(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether the file has no records.
pub fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM record)", [], |row| row.get(0))
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, StateError> {
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
        .and_then(|connection| connection.busy_timeout(BUSY).map(|()| connection))
        .map_err(|error| StateError::sqlite(path, &error))
}

fn prepare_tables(connection: &Connection) -> rusqlite::Result<()> {
    if is_new(connection)? {
        create_tables(connection)
    } else if connection.table_exists(None, "record")? && !has_sources(connection)? {
        connection.execute_batch(SOURCES)
    } else {
        Ok(())
    }
}

fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES}
         INSERT INTO meta VALUES ('format', {FORMAT}), ('counter', 0);
         PRAGMA application_id = {APPLICATION}; COMMIT;"
    ))
}

fn check(path: &Path, connection: &Connection) -> Result<(), StateError> {
    let application: i64 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|error| StateError::sqlite(path, &error))?;
    if application != APPLICATION {
        return Err(StateError::NotAStateFile { path: path.to_owned() });
    }
    match meta::<i64>(connection, "format").map_err(|error| StateError::sqlite(path, &error))? {
        Some(FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => Err(StateError::NewerFormat { path: path.to_owned() }),
        _ => Err(StateError::Damaged { path: path.to_owned(), message: "its format number is missing".to_owned() }),
    }
}

/// Records the namespace and the holder of the file. The namespace of a file without records may change, so that a
/// first attempt in the wrong directory does not block the next one.
fn claim(path: &Path, connection: &Connection, namespace: &str, holder: &Holder) -> Result<(), StateError> {
    let held: Option<String> = meta(connection, "namespace").map_err(|error| StateError::sqlite(path, &error))?;
    if let Some(held) = held.filter(|held| held != namespace)
        && !is_empty(connection).map_err(|error| StateError::sqlite(path, &error))?
    {
        return Err(StateError::OtherNamespace { path: path.to_owned(), held, wanted: namespace.to_owned() });
    }
    connection
        .execute(
            "INSERT INTO meta VALUES ('namespace', ?1), ('holder', ?2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [namespace, &holder.process],
        )
        .map(drop)
        .map_err(|error| StateError::sqlite(path, &error))
}

/// Records the owner name permanently, because the file may be moved. Files of earlier versions used their path as the
/// owner name.
fn name_owner(path: &Path, connection: &Connection, holder: &Holder) -> rusqlite::Result<()> {
    // The process id is random, and the process creates one file.
    let owner = if is_empty(connection)? { format!("state:{}", holder.process) } else { path_owner(path) };
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('owner', ?1)", [owner]).map(drop)
}

/// The owner name that earlier versions used.
pub fn path_owner(path: &Path) -> String {
    let place = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    format!("file:{}", place.display())
}

/// `FULL` makes every commit durable in a write-ahead log; `NORMAL` could lose the last ones on power loss.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_change_is_read_alone() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("a b?c#d%20é.db");
        let connection = Connection::open(&path).unwrap();
        create_tables(&connection).unwrap();
        configure(&connection).unwrap();
        drop(connection);
        let connection = connect_alone(&path).unwrap();
        check(&path, &connection).unwrap();
        assert!(is_empty(&connection).unwrap());
        assert!(!has_log(&path) && directory.path().read_dir().unwrap().count() == 1);
    }
}
