package main

import (
	"fmt"
	"hash/fnv"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// These annotations select the outcome of a Pod, and may change while it exists. The environment variables of any of
// its containers do the same, for Pods whose annotations a test cannot set. README.md lists the values.
const (
	outcomeAnnotation  = "test.purlin.dev/outcome"
	exitCodeAnnotation = "test.purlin.dev/exit-code"
	messageAnnotation  = "test.purlin.dev/termination-message"

	outcomeVariable  = "PURLIN_TEST_OUTCOME"
	exitCodeVariable = "PURLIN_TEST_EXIT_CODE"
	messageVariable  = "PURLIN_TEST_TERMINATION_MESSAGE"
)

type outcome struct {
	phase corev1.PodPhase
	// ready applies while the Pod runs.
	ready bool
	// exitCode and message apply to all containers, after the Pod has ended.
	exitCode int32
	message  string
}

func desiredOutcome(pod *corev1.Pod) (outcome, error) {
	desired := outcome{message: setting(pod, messageAnnotation, messageVariable)}
	name := setting(pod, outcomeAnnotation, outcomeVariable)
	if name == "" {
		name = "succeeded"
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			name = "running"
		}
	}
	switch name {
	case "pending":
		desired.phase = corev1.PodPending
	case "unready":
		desired.phase = corev1.PodRunning
	case "running":
		desired.phase, desired.ready = corev1.PodRunning, true
	case "succeeded":
		desired.phase = corev1.PodSucceeded
	case "failed":
		desired.phase, desired.exitCode = corev1.PodFailed, 1
	default:
		return desired, fmt.Errorf("%q is not an outcome: use pending, unready, running, succeeded or failed", name)
	}
	if code := setting(pod, exitCodeAnnotation, exitCodeVariable); code != "" {
		number, err := strconv.ParseInt(code, 10, 32)
		if err != nil {
			return desired, fmt.Errorf("exit code: %w", err)
		}
		desired.exitCode = int32(number)
	}
	return desired, nil
}

func setting(pod *corev1.Pod, annotation, variable string) string {
	if value, ok := pod.Annotations[annotation]; ok {
		return value
	}
	for _, container := range pod.Spec.Containers {
		for _, entry := range container.Env {
			if entry.Name == variable {
				return entry.Value
			}
		}
	}
	return ""
}

func matches(pod *corev1.Pod, desired outcome) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			ready := condition.Status == corev1.ConditionTrue
			return pod.Status.Phase == desired.phase && ready == desired.ready
		}
	}
	return false
}

func fillStatus(pod *corev1.Pod, desired outcome, now metav1.Time) {
	status := &pod.Status
	status.Phase = desired.phase
	status.ObservedGeneration = pod.Generation
	if status.StartTime == nil {
		status.StartTime = &now
	}
	ip := podIP(pod)
	status.HostIP, status.HostIPs = "127.0.0.1", []corev1.HostIP{{IP: "127.0.0.1"}}
	status.PodIP, status.PodIPs = ip, []corev1.PodIP{{IP: ip}}

	reason := ""
	if desired.phase == corev1.PodSucceeded {
		reason = "PodCompleted"
	} else if desired.phase == corev1.PodFailed {
		reason = "PodFailed"
	} else if !desired.ready {
		reason = "ContainersNotReady"
	}
	setCondition(pod, corev1.PodInitialized, true, "", now)
	setCondition(pod, corev1.ContainersReady, desired.ready, reason, now)
	setCondition(pod, corev1.PodReady, desired.ready, reason, now)

	status.InitContainerStatuses = nil
	for _, container := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(container,
			true, corev1.ContainerState{Terminated: terminated(pod, 0, "", now)}))
	}
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *status.StartTime}}
	if desired.phase != corev1.PodRunning {
		state = corev1.ContainerState{Terminated: terminated(pod, desired.exitCode, desired.message, now)}
	}
	status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(container, desired.ready, state))
	}
}

func containerStatus(container corev1.Container, ready bool, state corev1.ContainerState) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: "simulated://" + container.Image,
		Ready: ready, Started: &started, State: state,
	}
}

func terminated(pod *corev1.Pod, exitCode int32, message string, now metav1.Time) *corev1.ContainerStateTerminated {
	reason := "Completed"
	if exitCode != 0 {
		reason = "Error"
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: exitCode, Reason: reason, Message: message, StartedAt: *pod.Status.StartTime, FinishedAt: now,
	}
}

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, holds bool, reason string, now metav1.Time) {
	condition := corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: now,
		ObservedGeneration: pod.Generation,
	}
	if holds {
		condition.Status = corev1.ConditionTrue
	}
	for i, old := range pod.Status.Conditions {
		if old.Type == kind {
			if old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			pod.Status.Conditions[i] = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

// podIP derives an address from the UID of the Pod, so that it need not be stored. Two Pods may have the same address.
func podIP(pod *corev1.Pod) string {
	if isProgram(pod) {
		return loopback(pod)
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod.UID))
	sum := hash.Sum32()
	return net.IPv4(10, 128|byte(sum>>16)&127, byte(sum>>8), byte(sum)).String()
}
