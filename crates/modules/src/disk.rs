//! The directories of a configuration on this machine.

use std::fs;
use std::path::PathBuf;

use configuration::{Directories, File, is_configuration};

/// Larger files are no configuration: the largest known one has 3 MB.
const MAX_BYTES: u64 = 32 << 20;

/// The directory of a root module. Directories of other modules are relative to it.
#[derive(Clone, Debug)]
pub struct Disk {
    /// The root module.
    pub root: PathBuf,
    /// Where all modules have to be: paths that lead out of this directory are refused. `None`: anywhere.
    pub within: Option<PathBuf>,
}

impl Disk {
    /// The directory of a module.
    fn directory(&self, directory: &str) -> Result<PathBuf, String> {
        let path = self.root.join(directory);
        let Some(within) = &self.within else { return Ok(path) };
        let real = path.canonicalize().map_err(|error| error.to_string())?;
        let within = within.canonicalize().map_err(|error| error.to_string())?;
        if real.starts_with(within) { Ok(path) } else { Err("it is outside of the module's package".to_owned()) }
    }
}

impl Directories for Disk {
    fn files(&self, directory: &str) -> Result<Vec<File>, String> {
        let directory = self.directory(directory)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).map_err(|error| error.to_string())? {
            let entry = entry.map_err(|error| error.to_string())?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = entry.path();
            if !is_configuration(&name) || path.is_dir() {
                continue;
            }
            let metadata = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if metadata.len() > MAX_BYTES {
                return Err(format!("{} is larger than {} MiB", path.display(), MAX_BYTES >> 20));
            }
            if !metadata.is_file() {
                return Err(format!("{} is not a regular file", path.display()));
            }
            let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            files.push(File { name, content });
        }
        Ok(files)
    }
}
