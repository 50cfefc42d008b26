//! Computes whether an object has reached its desired state, by the rules of kstatus. Pure.
//!
//! Two rules intentionally differ from kstatus: a Service of type `LoadBalancer` is current only when it has an
//! address, which other objects may reference; and a workload without `observedGeneration` is in progress even if it
//! requests no Pods.

use serde_json::Value as Json;

use super::manifest::WAIT_ANNOTATION;
use super::target::group_of;
use model::Health as Verdict;

/// The health of an object that the server returned on its own.
pub fn of_live(live: &Json) -> Verdict {
    let [api_version, kind] = ["apiVersion", "kind"].map(|name| live[name].as_str().unwrap_or_default());
    health(api_version, kind, live)
}

/// The health of a live object. An object with `purlin.dev/wait: "false"` is ready when it exists. `api_version` and
/// `kind` are arguments, because the items of a list have none.
pub fn health(api_version: &str, kind: &str, live: &Json) -> Verdict {
    if live["metadata"]["deletionTimestamp"].is_string() {
        return Verdict::Terminating(finalizers(live));
    }
    if live["metadata"]["annotations"][WAIT_ANNOTATION] == "false" {
        return Verdict::Current;
    }
    if let Some(verdict) = general(live) {
        return verdict;
    }
    let group = group_of(api_version);
    match (group, kind) {
        ("apps", "Deployment") => because(deployment(live), workload_problem(live)),
        ("apps", "StatefulSet") => because(stateful_set(live), workload_problem(live)),
        ("apps", "DaemonSet") => because(daemon_set(live), workload_problem(live)),
        ("apps", "ReplicaSet") => because(replica_set(live), workload_problem(live)),
        ("", "Pod") => because(pod(live), container_problem(live)),
        ("", "PersistentVolumeClaim") => because(claim(live), first_message(live)),
        ("", "Service") => because(service(live), first_message(live)),
        ("batch", "Job") => job(live),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(live),
        _ => ready_condition(live),
    }
}

/// Whether objects of a kind have a status that shows their readiness. All others are ready as long as they exist, so
/// their metadata suffices, and a watch of Secrets does not receive their contents.
pub fn has_status(api_version: &str, kind: &str) -> bool {
    !matches!(
        (group_of(api_version), kind),
        ("", "ConfigMap" | "Secret" | "ServiceAccount" | "Endpoints" | "LimitRange" | "PodTemplate" | "Event")
            | (
                "rbac.authorization.k8s.io"
                    | "admissionregistration.k8s.io"
                    | "scheduling.k8s.io"
                    | "coordination.k8s.io"
                    | "discovery.k8s.io",
                _
            )
            | ("networking.k8s.io", "NetworkPolicy" | "IngressClass")
            | ("storage.k8s.io", "StorageClass" | "CSIDriver")
            | ("apps", "ControllerRevision")
    )
}

/// The finalizers of an object.
pub(crate) fn finalizers(live: &Json) -> Vec<String> {
    let finalizers = live["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.filter_map(Json::as_str).map(str::to_owned).collect()
}

/// The rules for every kind: the controller must have observed the generation, and its own conditions come first.
fn general(object: &Json) -> Option<Verdict> {
    let generation = object["metadata"]["generation"].as_i64();
    let observed = object["status"]["observedGeneration"].as_i64();
    if let (Some(generation), Some(observed)) = (generation, observed)
        && generation != observed
    {
        return progress(format!("generation {generation} is not observed yet (last: {observed})")).into();
    }
    if let Some(condition) = condition(object, "Reconciling").filter(|condition| holds(condition)) {
        return progress(describe(condition)).into();
    }
    condition(object, "Stalled").filter(|condition| holds(condition)).map(|stalled| Verdict::Failed(describe(stalled)))
}

/// Adds the cause that the object names to what it waits for.
fn because(verdict: Verdict, cause: Option<String>) -> Verdict {
    match (verdict, cause) {
        (Verdict::InProgress(what), Some(cause)) if what != cause => progress(format!("{what}: {cause}")),
        (verdict, _) => verdict,
    }
}

/// Why the controller of a workload creates no Pods: a quota, a denied request, or a paused Deployment. The problems of
/// the Pods themselves are only in the Pods, which the service account may not be allowed to read.
fn workload_problem(object: &Json) -> Option<String> {
    condition(object, "ReplicaFailure")
        .filter(|condition| holds(condition))
        .or_else(|| condition(object, "Progressing").filter(|condition| !holds(condition)))
        .map(describe)
}

/// Why the first container of a Pod that has not started cannot start.
fn container_problem(pod: &Json) -> Option<String> {
    const NORMAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];
    let containers =
        ["initContainerStatuses", "containerStatuses"].into_iter().filter_map(|list| pod["status"][list].as_array());
    containers.flatten().find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let reason = waiting["reason"].as_str().filter(|reason| !NORMAL.contains(reason))?;
        let name = container["name"].as_str().unwrap_or_default();
        Some(format!("container `{name}`: {}", reason_and_message(reason, waiting["message"].as_str())))
    })
}

