//! Sends requests to one API server, with impersonation, short retries, deadlines and cached discovery.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, header};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::Value as Json;
use tokio::sync::OnceCell;

use model::kube_names;
use process::{Clock, connection_error};

use super::api_error::{ApiError, RequestError};
use super::discovery::{ApiKind, Kinds, group_version_path, kinds_of, versions_of};
use super::kubeconfig::inference_problem;
use super::target::group_of;

/// Attempts per request. Longer outages are left to the back-off of the caller.
const ATTEMPTS: u32 = 4;

/// Doubled after each attempt. The pauses sum to less than a second, so that a step does not seem to hang.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// If the server requests a longer pause, the error is returned to the caller.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A response takes a few seconds at most; after this time it counts as lost.
const ANSWER_TIME: Duration = Duration::from_secs(30);

pub(crate) enum Connection {
    Ready(kube::Client),
    /// The kubeconfig of the user, read with the first request.
    Kubeconfig(OnceCell<kube::Client>),
}

/// The identity of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller<'a> {
    /// The process, or the user of the kubeconfig.
    Process,
    /// An impersonated service account.
    ServiceAccount { namespace: &'a str, name: &'a str },
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The path with its query.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<Json>,
    /// Whether to retry the request if it is unknown whether it took effect.
    pub(crate) repeatable: bool,
}

/// A successful response.
#[derive(Clone, Debug)]
pub(crate) struct ServerResponse {
    pub(crate) code: u16,
    pub(crate) body: Json,
}

/// Lists only the metadata of objects.
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

impl ServerResponse {
    /// The token of the next page of a list.
    pub(crate) fn next_page(&self) -> Option<&str> {
        self.body["metadata"]["continue"].as_str().filter(|token| !token.is_empty())
    }
}

impl Call {
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

pub(crate) struct Server {
    connection: Connection,
    clock: Arc<dyn Clock>,
    kinds: Kinds,
    cluster_uid: OnceCell<Arc<str>>,
}

impl Server {
    pub(crate) fn new(connection: Connection, clock: Arc<dyn Clock>) -> Self {
        Self { connection, clock, kinds: Kinds::default(), cluster_uid: OnceCell::new() }
    }

    /// The time until `deadline`; `None` if it has passed.
    pub(crate) fn time_left(&self, deadline: Timestamp) -> Option<Duration> {
        Duration::try_from(deadline.duration_since(self.clock.now())).ok().filter(|left| !left.is_zero())
    }

    pub(crate) fn deadline_in(&self, time: Duration) -> Timestamp {
        let now = self.clock.now();
        jiff::SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok()).unwrap_or(now)
    }

