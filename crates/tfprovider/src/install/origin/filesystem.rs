//! A directory with the layout of Terraform's filesystem mirror: packed,
//! `HOST/NAMESPACE/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip`, as `terraform providers mirror DIR` creates it,
//! or unpacked, `HOST/NAMESPACE/TYPE/VERSION/OS_ARCH/`, like a plugin cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use semver::Version;

use super::{LocatedPackage, PackageLocation};
use crate::install::address::Source;
use crate::install::{InstallError, Platform};

/// A filesystem mirror for one provider.
#[derive(Debug)]
pub struct FilesystemMirror<'a> {
    pub root: &'a Path,
    pub source: &'a Source,
    pub platform: &'a Platform,
}

impl FilesystemMirror<'_> {
    fn directory(&self) -> PathBuf {
        self.root.join(&self.source.host).join(&self.source.namespace).join(&self.source.name)
    }

    /// Lists the versions for the platform. The list is empty if the mirror does not have the provider.
    pub fn versions(&self) -> Result<Vec<Version>, InstallError> {
        let folder = self.directory();
        if !self.root.is_dir() {
            let message = format!("{} is not a directory", self.root.display());
            return Err(InstallError::new(message).hint("a mirror has the layout HOST/NAMESPACE/TYPE/"));
        }
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(InstallError::file(&folder, error)),
        };
        let mut versions = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| InstallError::file(&folder, error))?;
            // Files with other names are ignored.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let version = self
                .packed(&name)
                .or_else(|| Version::parse(&name).ok().filter(|version| self.unpacked(version).is_dir()));
            versions.extend(version);
        }
        versions.sort();
        versions.dedup();
        Ok(versions)
    }

    /// The version of a zip file, if it is a package of the provider for the platform.
    fn packed(&self, file: &str) -> Option<Version> {
        let rest = file.strip_prefix("terraform-provider-")?.strip_prefix(&self.source.name)?.strip_prefix('_')?;
        let version = rest.strip_suffix(".zip")?.strip_suffix(&self.platform.to_string())?.strip_suffix('_')?;
        Version::parse(version).ok()
    }

    fn unpacked(&self, version: &Version) -> PathBuf {
        self.directory().join(version.to_string()).join(self.platform.to_string())
    }

    /// Locates the package of a version. Unpacked packages take precedence.
    pub fn locate(&self, version: &Version) -> Result<LocatedPackage, InstallError> {
        let platform = self.platform;
        let unpacked = self.unpacked(version);
        let place = if unpacked.is_dir() {
            PackageLocation::Directory(unpacked)
        } else {
            let name = format!("terraform-provider-{}_{version}_{platform}.zip", self.source.name);
            let packed = self.directory().join(name);
            if !packed.is_file() {
                let message = format!("{} has no {} {version} for {platform}", self.root.display(), self.source);
                return Err(InstallError::new(message));
            }
            PackageLocation::Zip(packed)
        };
        Ok(LocatedPackage {
            version: version.clone(),
            location: place,
            expected: Vec::new(),
            known: Vec::new(),
            warnings: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_are_read_and_other_files_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("example.com/acme/random");
        for path in ["1.0.0/linux_amd64", "1.1.0/linux_arm64", "2.0.0-beta1/linux_amd64", "old/linux_amd64"] {
            fs::create_dir_all(folder.join(path)).unwrap();
        }
        for name in [
            "random_1.0.0_linux_amd64",
            "random_1.2.0_linux_amd64",
            "random_1.3.0_darwin_arm64",
            "randomer_1.4.0_linux_amd64",
        ] {
            fs::write(folder.join(format!("terraform-provider-{name}.zip")), "").unwrap();
        }
        let source = Source::parse("example.com/acme/random").unwrap();
        let platform: Platform = "linux_amd64".parse().unwrap();
        let mirror = FilesystemMirror { root: root.path(), source: &source, platform: &platform };
        let versions: Vec<String> = mirror.versions().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(versions, ["1.0.0", "1.2.0", "2.0.0-beta1"]);
        let place = |version: &str| mirror.locate(&Version::parse(version).unwrap()).map(|found| found.location);
        assert!(matches!(place("1.0.0"), Ok(PackageLocation::Directory(_))));
        assert!(matches!(place("1.2.0"), Ok(PackageLocation::Zip(_))));
        assert!(place("1.3.0").unwrap_err().message.ends_with("has no example.com/acme/random 1.3.0 for linux_amd64"));
        let other = Source::parse("example.com/acme/other").unwrap();
        assert!(FilesystemMirror { source: &other, ..mirror }.versions().unwrap().is_empty());
    }
}
