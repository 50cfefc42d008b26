//! Requests to the API server, with retries and a classification of errors.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use process::{Random, Shutdown, request_error};

/// The time limit of a request. The API server itself gives up after 60 s, but a write normally takes milliseconds, and
/// reading back its result is cheap.
const REQUEST: Duration = Duration::from_secs(15);

/// The delay before the first retry; it doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The maximum number of concurrent requests. More would only queue in the server, and each takes a connection that
/// stays open for a while and costs as much memory as eight idle objects.
const AT_ONCE: usize = 32;

/// The delay after a 429 response without `Retry-After`.
const THROTTLED: Duration = Duration::from_secs(1);

/// How long a request is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// For the given time; used before an operation that can be abandoned.
    Bounded(Duration),
    /// Until shutdown, because the result of a call must not be lost. A forbidden request is retried as well, because
    /// an administrator may restore the permission.
    UntilStopped,
}

impl RetryPolicy {
    /// Bridges a leader election of the API server's etcd. After longer failures the step is planned again.
    pub const SHORT: Self = Self::Bounded(Duration::from_secs(30));
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("it does not exist")]
    NotFound,
    /// The namespace was removed by force, and the objects in it still exist. They cannot be changed until there is a
    /// namespace of that name again.
    #[error("the namespace `{0}` does not exist, but the object still does")]
    NamespaceMissing(String),
    /// The object has another version, or exists already.
    #[error("another client changed it")]
    Conflict,
    /// The server rejected the content, or a test of a patch failed.
    #[error("{0}")]
    Unprocessable(String),
    /// The server rejected the request; a retry does not help.
    #[error("{0}")]
    Rejected(String),
    /// A retry may help. It is unknown whether the request took effect.
    #[error("{0}")]
    Unavailable(String),
}

impl RequestError {
    /// A request that cannot be built.
    pub(crate) fn invalid(error: impl std::fmt::Display) -> Self {
        Self::Rejected(error.to_string())
    }
}

/// The classification of an error.
#[derive(Debug, PartialEq, Eq)]
enum ErrorClass {
    Final(RequestError),
    /// A missing permission, which is final unless retries are unlimited.
    Forbidden(String),
    Retry {
        message: String,
        after: Option<Duration>,
    },
}

fn classify(error: &kube::Error) -> ErrorClass {
    let kube::Error::Api(status) = error else {
        return match error {
            kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
                ErrorClass::Final(RequestError::Rejected(error.to_string()))
            }
            // All other errors concern the connection: refused, cut, or an incomplete response.
            _ => ErrorClass::Retry { message: request_error(error), after: None },
        };
    };
    let message = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
    let named = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
    let named = named.map(|seconds| Duration::from_secs(seconds.into()));
    match status.code {
        404 => ErrorClass::Final(match status.details.as_ref().filter(|details| details.kind == "namespaces") {
            Some(details) => RequestError::NamespaceMissing(details.name.clone()),
            None => RequestError::NotFound,
        }),
        409 => ErrorClass::Final(RequestError::Conflict),
        422 => ErrorClass::Final(RequestError::Unprocessable(message)),
        403 => ErrorClass::Forbidden(message),
        429 => ErrorClass::Retry { message, after: Some(named.unwrap_or(THROTTLED)) },
        // 401: the client reads a renewed token again.
        401 | 408 | 500.. => ErrorClass::Retry { message, after: named },
        _ => ErrorClass::Final(RequestError::Rejected(message)),
    }
}

#[derive(Clone)]
pub(crate) struct ApiCaller {
    client: Client,
    random: Arc<dyn Random>,
    stop: Shutdown,
    permits: Arc<Semaphore>,
}

