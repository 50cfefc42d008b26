//! What the status of a Pod says about its runner. Pure.

use std::net::IpAddr;

use serde_json::Value as Json;

#[derive(Debug, PartialEq, Eq)]
pub enum PodState {
    /// What it waits for.
    Waiting(String),
    Running(IpAddr),
    /// It will not run, or no longer: how it ended.
    Ended(String),
}

/// `pod`: `None` if it does not exist.
pub fn judge(pod: Option<&Json>) -> PodState {
    let Some(pod) = pod else { return PodState::Ended("was deleted".to_owned()) };
    if let Some(how) = ended(pod) {
        return PodState::Ended(how);
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return PodState::Ended("was deleted".to_owned());
    }
    let status = &pod["status"];
    let state = &status["containerStatuses"][0]["state"];
    let address = status["podIP"].as_str().and_then(|text| text.parse().ok());
    match address {
        Some(address) if !state["running"].is_null() => PodState::Running(address),
        _ => PodState::Waiting(waiting(status)),
    }
}

/// How a Pod ended, whose containers no longer run; `None` if they may run.
pub fn ended(pod: &Json) -> Option<String> {
    let status = &pod["status"];
    let phase = status["phase"].as_str().unwrap_or_default();
    if !matches!(phase, "Failed" | "Succeeded") {
        return None;
    }
    let why = reason(status)
        .map(|why| with_message(why, &status["message"]))
        .or_else(|| container_end(&status["containerStatuses"][0]["state"]["terminated"]))
        .unwrap_or_else(|| phase.to_owned());
    Some(format!("ended ({why})"))
}

fn container_end(terminated: &Json) -> Option<String> {
    let reason = reason(terminated)?;
    let why = match terminated["exitCode"].as_i64() {
        None | Some(0) => reason,
        Some(code) => format!("{reason}, exit code {code}"),
    };
    Some(with_message(why, &terminated["message"]))
}

fn reason(state: &Json) -> Option<String> {
    state["reason"].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Why the Pod does not run yet.
fn waiting(status: &Json) -> String {
    let waiting = &status["containerStatuses"][0]["state"]["waiting"];
    if let Some(reason) = waiting["reason"].as_str() {
        return with_message(reason.to_owned(), &waiting["message"]);
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut scheduled = conditions.filter(|condition| condition["type"] == "PodScheduled");
    match scheduled.next() {
        Some(condition) if condition["status"] == "False" => {
            let reason = condition["reason"].as_str().unwrap_or("NotScheduled");
            with_message(reason.to_owned(), &condition["message"])
        }
        _ => "Pending".to_owned(),
    }
}

/// Appends a message on one line.
fn with_message(reason: String, message: &Json) -> String {
    let words: Vec<&str> = message.as_str().unwrap_or_default().split_whitespace().collect();
    if words.is_empty() { reason } else { format!("{reason}: {}", words.join(" ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: Json, expected: PodState) {
        assert_eq!(judge(Some(&json!({"metadata": {}, "status": status}))), expected);
    }

    fn waits(text: &str) -> PodState {
        PodState::Waiting(text.to_owned())
    }

    #[test]
    fn a_pod_that_does_not_run_says_why() {
        check(json!({}), waits("Pending"));
        let unschedulable = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes\nare available",
        });
        check(
            json!({"phase": "Pending", "conditions": [unschedulable]}),
            waits("Unschedulable: 0/3 nodes are available"),
        );
        let pulling = json!([{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]);
        check(json!({"phase": "Pending", "containerStatuses": pulling}), waits("ImagePullBackOff: no such image"));
    }

    #[test]
    fn a_pod_runs_when_its_container_does() {
        let running = json!([{"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]);
        let status = json!({"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": running});
        check(status, PodState::Running("10.0.0.7".parse().unwrap()));
        check(json!({"phase": "Running", "podIP": "10.0.0.7"}), PodState::Waiting("Pending".to_owned()));
    }

    fn ends(text: &str) -> PodState {
        PodState::Ended(text.to_owned())
    }

    #[test]
    fn a_pod_that_has_ended_says_how() {
        assert_eq!(judge(None), ends("was deleted"));
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {}});
        assert_eq!(judge(Some(&deleted)), ends("was deleted"));
        check(
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
            ends("ended (Evicted: low on memory)"),
        );
        let killed = json!([{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]);
        check(json!({"phase": "Failed", "containerStatuses": killed}), ends("ended (OOMKilled, exit code 137)"));
        check(json!({"phase": "Succeeded"}), ends("ended (Succeeded)"));
    }
}
