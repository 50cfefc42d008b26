use super::{Verdict, has_status, of_live};

/// Compares the verdict on an object, written as YAML: `current`, `terminating`, `...` (in progress) or `failed: ...`.
#[track_caller]
fn check(yaml: &str, expected: &str) {
    let object: serde_json::Value = serde_saphyr::from_str(yaml).unwrap();
    let status = match of_live(&object) {
        Verdict::Current => "current".to_owned(),
        Verdict::Terminating(finalizers) => format!("terminating: {}", finalizers.join(", ")),
        Verdict::InProgress(why) => why,
        Verdict::Failed(why) => format!("failed: {why}"),
    };
    assert_eq!(status, expected, "{yaml}");
}

#[test]
fn secrets_are_watched_by_their_metadata_only() {
    for (api_version, kind) in [("v1", "Secret"), ("v1", "ConfigMap"), ("rbac.authorization.k8s.io/v1", "Role")] {
        assert!(!has_status(api_version, kind), "{kind}");
    }
    for (api_version, kind) in [("apps/v1", "Deployment"), ("v1", "Pod"), ("example.com/v1", "Secret")] {
        assert!(has_status(api_version, kind), "{kind}");
    }
}

#[test]
fn any_kind() {
    check("{apiVersion: v1, kind: ConfigMap}", "current");
    check(
        "{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [a/b]}}",
        "terminating: a/b",
    );
    let unready = "{kind: X, metadata: {annotations: {purlin.dev/wait: 'false'}}, status: {conditions: [{type: Ready, status: 'False'}]}}";
    check(unready, "current");
    check("{kind: X, metadata: {generation: 2}, status: {observedGeneration: 2}}", "current");
    check(
        "{kind: X, metadata: {generation: 2}, status: {observedGeneration: 1}}",
        "generation 2 is not observed yet (last: 1)",
    );
    check("{kind: X, status: {conditions: [{type: Ready, status: 'True'}]}}", "current");
    check("{kind: X, status: {conditions: [{type: Ready, status: Unknown, message: soon}]}}", "Ready: soon");
    check("{kind: X, status: {conditions: [{type: Reconciling, status: 'True', reason: Working}]}}", "Working");
    check("{kind: X, status: {conditions: [{type: Reconciling, status: 'False'}]}}", "current");
    check("{kind: X, status: {conditions: [{type: Stalled, status: 'True', message: bad}]}}", "failed: Stalled: bad");
}

fn deployment(status: &str) -> String {
    format!("{{apiVersion: apps/v1, kind: Deployment, spec: {{replicas: 2}}, {status}}}")
}

#[test]
fn deployments() {
    let available = "conditions: [{type: Available, status: 'True'}]";
    check(&deployment("status: {}"), "no controller has observed it yet");
    check(&deployment("status: {observedGeneration: 1, replicas: 2, updatedReplicas: 1}"), "1 of 2 Pods are updated");
    check(
        &deployment("status: {observedGeneration: 1, replicas: 3, updatedReplicas: 2}"),
        "1 Pods of the old version remain",
    );
    check(
        &deployment(
            "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 1}",
        ),
        "1 of 2 Pods are available",
    );
    let complete = "observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2";
    check(&deployment(&format!("status: {{{complete}, {available}}}")), "current");
    check(&deployment(&format!("status: {{{complete}}}")), "not available yet");
    check(
        &deployment(
            "status: {observedGeneration: 1, conditions: [{type: Progressing, status: 'False', \
             reason: ProgressDeadlineExceeded, message: too slow}]}",
        ),
        "failed: ProgressDeadlineExceeded: too slow",
    );
}

fn replicas(kind: &str, conditions: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: {kind}, status: {{observedGeneration: 1, replicas: 1, updatedReplicas: 1, \
         fullyLabeledReplicas: 1, conditions: [{conditions}]}}}}"
    )
}

#[test]
fn workloads_name_the_cause_of_missing_pods() {
    let refused = "{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: 'exceeded quota: pods=0'}";
    let unavailable = "{type: Available, status: 'False', reason: MinimumReplicasUnavailable, message: none}";
    let what = "0 of 1 Pods are available";
    check(&replicas("Deployment", unavailable), what);
    check(
        &replicas("Deployment", &format!("{unavailable}, {refused}")),
        &format!("{what}: FailedCreate: exceeded quota: pods=0"),
    );
    check(
        &replicas(
            "Deployment",
            "{type: Progressing, status: Unknown, reason: DeploymentPaused, message: it is paused}",
        ),
        &format!("{what}: DeploymentPaused: it is paused"),
    );
    check(&replicas("ReplicaSet", refused), &format!("{what}: FailedCreate: exceeded quota: pods=0"));
    let complete = "replicas: 1, fullyLabeledReplicas: 1, availableReplicas: 1, readyReplicas: 1";
    check(
        &format!(
            "{{apiVersion: apps/v1, kind: ReplicaSet, status: {{observedGeneration: 1, {complete}, conditions: [{refused}]}}}}"
        ),
        "FailedCreate: exceeded quota: pods=0",
    );
}

