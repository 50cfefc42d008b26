//! The network between clients and the server. A [`Network`] decides the fate of each request and each watch event.
//! Everything uses tokio's clock and runs on one thread, so that runs with a paused clock and a seeded network are
//! identical.

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

use super::kinds::Type;
use super::refusal::Refusal;
use super::request::{ApiRequest, Verb};
use super::{Server, ServerResponse, refused};

#[path = "network/stream.rs"]
mod stream;

/// The number of lines that the tape keeps.
const TAPE: usize = 20_000;

/// The data of a request by which a network decides its fate.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    /// The number of the request among those of all clients.
    pub index: u64,
    pub client: Arc<str>,
    /// The impersonated user; empty for the client itself.
    pub user: Arc<str>,
    pub verb: Verb,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub group: String,
    /// The plural of the type.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// The version of the server when the request was made, for [`Outcome::ListAt`].
    pub version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The delay of the request.
    pub before: Duration,
    pub outcome: Outcome,
    /// The delay of the response.
    pub after: Duration,
}

/// What happens to a request after its delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It takes effect, and the client receives the response.
    Deliver,
    /// It does not take effect, and the connection is reset.
    LoseRequest,
    /// It takes effect, and the connection is reset.
    LoseAnswer,
    /// It does not take effect, and the client receives this error.
    Refuse { code: u16, reason: String, message: String, retry_after: Option<u32> },
    /// A read returns the state at this older version. A watch from there delivers the later changes.
    ListAt(u64),
    /// It does not take effect, and the client receives no response.
    Hang,
}

/// The fate of a watch event. The events of a watch keep their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchFate {
    /// It arrives after this time, or after the previous events if they take longer.
    Deliver(Duration),
    /// It arrives together with all events of this time, at its end, with only the last state of each object. An object
    /// that is created and deleted within the time causes no event.
    Coalesce(Duration),
    /// The stream ends before the event, as after its timeout.
    End,
    /// The server reports that the version is too old, and ends the stream.
    Expired,
    /// The connection is reset before the event.
    Reset,
}

impl Fate {
    /// Delivers the request, with a delay of a millisecond in each direction.
    pub fn quick() -> Self {
        Self { before: Duration::from_millis(1), outcome: Outcome::Deliver, after: Duration::from_millis(1) }
    }
}

/// Decides the fate of requests and events. It is called while the server is locked, so it must not use the cluster.
pub trait Network: Send {
    fn request(&mut self, client: &str, request: &RequestInfo) -> Fate;
    /// `event_no` counts the events of each watch.
    fn watch_event(&mut self, client: &str, watch: &RequestInfo, event_no: u64) -> WatchFate;
}

pub struct NoFaults;

impl Network for NoFaults {
    fn request(&mut self, _: &str, _: &RequestInfo) -> Fate {
        Fate::quick()
    }

    fn watch_event(&mut self, _: &str, _: &RequestInfo, _: u64) -> WatchFate {
        WatchFate::Deliver(Duration::from_millis(1))
    }
}

/// A server, its network and its clients. Cheap to clone.
#[derive(Clone)]
pub struct Cluster(Arc<Shared>);

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
    /// The last version of which the watches were notified.
    published: u64,
    changed: BTreeMap<Type, Arc<Notify>>,
}

type ResponseResult = Result<Response<ResponseBody>, io::Error>;
type ResponseBody = Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, io::Error>>>>;

impl Cluster {
    /// Creates a cluster whose clock starts at `epoch` and runs with tokio's.
    pub fn new(epoch: Timestamp, network: impl Network + 'static) -> Self {
        let state = State {
            server: Server::new(epoch),
            network: Box::new(network),
            clients: BTreeMap::new(),
            requests: 0,
            tape: VecDeque::new(),
            published: 0,
            changed: BTreeMap::new(),
        };
        Self(Arc::new(Shared { state: Mutex::new(state), epoch, began: Instant::now() }))
    }

    /// Creates the client of a process. `name` must be unique.
    pub fn client(&self, name: &str) -> kube::Client {
        kube::Client::new(self.connection(name), "default")
    }

    /// Creates the connection of a process, as a tower service. `name` must be unique.
    pub fn connection(&self, name: &str) -> Connection {
        let name: Arc<str> = name.into();
        self.0.state().clients.entry(name.clone()).or_default();
        Connection { shared: self.0.clone(), client: name }
    }

    /// Disconnects a client. Its requests that have not arrived yet never take effect.
    pub fn disconnect(&self, name: &str) {
        let tasks = self.0.state().clients.remove(name);
        // Dropping the tasks may lock the state, so it must be unlocked here.
        drop(tasks);
        self.0.write(&format!("{name} is cut off"));
    }

    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// Calls `act` with the server, and notifies the watches.
    pub fn with<T>(&self, act: impl FnOnce(&mut Server, Timestamp) -> T) -> T {
        let now = self.now();
        let mut state = self.0.state();
        let result = act(&mut state.server, now);
        state.publish();
        result
    }

