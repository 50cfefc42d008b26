//! What the commands for configurations of Terraform have in common: the directory of the root module, and its tree.

pub mod providers;

use std::path::{Path, PathBuf};

use configuration::{Tree, load};
use modules::Disk;

use super::failure::Failure;
use super::root_module::{self, Variables};

/// The directory of the root module, by default the working directory.
///
/// # Errors
/// If it has no configuration.
pub fn root(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let root = given.unwrap_or_else(|| PathBuf::from("."));
    if root_module::is_in(&root) {
        return Ok(root);
    }
    let message = format!("{} has no configuration of Terraform: no `.tf` file", root.display());
    let hint = "manifests need no `purlin init`: `purlin provider install -f DIR` installs their providers in advance";
    Err(Failure::hinted(message, hint))
}

/// Reads a configuration with its installed modules. The problems are those that need no schema of a provider.
///
/// # Errors
/// If the list of installed modules cannot be read.
pub fn read(root: &Path, given: &Variables) -> anyhow::Result<(Tree, model::Diagnostics)> {
    let manifest =
        modules::read_manifest(root).map_err(|error| Failure { message: error.message, hint: error.hint })?;
    let (variables, mut problems) = root_module::variables(root, given);
    let (tree, mut found) = load(".", &Disk { root: root.to_owned() }, &manifest, &variables);
    found.extend(tree.undeclared());
    problems.extend(terraform::diagnostics(&found, &tree.sources, &root_module::prefix(root)));
    Ok((tree, problems))
}
