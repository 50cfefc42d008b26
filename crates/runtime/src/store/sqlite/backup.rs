//! The copy of a state file before it changes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::error::message;
use super::{StateError, schema};
use process::private_file;

/// Copies the state file at `path` to `<path>.backup`, over an earlier copy. The new copy is complete and durable
/// before it replaces the earlier one. A file without records is not copied, because the earlier copy is more useful.
///
/// The caller holds the lock.
pub fn copy(path: &Path) -> Result<(), StateError> {
    let (to, part) = (self::path(path), with_suffix(path, ".backup.part"));
    let failed = |message: String| StateError::Backup { path: path.to_owned(), copy: to.clone(), message };
    let io = |error: std::io::Error| failed(error.to_string());
    let source = schema::open_for_reading(path)?;
    if schema::is_empty(&source).map_err(|error| failed(message(&error)))? {
        return Ok(());
    }
    // An interrupted process may have left a part.
    if part.exists() {
        fs::remove_file(&part).map_err(io)?;
    }
    private_file::options().create_new(true).open(&part).map_err(io)?;
    copy_pages(&source, &part).map_err(|error| failed(message(&error)))?;
    File::open(&part).and_then(|file| file.sync_all()).map_err(io)?;
    fs::rename(&part, &to).map_err(io)?;
    File::open(schema::directory(path)).and_then(|directory| directory.sync_all()).map_err(io)
}

pub fn path(state: &Path) -> PathBuf {
    with_suffix(state, ".backup")
}

fn copy_pages(source: &Connection, to: &Path) -> rusqlite::Result<()> {
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let backup = Backup::new(source, &mut copy)?;
    // All pages in one step, which is consistent: no other process writes, and this one has not begun.
    match backup.step(-1)? {
        StepResult::Done => Ok(()),
        other => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
            Some(format!("{other:?}")),
        )),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
