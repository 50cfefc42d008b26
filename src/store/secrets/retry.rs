//! One call to the API server: tried again while that can help, and told in one word when it cannot.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::process::Random;

/// A request that has no answer by then is lost: the API server itself gives up after 60 s, but a write that is
/// alive takes milliseconds, and reading back what became of it is cheap.
const REQUEST: Duration = Duration::from_secs(15);

/// The pause after the first failure; it doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How many requests are under way at once. More would only wait in the server, whose two cores these keep busy; and each
/// takes a connection, which costs as much memory as eight settled objects and stays open for a while.
const AT_ONCE: usize = 32;

/// A throttling server that names no time means this one.
const THROTTLED: Duration = Duration::from_secs(1);

/// Turns true when the process has to end: whoever tries for ever gives up.
pub type Stop = watch::Receiver<bool>;

/// For how long a call is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// For so long, before something that can be left undone.
    Bounded(Duration),
    /// Until told to stop: the result of a call must not be lost. A refusal for want of a permission is waited out
    /// too, since somebody may give it back.
    UntilStopped,
}

impl Patience {
    /// Bridges the change of an API server's leader, and leaves a step that cannot begin to the next attempt.
    pub const SHORT: Self = Self::Bounded(Duration::from_secs(30));
}

/// Why a call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The object is not there.
    #[error("it does not exist")]
    NotFound,
    /// The object has another version, or is there already.
    #[error("it was changed by somebody else")]
    Conflict,
    /// The server understands and will not; also what a test inside of a patch says.
    #[error("{0}")]
    Unprocessable(String),
    /// The server will not; trying again does not help.
    #[error("{0}")]
    Refused(String),
    /// It may work at another time. Whether it took effect is not known.
    #[error("{0}")]
    Unavailable(String),
}

impl Failure {
    /// A request that cannot even be built.
    pub(super) fn invalid(error: impl std::fmt::Display) -> Self {
        Self::Refused(error.to_string())
    }
}

/// What one answer means.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Final(Failure),
    /// Not for want of a permission, but no less final to somebody who cannot wait.
    Forbidden(String),
    Again {
        message: String,
        after: Option<Duration>,
    },
}

fn judge(error: &kube::Error) -> Verdict {
    let again = |message: String, after| Verdict::Again { message, after };
    let kube::Error::Api(status) = error else {
        return match error {
            kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
                Verdict::Final(Failure::Refused(error.to_string()))
            }
            // Everything else is about the connection: refused, cut, answered by half.
            _ => again(error.to_string(), None),
        };
    };
    let message = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
    let named = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
    let named = named.map(|seconds| Duration::from_secs(seconds.into()));
    match status.code {
        404 => Verdict::Final(Failure::NotFound),
        409 => Verdict::Final(Failure::Conflict),
        422 => Verdict::Final(Failure::Unprocessable(message)),
        403 => Verdict::Forbidden(message),
        429 => again(message, Some(named.unwrap_or(THROTTLED))),
        // 401: a token that was just renewed is read again by the client.
        401 | 408 | 500.. => again(message, named),
        _ => Verdict::Final(Failure::Refused(message)),
    }
}

/// Sends requests.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client,
    random: Arc<dyn Random>,
    stop: Stop,
    places: Arc<Semaphore>,
}

impl Caller {
    pub(crate) fn new(client: Client, random: Arc<dyn Random>, stop: Stop) -> Self {
        Self { client, random, stop, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    #[cfg(test)]
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends until there is an answer that counts, or the patience is used up.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        request: &http::Request<Vec<u8>>,
        patience: Patience,
    ) -> Result<T, Failure> {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let (message, after) = match self.attempt(request).await {
                Ok(answer) => return Ok(answer),
                Err(Verdict::Final(failure)) => return Err(failure),
                Err(Verdict::Forbidden(message)) if patience == Patience::UntilStopped => {
                    (message, Some(LONGEST_PAUSE))
                }
                Err(Verdict::Forbidden(message)) => return Err(Failure::Refused(message)),
                Err(Verdict::Again { message, after }) => (message, after),
            };
            let wait = self.with_jitter(after.unwrap_or(pause));
            pause = (pause * 2).min(LONGEST_PAUSE);
            let goes_on = match patience {
                Patience::Bounded(bound) => began.elapsed() + wait <= bound,
                Patience::UntilStopped => true,
            };
            if !goes_on || !self.wait(wait, patience).await {
                return Err(Failure::Unavailable(message));
            }
            warn!(path = request.uri().path(), "trying again after: {message}");
        }
    }

    /// The longest pause between two attempts. `false` when the process is to end.
    pub(crate) async fn pause(&self) -> bool {
        self.wait(self.with_jitter(LONGEST_PAUSE), Patience::UntilStopped).await
    }

    async fn attempt<T: DeserializeOwned>(&self, request: &http::Request<Vec<u8>>) -> Result<T, Verdict> {
        // The semaphore is never closed.
        let _place = self.places.acquire().await;
        let unanswered = || Verdict::Again { message: "the API server did not answer in time".to_owned(), after: None };
        let answer = timeout(REQUEST, self.client.request_text(request.clone())).await.map_err(|_| unanswered())?;
        let text = answer.map_err(|error| judge(&error))?;
        // Parsed here and not by the client, which would log an answer that it cannot parse: it may be a record.
        serde_json::from_str(&text).map_err(|error| Verdict::Again {
            message: format!(
                "the API server's answer cannot be read ({:?} in line {})",
                error.classify(),
                error.line()
            ),
            after: None,
        })
    }

    /// Up to half as much again, so that what failed together does not come back together.
    fn with_jitter(&self, wait: Duration) -> Duration {
        let share = u32::try_from(self.random.number() % 512).unwrap_or(0);
        wait + wait * share / 1024
    }

    /// `false` when the process is to end and we would otherwise go on for ever.
    async fn wait(&self, wait: Duration, patience: Patience) -> bool {
        if patience != Patience::UntilStopped {
            sleep(wait).await;
            return true;
        }
        let mut stop = self.stop.clone();
        let stopped = async {
            // A sender that is gone can never ask us to stop.
            if stop.wait_for(|stop| *stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = sleep(wait) => true,
            () = stopped => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn the_code_decides_what_an_answer_means() {
        let api = |code| judge(&kube::Error::Api(Status::failure("why", "Reason").with_code(code).boxed()));
        assert_eq!(api(404), Verdict::Final(Failure::NotFound));
        assert_eq!(api(409), Verdict::Final(Failure::Conflict));
        assert_eq!(api(413), Verdict::Final(Failure::Refused("why".to_owned())));
        assert_eq!(api(403), Verdict::Forbidden("why".to_owned()));
        assert_eq!(api(429), Verdict::Again { message: "why".to_owned(), after: Some(THROTTLED) });
        for code in [401, 500, 503, 504] {
            assert_eq!(api(code), Verdict::Again { message: "why".to_owned(), after: None });
        }
        let cut = kube::Error::Service("connection refused".into());
        assert!(matches!(judge(&cut), Verdict::Again { .. }));
    }
}
