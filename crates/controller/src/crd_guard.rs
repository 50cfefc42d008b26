//! Checks whether the CRD of Resources or of Modules is being deleted, which deletes all of them. Ten thousand deletion requests
//! are then one accident, not the desired state. The API server is queried before the first destroy of a batch.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use tokio::sync::Mutex;
use tokio::time::Instant;

use engine::plan::ObjectBlock;
use model::Reason;

/// The kinds whose objects have something to destroy.
const CRDS: [&str; 2] = ["resources.purlin.dev", "modules.purlin.dev"];
/// How long a response is valid. Deleting a CRD marks it before its objects, so a response from within the debounce is
/// still from before the destroys.
const FRESH: Duration = Duration::from_secs(1);

/// The time of the query, and why destroys are held.
type CachedResponse = (Instant, Option<ObjectBlock>);

/// Holds destroys while the CRD is being deleted. Cheap to clone.
#[derive(Clone)]
pub struct CrdGuard {
    api: Api<CustomResourceDefinition>,
    last: Arc<Mutex<Option<CachedResponse>>>,
}

impl CrdGuard {
    pub fn new(client: Client) -> Self {
        Self { api: Api::all(client), last: Arc::default() }
    }

    /// Why nothing may be destroyed now; `None`: destroys are allowed.
    pub async fn hold(&self) -> Option<ObjectBlock> {
        let mut last = self.last.lock().await;
        match &*last {
            Some((at, held)) if at.elapsed() < FRESH => held.clone(),
            _ => {
                let mut held = None;
                for crd in CRDS {
                    held = held.or(self.query(crd).await);
                }
                *last = Some((Instant::now(), held.clone()));
                held
            }
        }
    }

    async fn query(&self, crd: &str) -> Option<ObjectBlock> {
        let answer = tokio::time::timeout(Duration::from_secs(10), self.api.get_metadata_opt(crd)).await;
        let held = match answer {
            Ok(Ok(Some(found))) if found.metadata.deletion_timestamp.is_none() => return None,
            Ok(Ok(_)) => {
                let message = format!("the CRD {crd} is being deleted, so no object is destroyed");
                ObjectBlock { reason: Reason::CustomResourceDefinitionTerminating, message }
            }
            Ok(Err(error)) => unknown(crd, &error.to_string()),
            Err(_) => unknown(crd, "the API server did not respond in time"),
        };
        tracing::warn!(why = held.message, "holding destroys");
        Some(held)
    }
}

/// An unknown result holds destroys too: a short wait costs less than a wrong destroy.
fn unknown(crd: &str, why: &str) -> ObjectBlock {
    let message =
        format!("no object is destroyed, because Purlin does not know whether the CRD {crd} is being deleted: {why}");
    ObjectBlock { reason: Reason::CustomResourceDefinitionUnknown, message }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// An API server with these responses to requests for the CRD. The last one repeats.
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
        let mut crd = serde_json::json!({"metadata": {"name": CRDS[0]}});
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
    async fn a_failed_request_does_not_mean_that_the_crd_is_deleted() {
        let guard = CrdGuard::new(server(&[failure(500), crd(false)]));
        let held = guard.hold().await.unwrap();
        assert_eq!(held.reason, Reason::CustomResourceDefinitionUnknown, "{}", held.message);
        tokio::time::advance(FRESH).await;
        assert!(guard.hold().await.is_none(), "the API server is queried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_terminating_or_missing_crd_holds_every_destroy() {
        for answer in [crd(true), failure(404)] {
            let held = CrdGuard::new(server(&[answer])).hold().await.unwrap();
            assert_eq!(held.reason, Reason::CustomResourceDefinitionTerminating);
        }
    }
}
