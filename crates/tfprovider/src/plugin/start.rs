//! Starts a plugin: process, handshake and TLS connection.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tonic::transport::Channel;

use super::environment::environment;
use super::handshake::{self, Address, Handshake};
use super::launch::Launch;
use super::observer::RunningCalls;
use super::output::Output;
use super::private_dir::PrivateDir;
use super::process::Process;
use super::tls::IdentityPem;
use super::transport::{ByteStream, channel, connect};
use super::{PluginError, Protocol, StartError};

pub struct StartedPlugin {
    pub process: Process,
    pub output: Arc<Output>,
    pub protocol: Protocol,
    pub channel: Channel,
}

/// Starts a plugin. On failure its process and files are removed.
pub async fn launch(launch: &Launch, calls: &Arc<RunningCalls>) -> Result<StartedPlugin, PluginError> {
    let began = Instant::now();
    let started = try_launch(launch, calls).await;
    launch.observer.started(&launch.name, started.is_ok(), began.elapsed());
    started.map_err(|why| PluginError::Start { provider: launch.name.clone(), why })
}

async fn try_launch(launch: &Launch, calls: &Arc<RunningCalls>) -> Result<StartedPlugin, StartError> {
    let output = Arc::new(Output::new(launch.name.clone(), Arc::clone(&launch.mask), Arc::clone(calls)));
    let ConnectedPlugin { process, protocol, stream } = start(launch, Arc::clone(&output)).await?;
    let channel = channel(stream).await.map_err(|error| StartError::Connect(error.to_string()))?;
    Ok(StartedPlugin { process, output, protocol, channel })
}

/// A plugin without calls.
pub struct ConnectedPlugin {
    pub process: Process,
    pub protocol: Protocol,
    pub stream: ByteStream,
}

/// Starts a plugin on this machine and connects to it.
pub async fn start(launch: &Launch, output: Arc<Output>) -> Result<ConnectedPlugin, StartError> {
    check_program(&launch.program)?;
    let dir = PrivateDir::create(&launch.runtime_dir)?;
    let identity = match launch.tls {
        true => Some(IdentityPem::generate().map_err(|error| StartError::Certificate(error.to_string()))?),
        false => None,
    };
    let certificate = identity.as_ref().map(|identity| identity.certificate.as_str());
    let variables =
        environment(|name| std::env::var_os(name), &launch.environment, dir.path(), certificate, launch.limits.memory);
    let (process, first) = Process::start(launch, variables, dir, output).await?;
    let limit = launch.limits.start;
    let up = async {
        let handshake = handshake(&process, first).await?;
        let stream = open_stream(&handshake, identity).await?;
        Ok((handshake.protocol, stream))
    };
    let (protocol, stream) =
        tokio::time::timeout(limit, up).await.unwrap_or(Err(StartError::HandshakeTimeout(limit)))?;
    Ok(ConnectedPlugin { process, protocol, stream })
}

/// Reports problems early that otherwise only the launcher process would find.
fn check_program(program: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::PermissionsExt as _;
    let why = match std::fs::metadata(program) {
        Err(error) => error.to_string(),
        Ok(metadata) if !metadata.is_file() => "it is not a regular file".to_owned(),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => "it is not executable".to_owned(),
        Ok(_) => return Ok(()),
    };
    Err(StartError::Execute { program: program.to_owned(), why })
}

async fn handshake(process: &Process, first: oneshot::Receiver<String>) -> Result<Handshake, StartError> {
    match first.await {
        Ok(line) => Ok(handshake::parse(&line)?),
        // Its standard output is closed, so it has exited or is about to. Otherwise the caller's time limit ends the
        // wait.
        Err(_) => Err(StartError::ExitedEarly(process.ended().await)),
    }
}

async fn open_stream(handshake: &Handshake, identity: Option<IdentityPem>) -> Result<ByteStream, StartError> {
    let tls = match (identity, &handshake.certificate) {
        (Some(identity), Some(certificate)) => {
            let identity = identity.identity().map_err(|error| StartError::Connect(error.to_string()))?;
            let config = identity.client(certificate.clone().into());
            Some(config.map_err(|error| StartError::Connect(error.to_string()))?)
        }
        (Some(_), None) => {
            return Err(StartError::Connect(
                "it does not use TLS, which Purlin requires (hint: build the provider with a newer version of its SDK)"
                    .to_owned(),
            ));
        }
        (None, _) => None,
    };
    connect(&handshake.address, tls).await.map_err(|error| {
        let place = match &handshake.address {
            Address::Unix(path) => path.display().to_string(),
            Address::Tcp(address) => address.to_string(),
        };
        StartError::Connect(format!("{place}: {error}"))
    })
}
