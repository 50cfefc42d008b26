//! Unpacks archives. They are untrusted: they must not write outside of their directory or exceed the limits.

mod tree;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use tar::EntryType;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::{FetchError, FetchErrorKind};
pub use tree::{inspect, measure};

/// What an archive may contain.
#[derive(Clone, Copy, Debug)]
pub struct UnpackRules {
    /// The total size of all files.
    pub bytes: u64,
    /// The number of files and directories.
    pub entries: usize,
    /// Whether there may be symbolic links.
    pub links: Links,
}

/// Whether there may be symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// None.
    Refused,
    /// Those that lead to something in the same directory.
    Inside,
}

/// The format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// A zip file.
    Zip,
    /// A tar file.
    Tar(Compression),
}

/// How a tar file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// xz.
    Xz,
}

impl ArchiveFormat {
    /// The endings of names, longer ones before those that they end in.
    const ENDINGS: [(&'static str, Self); 6] = [
        ("tar.gz", Self::Tar(Compression::Gzip)),
        ("tgz", Self::Tar(Compression::Gzip)),
        ("tar.xz", Self::Tar(Compression::Xz)),
        ("txz", Self::Tar(Compression::Xz)),
        ("tar", Self::Tar(Compression::None)),
        ("zip", Self::Zip),
    ];

    /// The format with this name, such as `tar.gz`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ENDINGS.iter().find(|(ending, _)| *ending == name).map(|(_, format)| *format)
    }

    /// The format of a file with this name.
    pub fn of_file(name: &str) -> Option<Self> {
        let mut formats = Self::ENDINGS.iter();
        let format = formats.find(|(ending, _)| name.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.')));
        format.map(|(_, format)| *format)
    }
}

/// Unpacks an archive into an existing, empty directory and syncs the files to disk.
///
/// # Errors
/// If the archive cannot be read, breaks a rule, or a file cannot be written. The directory is then to be removed.
pub fn unpack(archive: &Path, format: ArchiveFormat, directory: &Path, rules: UnpackRules) -> Result<(), FetchError> {
    let file = File::open(archive).map_err(|error| FetchError::file(archive, error))?;
    let mut target = Target { directory, rules, bytes: rules.bytes, entries: rules.entries, links: Vec::new() };
    match format {
        ArchiveFormat::Zip => unpack_zip(archive, file, &mut target)?,
        ArchiveFormat::Tar(compression) => {
            let file = BufReader::new(file);
            match compression {
                Compression::None => unpack_tar(archive, file, &mut target)?,
                Compression::Gzip => unpack_tar(archive, MultiGzDecoder::new(file), &mut target)?,
                Compression::Xz => unpack_tar(archive, XzReader::new(file, true), &mut target)?,
            }
        }
    }
    target.finish()
}

fn unpack_zip(path: &Path, file: File, target: &mut Target<'_>) -> Result<(), FetchError> {
    let mut archive = ZipArchive::new(file).map_err(|error| zip_error(path, error))?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| zip_error(path, error))?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        if entry.is_symlink() {
            let mut leads_to = String::new();
            let read = (&mut entry).take(MAX_LINK).read_to_string(&mut leads_to);
            read.map_err(|error| cannot_be_unpacked(&name, &error))?;
            target.link(&name, &leads_to)?;
        } else if entry.is_dir() {
            target.directory(&name)?;
        } else {
            let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            target.file(&name, executable, &mut entry)?;
        }
    }
    Ok(())
}

fn zip_error(path: &Path, error: ZipError) -> FetchError {
    match error {
        ZipError::Io(error) => FetchError::file(path, error),
        error => invalid(error.to_string()),
    }
}

fn unpack_tar(path: &Path, content: impl Read, target: &mut Target<'_>) -> Result<(), FetchError> {
    let mut archive = tar::Archive::new(content);
    for entry in archive.entries().map_err(|error| tar_error(path, error))? {
        let mut entry = entry.map_err(|error| tar_error(path, error))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        // `tar -C directory .` writes all names with `./`.
        let name = name.trim_start_matches("./").to_owned();
        if name.is_empty() || name == "." {
            continue;
        }
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
                target.file(&name, executable, &mut entry)?;
            }
            EntryType::Directory => target.directory(&name)?,
            EntryType::Symlink => {
                let leads_to = entry.link_name_bytes().unwrap_or_default();
                target.link(&name, &String::from_utf8_lossy(&leads_to))?;
            }
            // What describes the archive, and is no part of it.
            EntryType::XGlobalHeader | EntryType::XHeader => {}
            _ => return Err(invalid(format!("`{name}` is neither a file nor a directory"))),
        }
    }
    Ok(())
}

