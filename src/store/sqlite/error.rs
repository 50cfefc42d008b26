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
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Denied { path, message: error.to_string() },
        }
    }

    pub(super) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let message = message(error);
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotAStateFile { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, message },
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Self::Denied { path, message }
            }
            _ => Self::Failed { path, message },
        }
    }
}

/// SQLite's message, on one line.
pub(super) fn message(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full (hint: free disk space)".to_owned(),
        _ => error.to_string().replace('\n', " "),
    }
}
