//! Packages that were unpacked before, laid out as Terraform's plugin cache: `HOST/NAMESPACE/TYPE/VERSION/OS_ARCH/`.
//!
//! A package appears under its name only when it is whole: it is unpacked beside and renamed. Beside it stands a receipt
//! that says what it hashed to when it was checked; a folder that does not match its receipt counts as absent, and so
//! does one without unless a lock or a pin vouches for it. One process at a time makes a package.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use semver::Version;
use serde::{Deserialize, Serialize};

use super::address::Source;
use super::{Hash, InstallError, Platform};

/// How long another process may take to make the same package: as long as a download may.
const TURN: Duration = Duration::from_mins(30);

/// How often it is looked whether it is our turn.
const LOOK: Duration = Duration::from_millis(50);

/// The cache.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

/// The place of one package.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    versions: PathBuf,
    platform: String,
}

/// A package that is there.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    /// Its folder.
    pub folder: PathBuf,
    /// What it hashes to: the files as they are now; with a receipt that matches them also the zip.
    pub hashes: Vec<Hash>,
    /// A receipt says that these files were checked.
    pub checked: bool,
}

/// What a package hashed to when it was made.
#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    files: Hash,
    zip: Hash,
}

/// The right to make a package; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _file: File,
}

impl Cache {
    /// A cache in this folder, which is made when something is kept.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where a package belongs.
    pub fn slot(&self, source: &Source, version: &Version, platform: &Platform) -> Slot {
        let host = source.host.as_str();
        let versions = self.root.join(host).join(&source.namespace).join(&source.name).join(version.to_string());
        Slot { versions, platform: platform.to_string() }
    }
}

impl Slot {
    fn folder(&self) -> PathBuf {
        self.versions.join(&self.platform)
    }

    fn beside(&self, what: &str) -> PathBuf {
        self.versions.join(format!(".{}.{what}", self.platform))
    }

    /// The package, when it is there.
    pub fn read(&self) -> Result<Option<Cached>, InstallError> {
        let folder = self.folder();
        if !folder.is_dir() {
            return Ok(None);
        }
        let files = Hash::of_files(&folder).map_err(|error| InstallError::file(&folder, error))?;
        let receipt = fs::read(self.beside("receipt")).ok();
        let receipt = receipt.and_then(|text| serde_json::from_slice::<Receipt>(&text).ok());
        let receipt = receipt.filter(|receipt| receipt.files == files);
        let checked = receipt.is_some();
        let hashes = [Some(files), receipt.map(|receipt| receipt.zip)].into_iter().flatten().collect();
        Ok(Some(Cached { folder, hashes, checked }))
    }

    /// Waits until no other process makes this package.
    pub async fn turn(&self) -> Result<Turn, InstallError> {
        fs::create_dir_all(&self.versions).map_err(|error| {
            InstallError::file(&self.versions, error).hint("PURLIN_PLUGIN_CACHE names a folder that can be written")
        })?;
        let path = self.beside("lock");
        let failed = |error: io::Error| InstallError::file(&path, error);
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Turn { _file: file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < TURN => tokio::time::sleep(LOOK).await,
                Err(TryLockError::WouldBlock) => {
                    return Err(InstallError::transient(format!("another process holds {}", path.display())));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// A path in the cache for what is being made, which nobody else uses.
    pub fn draft(&self, what: &str) -> Draft {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Draft(self.beside(&format!("{}-{count}.{what}", std::process::id())))
    }

    /// Puts a whole package in its place. A process that still runs the one that was there goes on with it.
    pub fn keep(&self, draft: &Draft, files: &Hash, zip: &Hash, _: &Turn) -> Result<PathBuf, InstallError> {
        let folder = self.folder();
        let failed = |error: io::Error| InstallError::file(&folder, error);
        if fs::symlink_metadata(&folder).is_ok() {
            let old = self.draft("old");
            fs::rename(&folder, old.path()).map_err(failed)?;
        }
        fs::rename(draft.path(), &folder).map_err(failed)?;
        File::open(&self.versions).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let receipt = Receipt { files: files.clone(), zip: zip.clone() };
        let text = serde_json::to_vec(&receipt).map_err(|error| failed(error.into()))?;
        let beside = self.draft("receipt");
        fs::write(beside.path(), text).map_err(failed)?;
        fs::rename(beside.path(), self.beside("receipt")).map_err(failed)?;
        Ok(folder)
    }
}

/// Something that is being made; what is left of it is removed in the end.
#[derive(Debug)]
pub(super) struct Draft(PathBuf);

impl Draft {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Whatever cannot be removed is no package, and nobody looks at it.
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
        let turn = slot.turn().await.unwrap();
        let draft = slot.draft("new");
        fs::create_dir(draft.path()).unwrap();
        fs::write(draft.path().join("terraform-provider-random"), content).unwrap();
        let files = Hash::of_files(draft.path()).unwrap();
        slot.keep(&draft, &files, &Hash::of_zip([1; 32]), &turn).unwrap()
    }

    #[tokio::test]
    async fn a_package_is_found_where_terraform_looks_for_it() {
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
    async fn what_was_changed_since_is_not_taken_for_checked() {
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
        assert_eq!(names, [".linux_amd64.lock", ".linux_amd64.receipt", "linux_amd64"], "no draft is left");
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_makes_a_package() {
        let root = tempfile::tempdir().unwrap();
        let slot = slot(root.path());
        let turn = slot.turn().await.unwrap();
        let mut other = Box::pin(slot.turn());
        assert!(futures::poll!(&mut other).is_pending());
        drop(turn);
        other.await.unwrap();
    }
}
