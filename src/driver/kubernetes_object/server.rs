//! Requests to one API server: one connection pool for all service accounts, short retries, deadlines, discovery.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, header};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::Value as Json;
use tokio::sync::{Mutex, OnceCell};

use crate::process::Clock;

use super::discovery::{ApiKind, Kinds, group_version_path, kinds_of, versions_of};
use super::refusal::{Failure, Refusal};
use super::target::group_of;

/// How often one request is sent, the first time included. Longer troubles are for the caller's back-off.
const ATTEMPTS: u32 = 4;

/// Doubled after each attempt; together under a second, so that a step does not seem to hang.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// A server may ask for more patience than this; then the error goes to the caller.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One answer takes a server a few seconds at worst; whatever takes longer is lost.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Where the connection comes from.
pub(crate) enum Connection {
    /// A client that is there.
    Ready(kube::Client),
    /// The kubeconfig of the user, read when the first request is made.
    Kubeconfig(OnceCell<kube::Client>),
}

/// As whom a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who<'a> {
    /// As the process, or the user of the kubeconfig.
    Process,
    /// As a service account of a namespace.
    ServiceAccount { namespace: &'a str, name: &'a str },
}

/// A request. Sent again only where that cannot do harm.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The path with its query.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    /// In which form the answer is wanted.
    pub(crate) accept: &'static str,
    pub(crate) body: Option<Json>,
    /// Whether it may be sent again when it is not known whether it had an effect.
    pub(crate) repeatable: bool,
}

/// An answer of success.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Json,
}

impl Call {
    /// Reads something.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            content_type: "application/json",
            accept: "application/json",
            body: None,
            repeatable: true,
        }
    }
}

/// One API server.
pub(crate) struct Server {
    connection: Connection,
    clock: Arc<dyn Clock>,
    kinds: Kinds,
    /// One look at a time: objects of one kind start together, and one answer serves them all.
    looking: Mutex<()>,
    cluster_uid: OnceCell<Arc<str>>,
}

impl Server {
    pub(crate) fn new(connection: Connection, clock: Arc<dyn Clock>) -> Self {
        Self { connection, clock, kinds: Kinds::default(), looking: Mutex::new(()), cluster_uid: OnceCell::new() }
    }

    /// The time left until `deadline`, unless it has passed.
    pub(crate) fn time_left(&self, deadline: Timestamp) -> Option<Duration> {
        Duration::try_from(deadline.duration_since(self.clock.now())).ok().filter(|left| !left.is_zero())
    }

