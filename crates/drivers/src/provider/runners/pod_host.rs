//! A Pod as the place of a runner: ends it, and knows when none of its processes can still run.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Method;
use serde_json::{Value as Json, json};

use super::pod_state::{self, PodState};
use super::{REQUEST_LIMIT, RunnerPods};
use crate::kubernetes_object::api_error::RequestError;
use crate::kubernetes_object::server::{Call, Caller};
use crate::kubernetes_object::wait::ObjectRef;
use model::Namespace;
use tfprovider::plugin::remote::{LOST_AFTER, RunnerHost};

/// How long a runner can outlive the connection to its controller, if the API server does not report it: it kills its plugin after
/// [`LOST_AFTER`], and the rest is for messages that a network delivers late.
const UNSEEN_END: Duration = LOST_AFTER.saturating_mul(3);

/// The time between the signal to the runner and its kill. The object of a Pod exists until the kubelet has confirmed the
/// end of its containers, unless it is deleted with zero seconds.
const GRACE_SECONDS: u32 = 1;

/// A created Pod.
pub struct PodHost {
    pub pods: Arc<RunnerPods>,
    pub namespace: Namespace,
    pub name: String,
    pub uid: String,
    /// The service account that created it.
    pub creator: Arc<str>,
}

impl PodHost {
    pub fn caller(&self) -> Caller<'_> {
        Caller::ServiceAccount { namespace: &self.namespace, name: &self.creator }
    }

    pub fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// The Pod in messages.
    pub fn title(&self) -> String {
        format!("the Pod {}/{}", self.namespace, self.name)
    }

    /// Another Pod with the same name is not this one.
    pub fn own<'a>(&self, pod: Option<&'a Json>) -> Option<&'a Json> {
        pod.filter(|pod| pod["metadata"]["uid"] == *self.uid)
    }

    /// Deletes the Pod. A failure is logged: a runner without its controller ends by itself.
    pub async fn delete(&self) {
        let request = Call {
            method: Method::DELETE,
            path: format!("{}/{}", self.collection(), self.name),
            content_type: "application/json",
            accept: "application/json",
            body: Some(json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": GRACE_SECONDS,
                "preconditions": {"uid": self.uid},
            })),
            repeatable: true,
        };
        let deadline = self.pods.server.after(REQUEST_LIMIT);
        match self.pods.server.call(self.caller(), &request, deadline).await {
            Ok(_) => {}
            Err(RequestError::Api(error)) if matches!(error.code, 404 | 409) => {}
            Err(error) => tracing::warn!(pod = self.name, ?error, "cannot delete the Pod of a provider"),
        }
    }

    /// Deletes the Pod and waits until its containers have ended.
    async fn end_and_wait(&self) -> Option<String> {
        let until = self.pods.server.after(UNSEEN_END);
        let collection = self.collection();
        let place = ObjectRef { caller: self.caller(), collection: &collection, name: &self.name };
        let pod = self.pods.server.get(&place, self.pods.server.after(REQUEST_LIMIT)).await;
        let how = pod.as_ref().ok().and_then(|pod| match pod_state::judge(self.own(pod.as_ref())) {
            PodState::Ended(how) => Some(how),
            PodState::Waiting(_) | PodState::Running(_) => None,
        });
        self.delete().await;
        let start = pod.ok().flatten().or_else(|| Some(json!({"metadata": {"uid": self.uid}})));
        let has_ended = &mut |pod: Option<&Json>| match self.own(pod) {
            None => Some("was deleted".to_owned()),
            Some(pod) => pod_state::ended(pod),
        };
        let seen = self.pods.server.wait_for(&place, start, until, has_ended).await;
        let how = match (how, seen) {
            (Some(how), Ok(_)) => how,
            (None, Ok(_)) => "no longer responded and was deleted".to_owned(),
            (how, Err(_)) => {
                // The API server does not report it, so the runner gets the time in which it ends by itself.
                let _ = self.pods.server.pause(UNSEEN_END, until).await;
                how.unwrap_or_else(|| "no longer responded".to_owned())
            }
        };
        Some(format!("{} {how}", self.title()))
    }
}

impl RunnerHost for PodHost {
    fn end(&self) -> BoxFuture<'_, Option<String>> {
        self.end_and_wait().boxed()
    }

    fn is_replaceable(&self) -> BoxFuture<'_, bool> {
        async { !self.pods.is_terminating(&self.namespace).await }.boxed()
    }
}