fn first_message(object: &Json) -> Option<String> {
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["message"].as_str().is_some_and(|text| !text.is_empty())).map(describe)
}

fn ready_condition(object: &Json) -> Verdict {
    match condition(object, "Ready") {
        Some(ready) if !holds(ready) => progress(describe(ready)),
        _ => Verdict::Current,
    }
}

fn deployment(object: &Json) -> Verdict {
    if let Some(verdict) = unobserved(object) {
        return verdict;
    }
    let progressing = condition(object, "Progressing");
    if let Some(exceeded) = progressing.filter(|c| c["reason"] == "ProgressDeadlineExceeded") {
        return Verdict::Failed(describe(exceeded));
    }
    let desired = count_or(object, "spec", "replicas", 1);
    let [total, updated, ready, available] =
        ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"].map(|name| status_count(object, name));
    if updated < desired {
        return progress(format!("{updated} of {desired} Pods are updated"));
    }
    if total > updated {
        return progress(format!("{} Pods of the old version remain", total - updated));
    }
    if available < desired || ready < desired {
        return progress(format!("{} of {desired} Pods are available", available.min(ready)));
    }
    match condition(object, "Available") {
        Some(available) if holds(available) => Verdict::Current,
        Some(unavailable) => progress(describe(unavailable)),
        None => progress("not available yet"),
    }
}

fn stateful_set(object: &Json) -> Verdict {
    if let Some(verdict) = unobserved(object) {
        return verdict;
    }
    let strategy = &object["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return Verdict::Current;
    }
    let desired = count_or(object, "spec", "replicas", 1);
    let [total, ready, current, updated] =
        ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas"].map(|name| status_count(object, name));
    if ready < desired || total < desired {
        return progress(format!("{} of {desired} Pods are ready", ready.min(total)));
    }
    if total > desired {
        return progress(format!("{} surplus Pods remain", total - desired));
    }
    let partition = strategy["rollingUpdate"]["partition"].as_i64().unwrap_or(0);
    if partition > 0 {
        let due = desired - partition;
        return if updated < due { progress(format!("{updated} of {due} Pods are updated")) } else { Verdict::Current };
    }
    if current < desired || object["status"]["currentRevision"] != object["status"]["updateRevision"] {
        return progress(format!("{updated} of {desired} Pods are updated"));
    }
    Verdict::Current
}

fn daemon_set(object: &Json) -> Verdict {
    if let Some(verdict) = unobserved(object) {
        return verdict;
    }
    if object["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return Verdict::Current;
    }
    let desired = status_count(object, "desiredNumberScheduled");
    for (name, what) in [
        ("currentNumberScheduled", "scheduled"),
        ("updatedNumberScheduled", "updated"),
        ("numberAvailable", "available"),
        ("numberReady", "ready"),
    ] {
        let there = status_count(object, name);
        if there < desired {
            return progress(format!("{there} of {desired} Pods are {what}"));
        }
    }
    Verdict::Current
}

fn replica_set(object: &Json) -> Verdict {
    if let Some(verdict) = unobserved(object) {
        return verdict;
    }
    let desired = count_or(object, "spec", "replicas", 1);
    for (name, what) in
        [("fullyLabeledReplicas", "labeled"), ("availableReplicas", "available"), ("readyReplicas", "ready")]
    {
        let there = status_count(object, name);
        if there < desired {
            return progress(format!("{there} of {desired} Pods are {what}"));
        }
    }
    let total = status_count(object, "replicas");
    if total > desired {
        return progress(format!("{} surplus Pods remain", total - desired));
    }
    workload_problem(object).map_or(Verdict::Current, progress)
}

