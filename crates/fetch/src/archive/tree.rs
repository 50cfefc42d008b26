//! Checks a directory that another program has filled, or into which links were unpacked.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Links, UnpackRules, invalid};
use crate::error::FetchError;

/// Checks that the files of a directory are within the limits, and that no symbolic link in it leads out of it. Links that
/// lead nowhere are removed.
///
/// # Errors
/// If a rule is broken, or the directory cannot be read.
pub fn inspect(directory: &Path, rules: UnpackRules) -> Result<(), FetchError> {
    let root = directory.canonicalize().map_err(|error| FetchError::file(directory, error))?;
    measure(&root, rules)?.iter().try_for_each(|link| check_link(&root, link, rules.links))
}

/// Checks that the files of a directory are within the limits, and returns the symbolic links in it.
///
/// # Errors
/// If there is more than the limits allow, or the directory cannot be read.
pub fn measure(directory: &Path, rules: UnpackRules) -> Result<Vec<PathBuf>, FetchError> {
    let (mut bytes, mut entries) = (0, 0);
    let mut links = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| FetchError::file(&folder, error))? {
            let entry = entry.map_err(|error| FetchError::file(&folder, error))?;
            let metadata = entry.metadata().map_err(|error| FetchError::file(&folder, error))?;
            entries += 1;
            bytes += if metadata.is_file() { metadata.len() } else { 0 };
            if entries > rules.entries {
                return Err(invalid(format!("it contains more than {} files", rules.entries)));
            }
            if bytes > rules.bytes {
                return Err(invalid(format!("it has more than {} MiB", rules.bytes >> 20)));
            }
            if metadata.is_symlink() {
                links.push(entry.path());
            } else if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(links)
}

fn check_link(root: &Path, link: &Path, links: Links) -> Result<(), FetchError> {
    let name = link.strip_prefix(root).unwrap_or(link).display();
    if links == Links::Refused {
        return Err(invalid(format!("`{name}` is a symbolic link")));
    }
    match link.canonicalize() {
        Ok(leads_to) if leads_to.starts_with(root) => Ok(()),
        Ok(_) => Err(invalid(format!("the symbolic link `{name}` leads out of the package"))),
        // Something may appear there later, which is no part of the package.
        Err(_) => fs::remove_file(link).map_err(|error| FetchError::file(link, error)),
    }
}
