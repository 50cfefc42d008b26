// Command controlplane is a Kubernetes control plane for tests: etcd and kube-apiserver in one process, and
// kube-controller-manager and a stand-in for scheduler and kubelet in two more. README.md tells how to use it.
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
  nodes               stand in for scheduler and kubelet
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

// exitWithParent ends this process when its stdin closes or it is told to stop. The parent holds the other end of
// stdin, which the system closes however the parent ends, so a killed test run leaves nothing behind.
//
// There is no orderly shutdown on purpose: kube-apiserver's takes seconds while watches are open, and what etcd
// has acknowledged has reached the page cache, which outlives the process.
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
