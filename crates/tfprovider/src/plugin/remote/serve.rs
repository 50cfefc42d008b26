//! The runner: waits for its controller, starts one plugin for it, and ends with the plugin or with its controller.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::frame::{self, Report, Request, StartRequest};
use super::package::receive_file;
use super::{LOST_AFTER, PACKAGE_LIMIT, RunnerKeys};
use crate::plugin::output::Output;
use crate::plugin::process::Process;
use crate::plugin::start::{self, ConnectedPlugin};
use crate::plugin::transport::ByteStream;
use crate::plugin::{Launch, Limits, Protocol};

/// How long a runner waits for its controller, which connects as soon as the Pod runs.
const FIRST_CONTACT: Duration = Duration::from_mins(5);

/// The time for the TLS handshake and the first message of a connection.
const GREETING_LIMIT: Duration = Duration::from_secs(10);

/// The maximum number of connections without a first message. Others wait.
const MAX_GREETINGS: usize = 16;

/// The reports that wait until the controller reads them. Further lines of output are dropped, so that a plugin never waits
/// for the network.
const MAX_REPORTS: usize = 1024;

/// How long the last report may take.
const FAREWELL: Duration = Duration::from_secs(5);

type Connection = TlsStream<TcpStream>;

/// Checks an unpacked package.
pub type Verify = Box<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

pub struct RunnerOptions {
    pub listen: SocketAddr,
    pub keys: RunnerKeys,
    /// An empty directory for the package.
    pub directory: PathBuf,
    /// The parent of the plugin's private directory. Must be short because the directory holds a Unix socket.
    pub runtime_dir: PathBuf,
    pub verify: Verify,
    /// The variables of the plugin.
    pub environment: BTreeMap<String, String>,
    /// The soft memory limit of the plugin in bytes, unless the controller sets one.
    pub memory: Option<u64>,
}

/// Why a runner ended before its plugin.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error("cannot listen on {address}: {why}")]
    Listen { address: SocketAddr, why: io::Error },
    #[error("the keys of the runner are not valid: {0}")]
    Keys(String),
    #[error("no controller has connected within {}", crate::plugin::format_duration(FIRST_CONTACT))]
    NoController,
    #[error("the provider did not start: {0}")]
    Start(String),
    #[error("the controller is gone, so the provider was killed")]
    ControllerLost,
}

/// Runs until the plugin has ended. `terminated` returns when the host asks the runner to end, which the controller decides.
pub async fn serve(options: RunnerOptions, terminated: impl Future<Output = ()>) -> Result<(), RunnerError> {
    let address = options.listen;
    let config = options.keys.config().map_err(RunnerError::Keys)?;
    let listener = TcpListener::bind(address).await.map_err(|why| RunnerError::Listen { address, why })?;
    let (sender, mut connections) = mpsc::channel(1);
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), sender));
    let first = async {
        while let Some((connection, request)) = connections.recv().await {
            if let Request::Start(start) = request {
                return Some((connection, start));
            }
        }
        None
    };
    let first = tokio::time::timeout(FIRST_CONTACT, first).await.ok().flatten();
    let (mut control, request) = first.ok_or(RunnerError::NoController)?;
    let received = receive_package(&mut control, &options).await;
    let (reader, writer) = tokio::io::split(control);
    let (reports, sent) = mpsc::channel(MAX_REPORTS);
    let (requests_sender, mut requests) = mpsc::channel(1);
    // The controller is silent until the plugin runs.
    let silent = LOST_AFTER + Duration::from_secs(request.limit_seconds);
    tasks.spawn(read_requests(reader, silent, requests_sender));
    let mut writing = JoinSet::new();
    writing.spawn(write_reports(writer, sent));
    let ended = async {
        let plugin = tokio::select! {
            plugin = start_plugin(received, &options, &request, &reports) => plugin?,
            // No request precedes the start.
            _ = requests.recv() => return Err(RunnerError::ControllerLost),
        };
        let ConnectedPlugin { process, protocol, stream } = plugin;
        let protocol = if protocol == Protocol::V5 { 5 } else { 6 };
        report(&reports, Report::Started { protocol }).await;
        tasks.spawn(relay(connections, stream));
        attend(&process, &mut requests, &reports, terminated).await
    };
    let result = ended.await;
    if let Err(RunnerError::Start(why)) = &result {
        report(&reports, Report::Failed { why: why.clone() }).await;
    }
    drop(reports);
    tasks.shutdown().await;
    let _ = tokio::time::timeout(FAREWELL, writing.join_next()).await;
    result
}

