//! The directory with the data and logs of a control plane.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;

use crate::programs::locked;

/// Old directories are removed once per run, so that the logs of a failed test stay until the next run.
static SWEEP: Once = Once::new();

/// A directory that is removed when it is dropped, unless the test failed. Remaining directories, also of killed runs,
/// are removed at the start of the next run.
pub(super) struct RunDir {
    path: PathBuf,
    /// Locked while the directory is in use.
    _lock: File,
}

impl RunDir {
    /// Creates a directory inside `all`.
    ///
    /// # Panics
    /// If an I/O error occurs.
    pub(super) fn create(all: &Path) -> RunDir {
        fs::create_dir_all(all).unwrap_or_else(|error| panic!("creating {}: {error}", all.display()));
        // This lock prevents a sweep while the new directory is not locked yet.
        let _sweeping = locked(&all.join("lock"));
        SWEEP.call_once(|| sweep(all));

        let created = tempfile::Builder::new().prefix("run-").tempdir_in(all);
        let path = created.unwrap_or_else(|error| panic!("a directory in {}: {error}", all.display())).keep();
        let dir = RunDir { _lock: locked(&path.join("lock")), path };
        fs::create_dir(dir.scratch()).expect("a directory for the tests' files");
        dir
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.data().join("admin.kubeconfig")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.path.join("audit.log")
    }

    pub(super) fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.log"))
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if thread::panicking() {
            let path = self.path.display();
            eprintln!("the logs of this control plane are in {path} until the next run");
        } else {
            // If this fails, a later run removes it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn sweep(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let abandoned = match File::open(entry.path().join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            // A partly removed directory, or the lock file of `all` itself.
            Err(_) => entry.path().is_dir(),
        };
        if abandoned {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
