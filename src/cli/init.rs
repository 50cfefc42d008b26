//! What the commands for configurations of Terraform have in common: the directory of the root module, and its tree.

pub mod providers;

use std::path::{Path, PathBuf};

use configuration::Tree;

use super::failure::Failure;
use super::root_module::{self, Loaded, Variables};

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
pub fn read(root: &Path, given: &Variables) -> (Tree, model::Diagnostics) {
    let Loaded { tree, mut problems, .. } = root_module::load(root, given);
    problems.extend(terraform::diagnostics(&tree.undeclared(), &tree.sources, &root_module::prefix(root)));
    (tree, problems)
}
