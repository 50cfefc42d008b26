//! `.purlin.lock`: which version of each provider is in use, and what its packages must hash to.
//!
//! It is JSON, in a stable order, made to be kept with the manifests. Only what is asked for over there is changed: a
//! version stays as long as it fits, and hashes of other platforms stay with it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind as IoError, Write as _};
use std::path::{Path, PathBuf};

use semver::Version;
use serde::{Deserialize, Serialize};

use super::{Hash, InstallError};
use crate::model::Provider;

/// The name of the file.
pub const LOCK_FILE: &str = ".purlin.lock";

/// The form of the file.
const FORMAT_VERSION: &str = "1";

/// A provider in a lock: what a later installation must keep to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Locked {
    /// The version.
    pub version: Version,
    /// Which versions would have done when it was chosen; for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub constraint: String,
    /// What its packages hash to, of all platforms that are known.
    pub hashes: BTreeSet<Hash>,
}

/// The lock of a folder.
#[derive(Clone, Debug)]
pub struct LockFile {
    path: PathBuf,
    providers: BTreeMap<String, Locked>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Content {
    format_version: String,
    providers: BTreeMap<String, Locked>,
}

impl LockFile {
    /// Reads a lock; one that is not there is empty.
    ///
    /// # Errors
    /// When it cannot be read. It is never replaced then: what it held would be lost.
    pub fn read(path: &Path) -> Result<Self, InstallError> {
        let wrong = |why: String| {
            InstallError::terminal(format!("{}: {why}", path.display()))
                .hint("take the file from version control, or delete it to choose versions anew")
        };
        let providers = match std::fs::read_to_string(path) {
            Ok(text) => {
                let content: Content = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
                if content.format_version != FORMAT_VERSION {
                    return Err(wrong(format!(
                        "its format is `{}`, which only newer versions read",
                        content.format_version
                    )));
                }
                content.providers
            }
            Err(error) if error.kind() == IoError::NotFound => BTreeMap::new(),
            Err(error) => return Err(InstallError::file(path, error)),
        };
        Ok(Self { path: path.to_owned(), providers })
    }

    /// What is locked of a provider.
    pub fn get(&self, provider: &Provider) -> Option<&Locked> {
        self.providers.get(&*provider.source)
    }

    /// All of it, by address.
    pub fn providers(&self) -> &BTreeMap<String, Locked> {
        &self.providers
    }

    /// Takes note of what a version hashes to. Gives whether the file needs to be written.
    pub fn merge(&mut self, provider: &Provider, mut locked: Locked) -> bool {
        let before = self.providers.get(&*provider.source);
        if let Some(before) = before.filter(|before| before.version == locked.version) {
            locked.hashes.extend(before.hashes.iter().cloned());
        }
        if before == Some(&locked) {
            return false;
        }
        self.providers.insert(provider.source.to_string(), locked);
        true
    }

    /// Forgets a provider, so that its version is chosen anew.
    pub fn forget(&mut self, provider: &Provider) -> bool {
        self.providers.remove(&*provider.source).is_some()
    }

    /// Writes the file as a whole or not at all.
    pub fn write(&self) -> Result<(), InstallError> {
        let content = Content { format_version: FORMAT_VERSION.to_owned(), providers: self.providers.clone() };
        let mut text = serde_json::to_string_pretty(&content).unwrap_or_default();
        text.push('\n');
        let failed = |error| InstallError::file(&self.path, error);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let draft = self.path.with_file_name(format!("{name}.{}", std::process::id()));
        let written = std::fs::File::create(&draft).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| std::fs::rename(&draft, &self.path)).map_err(|error| {
            // The error that counts is the first one.
            let _ = std::fs::remove_file(&draft);
            failed(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider() -> Provider {
        serde_json::from_value(serde_json::json!({"name": "random", "source": "example.com/acme/random"})).unwrap()
    }

    fn locked(version: &str, hashes: &[u8]) -> Locked {
        let hashes = hashes.iter().map(|byte| Hash::of_zip([*byte; 32])).collect();
        Locked { version: Version::parse(version).unwrap(), constraint: "~> 1.0".into(), hashes }
    }

    #[test]
    fn hashes_gather_until_the_version_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        let mut lock = LockFile::read(&path).unwrap();
        assert!(lock.get(&provider()).is_none());
        assert!(lock.merge(&provider(), locked("1.0.0", &[1])));
        assert!(lock.merge(&provider(), locked("1.0.0", &[2])));
        assert!(!lock.merge(&provider(), locked("1.0.0", &[2])), "nothing is new");
        lock.write().unwrap();
        let mut read = LockFile::read(&path).unwrap();
        assert_eq!(read.get(&provider()), Some(&locked("1.0.0", &[1, 2])));
        assert!(read.merge(&provider(), locked("1.1.0", &[3])));
        assert_eq!(read.get(&provider()), Some(&locked("1.1.0", &[3])));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_lock_that_cannot_be_read_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        for (content, expected) in [
            ("<<<<<<< HEAD", "expected value"),
            (r#"{"formatVersion":"9","providers":{}}"#, "its format is `9`"),
            (r#"{"formatVersion":"1","providers":{"a/b/c":{"version":"1.0.0","hashes":["zh:1"]}}}"#, "is no checksum"),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = LockFile::read(&path).unwrap_err();
            assert!(error.message.contains(expected), "{error}");
            assert!(error.hint.is_some());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }
}
