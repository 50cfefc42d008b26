package main

import (
	"fmt"
	"hash/fnv"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is to become of a Pod is told by these annotations on it, which may change while it lives, or by environment
// variables of any of its containers, for Pods whose annotations somebody else writes. README.md lists the values.
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
	// ready matters while the Pod runs.
	ready bool
	// exitCode and message are those of its containers, once it has ended.
	exitCode int32
	message  string
}

func wantedOutcome(pod *corev1.Pod) (outcome, error) {
	wanted := outcome{message: told(pod, messageAnnotation, messageVariable)}
	name := told(pod, outcomeAnnotation, outcomeVariable)
	if name == "" {
		name = "succeeded"
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			name = "running"
		}
	}
	switch name {
	case "pending":
		wanted.phase = corev1.PodPending
	case "unready":
		wanted.phase = corev1.PodRunning
	case "running":
		wanted.phase, wanted.ready = corev1.PodRunning, true
	case "succeeded":
		wanted.phase = corev1.PodSucceeded
	case "failed":
		wanted.phase, wanted.exitCode = corev1.PodFailed, 1
	default:
		return wanted, fmt.Errorf("%q is no outcome: pending, unready, running, succeeded or failed", name)
	}
	if code := told(pod, exitCodeAnnotation, exitCodeVariable); code != "" {
		number, err := strconv.ParseInt(code, 10, 32)
		if err != nil {
			return wanted, fmt.Errorf("exit code: %w", err)
		}
		wanted.exitCode = int32(number)
	}
	return wanted, nil
}

func told(pod *corev1.Pod, annotation, variable string) string {
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

func isAlready(pod *corev1.Pod, wanted outcome) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			ready := condition.Status == corev1.ConditionTrue
			return pod.Status.Phase == wanted.phase && ready == wanted.ready
		}
	}
	return false
}

func fillStatus(pod *corev1.Pod, wanted outcome, now metav1.Time) {
	status := &pod.Status
	status.Phase = wanted.phase
	status.ObservedGeneration = pod.Generation
	if status.StartTime == nil {
		status.StartTime = &now
	}
	ip := podIP(pod)
	status.HostIP, status.HostIPs = "127.0.0.1", []corev1.HostIP{{IP: "127.0.0.1"}}
	status.PodIP, status.PodIPs = ip, []corev1.PodIP{{IP: ip}}

	reason := ""
	if wanted.phase == corev1.PodSucceeded {
		reason = "PodCompleted"
	} else if wanted.phase == corev1.PodFailed {
		reason = "PodFailed"
	} else if !wanted.ready {
		reason = "ContainersNotReady"
	}
	setCondition(pod, corev1.PodInitialized, true, "", now)
	setCondition(pod, corev1.ContainersReady, wanted.ready, reason, now)
	setCondition(pod, corev1.PodReady, wanted.ready, reason, now)

	status.InitContainerStatuses = nil
	for _, container := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(container,
			true, corev1.ContainerState{Terminated: terminated(pod, 0, "", now)}))
	}
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *status.StartTime}}
	if wanted.phase != corev1.PodRunning {
		state = corev1.ContainerState{Terminated: terminated(pod, wanted.exitCode, wanted.message, now)}
	}
	status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(container, wanted.ready, state))
	}
}

func containerStatus(container corev1.Container, ready bool, state corev1.ContainerState) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: "stand-in://" + container.Image,
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

// podIP draws an address from the Pod's UID, so that none has to be remembered; two may come out alike.
func podIP(pod *corev1.Pod) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod.UID))
	sum := hash.Sum32()
	return net.IPv4(10, 128|byte(sum>>16)&127, byte(sum>>8), byte(sum)).String()
}
