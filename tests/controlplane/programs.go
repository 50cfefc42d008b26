package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// isProgram reports whether the only container of a Pod is a program of this machine: its image is an absolute path.
// Such a Pod runs as a process, with the arguments and the environment of the container. It has its own temporary
// directory, but neither volumes nor limits.
func isProgram(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) == 1 && filepath.IsAbs(pod.Spec.Containers[0].Image)
}

// programs are the processes of Pods, by UID.
type programs struct {
	client kubernetes.Interface
	mutex  sync.Mutex
	byPod  map[types.UID]*program
	// changed is called when a process has ended.
	changed func(pod *corev1.Pod)
}

type program struct {
	process *os.Process
	// ended is nil while the process runs.
	ended *outcome
}

// state returns how the program of a Pod is doing, and starts it if it has not run.
func (p *programs) state(ctx context.Context, pod *corev1.Pod) (outcome, error) {
	p.mutex.Lock()
	known := p.byPod[pod.UID]
	p.mutex.Unlock()
	if known == nil {
		started, err := p.start(ctx, pod)
		if err != nil {
			return outcome{}, err
		}
		known = started
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if known.ended != nil {
		return *known.ended, nil
	}
	return outcome{phase: corev1.PodRunning, ready: true}, nil
}

// stop asks the program of a Pod to end, kills it after the grace period, and reports whether it has ended.
func (p *programs) stop(pod *corev1.Pod) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	known := p.byPod[pod.UID]
	if known == nil || known.ended != nil {
		return true
	}
	_ = known.process.Signal(syscall.SIGTERM)
	// The deletion time is when the grace period ends, and is brought forward by a deletion with a shorter one.
	left := max(time.Until(pod.DeletionTimestamp.Time), 0)
	time.AfterFunc(left, func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if known.ended == nil {
			_ = known.process.Kill()
		}
	})
	return false
}

func (p *programs) start(ctx context.Context, pod *corev1.Pod) (*program, error) {
	container := pod.Spec.Containers[0]
	directory, err := os.MkdirTemp("", "pod-")
	if err != nil {
		return nil, err
	}
	environment, err := p.environment(ctx, pod)
	if err != nil {
		_ = os.RemoveAll(directory)
		return nil, err
	}
	expanded := func(name string) string { return environment[name] }
	command := exec.Command(container.Image)
	for _, argument := range container.Args {
		// The syntax of Kubernetes is $(NAME).
		argument = strings.NewReplacer("$(", "${", ")", "}").Replace(argument)
		command.Args = append(command.Args, os.Expand(argument, expanded))
	}
	for name, value := range environment {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Env = append(command.Env, "TMPDIR="+directory, "PATH="+os.Getenv("PATH"))
	output := &bytes.Buffer{}
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = dieWithParent()
	// The process is killed when the thread that started it ends, so it gets one that does not.
	started := make(chan error, 1)
	known := &program{}
	go func() {
		runtime.LockOSThread()
		err := command.Start()
		known.process = command.Process
		started <- err
		if err != nil {
			return
		}
		err = command.Wait()
		_ = os.RemoveAll(directory)
		ended := outcome{phase: corev1.PodSucceeded}
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code := int32(exit.ExitCode())
			if code < 0 {
				code = 137
			}
			ended = outcome{phase: corev1.PodFailed, exitCode: code, message: tail(output.String())}
		}
		fmt.Fprintf(os.Stderr, "pod %s/%s ended: %v\n%s", pod.Namespace, pod.Name, err, output.String())
		p.mutex.Lock()
		known.ended = &ended
		p.mutex.Unlock()
		p.changed(pod)
	}()
	if err := <-started; err != nil {
		_ = os.RemoveAll(directory)
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.byPod[pod.UID] = known
	return known, nil
}

func (p *programs) environment(ctx context.Context, pod *corev1.Pod) (map[string]string, error) {
	environment := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		source := variable.ValueFrom
		switch {
		case source == nil:
			environment[variable.Name] = variable.Value
		case source.FieldRef != nil && source.FieldRef.FieldPath == "status.podIP":
			environment[variable.Name] = podIP(pod)
		case source.SecretKeyRef != nil:
			secret, err := p.client.CoreV1().Secrets(pod.Namespace).Get(ctx, source.SecretKeyRef.Name, metav1.GetOptions{})
			if err != nil {
				// Not the error itself: one that is not found would mean that the Pod is.
				return nil, fmt.Errorf("the Secret of the variable %s: %v", variable.Name, err)
			}
			environment[variable.Name] = string(secret.Data[source.SecretKeyRef.Key])
		default:
			return nil, fmt.Errorf("the variable %s has a source that is not simulated", variable.Name)
		}
	}
	return environment, nil
}

// loopback derives an address of this machine from the UID of a Pod, so that the programs of several Pods can listen on
// the same port. Two Pods have the same address too rarely to matter.
func loopback(pod *corev1.Pod) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod.UID))
	sum := hash.Sum32()
	return net.IPv4(127, 128|byte(sum>>16)&127, byte(sum>>8), byte(sum)|1).String()
}

// tail returns what a kubelet reports of the output of a container that failed.
func tail(output string) string {
	const limit = 2048
	if len(output) > limit {
		output = output[len(output)-limit:]
	}
	return strings.TrimSpace(output)
}