fn pod(object: &Json) -> Verdict {
    match object["status"]["phase"].as_str() {
        Some("Succeeded") => Verdict::Current,
        Some("Failed") => {
            Verdict::Failed(object["status"]["message"].as_str().unwrap_or("the Pod has failed").to_owned())
        }
        Some("Running") => match condition(object, "Ready") {
            Some(ready) if holds(ready) => Verdict::Current,
            ready => crash_loop(object).map_or_else(
                || {
                    because(
                        progress("the Pod is not ready"),
                        ready.filter(|_| container_problem(object).is_none()).map(describe),
                    )
                },
                Verdict::Failed,
            ),
        },
        _ => match condition(object, "PodScheduled").filter(|c| !holds(c)) {
            Some(unscheduled) => progress(describe(unscheduled)),
            None => progress("the Pod has not started"),
        },
    }
}

fn crash_loop(pod: &Json) -> Option<String> {
    let containers = pod["status"]["containerStatuses"].as_array()?;
    let looping = containers.iter().find(|c| c["state"]["waiting"]["reason"] == "CrashLoopBackOff")?;
    Some(format!("container `{}` keeps crashing", looping["name"].as_str().unwrap_or_default()))
}

fn claim(object: &Json) -> Verdict {
    match object["status"]["phase"].as_str() {
        Some("Bound") => Verdict::Current,
        Some("Lost") => Verdict::Failed("the volume of the claim is lost".to_owned()),
        _ => progress("the claim is not bound to a volume"),
    }
}

fn service(object: &Json) -> Verdict {
    let balanced = object["spec"]["type"] == "LoadBalancer";
    let addressed = object["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|list| !list.is_empty());
    if balanced && !addressed { progress("the load balancer has no address") } else { Verdict::Current }
}

/// A Job is current when it has started; it need not be complete.
fn job(object: &Json) -> Verdict {
    if let Some(failed) = condition(object, "Failed").filter(|c| holds(c)) {
        return Verdict::Failed(describe(failed));
    }
    if condition(object, "Complete").is_some_and(holds) || object["status"]["startTime"].is_string() {
        return Verdict::Current;
    }
    match condition(object, "Suspended").filter(|c| holds(c)) {
        Some(suspended) => progress(describe(suspended)),
        None => progress("the Job has not started"),
    }
}

fn definition(object: &Json) -> Verdict {
    if let Some(rejected) = condition(object, "NamesAccepted").filter(|c| c["status"] == "False") {
        return Verdict::Failed(describe(rejected));
    }
    match condition(object, "Established") {
        Some(established) if holds(established) => Verdict::Current,
        Some(rejected) if rejected["status"] == "False" && rejected["reason"] != "Installing" => {
            Verdict::Failed(describe(rejected))
        }
        _ => progress("the definition is not established yet"),
    }
}

/// Workload controllers set `observedGeneration` with their first status update.
fn unobserved(object: &Json) -> Option<Verdict> {
    let unseen = object["status"]["observedGeneration"].is_null();
    unseen.then(|| progress("no controller has observed it yet"))
}

fn condition<'a>(object: &'a Json, kind: &str) -> Option<&'a Json> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn holds(condition: &Json) -> bool {
    condition["status"] == "True"
}

/// The reason and the message of a condition, or else its type.
fn describe(condition: &Json) -> String {
    let reasons = ["reason", "type"].into_iter().filter_map(|name| condition[name].as_str());
    let message = condition["message"].as_str().filter(|text| !text.is_empty());
    match reasons.into_iter().find(|text| !text.is_empty()) {
        Some(reason) => reason_and_message(reason, message),
        None => message.unwrap_or("no reason given").to_owned(),
    }
}

/// `ImagePullBackOff: Back-off pulling image "web:2"`, on one line.
fn reason_and_message(reason: &str, message: Option<&str>) -> String {
    let words = message.into_iter().flat_map(str::lines).collect::<Vec<_>>().join(" ");
    if words.is_empty() { reason.to_owned() } else { format!("{reason}: {words}") }
}

fn progress(text: impl Into<String>) -> Verdict {
    Verdict::InProgress(text.into())
}

fn status_count(object: &Json, name: &str) -> i64 {
    count_or(object, "status", name, 0)
}

fn count_or(object: &Json, part: &str, name: &str, default: i64) -> i64 {
    object[part][name].as_i64().unwrap_or(default)
}

#[cfg(test)]
mod tests;
