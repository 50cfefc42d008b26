//! Installs the program of a `Provider`: selects a version, downloads, verifies and unpacks the package.
//!
//! A package must match the checksums of its origin, of the lock of an earlier installation, and of the `Provider`. A
//! cached package that matches the lock needs no network. `plugin` starts the program and checks that it is a provider.

mod address;
mod cache;
mod error;
mod hash;
mod job;
mod lock;
mod origin;
mod program;
mod signature;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use fetch::Http;
use semver::Version;
use serde::Serialize;

use cache::Cache;
use job::Job;
use process::lock;

pub use address::Platform;
pub use error::InstallError;
pub use fetch::Credentials;
pub use hash::Hash;
pub use lock::{LOCK_FILE, LockFile, LockedProvider, TERRAFORM_LOCK_FILE};

/// A provider to install, with the acceptable versions and packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The name by which earlier installations are found without a lock file.
    pub name: Arc<str>,
    /// The address, `HOST/NAMESPACE/TYPE`.
    pub source: Arc<str>,
    /// The version constraint; empty for any version.
    pub version: Arc<str>,
    pub package: Package,
    /// Accepted checksums of the package, `zh:...` or `h1:...`; if empty, those that the origin provides.
    pub checksums: Vec<Arc<str>>,
}

/// Where the package comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Package {
    /// The registry in the address.
    #[default]
    Registry,
    /// A local executable or directory.
    Path(Arc<str>),
    /// A directory with the layout of Terraform's filesystem mirror.
    FilesystemMirror(Arc<str>),
    /// The URL of a server with Terraform's network mirror protocol.
    NetworkMirror(Arc<str>),
    /// A template for the name of an OCI repository with the layout of OpenTofu's OCI mirrors.
    OciMirror(Arc<str>),
}

/// The options of an [`Installer`].
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The directory of the cache.
    pub cache: PathBuf,
    /// Filesystem mirrors that take precedence over the package location of a `Provider`, in order.
    pub plugin_dirs: Vec<PathBuf>,
    pub credentials: Credentials,
    /// CA certificates (PEM) in addition to those of the system.
    pub roots: Vec<Vec<u8>>,
    pub platform: Platform,
    /// The file that records versions and checksums; `None` if the caller records them.
    pub lock_file: Option<PathBuf>,
    /// A directory of unpacked packages that another program keeps, such as `.terraform/providers`. A package in it is used if
    /// it is the locked one.
    pub installed: Option<PathBuf>,
}

impl InstallOptions {
    /// Reads `PURLIN_PLUGIN_CACHE`, `PURLIN_PLUGIN_DIR` and `TF_TOKEN_*`.
    pub fn from_environment() -> Self {
        let dirs = std::env::var_os("PURLIN_PLUGIN_DIR").unwrap_or_default();
        Self {
            cache: folder("PURLIN_PLUGIN_CACHE").unwrap_or_else(user_cache),
            plugin_dirs: std::env::split_paths(&dirs).filter(|dir| !dir.as_os_str().is_empty()).collect(),
            credentials: Credentials::from_environment(),
            roots: Vec::new(),
            platform: Platform::current(),
            lock_file: None,
            installed: None,
        }
    }
}

/// The folder that a variable names.
fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn user_cache() -> PathBuf {
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("purlin").join("providers")
}

#[derive(Debug)]
pub struct Installer {
    cache: Cache,
    plugin_dirs: Vec<PathBuf>,
    installed: Option<PathBuf>,
    credentials: Credentials,
    platform: Platform,
    http: Http,
    lock_file: Option<PathBuf>,
    /// Earlier installations by name and address of the provider, used without a lock file.
    locked: Mutex<BTreeMap<ProviderKey, LockedProvider>>,
    /// Serializes writes of the lock file.
    lock_file_guard: Mutex<()>,
    /// Verified installations, valid as long as the program file is unchanged.
    results: Mutex<BTreeMap<InstallKey, (InstalledProvider, Option<FileStamp>)>>,
}

/// The name and the address of a provider.
type ProviderKey = (Arc<str>, Arc<str>);

/// The arguments of [`Installer::install`].
type InstallKey = (Requirement, Option<LockedProvider>);

/// The modification time and size of a program file, to detect changes.
type FileStamp = (SystemTime, u64);

/// An installed and verified provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledProvider {
    /// The provider address.
    pub source: String,
    /// `None` for a program that is configured by its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    #[serde(serialize_with = "platform_text")]
    pub platform: Platform,
    /// The origin of the package, for display.
    pub origin: String,
    pub program: PathBuf,
    /// The checksums of the package.
    pub hashes: BTreeSet<Hash>,
    /// The checksums of all packages of this version, including other platforms, as reported by the origin.
    #[serde(skip)]
    pub known: BTreeSet<Hash>,
    /// Messages for the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn platform_text<S: serde::Serializer>(platform: &Platform, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(platform)
}

