//! The lock file, which records the version of each provider and the checksums of its packages: `.purlin.lock`, or
//! `.terraform.lock.hcl` beside a configuration of Terraform, in the form that upstream reads and writes.
//!
//! It is written in a stable order, so it can be committed with the manifests. A version and the checksums of all its
//! platforms stay as long as the version satisfies the constraint.

mod terraform;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind as IoError, Write as _};
use std::path::{Path, PathBuf};

use semver::Version;
use serde::{Deserialize, Serialize};

use super::{Hash, InstallError};

pub const LOCK_FILE: &str = ".purlin.lock";

/// The lock file of a configuration of Terraform.
pub const TERRAFORM_LOCK_FILE: &str = ".terraform.lock.hcl";

const FORMAT_VERSION: &str = "1";

/// A locked provider, which later installations must match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockedProvider {
    pub version: Version,
    /// The version constraint when the version was selected; informational.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub constraint: String,
    /// The checksums of its packages for all known platforms.
    pub hashes: BTreeSet<Hash>,
}

#[derive(Clone, Debug)]
pub struct LockFile {
    path: PathBuf,
    providers: BTreeMap<String, LockedProvider>,
    /// What else a lock file of Terraform has.
    others: terraform::Others,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Content {
    format_version: String,
    providers: BTreeMap<String, LockedProvider>,
}

impl LockFile {
    /// Reads a lock file. A missing file is an empty lock. The name of the file says which form it has.
    ///
    /// # Errors
    /// If the file cannot be read. It is not replaced in this case, because its content would be lost.
    pub fn read(path: &Path) -> Result<Self, InstallError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == IoError::NotFound => None,
            Err(error) => return Err(InstallError::file(path, error)),
        };
        let read = match text {
            None => Ok(Default::default()),
            Some(text) if is_of_terraform(path) => terraform::read(text),
            Some(text) => read_json(&text).map(|providers| (providers, terraform::Others::default())),
        };
        let (providers, others) = read.map_err(|why| {
            InstallError::new(format!("{}: {why}", path.display()))
                .hint("restore the file from version control, or delete it to select versions again")
        })?;
        Ok(Self { path: path.to_owned(), providers, others })
    }

    /// The lock of a provider.
    pub fn get(&self, source: &str) -> Option<&LockedProvider> {
        self.providers.get(source).or_else(|| self.others.implied.get(source))
    }

    /// The locked providers by address.
    pub fn providers(&self) -> &BTreeMap<String, LockedProvider> {
        &self.providers
    }

    /// Adds the checksums of a version. Returns whether the lock has changed.
    pub fn merge(&mut self, source: &str, mut locked: LockedProvider) -> bool {
        if is_of_terraform(&self.path) {
            locked.constraint = terraform::canonical(&locked.constraint);
        }
        let before = self.providers.get(source);
        if let Some(before) = before.filter(|before| before.version == locked.version) {
            locked.hashes.extend(before.hashes.iter().cloned());
        }
        if before == Some(&locked) {
            return false;
        }
        self.providers.insert(source.to_owned(), locked);
        true
    }

    /// Removes a provider, so its version is selected again. Returns whether it was locked.
    pub fn remove(&mut self, source: &str) -> bool {
        self.others.implied.remove(source);
        self.providers.remove(source).is_some()
    }

    /// Replaces the file atomically.
    pub fn write(&self) -> Result<(), InstallError> {
        let text = if is_of_terraform(&self.path) {
            terraform::write(&self.providers, &self.others)
        } else {
            let content = Content { format_version: FORMAT_VERSION.to_owned(), providers: self.providers.clone() };
            serde_json::to_string_pretty(&content).unwrap_or_default() + "\n"
        };
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let temp = self.path.with_file_name(format!("{name}.{}", std::process::id()));
        let written = std::fs::File::create(&temp).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| std::fs::rename(&temp, &self.path)).map_err(|error| {
            // Only the first error is reported.
            let _ = std::fs::remove_file(&temp);
            InstallError::file(&self.path, error)
        })
    }
}

fn is_of_terraform(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "hcl")
}

fn read_json(text: &str) -> Result<BTreeMap<String, LockedProvider>, String> {
    let content: Content = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if content.format_version != FORMAT_VERSION {
        let version = content.format_version;
        return Err(format!("its format version is `{version}`, which requires a newer version of Purlin"));
    }
    Ok(content.providers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "example.com/acme/random";

    fn locked(version: &str, hashes: &[u8]) -> LockedProvider {
        let hashes = hashes.iter().map(|byte| Hash::of_zip([*byte; 32])).collect();
        LockedProvider { version: Version::parse(version).unwrap(), constraint: "~> 1.0".into(), hashes }
    }

    #[test]
    fn hashes_accumulate_until_the_version_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        let mut lock = LockFile::read(&path).unwrap();
        assert!(lock.get(SOURCE).is_none());
        assert!(lock.merge(SOURCE, locked("1.0.0", &[1])));
        assert!(lock.merge(SOURCE, locked("1.0.0", &[2])));
        assert!(!lock.merge(SOURCE, locked("1.0.0", &[2])), "nothing is new");
        lock.write().unwrap();
        let mut read = LockFile::read(&path).unwrap();
        assert_eq!(read.get(SOURCE), Some(&locked("1.0.0", &[1, 2])));
        assert!(read.merge(SOURCE, locked("1.1.0", &[3])));
        assert_eq!(read.get(SOURCE), Some(&locked("1.1.0", &[3])));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file remains");
    }

    #[test]
    fn an_invalid_lock_file_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        for (content, expected) in [
            ("<<<<<<< HEAD", "expected value"),
            (r#"{"formatVersion":"9","providers":{}}"#, "its format version is `9`"),
            (
                r#"{"formatVersion":"1","providers":{"a/b/c":{"version":"1.0.0","hashes":["zh:1"]}}}"#,
                "is not a valid checksum",
            ),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = LockFile::read(&path).unwrap_err();
            assert!(error.message.contains(expected), "{error}");
            assert!(error.hint.is_some());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }
}
