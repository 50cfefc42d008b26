//! One plugin that is connected: how a call is made, bounded, and told apart when it fails.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::process::lock;

use super::messages::{Empty, HealthAnswer, HealthRequest, StdioData, StopResponse};
use super::method::{HEALTH, Method, SHUTDOWN, STOP_PROVIDER, STREAM_STDIO};
use super::output::Output;
use super::process::Process;
use super::reattach::ReattachTarget;
use super::start::{Launched, launch};
use super::transport::{connect, is_broken, reason, stream, unary};
use super::{Launch, Limits, Mask, PluginError, Protocol, StartError};

/// How long a broken connection may be ahead of the end of its process, and an answer behind it.
const AFTERMATH: Duration = Duration::from_secs(1);

/// How long a plugin has to end by itself. It takes milliseconds; Terraform waits as long.
const GOODBYE: Duration = Duration::from_secs(2);

/// How long a plugin has to say that it lives. It does so without doing anything.
const LIFE_SIGN: Duration = Duration::from_secs(5);

/// How often it is looked at calls that last too long.
const LOOK: Duration = Duration::from_secs(1);

/// The calls that change something.
#[derive(Debug, Default)]
struct Applies {
    running: usize,
    /// Those of them that are past their limit.
    late: usize,
    /// When the provider was asked to give them up.
    asked: Option<Instant>,
}

/// One of them, as long as it runs.
struct Apply<'a> {
    connection: &'a Connection,
    late: bool,
}

impl<'a> Apply<'a> {
    fn begin(connection: &'a Connection) -> Self {
        lock(&connection.applies).running += 1;
        Self { connection, late: false }
    }

    fn is_late(&mut self) {
        lock(&self.connection.applies).late += 1;
        self.late = true;
    }
}

impl Drop for Apply<'_> {
    fn drop(&mut self) {
        let mut applies = lock(&self.connection.applies);
        applies.running -= 1;
        applies.late -= usize::from(self.late);
    }
}

/// A plugin that is connected. Its process goes with the last owner.
pub(super) struct Connection {
    pub(super) name: String,
    pub(super) protocol: Protocol,
    pub(super) limits: Limits,
    pub(super) deferral_allowed: bool,
    channel: Channel,
    /// `None` for one that somebody else started.
    process: Option<Process>,
    mask: Mask,
    permits: Semaphore,
    broken: AtomicBool,
    retired: AtomicBool,
    stopped: AtomicBool,
    applies: Mutex<Applies>,
    /// Calls that go on when nobody waits for them, and the plugin's standard output.
    tasks: Mutex<JoinSet<()>>,
}

impl Connection {
    /// Starts a plugin.
    pub(super) async fn start(options: &Launch) -> Result<Self, PluginError> {
        let Launched { process, output, protocol, channel } = launch(options).await?;
        let connection = Self::new(options, protocol, channel.clone(), Some(process));
        connection.detach(read_stdio(channel, output));
        Ok(connection)
    }

    /// Connects to a plugin that somebody else started. Of `options` only what is about calls has a meaning.
    pub(super) async fn reattach(options: &Launch, target: &ReattachTarget) -> Result<Self, PluginError> {
        let channel = connect(&target.address, None).await.map_err(|error| PluginError::Start {
            provider: options.name.clone(),
            why: StartError::Connect(error.to_string()),
        })?;
        Ok(Self::new(options, target.protocol, channel, None))
    }

