package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// The fields of a Kustomization of Flux that this program follows.
type kustomization struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Prune        bool            `json:"prune"`
		Wait         bool            `json:"wait"`
		Timeout      metav1.Duration `json:"timeout"`
		HealthChecks []struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
			Namespace  string `json:"namespace"`
		} `json:"healthChecks"`
	} `json:"spec"`
}

// How often the status is read. kustomize-controller reads it every five seconds.
const interval = 100 * time.Millisecond

// Applies the files of the paths, prunes what the previous run applied in addition, and waits, in the order of
// kustomize-controller and with its libraries. Prints each change. Without paths, the Kustomization is being deleted.
func reconcile(namespace, file, inventory string, paths []string) error {
	wanted, err := readKustomization(file)
	if err != nil {
		return err
	}
	objects, err := readAll(paths, namespace)
	if err != nil {
		return err
	}
	manager, err := newManager()
	if err != nil {
		return err
	}
	ctx := context.Background()
	owner, place := wanted.Metadata.Name, wanted.Metadata.Namespace
	manager.SetOwnerLabels(objects, owner, place)
	if err := normalize.UnstructuredList(objects); err != nil {
		return err
	}
	applied, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	if err != nil {
		return err
	}
	printChanges(applied)

	pruned, err := prune(ctx, manager, wanted, inventory, applied)
	if err != nil {
		return err
	}
	printChanges(pruned)
	options := ssa.WaitOptions{Interval: interval, Timeout: wanted.Spec.Timeout.Duration, FailFast: true}
	if len(paths) == 0 {
		return manager.WaitForSetTermination(pruned, options)
	}
	return manager.WaitForSetWithContext(ctx, wanted.healthChecks(namespace, applied), options)
}

// The objects to wait for.
func (k *kustomization) healthChecks(namespace string, applied *ssa.ChangeSet) object.ObjMetadataSet {
	if k.Spec.Wait {
		return applied.ToObjMetadataSet()
	}
	var set object.ObjMetadataSet
	for _, check := range k.Spec.HealthChecks {
		kind := schema.FromAPIVersionAndKind(check.APIVersion, check.Kind).GroupKind()
		set = append(set, object.ObjMetadata{Namespace: namespace, Name: check.Name, GroupKind: kind})
	}
	return set
}

// Deletes the objects of the inventory that were not applied, all at once, and writes the new inventory.
func prune(ctx context.Context, manager *ssa.ResourceManager, wanted *kustomization, inventory string,
	applied *ssa.ChangeSet,
) (*ssa.ChangeSet, error) {
	var before []ssa.ChangeSetEntry
	text, err := os.ReadFile(inventory)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var stale []*unstructured.Unstructured
	for _, entry := range before {
		if wanted.Spec.Prune && !applied.ToObjMetadataSet().Contains(entry.ObjMetadata) {
			item := &unstructured.Unstructured{}
			item.SetGroupVersionKind(entry.ObjMetadata.GroupKind.WithVersion(entry.GroupVersion))
			item.SetNamespace(entry.ObjMetadata.Namespace)
			item.SetName(entry.ObjMetadata.Name)
			stale = append(stale, item)
		}
	}
	if text, err = json.Marshal(applied.Entries); err == nil {
		err = os.WriteFile(inventory, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	options := ssa.DefaultDeleteOptions()
	options.Inclusions = manager.GetOwnerLabels(wanted.Metadata.Name, wanted.Metadata.Namespace)
	return manager.DeleteAll(ctx, stale, options)
}

func printChanges(changes *ssa.ChangeSet) {
	for _, entry := range changes.Entries {
		fmt.Println(entry.Subject, entry.Action)
	}
}

func newManager() (*ssa.ResourceManager, error) {
	config, err := clientConfig()
	if err != nil {
		return nil, err
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, err
	}
	reader, err := client.New(config, client.Options{HTTPClient: http, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	owner := ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}
	return ssa.NewResourceManager(reader, polling.NewStatusPoller(reader, mapper, polling.Options{}), owner), nil
}

func readKustomization(file string) (*kustomization, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	objects, err := utils.ReadObjects(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for _, item := range objects {
		if item.GetKind() != "Kustomization" {
			continue
		}
		found := &kustomization{}
		text, err := item.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(text, found)
		}
		return found, err
	}
	return nil, fmt.Errorf("%s has no Kustomization", file)
}

// The objects of all files, in the namespace unless they name one.
func readAll(paths []string, namespace string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			files, err = filepath.Glob(filepath.Join(path, "*.yaml"))
			if err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			objects, err := utils.ReadObjects(bytes.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, objects...)
		}
	}
	for _, item := range all {
		if item.GetNamespace() == "" {
			item.SetNamespace(namespace)
		}
	}
	return all, nil
}