    /// A deadline so far from now.
    pub(crate) fn soon(&self, time: Duration) -> Timestamp {
        let now = self.clock.now();
        jiff::SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok()).unwrap_or(now)
    }

    /// The time a while from now.
    pub(crate) fn after(&self, wait: Duration) -> Timestamp {
        let wait = jiff::SignedDuration::try_from(wait).unwrap_or(jiff::SignedDuration::MAX);
        self.clock.now().checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    /// Waits, but not beyond `deadline`.
    pub(crate) async fn pause(&self, pause: Duration, deadline: Timestamp) -> Result<(), Failure> {
        let left = self.time_left(deadline).ok_or(Failure::OutOfTime)?;
        tokio::time::sleep(pause.min(left)).await;
        if pause >= left { Err(Failure::OutOfTime) } else { Ok(()) }
    }

    /// Sends a request, again where it makes sense.
    pub(crate) async fn call(&self, who: Who<'_>, call: &Call, deadline: Timestamp) -> Result<Answer, Failure> {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let failure = match self.call_once(who, call, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let asked = match &failure {
                Failure::Refused(refusal) if refusal.is_throttled() => refusal.retry_after,
                Failure::Refused(refusal) if refusal.is_server_trouble() && call.repeatable => refusal.retry_after,
                Failure::Unreachable(_) if call.repeatable => None,
                _ => return Err(failure),
            };
            let wait = asked.unwrap_or(pause);
            let too_long = wait > LONGEST_PAUSE || self.time_left(deadline).is_none_or(|left| wait >= left);
            if attempt == ATTEMPTS || too_long {
                return Err(failure);
            }
            tokio::time::sleep(wait).await;
            pause *= 2;
        }
        Err(Failure::OutOfTime)
    }

    async fn call_once(&self, who: Who<'_>, call: &Call, deadline: Timestamp) -> Result<Answer, Failure> {
        let left = self.time_left(deadline).ok_or(Failure::OutOfTime)?;
        match tokio::time::timeout(left.min(ANSWER_TIME), self.send(who, call)).await {
            Ok(result) => result,
            Err(_) if left <= ANSWER_TIME => Err(Failure::OutOfTime),
            Err(_) => Err(Failure::Unreachable(format!("no answer within {} s", ANSWER_TIME.as_secs()))),
        }
    }

    async fn send(&self, who: Who<'_>, call: &Call) -> Result<Answer, Failure> {
        let request = request(who, call).map_err(|error| Failure::Unreachable(error.to_string()))?;
        let unreachable = |error: kube::Error| Failure::Unreachable(one_line(&error));
        let response = self.client().await?.send(request.map(Body::from)).await.map_err(unreachable)?;
        let code = response.status().as_u16();
        let retry_after =
            response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = response.into_body().collect_bytes().await.map_err(unreachable)?;
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| serde_json::json!({"message": String::from_utf8_lossy(&bytes).trim()}));
        if (200..300).contains(&code) {
            Ok(Answer { code, body })
        } else {
            Err(Failure::Refused(Box::new(Refusal::new(code, &body, retry_after.map(Duration::from_secs)))))
        }
    }

    /// The client. Reading the kubeconfig waits for the first call, since many runs never make one.
    pub(crate) async fn client(&self) -> Result<&kube::Client, Failure> {
        match &self.connection {
            Connection::Ready(client) => Ok(client),
            Connection::Kubeconfig(cell) => cell
                .get_or_try_init(kube::Client::try_default)
                .await
                .map_err(|error| Failure::Unreachable(one_line(&error))),
        }
    }

    /// The UID of the namespace `kube-system`, by which a cluster is known. Asked for once.
    pub(crate) async fn cluster_uid(&self, deadline: Timestamp) -> Result<Arc<str>, Failure> {
        let uid = self.cluster_uid.get_or_try_init(|| async {
            let answer = self.call(Who::Process, &Call::get("/api/v1/namespaces/kube-system"), deadline).await?;
            Ok(Arc::from(answer.body["metadata"]["uid"].as_str().unwrap_or_default()))
        });
        uid.await.cloned()
    }

    /// A kind; `Ok(None)` when the server does not have it (yet).
    pub(crate) async fn kind(
        &self,
        api_version: &str,
        kind: &str,
        deadline: Timestamp,
    ) -> Result<Option<ApiKind>, Failure> {
        if let Some(found) = self.kinds.get(api_version, kind) {
            return Ok(Some(found));
        }
        let _one_at_a_time = self.looking.lock().await;
        if let Some(found) = self.kinds.get(api_version, kind) {
            return Ok(Some(found));
        }
        match self.call(Who::Process, &Call::get(group_version_path(api_version)), deadline).await {
            Ok(answer) => {
                self.kinds.put(api_version, kinds_of(api_version, &answer.body));
                Ok(self.kinds.get(api_version, kind))
            }
            Err(Failure::Refused(refusal)) if refusal.code == 404 => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// A kind in any version that the server has of its group: an object recorded in a version that is no longer
    /// served is still there. `Ok(None)`: the server has no such kind, and so no such objects.
    pub(crate) async fn kind_in_any_version(
        &self,
        api_version: &str,
        kind: &str,
        deadline: Timestamp,
    ) -> Result<Option<ApiKind>, Failure> {
        if let Some(found) = self.kind(api_version, kind, deadline).await? {
            return Ok(Some(found));
        }
        let group = group_of(api_version);
        if group.is_empty() {
            return Ok(None);
        }
        let versions = match self.call(Who::Process, &Call::get(format!("/apis/{group}")), deadline).await {
            Ok(answer) => versions_of(&answer.body),
            Err(Failure::Refused(refusal)) if refusal.code == 404 => Vec::new(),
            Err(failure) => return Err(failure),
        };
        for version in versions {
            if let Some(found) = self.kind(&version, kind, deadline).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The server did not know a path of this kind: it is looked up anew the next time.
    pub(crate) fn forget_kind(&self, kind: &ApiKind) {
        self.kinds.forget(&kind.api_version);
    }
}

/// The request on the wire, with the headers that make it one of the service account.
pub(crate) fn request(who: Who<'_>, call: &Call) -> Result<Request<Vec<u8>>, http::Error> {
    let body = call.body.as_ref().map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let mut request = Request::builder()
        .method(call.method.clone())
        .uri(&call.path)
        .header(header::ACCEPT, call.accept)
        .header(header::CONTENT_TYPE, call.content_type);
    if let Who::ServiceAccount { namespace, name } = who {
        // No groups: the server then adds those that every service account is in. To name them, the controller would
        // need the right to impersonate groups, and with it the way to every right there is.
        request = request.header("Impersonate-User", format!("system:serviceaccount:{namespace}:{name}"));
    }
    request.body(body)
}

/// An error with its causes, on one line.
fn one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_is_impersonated_without_naming_groups() {
        let who = Who::ServiceAccount { namespace: "shop", name: "deployer" };
        let request = request(who, &Call::get("/api/v1")).unwrap();
        assert_eq!(request.headers()["Impersonate-User"], "system:serviceaccount:shop:deployer");
        assert!(request.headers().get("Impersonate-Group").is_none());
        let request = super::request(Who::Process, &Call::get("/api/v1")).unwrap();
        assert!(request.headers().get("Impersonate-User").is_none());
    }
}
