use super::{Verdict, evaluate};

/// Compares the verdict on an object, written as YAML: `current`, `terminating`, `...` (in progress) or `failed: ...`.
#[track_caller]
fn check(yaml: &str, expected: &str) {
    let object: serde_json::Value = serde_saphyr::from_str(yaml).unwrap();
    let status = match evaluate(&object) {
        Verdict::Current => "current".to_owned(),
        Verdict::Terminating => "terminating".to_owned(),
        Verdict::InProgress(why) => why,
        Verdict::Failed(why) => format!("failed: {why}"),
    };
    assert_eq!(status, expected, "{yaml}");
}

#[test]
fn any_kind() {
    check("{apiVersion: v1, kind: ConfigMap}", "current");
    check("{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}", "terminating");
    check("{kind: X, metadata: {generation: 2}, status: {observedGeneration: 2}}", "current");
    check(
        "{kind: X, metadata: {generation: 2}, status: {observedGeneration: 1}}",
        "generation 2 is not observed yet (last: 1)",
    );
    check("{kind: X, status: {conditions: [{type: Ready, status: 'True'}]}}", "current");
    check("{kind: X, status: {conditions: [{type: Ready, status: Unknown, message: soon}]}}", "soon");
    check("{kind: X, status: {conditions: [{type: Reconciling, status: 'True', reason: Working}]}}", "Working");
    check("{kind: X, status: {conditions: [{type: Reconciling, status: 'False'}]}}", "current");
    check("{kind: X, status: {conditions: [{type: Stalled, status: 'True', message: bad}]}}", "failed: bad");
}

#[test]
fn deployments() {
    let with = |status: &str| format!("{{apiVersion: apps/v1, kind: Deployment, spec: {{replicas: 2}}, {status}}}");
    let available = "conditions: [{type: Available, status: 'True'}]";
    check(&with("status: {}"), "no controller has observed it yet");
    check(&with("status: {observedGeneration: 1, replicas: 2, updatedReplicas: 1}"), "1 of 2 Pods are updated");
    check(
        &with("status: {observedGeneration: 1, replicas: 3, updatedReplicas: 2}"),
        "1 Pods of the old version remain",
    );
    check(
        &with(
            "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 1}",
        ),
        "1 of 2 Pods are available",
    );
    let complete = "observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2";
    check(&with(&format!("status: {{{complete}, {available}}}")), "current");
    check(&with(&format!("status: {{{complete}}}")), "not available yet");
    check(
        &with(
            "status: {observedGeneration: 1, conditions: [{type: Progressing, status: 'False', \
             reason: ProgressDeadlineExceeded, message: too slow}]}",
        ),
        "failed: too slow",
    );
}

#[test]
fn other_workloads() {
    let set = |kind: &str, rest: &str| format!("{{apiVersion: apps/v1, kind: {kind}, {rest}}}");
    check(
        &set("StatefulSet", "status: {observedGeneration: 1, replicas: 1, readyReplicas: 0}"),
        "0 of 1 Pods are ready",
    );
    check(
        &set(
            "StatefulSet",
            "status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, \
             currentRevision: a, updateRevision: a}",
        ),
        "current",
    );
    check(
        &set(
            "StatefulSet",
            "status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, \
             currentRevision: a, updateRevision: b}",
        ),
        "0 of 1 Pods are updated",
    );
    check(
        &set(
            "StatefulSet",
            "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, \
             status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 1}",
        ),
        "current",
    );
    check(
        &set("DaemonSet", "status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 1}"),
        "1 of 2 Pods are scheduled",
    );
    check(&set("DaemonSet", "status: {observedGeneration: 1, desiredNumberScheduled: 0}"), "current");
    check(
        &set("ReplicaSet", "status: {observedGeneration: 1, fullyLabeledReplicas: 1, availableReplicas: 0}"),
        "0 of 1 Pods are available",
    );
}

#[test]
fn pods_and_jobs() {
    let pod = |status: &str| format!("{{apiVersion: v1, kind: Pod, status: {{{status}}}}}");
    check(&pod(""), "the Pod has not started");
    check(&pod("phase: Pending, conditions: [{type: PodScheduled, status: 'False', message: no nodes}]"), "no nodes");
    check(&pod("phase: Running"), "the Pod is not ready");
    check(&pod("phase: Running, conditions: [{type: Ready, status: 'True'}]"), "current");
    check(
        &pod("phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]"),
        "failed: container `web` keeps crashing",
    );
    check(&pod("phase: Succeeded"), "current");
    check(&pod("phase: Failed"), "failed: the Pod has failed");
    let job = |status: &str| format!("{{apiVersion: batch/v1, kind: Job, status: {{{status}}}}}");
    check(&job(""), "the Job has not started");
    check(&job("startTime: '2026-01-01T00:00:00Z'"), "current");
    check(
        &job("conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]"),
        "failed: BackoffLimitExceeded",
    );
}

#[test]
fn services_claims_and_definitions() {
    check("{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}", "current");
    check("{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}", "the load balancer has no address");
    check(
        "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, \
         status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}",
        "current",
    );
    check("{apiVersion: v1, kind: PersistentVolumeClaim}", "the claim is not bound to a volume");
    check("{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}", "current");
    let crd = |conditions: &str| {
        format!(
            "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
             status: {{conditions: [{conditions}]}}}}"
        )
    };
    check(&crd(""), "the definition is not established yet");
    check(&crd("{type: Established, status: 'False', reason: Installing}"), "the definition is not established yet");
    check(&crd("{type: Established, status: 'True'}"), "current");
    check(&crd("{type: NamesAccepted, status: 'False', message: taken}"), "failed: taken");
}
