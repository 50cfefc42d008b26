package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

// The servers that the providers call. Their addresses are recorded, and so are always the same.
const (
	pageAddress   = "127.0.0.1:18480"
	brokerPort    = 18481
	clusterPort   = "18482"
	clusterConfig = "cluster.yaml"
)

// serve starts the servers for these providers. Each history gets the files in the directory that it returns.
func serve(directory string, providers map[string]bool) (string, error) {
	files := filepath.Join(directory, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return "", err
	}
	if providers["http"] {
		listener, err := net.Listen("tcp", pageAddress)
		if err != nil {
			return "", err
		}
		go func() { check(http.Serve(listener, http.HandlerFunc(page))) }()
	}
	if providers["kafka"] {
		if _, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(brokerPort)); err != nil {
			return "", err
		}
	}
	if providers[clusterConfig] {
		return files, startCluster(directory, filepath.Join(files, clusterConfig))
	}
	return files, nil
}

// inCluster tells whether the objects are in the cluster.
func (h *History) inCluster() bool {
	return strings.Contains(fmt.Sprint(h.Steps[0].Configurations), clusterConfig)
}

func page(response http.ResponseWriter, request *http.Request) {
	response.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if request.URL.Path == "/missing" {
		response.WriteHeader(http.StatusNotFound)
	}
	_, _ = fmt.Fprintf(response, "%s %s", request.URL.Path, request.Header.Get("Accept"))
}

// clusterInput is kept open, because the API server ends when it is closed, at the latest with this program.
var clusterInput io.Closer

// startCluster starts the API server of the cluster tests, and writes its kubeconfig.
func startCluster(directory, config string) error {
	program, err := filepath.Abs("../../../target/recorded-providers/controlplane")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "building the control plane")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	build.Dir, build.Stderr, build.Env = "../../controlplane", os.Stderr, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if err := build.Run(); err != nil {
		return err
	}
	server := exec.Command(program, "serve", "--data-dir", filepath.Join(directory, "cluster"), "--port", clusterPort)
	if clusterInput, err = server.StdinPipe(); err != nil {
		return err
	}
	output, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return os.WriteFile(config, text, 0o600)
		}
	}
	return fmt.Errorf("the control plane did not start: %w", server.Wait())
}
