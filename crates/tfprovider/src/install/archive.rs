//! Unpacks a package. The zip file is untrusted: it must not write outside of its directory or exceed the size limits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use super::InstallError;

/// The limits for an unpacked package.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnpackLimits {
    /// The total size of all files.
    pub bytes: u64,
    /// The number of files and directories.
    pub entries: usize,
}

impl Default for UnpackLimits {
    /// The largest providers unpack to less than 1 GiB and contain a handful of files.
    fn default() -> Self {
        Self { bytes: 4 << 30, entries: 10_000 }
    }
}

/// Unpacks a zip into an existing, empty directory and syncs the files to disk.
pub(super) fn unpack(zip: &Path, directory: &Path, limits: UnpackLimits) -> Result<(), InstallError> {
    let invalid = |why: String| {
        InstallError::new(format!("the package is not valid: {why}"))
            .at("spec.package")
            .hint("the publisher must fix the package; nothing was installed")
    };
    let unreadable = |error: ZipError| match error {
        ZipError::Io(error) => InstallError::file(zip, error),
        other => invalid(other.to_string()),
    };
    let file = File::open(zip).map_err(|error| InstallError::file(zip, error))?;
    let mut archive = ZipArchive::new(file).map_err(unreadable)?;
    if archive.len() > limits.entries {
        return Err(invalid(format!("it contains more than {} files", limits.entries)));
    }
    let mut remaining = limits.bytes;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(unreadable)?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        if entry.is_symlink() {
            return Err(invalid(format!("`{name}` is a symbolic link")));
        }
        if !stays_inside(&name) {
            return Err(invalid(format!("`{name}` would be written outside of the package directory")));
        }
        let path = directory.join(&name);
        if entry.is_dir() {
            fs::create_dir_all(&path).map_err(|error| InstallError::file(&path, error))?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| InstallError::file(parent, error))?;
        }
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let mode = if executable { 0o755 } else { 0o644 };
        let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let mut target = match opened {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(invalid(format!("it contains `{name}` twice")));
            }
            Err(error) => return Err(InstallError::file(&path, error)),
        };
        // The declared size of an entry cannot be trusted.
        let copied = io::copy(&mut (&mut entry).take(remaining + 1), &mut target);
        let copied = copied.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                invalid(format!("`{name}` cannot be unpacked: {error}"))
            }
            _ => InstallError::file(&path, error),
        })?;
        if copied > remaining {
            return Err(invalid(format!("it unpacks to more than {} MiB", limits.bytes >> 20)));
        }
        remaining -= copied;
        target.sync_all().map_err(|error| InstallError::file(&path, error))?;
    }
    Ok(())
}

