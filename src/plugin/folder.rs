//! The private folder of a plugin: its socket and its temporary files. Only its owner may look into it.
//!
//! A process that is killed leaves its folders behind. Each has a file that is locked for as long as its owner lives,
//! so the next process sees which ones nobody needs, and removes them.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use super::StartError;

/// The system keeps the path of a Unix socket in 108 bytes, the last of which is zero.
const LONGEST_SOCKET_PATH: usize = 107;

/// `/plugin` and the digits that make the name unique.
const SOCKET_NAME: usize = 7 + 10;

/// With what the names of folders begin.
const PREFIX: &str = "purlin-";

/// The file that is locked.
const LOCK: &str = "lock";

/// Its name before it is.
const UNLOCKED: &str = "lock.new";

/// Numbers the folders of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What others left is removed once in the life of a process.
static SWEEP: Once = Once::new();

/// A folder that goes with its owner.
#[derive(Debug)]
pub(super) struct PrivateFolder {
    path: PathBuf,
    _lock: File,
}

impl PrivateFolder {
    /// Makes one inside `parent`.
    pub(super) fn create(parent: &Path) -> Result<Self, StartError> {
        SWEEP.call_once(|| sweep(parent));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        if path.as_os_str().as_bytes().len() + SOCKET_NAME > LONGEST_SOCKET_PATH {
            return Err(StartError::LongPath { folder: path, limit: LONGEST_SOCKET_PATH });
        }
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let made = builder.create(&path).or_else(|error| match error.kind() {
            // We number our folders, so this one is of a process before us that had our id and was killed; in a
            // container that is every one. If it is somebody else's it cannot be removed, and the start fails.
            ErrorKind::AlreadyExists => fs::remove_dir_all(&path).and_then(|()| builder.create(&path)),
            _ => Err(error),
        });
        let lock = made.and_then(|()| locked(&path));
        let lock = lock.map_err(|error| StartError::Folder { folder: parent.to_owned(), why: error.to_string() })?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What a dying plugin still writes into it stays behind; the next folder of that name replaces it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes the file that is locked. It has another name until it is: whoever sweeps takes a folder whose file is free for one
/// of a process that is gone.
fn locked(folder: &Path) -> std::io::Result<File> {
    let unlocked = folder.join(UNLOCKED);
    let lock = File::create(&unlocked)?;
    lock.lock()?;
    fs::rename(unlocked, folder.join(LOCK))?;
    Ok(lock)
}

/// Removes the folders of processes that are gone. One without a file to lock is just being made.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let lock = File::options().write(true).open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // Somebody else may do the same.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_is_private_and_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::create(parent.path()).unwrap();
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(folder.path().join("plugin1"), "").unwrap();
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let used = PrivateFolder::create(parent.path()).unwrap();
        let (left, fresh, other) = ("purlin-1-1", "purlin-1-2", "other");
        [left, fresh, other].iter().for_each(|name| fs::create_dir(parent.path().join(name)).unwrap());
        [left, other].iter().for_each(|name| fs::write(parent.path().join(name).join(LOCK), "").unwrap());
        sweep(parent.path());
        assert!(used.path().exists());
        let stays = |name| parent.path().join(name).exists();
        assert_eq!((stays(left), stays(fresh), stays(other)), (false, true, true));
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused_before_anything_starts() {
        let error = PrivateFolder::create(&Path::new("/tmp").join("x".repeat(90))).unwrap_err();
        assert!(error.to_string().contains("too long for a Unix socket, which may have 107 bytes"), "{error}");
    }
}
