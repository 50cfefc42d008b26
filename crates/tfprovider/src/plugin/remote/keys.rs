//! The keys of one runner and of its controller. Each end knows the certificate of the other before they meet.

use crate::plugin::StartError;
use crate::plugin::tls::{IdentityPem, certificate};

use rustls::{ClientConfig, ServerConfig};

/// What a runner needs, in PEM form. The key is secret.
#[derive(Clone)]
pub struct RunnerKeys {
    pub certificate: String,
    pub key: String,
    /// The certificate of the only client that the runner accepts.
    pub client: String,
}

/// What the controller keeps in memory.
pub struct ControllerKeys {
    identity: IdentityPem,
    /// The certificate of the runner.
    server: String,
}

/// Returns new keys for one runner.
pub fn generate_keys() -> Result<(RunnerKeys, ControllerKeys), StartError> {
    let (runner, controller) = (generate_identity()?, generate_identity()?);
    let server = runner.certificate.clone();
    Ok((
        RunnerKeys { certificate: runner.certificate, key: runner.key, client: controller.certificate.clone() },
        ControllerKeys { identity: controller, server },
    ))
}

fn generate_identity() -> Result<IdentityPem, StartError> {
    IdentityPem::generate().map_err(|error| StartError::Certificate(error.to_string()))
}

impl RunnerKeys {
    pub(crate) fn config(&self) -> Result<ServerConfig, String> {
        let identity = IdentityPem { certificate: self.certificate.clone(), key: self.key.clone() };
        let identity = identity.identity().map_err(|error| error.to_string())?;
        let client = certificate(&self.client).map_err(|error| error.to_string())?;
        identity.server(client).map_err(|error| error.to_string())
    }
}

impl ControllerKeys {
    pub(crate) fn config(&self) -> Result<ClientConfig, StartError> {
        let identity = self.identity.identity().map_err(|error| StartError::Certificate(error.to_string()))?;
        let server = certificate(&self.server).map_err(|error| StartError::Certificate(error.to_string()))?;
        identity.client(server).map_err(|error| StartError::Certificate(error.to_string()))
    }
}
