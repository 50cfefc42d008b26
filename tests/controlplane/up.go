package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// up is for manual use: it starts the other commands as children, keeps their stdin open, and waits for Ctrl-C.
func up(args []string) error {
	flags := flag.NewFlagSet("up", flag.ExitOnError)
	dataDir := flags.String("data-dir", "", "directory for data and logs, new or existing (required)")
	port := flags.String("port", "0", "see \"serve\"")
	auditLog := flags.String("audit-log", "", "see \"serve\"")
	assets := flags.String("assets", "", "directory with Kubernetes programs to run instead of the linked ones")
	_ = flags.Parse(args)
	if *dataDir == "" {
		return errors.New("--data-dir is required")
	}
	dir, err := filepath.Abs(*dataDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)

	ended := make(chan string)
	running := 0
	var holds []io.Closer
	// The children must have exited when this function returns, so that the data directory is free.
	defer func() {
		for _, hold := range holds {
			_ = hold.Close()
		}
		for ; running > 0; running-- {
			<-ended
		}
	}()
	start := func(arguments ...string) (io.Reader, error) {
		hold, output, err := startChild(dir, ended, arguments)
		if err == nil {
			holds = append(holds, hold)
			running++
		}
		return output, err
	}

	output, err := start("serve", "--data-dir", dir, "--port", *port, "--audit-log", *auditLog, "--assets", *assets)
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return fmt.Errorf("serve did not become ready, see %s", filepath.Join(dir, "serve.log"))
	}
	kubeconfig := strings.TrimPrefix(strings.TrimSpace(line), "ready ")
	if *assets != "" {
		// A directory of assets often contains only an API server.
		if _, err := os.Stat(filepath.Join(*assets, "kube-controller-manager")); err != nil {
			*assets = ""
		}
	}
	if _, err := start("controller-manager", "--data-dir", dir, "--kubeconfig", kubeconfig, "--assets", *assets); err != nil {
		return err
	}
	if _, err := start("nodes", "--kubeconfig", kubeconfig); err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", kubeconfig)
	fmt.Fprintln(os.Stderr, "running until Ctrl-C")

	select {
	case <-stop:
		return nil
	case name := <-ended:
		running--
		return fmt.Errorf("%s ended, see %s", name, filepath.Join(dir, name+".log"))
	}
}

// startChild runs this program with other arguments. It returns a closer that keeps the stdin of the child open, and
// the stdout of the child.
func startChild(dir string, ended chan<- string, arguments []string) (io.Closer, io.Reader, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	name := arguments[0]
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	command := exec.Command(program, arguments...)
	command.Stderr = log
	hold, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := command.Start(); err != nil {
		return nil, nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_, _ = command.Process.Wait()
		ended <- name
	}()
	return hold, output, nil
}
