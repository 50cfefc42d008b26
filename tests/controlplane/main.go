// Command controlplane is a Kubernetes control plane for tests: etcd and kube-apiserver in one process, and
// kube-controller-manager and a simulated scheduler and kubelet in two more. README.md describes how to use it.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: controlplane COMMAND [FLAGS]

  serve               run etcd and kube-apiserver
  controller-manager  run kube-controller-manager
  nodes               run the simulated scheduler and kubelet
  up                  run all three until Ctrl-C

"controlplane COMMAND --help" lists the flags of a command.
`

func main() {
	commands := map[string]func([]string) error{
		"serve":              serve,
		"controller-manager": controllerManager,
		"nodes":              nodes,
		"up":                 up,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "controlplane %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// exitWithParent exits when stdin is closed or on SIGINT or SIGTERM. The parent holds the other end of stdin, which the
// system closes however the parent ends, so a killed test run leaves no processes behind.
//
// There is no orderly shutdown: that of kube-apiserver takes seconds while watches are open, and acknowledged writes of
// etcd are in the page cache, which outlives the process.
func exitWithParent(cleanup func()) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(closed)
	}()
	go func() {
		select {
		case <-stop:
		case <-closed:
		}
		cleanup()
		os.Exit(0)
	}()
}
