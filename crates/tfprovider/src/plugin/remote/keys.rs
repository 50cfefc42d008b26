//! The keys of one runner and of its controller. Each end knows the certificate of the other before they meet.

use crate::plugin::StartError;
use crate::plugin::tls::{Identity, IdentityPem, certificate};

use rustls::pki_types::pem;
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
    own: IdentityPem,
    /// The certificate of the runner.
    server: String,
}

/// Returns new keys for one runner.
pub fn generate_keys() -> Result<(RunnerKeys, ControllerKeys), StartError> {
    let new = || IdentityPem::generate().map_err(|error| StartError::Certificate(error.to_string()));
    let (runner, own) = (new()?, new()?);
    let server = runner.certificate.clone();
    Ok((
        RunnerKeys { certificate: runner.certificate, key: runner.key, client: own.certificate.clone() },
        ControllerKeys { own, server },
    ))
}

impl RunnerKeys {
    pub(super) fn config(&self) -> Result<ServerConfig, String> {
        let own = IdentityPem { certificate: self.certificate.clone(), key: self.key.clone() };
        let parsed: Result<_, pem::Error> = own.identity().and_then(|own| Ok((own, certificate(&self.client)?)));
        let (own, client): (Identity, _) = parsed.map_err(|error| error.to_string())?;
        own.server(client).map_err(|error| error.to_string())
    }
}

impl ControllerKeys {
    pub(super) fn config(&self) -> Result<ClientConfig, StartError> {
        let wrong = |why: String| StartError::Certificate(why);
        let own = self.own.identity().map_err(|error| wrong(error.to_string()))?;
        let server = certificate(&self.server).map_err(|error| wrong(error.to_string()))?;
        own.client(server).map_err(|error| wrong(error.to_string()))
    }
}
