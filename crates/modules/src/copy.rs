//! Copies a package that is on this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::error::ModuleError;
use crate::package::RULES;

/// Copies a directory into another one, which must not exist and not be inside of it. Symbolic links stay links.
pub fn copy_directory(from: &Path, to: &Path) -> Result<(), ModuleError> {
    let from = from.canonicalize().map_err(|error| ModuleError::file(from, error))?;
    let parent = to.parent().unwrap_or(to);
    let parent = parent.canonicalize().map_err(|error| ModuleError::file(parent, error))?;
    if parent.starts_with(&from) {
        let message =
            format!("the directory {} contains the configuration that it would be copied into", from.display());
        return Err(
            ModuleError::new(message).hint("write a relative path, such as \"../network\", which is not copied")
        );
    }
    // The limits are checked first, because a directory of this machine can have any size.
    fetch::measure(&from, RULES)?;
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let (source, target) = (from.join(&below), to.join(&below));
        let failed = |error| ModuleError::file(&target, error);
        fs::create_dir(&target).map_err(failed)?;
        for entry in fs::read_dir(&source).map_err(|error| ModuleError::file(&source, error))? {
            let entry = entry.map_err(|error| ModuleError::file(&source, error))?;
            let kind = entry.file_type().map_err(|error| ModuleError::file(&source, error))?;
            let target = target.join(entry.file_name());
            if kind.is_dir() {
                open.push(below.join(entry.file_name()));
            } else if kind.is_symlink() {
                fs::read_link(entry.path()).and_then(|leads_to| symlink(leads_to, &target)).map_err(failed)?;
            } else if kind.is_file() {
                fs::copy(entry.path(), &target).map_err(failed)?;
            }
        }
    }
    Ok(fetch::inspect(to, RULES)?)
}
