//! Hooks that are Jobs in the namespace of the Resource, made and read as its service account.
//!
//! The name of a Job follows from the object and the hook, so that a controller that comes after a crash finds the one
//! that runs, and waits for it instead of starting another. One that succeeded is deleted once that is known; one that
//! failed is kept for a day for people to look at, or until the hook is tried again.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::super::kubernetes_object::follow::Place;
use super::super::kubernetes_object::refusal::{self, Attempt, Failure};
use super::super::kubernetes_object::server::{Call, Connection, Server, Who};
use super::{HookCall, HookOutcome, HookRunner};
use crate::model::HookKind;
use crate::process::Clock;

/// How long a Job that failed stays for people to look at.
const KEPT: Duration = Duration::from_hours(24);

/// How much of a log is read.
const LOG_BYTES: usize = 64 * 1024;

/// Runs Jobs.
pub struct JobHooks {
    server: Server,
}

/// How far a Job is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    Succeeded,
    /// With the reason.
    Failed(String),
    Gone,
}

impl JobHooks {
    /// A runner over an API server.
    pub fn new(client: kube::Client, clock: Arc<dyn Clock>) -> Self {
        Self { server: Server::new(Connection::Ready(client), clock) }
    }

    async fn job(&self, call: &HookCall) -> HookOutcome {
        if call.hook.kind != HookKind::Job {
            return HookOutcome::failed("programs are run only on files, by `purlin apply` and `dev`");
        }
        if call.context.service_account.is_empty() {
            return HookOutcome::failed("no service account is given to run the Job as");
        }
        let name = job_name(call);
        let collection = format!("/apis/batch/v1/namespaces/{}/jobs", call.context.namespace);
        let who = Who::ServiceAccount { namespace: &call.context.namespace, name: &call.context.service_account };
        let place = Place { who, collection: &collection, name: &name };
        let ended = match self.run_to_end(call, &place).await {
            Ok(State::Succeeded) => None,
            Ok(State::Failed(why)) => Some(format!("the Job `{name}` failed ({why})")),
            Ok(State::Gone | State::Running) => Some(format!("the Job `{name}` was deleted by somebody else")),
            Err((verb, failure)) => {
                let out_of_time = matches!(failure, Failure::OutOfTime);
                if out_of_time {
                    self.delete(&place).await;
                }
                Some(told(call, verb, &name, &failure))
            }
        };
        let output = self.output(call, &place).await;
        if ended.is_none() {
            self.delete(&place).await;
        }
        HookOutcome { failure: ended, output }
    }

    /// Finds the Job or makes it, and waits until it has ended.
    async fn run_to_end(&self, call: &HookCall, place: &Place<'_>) -> Result<State, (&'static str, Failure)> {
        let deadline = call.context.deadline;
        let mut found = self.server.look(place, deadline).await.map_err(|failure| ("read", failure))?;
        if let Some(State::Failed(_)) = found.as_ref().map(|job| state(Some(job))) {
            // It was kept from the last attempt.
            self.delete(place).await;
            let gone = &mut |job: Option<&Json>| job.is_none().then_some(());
            self.server.follow(place, found, deadline, gone).await.map_err(|failure| ("delete", failure))?;
            found = None;
        }
        let job = match found {
            Some(job) => job,
            None => self.create(call, place).await.map_err(|failure| ("create", failure))?,
        };
        let ended = &mut |job: Option<&Json>| Some(state(job)).filter(|state| *state != State::Running);
        self.server.follow(place, Some(job), deadline, ended).await.map_err(|failure| ("watch", failure))
    }