fn tar_error(path: &Path, error: io::Error) -> FetchError {
    match error.raw_os_error() {
        Some(_) => FetchError::file(path, error),
        None => invalid(error.to_string()),
    }
}

/// The longest path that Linux accepts.
const MAX_LINK: u64 = 4096;

/// The directory into which an archive is unpacked, and what is left of its limits.
struct Target<'a> {
    directory: &'a Path,
    rules: UnpackRules,
    bytes: u64,
    entries: usize,
    /// Links are created when all files are written, so that no file is written through one.
    links: Vec<(String, String)>,
}

impl Target<'_> {
    /// The path of an entry.
    fn path(&mut self, name: &str) -> Result<PathBuf, FetchError> {
        let left = self.entries.checked_sub(1);
        self.entries = left.ok_or_else(|| invalid(format!("it contains more than {} files", self.rules.entries)))?;
        if stays_inside(name) {
            return Ok(self.directory.join(name));
        }
        Err(invalid(format!("`{name}` would be written outside of the package directory")))
    }

    fn directory(&mut self, name: &str) -> Result<(), FetchError> {
        let path = self.path(name)?;
        fs::create_dir_all(&path).map_err(|error| FetchError::file(&path, error))
    }

    fn file(&mut self, name: &str, executable: bool, content: &mut impl Read) -> Result<(), FetchError> {
        let path = self.path(name)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| FetchError::file(parent, error))?;
        }
        let mode = if executable { 0o755 } else { 0o644 };
        let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(twice(name)),
            Err(error) => return Err(FetchError::file(&path, error)),
        };
        // The declared size of an entry cannot be trusted.
        let copied = io::copy(&mut content.take(self.bytes + 1), &mut file);
        let copied = copied.map_err(|error| match error.raw_os_error() {
            None => cannot_be_unpacked(name, &error),
            Some(_) => FetchError::file(&path, error),
        })?;
        let left = self.bytes.checked_sub(copied);
        self.bytes = left.ok_or_else(|| invalid(format!("it unpacks to more than {} MiB", self.rules.bytes >> 20)))?;
        file.sync_all().map_err(|error| FetchError::file(&path, error))
    }

    fn link(&mut self, name: &str, leads_to: &str) -> Result<(), FetchError> {
        if self.rules.links == Links::Refused {
            return Err(invalid(format!("`{name}` is a symbolic link")));
        }
        self.path(name)?;
        self.links.push((name.to_owned(), leads_to.to_owned()));
        Ok(())
    }

    fn finish(self) -> Result<(), FetchError> {
        for (name, leads_to) in &self.links {
            let path = &self.directory.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(|error| FetchError::file(parent, error))?;
            }
            symlink(leads_to, path).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => twice(name),
                _ => FetchError::file(path, error),
            })?;
        }
        if self.links.is_empty() { Ok(()) } else { inspect(self.directory, self.rules) }
    }
}

fn invalid(why: impl AsRef<str>) -> FetchError {
    FetchError::new(FetchErrorKind::Unsuitable, format!("the package is not valid: {}", why.as_ref()))
        .hint("the publisher must fix the package; nothing was installed")
}

fn twice(name: &str) -> FetchError {
    invalid(format!("it contains `{name}` twice"))
}

fn cannot_be_unpacked(name: &str, error: &io::Error) -> FetchError {
    invalid(format!("`{name}` cannot be unpacked: {error}"))
}

/// Whether the name is a relative path without `..`. Backslashes are separators on other systems, so they are rejected.
fn stays_inside(name: &str) -> bool {
    let path = name.strip_suffix('/').unwrap_or(name);
    !name.contains(['\\', '\0', '\n']) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests;
