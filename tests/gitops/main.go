// The clients of GitOps tools for the cluster tests: kstatus, the package with which Flux applies, waits and prunes, and
// the libraries with which Argo CD runs the Lua scripts of a health check or an action. `tests/cluster/gitops.rs` runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The kind that most tests are about.
var resources = schema.GroupVersionResource{Group: "purlin.dev", Version: "v1alpha1", Resource: "resources"}

const usage = `usage: gitops COMMAND

  watch -n NAMESPACE -l SCRIPT           compute the kstatus of every version of every Resource, and its health with a
                                         script of Argo CD, until stdin is closed
  flux -n NAMESPACE -k FILE -i FILE [PATH...]
                                         apply, prune and wait as a Flux Kustomization does, without paths: delete all
  argocd health|actions DIRECTORY        run the cases of health_test.yaml or action_test.yaml`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	namespace := flags.String("n", "", "the namespace")
	health := flags.String("l", "", "a health check of Argo CD")
	kustomization := flags.String("k", "", "a file with a Kustomization of Flux")
	inventory := flags.String("i", "", "the file with the objects of the previous run")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	switch arguments[0] {
	case "watch":
		return watchStatuses(*namespace, *health)
	case "flux":
		return reconcile(*namespace, *kustomization, *inventory, flags.Args())
	case "argocd":
		if flags.NArg() != 2 {
			return errors.New(usage)
		}
		return runCases(flags.Arg(0), flags.Arg(1))
	}
	return errors.New(usage)
}

// The configuration of the client, from KUBECONFIG.
func clientConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	// Every version is looked up immediately: the default limits would delay the lookups by seconds.
	config.QPS, config.Burst = 500, 500
	return config, nil
}

// The value at a path of an object, or nil.
func at(object *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return value
}
