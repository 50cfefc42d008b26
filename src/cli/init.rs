//! What the commands for configurations of Terraform have in common: the directory of the root module, and its tree.

pub mod providers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use configuration::{Diagnostics, Tree, is_configuration, load};
use modules::Disk;

use super::failure::Failure;

/// The directory of the root module, by default the working directory.
///
/// # Errors
/// If it is not a directory, or has no configuration.
pub fn root(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let root = given.unwrap_or_else(|| PathBuf::from("."));
    let failed = |why: String| Failure { message: format!("{}: {why}", root.display()), hint: None };
    if !is_root(&root).map_err(|error| failed(error.to_string()))? {
        let message = format!("{} has no configuration of Terraform: no `.tf` file", root.display());
        let hint =
            "manifests need no `purlin init`: `purlin provider install -f DIR` installs their providers in advance";
        return Err(Failure::hinted(message, hint));
    }
    Ok(root)
}

/// Whether a directory has files of a configuration.
pub fn is_root(directory: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(directory)? {
        if entry?.file_name().to_str().is_some_and(is_configuration) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a configuration with its installed modules.
///
/// # Errors
/// If the list of installed modules cannot be read.
pub fn read(root: &Path) -> anyhow::Result<(Tree, Diagnostics)> {
    let manifest =
        modules::read_manifest(root).map_err(|error| Failure { message: error.message, hint: error.hint })?;
    Ok(load(".", &Disk { root: root.to_owned() }, &manifest, &BTreeMap::new()))
}
