//! Runs hooks as Jobs in the namespace of the Resource, under its service account.
//!
//! The name of a Job is derived from the object and the hook, so that a controller finds a running Job after a crash
//! instead of starting another one. Succeeded Jobs are deleted; failed Jobs are kept for a day for inspection, or until
//! the hook is retried.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::super::kubernetes_object::api_error::{self, ErrorContext, RequestError};
use super::super::kubernetes_object::server::{Call, Caller, Connection, Server};
use super::super::kubernetes_object::wait::ObjectRef;
use super::{HookCall, HookOutcome, HookRunner};
use model::HookKind;
use process::Clock;

const FAILED_JOB_TTL: Duration = Duration::from_hours(24);

const LOG_BYTES: usize = 64 * 1024;

pub struct JobHooks {
    server: Server,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum JobState {
    Running,
    Succeeded,
    /// With the reason.
    Failed(String),
    Missing,
}

impl JobHooks {
    pub fn new(client: kube::Client, clock: Arc<dyn Clock>) -> Self {
        Self { server: Server::new(Connection::Ready(client), clock) }
    }

    async fn job(&self, call: &HookCall) -> HookOutcome {
        if call.hook.kind != HookKind::Job {
            return HookOutcome::failed("`exec` hooks run only on files, with `purlin apply` and `purlin dev`");
        }
        if call.context.service_account.is_empty() {
            return HookOutcome::failed("no service account is set for the Job");
        }
        let name = job_name(call);
        let collection = format!("/apis/batch/v1/namespaces/{}/jobs", call.context.namespace);
        let caller = Caller::ServiceAccount { namespace: &call.context.namespace, name: &call.context.service_account };
        let place = ObjectRef { caller, collection: &collection, name: &name };
        let ended = match self.run_to_end(call, &place).await {
            Ok(JobState::Succeeded) => None,
            Ok(JobState::Failed(why)) => Some(format!("the Job `{name}` failed ({why})")),
            Ok(JobState::Missing | JobState::Running) => {
                Some(format!("the Job `{name}` was deleted by another client"))
            }
            Err((verb, failure)) => {
                let out_of_time = matches!(failure, RequestError::Timeout);
                if out_of_time {
                    self.delete(&place).await;
                }
                Some(failure_message(call, verb, &name, &failure))
            }
        };
        let output = self.output(call, &place).await;
        if ended.is_none() {
            self.delete(&place).await;
        }
        HookOutcome { failure: ended, output }
    }

    /// Finds or creates the Job, and waits until it ends.
    async fn run_to_end(
        &self,
        call: &HookCall,
        place: &ObjectRef<'_>,
    ) -> Result<JobState, (&'static str, RequestError)> {
        let deadline = call.context.deadline;
        let mut job = self.server.get(place, deadline).await.map_err(|failure| ("read", failure))?;
        if let Some(JobState::Failed(_)) = job.as_ref().map(|job| state(Some(job))) {
            // The last attempt left it.
            self.delete(place).await;
            let deleted = &mut |job: Option<&Json>| job.is_none().then_some(());
            self.server.wait_for(place, job, deadline, deleted).await.map_err(|failure| ("delete", failure))?;
            job = None;
        }
        let job = match job {
            Some(job) => job,
            None => self.create(call, place).await.map_err(|failure| ("create", failure))?,
        };
        let ended = &mut |job: Option<&Json>| Some(state(job)).filter(|state| *state != JobState::Running);
        self.server.wait_for(place, Some(job), deadline, ended).await.map_err(|failure| ("watch", failure))
    }

