// Runs the cases of `examples/argocd` with the scripts of its `argocd-cm.yaml` and with Argo CD's own code, and compares
// manifests with objects as Argo CD does. CI runs the same cases with the libraries of Argo CD only (`tests/gitops`),
// because Argo CD takes minutes to compile. CONTRIBUTING.md describes how to run this program.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	appv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/argo/normalizers"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The files of Argo CD's own tests of such scripts.
type cases struct {
	Tests []struct {
		InputPath    string              `json:"inputPath"`
		HealthStatus health.HealthStatus `json:"healthStatus"`
	} `json:"tests"`
	DiscoveryTests []struct {
		InputPath string                 `json:"inputPath"`
		Result    []appv1.ResourceAction `json:"result"`
	} `json:"discoveryTests"`
	ActionTests []struct {
		Action             string `json:"action"`
		InputPath          string `json:"inputPath"`
		ExpectedOutputPath string `json:"expectedOutputPath"`
	} `json:"actionTests"`
}

func main() {
	err := errors.New("usage: argocd scripts DIRECTORY | argocd diff MANIFESTS OBJECTS")
	switch {
	case len(os.Args) == 3 && os.Args[1] == "scripts":
		err = runScripts(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "diff":
		err = compare(os.Args[2], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Runs all cases in a copy of `examples/argocd`.
func runScripts(directory string) error {
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	if err := read(&configMap, directory, "argocd-cm.yaml"); err != nil {
		return err
	}
	vm := lua.VM{ResourceOverrides: overrides(configMap.Data)}
	kinds, err := filepath.Glob(filepath.Join(directory, "resource_customizations/*/*"))
	for _, kind := range kinds {
		var found cases
		err = errors.Join(err, read(&found, kind, "health_test.yaml"), read(&found, kind, "actions/action_test.yaml"))
		for _, test := range found.Tests {
			err = errors.Join(err, verdict(kind, test.InputPath, func(object *unstructured.Unstructured) (bool, any, error) {
				script, _, err := vm.GetHealthScript(object)
				if err != nil {
					return false, nil, err
				}
				got, err := vm.ExecuteHealthLua(object, script)
				return got != nil && *got == test.HealthStatus, got, err
			}))
		}
		actions := filepath.Join(kind, "actions")
		for _, test := range found.DiscoveryTests {
			err = errors.Join(err, verdict(actions, test.InputPath, func(object *unstructured.Unstructured) (bool, any, error) {
				scripts, err := vm.GetResourceActionDiscovery(object)
				if err != nil {
					return false, nil, err
				}
				got, err := vm.ExecuteResourceActionDiscovery(object, scripts)
				return sameActions(got, test.Result), got, err
			}))
		}
		for _, test := range found.ActionTests {
			err = errors.Join(err, verdict(actions, test.InputPath, func(object *unstructured.Unstructured) (bool, any, error) {
				action, err := vm.GetResourceAction(object, test.Action)
				if err != nil {
					return false, nil, err
				}
				got, err := vm.ExecuteResourceAction(object, action.ActionLua, nil)
				if err != nil || len(got) != 1 || got[0].K8SOperation != lua.PatchOperation {
					return false, got, err
				}
				wanted := &unstructured.Unstructured{}
				err = read(&wanted.Object, actions, test.ExpectedOutputPath)
				// The only value that differs with each run.
				for _, one := range []*unstructured.Unstructured{wanted, got[0].UnstructuredObj} {
					if all := one.GetAnnotations(); all["purlin.dev/reconcile-requested-at"] != "" {
						all["purlin.dev/reconcile-requested-at"] = "now"
						one.SetAnnotations(all)
					}
				}
				return reflect.DeepEqual(plain(got[0].UnstructuredObj.Object), plain(wanted.Object)), got[0].UnstructuredObj, err
			}))
		}
	}
	return err
}

// The scripts of the ConfigMap `argocd-cm`, by group and kind.
func overrides(data map[string]string) map[string]appv1.ResourceOverride {
	all := map[string]appv1.ResourceOverride{}
	for key, value := range data {
		what, kind, _ := strings.Cut(strings.TrimPrefix(key, "resource.customizations."), ".")
		kind = strings.Replace(kind, "_", "/", 1)
		override := all[kind]
		switch what {
		case "health":
			override.HealthLua = value
		case "actions":
			override.Actions = value
		}
		all[kind] = override
	}
	return all
}

func verdict(directory, input string, run func(*unstructured.Unstructured) (bool, any, error)) error {
	object := &unstructured.Unstructured{}
	if err := read(&object.Object, directory, input); err != nil {
		return err
	}
	passed, got, err := run(object)
	if err != nil || !passed {
		return fmt.Errorf("%s/%s: %v: %w", directory, input, plain(got), err)
	}
	fmt.Println("passed:", directory, input)
	return nil
}

func sameActions(got, wanted []appv1.ResourceAction) bool {
	disabled := map[string]bool{}
	for _, action := range got {
		disabled[action.Name] = action.Disabled
	}
	for _, action := range wanted {
		if now, ok := disabled[action.Name]; !ok || now != action.Disabled {
			return false
		}
	}
	return len(got) == len(wanted)
}

// Compares manifests with the objects of the same names, a list from `kubectl get -o json`.
func compare(manifests, objects string) error {
	text, err := os.ReadFile(manifests)
	if err != nil {
		return err
	}
	var live unstructured.UnstructuredList
	if err := read(&live, "", objects); err != nil {
		return err
	}
	// Argo CD's default: the status of every object is ignored.
	ignored := map[string]appv1.ResourceOverride{
		"*/*": {IgnoreDifferences: appv1.OverrideIgnoreDiff{JSONPointers: []string{"/status"}}},
	}
	normalizer, err := normalizers.NewIgnoreNormalizer(nil, ignored, normalizers.IgnoreNormalizerOpts{})
	for _, document := range strings.Split(string(text), "\n---\n") {
		wanted := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &wanted.Object); err != nil {
			return err
		}
		for _, item := range live.Items {
			if item.GetName() != wanted.GetName() || item.GroupVersionKind() != wanted.GroupVersionKind() {
				continue
			}
			wanted.SetNamespace(item.GetNamespace())
			result, failed := diff.Diff(wanted, &item, diff.WithNormalizer(normalizer))
			err = errors.Join(err, failed)
			if failed == nil {
				fmt.Println(item.GetKind(), item.GetName(), "differs:", result.Modified)
			}
		}
	}
	return err
}

func read(into any, directory, file string) error {
	text, err := os.ReadFile(filepath.Join(directory, file))
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}

// The value with the types that JSON decodes to.
func plain(value any) any {
	text, _ := json.Marshal(value)
	var decoded any
	_ = json.Unmarshal(text, &decoded)
	return decoded
}