fn unready_pod(phase: &str, list: &str, reason: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, status: {{phase: {phase}, {list}: [{{name: db, state: {{running: {{}}}}}}, \
         {{name: web, state: {{waiting: {{reason: {reason}, message: \"Back-off pulling\\nimage x\"}}}}}}], conditions: [\
         {{type: Ready, status: 'False', reason: ContainersNotReady, message: 'unready: [web]'}}]}}}}"
    )
}

#[test]
fn a_pod_names_the_container_that_does_not_start() {
    let pulling = "container `web`: ImagePullBackOff: Back-off pulling image x";
    check(
        &unready_pod("Pending", "containerStatuses", "ImagePullBackOff"),
        &format!("the Pod has not started: {pulling}"),
    );
    check(
        &unready_pod("Pending", "initContainerStatuses", "ImagePullBackOff"),
        &format!("the Pod has not started: {pulling}"),
    );
    check(&unready_pod("Pending", "containerStatuses", "ContainerCreating"), "the Pod has not started");
    check(
        &unready_pod("Running", "containerStatuses", "ImagePullBackOff"),
        &format!("the Pod is not ready: {pulling}"),
    );
    check(
        &unready_pod("Running", "initContainerStatuses", "PodInitializing"),
        "the Pod is not ready: ContainersNotReady: unready: [web]",
    );
}

fn workload(kind: &str, rest: &str) -> String {
    format!("{{apiVersion: apps/v1, kind: {kind}, {rest}}}")
}

#[test]
fn other_workloads() {
    check(
        &workload("StatefulSet", "status: {observedGeneration: 1, replicas: 1, readyReplicas: 0}"),
        "0 of 1 Pods are ready",
    );
    check(
        &workload(
            "StatefulSet",
            "status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, \
             currentRevision: a, updateRevision: a}",
        ),
        "current",
    );
    check(
        &workload(
            "StatefulSet",
            "status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, \
             currentRevision: a, updateRevision: b}",
        ),
        "0 of 1 Pods are updated",
    );
    check(
        &workload(
            "StatefulSet",
            "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, \
             status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 1}",
        ),
        "current",
    );
    check(
        &workload("DaemonSet", "status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 1}"),
        "1 of 2 Pods are scheduled",
    );
    check(&workload("DaemonSet", "status: {observedGeneration: 1, desiredNumberScheduled: 0}"), "current");
    check(
        &workload("ReplicaSet", "status: {observedGeneration: 1, fullyLabeledReplicas: 1, availableReplicas: 0}"),
        "0 of 1 Pods are available",
    );
}

fn pod(status: &str) -> String {
    format!("{{apiVersion: v1, kind: Pod, status: {{{status}}}}}")
}

fn job(status: &str) -> String {
    format!("{{apiVersion: batch/v1, kind: Job, status: {{{status}}}}}")
}

#[test]
fn pods_and_jobs() {
    check(&pod(""), "the Pod has not started");
    check(
        &pod(
            "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: no nodes}]",
        ),
        "Unschedulable: no nodes",
    );
    check(&pod("phase: Running"), "the Pod is not ready");
    check(&pod("phase: Running, conditions: [{type: Ready, status: 'True'}]"), "current");
    check(
        &pod("phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]"),
        "failed: container `web` keeps crashing",
    );
    check(&pod("phase: Succeeded"), "current");
    check(&pod("phase: Failed"), "failed: the Pod has failed");
    check(&job(""), "the Job has not started");
    check(&job("startTime: '2026-01-01T00:00:00Z'"), "current");
    check(
        &job("conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]"),
        "failed: BackoffLimitExceeded",
    );
}

fn crd(conditions: &str) -> String {
    format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
         status: {{conditions: [{conditions}]}}}}"
    )
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
    check(
        "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, \
         status: {conditions: [{type: Balanced, status: 'False', reason: NoQuota, message: no addresses left}]}}",
        "the load balancer has no address: NoQuota: no addresses left",
    );
    check("{apiVersion: v1, kind: PersistentVolumeClaim}", "the claim is not bound to a volume");
    check("{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}", "current");
    check(&crd(""), "the definition is not established yet");
    check(&crd("{type: Established, status: 'False', reason: Installing}"), "the definition is not established yet");
    check(&crd("{type: Established, status: 'True'}"), "current");
    check(&crd("{type: NamesAccepted, status: 'False', reason: Conflict, message: taken}"), "failed: Conflict: taken");
}
