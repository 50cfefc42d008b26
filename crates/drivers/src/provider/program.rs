//! Installs the program of a provider.

use model::{DriverError, ErrorKind, Provider};
use tfprovider::install::{InstalledProvider, Installer};

/// Returns the package of a provider and installs it if needed.
pub(super) async fn program(installer: &Installer, provider: &Provider) -> Result<InstalledProvider, DriverError> {
    let installed = installer.install_and_lock(provider).await.map_err(|error| {
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
