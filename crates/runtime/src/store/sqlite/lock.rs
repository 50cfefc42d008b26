//! The OS lock that makes one process the writer of a state file. The OS releases it when the process ends.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::StateError;
use process::private_file;

/// Retries in case another process is only testing the lock, which takes microseconds.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// The lock, released on drop. Its file stays, because another process may just have opened it.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock and writes the process id into its file.
    pub fn exclusive(state: &Path) -> Result<Self, StateError> {
        let mut file = private_file::options()
            .read(true)
            .create(true)
            .open(lock_path(state))
            .map_err(|error| StateError::io(state, &error))?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(in_use(state, &mut file)),
                Err(TryLockError::Error(error)) => return Err(StateError::io(state, &error)),
            }
        }
        file.set_len(0)
            .and_then(|()| write!(file, "{}", std::process::id()))
            .map_err(|error| StateError::io(state, &error))?;
        Ok(Self { file })
    }

    /// Whether a process holds the lock.
    pub fn is_held(state: &Path) -> bool {
        let Ok(file) = File::open(lock_path(state)) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file must not name a process that has released the lock.
        let _ = self.file.set_len(0);
    }
}

fn lock_path(state: &Path) -> PathBuf {
    let mut name = OsString::from(state);
    name.push(".lock");
    name.into()
}

fn in_use(state: &Path, file: &mut File) -> StateError {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    let holder = match text.parse::<u32>() {
        Ok(process) if read.is_ok() => format!("process {process}"),
        _ => "another process".to_owned(),
    };
    StateError::InUse { path: state.to_owned(), holder }
}
