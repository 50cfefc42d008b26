//! The network between clients and the server: what becomes of each request and of each event of a watch is decided by
//! a [`Network`]. Everything waits by tokio's clock and runs on one thread, so a run with a paused clock and a seeded
//! network is the same each time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{Either, Full, StreamBody};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tower::Service;

use super::ask::{Ask, Verb};
use super::kinds::Type;
use super::refusal::Refusal;
use super::{Answer, Server, refused};

#[path = "network/stream.rs"]
mod stream;

/// How many lines of the tape are kept.
const TAPE: usize = 20_000;

/// A request as the network sees it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Counts all requests of all clients.
    pub(crate) index: u64,
    pub(crate) client: Arc<str>,
    /// Who is impersonated; empty for the client itself.
    pub(crate) user: Arc<str>,
    pub(crate) verb: Verb,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) group: String,
    /// The plural.
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The version of the server when the request was made, for [`Outcome::ListAt`].
    pub(crate) version: u64,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// How long it is on its way.
    pub(crate) before: Duration,
    pub(crate) outcome: Outcome,
    /// How long the answer is on its way.
    pub(crate) after: Duration,
}

/// What happens when a request would arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It takes effect and is answered.
    Deliver,
    /// The connection is reset; it never takes effect.
    LoseRequest,
    /// It takes effect; the connection is reset.
    LoseAnswer,
    /// It is refused with this, and takes no effect.
    Refuse { code: u16, reason: String, message: String, retry_after: Option<u32> },
    /// A read is served as of this older version. A watch from there tells what came since.
    ListAt(u64),
    /// It never arrives, and nothing says so.
    Hang,
}

/// What becomes of an event of a watch. Events of one watch never overtake each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchFate {
    /// It arrives after this time, or when those before it have.
    Deliver(Duration),
    /// It and all that happen within this time arrive together in the end, and of each object only the last state; an
    /// object that came and went meanwhile is not seen at all.
    Coalesce(Duration),
    /// The stream ends before it, as after its time.
    End,
    /// The server says that the version is too old, and ends the stream.
    Expired,
    /// The connection is reset before it.
    Reset,
}

impl Fate {
    /// A millisecond there, a millisecond back.
    pub(crate) fn quick() -> Self {
        Self { before: Duration::from_millis(1), outcome: Outcome::Deliver, after: Duration::from_millis(1) }
    }
}

/// Decides. It is called with the server locked, so it must not ask the cluster anything.
pub(crate) trait Network: Send {
    /// The fate of a request.
    fn request(&mut self, client: &str, request: &Seen) -> Fate;
    /// The fate of an event; they are counted for each watch.
    fn watch_event(&mut self, client: &str, watch: &Seen, event_no: u64) -> WatchFate;
}

/// Nothing ever goes wrong.
pub(crate) struct Quiet;

impl Network for Quiet {
    fn request(&mut self, _: &str, _: &Seen) -> Fate {
        Fate::quick()
    }

    fn watch_event(&mut self, _: &str, _: &Seen, _: u64) -> WatchFate {
        WatchFate::Deliver(Duration::from_millis(1))
    }
}

/// A server, its network and its clients. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cluster(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    epoch: Timestamp,
    began: Instant,
}

struct State {
    server: Server,
    network: Box<dyn Network>,
    clients: BTreeMap<Arc<str>, JoinSet<()>>,
    requests: u64,
    tape: VecDeque<String>,
    /// The last version that was told to those who wait for changes.
    told: u64,
    changed: BTreeMap<Type, Arc<Notify>>,
}

type Answered = Result<Response<AnswerBody>, io::Error>;
type AnswerBody = Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, io::Error>>>>;

impl Cluster {
    /// A cluster whose clock shows `epoch` now, and runs with tokio's.
    pub(crate) fn new(epoch: Timestamp, network: impl Network + 'static) -> Self {
        let state = State {
            server: Server::new(epoch),
            network: Box::new(network),
            clients: BTreeMap::new(),
            requests: 0,
            tape: VecDeque::new(),
            told: 0,
            changed: BTreeMap::new(),
        };
        Self(Arc::new(Shared { state: Mutex::new(state), epoch, began: Instant::now() }))
    }

