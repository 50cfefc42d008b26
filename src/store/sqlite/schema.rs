//! The tables of a state file: opening, making and checking them.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::StateError;
use crate::model::{Address, Holder};
use crate::process::private_file;

/// `PRLN`, so that a state file can be told from any other SQLite database.
const APPLICATION: i64 = 0x5052_4c4e;

/// The format of the tables; that of the records in them is `codec`'s.
const FORMAT: i64 = 1;

/// Readers never wait in a write-ahead log, except for the moment in which the log of a crashed writer is recovered.
const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE record (address TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, body BLOB NOT NULL);
";

/// When objects were last looked at, in seconds. Made when it is first needed, since earlier versions have no use for
/// it and leave it alone.
const READINGS: &str =
    "CREATE TABLE IF NOT EXISTS reading (address TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID";

/// Opens, making the file when needed. Gives the greatest version ever used as well.
///
/// The caller holds the lock.
pub(super) fn open_for_writing(path: &Path, namespace: &str, holder: &Holder) -> Result<(Connection, u64), StateError> {
    make_file(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let prepare = || -> rusqlite::Result<()> {
        if is_new(&connection)? {
            make_tables(&connection)?;
        }
        Ok(())
    };
    prepare().map_err(|error| StateError::sqlite(path, &error))?;
    check(path, &connection)?;
    claim(path, &connection, namespace, holder)?;
    name_owner(path, &connection, holder)?;
    let counter = configure(&connection).and_then(|()| meta::<i64>(&connection, "counter"));
    let counter = counter.map_err(|error| StateError::sqlite(path, &error))?.unwrap_or(0);
    Ok((connection, counter.unsigned_abs()))
}

/// Notes that objects were looked at, over a connection of its own: no step waits for it. Objects that have no record
/// any more are forgotten on the way.
///
/// The caller holds the lock.
pub(super) fn note_reads(
    path: &Path,
    seen: &BTreeSet<Address>,
    due: &BTreeSet<Address>,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(READINGS)?;
    let transaction = connection.transaction()?;
    {
        let mut note = transaction.prepare("INSERT OR REPLACE INTO reading VALUES (?1, ?2)")?;
        for address in seen {
            note.execute(params![address.to_string(), at.as_second()])?;
        }
        let mut forget = transaction.prepare("DELETE FROM reading WHERE address = ?1")?;
        for address in due.difference(seen) {
            forget.execute([address.to_string()])?;
        }
    }
    transaction.execute("DELETE FROM reading WHERE address NOT IN (SELECT address FROM record)", [])?;
    transaction.commit()
}

/// Opens an existing file for reading.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, StateError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    check(path, &connection)?;
    Ok(connection)
}

/// Whether the file holds nothing at all: a process that makes one may have been cut before the tables were there.
pub(super) fn is_new(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_master", [], |row| row.get(0))
}

/// A value of the meta table.
pub(super) fn meta<T: rusqlite::types::FromSql>(connection: &Connection, key: &str) -> rusqlite::Result<Option<T>> {
    connection.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()
}

fn make_file(path: &Path) -> Result<(), StateError> {
    let io = |error: std::io::Error| StateError::io(path, &error);
    if path.exists() {
        return Ok(());
    }
    private_file::options().create_new(true).open(path).map_err(io)?;
    // The name of a new file is durable only with its folder; SQLite sees to the content.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder).and_then(|folder| folder.sync_all()).map_err(io) } else { Ok(()) }
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection, StateError> {
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
        .and_then(|connection| connection.busy_timeout(BUSY).map(|()| connection))
        .map_err(|error| StateError::sqlite(path, &error))
}

fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES}
         INSERT INTO meta VALUES ('format', {FORMAT}), ('counter', 0);
         PRAGMA application_id = {APPLICATION}; COMMIT;"
    ))
}

fn check(path: &Path, connection: &Connection) -> Result<(), StateError> {
    let sqlite = |error: rusqlite::Error| StateError::sqlite(path, &error);
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sqlite)?;
    if application != APPLICATION {
        return Err(StateError::NotAStateFile { path: path.to_owned() });
    }
    match meta::<i64>(connection, "format").map_err(sqlite)? {
        Some(FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => Err(StateError::NewerFormat { path: path.to_owned() }),
        _ => Err(StateError::Damaged { path: path.to_owned(), message: "its format is missing".to_owned() }),
    }
}

/// Writes down whose file this is from now on. An empty one changes its namespace freely: a first try with the wrong
/// folder should leave nothing that is in the way of the second.
fn claim(path: &Path, connection: &Connection, namespace: &str, holder: &Holder) -> Result<(), StateError> {
    let sqlite = |error: rusqlite::Error| StateError::sqlite(path, &error);
    let held: Option<String> = meta(connection, "namespace").map_err(sqlite)?;
    if let Some(held) = held.filter(|held| held != namespace) {
        let empty = connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM record)", [], |row| row.get(0));
        if !empty.map_err(sqlite)? {
            return Err(StateError::OtherNamespace { path: path.to_owned(), held, wanted: namespace.to_owned() });
        }
    }
    connection
        .execute(
            "INSERT INTO meta VALUES ('namespace', ?1), ('holder', ?2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [namespace, &holder.process],
        )
        .map(drop)
        .map_err(sqlite)
}

/// Writes down what the objects of this file are marked with, once and for all: the file may move. Files of an earlier
/// version have marked theirs with where they stood.
fn name_owner(path: &Path, connection: &Connection, holder: &Holder) -> Result<(), StateError> {
    let name = || -> rusqlite::Result<()> {
        let empty: bool = connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM record)", [], |row| row.get(0))?;
        // The process was named at random, and makes one file.
        let owner = if empty { format!("state:{}", holder.process) } else { owner_by_place(path) };
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('owner', ?1)", [owner]).map(drop)
    };
    name().map_err(|error| StateError::sqlite(path, &error))
}

/// What an earlier version marked the objects of a file with.
pub(super) fn owner_by_place(path: &Path) -> String {
    let place = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    format!("file:{}", place.display())
}

/// `FULL` makes every commit durable, in a write-ahead log too; `NORMAL` would lose the last ones with the power.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}
