//! From what a `Provider` says to the program to start.

use crate::install::{Installed, Installer};
use crate::model::{DriverError, ErrorKind, Provider};

/// The package of a provider, installed when it is not there yet.
pub(super) async fn program(installer: &Installer, provider: &Provider) -> Result<Installed, DriverError> {
    let installed = installer.obtain(provider).await.map_err(|error| {
        let field = error.field.map_or_else(String::new, |field| format!("{field}: "));
        let message = format!("there is no program of the provider `{}`: {field}{}", provider.name, error.message);
        // Whether trying again helps makes no difference: nobody was asked to change anything.
        DriverError { kind: ErrorKind::Unavailable, message, path: None, hint: error.hint }
    })?;
    for warning in &installed.warnings {
        tracing::warn!(provider = &*provider.name, "{warning}");
    }
    Ok(installed)
}
