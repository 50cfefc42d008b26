package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// What the watcher prints at the end.
type report struct {
	// The statuses of each Resource in their order, without repetitions.
	Statuses map[string][]string `json:"statuses"`
	// The moments at which a status was Current, but the change was not carried out.
	TooEarly []string `json:"tooEarly"`
	// How many versions were Current and compared with the objects.
	Compared int `json:"compared"`
}

type watcher struct {
	outside *outside
	// The health check of Argo CD.
	health string
	report report
	// The Resources as of the last event. Events of one kind are ordered, so this is a state that a client can read.
	known map[string]*unstructured.Unstructured
}

// Computes the kstatus of every version of every Resource of the namespace, and compares it with the objects outside and
// with a health check of Argo CD.
func watchStatuses(namespace, health string) error {
	script, err := os.ReadFile(health)
	if err != nil {
		return err
	}
	config, err := clientConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		// The test closes stdin when it has seen what it waits for.
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	api := client.Resource(resources).Namespace(namespace)
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	events, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	w := &watcher{
		outside: &outside{client: client, namespace: namespace},
		health:  string(script),
		report:  report{Statuses: map[string][]string{}, TooEarly: []string{}},
		known:   map[string]*unstructured.Unstructured{},
	}
	fmt.Println("watching")
	for event := range events.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			// An interrupted response is reported as an error, too.
			if ctx.Err() != nil {
				break
			}
			return fmt.Errorf("the watch ended: %v", event.Object)
		}
		if err := w.observe(event.Type, object); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		return errors.New("the watch ended")
	}
	return json.NewEncoder(os.Stdout).Encode(w.report)
}

func (w *watcher) observe(kind watch.EventType, object *unstructured.Unstructured) error {
	name := object.GetName()
	if kind == watch.Deleted {
		delete(w.known, name)
		w.saw(name, "NotFound")
		if left := w.outside.owned(object); len(left) > 0 {
			w.tooEarly(object, "it is gone, but its object exists")
		}
		return nil
	}
	w.known[name] = object
	result, err := status.Compute(object)
	if err != nil {
		return err
	}
	w.saw(name, result.Status.String())
	if err := w.compareHealth(object, result.Status); err != nil {
		return err
	}
	if result.Status == status.CurrentStatus {
		w.report.Compared++
		if why := w.outside.differs(object); why != "" {
			w.tooEarly(object, why)
		}
	}
	if w.allCurrent() {
		w.compareAll(object.GetResourceVersion())
	}
	return nil
}

// Both say that a Resource is ready, or that its user must act, at the same moments. Only a suspended Resource and one with
// an open request differ.
func (w *watcher) compareHealth(object *unstructured.Unstructured, result status.Status) error {
	// The script compares numbers, which are all float64 in Argo CD's copy of an object, too.
	health, err := evaluate(w.health, plain(object.Object))
	if err != nil {
		return err
	}
	fields, _ := health.(map[string]any)
	wanted := map[status.Status]any{
		status.CurrentStatus: "Healthy", status.FailedStatus: "Degraded", status.InProgressStatus: "Progressing",
		status.TerminatingStatus: "Progressing",
	}
	if fields["status"] != wanted[result] && fields["status"] != "Suspended" {
		w.tooEarly(object, fmt.Sprintf("kstatus is %s, but its health is %v", result, health))
	}
	return nil
}

func (w *watcher) saw(name, status string) {
	seen := w.report.Statuses[name]
	if len(seen) == 0 || seen[len(seen)-1] != status {
		w.report.Statuses[name] = append(seen, status)
	}
}

func (w *watcher) tooEarly(object *unstructured.Unstructured, why string) {
	line := fmt.Sprintf("%s, generation %d, version %s: %s", object.GetName(), object.GetGeneration(),
		object.GetResourceVersion(), why)
	w.report.TooEarly = append(w.report.TooEarly, line)
}

// Whether a client that waits for all Resources stops to wait now.
func (w *watcher) allCurrent() bool {
	for _, object := range w.known {
		result, err := status.Compute(object)
		if err != nil || result.Status != status.CurrentStatus {
			return false
		}
	}
	return true
}

// Compares `number` in the ConfigMaps of the Resources that refer to another one with the greatest one in a manifest. The
// numbers only grow.
func (w *watcher) compareAll(version string) {
	wanted := 0
	for _, object := range w.known {
		wanted = max(wanted, number(declared(object)))
	}
	for _, object := range w.known {
		if reference, _ := declared(object).(string); !strings.Contains(reference, "${") {
			continue
		}
		for _, live := range w.outside.owned(object) {
			found := number(at(&live, "data", "number"))
			if found < wanted || (found == wanted && isLater(live.GetResourceVersion(), version)) {
				w.tooEarly(object, fmt.Sprintf("all are Current, but its ConfigMap did not have number=%d yet", wanted))
			}
		}
	}
}

// What a manifest says about `number`.
func declared(resource *unstructured.Unstructured) any {
	return at(resource, "spec", "config", "manifest", "data", "number")
}