    fn new(options: &Launch, protocol: Protocol, channel: Channel, process: Option<Process>) -> Self {
        Self {
            name: options.name.clone(),
            protocol,
            limits: options.limits,
            deferral_allowed: options.deferral_allowed,
            channel,
            process,
            mask: Arc::clone(&options.mask),
            permits: Semaphore::new(options.limits.in_flight.max(1)),
            broken: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            applies: Mutex::default(),
            tasks: Mutex::default(),
        }
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Whether calls have a chance.
    pub(super) fn is_alive(&self) -> bool {
        let ended = self.process.as_ref().is_some_and(|process| process.crash().is_some());
        !ended && !self.broken.load(Ordering::Relaxed)
    }

    /// Whether no call runs in it.
    pub(super) fn is_idle(&self) -> bool {
        self.permits.available_permits() == self.limits.in_flight.max(1)
    }

    /// What to tell somebody who finds that it is gone.
    pub(super) fn last_error(&self) -> PluginError {
        let crash = self.process.as_ref().and_then(Process::crash).unwrap_or_default();
        PluginError::Crashed { provider: self.name.clone(), call: "an earlier call", crash }
    }

    /// Makes a call that ends when nobody waits for it any more.
    pub(super) async fn call<Q, A>(
        self: &Arc<Self>,
        method: Method,
        request: Q,
        limit: Duration,
    ) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = self.exchange(method, request);
        match tokio::time::timeout(limit, call).await {
            Ok(answer) => answer,
            Err(_) => {
                self.doubt();
                Err(self.timed_out(method, limit))
            }
        }
    }

