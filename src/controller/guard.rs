//! Is our own CRD being deleted? Then every Resource is being deleted with it, and what looks like ten thousand wishes
//! to destroy something is one accident. Asked of the API server itself before the first destroy of a batch.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::model::Reason;
use crate::plan::Held;

/// The CRD that holds every Resource.
const CRD: &str = "resources.purlin.dev";
/// For how long an answer serves. Deleting a CRD marks it first and its objects later, so an answer read within the
/// settle window before the destroys is still one from before them.
const FRESH: Duration = Duration::from_secs(1);

/// When it was asked, and what holds destroys.
type Answer = (Instant, Option<Held>);

/// Holds destroys while the CRD is being deleted. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    api: Api<CustomResourceDefinition>,
    last: Arc<Mutex<Option<Answer>>>,
}

impl Guard {
    /// A guard that knows nothing yet.
    pub fn new(client: Client) -> Self {
        Self { api: Api::all(client), last: Arc::default() }
    }

    /// Why nothing may be destroyed now; `None` when it may.
    pub async fn holds(&self) -> Option<Held> {
        let mut last = self.last.lock().await;
        match &*last {
            Some((at, held)) if at.elapsed() < FRESH => held.clone(),
            _ => {
                let held = self.ask().await;
                *last = Some((Instant::now(), held.clone()));
                held
            }
        }
    }

    async fn ask(&self) -> Option<Held> {
        let answer = tokio::time::timeout(Duration::from_secs(10), self.api.get_metadata_opt(CRD)).await;
        // Not knowing, it is held too: a destroy that waits for a moment costs less than one too many.
        let unknown = |why: &str| {
            let message =
                format!("nothing is destroyed, since it is not known whether the CRD {CRD} is being deleted: {why}");
            Held { reason: Reason::CustomResourceDefinitionUnknown, message }
        };
        let held = match answer {
            Ok(Ok(Some(crd))) if crd.metadata.deletion_timestamp.is_none() => return None,
            Ok(Ok(_)) => {
                let message = format!("the CRD {CRD} is being deleted, so nothing is destroyed");
                Held { reason: Reason::CustomResourceDefinitionDeleted, message }
            }
            Ok(Err(error)) => unknown(&error.to_string()),
            Err(_) => unknown("the API server did not answer in time"),
        };
        tracing::warn!(why = held.message, "destroys are held");
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// An API server that gives these answers to requests for the CRD, the last one again and again.
    fn server(answers: &[(u16, serde_json::Value)]) -> Client {
        let answers: Vec<_> = answers.iter().rev().cloned().collect();
        let answers = Arc::new(Mutex::new(answers));
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let mut answers = answers.lock().unwrap();
            let (code, body) = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() }.unwrap();
            let answer = http::Response::builder().status(code);
            let answer = answer.body(kube::client::Body::from(body.to_string().into_bytes())).unwrap();
            std::future::ready(Ok::<_, std::convert::Infallible>(answer))
        });
        Client::new(service, "default")
    }

    fn crd(deleting: bool) -> (u16, serde_json::Value) {
        let mut crd = serde_json::json!({"metadata": {"name": CRD}});
        if deleting {
            crd["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        (200, crd)
    }

    fn failure(code: u16) -> (u16, serde_json::Value) {
        let reason = if code == 404 { "NotFound" } else { "InternalError" };
        (
            code,
            serde_json::json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"}),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_fails_does_not_say_that_the_crd_is_deleted() {
        let guard = Guard::new(server(&[failure(500), crd(false)]));
        let held = guard.holds().await.unwrap();
        assert_eq!(held.reason, Reason::CustomResourceDefinitionUnknown, "{}", held.message);
        tokio::time::advance(FRESH).await;
        assert!(guard.holds().await.is_none(), "it is asked again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_crd_that_goes_or_is_gone_holds_every_destroy() {
        for answer in [crd(true), failure(404)] {
            let held = Guard::new(server(&[answer])).holds().await.unwrap();
            assert_eq!(held.reason, Reason::CustomResourceDefinitionDeleted);
        }
    }
}
