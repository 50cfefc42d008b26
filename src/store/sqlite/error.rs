//! What can be wrong with a state file, each told in one line with the next step.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process writes to it.
    #[error("state file `{}` is in use by {holder} (hint: wait until it has ended; `purlin dev` ends with Ctrl-C)", path.display())]
    InUse {
        /// The state file.
        path: PathBuf,
        /// `process 1234`, or `another process` when its id is not known.
        holder: String,
    },
    /// It holds the records of another namespace.
    #[error(
        "state file `{}` holds the records of namespace `{held}`, not of `{wanted}` (hint: keep a state file for each \
         namespace, and name it with `--state`)",
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
    /// It is something else.
    #[error("`{}` is no state file (hint: name the right one with `--state`)", path.display())]
    NotAStateFile {
        /// The file.
        path: PathBuf,
    },
    /// A newer version made it.
    #[error("state file `{}` was made by a newer version of Purlin (hint: use that one)", path.display())]
    NewerFormat {
        /// The state file.
        path: PathBuf,
    },
    /// Its pages do not fit together any more.
    #[error("state file `{}` is damaged: {message} (hint: restore it from a backup)", path.display())]
    Damaged {
        /// The state file.
        path: PathBuf,
        /// What SQLite says.
        message: String,
    },
    /// The operating system does not let us.
    #[error(
        "state file `{}` cannot be opened: {message} (hint: check that the folder exists and is yours)",
        path.display()
    )]
    Denied {
        /// The state file.
        path: PathBuf,
        /// What the operating system says.
        message: String,
    },
    /// No room.
    #[error("state file `{}` cannot grow: the disk is full (hint: make room, then try again)", path.display())]
    DiskFull {
        /// The state file.
        path: PathBuf,
    },
    /// Anything else.
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

/// What SQLite says, in one line.
pub(super) fn message(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full (hint: make room)".to_owned(),
        _ => error.to_string().replace('\n', " "),
    }
}