/// Whether the name is a relative path without `..`. Backslashes are separators on other systems, so they are rejected.
fn stays_inside(name: &str) -> bool {
    let path = name.strip_suffix('/').unwrap_or(name);
    !name.contains(['\\', '\0', '\n']) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Finds the program in a package by Terraform's rule: the first file by name that is `terraform-provider-TYPE`, alone
/// or followed by `_` or `.`. The path may also be the program itself.
pub(super) fn program(package: &Path, name: &str) -> Result<std::path::PathBuf, InstallError> {
    let metadata = fs::metadata(package).map_err(|error| InstallError::file(package, error))?;
    let program = if metadata.is_dir() {
        let expected = format!("terraform-provider-{name}");
        let is_program = |file: &String| {
            file.strip_prefix(&expected)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_') || rest.starts_with('.'))
        };
        let entries = fs::read_dir(package).map_err(|error| InstallError::file(package, error))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(is_program);
        let first = names.min().ok_or_else(|| {
            InstallError::new(format!("{} does not contain the program `{expected}`", package.display()))
                .at("spec.package")
        })?;
        package.join(first)
    } else {
        package.to_owned()
    };
    let metadata = fs::metadata(&program).map_err(|error| InstallError::file(&program, error))?;
    if !metadata.is_file() {
        return Err(InstallError::new(format!("{} is not a regular file", program.display())).at("spec.package"));
    }
    Ok(program)
}

pub(super) fn is_executable(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// Makes a program executable, because not every zip contains file modes.
pub(super) fn make_executable(program: &Path) -> Result<(), InstallError> {
    if is_executable(program) {
        return Ok(());
    }
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(program, mode).map_err(|error| InstallError::file(program, error))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;
    use zip::write::{SimpleFileOptions, ZipWriter};

    fn zip(directory: &Path, entries: &[(&str, &str)]) -> PathBuf {
        let path = directory.join("package.zip");
        let mut writer = ZipWriter::new(File::create(&path).unwrap());
        for (name, content) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    fn unpacked(entries: &[(&str, &str)], bounds: UnpackLimits) -> Result<Vec<PathBuf>, String> {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("into");
        fs::create_dir(&into).unwrap();
        let zip = zip(folder.path(), entries);
        unpack(&zip, &into, bounds).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        super::super::hash::Hash::of_files(&into).unwrap();
        for (name, _) in entries {
            found.push(fs::metadata(into.join(name)).map(|_| PathBuf::from(name)).unwrap());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no files outside of the directory");
        Ok(found)
    }

    #[test]
    fn files_are_only_written_inside_of_the_directory() {
        let good =
            unpacked(&[("terraform-provider-x_v1", "program"), ("docs/LICENSE", "free")], UnpackLimits::default());
        assert_eq!(good.unwrap().len(), 2);
        for name in ["../evil", "/evil", "a/../../evil", "a//b", "./a", "a\\..\\evil", ""] {
            let error = unpacked(&[(name, "x")], UnpackLimits::default()).unwrap_err();
            assert!(error.contains("outside of the package directory"), "{name}: {error}");
        }
    }

    #[test]
    fn a_symbolic_link_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("package.zip");
        let mut writer = ZipWriter::new(File::create(&path).unwrap());
        writer.add_symlink("terraform-provider-x", "/bin/sh", SimpleFileOptions::default()).unwrap();
        writer.finish().unwrap();
        let into = folder.path().join("into");
        fs::create_dir(&into).unwrap();
        let error = unpack(&path, &into, UnpackLimits::default()).unwrap_err();
        assert_eq!(error.message, "the package is not valid: `terraform-provider-x` is a symbolic link");
    }

    #[test]
    fn a_package_over_the_limits_is_rejected() {
        let zeros = "0".repeat(3 << 20);
        let error = unpacked(&[("a", &zeros)], UnpackLimits { bytes: 2 << 20, entries: 9 }).unwrap_err();
        assert_eq!(error, "the package is not valid: it unpacks to more than 2 MiB");
        let error = unpacked(&[("a", ""), ("b", "")], UnpackLimits { bytes: 1, entries: 1 }).unwrap_err();
        assert_eq!(error, "the package is not valid: it contains more than 1 files");
    }

    #[test]
    fn an_invalid_zip_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("package.zip");
        fs::write(&path, "<html>not found</html>").unwrap();
        let error = unpack(&path, folder.path(), UnpackLimits::default()).unwrap_err();
        assert!(error.message.starts_with("the package is not valid: "), "{error}");
    }

    #[test]
    fn the_program_is_the_first_match_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "LICENSE",
            "terraform-provider-randomness",
            "terraform-provider-random_v2",
            "terraform-provider-random.exe",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = program(folder.path(), "random").unwrap();
        assert_eq!(found.file_name().unwrap(), "terraform-provider-random.exe");
        assert!(!is_executable(&found));
        make_executable(&found).unwrap();
        assert!(is_executable(&found));
        let error = program(folder.path(), "other").unwrap_err();
        assert!(error.message.ends_with("does not contain the program `terraform-provider-other`"), "{error}");
    }
}