    /// Makes a call that takes no place and so waits for no other call.
    pub(super) async fn call_past_others<Q, A>(
        &self,
        method: Method,
        request: Q,
        limit: Duration,
    ) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = self.exchange_at_once(method, request);
        tokio::time::timeout(limit, call).await.unwrap_or_else(|_| Err(self.timed_out(method, limit)))
    }

    /// Makes a call whose answer is not given up: it ends when the provider has answered, or its process is dead. To
    /// cancel it would cancel the provider's work halfway, so it also goes on when nobody waits for it any more. After
    /// `limit` the process gets no new calls, and is asked to give up those that it has ([`Self::hasten`]).
    pub(super) async fn call_to_its_end<Q, A>(
        self: &Arc<Self>,
        method: Method,
        request: Q,
        limit: Duration,
    ) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (sender, answer) = oneshot::channel();
        let connection = Arc::clone(self);
        self.detach(async move {
            let mut apply = Apply::begin(&connection);
            let mut call = std::pin::pin!(connection.exchange_to_its_end(method, request));
            let answer = match tokio::time::timeout(limit, &mut call).await {
                Ok(answer) => answer,
                Err(_) => {
                    apply.is_late();
                    connection.retire();
                    tokio::select! {
                        biased;
                        answer = &mut call => answer,
                        never = connection.hasten() => match never {},
                    }
                }
            };
            drop(apply);
            // The receiver is gone when nobody waits.
            let _ = sender.send(answer);
        });
        // Only the end of the runtime ends the task before it has answered.
        answer.await.unwrap_or_else(|_| Err(self.disconnected(method, "Purlin is stopping".to_owned())))
    }

    /// What is done about calls that last too long, as long as one does. To stop or kill the process concerns all calls in
    /// it, so it is done only once all of them are late: each has its own limit, and new ones go to another process.
    async fn hasten(&self) -> Infallible {
        loop {
            let (all_are_late, asked) = {
                let mut applies = lock(&self.applies);
                let all_are_late = applies.running == applies.late;
                let before = applies.asked;
                if all_are_late {
                    applies.asked.get_or_insert_with(Instant::now);
                }
                (all_are_late, before)
            };
            match asked {
                None if all_are_late => {
                    self.stopped.store(true, Ordering::Relaxed);
                    let stop = self.call_past_others::<_, StopResponse>(STOP_PROVIDER, Empty {}, LIFE_SIGN).await;
                    tracing::warn!(
                        provider = &*self.name,
                        error = stop.err().map(|error| error.to_string()),
                        "calls take longer than their limit; the provider was asked to give them up"
                    );
                }
                Some(asked) if all_are_late && asked.elapsed() >= self.limits.after_stop => {
                    if let Some(process) = &self.process {
                        tracing::error!(
                            provider = &*self.name,
                            "the provider has not given up its calls and is killed; what they did is looked up"
                        );
                        process.kill();
                    }
                }
                _ => {}
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Gives it no new calls: the next one gets a new process.
    fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to give up its calls, since they took too long.
    pub(super) fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether it shall get no new calls, though those that it has may well end.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// After a question that took too long: a process that does not even answer whether it is well gets no new calls. It
    /// is killed, unless it carries out changes: their answers are not given up for a question. One that does answer may
    /// only be slow with that object.
    fn doubt(self: &Arc<Self>) {
        let connection = Arc::clone(self);
        self.detach(async move {
            let Some(process) = &connection.process else { return };
            let asked =
                unary::<HealthRequest, HealthAnswer>(connection.channel.clone(), HEALTH, HealthRequest::plugin());
            // Whatever it answers, it answers.
            if tokio::time::timeout(LIFE_SIGN, asked).await.is_ok() {
                return;
            }
            connection.retire();
            if lock(&connection.applies).running == 0 {
                tracing::warn!(provider = &*connection.name, "the provider answers nothing any more, and is killed");
                process.kill();
            }
        });
    }

    /// An exchange whose answer counts. Should the connection break while the process lives, the answer cannot come any
    /// more, and the call may go on: the process is ended, so that it is known to be over.
    async fn exchange_to_its_end<Q, A>(&self, method: Method, request: Q) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let answer = self.exchange(method, request).await;
        match (&answer, &self.process) {
            (Err(PluginError::Disconnected { .. }), Some(process)) => {
                process.kill();
                Err(self.crashed(method, process.ended().await))
            }
            _ => answer,
        }
    }

    async fn exchange<Q, A>(&self, method: Method, request: Q) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        // Nobody closes it.
        let _permit = self.permits.acquire().await;
        match self.process.as_ref().and_then(Process::crash) {
            Some(crash) => Err(PluginError::NotCalled { provider: self.name.clone(), call: method.name, crash }),
            None => self.exchange_at_once(method, request).await,
        }
    }

    async fn exchange_at_once<Q, A>(&self, method: Method, request: Q) -> Result<A, PluginError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut answer = std::pin::pin!(unary(self.channel.clone(), method.path(self.protocol), request));
        let answer = match &self.process {
            None => answer.await,
            Some(process) => tokio::select! {
                biased;
                answer = &mut answer => answer,
                crash = process.ended() => {
                    // The answer may have come right before the end, and not have been read.
                    let late = tokio::time::timeout(AFTERMATH, answer).await;
                    late.map_err(|_| self.crashed(method, crash))?
                }
            },
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(status) => Err(self.failure(method, &status).await),
        }
    }

    async fn failure(&self, method: Method, status: &Status) -> PluginError {
        if is_broken(status) {
            self.broken.store(true, Ordering::Relaxed);
            if let Some(process) = &self.process
                && let Ok(crash) = tokio::time::timeout(AFTERMATH, process.ended()).await
            {
                return self.crashed(method, crash);
            }
            return self.disconnected(method, reason(status));
        }
        let (provider, call) = (self.name.clone(), method.name);
        if status.code() == Code::Unimplemented {
            return PluginError::Unimplemented { provider, call };
        }
        PluginError::Failed { provider, call, why: (self.mask)(&reason(status)) }
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

    /// Asks the plugin to end, and ends it when it does not. Calls under way end with it.
    pub(super) async fn close(&self) {
        let Some(process) = &self.process else { return };
        let goodbye = async {
            // It mostly ends before it could answer.
            let _ = unary::<Empty, Empty>(self.channel.clone(), SHUTDOWN, Empty {}).await;
            process.ended().await
        };
        if tokio::time::timeout(GOODBYE, goodbye).await.is_err() {
            process.kill();
            let _ = tokio::time::timeout(AFTERMATH, process.ended()).await;
        }
    }

    fn detach(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

/// Reads what the provider writes to what it takes for its standard output: a pipe that blocks it when it is full.
/// The call is answered with the first message, so nobody may wait for it.
async fn read_stdio(channel: Channel, output: Arc<Output>) {
    let Ok(mut messages) = stream::<Empty, StdioData>(channel, STREAM_STDIO, Empty {}).await else { return };
    while let Ok(Some(message)) = messages.message().await {
        String::from_utf8_lossy(&message.data).lines().for_each(|line| output.line(line));
    }
}
