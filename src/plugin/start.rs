//! How a plugin is brought up: process, handshake, TLS.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;
use tonic::transport::Channel;

use super::environment::environment;
use super::folder::PrivateFolder;
use super::handshake::{self, Address, Handshake};
use super::launch::Launch;
use super::output::Output;
use super::process::Process;
use super::tls::ClientIdentity;
use super::transport::connect;
use super::{PluginError, Protocol, StartError};

/// A plugin that was brought up.
pub(super) struct Launched {
    pub(super) process: Process,
    pub(super) output: Arc<Output>,
    pub(super) protocol: Protocol,
    pub(super) channel: Channel,
}

/// Brings a plugin up. When it fails, nothing of the plugin is left.
pub(super) async fn launch(launch: &Launch) -> Result<Launched, PluginError> {
    let start = try_launch(launch);
    start.await.map_err(|why| PluginError::Start { provider: launch.name.clone(), why })
}

async fn try_launch(launch: &Launch) -> Result<Launched, StartError> {
    check_program(&launch.program)?;
    let folder = PrivateFolder::create(&launch.runtime_folder)?;
    let identity = match launch.tls {
        true => Some(ClientIdentity::generate().map_err(|error| StartError::Certificate(error.to_string()))?),
        false => None,
    };
    let certificate = identity.as_ref().map(|identity| identity.pem.as_str());
    let ours = |name: &str| std::env::var_os(name);
    let variables = environment(ours, &launch.environment, folder.path(), certificate, launch.limits.memory);
    let output = Arc::new(Output::new(launch.name.clone(), Arc::clone(&launch.mask)));
    let (process, first) = Process::start(launch, variables, folder, Arc::clone(&output)).await?;
    let limit = launch.limits.start;
    let up = async {
        let handshake = handshake(&process, first).await?;
        let channel = dial(&handshake, identity).await?;
        Ok((handshake.protocol, channel))
    };
    let (protocol, channel) = tokio::time::timeout(limit, up).await.unwrap_or(Err(StartError::Silent(limit)))?;
    Ok(Launched { process, output, protocol, channel })
}

/// Sees at once what the launcher would only find in its own process.
fn check_program(program: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::PermissionsExt as _;
    let refuse = |why: String| Err(StartError::Execute { program: program.to_owned(), why });
    match std::fs::metadata(program) {
        Err(error) => refuse(error.to_string()),
        Ok(metadata) if !metadata.is_file() => refuse("it is no file".to_owned()),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => refuse("it is not executable".to_owned()),
        Ok(_) => Ok(()),
    }
}

async fn handshake(process: &Process, first: oneshot::Receiver<String>) -> Result<Handshake, StartError> {
    match first.await {
        Ok(line) => Ok(handshake::parse(&line)?),
        // Its standard output is closed: it has ended, or is about to; if it does neither, the caller's limit ends the
        // wait.
        Err(_) => Err(StartError::Ended(process.ended().await)),
    }
}

async fn dial(handshake: &Handshake, identity: Option<ClientIdentity>) -> Result<Channel, StartError> {
    let refused = |why: String| StartError::Connect(why);
    let tls = match (identity, &handshake.certificate) {
        (Some(identity), Some(certificate)) => {
            Some(identity.config(certificate.clone()).map_err(|error| refused(error.to_string()))?)
        }
        (Some(_), None) => {
            return Err(refused("it does not speak TLS (hint: `tls: false` in its Provider allows that)".to_owned()));
        }
        (None, _) => None,
    };
    connect(&handshake.address, tls).await.map_err(|error| {
        let place = match &handshake.address {
            Address::Unix(path) => path.display().to_string(),
            Address::Tcp(address) => address.to_string(),
        };
        refused(format!("{place}: {error}"))
    })
}
