//! Errors of a state file, each on one line with a hint.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("state file `{}` is in use by {holder} (hint: wait until that process has ended; stop `purlin dev` with Ctrl-C)", path.display())]
    InUse {
        /// The state file.
        path: PathBuf,
        /// `process 1234`, or `another process` if its id is unknown.
        holder: String,
    },
    #[error(
        "state file `{}` holds the records of namespace `{held}`, not of `{wanted}` (hint: use a separate state file \
         for each namespace, and select it with `--state`)",
        path.display()
    )]
    OtherNamespace {
        /// The state file.
        path: PathBuf,
        /// Whose records it holds.
        held: String,
        /// Whose records it was opened for.
        wanted: String,
    },
    #[error("`{}` is not a state file (hint: select the state file with `--state`)", path.display())]
    NotAStateFile {
        /// The file.
        path: PathBuf,
    },
    #[error("state file `{}` was created by a newer version of Purlin (hint: use that version)", path.display())]
    NewerFormat {
        /// The state file.
        path: PathBuf,
    },
    /// SQLite detected corruption.
    #[error(
        "state file `{}` is damaged: {message} (hint: restore it from a backup; Purlin keeps a copy from before the last \
         changes in `{}.backup`)",
        path.display(), path.display()
    )]
    Damaged {
        /// The state file.
        path: PathBuf,
        /// What SQLite says.
        message: String,
    },
    #[error(
        "state file `{}` cannot be opened: {message} (hint: check that the directory exists and that you have access)",
        path.display()
    )]
    Denied {
        /// The state file.
        path: PathBuf,
        /// What the operating system says.
        message: String,
    },
    #[error("state file `{}` cannot be written: {what} (hint: {hint}; commands that only read work)", path.display())]
    ReadOnly {
        /// The state file.
        path: PathBuf,
        what: &'static str,
        hint: String,
    },
    #[error("state file `{}` cannot grow: the disk is full (hint: free disk space and try again)", path.display())]
    DiskFull {
        /// The state file.
        path: PathBuf,
    },
    #[error(
        "state file `{}` cannot be copied to `{}`: {message} (hint: free disk space, or check that you have access; \
         nothing is changed without this copy)",
        path.display(), copy.display()
    )]
    Backup {
        /// The state file.
        path: PathBuf,
        /// The copy.
        copy: PathBuf,
        /// What SQLite or the operating system says.
        message: String,
    },
    #[error("state file `{}` cannot be used: {message}", path.display())]
    Failed {
        /// The state file.
        path: PathBuf,
        /// What SQLite says.
        message: String,
    },
}

impl StateError {
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            io::ErrorKind::ReadOnlyFilesystem => {
                let hint = "mount it with write access".to_owned();
                Self::ReadOnly { path, what: "its file system is read-only", hint }
            }
            _ => Self::Denied { path, message: error.to_string() },
        }
    }

    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let message = message(error);
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotAStateFile { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, message },
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::ReadOnly) => {
                let hint = format!("make it writable with `chmod u+w {}`, as its owner", path.display());
                Self::ReadOnly { path, what: "it is read-only", hint }
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::Denied { path, message },
            _ => Self::Failed { path, message },
        }
    }
}

/// SQLite's message, on one line.
pub fn message(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full (hint: free disk space)".to_owned(),
        _ => error.to_string().replace('\n', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_says_why() {
        let path = Path::new("purlin.db");
        let system = StateError::io(path, &io::ErrorKind::ReadOnlyFilesystem.into());
        assert_eq!(
            system.to_string(),
            "state file `purlin.db` cannot be written: its file system is read-only (hint: mount it with write access; \
             commands that only read work)"
        );
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        let file = StateError::sqlite(path, &rusqlite::Error::SqliteFailure(code, None));
        assert_eq!(
            file.to_string(),
            "state file `purlin.db` cannot be written: it is read-only (hint: make it writable with `chmod u+w \
             purlin.db`, as its owner; commands that only read work)"
        );
    }
}