impl InstalledProvider {
    /// The lock for later installations; `None` for a program that is configured by its path.
    pub fn locked(&self, constraint: &str) -> Option<LockedProvider> {
        let hashes = self.hashes.iter().chain(&self.known).cloned().collect();
        Some(LockedProvider { version: self.version.clone()?, constraint: constraint.to_owned(), hashes })
    }
}

impl Installer {
    pub fn new(options: InstallOptions) -> Self {
        Self {
            cache: Cache::new(options.cache),
            plugin_dirs: options.plugin_dirs,
            installed: options.installed,
            credentials: options.credentials,
            platform: options.platform,
            http: Http::new(options.roots),
            lock_file: options.lock_file,
            locked: Mutex::default(),
            lock_file_guard: Mutex::default(),
            results: Mutex::default(),
        }
    }

    /// Sets the result of an earlier installation, for use without a lock file. `None` if there was none.
    pub fn set_locked(&self, provider: &Requirement, locked: Option<LockedProvider>) {
        let key = (Arc::clone(&provider.name), Arc::clone(&provider.source));
        match locked {
            Some(locked) => drop(lock(&self.locked).insert(key, locked)),
            None => drop(lock(&self.locked).remove(&key)),
        }
    }

    /// Installs a provider according to the lock file, and adds new checksums to it.
    ///
    /// # Errors
    /// Those of [`Self::install`], and failures to read or write the lock file.
    pub async fn install_and_lock(&self, provider: &Requirement) -> Result<InstalledProvider, InstallError> {
        let Some(path) = &self.lock_file else {
            let key = (Arc::clone(&provider.name), Arc::clone(&provider.source));
            let previous = lock(&self.locked).get(&key).cloned();
            let installed = self.install(provider, previous.as_ref()).await?;
            if let Some(mut locked) = installed.locked(&provider.version) {
                // All its processes use one version, even if a newer one is published.
                let same = previous.filter(|held| held.version == locked.version);
                locked.hashes.extend(same.into_iter().flat_map(|held| held.hashes));
                lock(&self.locked).insert(key, locked);
            }
            return Ok(installed);
        };
        let locks = LockFile::read(path)?;
        let installed = self.install(provider, locks.get(&provider.source)).await?;
        if let Some(locked) = installed.locked(&provider.version) {
            let _guard = lock(&self.lock_file_guard);
            // Another process may have changed the file.
            let mut locks = LockFile::read(path)?;
            if locks.merge(&provider.source, locked) {
                locks.write()?;
            }
        }
        Ok(installed)
    }

    /// Installs a provider. `locked` is the result of an earlier installation: its version is used as long as it
    /// satisfies the constraint, and the package must match one of its checksums.
    ///
    /// # Errors
    /// If no package is available, the package does not match its checksums, or the origin cannot be reached.
    pub async fn install(
        &self,
        provider: &Requirement,
        locked: Option<&LockedProvider>,
    ) -> Result<InstalledProvider, InstallError> {
        let key = (provider.clone(), locked.cloned());
        if let Some(done) = self.cached_result(&key) {
            return Ok(done);
        }
        let installed = Job::new(self, provider, locked, self.platform.clone())?.run().await?;
        let stamp = stamp(&installed.program);
        lock(&self.results).insert(key, (installed.clone(), stamp));
        Ok(installed)
    }

    fn cached_result(&self, key: &InstallKey) -> Option<InstalledProvider> {
        let (installed, before) = lock(&self.results).get(key).cloned()?;
        (before.is_some() && stamp(&installed.program) == before).then_some(installed)
    }

    /// Returns a lock with the checksums of a provider for several platforms.
    pub async fn lock(
        &self,
        provider: &Requirement,
        locked: Option<&LockedProvider>,
        platforms: &[Platform],
    ) -> Result<Option<LockedProvider>, InstallError> {
        let mut merged: Option<LockedProvider> = None;
        for platform in platforms {
            let against = merged.as_ref().or(locked);
            // A lock without checksums for this platform only determines the version.
            let version = against.map(|locked| LockedProvider { hashes: BTreeSet::new(), ..locked.clone() });
            let installed = Job::new(self, provider, version.as_ref(), platform.clone())?.run().await?;
            let Some(mut now) = installed.locked(&provider.version) else { return Ok(None) };
            now.hashes.extend(merged.into_iter().flat_map(|locked| locked.hashes));
            merged = Some(now);
        }
        Ok(merged)
    }
}

fn stamp(program: &Path) -> Option<FileStamp> {
    let metadata = fs::metadata(program).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
