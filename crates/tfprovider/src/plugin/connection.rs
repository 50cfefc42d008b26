//! The connection to a plugin: sends calls, enforces time limits and classifies failures.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use prost::Message;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tracing::Instrument as _;

use process::lock;

use super::messages::{Empty, HealthRequest, HealthResponse, StdioData, StopResponse};
use super::method::{HEALTH, Method, SHUTDOWN, STOP_PROVIDER, STREAM_STDIO};
use super::observer::{Observer, RunningCalls, observe};
use super::output::Output;
use super::plugin_process::PluginProcess;
use super::reattach::ReattachTarget;
use super::remote::{self, RemoteStart, RunnerHost, StartedRemote};
use super::start::{StartedPlugin, launch};
use super::transport::{MAX_MESSAGE_SIZE, MAX_SMALL_MESSAGE_SIZE, channel, connect, is_broken, reason, stream, unary};
use super::{Launch, Limits, Mask, PluginError, Protocol, StartError};

/// How long to wait for a process to exit after its connection broke, and for a response after the process exited.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// How long a plugin has to shut down. It takes milliseconds; Terraform waits as long.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a plugin has to respond to a health check, which does no work.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// How often overdue calls are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The running apply calls.
#[derive(Debug, Default)]
struct ApplyCounts {
    running: usize,
    /// The calls that exceeded their time limit.
    overdue: usize,
    /// When the provider was requested to stop.
    stop_requested_at: Option<Instant>,
}

/// Counts a running apply call until it is dropped.
struct ApplyGuard<'a> {
    connection: &'a Connection,
    overdue: bool,
}

impl<'a> ApplyGuard<'a> {
    fn begin(connection: &'a Connection) -> Self {
        lock(&connection.applies).running += 1;
        Self { connection, overdue: false }
    }

    fn mark_overdue(&mut self) {
        lock(&self.connection.applies).overdue += 1;
        self.overdue = true;
    }
}

impl Drop for ApplyGuard<'_> {
    fn drop(&mut self) {
        let mut applies = lock(&self.connection.applies);
        applies.running -= 1;
        applies.overdue -= usize::from(self.overdue);
    }
}

/// A connected plugin. Its process is killed on drop.
pub struct Connection {
    pub name: String,
    pub protocol: Protocol,
    pub limits: Limits,
    pub deferral_allowed: bool,
    channel: Channel,
    /// `None` if Purlin did not start the process.
    process: Option<PluginProcess>,
    mask: Mask,
    observer: Arc<dyn Observer>,
    running: Arc<RunningCalls>,
    permits: Semaphore,
    broken: AtomicBool,
    retired: AtomicBool,
    stopped: AtomicBool,
    applies: Mutex<ApplyCounts>,
    /// Detached calls, and the reader of the plugin's standard output.
    tasks: Mutex<JoinSet<()>>,
}

impl Connection {
    pub async fn start(options: &Launch) -> Result<Self, PluginError> {
        let running = Arc::default();
        let StartedPlugin { process, output, protocol, channel } = launch(options, &running).await?;
        let connection =
            Self { running, ..Self::new(options, protocol, channel.clone(), Some(PluginProcess::Local(process))) };
        connection.spawn(read_stdio(channel, output));
        Ok(connection)
    }

    /// Starts a plugin in a runner. The future must be polled to its end.
    pub async fn start_remote(
        options: &Launch,
        remote: &RemoteStart<'_>,
        host: Arc<dyn RunnerHost>,
    ) -> Result<(Self, BoxFuture<'static, ()>), PluginError> {
        let running: Arc<RunningCalls> = Arc::default();
        let output = Arc::new(Output::new(options.name.clone(), Arc::clone(&options.mask), Arc::clone(&running)));
        let began = Instant::now();
        let started = remote::start(options, remote, Arc::clone(&output), host).await;
        options.observer.started(&options.name, started.is_ok(), began.elapsed());
        let StartedRemote { process, protocol, channel, follow } =
            started.map_err(|why| PluginError::Start { provider: options.name.clone(), why })?;
        let process = Some(PluginProcess::Remote(process));
        let connection = Self { running, ..Self::new(options, protocol, channel.clone(), process) };
        connection.spawn(read_stdio(channel, output));
        Ok((connection, follow))
    }

    /// Connects to a plugin that runs already. Only the options for calls are used.
    pub async fn reattach(options: &Launch, target: &ReattachTarget) -> Result<Self, PluginError> {
        let connecting = async { channel(connect(&target.address, None).await?).await };
        let channel = connecting.await.map_err(|error| PluginError::Start {
            provider: options.name.clone(),
            why: StartError::Connect(error.to_string()),
        })?;
        Ok(Self::new(options, target.protocol, channel, None))
    }

