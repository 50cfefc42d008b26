package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	_ "time/tzdata" // Time zones of CronJobs, independent of the system.

	"k8s.io/component-base/cli"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// controllerManager runs kube-controller-manager in a separate process, because its logging and that of kube-apiserver
// cannot both be configured in one.
func controllerManager(args []string) error {
	flags := flag.NewFlagSet("controller-manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of an administrator (required)")
	dataDir := flags.String("data-dir", "", "data directory of \"serve\", for its keys (required)")
	assets := flags.String("assets", "", "directory with kube-controller-manager to run instead of the linked one")
	_ = flags.Parse(args)
	if *kubeconfig == "" || *dataDir == "" {
		return errors.New("--kubeconfig and --data-dir are required")
	}

	var children processes
	exitWithParent(func() { children.kill() })

	files := filesIn(*dataDir)
	arguments := []string{
		"--kubeconfig=" + *kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + files.serviceAccountKey,
		"--root-ca-file=" + files.caCert,
		// The lease of the simulated node is not renewed, so these controllers would consider the node lost.
		"--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
		// The default of 20 requests per second would slow down every test that deletes a namespace.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
	if *assets != "" {
		if err := children.start(filepath.Join(*assets, "kube-controller-manager"), arguments); err != nil {
			return err
		}
		return children.wait()
	}
	command := manager.NewControllerManagerCommand()
	command.SetArgs(arguments)
	os.Exit(cli.Run(command))
	return nil
}
