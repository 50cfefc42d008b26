//! Where a control plane keeps its data and logs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;

use crate::programs::locked;

/// Old directories go once per run, so that the logs of a failed test stay until the end of its run.
static SWEEP: Once = Once::new();

/// A directory that is removed when it is dropped, unless the test is failing: then its logs are wanted. What is
/// left, also by runs that were killed, goes at the start of the next run.
pub(super) struct RunDir {
    path: PathBuf,
    /// Held for as long as somebody uses the directory.
    _lock: File,
}

impl RunDir {
    /// Makes a directory inside `all`.
    ///
    /// # Panics
    /// If the file system refuses.
    pub(super) fn create(all: &Path) -> RunDir {
        fs::create_dir_all(all).unwrap_or_else(|error| panic!("creating {}: {error}", all.display()));
        // Nobody sweeps while a directory exists that is not locked yet.
        let _sweeping = locked(&all.join("lock"));
        SWEEP.call_once(|| sweep(all));

        let made = tempfile::Builder::new().prefix("run-").tempdir_in(all);
        let path = made.unwrap_or_else(|error| panic!("a directory in {}: {error}", all.display())).keep();
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
            // What cannot be removed now is swept later.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn sweep(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let abandoned = match File::open(entry.path().join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            // A directory that somebody began to remove, or the lock file of `all` itself.
            Err(_) => entry.path().is_dir(),
        };
        if abandoned {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