    fn new(options: &Launch, protocol: Protocol, channel: Channel, process: Option<PluginProcess>) -> Self {
        Self {
            name: options.name.clone(),
            protocol,
            limits: options.limits,
            deferral_allowed: options.deferral_allowed,
            channel,
            process,
            mask: Arc::clone(&options.mask),
            observer: Arc::clone(&options.observer),
            running: Arc::default(),
            permits: Semaphore::new(options.limits.in_flight.max(1)),
            broken: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            applies: Mutex::default(),
            tasks: Mutex::default(),
        }
    }

    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().and_then(PluginProcess::id)
    }

    pub fn memory(&self) -> Option<u64> {
        self.process.as_ref().and_then(PluginProcess::memory)
    }

    /// Whether the process runs and the connection works.
    pub fn is_alive(&self) -> bool {
        let ended = self.process.as_ref().is_some_and(|process| process.crash().is_some());
        !ended && !self.broken.load(Ordering::Relaxed)
    }

    pub fn is_idle(&self) -> bool {
        self.permits.available_permits() == self.limits.in_flight.max(1)
    }

    /// Reports that the process has exited although nothing ended it, or was killed because it did not respond.
    pub fn report_crash(&self) {
        self.observer.crashed(&self.name);
    }

    /// The error for callers that find the process dead.
    pub fn last_error(&self) -> PluginError {
        let crash = self.process.as_ref().and_then(PluginProcess::crash).unwrap_or_default();
        PluginError::Crashed { provider: self.name.clone(), call: "an earlier call", crash }
    }

    /// Sends a call that is canceled when the future is dropped.
    pub async fn call<Q, A>(self: &Arc<Self>, method: Method, request: Q, limit: Duration) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = async {
            match tokio::time::timeout(limit, self.exchange(method, request)).await {
                Ok(response) => response,
                Err(_) => {
                    self.check_health();
                    Err(self.timed_out(method, limit))
                }
            }
        };
        observe(&*self.observer, &self.name, method, call).await
    }

    /// Sends a call that does not count against the limit of concurrent calls.
    pub async fn call_without_permit<Q, A>(&self, method: Method, request: Q, limit: Duration) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = self.exchange_without_permit(method, request);
        tokio::time::timeout(limit, call).await.unwrap_or_else(|_| Err(self.timed_out(method, limit)))
    }

    /// Sends a call that ends only when the provider has responded or its process has exited. Canceling it would
    /// interrupt the provider's work, so it continues even if the future is dropped. After `limit` the process gets no
    /// new calls, and its running calls are stopped ([`Self::stop_overdue_calls`]).
    pub async fn call_to_completion<Q, A>(
        self: &Arc<Self>,
        method: Method,
        request: Q,
        limit: Duration,
    ) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (sender, response) = oneshot::channel();
        let connection = Arc::clone(self);
        let work = async move {
            let mut apply = ApplyGuard::begin(&connection);
            let call = connection.exchange_to_completion(method, request);
            let mut call = std::pin::pin!(observe(&*connection.observer, &connection.name, method, call));
            let response = match tokio::time::timeout(limit, &mut call).await {
                Ok(response) => response,
                Err(_) => {
                    apply.mark_overdue();
                    connection.retire();
                    tokio::select! {
                        biased;
                        response = &mut call => response,
                        never = connection.stop_overdue_calls() => match never {},
                    }
                }
            };
            drop(apply);
            // The receiver is dropped if the caller no longer waits.
            let _ = sender.send(response);
        };
        self.spawn(work.in_current_span());
        // The task ends without a response only when the runtime shuts down.
        response.await.unwrap_or_else(|_| Err(self.disconnected(method, "Purlin is shutting down".to_owned())))
    }

    /// Stops overdue calls, as long as it is polled. Stopping or killing the process affects all its calls, so this
    /// happens only when all of them are overdue: each has its own limit, and new calls go to another process.
    async fn stop_overdue_calls(&self) -> Infallible {
        loop {
            let (all_are_late, asked) = {
                let mut applies = lock(&self.applies);
                let all_are_late = applies.running == applies.overdue;
                let before = applies.stop_requested_at;
                if all_are_late {
                    applies.stop_requested_at.get_or_insert_with(Instant::now);
                }
                (all_are_late, before)
            };
            match asked {
                None if all_are_late => {
                    self.stopped.store(true, Ordering::Relaxed);
                    let stop =
                        self.call_without_permit::<_, StopResponse>(STOP_PROVIDER, Empty {}, HEALTH_TIMEOUT).await;
                    tracing::warn!(
                        provider = &*self.name,
                        error = stop.err().map(|error| error.to_string()),
                        "calls exceeded their time limit; the provider was requested to stop them"
                    );
                }
                Some(asked) if all_are_late && asked.elapsed() >= self.limits.stop_grace_period => {
                    if let Some(process) = &self.process {
                        tracing::error!(
                            provider = &*self.name,
                            "the provider did not stop its calls in time and is killed; their outcome will be resolved"
                        );
                        process.kill();
                    }
                }
                _ => {}
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Sends no new calls to this process: the next call starts a new one.
    fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Whether the provider was requested to stop overdue calls.
    pub fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether the provider must get no new calls. Its running calls may still finish.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed) || self.process.as_ref().is_some_and(PluginProcess::is_leaving)
    }

    /// Whether the provider ends soon and no other process can take over.
    pub fn is_last(&self) -> bool {
        self.process.as_ref().is_some_and(PluginProcess::is_last)
    }

    pub fn is_remote(&self) -> bool {
        self.process.as_ref().is_some_and(PluginProcess::is_remote)
    }

    /// Checks the health of a provider after a call timed out. A process that does not respond gets no new calls and is
    /// killed unless apply calls run in it, whose responses matter more. A process that responds may just be slow with
    /// one object.
    fn check_health(self: &Arc<Self>) {
        let connection = Arc::clone(self);
        let check = async move {
            let Some(process) = &connection.process else { return };
            let asked = unary::<HealthRequest, HealthResponse>(
                connection.channel.clone(),
                HEALTH,
                HealthRequest::plugin(),
                MAX_SMALL_MESSAGE_SIZE,
            );
            // Any response, even an error, shows that the process works.
            if tokio::time::timeout(HEALTH_TIMEOUT, asked).await.is_ok() {
                return;
            }
            connection.retire();
            if lock(&connection.applies).running == 0 {
                tracing::warn!(provider = &*connection.name, "the provider no longer responds and is killed");
                process.kill();
            }
        };
        self.spawn(check.in_current_span());
    }

    /// If the connection breaks while the process runs, the response is lost but the call may continue. The process is
    /// then killed, so the call is known to have ended.
    async fn exchange_to_completion<Q, A>(&self, method: Method, request: Q) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let response = self.exchange(method, request).await;
        match (&response, &self.process) {
            (Err(PluginError::Disconnected { .. }), Some(process)) => {
                process.kill();
                Err(self.crashed(method, process.ended().await))
            }
            _ => response,
        }
    }

    async fn exchange<Q, A>(&self, method: Method, request: Q) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        match self.process.as_ref().and_then(PluginProcess::crash) {
            Some(crash) => Err(PluginError::NotCalled { provider: self.name.clone(), call: method.name, crash }),
            None => self.exchange_without_permit(method, request).await,
        }
    }

    async fn exchange_without_permit<Q, A>(&self, method: Method, request: Q) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let _running = self.running.begin();
        // A runner can have any other program, and no schema is read from it.
        let limit = if method.returns_schema() && !self.is_remote() { MAX_MESSAGE_SIZE } else { self.limits.response };
        let mut response = std::pin::pin!(unary(self.channel.clone(), method.path(self.protocol), request, limit));
        let response = match &self.process {
            None => response.await,
            Some(process) => tokio::select! {
                biased;
                response = &mut response => response,
                crash = process.ended() => {
                    // The response may have arrived just before the exit and not have been read yet.
                    let late = tokio::time::timeout(EXIT_GRACE_PERIOD, response).await;
                    late.map_err(|_| self.crashed(method, crash))?
                }
            },
        };
        match response {
            Ok(response) => Ok(response),
            Err(status) => Err(self.failure(method, &status).await),
        }
    }

    async fn failure(&self, method: Method, status: &Status) -> PluginError {
        if is_broken(status) {
            self.broken.store(true, Ordering::Relaxed);
            if let Some(process) = &self.process
                && let Ok(crash) = tokio::time::timeout(EXIT_GRACE_PERIOD, process.ended()).await
            {
                return self.crashed(method, crash);
            }
            return self.disconnected(method, reason(status));
        }
        let (provider, call) = (self.name.clone(), method.name);
        if status.code() == Code::Unimplemented {
            return PluginError::Unimplemented { provider, call };
        }
        let why = (self.mask)(&reason(status));
        match status.code() {
            Code::OutOfRange => PluginError::LargeResponse { provider, call, why },
            _ => PluginError::Failed { provider, call, why },
        }
    }

    fn crashed(&self, method: Method, crash: super::Crash) -> PluginError {
        PluginError::Crashed { provider: self.name.clone(), call: method.name, crash }
    }

    fn disconnected(&self, method: Method, why: String) -> PluginError {
        PluginError::Disconnected { provider: self.name.clone(), call: method.name, why }
    }

    fn timed_out(&self, method: Method, limit: Duration) -> PluginError {
        PluginError::TimedOut { provider: self.name.clone(), call: method.name, limit }
    }

    /// Shuts the plugin down and kills it if it does not exit. Running calls fail.
    pub async fn close(&self) {
        let Some(process) = &self.process else { return };
        let goodbye = async {
            // It usually exits before it responds.
            let _ = unary::<Empty, Empty>(self.channel.clone(), SHUTDOWN, Empty {}, MAX_SMALL_MESSAGE_SIZE).await;
            process.ended().await
        };
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, goodbye).await.is_err() {
            process.kill();
            let _ = tokio::time::timeout(EXIT_GRACE_PERIOD, process.ended()).await;
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

/// Reads the provider's redirected standard output, a pipe that blocks the provider when it is full. The call returns
/// only with the first message, so it must run in the background.
async fn read_stdio(channel: Channel, output: Arc<Output>) {
    let Ok(mut messages) = stream::<Empty, StdioData>(channel, STREAM_STDIO, Empty {}).await else { return };
    while let Ok(Some(message)) = messages.message().await {
        String::from_utf8_lossy(&message.data).lines().for_each(|line| output.line(line));
    }
}
