//! The files that functions read.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use configuration::Tree;
use language::{FileError, Files};
use process::lock;

/// A file is not longer than that.
pub const MAX_FILE: u64 = 64 << 20;

/// The files and directories that functions have looked at, as they were then.
#[derive(Debug, Default)]
pub struct ReadFiles(Mutex<BTreeMap<PathBuf, FileStamp>>);

/// What tells a file from another version of it: its size and time, or why it cannot be looked at.
pub type FileStamp = Result<(u64, Option<SystemTime>), std::io::ErrorKind>;

pub fn stamp(path: &Path) -> FileStamp {
    let metadata = std::fs::metadata(path).map_err(|error| error.kind())?;
    Ok((metadata.len(), metadata.modified().ok()))
}

impl ReadFiles {
    /// Remembers a file as it is before it is read.
    pub fn look_at(&self, path: &Path) {
        lock(&self.0).entry(path.to_owned()).or_insert_with(|| stamp(path));
    }

    /// Whether any of them has changed since it was read.
    pub fn have_changed(&self) -> bool {
        lock(&self.0).iter().any(|(path, before)| stamp(path) != *before)
    }
}

/// The files that functions read: those in the directories of modules.
pub struct InModules {
    read: Arc<ReadFiles>,
    root: PathBuf,
    /// Without symbolic links.
    directories: Vec<PathBuf>,
}

impl InModules {
    /// The files of the modules of a tree, whose root module is in a directory.
    pub fn new(root: &Path, tree: &Tree, read: Arc<ReadFiles>) -> Self {
        let directories = tree.nodes.iter().filter_map(|node| root.join(&node.module.directory).canonicalize().ok());
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        Self { directories: directories.collect(), root, read }
    }

    fn inside(&self, path: &str) -> Result<PathBuf, FileError> {
        self.read.look_at(&self.root.join(path));
        let real = self.root.join(path).canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => FileError::Missing,
            _ => FileError::Unreadable,
        })?;
        let is_inside = self.directories.iter().any(|directory| real.starts_with(directory));
        if is_inside { Ok(real) } else { Err(FileError::Outside) }
    }
}

impl Files for InModules {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let path = self.inside(path)?;
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(FileError::Directory),
            Ok(found) if found.len() > MAX_FILE => Err(FileError::TooLarge),
            Ok(_) => std::fs::read(path).map_err(|_| FileError::Unreadable),
            Err(_) => Err(FileError::Unreadable),
        }
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, FileError> {
        let top = self.inside(directory)?;
        let mut files = Vec::new();
        let mut open = vec![top.clone()];
        while let Some(directory) = open.pop() {
            self.read.look_at(&directory);
            for entry in std::fs::read_dir(directory).map_err(|_| FileError::Unreadable)?.flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(path),
                    Ok(_) if path.is_file() => {
                        let name = path.strip_prefix(&top).ok().and_then(|name| name.to_str());
                        files.extend(name.map(|name| name.replace('\\', "/")));
                    }
                    _ => {}
                }
            }
        }
        Ok(files)
    }

    fn absolute(&self, path: &str) -> String {
        cleaned(&self.root.join(path)).to_string_lossy().into_owned()
    }

    fn home(&self) -> Option<String> {
        std::env::home_dir().map(|home| home.to_string_lossy().into_owned())
    }
}

/// A path without `.` and `..`, which are not looked up.
pub fn cleaned(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut found, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = found.pop(),
            other => found.push(other),
        }
        found
    })
}
