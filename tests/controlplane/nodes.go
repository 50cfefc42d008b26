package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const nodeName = "purlin-test-node"

// simulator updates Pods in the API as a scheduler and a kubelet would. It runs no containers, but programs of this
// machine.
type simulator struct {
	client   kubernetes.Interface
	programs *programs
	pods     corelisters.PodLister
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func nodes(args []string) error {
	flags := flag.NewFlagSet("nodes", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of an administrator (required)")
	_ = flags.Parse(args)
	if *kubeconfig == "" {
		return errors.New("--kubeconfig is required")
	}
	exitWithParent(func() {})

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // No limit.
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for err := registerNode(ctx, client); err != nil; err = registerNode(ctx, client) {
		fmt.Fprintf(os.Stderr, "registering the node: %v\n", err)
		time.Sleep(100 * time.Millisecond)
	}

	informer := informers.NewSharedInformerFactory(client, 0)
	pods := informer.Core().V1().Pods()
	simulated := &simulator{
		client: client,
		pods:   pods.Lister(),
		// Errors are conflicts or an unavailable API server, so the back-off is short.
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, time.Second)),
	}
	simulated.programs = &programs{client: client, byPod: map[types.UID]*program{}, changed: func(pod *corev1.Pod) {
		simulated.queue.Add(cache.MetaObjectToName(pod))
	}}
	enqueue := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			simulated.queue.Add(cache.MetaObjectToName(pod))
		}
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	}); err != nil {
		return err
	}
	informer.Start(ctx.Done())
	informer.WaitForCacheSync(ctx.Done())
	for range 3 {
		go simulated.work(ctx)
	}
	simulated.work(ctx)
	return nil
}

func (s *simulator) work(ctx context.Context) {
	for {
		name, stopping := s.queue.Get()
		if stopping {
			return
		}
		err := s.advance(ctx, name)
		if err == nil || apierrors.IsNotFound(err) {
			s.queue.Forget(name)
		} else {
			if !apierrors.IsConflict(err) {
				fmt.Fprintf(os.Stderr, "pod %s: %v\n", name, err)
			}
			s.queue.AddRateLimited(name)
		}
		s.queue.Done(name)
	}
}

// advance does one step for one Pod. The event of that step enqueues the Pod again.
func (s *simulator) advance(ctx context.Context, name cache.ObjectName) error {
	pod, err := s.pods.Pods(name.Namespace).Get(name.Name)
	if err != nil {
		return err
	}
	desired, err := desiredOutcome(pod)
	if err != nil {
		return err
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case pod.DeletionTimestamp != nil:
		return s.remove(ctx, pod, ended)
	case ended || desired.phase == corev1.PodPending || len(pod.Spec.SchedulingGates) > 0:
		return nil
	case pod.Spec.NodeName == "" && isProgram(pod) && len(pod.Spec.NodeSelector) > 0:
		return s.setUnschedulable(ctx, pod)
	case pod.Spec.NodeName == "":
		return s.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
		}, metav1.CreateOptions{})
	case isProgram(pod):
		desired, err := s.programs.state(ctx, pod)
		if err != nil {
			return err
		}
		if matches(pod, desired) {
			return nil
		}
		return s.setStatus(ctx, pod, desired)
	case matches(pod, desired):
		return nil
	}
	return s.setStatus(ctx, pod, desired)
}

// remove deletes without the grace period, except for programs: there are no other processes to stop.
func (s *simulator) remove(ctx context.Context, pod *corev1.Pod, ended bool) error {
	if isProgram(pod) && !s.programs.stop(pod) {
		return nil
	}
	// The finalizer of a Job's Pod is removed only after the Pod has ended.
	if !ended && pod.Spec.NodeName != "" && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return s.setStatus(ctx, pod, outcome{phase: corev1.PodFailed, exitCode: 137, message: "deleted"})
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
		return nil
	}
	now := int64(0)
	return s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
}

func (s *simulator) setStatus(ctx context.Context, pod *corev1.Pod, desired outcome) error {
	pod = pod.DeepCopy()
	fillStatus(pod, desired, metav1.Now())
	_, err := s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// setUnschedulable reports what the scheduler reports if no node has the labels that a Pod selects.
func (s *simulator) setUnschedulable(ctx context.Context, pod *corev1.Pod) error {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return nil
		}
	}
	pod = pod.DeepCopy()
	setCondition(pod, corev1.PodScheduled, false, corev1.PodReasonUnschedulable, metav1.Now())
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].Message = "no node has the labels of the Pod"
	}
	_, err := s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func registerNode(ctx context.Context, client kubernetes.Interface) error {
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   nodeName,
		Labels: map[string]string{corev1.LabelHostname: nodeName, corev1.LabelOSStable: "linux"},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = nodes.Get(ctx, nodeName, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	// Admission taints each new node as not ready. The controller that removes the taint does not run here.
	if len(node.Spec.Taints) > 0 {
		node.Spec.Taints = nil
		if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("100000"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: nodeName}}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated", Message: "the kubelet is simulated",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
