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
        let message = match answer {
            Ok(Ok(Some(crd))) if crd.metadata.deletion_timestamp.is_none() => return None,
            Ok(Ok(_)) => format!("the CRD {CRD} is being deleted, so nothing is destroyed"),
            // Not knowing, it is held too: a destroy that waits for a moment costs less than one too many.
            Ok(Err(error)) => format!("cannot tell whether the CRD {CRD} is being deleted: {error}"),
            Err(_) => format!("cannot tell whether the CRD {CRD} is being deleted: no answer in time"),
        };
        tracing::warn!(why = message, "destroys are held");
        Some(Held { reason: Reason::CustomResourceDefinitionDeleted, message })
    }
}