    async fn create(&self, call: &HookCall, place: &Place<'_>) -> Result<Json, Failure> {
        let deadline = call.context.deadline;
        let left = self.server.time_left(deadline).ok_or(Failure::OutOfTime)?;
        let request = Call {
            method: Method::POST,
            path: place.collection.to_owned(),
            content_type: "application/json",
            accept: "application/json",
            body: Some(manifest(call, place.name, left)),
            // The name is fixed, so a second one is refused.
            repeatable: true,
        };
        match self.server.call(place.who, &request, deadline).await {
            Ok(answer) => Ok(answer.body),
            Err(Failure::Refused(refusal)) if refusal.code == 409 => {
                self.server.look(place, deadline).await?.ok_or(Failure::Refused(refusal))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Deletes the Job with its Pods. When that fails it goes by its own time to live.
    async fn delete(&self, place: &Place<'_>) {
        let request = Call {
            method: Method::DELETE,
            path: format!("{}?propagationPolicy=Background", place.path()),
            content_type: "application/json",
            accept: "application/json",
            body: None,
            repeatable: true,
        };
        if let Err(error) = self.server.call(place.who, &request, self.soon()).await {
            tracing::debug!(job = place.name, ?error, "the Job of a hook could not be deleted");
        }
    }

    /// What its containers left as termination messages, or else wrote.
    async fn output(&self, call: &HookCall, place: &Place<'_>) -> String {
        let namespace = &call.context.namespace;
        let selector = format!("labelSelector=batch.kubernetes.io%2Fjob-name%3D{}", place.name);
        let pods = Call::get(format!("/api/v1/namespaces/{namespace}/pods?{selector}"));
        let Ok(answer) = self.server.call(place.who, &pods, self.soon()).await else { return String::new() };
        let Some(pod) = answer.body["items"].as_array().and_then(|pods| pods.last()) else { return String::new() };
        let message = termination_message(pod);
        if !message.is_empty() {
            return message;
        }
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let log = Call::get(format!("/api/v1/namespaces/{namespace}/pods/{name}/log?limitBytes={LOG_BYTES}"));
        match self.server.call(place.who, &log, self.soon()).await {
            Ok(answer) => match answer.body.get("message").and_then(Json::as_str) {
                Some(text) => text.to_owned(),
                None => answer.body.to_string(),
            },
            Err(_) => String::new(),
        }
    }

    /// What is only nice to have gets half a minute, also after the deadline of the hook.
    fn soon(&self) -> Timestamp {
        self.server.after(Duration::from_secs(30))
    }
}

impl HookRunner for JobHooks {
    fn run<'a>(&'a self, call: &'a HookCall) -> BoxFuture<'a, HookOutcome> {
        Box::pin(self.job(call))
    }
}

fn told(call: &HookCall, verb: &'static str, name: &str, failure: &Failure) -> String {
    if matches!(failure, Failure::OutOfTime) {
        return format!("the Job `{name}` did not end in time and was deleted");
    }
    let attempt = Attempt {
        verb,
        object: format!("the Job `{name}`"),
        resource: "jobs.batch".to_owned(),
        service_account: &call.context.service_account,
        namespace: &call.context.namespace,
        place: call.context.namespace.to_string(),
        sensitive: call.hook.definition.has_sensitive(),
    };
    refusal::error(failure, &attempt).line()
}

/// The same for the same hook of the same object, and a DNS label.
fn job_name(call: &HookCall) -> String {
    let mut hasher = Sha256::new();
    for part in [&call.uid, &call.context.address, &call.object, &call.hook.name] {
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
            // A hook that failed is tried again by Purlin, with its own back-off.
            "backoffLimit": 0,
            "activeDeadlineSeconds": left.as_secs().max(1),
            "ttlSecondsAfterFinished": KEPT.as_secs(),
            "template": template,
        },
    })
}

fn state(job: Option<&Json>) -> State {
    let Some(job) = job else { return State::Gone };
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let mut met = conditions.filter(|condition| condition["status"] == "True");
    met.find_map(|condition| match condition["type"].as_str() {
        Some("Complete") => Some(State::Succeeded),
        Some("Failed") => Some(State::Failed(condition["reason"].as_str().unwrap_or("for no reason given").to_owned())),
        _ => None,
    })
    .unwrap_or(State::Running)
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
    use crate::driver::tests::context;
    use crate::model::{OnFailure, RecordedHook, Value};

    fn call(address: &str, hook: &str, object: &str) -> HookCall {
        let definition = Value::from_json(json!({"spec": {"containers": [{"name": "c", "image": "x"}]}}));
        let hook = RecordedHook { name: hook.into(), kind: HookKind::Job, on_failure: OnFailure::Fail, definition };
        let context = crate::driver::CallContext { address: address.into(), ..context("t") };
        HookCall { context, uid: "u".into(), object: object.into(), hook }
    }

    #[test]
    fn a_job_has_the_name_of_its_object_and_hook_every_time() {
        let name = job_name(&call("web[\"a b\"]", "warm-up", "1"));
        assert!(name.starts_with("web-warm-up-"), "{name}");
        assert_eq!(name, job_name(&call("web[\"a b\"]", "warm-up", "1")));
        assert_ne!(name, job_name(&call("web[\"a b\"]", "warm-up", "2")), "a new object has a run of its own");
        assert_ne!(name, job_name(&call("web[\"c\"]", "warm-up", "1")));
        let long = job_name(&call(&"a-".repeat(31), &"b".repeat(63), ""));
        assert!(long.len() <= 63 && !long.contains("--"), "{long}");
    }

    #[test]
    fn a_job_is_one_attempt_and_belongs_to_the_resource() {
        let job = manifest(&call("web[0]", "drain", "1"), "web-drain", Duration::from_secs(90));
        assert_eq!(job["spec"]["backoffLimit"], 0);
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 90);
        assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
        assert_eq!(job["metadata"]["ownerReferences"][0]["name"], "web");
    }

    #[test]
    fn its_conditions_tell_how_it_ended() {
        let ended = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "R"}]}});
        assert_eq!(state(Some(&json!({}))), State::Running);
        assert_eq!(state(Some(&ended("Suspended"))), State::Running);
        assert_eq!(state(Some(&ended("Complete"))), State::Succeeded);
        assert_eq!(state(Some(&ended("Failed"))), State::Failed("R".into()));
        assert_eq!(state(None), State::Gone);
    }
}
