package main

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// The objects that the Resources of a namespace manage, read from the API server.
type outside struct {
	client    dynamic.Interface
	namespace string
}

// The kinds that the tests manage.
var kinds = map[string]schema.GroupVersionResource{
	"ConfigMap":  {Version: "v1", Resource: "configmaps"},
	"Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
}

// The objects that name a Resource as their owner.
func (o *outside) owned(resource *unstructured.Unstructured) []unstructured.Unstructured {
	kind, _ := at(resource, "spec", "config", "manifest", "kind").(string)
	api, ok := kinds[kind]
	if !ok {
		return nil
	}
	list, err := o.client.Resource(api).Namespace(o.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	var owned []unstructured.Unstructured
	for _, item := range list.Items {
		// <cluster>/<namespace>/<name>/<instance>
		owner := strings.Split(item.GetAnnotations()["purlin.dev/owner"], "/")
		if len(owner) > 2 && owner[2] == resource.GetName() {
			owned = append(owned, item)
		}
	}
	return owned
}

// Says what is not as a version of a Resource describes it. A version that is no longer the newest one proves nothing.
func (o *outside) differs(resource *unstructured.Unstructured) string {
	why := o.compare(resource)
	if why == "" {
		return ""
	}
	api := o.client.Resource(resources).Namespace(o.namespace)
	now, err := api.Get(context.Background(), resource.GetName(), metav1.GetOptions{})
	if err != nil || now.GetResourceVersion() != resource.GetResourceVersion() {
		return ""
	}
	return why
}

func (o *outside) compare(resource *unstructured.Unstructured) string {
	config, _ := at(resource, "spec", "config").(map[string]any)
	if at(resource, "spec", "type") == "terraform_data" {
		if output := at(resource, "status", "attributes", "output"); !contains(output, config["input"]) {
			return fmt.Sprintf("its output is %v", output)
		}
		return ""
	}
	owned := o.owned(resource)
	if len(owned) != 1 {
		return fmt.Sprintf("it has %d objects", len(owned))
	}
	live := &owned[0]
	manifest, _ := config["manifest"].(map[string]any)
	for _, field := range []string{"data", "spec"} {
		if !contains(live.Object[field], manifest[field]) {
			return fmt.Sprintf("its object has the %s %v", field, live.Object[field])
		}
	}
	// Only a change of its manifest changes a ConfigMap.
	if live.GetKind() == "ConfigMap" && isLater(live.GetResourceVersion(), resource.GetResourceVersion()) {
		return "its object was changed afterwards"
	}
	result, err := status.Compute(live)
	if err != nil || result.Status != status.CurrentStatus {
		return fmt.Sprintf("its object is %v (%v)", result, err)
	}
	return ""
}

// Whether a value has everything that a manifest says, except for values with expressions.
func contains(live, manifest any) bool {
	switch manifest := manifest.(type) {
	case nil:
		return true
	case string:
		return strings.Contains(manifest, "${") || live == manifest
	case map[string]any:
		fields, _ := live.(map[string]any)
		for key, value := range manifest {
			if !contains(fields[key], value) {
				return false
			}
		}
		return true
	case []any:
		items, _ := live.([]any)
		if len(items) != len(manifest) {
			return false
		}
		for at, value := range manifest {
			if !contains(items[at], value) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(live, manifest)
}

// Whether an object was written after another one: the versions of all objects come from one counter.
func isLater(version, other string) bool {
	return number(version) > number(other)
}

func number(value any) int {
	text, _ := value.(string)
	n, _ := strconv.Atoi(text)
	return n
}
