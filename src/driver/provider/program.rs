//! From what a `Provider` says to the program to start.

use std::path::{Path, PathBuf};

use crate::model::{DriverError, ErrorKind, Package, Provider};

/// The program of a provider.
pub(super) fn program(provider: &Provider) -> Result<PathBuf, DriverError> {
    match &provider.package {
        Package::Path(path) => in_package(Path::new(&**path), provider),
        other => Err(missing(provider, format!("{other:?} holds no package"))),
    }
}

/// A path may name the program itself, or a folder with it as packages have it.
fn in_package(path: &Path, provider: &Provider) -> Result<PathBuf, DriverError> {
    let metadata =
        std::fs::metadata(path).map_err(|error| missing(provider, format!("{}: {error}", path.display())))?;
    if !metadata.is_dir() {
        return Ok(path.to_owned());
    }
    let entries = std::fs::read_dir(path).map_err(|error| missing(provider, format!("{}: {error}", path.display())))?;
    let name = provider.source.rsplit('/').next().unwrap_or_default();
    let wanted = format!("terraform-provider-{name}");
    let is_program = |file: &String| {
        file.strip_prefix(&wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('_') || rest.starts_with('.'))
    };
    let mut found: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(is_program).collect();
    found.sort();
    match found.first() {
        Some(file) => Ok(path.join(file)),
        None => Err(missing(provider, format!("{} holds no `{wanted}`", path.display()))),
    }
}

fn missing(provider: &Provider, why: String) -> DriverError {
    DriverError {
        kind: ErrorKind::Unavailable,
        message: format!("there is no program of the provider `{}`: {why}", provider.name),
        path: None,
        hint: Some("correct `spec.package` of the Provider".to_owned()),
    }
}
