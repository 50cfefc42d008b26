//! From what a `Provider` says to the program to start: chosen by its version constraint, fetched from where it says,
//! checked, and unpacked.
//!
//! A package is used only when everything that vouches for it agrees: what its origin says of it, the lock of an earlier
//! installation, and the checksums of the `Provider`. What is there already and fits the lock needs no network.
//! Starting the program is for `plugin`, and so is whether it is a provider at all.

mod address;
mod archive;
mod cache;
mod credentials;
mod error;
mod hash;
mod http;
mod job;
mod lock;
mod origin;
mod signature;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use semver::Version;
use serde::Serialize;

use crate::model::Provider;
use crate::process::lock;
use cache::Cache;
use http::Http;
use job::Job;

pub use address::Platform;
pub use credentials::Credentials;
pub use error::InstallError;
pub use hash::Hash;
pub use lock::{LOCK_FILE, LockFile, Locked};

/// Where providers are installed, and from where.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The folder of the cache.
    pub cache: PathBuf,
    /// Filesystem mirrors that come before whatever a `Provider` says, in order.
    pub plugin_dirs: Vec<PathBuf>,
    /// Who we are to registries.
    pub credentials: Credentials,
    /// Certificates (PEM) to trust besides those of the system.
    pub roots: Vec<Vec<u8>>,
    /// For which machine.
    pub platform: Platform,
    /// The file that keeps versions and checksums; `None`: whoever calls keeps them.
    pub lock_file: Option<PathBuf>,
}

impl InstallOptions {
    /// As the environment says: `PURLIN_PLUGIN_CACHE`, `PURLIN_PLUGIN_DIR`, `TF_TOKEN_*`.
    pub fn from_environment() -> Self {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user = || {
            let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
            cache.unwrap_or_else(std::env::temp_dir).join("purlin").join("providers")
        };
        let dirs = std::env::var_os("PURLIN_PLUGIN_DIR").unwrap_or_default();
        Self {
            cache: folder("PURLIN_PLUGIN_CACHE").unwrap_or_else(user),
            plugin_dirs: std::env::split_paths(&dirs).filter(|dir| !dir.as_os_str().is_empty()).collect(),
            credentials: Credentials::from_environment(),
            roots: Vec::new(),
            platform: Platform::here(),
            lock_file: None,
        }
    }
}

/// Installs providers.
#[derive(Debug)]
pub struct Installer {
    cache: Cache,
    plugin_dirs: Vec<PathBuf>,
    credentials: Credentials,
    platform: Platform,
    http: Http,
    lock_file: Option<PathBuf>,
    /// What was installed before, by name and address of the provider, when there is no lock file.
    held: Mutex<BTreeMap<Named, Locked>>,
    /// One writes it at a time.
    noting: Mutex<()>,
    /// What was installed and checked already, while its program stays as it is.
    done: Mutex<BTreeMap<Asked, (Installed, Option<Stamp>)>>,
}

/// A provider by its name and its address.
type Named = (Arc<str>, Arc<str>);

/// What was asked for.
type Asked = (Provider, Option<Locked>);

/// Tells whether a file is still the one that was looked at.
type Stamp = (SystemTime, u64);

/// A provider that is there and was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Installed {
    /// The address of the provider.
    pub source: String,
    /// Its version; a program that was named by its path has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// For which machine.
    #[serde(serialize_with = "platform_text")]
    pub platform: Platform,
    /// Where the package came from, for people.
    pub origin: String,
    /// The program.
    pub program: PathBuf,
    /// What the package hashes to.
    pub hashes: BTreeSet<Hash>,
    /// What its origin says of packages of this version for other machines.
    #[serde(skip)]
    pub known: BTreeSet<Hash>,
    /// What the user should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn platform_text<S: serde::Serializer>(platform: &Platform, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(platform)
}

impl Installed {
    /// What a later installation has to keep to; nothing for a program that was named by its path.
    pub fn locked(&self, provider: &Provider) -> Option<Locked> {
        let hashes = self.hashes.iter().chain(&self.known).cloned().collect();
        Some(Locked { version: self.version.clone()?, constraint: provider.version.to_string(), hashes })
    }
}

