//! Installs the program of a provider.

use model::{DriverError, ErrorKind, Package, Provider};
use tfprovider::install::{self, InstalledProvider, Installer, Requirement};

/// What to install for a provider.
pub fn requirement(provider: &Provider) -> Requirement {
    let package = match &provider.package {
        Package::Registry => install::Package::Registry,
        Package::Path(path) => install::Package::Path(path.clone()),
        Package::FilesystemMirror(root) => install::Package::FilesystemMirror(root.clone()),
        Package::NetworkMirror(url) => install::Package::NetworkMirror(url.clone()),
        Package::OciMirror(template) => install::Package::OciMirror(template.clone()),
    };
    Requirement {
        name: provider.name.clone(),
        source: provider.source.clone(),
        version: provider.version.clone(),
        package,
        checksums: provider.checksums.clone(),
    }
}

/// Returns the package of a provider and installs it if needed.
pub(super) async fn program(installer: &Installer, provider: &Provider) -> Result<InstalledProvider, DriverError> {
    let installed = installer.install_and_lock(&requirement(provider)).await.map_err(|error| {
        let field = error.field.map_or_else(String::new, |field| format!("{field}: "));
        let message =
            format!("the program of the provider `{}` is not available: {field}{}", provider.name, error.message);
        // All installation errors are retried in the same way, since no object was changed.
        DriverError { kind: ErrorKind::Unavailable, message, path: None, hint: error.hint }
    })?;
    for warning in &installed.warnings {
        tracing::warn!(provider = &*provider.name, "{warning}");
    }
    Ok(installed)
}