/// Sends each connection of the controller with its first message.
async fn accept(listener: TcpListener, tls: TlsAcceptor, sender: mpsc::Sender<(Connection, Request)>) {
    let mut greetings = JoinSet::new();
    loop {
        if greetings.len() >= MAX_GREETINGS {
            greetings.join_next().await;
        }
        while greetings.try_join_next().is_some() {}
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (tls, sender) = (tls.clone(), sender.clone());
        greetings.spawn(async move {
            let greeting = async {
                stream.set_nodelay(true)?;
                let mut connection = tls.accept(stream).await?;
                let request = frame::read(&mut connection).await?;
                io::Result::Ok((connection, request))
            };
            match tokio::time::timeout(GREETING_LIMIT, greeting).await {
                Ok(Ok(greeted)) => drop(sender.send(greeted).await),
                Ok(Err(error)) => tracing::warn!(%peer, %error, "refused a connection"),
                Err(_) => tracing::warn!(%peer, "closed a connection without a message"),
            }
        });
    }
}

/// Stores the package and checks it.
async fn receive_package(control: &mut Connection, options: &RunnerOptions) -> Result<(), RunnerError> {
    loop {
        let Ok(Ok(request)) = tokio::time::timeout(LOST_AFTER, frame::read(control)).await else {
            return Err(RunnerError::ControllerLost);
        };
        match request {
            Request::File(header) => {
                let file = receive_file(control, &options.directory, &header);
                let received = tokio::time::timeout(PACKAGE_LIMIT, file).await;
                let received = received.map_err(|_| RunnerError::ControllerLost)?;
                received.map_err(|error| not_stored(&format!("{}: {error}", header.path)))?;
            }
            Request::Run => break,
            other => return Err(not_stored(&format!("unexpected message {other:?}"))),
        }
    }
    (options.verify)(&options.directory).map_err(RunnerError::Start)
}

fn not_stored(why: &str) -> RunnerError {
    RunnerError::Start(format!("the package cannot be stored: {why}"))
}

async fn start_plugin(
    received: Result<(), RunnerError>,
    options: &RunnerOptions,
    request: &StartRequest,
    reports: &mpsc::Sender<Report>,
) -> Result<ConnectedPlugin, RunnerError> {
    received?;
    let mut launch = Launch::new(request.name.clone(), options.directory.join(&request.program));
    launch.runtime_dir.clone_from(&options.runtime_dir);
    launch.environment.clone_from(&options.environment);
    launch.environment.extend(request.environment.clone());
    let memory = request.memory.or(options.memory);
    launch.limits = Limits { start: Duration::from_secs(request.limit_seconds), memory, ..launch.limits };
    let copies = reports.clone();
    let output = Output::copied(
        request.name.clone(),
        Box::new(move |line| drop(copies.try_send(Report::Output { line: line.to_owned() }))),
    );
    start::start(&launch, Arc::new(output)).await.map_err(|why| RunnerError::Start(why.to_string()))
}

/// Passes the bytes of the plugin protocol between the second connection and the plugin.
async fn relay(mut connections: mpsc::Receiver<(Connection, Request)>, mut plugin: ByteStream) {
    while let Some((mut connection, request)) = connections.recv().await {
        if matches!(request, Request::Plugin) {
            // An end that is not clean is an end too.
            let _ = tokio::io::copy_bidirectional(&mut connection, &mut plugin).await;
            return;
        }
    }
}

/// Responds to the controller until the plugin has ended.
async fn attend(
    process: &Process,
    requests: &mut mpsc::Receiver<Request>,
    reports: &mpsc::Sender<Report>,
    terminated: impl Future<Output = ()>,
) -> Result<(), RunnerError> {
    let mut terminated = std::pin::pin!(terminated);
    let mut is_terminating = false;
    loop {
        tokio::select! {
            crash = process.ended() => {
                let status = crash.status.map(ExitStatusExt::into_raw);
                report(reports, Report::Ended { status }).await;
                return Ok(());
            }
            request = requests.recv() => match request {
                Some(Request::Ping) => drop(reports.try_send(Report::Pong { memory: process.memory() })),
                Some(Request::Kill) => process.kill(),
                Some(_) => {}
                None => {
                    process.kill();
                    process.ended().await;
                    return Err(RunnerError::ControllerLost);
                }
            },
            () = &mut terminated, if !is_terminating => {
                is_terminating = true;
                report(reports, Report::Terminating).await;
            }
        }
    }
}

async fn report(reports: &mpsc::Sender<Report>, report: Report) {
    // The receiver is dropped when the connection is lost, which the reader finds.
    let _ = tokio::time::timeout(FAREWELL, reports.send(report)).await;
}

/// Reads requests until the connection is lost. `silent`: how long the first one may take.
async fn read_requests(mut reader: ReadHalf<Connection>, silent: Duration, requests: mpsc::Sender<Request>) {
    let mut limit = silent;
    while let Ok(Ok(request)) = tokio::time::timeout(limit, frame::read(&mut reader)).await {
        limit = LOST_AFTER;
        if requests.send(request).await.is_err() {
            return;
        }
    }
}

async fn write_reports(mut writer: WriteHalf<Connection>, mut reports: mpsc::Receiver<Report>) {
    while let Some(report) = reports.recv().await {
        if frame::write(&mut writer, &report).await.is_err() {
            return;
        }
    }
    // The other end may have closed the connection.
    let _ = tokio::io::AsyncWriteExt::shutdown(&mut writer).await;
}