    async fn create(&self, call: &HookCall, place: &ObjectRef<'_>) -> Result<Json, RequestError> {
        let deadline = call.context.deadline;
        let left = self.server.time_left(deadline).ok_or(RequestError::Timeout)?;
        let request = Call {
            method: Method::POST,
            path: place.collection.to_owned(),
            content_type: "application/json",
            accept: "application/json",
            body: Some(manifest(call, place.name, left)),
            // The name is fixed, so a second create is rejected.
            repeatable: true,
        };
        match self.server.call(place.caller, &request, deadline).await {
            Ok(answer) => Ok(answer.body),
            Err(RequestError::Api(api_error)) if api_error.code == 409 => {
                self.server.get(place, deadline).await?.ok_or(RequestError::Api(api_error))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Deletes the Job with its Pods. If that fails, Kubernetes deletes it after its TTL.
    async fn delete(&self, place: &ObjectRef<'_>) {
        let request = Call {
            method: Method::DELETE,
            path: format!("{}?propagationPolicy=Background", place.path()),
            content_type: "application/json",
            accept: "application/json",
            body: None,
            repeatable: true,
        };
        if let Err(error) = self.server.call(place.caller, &request, self.cleanup_deadline()).await {
            tracing::debug!(job = place.name, ?error, "cannot delete the Job of a hook");
        }
    }

    /// The termination messages of the containers of its Pod, or else the log of it. Any user of the namespace can create
    /// Pods with the label of the Job, so only one is read.
    async fn output(&self, call: &HookCall, place: &ObjectRef<'_>) -> String {
        let namespace = &call.context.namespace;
        let selector = format!("labelSelector=batch.kubernetes.io%2Fjob-name%3D{}&limit=1", place.name);
        let pods = Call::get(format!("/api/v1/namespaces/{namespace}/pods?{selector}"));
        let Ok(answer) = self.server.call(place.caller, &pods, self.cleanup_deadline()).await else {
            return String::new();
        };
        let Some(pod) = answer.body["items"].as_array().and_then(|pods| pods.first()) else { return String::new() };
        let message = termination_message(pod);
        if !message.is_empty() {
            return message;
        }
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let log = Call::get(format!("/api/v1/namespaces/{namespace}/pods/{name}/log?limitBytes={LOG_BYTES}"));
        match self.server.call(place.caller, &log, self.cleanup_deadline()).await {
            Ok(answer) => match answer.body.get("message").and_then(Json::as_str) {
                Some(text) => text.to_owned(),
                None => answer.body.to_string(),
            },
            Err(_) => String::new(),
        }
    }

    /// Optional requests get half a minute, even after the deadline of the hook.
    fn cleanup_deadline(&self) -> Timestamp {
        self.server.after(Duration::from_secs(30))
    }
}

#[async_trait]
impl HookRunner for JobHooks {
    async fn run(&self, call: &HookCall) -> HookOutcome {
        self.job(call).await
    }
}

fn failure_message(call: &HookCall, verb: &'static str, name: &str, failure: &RequestError) -> String {
    if matches!(failure, RequestError::Timeout) {
        return format!("the Job `{name}` did not finish before the deadline and was deleted");
    }
    let attempt = ErrorContext {
        verb,
        object: format!("the Job `{name}`"),
        resource: "jobs.batch".to_owned(),
        service_account: &call.context.service_account,
        namespace: &call.context.namespace,
        object_namespace: call.context.namespace.to_string(),
        sensitive: call.hook.definition.has_sensitive(),
    };
    api_error::to_driver_error(failure, &attempt).line()
}

/// A DNS label that is stable for the same hook of the same object.
fn job_name(call: &HookCall) -> String {
    let mut hasher = Sha256::new();
    for part in [call.uid.text(), &call.context.address, &call.object, &call.hook.name] {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    let digest: String = hasher.finalize().iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    let resource: String = call.context.address.chars().take_while(|c| *c != '[').take(25).collect();
    let hook: String = call.hook.name.chars().take(25).collect();
    format!("{}-{}-{digest}", resource.trim_end_matches('-'), hook.trim_end_matches('-'))
}

fn manifest(call: &HookCall, name: &str, left: Duration) -> Json {
    let mut template = call.hook.definition.to_json();
    if template["spec"].get("restartPolicy").is_none() {
        template["spec"]["restartPolicy"] = json!("Never");
    }
    let resource: &str = call.context.address.split('[').next().unwrap_or_default();
    let owners = match call.uid.is_empty() {
        true => json!([]),
        false => json!([{
            "apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "name": resource, "uid": call.uid,
        }]),
    };
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": call.context.namespace,
            "labels": {"app.kubernetes.io/managed-by": "purlin", "purlin.dev/hook": call.hook.name},
            "annotations": {"purlin.dev/for": call.context.address},
            "ownerReferences": owners,
        },
        "spec": {
            // Purlin retries failed hooks with its own back-off.
            "backoffLimit": 0,
            "activeDeadlineSeconds": left.as_secs().max(1),
            "ttlSecondsAfterFinished": FAILED_JOB_TTL.as_secs(),
            "template": template,
        },
    })
}

fn state(job: Option<&Json>) -> JobState {
    let Some(job) = job else { return JobState::Missing };
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let mut met = conditions.filter(|condition| condition["status"] == "True");
    met.find_map(|condition| match condition["type"].as_str() {
        Some("Complete") => Some(JobState::Succeeded),
        Some("Failed") => Some(JobState::Failed(condition["reason"].as_str().unwrap_or("no reason given").to_owned())),
        _ => None,
    })
    .unwrap_or(JobState::Running)
}

fn termination_message(pod: &Json) -> String {
    let status = &pod["status"];
    let containers =
        ["initContainerStatuses", "containerStatuses"].into_iter().filter_map(|list| status[list].as_array());
    let messages = containers.flatten().filter_map(|container| container["state"]["terminated"]["message"].as_str());
    messages.map(str::trim).filter(|message| !message.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::context;
    use model::{OnFailure, RecordedHook, Value};

    fn call(address: &str, hook: &str, object: &str) -> HookCall {
        let definition = Value::from_json(json!({"spec": {"containers": [{"name": "c", "image": "x"}]}}));
        let hook = RecordedHook { name: hook.into(), kind: HookKind::Job, on_failure: OnFailure::Fail, definition };
        let context = crate::CallContext { address: address.into(), ..context("t") };
        HookCall { context, uid: "u".into(), object: object.into(), hook }
    }

    #[test]
    fn a_job_name_is_stable_for_an_object_and_a_hook() {
        let name = job_name(&call("web[\"a b\"]", "warm-up", "1"));
        assert!(name.starts_with("web-warm-up-"), "{name}");
        assert_eq!(name, job_name(&call("web[\"a b\"]", "warm-up", "1")));
        assert_ne!(name, job_name(&call("web[\"a b\"]", "warm-up", "2")), "a new object has a separate run");
        assert_ne!(name, job_name(&call("web[\"c\"]", "warm-up", "1")));
        let long = job_name(&call(&"a-".repeat(31), &"b".repeat(63), ""));
        assert!(long.len() <= 63 && !long.contains("--"), "{long}");
    }

    #[test]
    fn a_job_runs_once_and_is_owned_by_the_resource() {
        let job = manifest(&call("web[0]", "drain", "1"), "web-drain", Duration::from_secs(90));
        assert_eq!(job["spec"]["backoffLimit"], 0);
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 90);
        assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
        assert_eq!(job["metadata"]["ownerReferences"][0]["name"], "web");
    }

    #[tokio::test]
    async fn the_output_of_a_job_is_that_of_one_pod() {
        let server = axum::Router::new().fallback(|request: axum::extract::Request| async move {
            let query = request.uri().query().unwrap_or_default();
            // A list without a limit has more than the controller may read.
            let message = if query.ends_with("&limit=1") { "done" } else { "everything" };
            let terminated = json!({"state": {"terminated": {"message": message}}});
            let pod = json!({"metadata": {"name": "a"}, "status": {"containerStatuses": [terminated]}});
            ([("content-type", "application/json")], json!({"items": [pod], "metadata": {}}).to_string())
        });
        let client = kube::Client::new(server, "default");
        let hooks = JobHooks::new(client, Arc::new(process::SystemClock));
        let caller = Caller::ServiceAccount { namespace: "shop", name: "deployer" };
        let place = ObjectRef { caller, collection: "/apis/batch/v1/namespaces/shop/jobs", name: "web-warm-up" };
        assert_eq!(hooks.output(&call("web", "warm-up", "1"), &place).await, "done");
    }

    fn ended(kind: &str) -> Json {
        json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "R"}]}})
    }

    #[test]
    fn the_conditions_of_a_job_determine_its_state() {
        assert_eq!(state(Some(&json!({}))), JobState::Running);
        assert_eq!(state(Some(&ended("Suspended"))), JobState::Running);
        assert_eq!(state(Some(&ended("Complete"))), JobState::Succeeded);
        assert_eq!(state(Some(&ended("Failed"))), JobState::Failed("R".into()));
        assert_eq!(state(None), JobState::Missing);
    }
}