    /// A client for one process. A process that comes after it has another name.
    pub(crate) fn client(&self, name: &str) -> kube::Client {
        kube::Client::new(self.wire(name), "default")
    }

    /// The same as a service.
    pub(crate) fn wire(&self, name: &str) -> Wire {
        let name: Arc<str> = name.into();
        self.0.state().clients.entry(name.clone()).or_default();
        Wire { shared: self.0.clone(), client: name }
    }

    /// Ends all that is under way for a client: what has arrived has taken effect, what has not never does.
    pub(crate) fn disconnect(&self, name: &str) {
        let tasks = self.0.state().clients.remove(name);
        // Dropped when nothing is locked any more: its tasks may lock.
        drop(tasks);
        self.0.write(&format!("{name} is cut off"));
    }

    /// The time, by tokio's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// Does something to the server itself, and lets the watches know.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Server, Timestamp) -> T) -> T {
        let now = self.now();
        let mut state = self.0.state();
        let result = act(&mut state.server, now);
        state.tell();
        result
    }

    /// From now on another one decides.
    pub(crate) fn set_network(&self, network: impl Network + 'static) {
        self.0.state().network = Box::new(network);
    }

    /// Writes a line of one's own on the tape.
    pub(crate) fn note(&self, line: &str) {
        self.0.write(line);
    }

    /// How many requests were made.
    pub(crate) fn requests(&self) -> u64 {
        self.0.state().requests
    }

    /// The last lines of the tape.
    pub(crate) fn tape(&self) -> Vec<String> {
        self.0.state().tape.iter().cloned().collect()
    }
}

impl State {
    /// Wakes those who watch what has changed.
    fn tell(&mut self) {
        let version = self.server.version();
        if version == self.told {
            return;
        }
        let types: BTreeSet<Type> = self.server.changes(self.told).map(|change| change.what.clone()).collect();
        for what in types {
            if let Some(changed) = self.changed.get(&what) {
                changed.notify_waiters();
            }
        }
        self.told = version;
    }

    fn write(&mut self, at: Duration, line: &str) {
        if self.tape.len() >= TAPE {
            self.tape.pop_front();
        }
        self.tape.push_back(format!("{:.3}s {line}", at.as_secs_f64()));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A judge that fails while it looks leaves what it looked at as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.began.elapsed()).expect("no simulation is that long");
        self.epoch.checked_add(elapsed).expect("no simulation is that long")
    }

    fn write(&self, line: &str) {
        let at = self.began.elapsed();
        self.state().write(at, line);
    }

    /// Sends a request on its way.
    fn start(self: &Arc<Self>, client: &Arc<str>, ask: Ask, sender: oneshot::Sender<Answered>) {
        let mut state = self.state();
        let state = &mut *state;
        state.requests += 1;
        let seen = Seen {
            index: state.requests,
            client: client.clone(),
            user: ask.user.clone(),
            verb: ask.verb,
            path: ask.path.clone(),
            query: ask.query.clone(),
            group: ask.place.group.clone(),
            resource: ask.place.plural.clone(),
            subresource: ask.place.subresource.clone(),
            namespace: ask.place.namespace.clone(),
            name: ask.place.name.clone(),
            version: state.server.version(),
        };
        // A client that is cut off gets no answer: the sender is dropped.
        let Some(tasks) = state.clients.get_mut(client) else { return };
        while tasks.try_join_next().is_some() {}
        let fate = state.network.request(client, &seen);
        tasks.spawn(deliver(self.clone(), seen, ask, fate, sender));
    }

    /// What the server makes of a request that has arrived.
    fn arrive(&self, seen: &Seen, ask: &Ask, at: Option<u64>, remark: &str) -> Answer {
        let (now, elapsed) = (self.now(), self.began.elapsed());
        let mut state = self.state();
        let before = state.server.version();
        let answer = state.server.answer(now, ask, at);
        let version = state.server.version();
        let code = match &answer {
            Answer::Full(response) => response.status().as_u16(),
            Answer::Watch(_) => 200,
        };
        let wrote = if version == before { String::new() } else { format!(" rv={version}") };
        let line = format!("{} -> {code}{wrote}{remark}", seen.line());
        state.write(elapsed, &line);
        state.tell();
        answer
    }
}

