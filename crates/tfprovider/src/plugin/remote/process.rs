//! The controller's end: starts a plugin in a runner, and follows it to its end.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tonic::transport::Channel;

use super::frame::{self, Report, Request, StartRequest};
use super::{ControllerKeys, LOST_AFTER, PACKAGE_LIMIT, PING_INTERVAL, Package, RunnerHost};
use crate::plugin::crash::Crash;
use crate::plugin::handshake::Address;
use crate::plugin::output::Output;
use crate::plugin::transport::{ByteStream, channel, connect};
use crate::plugin::{Launch, Protocol, StartError};

/// How long a runner may take to listen.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// The pause between two attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// How long a runner may take to respond besides the work that it does.
const RESPONSE_LIMIT: Duration = Duration::from_secs(10);

/// A runner that listens, and what it starts.
pub struct RemoteStart<'a> {
    pub address: SocketAddr,
    pub keys: &'a ControllerKeys,
    pub package: &'a Package,
    /// Variables of the plugin besides those of the runner.
    pub environment: BTreeMap<String, String>,
    /// The soft memory limit in bytes; `None`: that of the runner's container.
    pub memory: Option<u64>,
}

/// A plugin in a runner. The plugin is killed when this is dropped.
#[derive(Debug)]
pub struct RemoteProcess {
    ended: watch::Receiver<Option<Crash>>,
    kill: mpsc::UnboundedSender<()>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// In bytes; zero while it is not known.
    memory: AtomicU64,
    /// The host asked the runner to end, and another one can take its place.
    leaving: AtomicBool,
    /// The host asked the runner to end, and no other one can take its place.
    is_last: AtomicBool,
}

pub struct StartedRemote {
    pub process: RemoteProcess,
    pub protocol: Protocol,
    pub channel: Channel,
    /// Follows the plugin until no process of the runner can still run. Must be polled to its end.
    pub follow: BoxFuture<'static, ()>,
}

impl RemoteProcess {
    /// The receiver of the end of the process.
    pub fn end(&self) -> &watch::Receiver<Option<Crash>> {
        &self.ended
    }

    pub fn memory(&self) -> Option<u64> {
        Some(self.shared.memory.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    pub fn kill(&self) {
        // The receiver is dropped after the end.
        let _ = self.kill.send(());
    }

    pub fn is_leaving(&self) -> bool {
        self.shared.leaving.load(Ordering::Relaxed)
    }

    pub fn is_last(&self) -> bool {
        self.shared.is_last.load(Ordering::Relaxed)
    }
}

/// Sends the package to a runner and starts it there. After an error the caller ends the runner.
pub async fn start(
    launch: &Launch,
    remote: &RemoteStart<'_>,
    output: Arc<Output>,
    host: Arc<dyn RunnerHost>,
) -> Result<StartedRemote, StartError> {
    let config = remote.keys.config()?;
    let mut control = dial(remote.address, &config).await.map_err(connect_error)?;
    let request = Request::Start(StartRequest {
        name: launch.name.clone(),
        program: remote.package.program_name().map_err(connect_error)?,
        environment: remote.environment.clone(),
        memory: remote.memory,
        limit_seconds: launch.limits.start.as_secs().max(1),
    });
    let sending = async {
        frame::write(&mut control, &request).await?;
        remote.package.send(&mut control).await?;
        frame::write(&mut control, &Request::Run).await
    };
    match tokio::time::timeout(PACKAGE_LIMIT, sending).await {
        // A runner that refuses the package says why.
        Ok(Ok(()) | Err(_)) => {}
        Err(_) => return Err(StartError::Connect("the runner did not take the package in time".to_owned())),
    }
    let limit = launch.limits.start + RESPONSE_LIMIT;
    let started = tokio::time::timeout(limit, started(&mut control, &output)).await;
    let protocol =
        started.unwrap_or(Err(StartError::HandshakeTimeout(limit))).map_err(|error| masked(launch, error))?;
    let mut stream = dial(remote.address, &config).await.map_err(connect_error)?;
    frame::write(&mut stream, &Request::Plugin).await.map_err(connect_error)?;
    let channel = channel(stream).await.map_err(connect_error)?;
    let (ended_sender, ended) = watch::channel(None);
    let (kill, killed) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared::default());
    let process = RemoteProcess { ended, kill, shared: Arc::clone(&shared) };
    let follow = Box::pin(follow(control, killed, shared, output, host, ended_sender));
    Ok(StartedRemote { process, protocol, channel, follow })
}

/// Connects to a runner, which may not listen yet.
async fn dial(address: SocketAddr, config: &ClientConfig) -> io::Result<ByteStream> {
    let attempts = async {
        loop {
            match connect(&Address::Tcp(address), Some(config.clone())).await {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
                answer => return answer,
            }
        }
    };
    tokio::time::timeout(CONNECT_LIMIT, attempts)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, format!("{address} did not respond"))))
}

