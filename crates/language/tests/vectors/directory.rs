//! The files of a directory.

use std::path::{Path, PathBuf};

use language::{FileError, Files};

pub struct Directory(pub PathBuf);

impl Files for Directory {
    fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        let path = self.0.join(path);
        if path.is_dir() {
            return Err(FileError::Directory);
        }
        std::fs::read(path).map_err(|_| FileError::Missing)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, FileError> {
        let root = self.0.join(directory);
        let mut found = Vec::new();
        collect(&root, &root, &mut found);
        Ok(found)
    }

    fn absolute(&self, path: &str) -> String {
        self.0.join(path).to_string_lossy().into_owned()
    }

    fn home(&self) -> Option<String> {
        None
    }
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            found.push(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
}