impl Installer {
    /// Nothing is installed yet.
    pub fn new(options: InstallOptions) -> Self {
        Self {
            cache: Cache::new(options.cache),
            plugin_dirs: options.plugin_dirs,
            credentials: options.credentials,
            platform: options.platform,
            http: Http::new(options.roots),
            lock_file: options.lock_file,
            held: Mutex::default(),
            noting: Mutex::default(),
            done: Mutex::default(),
        }
    }

    /// Without a lock file: this is what an earlier installation of a provider came to. `None`: there was none.
    pub fn hold(&self, provider: &Provider, locked: Option<Locked>) {
        let key = (Arc::clone(&provider.name), Arc::clone(&provider.source));
        match locked {
            Some(locked) => drop(lock(&self.held).insert(key, locked)),
            None => drop(lock(&self.held).remove(&key)),
        }
    }

    /// The program of a provider, by the lock file; what is new is noted there.
    ///
    /// # Errors
    /// As [`Self::install`], and when the lock file cannot be read or written.
    pub async fn obtain(&self, provider: &Provider) -> Result<Installed, InstallError> {
        let Some(path) = &self.lock_file else {
            let key = (Arc::clone(&provider.name), Arc::clone(&provider.source));
            let held = lock(&self.held).get(&key).cloned();
            let installed = self.install(provider, held.as_ref()).await?;
            if let Some(mut locked) = installed.locked(provider) {
                // Its processes are all of one version, whatever is published meanwhile.
                let same = held.filter(|held| held.version == locked.version);
                locked.hashes.extend(same.into_iter().flat_map(|held| held.hashes));
                lock(&self.held).insert(key, locked);
            }
            return Ok(installed);
        };
        let locks = LockFile::read(path)?;
        let installed = self.install(provider, locks.get(provider)).await?;
        if let Some(locked) = installed.locked(provider) {
            let _noting = lock(&self.noting);
            // Another process may have written it in the meantime.
            let mut locks = LockFile::read(path)?;
            if locks.merge(provider, locked) {
                locks.write()?;
            }
        }
        Ok(installed)
    }

    /// The program of a provider. `locked` is what an earlier installation came to: its version stays as long as it
    /// fits, and its package must be one of those that are known.
    ///
    /// # Errors
    /// When there is no such package, when it is not what it should be, and when it cannot be reached.
    pub async fn install(&self, provider: &Provider, locked: Option<&Locked>) -> Result<Installed, InstallError> {
        let key = (provider.clone(), locked.cloned());
        if let Some(done) = self.done(&key) {
            return Ok(done);
        }
        let installed = Job::new(self, provider, locked, self.platform.clone())?.run().await?;
        let stamp = stamp(&installed.program);
        lock(&self.done).insert(key, (installed.clone(), stamp));
        Ok(installed)
    }

    fn done(&self, key: &Asked) -> Option<Installed> {
        let (installed, before) = lock(&self.done).get(key).cloned()?;
        (before.is_some() && stamp(&installed.program) == before).then_some(installed)
    }

    /// What packages of a provider hash to on several platforms, for a lock that serves them all.
    pub async fn lock(
        &self,
        provider: &Provider,
        locked: Option<&Locked>,
        platforms: &[Platform],
    ) -> Result<Option<Locked>, InstallError> {
        let mut merged: Option<Locked> = None;
        for platform in platforms {
            let against = merged.as_ref().or(locked);
            // A lock that knows no package of this platform yet says which version, and no more.
            let version = against.map(|locked| Locked { hashes: BTreeSet::new(), ..locked.clone() });
            let installed = Job::new(self, provider, version.as_ref(), platform.clone())?.run().await?;
            let Some(mut now) = installed.locked(provider) else { return Ok(None) };
            now.hashes.extend(merged.into_iter().flat_map(|locked| locked.hashes));
            merged = Some(now);
        }
        Ok(merged)
    }
}

fn stamp(program: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(program).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