    /// Writes a line on the tape.
    pub fn note(&self, line: &str) {
        self.0.write(line);
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.0.state().requests
    }

    /// The last lines of the tape.
    pub fn tape(&self) -> Vec<String> {
        self.0.state().tape.iter().cloned().collect()
    }
}

impl State {
    /// Notifies the watches of the types that have changed.
    fn publish(&mut self) {
        let version = self.server.version();
        if version == self.published {
            return;
        }
        let types: BTreeSet<Type> = self.server.changes(self.published).map(|change| change.what.clone()).collect();
        for what in types {
            if let Some(changed) = self.changed.get(&what) {
                changed.notify_waiters();
            }
        }
        self.published = version;
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
        // A test that panics while it reads the state does not change it.
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

    /// Starts the delivery of a request.
    fn start(self: &Arc<Self>, client: &Arc<str>, request: ApiRequest, sender: oneshot::Sender<ResponseResult>) {
        let mut state = self.state();
        let state = &mut *state;
        state.requests += 1;
        let seen = RequestInfo {
            index: state.requests,
            client: client.clone(),
            user: request.user.clone(),
            verb: request.verb,
            path: request.path.clone(),
            query: request.query.clone(),
            group: request.place.group.clone(),
            resource: request.place.plural.clone(),
            subresource: request.place.subresource.clone(),
            namespace: request.place.namespace.clone(),
            name: request.place.name.clone(),
            version: state.server.version(),
        };
        // A disconnected client receives no response: the sender is dropped.
        let Some(tasks) = state.clients.get_mut(client) else { return };
        while tasks.try_join_next().is_some() {}
        let fate = state.network.request(client, &seen);
        tasks.spawn(deliver(self.clone(), seen, request, fate, sender));
    }

    /// Lets the server handle a request, and writes it on the tape.
    fn arrive(&self, seen: &RequestInfo, request: &ApiRequest, at: Option<u64>, remark: &str) -> ServerResponse {
        let (now, elapsed) = (self.now(), self.began.elapsed());
        let mut state = self.state();
        let before = state.server.version();
        let answer = state.server.answer(now, request, at);
        let version = state.server.version();
        let code = match &answer {
            ServerResponse::Full(response) => response.status().as_u16(),
            ServerResponse::Watch(_) => 200,
        };
        let wrote = if version == before { String::new() } else { format!(" rv={version}") };
        let line = format!("{} -> {code}{wrote}{remark}", seen.line());
        state.write(elapsed, &line);
        state.publish();
        answer
    }
}

impl RequestInfo {
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

async fn deliver(
    shared: Arc<Shared>,
    seen: RequestInfo,
    request: ApiRequest,
    fate: Fate,
    sender: oneshot::Sender<ResponseResult>,
) {
    let Fate { before, outcome, after } = fate;
    sleep(before).await;
    let answer = match outcome {
        Outcome::Deliver => Ok(shared.arrive(&seen, &request, None, "")),
        Outcome::ListAt(version) => {
            Ok(shared.arrive(&seen, &request, Some(version), &format!(" (as of rv={version})")))
        }
        Outcome::LoseAnswer => {
            shared.arrive(&seen, &request, None, " (answer lost)");
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
            Ok(ServerResponse::Full(refused(&refusal)))
        }
        Outcome::Hang => {
            shared.write(&format!("{} (hangs)", seen.line()));
            let mut sender = sender;
            sender.closed().await;
            return;
        }
    };
    sleep(after).await;
    // The client may have dropped its request.
    let _ = sender.send(match answer {
        Ok(ServerResponse::Full(response)) => Ok(response.map(|body| Either::Left(Full::new(body)))),
        Ok(ServerResponse::Watch(spec)) => Ok(Response::new(shared.open(seen, spec))),
        Err(()) => Err(reset()),
    });
}

impl Shared {
    /// Opens a stream of events, which ends with the connection.
    fn open(self: &Arc<Self>, seen: RequestInfo, spec: super::WatchSpec) -> ResponseBody {
        let (sender, receiver) = mpsc::unbounded_channel();
        let client = seen.client.clone();
        let mut state = self.state();
        if let Some(tasks) = state.clients.get_mut(&client) {
            tasks.spawn(stream::run(self.clone(), seen, spec, sender));
        }
        // A stream that closes without `End` was disconnected.
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

/// The connection of one client to the server.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    client: Arc<str>,
}

impl Service<Request<Body>> for Connection {
    type Response = Response<ResponseBody>;
    type Error = io::Error;
    type Future = BoxFuture<'static, ResponseResult>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (shared, client) = (self.shared.clone(), self.client.clone());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let request = ApiRequest::of(&Request::from_parts(parts, body));
            let (sender, receiver) = oneshot::channel();
            shared.start(&client, request, sender);
            // The request arrives even if the client drops this future.
            receiver.await.unwrap_or_else(|_| Err(reset()))
        })
    }
}
