//! The cache of unpacked packages, with the layout of Terraform's plugin cache: `HOST/NAMESPACE/TYPE/VERSION/OS_ARCH/`.
//!
//! A package is unpacked to a temporary directory and renamed, so it is always complete. A receipt next to it records
//! its verified checksums. A directory that does not match its receipt is ignored, as is one without a receipt unless
//! it matches a locked or pinned checksum. A file lock lets one process at a time write a package.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use semver::Version;
use serde::{Deserialize, Serialize};

use super::address::Source;
use super::{Hash, InstallError, Platform};

/// How long to wait for another process that writes the same package: the time limit of a download.
const LOCK_TIMEOUT: Duration = Duration::from_mins(30);

/// How often the lock is tried.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// The location of one package.
#[derive(Clone, Debug)]
pub struct Slot {
    versions: PathBuf,
    platform: String,
}

#[derive(Clone, Debug)]
pub struct CachedPackage {
    pub directory: PathBuf,
    /// The checksum of the current files, and that of the zip file if the receipt matches the files.
    pub hashes: Vec<Hash>,
    /// Whether the receipt matches the files.
    pub checked: bool,
}

/// The checksums of a package when it was stored.
#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    files: Hash,
    zip: Hash,
}

/// The exclusive lock to write a package; released on drop.
#[derive(Debug)]
pub struct PackageLock {
    _file: File,
}

impl Cache {
    /// The directory is created when the first package is stored.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub fn slot(&self, source: &Source, version: &Version, platform: &Platform) -> Slot {
        let host = source.host.as_str();
        let versions = self.root.join(host).join(&source.namespace).join(&source.name).join(version.to_string());
        Slot { versions, platform: platform.to_string() }
    }
}

impl Slot {
    fn directory(&self) -> PathBuf {
        self.versions.join(&self.platform)
    }

    fn sidecar(&self, what: &str) -> PathBuf {
        self.versions.join(format!(".{}.{what}", self.platform))
    }

    /// Reads the package, if it exists.
    pub fn read(&self) -> Result<Option<CachedPackage>, InstallError> {
        let directory = self.directory();
        if !directory.is_dir() {
            return Ok(None);
        }
        let files = Hash::of_files(&directory).map_err(|error| InstallError::file(&directory, error))?;
        let receipt = fs::read(self.sidecar("receipt")).ok();
        let receipt = receipt.and_then(|text| serde_json::from_slice::<Receipt>(&text).ok());
        let receipt = receipt.filter(|receipt| receipt.files == files);
        let checked = receipt.is_some();
        let hashes = [Some(files), receipt.map(|receipt| receipt.zip)].into_iter().flatten().collect();
        Ok(Some(CachedPackage { directory, hashes, checked }))
    }

    /// Waits until no other process writes this package.
    pub async fn lock(&self) -> Result<PackageLock, InstallError> {
        fs::create_dir_all(&self.versions).map_err(|error| {
            InstallError::file(&self.versions, error).hint("set PURLIN_PLUGIN_CACHE to a writable directory")
        })?;
        let path = self.sidecar("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| InstallError::file(&path, error))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(PackageLock { _file: file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_TIMEOUT => {
                    tokio::time::sleep(LOCK_POLL_INTERVAL).await;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(InstallError::new(format!("another process has locked {}", path.display())));
                }
                Err(TryLockError::Error(error)) => return Err(InstallError::file(&path, error)),
            }
        }
    }

    /// Returns a unique temporary path in the cache.
    pub fn temp_path(&self, what: &str) -> TempPath {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        TempPath(self.sidecar(&format!("{}-{count}.{what}", std::process::id())))
    }

    /// Moves a complete package to its final path. A process that runs the previous package is not affected.
    pub fn store(&self, temp: &TempPath, files: &Hash, zip: &Hash, _: &PackageLock) -> Result<PathBuf, InstallError> {
        let directory = self.directory();
        let receipt = Receipt { files: files.clone(), zip: zip.clone() };
        self.replace(&directory, temp, &receipt).map_err(|error| InstallError::file(&directory, error))?;
        Ok(directory)
    }

    fn replace(&self, directory: &Path, temp: &TempPath, receipt: &Receipt) -> io::Result<()> {
        if fs::symlink_metadata(directory).is_ok() {
            let old = self.temp_path("old");
            fs::rename(directory, old.path())?;
        }
        fs::rename(temp.path(), directory)?;
        File::open(&self.versions)?.sync_all()?;
        let beside = self.temp_path("receipt");
        fs::write(beside.path(), serde_json::to_vec(receipt)?)?;
        fs::rename(beside.path(), self.sidecar("receipt"))
    }
}

/// A temporary file or directory that is removed on drop.
#[derive(Debug)]
pub struct TempPath(PathBuf);

impl TempPath {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        // A file that cannot be removed is harmless: its name is not that of a package.
        let _ = match fs::symlink_metadata(&self.0) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&self.0),
            Ok(_) => fs::remove_file(&self.0),
            Err(_) => Ok(()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(root: &Path) -> Slot {
        let source = Source::parse("example.com/acme/random").unwrap();
        let platform = "linux_amd64".parse().unwrap();
        Cache::new(root.to_owned()).slot(&source, &Version::new(1, 2, 3), &platform)
    }

    async fn keep(slot: &Slot, content: &str) -> PathBuf {
        let turn = slot.lock().await.unwrap();
        let temp = slot.temp_path("new");
        fs::create_dir(temp.path()).unwrap();
        fs::write(temp.path().join("terraform-provider-random"), content).unwrap();
        let files = Hash::of_files(temp.path()).unwrap();
        slot.store(&temp, &files, &Hash::of_zip([1; 32]), &turn).unwrap()
    }

    #[tokio::test]
    async fn the_cache_has_the_layout_of_terraform() {
        let root = tempfile::tempdir().unwrap();
        let slot = slot(root.path());
        assert!(slot.read().unwrap().is_none());
        let folder = keep(&slot, "one").await;
        assert_eq!(folder, root.path().join("example.com/acme/random/1.2.3/linux_amd64"));
        let cached = slot.read().unwrap().unwrap();
        assert!(cached.checked);
        assert_eq!(cached.hashes.len(), 2);
        assert_eq!(cached.hashes[1], Hash::of_zip([1; 32]));
    }

    #[tokio::test]
    async fn changed_files_are_not_trusted() {
        let root = tempfile::tempdir().unwrap();
        let slot = slot(root.path());
        let folder = keep(&slot, "one").await;
        fs::write(folder.join("terraform-provider-random"), "evil").unwrap();
        let cached = slot.read().unwrap().unwrap();
        assert!(!cached.checked);
        assert_eq!(cached.hashes.len(), 1);
        keep(&slot, "two").await;
        assert!(slot.read().unwrap().unwrap().checked);
        let mut names: Vec<_> =
            fs::read_dir(folder.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".linux_amd64.lock", ".linux_amd64.receipt", "linux_amd64"], "no temporary file remains");
    }

    #[tokio::test(start_paused = true)]
    async fn the_lock_is_exclusive() {
        let root = tempfile::tempdir().unwrap();
        let slot = slot(root.path());
        let turn = slot.lock().await.unwrap();
        let mut other = Box::pin(slot.lock());
        assert!(futures::poll!(&mut other).is_pending());
        drop(turn);
        other.await.unwrap();
    }
}