impl ApiCaller {
    pub(crate) fn new(client: Client, random: Arc<dyn Random>, stop: Shutdown) -> Self {
        Self { client, random, stop, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    #[cfg(test)]
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request, with retries as `patience` allows.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        request: &http::Request<Vec<u8>>,
        policy: RetryPolicy,
    ) -> Result<T, RequestError> {
        let began = Instant::now();
        let mut failures = 0;
        loop {
            let (message, after) = match self.attempt(request).await {
                Ok(answer) => return Ok(answer),
                Err(ErrorClass::Final(failure)) => return Err(failure),
                Err(ErrorClass::Forbidden(message)) if policy == RetryPolicy::UntilStopped => {
                    (message, Some(LONGEST_PAUSE))
                }
                Err(ErrorClass::Forbidden(message)) => return Err(RequestError::Rejected(message)),
                Err(ErrorClass::Retry { message, after }) => (message, after),
            };
            failures += 1;
            let pause = model::backoff(failures, FIRST_PAUSE, LONGEST_PAUSE);
            let wait = self.with_jitter(after.unwrap_or(pause));
            let goes_on = match policy {
                RetryPolicy::Bounded(bound) => began.elapsed() + wait <= bound,
                RetryPolicy::UntilStopped => true,
            };
            if !goes_on || !self.wait(wait, policy).await {
                return Err(RequestError::Unavailable(message));
            }
            warn!(path = request.uri().path(), "retrying after an error: {message}");
        }
    }

    /// Waits for the longest retry delay. `false` on shutdown.
    pub(crate) async fn pause(&self) -> bool {
        self.wait(self.with_jitter(LONGEST_PAUSE), RetryPolicy::UntilStopped).await
    }

    async fn attempt<T: DeserializeOwned>(&self, request: &http::Request<Vec<u8>>) -> Result<T, ErrorClass> {
        let _permit = self.permits.acquire().await;
        let unanswered =
            || ErrorClass::Retry { message: "the API server did not respond in time".to_owned(), after: None };
        let answer = timeout(REQUEST, self.client.request_text(request.clone())).await.map_err(|_| unanswered())?;
        let text = answer.map_err(|error| classify(&error))?;
        // Parsed here, because the client would log a response that it cannot parse, and that may be a record.
        serde_json::from_str(&text).map_err(|error| ErrorClass::Retry {
            message: format!(
                "the API server's response cannot be parsed ({:?} in line {})",
                error.classify(),
                error.line()
            ),
            after: None,
        })
    }

    /// Adds up to 50%, so that concurrent retries spread out.
    fn with_jitter(&self, wait: Duration) -> Duration {
        let share = u32::try_from(self.random.number() % 512).unwrap_or(0);
        wait + wait * share / 1024
    }

    /// `false` if the process shuts down during an unlimited retry.
    async fn wait(&self, wait: Duration, policy: RetryPolicy) -> bool {
        if policy != RetryPolicy::UntilStopped {
            sleep(wait).await;
            return true;
        }
        tokio::select! {
            biased;
            () = sleep(wait) => true,
            () = self.stop.triggered() => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn the_status_code_decides_the_error_class() {
        let api = |code| classify(&kube::Error::Api(Status::failure("why", "Reason").with_code(code).boxed()));
        assert_eq!(api(404), ErrorClass::Final(RequestError::NotFound));
        let details = serde_json::from_value(serde_json::json!({ "kind": "namespaces", "name": "shop" })).unwrap();
        let missing = Status::failure("why", "NotFound").with_code(404).with_details(details);
        let missing = classify(&kube::Error::Api(missing.boxed()));
        assert_eq!(missing, ErrorClass::Final(RequestError::NamespaceMissing("shop".to_owned())));
        assert_eq!(api(409), ErrorClass::Final(RequestError::Conflict));
        assert_eq!(api(413), ErrorClass::Final(RequestError::Rejected("why".to_owned())));
        assert_eq!(api(403), ErrorClass::Forbidden("why".to_owned()));
        assert_eq!(api(429), ErrorClass::Retry { message: "why".to_owned(), after: Some(THROTTLED) });
        for code in [401, 500, 503, 504] {
            assert_eq!(api(code), ErrorClass::Retry { message: "why".to_owned(), after: None });
        }
        let cut = kube::Error::Service("connection refused".into());
        assert!(matches!(classify(&cut), ErrorClass::Retry { .. }));
    }
}
