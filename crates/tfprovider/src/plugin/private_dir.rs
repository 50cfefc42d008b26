//! The private directory of a plugin for its socket and temporary files. Only its owner can access it.
//!
//! A killed process leaves its directories behind. Each directory has a file that is locked while its owner runs, so
//! the next process can detect and remove unused directories.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use super::StartError;

/// The operating system stores the path of a Unix socket in 108 bytes, including the terminating zero.
const MAX_SOCKET_PATH: usize = 107;

/// The length of `/plugin` and the digits that make the name unique.
const SOCKET_NAME: usize = 7 + 10;

const PREFIX: &str = "purlin-";

const LOCK: &str = "lock";

/// The name of the lock file before it is locked.
const UNLOCKED: &str = "lock.new";

/// The number of the next directory of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Unused directories are removed once per process.
static SWEEP: Once = Once::new();

/// A directory that is removed on drop.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    _lock: File,
}

impl PrivateDir {
    pub fn create(parent: &Path) -> Result<Self, StartError> {
        SWEEP.call_once(|| sweep(parent));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        if path.as_os_str().as_bytes().len() + SOCKET_NAME > MAX_SOCKET_PATH {
            return Err(StartError::LongPath { dir: path, limit: MAX_SOCKET_PATH });
        }
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let made = builder.create(&path).or_else(|error| match error.kind() {
            // Numbers are unique within this process, so the directory belongs to a killed process with the same id, as
            // is usual in containers. If it belongs to another user it cannot be removed, and the start fails.
            ErrorKind::AlreadyExists => fs::remove_dir_all(&path).and_then(|()| builder.create(&path)),
            _ => Err(error),
        });
        let lock = made.and_then(|()| locked(&path));
        let lock = lock.map_err(|error| StartError::PrivateDir { dir: parent.to_owned(), why: error.to_string() })?;
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // Files that a terminating plugin still writes may remain; the next directory with this name replaces them.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Creates the lock file. It is renamed after it has been locked, because `sweep` removes directories with an unlocked
/// lock file.
fn locked(dir: &Path) -> std::io::Result<File> {
    let unlocked = dir.join(UNLOCKED);
    let lock = File::create(&unlocked)?;
    lock.lock()?;
    fs::rename(unlocked, dir.join(LOCK))?;
    Ok(lock)
}

/// Removes the directories of processes that have exited. A directory without a lock file is being created.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let lock = File::options().write(true).open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // Another process may remove it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_is_private_and_removed_on_drop() {
        let parent = tempfile::tempdir().unwrap();
        let dir = PrivateDir::create(parent.path()).unwrap();
        assert_eq!(fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(dir.path().join("plugin1"), "").unwrap();
        let path = dir.path().to_owned();
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn only_directories_of_exited_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = PrivateDir::create(parent.path()).unwrap();
        let (left, fresh, other) = ("purlin-1-1", "purlin-1-2", "other");
        [left, fresh, other].iter().for_each(|name| fs::create_dir(parent.path().join(name)).unwrap());
        [left, other].iter().for_each(|name| fs::write(parent.path().join(name).join(LOCK), "").unwrap());
        sweep(parent.path());
        assert!(used.path().exists());
        let stays = |name| parent.path().join(name).exists();
        assert_eq!((stays(left), stays(fresh), stays(other)), (false, true, true));
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_rejected() {
        let error = PrivateDir::create(&Path::new("/tmp").join("x".repeat(90))).unwrap_err();
        assert!(
            error.to_string().contains("too long for a Unix socket, whose path can have at most 107 bytes"),
            "{error}"
        );
    }
}
