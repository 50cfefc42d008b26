package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	_ "time/tzdata" // Time zones of CronJobs, wherever the tests run.

	"k8s.io/component-base/cli"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// controllerManager runs kube-controller-manager, in a process of its own because its logging and that of
// kube-apiserver cannot both be set up in one.
func controllerManager(args []string) error {
	flags := flag.NewFlagSet("controller-manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of an administrator (required)")
	dataDir := flags.String("data-dir", "", "data directory of \"serve\", for its keys (required)")
	assets := flags.String("assets", "", "directory with kube-controller-manager to run instead of the one linked in")
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
		// Nobody renews the stand-in node's lease, so nobody may judge the node by it.
		"--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
		// The usual 20 requests a second would be the speed of every test that deletes a namespace.
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