fn connect_error(error: io::Error) -> StartError {
    StartError::Connect(error.to_string())
}

/// Waits until the plugin runs.
async fn started(control: &mut ByteStream, output: &Output) -> Result<Protocol, StartError> {
    loop {
        match frame::read(control).await {
            Ok(Report::Started { protocol: 5 }) => return Ok(Protocol::V5),
            Ok(Report::Started { .. }) => return Ok(Protocol::V6),
            Ok(Report::Failed { why }) => return Err(StartError::Runner(why)),
            Ok(Report::Output { line }) => output.line(&line),
            Ok(_) => {}
            Err(error) => return Err(StartError::Connect(format!("the runner closed the connection: {error}"))),
        }
    }
}

/// The runner quotes the output of the plugin.
fn masked(launch: &Launch, error: StartError) -> StartError {
    match error {
        StartError::Runner(why) => StartError::Runner((launch.mask)(&why)),
        other => other,
    }
}

/// Publishes the end of the plugin when it is known that none of its processes can still run.
async fn follow(
    control: ByteStream,
    mut killed: mpsc::UnboundedReceiver<()>,
    shared: Arc<Shared>,
    output: Arc<Output>,
    host: Arc<dyn RunnerHost>,
    ended: watch::Sender<Option<Crash>>,
) {
    let (mut reader, mut writer) = tokio::io::split(control);
    let reported = tokio::select! {
        reported = read_reports(&mut reader, &shared, &output, &*host) => reported,
        () = write_requests(&mut writer, &mut killed) => None,
    };
    drop((reader, writer));
    match reported {
        Some(status) => {
            let _ = ended.send(Some(output.crash(status.map(ExitStatus::from_raw))));
            host.end().await;
        }
        None => {
            let host = host.end().await;
            let _ = ended.send(Some(Crash { host, ..output.crash(None) }));
        }
    }
}

/// Returns the status with which the plugin has ended; `None` if the connection is lost.
async fn read_reports(
    reader: &mut (impl AsyncRead + Unpin),
    shared: &Shared,
    output: &Output,
    host: &dyn RunnerHost,
) -> Option<Option<i32>> {
    loop {
        match tokio::time::timeout(LOST_AFTER, frame::read(reader)).await {
            Ok(Ok(Report::Ended { status })) => return Some(status),
            Ok(Ok(Report::Output { line })) => output.line(&line),
            Ok(Ok(Report::Pong { memory })) => shared.memory.store(memory.unwrap_or_default(), Ordering::Relaxed),
            Ok(Ok(Report::Terminating)) => {
                let flag = if host.is_replaceable().await { &shared.leaving } else { &shared.is_last };
                flag.store(true, Ordering::Relaxed);
            }
            Ok(Ok(Report::Started { .. } | Report::Failed { .. })) => {}
            Ok(Err(_)) | Err(_) => return None,
        }
    }
}

/// Sends signs of life, and the request to kill the plugin. Returns if the connection is lost, or if the runner does not
/// report the end.
async fn write_requests(writer: &mut (impl AsyncWrite + Unpin), killed: &mut mpsc::UnboundedReceiver<()>) {
    let mut pings = tokio::time::interval(PING_INTERVAL);
    loop {
        let is_kill = tokio::select! {
            _ = pings.tick() => false,
            _ = killed.recv() => true,
        };
        let request = if is_kill { Request::Kill } else { Request::Ping };
        let limit = if is_kill { RESPONSE_LIMIT } else { LOST_AFTER };
        match tokio::time::timeout(limit, frame::write(writer, &request)).await {
            Ok(Ok(())) if is_kill => {
                tokio::time::sleep(RESPONSE_LIMIT).await;
                return;
            }
            Ok(Ok(())) => {}
            // A runner that has ended has reported it before, which the reader finds.
            Ok(Err(_)) => {
                tokio::time::sleep(RESPONSE_LIMIT).await;
                return;
            }
            Err(_) => return,
        }
    }
}