    pub(crate) fn after(&self, wait: Duration) -> Timestamp {
        let wait = jiff::SignedDuration::try_from(wait).unwrap_or(jiff::SignedDuration::MAX);
        self.clock.now().checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    /// Sleeps, but not beyond `deadline`.
    pub(crate) async fn pause(&self, pause: Duration, deadline: Timestamp) -> Result<(), RequestError> {
        let left = self.time_left(deadline).ok_or(RequestError::Timeout)?;
        tokio::time::sleep(pause.min(left)).await;
        if pause >= left { Err(RequestError::Timeout) } else { Ok(()) }
    }

    /// Sends a request with retries.
    pub(crate) async fn call(
        &self,
        caller: Caller<'_>,
        call: &Call,
        deadline: Timestamp,
    ) -> Result<ServerResponse, RequestError> {
        for attempt in 1..=ATTEMPTS {
            let failure = match self.call_once(caller, call, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let retry_after = match &failure {
                RequestError::Api(api_error) if api_error.is_throttled() => api_error.retry_after,
                RequestError::Api(api_error) if api_error.is_server_error() && call.repeatable => api_error.retry_after,
                RequestError::Unreachable(_) if call.repeatable => None,
                _ => return Err(failure),
            };
            let wait = retry_after.unwrap_or_else(|| model::backoff(attempt, FIRST_PAUSE, LONGEST_PAUSE));
            let too_long = wait > LONGEST_PAUSE || self.time_left(deadline).is_none_or(|left| wait >= left);
            if attempt == ATTEMPTS || too_long {
                return Err(failure);
            }
            tokio::time::sleep(wait).await;
        }
        Err(RequestError::Timeout)
    }

    async fn call_once(
        &self,
        caller: Caller<'_>,
        call: &Call,
        deadline: Timestamp,
    ) -> Result<ServerResponse, RequestError> {
        let left = self.time_left(deadline).ok_or(RequestError::Timeout)?;
        match tokio::time::timeout(left.min(ANSWER_TIME), self.send(caller, call)).await {
            Ok(result) => result,
            Err(_) if left <= ANSWER_TIME => Err(RequestError::Timeout),
            Err(_) => Err(RequestError::Unreachable(format!("no response within {} s", ANSWER_TIME.as_secs()))),
        }
    }

    async fn send(&self, caller: Caller<'_>, call: &Call) -> Result<ServerResponse, RequestError> {
        let request = request(caller, call).map_err(|error| RequestError::Unreachable(error.to_string()))?;
        let response = self
            .client()
            .await?
            .send(request.map(Body::from))
            .await
            .map_err(|error| RequestError::Unreachable(connection_error(&error)))?;
        let code = response.status().as_u16();
        let retry_after =
            response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = response
            .into_body()
            .collect_bytes()
            .await
            .map_err(|error| RequestError::Unreachable(connection_error(&error)))?;
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| serde_json::json!({"message": String::from_utf8_lossy(&bytes).trim()}));
        if (200..300).contains(&code) {
            Ok(ServerResponse { code, body })
        } else {
            Err(RequestError::Api(Box::new(ApiError::new(code, &body, retry_after.map(Duration::from_secs)))))
        }
    }

    /// Reads the kubeconfig on the first call, since many runs need no cluster.
    pub(crate) async fn client(&self) -> Result<&kube::Client, RequestError> {
        match &self.connection {
            Connection::Ready(client) => Ok(client),
            Connection::Kubeconfig(cell) => {
                cell.get_or_try_init(kube::Client::try_default).await.map_err(|error| match &error {
                    kube::Error::InferConfig(error) => RequestError::NoCluster(inference_problem(error)),
                    error => RequestError::Unreachable(one_line(error)),
                })
            }
        }
    }

    /// The UID of the namespace `kube-system`, which identifies the cluster. Cached.
    pub(crate) async fn cluster_uid(&self, deadline: Timestamp) -> Result<Arc<str>, RequestError> {
        let uid = self.cluster_uid.get_or_try_init(|| async {
            let answer = self.call(Caller::Process, &Call::get("/api/v1/namespaces/kube-system"), deadline).await?;
            Ok(Arc::from(answer.body["metadata"]["uid"].as_str().unwrap_or_default()))
        });
        uid.await.cloned()
    }

    /// Looks up a kind; `Ok(None)` if the server does not serve it. Concurrent calls for one API version share a
    /// response.
    pub(crate) async fn kind(
        &self,
        caller: Caller<'_>,
        api_version: &str,
        kind: &str,
        deadline: Timestamp,
    ) -> Result<Option<ApiKind>, RequestError> {
        if let Some(found) = self.kinds.get(api_version, kind) {
            return Ok(Some(found));
        }
        if !kube_names::is_api_version(api_version) {
            return Ok(None);
        }
        let lock = self.kinds.lock_of(api_version);
        let _one_at_a_time = lock.lock().await;
        if let Some(found) = self.kinds.get(api_version, kind) {
            return Ok(Some(found));
        }
        match self.discover(caller, group_version_path(api_version), deadline).await {
            Ok(answer) => {
                self.kinds.put(api_version, kinds_of(api_version, &answer.body));
                Ok(self.kinds.get(api_version, kind))
            }
            Err(RequestError::Api(api_error)) if api_error.code == 404 => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Looks up a kind in any served version of its group, since an object recorded in a version that is no longer
    /// served still exists. `Ok(None)` if the server does not serve the kind, and so has no objects of it.
    pub(crate) async fn kind_in_any_version(
        &self,
        caller: Caller<'_>,
        api_version: &str,
        kind: &str,
        deadline: Timestamp,
    ) -> Result<Option<ApiKind>, RequestError> {
        if let Some(found) = self.kind(caller, api_version, kind, deadline).await? {
            return Ok(Some(found));
        }
        let group = group_of(api_version);
        if group.is_empty() || !kube_names::is_api_version(api_version) {
            return Ok(None);
        }
        let versions = match self.discover(caller, format!("/apis/{group}"), deadline).await {
            Ok(answer) => versions_of(&answer.body),
            Err(RequestError::Api(api_error)) if api_error.code == 404 => Vec::new(),
            Err(failure) => return Err(failure),
        };
        for version in versions {
            if let Some(found) = self.kind(caller, &version, kind, deadline).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Sends a discovery request as the service account, so that the API server attributes it to the tenant. If the
    /// service account is not allowed to discover, the controller asks: the response holds nothing of a tenant.
    async fn discover(
        &self,
        caller: Caller<'_>,
        path: String,
        deadline: Timestamp,
    ) -> Result<ServerResponse, RequestError> {
        let call = Call::get(path);
        match self.call(caller, &call, deadline).await {
            Err(RequestError::Api(api_error)) if matches!(api_error.code, 401 | 403) => {
                self.call(Caller::Process, &call, deadline).await
            }
            answer => answer,
        }
    }

    /// Invalidates the cached kind after the server rejected its path.
    pub(crate) fn forget_kind(&self, kind: &ApiKind) {
        self.kinds.forget(&kind.api_version);
    }
}

/// Builds the HTTP request with the impersonation header.
pub(crate) fn request(caller: Caller<'_>, call: &Call) -> Result<Request<Vec<u8>>, http::Error> {
    let body = call.body.as_ref().map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let mut request = Request::builder()
        .method(call.method.clone())
        .uri(&call.path)
        .header(header::ACCEPT, call.accept)
        .header(header::CONTENT_TYPE, call.content_type);
    if let Caller::ServiceAccount { namespace, name } = caller {
        // Without `Impersonate-Group`, the server adds the groups of service accounts. Setting them would require the
        // right to impersonate groups, which grants every right in the cluster.
        request = request.header("Impersonate-User", format!("system:serviceaccount:{namespace}:{name}"));
    }
    request.body(body)
}

/// Formats an error with its causes on one line.
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
        let caller = Caller::ServiceAccount { namespace: "shop", name: "deployer" };
        let request = request(caller, &Call::get("/api/v1")).unwrap();
        assert_eq!(request.headers()["Impersonate-User"], "system:serviceaccount:shop:deployer");
        assert!(request.headers().get("Impersonate-Group").is_none());
        let request = super::request(Caller::Process, &Call::get("/api/v1")).unwrap();
        assert!(request.headers().get("Impersonate-User").is_none());
    }
}