impl Seen {
    /// `a1 PATCH resources/shop/a status`
    fn line(&self) -> String {
        let mut line = format!("{} {}", self.client, self.verb.as_str().to_uppercase());
        line.push(' ');
        if self.resource.is_empty() {
            line.push_str(&self.path);
        }
        let parts = [&self.resource, &self.namespace, &self.name];
        line.push_str(&parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("/"));
        if !self.subresource.is_empty() {
            line.push_str(&format!(" {}", self.subresource));
        }
        for name in ["dryRun", "resourceVersion", "continue", "labelSelector", "fieldSelector"] {
            if let Some(value) = self.query.get(name) {
                line.push_str(&format!(" {name}={value}"));
            }
        }
        if let Some((_, account)) = self.user.rsplit_once(':') {
            line.push_str(&format!(" as {account}"));
        }
        line
    }
}

async fn deliver(shared: Arc<Shared>, seen: Seen, ask: Ask, fate: Fate, sender: oneshot::Sender<Answered>) {
    let Fate { before, outcome, after } = fate;
    sleep(before).await;
    let answer = match outcome {
        Outcome::Deliver => Ok(shared.arrive(&seen, &ask, None, "")),
        Outcome::ListAt(version) => Ok(shared.arrive(&seen, &ask, Some(version), &format!(" (as of rv={version})"))),
        Outcome::LoseAnswer => {
            shared.arrive(&seen, &ask, None, " (answer lost)");
            Err(())
        }
        Outcome::LoseRequest => {
            shared.write(&format!("{} (request lost)", seen.line()));
            Err(())
        }
        Outcome::Refuse { code, reason, message, retry_after } => {
            shared.write(&format!("{} -> {code} {message}", seen.line()));
            let refusal = Refusal::new(code, &reason, message);
            let refusal = match retry_after {
                Some(seconds) => refusal.with_details(json!({"retryAfterSeconds": seconds})),
                None => refusal,
            };
            Ok(Answer::Full(refused(&refusal)))
        }
        Outcome::Hang => {
            shared.write(&format!("{} (hangs)", seen.line()));
            let mut sender = sender;
            sender.closed().await;
            return;
        }
    };
    sleep(after).await;
    // Whoever asked may have given up.
    let _ = sender.send(match answer {
        Ok(Answer::Full(response)) => Ok(response.map(|body| Either::Left(Full::new(body)))),
        Ok(Answer::Watch(spec)) => Ok(Response::new(shared.open(seen, spec))),
        Err(()) => Err(reset()),
    });
}

impl Shared {
    /// A stream of events, which ends with the connection.
    fn open(self: &Arc<Self>, seen: Seen, spec: super::WatchSpec) -> AnswerBody {
        let (sender, receiver) = mpsc::unbounded_channel();
        let client = seen.client.clone();
        let mut state = self.state();
        if let Some(tasks) = state.clients.get_mut(&client) {
            tasks.spawn(stream::run(self.clone(), seen, spec, sender));
        }
        // A stream that nobody ended was cut.
        let frames = futures::stream::unfold(Some(receiver), |receiver| async move {
            let mut receiver: mpsc::UnboundedReceiver<stream::Piece> = receiver?;
            match receiver.recv().await {
                Some(stream::Piece::Line(line)) => Some((Ok(Frame::data(line)), Some(receiver))),
                Some(stream::Piece::End) => None,
                None => Some((Err(reset()), None)),
            }
        });
        Either::Right(StreamBody::new(frames.boxed()))
    }
}

fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

/// The way of one client to the server.
#[derive(Clone)]
pub(crate) struct Wire {
    shared: Arc<Shared>,
    client: Arc<str>,
}

impl Service<Request<Body>> for Wire {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Answered>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (shared, client) = (self.shared.clone(), self.client.clone());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let ask = Ask::of(&Request::from_parts(parts, body));
            let (sender, receiver) = oneshot::channel();
            shared.start(&client, ask, sender);
            // What is on its way arrives, whether anybody still waits for the answer or not.
            receiver.await.unwrap_or_else(|_| Err(reset()))
        })
    }
}
